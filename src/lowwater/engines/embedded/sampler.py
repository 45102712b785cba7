"""A sampler lets other threads read a run's metrics, which are taken between two steps of it.

A kernel in the middle of a step may hold a histogram that has grown in one column and not yet in
the other. Invariant: the metrics are taken by the working thread between two steps, or by the
reading thread while no thread works. The one exception is a step that takes long because a sink
blocks or a function of the user's computes: the reader then takes them in the middle of the step,
and gets the last ones taken before if that fails.

Other values are taken in the same way, but only between two turns of the engine's loop, when no
result is on its way: see :meth:`Sampler.ask`.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Generic, TypeVar

T = TypeVar("T")
A = TypeVar("A")

PATIENCE = 1.0
"""Seconds a reader waits for the end of a step before it reads in the middle of it."""


class _Question(Generic[A]):
    """A value that a reader waits for."""

    def __init__(self, take: Callable[[], A]):
        self.take = take
        self.answer: Callable[[], A] | None = None
        """Returns the value, or raises the error with which taking it failed; None until then."""

    def settle(self) -> None:
        """Take the value."""
        self.answer = _taken(self.take)


def _taken(take: Callable[[], A]) -> Callable[[], A]:
    """Take a value; return a function that returns it or, if that failed, raises the error."""
    try:
        value = take()
    except Exception as error:  # the reader fails, not the run
        failure = error

        def raising() -> A:
            raise failure

        return raising
    return lambda: value


class Sampler(Generic[T]):
    """Takes a value for readers when the working thread allows it."""

    def __init__(self, take: Callable[[], T]):
        self._take = take
        self._changed = threading.Condition()
        self._requested = False
        self._worker: int | None = None
        self._taken = 0
        self._last: Callable[[], T] = take
        self._tasks: deque[Callable[[], None]] = deque()
        self._questions: list[_Question[Any]] = []

    def begin(self) -> None:
        """Note that the calling thread works from now on, and take a first value."""
        with self._changed:
            self._worker = threading.get_ident()
        self._answer()

    def end(self) -> None:
        """Note that no thread works any more."""
        with self._changed:
            self._do_tasks()
            self._worker = None
            self._changed.notify_all()

    def serve(self) -> None:
        """Do what other threads wait for, between two steps: their tasks, and taking a value."""
        if self._tasks:
            with self._changed:
                self._do_tasks()
                self._changed.notify_all()
        if self._requested:
            self._answer()

    def _do_tasks(self) -> None:
        while self._tasks:
            self._tasks.popleft()()

    def _answer(self) -> None:
        last = _taken(self._take)
        with self._changed:
            self._last, self._requested = last, False
            self._taken += 1
            self._changed.notify_all()

    def do(self, task: Callable[[], None], wake: Callable[[], None]) -> None:
        """Do a task between two steps, or at once while no thread works.

        If the present step takes long, or is this thread's own, the task is done after it. ``wake``
        ends a sleep of the working thread.
        """
        with self._changed:
            if self._worker is None:
                task()
                return
            self._tasks.append(task)
            if self._worker == threading.get_ident():
                return
            wake()
            self._changed.wait_for(lambda: task not in self._tasks, PATIENCE)

    def answer_questions(self) -> None:
        """Take the values that readers ask for; to be called between two turns of the loop."""
        if not self._questions:
            return
        with self._changed:
            asked, self._questions = self._questions, []
        for each in asked:
            each.settle()
        with self._changed:
            self._changed.notify_all()

    def ask(self, wake: Callable[[], None], take: Callable[[], A]) -> A:
        """Return what ``take`` returns between two turns of the loop or, if a turn takes long, as
        soon as it returns something.

        ``wake`` ends a sleep of the working thread.
        """
        with self._changed:
            if self._worker in (None, threading.get_ident()):
                return take()
            question = _Question(take)
            self._questions.append(question)
            wake()
            while question.answer is None:
                self._changed.wait_for(
                    lambda: question.answer is not None or self._worker is None, PATIENCE
                )
                if question.answer is None:
                    if self._worker is None:
                        return take()
                    with suppress(Exception):
                        return take()
        return question.answer()

    def read(self, wake: Callable[[], None]) -> T:
        """Return the value as of the end of the present step, or as of now if that takes long.

        ``wake`` ends a sleep of the working thread.
        """
        with self._changed:
            if self._worker in (None, threading.get_ident()):
                return self._take()
            before, self._requested = self._taken, True
            wake()
            done = self._changed.wait_for(
                lambda: self._taken > before or self._worker is None, PATIENCE
            )
            if self._worker is None:
                return self._take()
            if not done:
                with suppress(Exception):
                    return self._take()
            return self._last()
