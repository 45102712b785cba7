"""What a task knows about the query and batch it works for."""

from __future__ import annotations

import sys
import traceback
from dataclasses import dataclass
from functools import cache
from typing import Any

from pyspark import TaskContext


@dataclass(frozen=True)
class Task:
    """The run, the batch and the partition of the task at hand."""

    run: str
    batch: int
    partition: int


def current_task() -> Task:
    """The task this process works on now."""
    _end_quietly()
    context = TaskContext.get()
    if context is None:
        return Task("", 0, 0)
    run = context.getLocalProperty("spark.jobGroup.id") or ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    return Task(run, int(batch or 0), context.partitionId())


@cache
def _end_quietly() -> None:
    """A worker that Spark puts away while it is writing prints a traceback nobody needs."""
    shout = traceback.print_exc

    def print_exc(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            shout(*arguments, **named)

    traceback.print_exc = print_exc
