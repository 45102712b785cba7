"""What a task knows about the query and batch it works for."""

from __future__ import annotations

from dataclasses import dataclass

from pyspark import TaskContext


@dataclass(frozen=True)
class Task:
    """The run, the batch and the partition of the task at hand."""

    run: str
    batch: int
    partition: int


def current_task() -> Task:
    """The task this process works on now."""
    context = TaskContext.get()
    if context is None:
        return Task("", 0, 0)
    run = context.getLocalProperty("spark.jobGroup.id") or ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    return Task(run, int(batch or 0), context.partitionId())
