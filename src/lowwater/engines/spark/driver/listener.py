"""The reports of a batch are read from Spark's progress events.

Where workers are on other machines, their requests for a tick of the clock come with these reports.
"""

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
"""The name under which Spark's progress events hold the reports."""
WHOLE = "triggerExecution"
"""Spark's name for the time of a whole batch."""
ANSWERS = "lowwater_answers"
"""The name under which Spark's progress events hold the number of answers combined from parts."""


def answers_in(progress: Any) -> int | None:
    """Return the number of answers of a batch that were combined from parts; None if none are."""
    metrics = progress.observedMetrics.get(ANSWERS)
    if metrics is None:
        return None
    return int(metrics["rows"] if "rows" in metrics else metrics["values"][0])


def reports_in(progress: Any) -> list[Report]:
    """Return the reports of the buckets on a batch."""
    metrics = progress.observedMetrics.get(METRICS)
    if metrics is None:
        return []
    # Spark Connect gives the values of a row without their names.
    texts = metrics["reports"] if "reports" in metrics else metrics["values"][0]
    return [restored(Report, json.loads(each)) for each in texts]


def batch_of(progress: Any, rows: int) -> BatchMetrics:
    """Return the metrics of a batch; ``rows`` are counted by us, because Spark counts messages."""
    parts = {name: length / 1_000 for name, length in dict(progress.durationMs).items()}
    seconds = parts.pop(WHOLE, sum(parts.values()))
    started = datetime.fromisoformat(progress.timestamp.replace("Z", "+00:00"))
    return BatchMetrics(int(progress.batchId), started, seconds, rows, parts)


class TickListener(StreamingQueryListener):
    """Saves the requests of one query for a tick in the folder where its clock finds them."""

    def __init__(self, folder: Path):
        self._folder = folder

    def onQueryProgress(self, event: QueryProgressEvent) -> None:
        """Save the requests of the buckets after a batch."""
        for report in reports_in(event.progress):
            if report.request is not None and report.request.folder == str(self._folder):
                tick_requests.save_reported(report)

    def onQueryStarted(self, event: QueryStartedEvent) -> None:
        """Do nothing."""

    def onQueryIdle(self, event: QueryIdleEvent) -> None:
        """Do nothing."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:
        """Do nothing."""
