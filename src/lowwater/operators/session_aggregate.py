"""Session aggregate: a session lasts as long as rows of its group keep coming.

Two rows of a group are in one session if a chain of rows leads from one to the other in which no
two neighbours are ``gap`` or more apart. A session reaches from its first row to ``gap`` after its
last one. No order is needed: partial sessions that touch are merged when a promise comes.

Progress: a promise of ``m`` completes the sessions whose last row is ``gap`` or more before ``m``.
Then the ends of sessions are promised up to ``m``, and their starts up to the earliest session that
is still open. A promise on a group completes sessions of this group, and leads to promises on it.

The answers of complete sessions may leave slowly (OOP §6), in the order of their last rows. Ends
are then promised up to the first that has not left. A promise on a group is not slowed down.

Invariant: merged sessions of one group are at least a gap apart; a session is answered once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.aggregates import Aggregate, finish, in_key_order, lift
from lowwater.operators.flush import Slow
from lowwater.operators.gradual import GradualRelease
from lowwater.operators.group_rows import take_group_rows
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.waiting import Release
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.state.group_table import GroupTable
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split, take
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
    kept_end,
)
from lowwater.stream.time_domain import TimeDomain

FRESH, MERGED = "fresh", "merged"
FIRST, LAST, NUMBER = "__first", "__last", "__session"


class SessionAggregate(Kernel):
    """Aggregates rows by session and group.

    ``gap`` is in ticks. ``by`` are the columns that name a group with promises of its own; empty if
    there are none. ``flush`` is the pace of answers; None if they leave at once.
    """

    rule: ClassVar[str] = (
        "sessions whose last row is a gap before the mark are answered; ends are promised up to"
        " the mark, starts up to the earliest open session"
    )

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        gap: int,
        groups: Sequence[str],
        aggregates: Sequence[Aggregate],
        by: Sequence[str] = (),
        flush: Slow | None = None,
    ):
        super().__init__(store)
        self._time, self._domain, self._gap = time, domain, gap
        self._by = tuple(by)
        self._groups, self._aggregates = list(groups), list(aggregates)
        self._slicing = Slicing(gap)
        self._mark = BEGINNING
        self._emitted: dict[str, int] = {}  # marks in the last promises
        self._starts = GroupTable({START: BEGINNING}, store)  # marks in the last promises on groups
        self._slowly = None
        if flush is not None:
            self._slowly = GradualRelease(
                store, MERGED, pl.col(LAST), self._slicing, flush, flush.bound(domain, gap)
            )

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Keep rows as partial sessions."""
        ticks = self._domain.to_ticks(pl.col(self._time))
        columns = [ticks.alias(FIRST), ticks.alias(LAST), *map(pl.col, self._groups)]
        partials = self._joined(lift(chunk, columns, self._aggregates))
        times = partials[LAST]
        if self._slicing.observe(partials.height, int(times.min()), int(times.max())):  # type: ignore[arg-type]
            for name in (FRESH, MERGED):
                reslice(self.store, name, pl.col(LAST) // self._slicing.width)
        self._keep(FRESH, partials)
        if self._slowly is None or not self._slowly.pending:
            return []
        self._slowly.add_rows(chunk.height)
        left = self._leave()
        return [*left, *self._promise()] if left else []

    def _keep(self, name: str, partials: Chunk) -> None:
        for slice_, part in split(partials, pl.col(LAST) // self._slicing.width):
            add(self.store, name, slice_, part)

    def _joined(self, partials: Chunk) -> Chunk:
        """Merge the partial sessions of each group that are less than a gap apart."""
        partials = partials.sort(FIRST)
        reached = pl.col(LAST).cum_max().shift(1)
        begins = (pl.col(FIRST) - reached >= self._gap).fill_null(True)
        number = begins.cast(pl.Int64).cum_sum()
        number = number.over(self._groups) if self._groups else number
        parts = [part for each in self._aggregates for part in each.merging(partials)]
        ends = [pl.col(FIRST).min(), pl.col(LAST).max()]
        keys = [*self._groups, NUMBER]
        merged = partials.with_columns(number.alias(NUMBER)).group_by(keys).agg(*ends, *parts)
        return merged.select(partials.columns)

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the answers of sessions that are complete, and the promises that follow."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        self._merge()
        answers = self._answer(self._mark - self._gap)
        return [*answers, *self._promise()]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the answers of everything that is left."""
        self._mark = END_OF_TIME
        self._merge()
        self._starts.clear()
        return self._answer(END_OF_TIME)

    def settle(self) -> None:
        """Merge new partial sessions, and write the marks of groups to the store."""
        self._merge()
        self._starts.settle()

    def _merge(self) -> None:
        """Merge new partial sessions with those they touch."""
        fresh = take(self.store, FRESH)
        if fresh is None:
            return
        first = (int(fresh[FIRST].min()) - self._gap) // self._slicing.width  # type: ignore[arg-type]
        near = self._near(fresh, first) if self._groups else take(self.store, MERGED, first, None)
        self._keep(MERGED, self._joined(fresh if near is None else pl.concat([near, fresh])))

    def _near(self, fresh: Chunk, first: int) -> Chunk | None:
        """Remove and return the sessions of the groups in ``fresh``, from a slice on."""
        held = read(self.store, MERGED, first, None)
        if held is None:
            return None
        keys = fresh.select(self._groups).unique()
        near = held.join(keys, on=self._groups, how="semi", nulls_equal=True)
        slice_ = pl.col(LAST) // self._slicing.width
        for number in near.select(slice_.unique()).to_series().to_list():
            rows = take(self.store, MERGED, number, number + 1)
            assert rows is not None
            rest = rows.join(keys, on=self._groups, how="anti", nulls_equal=True)
            if rest.height:
                self.store.put(MERGED, number, rest)
        return near

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the answers of sessions that are complete, and the promises that follow."""
        usable = promise.attribute == self._time and set(promise.keys) <= set(self._groups)
        if not usable:
            return []
        self._merge()
        passed = promise.marks.with_columns(kept_end(pl.col(MARK) - (self._gap - 1)))
        low = max(promise.before, self._mark)
        low = low if low == BEGINNING else low - self._gap
        if self._slowly is not None:
            low = min(low, self._slowly.left)
        width = self._slicing.width
        done = take_group_rows(self.store, MERGED, passed, pl.col(LAST), width, low)
        answers = [] if done is None else [self._finished(done)]
        before = promise.before
        if self._slowly is not None and before <= self._mark:  # ends may have stayed below the mark
            before = min(before, self._emitted.get(END, BEGINNING))
        ends = GroupPunctuation(END, promise.marks, before)
        return [*answers, *self._promise_starts(promise.marks), ends]

    def _promise_starts(self, marks: Chunk) -> list[Element]:
        """Return the promise on the starts of sessions of some groups, if it is new.

        It reaches to the start of a group's earliest open session, or to its mark if none is open.
        """
        keys = [name for name in marks.columns if name != MARK]
        low = int(marks[MARK].min()) - self._gap  # type: ignore[arg-type]
        held = read(self.store, MERGED, low // self._slicing.width, None)
        if held is not None:
            least = held.join(marks, on=keys, how="semi").group_by(keys).agg(pl.col(FIRST).min())
            marks = marks.join(least, on=keys, how="left", maintain_order="left")
            marks = marks.with_columns(pl.min_horizontal(MARK, FIRST).alias(MARK)).drop(FIRST)
        places = self._starts.admit(marks.select(keys))
        before = np.maximum(self._starts.get(START, places), self._emitted.get(START, BEGINNING))
        starts = marks[MARK].to_numpy()
        moved = starts > before
        if not moved.any():
            return []
        self._starts.put(START, places[moved], starts[moved])
        promise = GroupPunctuation(START, marks.filter(pl.Series(moved)), int(before[moved].min()))
        self._starts.remove(promise.over)
        return [promise]

    def _answer(self, last: int) -> list[Element]:
        """Remove the sessions whose last row is at or before a tick, and return the answers that
        leave now."""
        if self._slowly is not None:
            self._slowly.free(self._mark, last + 1)
            return self._leave()
        done = take_below(self.store, MERGED, pl.col(LAST), last + 1, self._slicing.width)
        return [self._finished(done)] if done is not None and done.height else []

    def _leave(self) -> list[Element]:
        """Return the answers of complete sessions that leave now, slowly."""
        assert self._slowly is not None
        done = self._slowly.take()
        return [self._finished(done)] if done is not None and done.height else []

    def _finished(self, sessions: Chunk) -> Chunk:
        sessions = in_key_order(sessions, [FIRST, *self._groups])
        begin = self._domain.from_ticks(pl.col(FIRST)).alias(START)
        end = self._domain.from_ticks(pl.col(LAST) + self._gap).alias(END)
        return finish(sessions, [begin, end, *map(pl.col, self._groups)], self._aggregates)

    def _promise(self) -> list[Element]:
        promises: list[Element] = []
        open_ = read(self.store, MERGED)
        least = int(open_[FIRST].min()) if open_ is not None else self._mark  # type: ignore[arg-type]
        ended = self._mark
        if self._slowly is not None and self._slowly.pending:
            ended = min(ended, self._slowly.left + self._gap)
        for name, mark in ((START, min(least, self._mark)), (END, ended)):
            if mark > self._emitted.get(name, BEGINNING):
                self._emitted[name] = mark
                promises.append(Punctuation.linear(name, mark))
        return promises

    # ---- requests and saving ---------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request the mark that completes the session with the earliest last row, or by which it
        must have left."""
        if self._slowly is not None and self._slowly.pending:
            return [Request(0, self._time, self._slowly.deadline)]
        for name in (MERGED, FRESH):
            slices = self.store.slices(name)
            if slices:
                held = read(self.store, name, slices[0], slices[0] + 1)
                assert held is not None
                least = int(held[LAST].min())  # type: ignore[arg-type]
                return [Request(0, self._time, least + self._gap)]
        return []

    def releases(self) -> Sequence[Release]:
        """Return the marks that release sessions: a gap after their last rows."""
        if not self._by:
            return []
        ticks = self._domain.to_ticks(pl.col(self._time))
        return [Release(0, ticks, self._by, self._time, self._gap, self._gap, chained=True)]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark of the input that a promise on either edge needs."""
        later = self._slowly.bound if self._slowly is not None else 0
        return [Request(0, self._time, mark + later)] if attribute in (START, END) else []

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """Return the mark, the last promises, and the width of a slice."""
        return super().snapshot() | {
            "mark": self._mark,
            "emitted": dict(self._emitted),
            "starts": self._starts.snapshot(),
            "slicing": self._slicing.snapshot(),
            "slowly": self._slowly.snapshot() if self._slowly is not None else None,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark, self._emitted = saved["mark"], dict(saved["emitted"])
        self._starts.restore(saved["starts"])
        self._slicing.restore(saved["slicing"])
        if self._slowly is not None:
            self._slowly.restore(saved["slowly"])
