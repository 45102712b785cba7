"""Window aggregate (WID, OOP §5.2 and A.2.2), by time or by row number.

A row is reduced once and waits until a promise says that no row for its windows can come any more;
then they are answered, at once or gradually (OOP §6). A row-count window is the same thing on
sequence numbers, which the source gave the rows before any operator could reorder or drop them.

Invariant: a window is closed when the mark reaches its end, each of its answers leaves exactly
once, and its edges are promised when the last one has left; what no unanswered window needs is
dropped; windows with no row are never answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.aggregates import Aggregate, finish, in_key_order, merge
from lowwater.operators.flush import Flush, Immediate, Leaving, slots_of
from lowwater.operators.keeping import Form
from lowwater.operators.kernel import Reducer, Request
from lowwater.operators.waiting import Release
from lowwater.operators.window_state import PANE, START, WindowState
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

END = "window_end"
IMMEDIATE = Immediate()


class WindowAggregate(Reducer):
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
        flush: Flush = IMMEDIATE,
        keep: Form | None = None,
        by: Sequence[str] = (),
    ):
        super().__init__(store)
        self._time, self._domain, self._window = time, domain, window
        self._by = tuple(by)  # what names the groups that are promised each by itself
        self._groups, self._aggregates = list(groups), list(aggregates)
        self._ticks = ticks = domain.to_ticks(pl.col(time))
        self._state = WindowState(store, ticks, window, self._groups, self._aggregates, keep)
        self._flush = flush
        gradual = self._groups and not isinstance(flush, Immediate)
        self._leaving = Leaving(window, flush) if gradual else None  # type: ignore[arg-type]
        self._open_from = window.first_open(BEGINNING)  # windows before this are closed
        self._mark = BEGINNING
        self._told = self._open_from

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Take rows in; answers of closed windows may leave for them."""
        self._state.put(chunk)
        self._came(chunk)
        return self._gradually() if self._leaving is not None else []

    def reduced(self, chunk: Chunk) -> Chunk:
        """Rows as partials by pane and group."""
        return self._state.reduced(chunk)

    def on_partials(self, partials: Chunk) -> None:
        """Take partials of panes in."""
        self._state.put_partials(partials)
        self._came(partials)

    def _came(self, chunk: Chunk) -> None:
        if self._leaving is not None and self._leaving.windows:
            slots = slots_of(chunk, self._groups) if self._leaving.wants_slots else None
            self._leaving.came(chunk.height, slots)

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Answer the windows the promise completes."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        first_open = self._window.first_open(self._mark)
        if self._leaving is not None:
            if first_open > self._open_from:
                self._leaving.close(self._state.starts(self._open_from, first_open))
                self._open_from = first_open
            return self._gradually()
        if first_open <= self._open_from:
            return []
        answers = self._answer(self._open_from, first_open)
        self._open_from = first_open
        self._state.release(first_open)
        return [*answers, *self._tell(first_open)]

    def close_port(self, port: int) -> Sequence[Element]:
        """Answer everything that is left."""
        self._mark = END_OF_TIME
        answers = self._gradually() if self._leaving is not None else []
        last = self._window.first_open(END_OF_TIME)
        answers = [*answers, *self._answer(self._open_from, last)]
        self._open_from = last
        self._state.release(last)
        return answers

    def _answer(self, first: int, until: int) -> list[Element]:
        """Answers of all windows that start between two ticks."""
        partials = self._state.between(first, until)
        return self._answered(partials) if partials is not None else []

    def _answered(self, partials: Chunk) -> list[Element]:
        """Answers of windows from partials that carry the start of theirs."""
        merged = merge(partials, [START, *self._groups], self._aggregates)
        if self._state.keeping.measures:
            size = int(merged.estimated_size())
            self._state.keeping.answered(partials.height, merged.height, size)
        return [merged if self.in_part else self._shown(merged)]

    def finished(self, parts: Chunk) -> Chunk:
        """Answers of windows from the partial answers of all copies."""
        return self._shown(merge(parts, [START, *self._groups], self._aggregates))

    def _shown(self, merged: Chunk) -> Chunk:
        merged = in_key_order(merged, [START, *self._groups])
        begin = self._domain.from_ticks(pl.col(START)).alias(START)
        end = self._domain.from_ticks(pl.col(START) + self._window.range).alias(END)
        keys = [begin, end, *(pl.col(name) for name in self._groups)]
        return finish(merged, keys, self._aggregates)

    def _tell(self, first: int) -> list[Element]:
        """All windows that start before ``first`` are out."""
        if first <= self._told:
            return []
        self._told = first
        return [
            Punctuation.linear(START, first),
            Punctuation.linear(END, first + self._window.range),
        ]

    # ---- answers that leave gradually ------------------------------------------------------

    def _gradually(self) -> list[Element]:
        """The answers of closed windows that are due now."""
        leaving = self._leaving
        assert leaving is not None
        out: list[Element] = []
        for start in leaving.windows:
            out += self._piece(leaving, start)
        leaving.finished()
        first = min([*leaving.windows, self._open_from])
        if first > self._told:
            self._state.release(first)
        return [*out, *self._tell(first)]

    def _piece(self, leaving: Leaving, start: int) -> list[Element]:
        held = self._state.held(start)
        due = leaving.due(start, self._mark, held, not self.in_part)
        if due is None:
            return []
        partials = self._state.between(start, start + self._window.slide)
        if partials is None:
            return []
        if not due.all():
            partials = partials.filter(pl.Series(due[slots_of(partials, self._groups)]))
        return self._answered(partials) if partials.height else []

    # ---- progress per group ----------------------------------------------------------------

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Answer windows of the groups that have passed them, and of nobody else."""
        keys = list(promise.keys)
        if promise.attribute != self._time or not set(keys) <= set(self._groups):
            return []
        before = self._window.first_open(promise.before)  # earlier windows of theirs are out
        first = max(self._open_from, before)
        partials = self._state.take_passed(promise.marks, keys, first)
        answers = self._answered(partials) if partials is not None else []
        return [*answers, *self._tell_groups(promise.marks, max(self._told, before))]

    def _tell_groups(self, marks: Chunk, before: int) -> list[Element]:
        """The edges of a group's windows are promised up to its first open one."""
        range_, slide = self._window.range, self._window.slide
        first = ((pl.col(MARK) - range_) // slide + 1) * slide
        starts = marks.with_columns(first.alias(MARK)).filter(pl.col(MARK) > before)
        if not starts.height:
            return []
        ends = starts.with_columns(pl.col(MARK) + range_)
        return [
            GroupPunctuation(START, starts, before),
            GroupPunctuation(END, ends, before + range_),
        ]

    # ---- asking and saving -----------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Answers that are due, or else the earliest open window, want the mark at their end."""
        if self._leaving is not None and self._leaving.windows:
            return [Request(0, self._time, self._leaving.deadline(self._leaving.windows[0]))]
        start = self._state.earliest(self._open_from)
        return [] if start is None else [Request(0, self._time, start + self._window.range)]

    def releases(self) -> Sequence[Release]:
        """A row is released by the end of any window it is in."""
        window, step = self._window, self._window.slide
        if not self._by:
            return []
        ends = (1, window.range, step, window.range % step)
        return [Release(0, self._ticks, self._by, self._time, *ends)]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """A promise on a window's edge needs the mark past all earlier windows."""
        if attribute not in (START, END):
            return []
        slide, range_ = self._window.slide, self._window.range
        first = mark if attribute == START else mark - range_
        first = -(-first // slide) * slide  # windows start on the grid
        later = self._flush.within_windows * slide if self._leaving is not None else 0
        return [Request(0, self._time, first - slide + range_ + later)]

    def marks(self) -> dict[str, int]:
        """The input's mark."""
        return {self._time: self._mark}

    def settle(self) -> None:
        """Fold partials."""
        self._state.settle()

    def snapshot(self) -> dict[str, Any]:
        """The mark, the first open window, what was told and what is leaving."""
        return super().snapshot() | {
            "mark": self._mark,
            "open_from": self._open_from,
            "told": self._told,
            "state": self._state.snapshot(),
            "leaving": self._leaving.snapshot() if self._leaving is not None else None,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._mark, self._open_from = saved["mark"], saved["open_from"]
        self._told = saved["told"]
        self._state.restore(saved["state"])
        if self._leaving is not None:
            self._leaving.restore(saved["leaving"])


class HighAggregate(WindowAggregate):
    """The high level of two-level aggregation: what comes in are partials by pane."""

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Take partials in."""
        self.on_partials(chunk)
        return []

    def releases(self) -> Sequence[Release]:
        """A partial is released by the end of any window its pane is in."""
        return [replace(each, ticks=pl.col(PANE)) for each in super().releases()]
