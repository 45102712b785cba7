"""Window aggregate (WID, OOP §5.2 and A.2.2) over panes, by time or by row number.

A row is reduced once, into the pane it lies in; a window is answered from its panes when a promise
says that no row for it can come any more. A row-count window is the same thing on sequence
numbers, which the source gave the rows before any operator could reorder or drop them.

Invariant: a window is answered exactly once, when the mark reaches its end; a pane is dropped when
the last window that covers it has been answered; windows with no row are never answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.aggregates import Aggregate, finish, merge
from lowwater.operators.kernel import Ask, Kernel
from lowwater.operators.partials import Partials
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec

START, END = "window_start", "window_end"


class WindowAggregate(Kernel):
    """Aggregates rows per window and group."""

    rule: ClassVar[str] = (
        "windows ending at or before the mark are answered, then told on both ends"
    )

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        window: WindowSpec,
        groups: Sequence[str],
        aggregates: Sequence[Aggregate],
    ):
        super().__init__(store)
        self._time, self._domain, self._window = time, domain, window
        self._groups, self._aggregates = list(groups), list(aggregates)
        self._ticks = domain.to_ticks(pl.col(time))
        self._partials = Partials(store, self._groups, self._aggregates)
        self._open_from = window.first_open(BEGINNING)  # windows before this are answered
        self._mark = BEGINNING

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Reduce rows into their panes."""
        window, pane = self._window, self._window.pane
        if window.slide > window.range:  # rows between two windows are in none
            chunk = chunk.filter(self._ticks % window.slide < window.range)
        self._partials.put(chunk, self._ticks // pane * pane)
        return []

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Answer the windows the promise completes."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        answers = self._answer(self._mark)
        return [*answers, *self._told()]

    def closing(self, port: int) -> Sequence[Element]:
        """Answer everything that is left."""
        self._mark = END_OF_TIME
        return self._answer(END_OF_TIME)

    def _told(self) -> list[Element]:
        first = self._window.first_open(self._mark)
        if first <= self._open_from:
            return []
        self._open_from = first
        return [
            Punctuation.linear(START, first),
            Punctuation.linear(END, first + self._window.range),
        ]

    def _answer(self, mark: int) -> list[Element]:
        """Answers of all windows that end at or before the mark and are not answered yet."""
        window = self._window
        first_open = window.first_open(mark)
        complete: set[int] = set()
        for pane in self._partials.slices(high=first_open - window.slide + window.range):
            starts = window.starts_covering(pane)
            for start in starts:
                if self._open_from <= start < first_open:
                    complete.add(start)
        answers: list[Element] = []
        for start in sorted(complete):
            answers.append(self._close(start))
        self._purge(first_open)
        return answers

    def _close(self, start: int) -> Chunk:
        panes = self._partials.slices(start, start + self._window.range)
        held = [self._partials.get(pane) for pane in panes]
        return self._finish(start, pl.concat([chunk for chunk in held if chunk is not None]))

    def _finish(self, start: int, partials: Chunk) -> Chunk:
        begin = self._domain.from_ticks(pl.lit(start, dtype=pl.Int64)).alias(START)
        end = self._domain.from_ticks(pl.lit(start + self._window.range, dtype=pl.Int64)).alias(END)
        keys = [begin, end, *(pl.col(name) for name in self._groups)]
        return finish(merge(partials, self._groups, self._aggregates), keys, self._aggregates)

    def _purge(self, first_open: int) -> None:
        """Drop the panes that no open window covers."""
        for pane in self._partials.slices(high=first_open):
            self._partials.take(pane)

    # ---- progress per group ----------------------------------------------------------------

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Answer windows of the groups that have passed them, and of nobody else."""
        keys = list(promise.keys)
        if promise.attribute != self._time or not set(keys) <= set(self._groups):
            return []
        if not self._window.tumbling:
            return []
        window = self._window
        furthest = int(promise.marks[MARK].max())  # type: ignore[arg-type]
        answers: list[Element] = []
        for pane in self._partials.slices(high=window.first_open(furthest)):
            passed = promise.marks.filter(pl.col(MARK) >= pane + window.range).select(keys)
            held = self._partials.get(pane)
            if held is None or not passed.height:
                continue
            done = held.join(passed, on=keys, how="semi", nulls_equal=True)
            if not done.height:
                continue
            self._partials.take(pane)
            rest = held.join(passed, on=keys, how="anti", nulls_equal=True)
            if rest.height:
                self._partials.put_back(pane, rest)
            answers.append(self._finish(pane, done))
        return answers

    # ---- asking and saving -----------------------------------------------------------------

    def asks(self) -> Sequence[Ask]:
        """The earliest open window with rows wants the mark at its end."""
        for pane in self._partials.slices():
            starts = [s for s in self._window.starts_covering(pane) if s >= self._open_from]
            if starts:
                return [Ask(0, self._time, starts[0] + self._window.range)]
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """A promise on a window's edge needs the mark past all earlier windows."""
        if attribute not in (START, END):
            return []
        first = mark if attribute == START else mark - self._window.range
        return [Ask(0, self._time, first - self._window.slide + self._window.range)]

    def marks(self) -> dict[str, int]:
        """The input's mark."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """The mark and the first open window."""
        return super().snapshot() | {"mark": self._mark, "open_from": self._open_from}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._mark, self._open_from = saved["mark"], saved["open_from"]
