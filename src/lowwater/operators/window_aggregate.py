"""Window aggregate (WID, OOP §5.2 and A.2.2), by time or by row number.

A row is reduced once, and held until a promise shows that its windows are complete. Then they are
answered, at once or gradually (OOP §6). A row-count window is a window on row numbers, which the
source gives to rows before any operator can reorder or drop them.

Invariant: a window is closed when the mark reaches its end; each of its answers leaves exactly
once; its edges are promised when the last one has left. Rows that no unanswered window needs are
dropped. A window with no row has no answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.aggregates import finish, in_key_order, merge
from lowwater.operators.flush import Flush, Immediate, PendingAnswers, slots_of
from lowwater.operators.kernel import ALONE, Host, Reducer, Request
from lowwater.operators.waiting import Release
from lowwater.operators.window_state import PANE, START, Form, WindowGrouping, WindowState
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
    kept_end,
    moved,
)
from lowwater.stream.floor import Floor

END = "window_end"
IMMEDIATE = Immediate()


class WindowAggregate(Reducer):
    """Aggregates rows by window and group.

    ``flush`` is the policy for answers, ``keep`` the form of the state (None to choose it).
    """

    rule: ClassVar[str] = (
        "windows ending at or before the mark are answered, then both their edges are promised"
    )

    def __init__(
        self,
        store: ChunkStore,
        grouping: WindowGrouping,
        flush: Flush = IMMEDIATE,
        keep: Form | None = None,
        host: Host = ALONE,
    ):
        super().__init__(store, host=host)
        self._grouping, self._window = grouping, grouping.window
        self._time, self._domain = grouping.time, grouping.domain
        self._groups, self._aggregates = list(grouping.groups), grouping.aggregates
        self._state = WindowState(store, grouping, keep)
        self._bound, self._pending = flush.bound(self._domain, self._window.slide), None
        if self._groups and not isinstance(flush, Immediate):
            self._pending = PendingAnswers(self._window, flush, self._bound)
        self._open_from = self._window.first_open(BEGINNING)  # windows before this are closed
        self._mark = BEGINNING
        self._promised = self._open_from  # windows before this have answered
        self._first_needed = BEGINNING  # windows that start before this are not needed

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Keep rows, and return the answers of closed windows that leave because of them."""
        self._state.put(chunk)
        self._count(chunk)
        return self._gradually() if self._pending is not None else []

    def reduced(self, chunk: Chunk) -> Chunk:
        """Return rows as partials by pane and group."""
        return self._state.reduced(chunk)

    def on_partials(self, partials: Chunk) -> None:
        """Keep partials of panes, but not of those that only windows not needed cover."""
        if self._first_needed > BEGINNING:
            partials = partials.filter(pl.col(PANE) >= self._first_needed)
        self._state.put_partials(partials)
        self._count(partials)

    def _count(self, chunk: Chunk) -> None:
        if self._pending is not None and self._pending.windows:
            slots = slots_of(chunk, self._groups) if self._pending.needs_slots else None
            self._pending.add_rows(chunk.height, slots)

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the answers of windows that are complete, and the promises that follow."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        first_open = self._window.first_open(self._mark)
        if self._pending is not None:
            if first_open > self._open_from:
                self._pending.close(self._state.starts(self._open_from, first_open))
                self._open_from = first_open
            return self._gradually()
        if first_open <= self._open_from:
            return []
        answers = self._answer(self._open_from, first_open)
        self._open_from = first_open
        self._state.release(first_open)
        return [*answers, *self._promise(first_open)]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the answers of everything that is left."""
        self._mark = END_OF_TIME
        answers = self._gradually() if self._pending is not None else []
        last = self._window.first_open(END_OF_TIME)
        answers = [*answers, *self._answer(self._open_from, last)]
        self._open_from = last
        self._state.release(last)
        return answers

    def _answer(self, first: int, until: int) -> list[Element]:
        """Return the answers of windows that start from ``first`` to before ``until``."""
        first = max(first, self._first_needed)
        partials = self._state.between(first, until) if first < until else None
        if partials is None:
            return []
        return self._answered(partials, self._state.is_single(first, until))

    def _answered(self, partials: Chunk, single: bool = False) -> list[Element]:
        """Return the answers of windows from partials by window start.

        ``single`` states that there is one for each window and group.
        """
        merged = partials
        if not single:
            merged = merge(partials, [START, *self._groups], self._aggregates)
        if self._state.choice.measures:
            size = int(merged.estimated_size())
            self._state.choice.add_answers(partials.height, merged.height, size)
        return [merged if self.host.in_part else self._finished(merged)]

    def finished(self, parts: Chunk) -> Chunk:
        """Return the answers of windows from the partial answers of all copies."""
        return self._finished(merge(parts, [START, *self._groups], self._aggregates))

    def _finished(self, merged: Chunk) -> Chunk:
        merged = in_key_order(merged, [START, *self._groups])
        begin = self._domain.from_ticks(pl.col(START)).alias(START)
        end = self._domain.from_ticks(pl.col(START) + self._window.range).alias(END)
        keys = [begin, end, *(pl.col(name) for name in self._groups)]
        return finish(merged, keys, self._aggregates)

    def _promise(self, first: int) -> list[Element]:
        """Return the promises on edges; all windows that start before ``first`` have answered."""
        if first <= self._promised:
            return []
        self._promised = first
        return [
            Punctuation.linear(START, first),
            Punctuation.linear(END, first + self._window.range),
        ]

    # ---- answers that leave gradually ------------------------------------------------------

    def _gradually(self) -> list[Element]:
        """Return the answers of closed windows that leave now, and the promises that follow."""
        pending = self._pending
        assert pending is not None
        out: list[Element] = []
        for start in pending.windows:
            out += self._piece(pending, start)
        pending.drop_finished()
        first = min([*pending.windows, self._open_from])
        if first > self._promised:
            self._state.release(first)
        return [*out, *self._promise(first)]

    def _piece(self, pending: PendingAnswers, start: int) -> list[Element]:
        held = self._state.held(start) if start >= self._first_needed else 0
        due = pending.take_due(start, self._mark, held, not self.host.in_part)
        if due is None or start < self._first_needed:
            return []
        partials = self._state.between(start, start + self._window.slide)
        if partials is None:
            return []
        if not due.all():
            partials = partials.filter(pl.Series(due[slots_of(partials, self._groups)]))
        return self._answered(partials) if partials.height else []

    # ---- progress per group ----------------------------------------------------------------

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the answers of windows of the groups, and the promises on them that follow."""
        keys = list(promise.keys)
        if promise.attribute != self._time or not set(keys) <= set(self._groups):
            return []
        before = self._promised  # windows before this have answered
        if promise.before > self._mark:  # so have these groups, up to their own marks
            before = max(before, self._window.first_open(promise.before))
        first = max(before, self._first_needed)
        partials = self._state.take_passed(promise.marks, keys, first)
        if partials is not None and self._pending is not None:
            partials = self._not_left(self._pending, partials)
        answers = self._answered(partials) if partials is not None and partials.height else []
        return [*answers, *self._promise_groups(promise.marks, before)]

    def _not_left(self, pending: PendingAnswers, partials: Chunk) -> Chunk:
        """Return the partials of windows that have not answered for their group yet."""
        starts = partials[START].to_numpy()
        waits = starts >= self._open_from
        if not waits.all():
            waits |= pending.waiting(starts, slots_of(partials, self._groups))
        return partials.filter(pl.Series(waits))

    def _promise_groups(self, marks: Chunk, before: int) -> list[Element]:
        """Return the promises on the edges of groups' windows, up to their first open ones."""
        range_, slide = self._window.range, self._window.slide
        first = ((pl.col(MARK) - range_) // slide + 1) * slide
        starts = marks.with_columns(kept_end(first)).filter(pl.col(MARK) > before)
        if not starts.height:
            return []
        ends = starts.with_columns(kept_end(pl.col(MARK) + range_))
        return [
            GroupPunctuation(START, starts, before),
            GroupPunctuation(END, ends, before + range_),
        ]

    # ---- requests and saving ---------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request the deadline of pending answers, or else the end of the earliest open window."""
        if self._pending is not None and self._pending.windows:
            return [Request(0, self._time, self._pending.deadline(self._pending.windows[0]))]
        start = self._state.earliest(max(self._open_from, self._first_needed))
        return [] if start is None else [Request(0, self._time, start + self._window.range)]

    def releases(self) -> Sequence[Release]:
        """Return the marks that release rows: the ends of the windows they are in."""
        return self._grouping.releases()

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark at which all windows before an edge have answered."""
        if attribute not in (START, END):
            return []
        slide, range_ = self._window.slide, self._window.range
        first = mark if attribute == START else mark - range_
        first = -(-first // slide) * slide  # windows start on the grid
        later = self._bound if self._pending is not None else 0
        return [Request(0, self._time, first - slide + range_ + later)]

    def forget(self, floor: Floor) -> None:
        """Drop what only windows below the floor need; they are not answered any more."""
        super().forget(floor)
        first = self._first_start(floor)
        if first > self._first_needed:
            self._first_needed = first
            self._state.release(first)

    def _first_start(self, floor: Floor) -> int:
        """Return the start of the first window that is needed; BEGINNING if all are."""
        window = self._window
        starts = [floor[START]] if START in floor else []
        starts += [moved(floor[END], -window.range)] if END in floor else []
        first = max(starts, default=BEGINNING)
        return (
            first if first in (BEGINNING, END_OF_TIME) else -(-first // window.slide) * window.slide
        )

    def floors(self) -> Sequence[Floor]:
        """Return the start of the first window that is needed: no row before it is in one."""
        return [{} if self._first_needed == BEGINNING else {self._time: self._first_needed}]

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    @property
    def held(self) -> tuple[int, int]:
        """The bytes of the indexes by which partials are found; no rows."""
        return 0, self._state.index_bytes

    def settle(self) -> None:
        """Merge partials of many values, before an engine saves the state."""
        self._state.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the mark, the first open window, the last promise and the pending answers."""
        return super().snapshot() | {
            "mark": self._mark,
            "open_from": self._open_from,
            "promised": self._promised,
            "state": self._state.snapshot(),
            "leaving": self._pending.snapshot() if self._pending is not None else None,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark, self._open_from = saved["mark"], saved["open_from"]
        self._promised = saved["promised"]
        self._state.restore(saved["state"])
        if self._pending is not None:
            self._pending.restore(saved["leaving"])


class HighAggregate(WindowAggregate):
    """The high level of two-level aggregation: its input is partials by pane."""

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Keep partials."""
        self.on_partials(chunk)
        return []

    def releases(self) -> Sequence[Release]:
        """Return the marks that release partials: the ends of the windows their panes are in."""
        return [replace(each, ticks=pl.col(PANE)) for each in super().releases()]
