"""The bounds of a window-oblivious join: the marks of its inputs, and what follows from them.

The *windows* are those of a join of many inputs: for each input, the most ticks by which its row of
a result is below another row of it; zero for equal times.

Invariants: no bound goes back. A joined row that is kept is at or above ``dropped`` of its input.
The bound on results is true however inexact the marks are: when the last row of a result comes, its
others are kept, so each of them is at or above ``dropped``, and the last row is at most its window
below them. A late row without a partner comes out alone unless it is below what was promised; if no
operator after the join uses what it promises, nothing is promised that a late row could break. If
rows are sorted first, one of the rows is at or above ``joined_below``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowwater.joins.oblivious.estimates import InputEstimates
from lowwater.stream.element import BEGINNING, END_OF_TIME, moved


class JoinBounds:
    """The bounds of all inputs; each list has one entry for each input."""

    def __init__(self, windows: Sequence[int], estimates: InputEstimates):
        self._windows, self._estimates = windows, estimates
        self.promised = [BEGINNING] * len(windows)
        """The marks that the inputs' punctuation gives."""
        self.reset()

    def reset(self) -> None:
        """Set all bounds but the promised ones to the beginning of time."""
        self.dropped = [BEGINNING] * len(self._windows)
        """The times below which joined rows have been dropped."""
        self.joined_below = BEGINNING
        """If rows are sorted first: the time below which all have been joined."""
        self.given_up_below = BEGINNING
        """The time below which rows were given up for lack of memory."""

    @property
    def marks(self) -> list[int]:
        """The lower bounds on the rows to come, by punctuation or by measurement."""
        measured = (estimate.bound for estimate in self._estimates.disorders)
        return list(map(max, self.promised, measured))

    def _others(self, port: int, values: Sequence[int]) -> list[tuple[int, int]]:
        """Return the value of every other input, with that input's window."""
        pairs = zip(values, self._windows, strict=True)
        return [pair for at, pair in enumerate(pairs) if at != port]

    def passed(self, port: int) -> int:
        """Return the time below which rows of an input have been passed by all other marks."""
        return moved(min(mark for mark, _ in self._others(port, self.marks)), -self._windows[port])

    def late_below(self, port: int) -> int:
        """Return the time below which a row of an input is late: rows that it could match were
        dropped."""
        return max(moved(dropped, window) for dropped, window in self._others(port, self.dropped))

    def frontier(self, port: int) -> int:
        """Return the greatest time so far at which a row of an input can match rows of all others
        that have come; rows above it have no results yet."""
        tops = list(map(max, self._estimates.tops, (each - 1 for each in self.promised)))
        return min(tops[port], *(moved(top, window) for top, window in self._others(port, tops)))

    @property
    def reached(self) -> int:
        """The greatest frontier: no row above it has results yet."""
        return max(map(self.frontier, range(len(self._windows))))

    @property
    def sorted_below(self) -> int:
        """The time below which rows may be joined, if they are sorted first."""
        return max(min(self.marks), self.given_up_below)

    def result_mark(self, port: int, sorting: bool) -> int:
        """Return the lower bound on the time of an input's row in the results to come."""
        window = self._windows[port]
        mark = moved(self.joined_below, -max(0, window))
        if sorting:
            return mark
        others = [moved(dropped, -window) for dropped, _ in self._others(port, self.dropped)]
        return max(mark, sorted([self.dropped[port], *others])[-2])

    def outer_mark(self, port: int, sure: bool) -> int:
        """Return the lower bound on the rows of an input to come out alone: on those that are kept,
        and if ``sure`` also on late ones, which come out as well."""
        return min(self.dropped[port], self.promised[port] if sure else END_OF_TIME)

    def begin_sorting(self) -> None:
        """Set ``joined_below`` to a time that no promise to come goes below."""
        marks = (self.result_mark(port, False) for port in range(len(self._windows)))
        self.joined_below = max(self.joined_below, moved(min(marks), min(0, *self._windows)))

    def snapshot(self) -> Any:
        """Return all bounds."""
        return list(self.promised), list(self.dropped), self.joined_below, self.given_up_below

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        promised, dropped, self.joined_below, self.given_up_below = saved
        self.promised, self.dropped = list(promised), list(dropped)
