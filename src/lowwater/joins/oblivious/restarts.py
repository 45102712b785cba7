"""Whether the values of an input begin again: counters that restart.

A row is *suspect* if it is below the middle between where its input began and its input's mark, and
misses rows of all kinds that were dropped. An input has *restarted* if nearly all of its last rows
are suspect, so many as its disorder has places and 32 at least. Rows that come late for another
reason are no restart: rows of the old level come between them, or again after them.

Invariant: the state is bounded; how the rows are cut changes when a restart is noticed, by a chunk.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from lowwater.joins.oblivious.losses import Flags
from lowwater.joins.oblivious.records import Ticks
from lowwater.stream.element import BEGINNING, END_OF_TIME

FIRST = 16
"""An input begins at the median of so many rows: a few strange ones do not matter."""
LAST = 32
"""Rows at least by which a restart is told."""
OTHERS = 32
"""One row in so many of these may be of the old level."""


class Restart:
    """What one input's rows say of a restart."""

    def __init__(self) -> None:
        self._first: Ticks = np.empty(0, dtype=np.int64)
        self._recent: Flags = np.empty(0, dtype=np.bool_)
        self._top = BEGINNING  # the greatest suspect
        self.since = 0
        """Rows since the first suspect that is still held."""
        self.restarted = False
        self.old = BEGINNING
        """Once it has restarted: the mark before."""

    def begin(self, ticks: Ticks) -> None:
        """Take the first rows in."""
        self._first = ticks[:FIRST]

    def suspects(self, ticks: Ticks, mark: int, gone: int) -> Flags:
        """Which rows are suspect, given the input's mark and what others' rows were dropped."""
        if len(self._first) < FIRST:
            self._first = np.concatenate([self._first, ticks])[:FIRST]
        if mark in (BEGINNING, END_OF_TIME) and not self.restarted:
            return np.zeros(len(ticks), dtype=np.bool_)
        if self.restarted:
            found: Flags = ticks < middle(self._top, self.old)
        else:
            begun = int(np.median(self._first))
            found = ticks < min(middle(begun, mark), gone)
            self.old = mark
        if found.any():
            self._top = max(self._top, int(ticks[found].max()))
        return found

    def take(self, suspects: Flags, places: int) -> None:
        """Take note of rows; their input's disorder has so many places."""
        if self.since:
            self.since += len(suspects)
        elif suspects.any():  # those beside it may have come before it
            self.since = 1
        last = max(LAST, places)
        self._recent = np.concatenate([self._recent, suspects])[-last:]
        others = int((~self._recent).sum())
        if len(self._recent) == last and others <= last // OTHERS:
            self.restarted = True

    def over(self, places: int) -> bool:
        """Whether suspects were late rows: others come again, or came all the time."""
        enough = self.since >= max(LAST, places)
        return enough and 2 * int(self._recent.sum()) < len(self._recent)

    @property
    def at_new(self) -> bool:
        """Whether all of the last few rows are suspect."""
        return len(self._recent) > 0 and bool(self._recent[-LAST // 4 :].all())

    def forget(self) -> None:
        """Suspects were late rows."""
        self.since, self.restarted, self._top = 0, False, BEGINNING
        self._recent = self._recent[:0]

    def passed(self, mark: int) -> bool:
        """Whether another input's mark is well beyond where this one restarted."""
        begun = int(np.median(self._first))
        return mark != END_OF_TIME and mark > self.old + (self.old - begun) // 4

    def snapshot(self) -> Any:
        """Everything needed to go on elsewhere."""
        rows = self._first.tolist(), self._recent.tolist()
        return rows, self._top, self.since, self.restarted, self.old

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        (first, recent), self._top, self.since, self.restarted, self.old = saved
        self._first = np.array(first, dtype=np.int64)
        self._recent = np.array(recent, dtype=np.bool_)


def middle(low: int, high: int) -> int:
    """The middle between two values."""
    return low + (high - low) // 2
