"""A task of Spark is the work of a worker's process on one partition of a batch."""

from __future__ import annotations

import gc
import itertools
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
    """Return the task that this process works on now."""
    begin_task()
    context = TaskContext.get()
    if context is None:
        return Task("", 0, 0)
    run = context.getLocalProperty("spark.jobGroup.id") or ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    return Task(run, int(batch or 0), context.partitionId())


def begin_task() -> None:
    """Make the garbage collection of a worker fast enough for tasks that last milliseconds.

    After each task a worker collects garbage among all its objects, and the modules it imported
    have hundreds of thousands: four times the work of a small batch. Objects that exist when the
    first tasks begin stay for good, so they are left out. Objects of later tasks are collected:
    an object that is left out is never freed.
    """
    end_quietly()
    if next(_begun) < FREEZING:
        gc.freeze()


FREEZING = 3
"""The number of tasks of a process at whose begin objects are left out of garbage collection."""
_begun = itertools.count()


@cache
def end_quietly() -> None:
    """Print no traceback of a process that Spark ends while it writes."""
    print_exc, excepthook = traceback.print_exc, sys.excepthook

    def quiet_print_exc(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            print_exc(*arguments, **named)

    def quiet_excepthook(kind: type[BaseException], *rest: Any) -> None:
        if not issubclass(kind, BrokenPipeError):
            excepthook(kind, *rest)

    traceback.print_exc, sys.excepthook = quiet_print_exc, quiet_excepthook
