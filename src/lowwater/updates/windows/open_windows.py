"""The windows of one key that have rows and are not complete yet, as runs of their starts.

A window without rows does not exist. Rows that follow each other closely are in windows that follow
each other, so there is one run of starts wherever rows leave no gap longer than a window.

Invariant: a start is in a run exactly if some row was added that lies in its window, and no call of
:meth:`OpenWindows.complete` has reached it; runs ascend and are further apart than a slide.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.window import WindowSpec

Ticks = NDArray[np.int64]
Run = tuple[int, int]
"""The first and the last start of successive windows, in ticks."""


class OpenWindows:
    """The starts of windows that have rows."""

    __slots__ = ("_window", "runs")

    def __init__(self, window: WindowSpec, runs: Iterable[Run] = ()):
        self._window = window
        self.runs: list[Run] = list(runs)

    def add(self, ticks: Ticks) -> None:
        """Add the windows of rows, each of which is in a window."""
        found = self._runs_of(np.sort(ticks))
        if self.runs:
            found = sorted([*self.runs, *found])
        self.runs = self._merged(found)

    def _runs_of(self, ticks: Ticks) -> list[Run]:
        slide = self._window.slide
        firsts = self._window.first_open(ticks)
        lasts = ticks // slide * slide
        apart = np.flatnonzero(firsts[1:] > lasts[:-1] + slide) + 1
        begins = firsts[np.concatenate([[0], apart])].tolist()
        ends = lasts[np.concatenate([apart - 1, [-1]])].tolist()
        return list(zip(begins, ends, strict=True))

    def _merged(self, runs: list[Run]) -> list[Run]:
        merged = runs[:1]
        for first, last in runs[1:]:
            begin, end = merged[-1]
            if first <= end + self._window.slide:
                merged[-1] = begin, max(end, last)
            else:
                merged.append((first, last))
        return merged

    @property
    def earliest(self) -> int | None:
        """The first start; None if no window is open."""
        return self.runs[0][0] if self.runs else None

    def complete(self, until: int) -> list[Run]:
        """Take out the starts below ``until``, itself a start, and return them."""
        done: list[Run] = []
        while self.runs and self.runs[0][0] < until:
            first, last = self.runs.pop(0)
            if last >= until:
                self.runs.insert(0, (until, last))
                last = until - self._window.slide
            done.append((first, last))
        return done


def count(runs: Iterable[Run], slide: int) -> int:
    """Return the number of windows in runs."""
    return sum((last - first) // slide + 1 for first, last in runs)


def first_after(runs: Iterable[Run], start: int, slide: int) -> int | None:
    """Return the first start in runs above ``start``; None if there is none."""
    for first, last in runs:
        if last > start:
            return max(first, start + slide)
    return None


class CompletionTimes:
    """The moments at which windows became complete.

    They follow from the mark of a stream, and from the arrivals of the rows that moved it since the
    mark before.
    """

    def __init__(self) -> None:
        self.mark = BEGINNING
        self._top = BEGINNING  # the greatest time of a row, in ticks
        self._tops: list[int] = []  # the greatest times since the mark before
        self._when: list[int] = []  # the arrivals of their rows, in clock nanoseconds
        self._moved = np.empty(0, np.int64), np.empty(0, np.int64)  # both, at the last advance
        self._ahead = 0  # ticks from the greatest time to the mark, at the last advance
        self._now = 0  # clock time of the last advance
        self._last: int | None = None  # arrival of the last row since then

    def add(self, ticks: Ticks, when: Ticks) -> None:
        """Record the arrivals of rows; only rows later than all before move a mark."""
        tops = np.maximum.accumulate(np.append(self._top, ticks))
        later = np.flatnonzero(tops[1:] > tops[:-1])
        self._tops += ticks[later].tolist()
        self._when += when[later].tolist()
        self._top = int(tops[-1])
        self._last = int(when[-1])

    def advance(self, mark: int, now: int) -> None:
        """Advance the mark; ``now`` is the moment, in clock nanoseconds."""
        if mark == END_OF_TIME:
            self._clear_arrivals()
        self.mark, self._now = mark, now
        self._ahead = mark - self._top
        self._moved = np.array(self._tops, np.int64), np.array(self._when, np.int64)
        self._clear_arrivals()

    def _clear_arrivals(self) -> None:
        self._tops, self._when, self._last = [], [], None

    def last_arrival(self, now: int) -> int:
        """Return the arrival of the last row since the mark before, or ``now`` if there was none.

        The arrivals are cleared; they are those of a punctuation on single keys.
        """
        came = now if self._last is None else self._last
        self._clear_arrivals()
        return came

    def when(self, mark: int) -> int:
        """Return the clock time, in nanoseconds, at which the last advance reached ``mark``."""
        tops, when = self._moved
        if not len(tops):
            return self._now
        return int(when[min(int(np.searchsorted(tops, mark - self._ahead)), len(when) - 1)])

    def saved(self) -> tuple[Any, ...]:
        """Return the snapshot."""
        return self.mark, self._top, self._last, tuple(self._tops), tuple(self._when)

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Set the state to that of a snapshot."""
        self.mark, self._top, self._last, tops, when = saved
        self._tops, self._when = list(tops), list(when)
