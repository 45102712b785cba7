"""What a task knows about the query and batch it works for."""

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
    """The task this process works on now."""
    begin_task()
    context = TaskContext.get()
    if context is None:
        return Task("", 0, 0)
    run = context.getLocalProperty("spark.jobGroup.id") or ""
    batch = context.getLocalProperty("streaming.sql.batchId")
    return Task(run, int(batch or 0), context.partitionId())


def begin_task() -> None:
    """Make the process of a worker fit for tasks that last milliseconds.

    After each task a worker looks for garbage among all objects it has, and the modules it imported
    are hundreds of thousands: four times the work of a small batch. What is there when its first
    tasks begin stays for good, so the search may leave it out. Only the first: a later task may
    begin with objects that end, and what is left out is never freed.
    """
    end_quietly()
    if next(_begun) < FREEZING:
        gc.freeze()


FREEZING = 3
_begun = itertools.count()


@cache
def end_quietly() -> None:
    """A process that Spark puts away while it is writing prints a traceback nobody needs."""
    print_exc, excepthook = traceback.print_exc, sys.excepthook

    def quiet_print_exc(*arguments: Any, **named: Any) -> None:
        if not isinstance(sys.exception(), BrokenPipeError):
            print_exc(*arguments, **named)

    def quiet_excepthook(kind: type[BaseException], *rest: Any) -> None:
        if not issubclass(kind, BrokenPipeError):
            excepthook(kind, *rest)

    traceback.print_exc, sys.excepthook = quiet_print_exc, quiet_excepthook
