"""Where workers are on other machines, their wishes for a tick come with the report of a batch."""

from __future__ import annotations

import json
from datetime import datetime
from pathlib import Path
from typing import Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from lowwater.engines.spark.wire import tick_requests
from lowwater.engines.spark.wire.report import Report
from lowwater.metrics import BatchMetrics, restored

METRICS = "lowwater"
"""The name under which batches report to listeners."""


WHOLE = "triggerExecution"
"""Spark's name for all of a batch."""
ANSWERS = "lowwater_answers"
"""The name under which answers are counted that are put together of parts."""


def answers_in(progress: Any) -> int | None:
    """How many rows a batch answered, if they are counted apart."""
    metrics = progress.observedMetrics.get(ANSWERS)
    if metrics is None:
        return None
    return int(metrics["rows"] if "rows" in metrics else metrics["values"][0])


def reports_in(progress: Any) -> list[Report]:
    """Return the reports of the buckets on a batch."""
    metrics = progress.observedMetrics.get(METRICS)
    if metrics is None:
        return []
    # Connect tells the values of a row without their names.
    told = metrics["reports"] if "reports" in metrics else metrics["values"][0]
    return [restored(Report, json.loads(each)) for each in told]


def batch_of(progress: Any, rows: int) -> BatchMetrics:
    """A batch as Spark tells of it; its rows are counted by us, for Spark counts messages."""
    parts = {name: length / 1_000 for name, length in dict(progress.durationMs).items()}
    seconds = parts.pop(WHOLE, sum(parts.values()))
    started = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00"))
    return BatchMetrics(int(progress.batchId), started, seconds, rows, parts)


class WishListener(StreamingQueryListener):
    """Puts the wishes of one query where its clock looks for them."""

    def __init__(self, folder: Path):
        self._folder = folder

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """A batch is done: hear what is waited for now."""
        for report in reports_in(event.progress):
            if report.request is not None and report.request.folder == str(self._folder):
                tick_requests.pass_on(report)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Nothing to do."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Nothing to do."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Nothing to do."""
