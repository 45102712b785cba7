"""Where workers are on other machines, their wishes for a tick come with the report of a batch."""

from __future__ import annotations

import json
from pathlib import Path

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from lowwater.engines.spark import asking

METRICS = "lowwater"
"""The name under which batches report to listeners."""


class WishListener(StreamingQueryListener):
    """Puts the wishes of one query where its clock looks for them."""

    def __init__(self, folder: Path):
        self._folder = folder

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done: hear what is waited for now."""
        metrics = event.progress.observedMetrics.get(METRICS)
        for text in metrics["reports"] if metrics is not None else ():
            report = json.loads(text)
            if report.get("asks") == str(self._folder):
                asking.pass_on(str(self._folder), report)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to do."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to do."""
