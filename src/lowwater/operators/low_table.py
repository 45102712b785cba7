"""The low level of two-level aggregation (OOP §6): a table of fixed size in front of the windows.

Each pane and group has one slot, by hash. A partial whose slot is taken by another pane or group
pushes that one up to the window aggregate, which merges partials. So the table never grows, and
most rows go no further. When a pane is complete its partials are *old* and must leave: at once, one
with every so many rows (slow), or when newer ones need their slots (lazy), but none later than a
stated number of windows. Partials leave in any order: the promise to the level above waits until
the last old partial has left.

In order (the baseline), no partial may leave before an older one. One collision between two new
partials then forces all old ones out at once.

Invariant: a slot holds at most one partial; a row is in exactly one partial, here or above; no
partial below a promised mark leaves any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.operators.aggregates import lift, merge
from lowwater.operators.flush import Flush, Slow
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.waiting import Release
from lowwater.operators.window_state import PANE, WindowGrouping
from lowwater.state.store import ChunkStore, add, read, take
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
from lowwater.stream.floor import Floor

ENTRIES, SLOT = "entries", "__slot"
SEED = 21
"""Seed of the hash, so that slots do not depend on how rows are spread over buckets."""
WASTE = 2
"""Stored entries are compacted when they are this many times those in the table."""

Positions = NDArray[np.int64]


class LowTable(Kernel):
    """Pre-aggregates rows by pane and group in a table of ``size`` slots.

    ``flush`` is the policy by which old partials leave; with ``in_order`` they leave in the order
    of panes.
    """

    rule: ClassVar[str] = "the mark, but not past a pane of which a partial is still in the table"

    def __init__(
        self,
        store: ChunkStore,
        grouping: WindowGrouping,
        size: int,
        flush: Flush,
        in_order: bool = False,
    ):
        super().__init__(store)
        self._grouping, self._time, self._window = grouping, grouping.time, grouping.window
        self._groups, self._aggregates = list(grouping.groups), grouping.aggregates
        self._size = size
        self._keys = [PANE, *self._groups]
        self._columns = [grouping.pane, *map(pl.col, self._groups)]
        self._flush, self._in_order = flush, in_order
        self._bound = flush.bound(grouping.domain, self._window.slide)
        self._mark = self._promised = BEGINNING
        self._rows = 0  # rows since the last old partial that left for rows
        self._next = 0  # the slot at which slow flushing goes on
        self._clear()

    def _clear(self) -> None:
        self._at: Positions = np.full(self._size, -1, dtype=np.int64)  # slot to entry
        self._pane: Positions = np.full(self._size, END_OF_TIME, dtype=np.int64)  # of the entry
        self._added = 0
        self._old = 0  # number of old entries
        self._live = 0

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Put rows into their slots, and return the partials that they push out."""
        chunk = self._grouping.in_windows(chunk)
        if not chunk.height:
            return []
        came = merge(lift(chunk, self._columns, self._aggregates), self._keys, self._aggregates)
        came = self._in_slots(came)
        touched = np.unique(came[SLOT].to_numpy())
        there = self._at[touched]
        met = self._entries(there[there >= 0])
        both = came if met is None else pl.concat([met, came])
        both = both.group_by([SLOT, *self._keys], maintain_order=True).agg(
            part for each in self._aggregates for part in each.merging(both)
        )
        stays = both.select(pl.col(SLOT).is_last_distinct()).to_series()
        up = both.filter(~stays)
        self._empty(touched)
        forced = self._forced(up)
        self._put(both.filter(stays))
        self._rows += chunk.height if self._old else 0
        return [*self._up([up, forced, self._slowly()]), *self._promise()]

    def _in_slots(self, partials: Chunk) -> Chunk:
        """Return partials with their slots, in an order that is the same in every run.

        The last partial of a slot stays in the table.
        """
        number = pl.struct(self._groups).hash(SEED)
        slot = (number % self._size).cast(pl.Int64).alias(SLOT)
        return partials.select(slot, pl.all()).sort(PANE, number)

    def _forced(self, up: Chunk) -> Chunk | None:
        """Remove and return all old partials, if they must leave before those in ``up``."""
        if not (self._in_order and self._old and up.height):
            return None
        if int(up[PANE].max()) < self._limit(self._mark):  # type: ignore[arg-type]
            return None
        return self._leave(np.flatnonzero(self._pane < self._limit(self._mark)))

    def _put(self, entries: Chunk) -> None:
        slots = entries[SLOT].to_numpy()
        panes = entries[PANE].to_numpy()
        self._at[slots] = np.arange(self._added, self._added + len(slots))
        self._pane[slots] = panes
        self._added += len(slots)
        self._live += len(slots)
        self._old += int((panes < self._limit(self._mark)).sum())
        add(self.store, ENTRIES, 0, entries)
        if self._added > WASTE * max(self._live, 1_024):
            self.settle()

    def _entries(self, at: Positions) -> Chunk | None:
        if not len(at):
            return None
        held = read(self.store, ENTRIES, 0, 1)
        assert held is not None
        return held[at]

    def _empty(self, slots: Positions) -> None:
        panes = self._pane[slots]
        self._live -= int((panes < END_OF_TIME).sum())
        self._old -= int((panes < self._limit(self._mark)).sum())
        self._at[slots] = -1
        self._pane[slots] = END_OF_TIME

    def _leave(self, slots: Positions) -> Chunk | None:
        """Remove and return the entries of some slots."""
        there = self._at[slots]
        found = self._entries(there[there >= 0])
        self._empty(slots)
        return found

    def _up(self, parts: Sequence[Chunk | None]) -> list[Element]:
        some = [part.drop(SLOT) for part in parts if part is not None and part.height]
        if not some:
            return []
        out = pl.concat(some)
        return [out.sort(PANE) if self._in_order else out]

    # ---- old partials ----------------------------------------------------------------------

    def _limit(self, mark: int) -> int:
        """Return the start of the first pane that is not complete."""
        return mark // self._window.pane * self._window.pane if mark > BEGINNING else BEGINNING

    def _slowly(self) -> Chunk | None:
        """Remove and return the old partials that leave for the rows that came."""
        if not self._old or not isinstance(self._flush, Slow):
            return None
        paid, self._rows = divmod(self._rows, self._flush.every)
        if not paid:
            return None
        ahead = np.flatnonzero(self._pane[self._next :] < self._limit(self._mark)) + self._next
        if len(ahead) < paid:  # go on at the first slot
            behind = np.flatnonzero(self._pane[: self._next] < self._limit(self._mark))
            ahead = np.concatenate([ahead, behind])
        chosen = ahead[:paid]
        self._next = int(chosen[-1]) + 1 if len(chosen) else 0
        return self._leave(chosen)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the old partials whose deadline has come, and the promise that follows."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        self._old = int((self._pane < self._limit(self._mark)).sum())
        late = self._limit(self._mark - self._bound)
        over = np.flatnonzero(self._pane < late) if self._old else np.empty(0, np.int64)
        return [*self._up([self._leave(over)]), *self._promise()]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the partials of complete panes of the groups, and the promise that follows."""
        keys = list(promise.keys)
        if promise.attribute != self._time or not set(keys) <= set(self._groups):
            return []
        slots = np.flatnonzero(self._at >= 0)
        held = self._entries(self._at[slots])
        gone = None
        if held is not None:
            marked = held.join(promise.marks, on=keys, how="left", nulls_equal=True)
            passed = marked[PANE] + self._window.pane <= marked[MARK].fill_null(BEGINNING)
            gone = self._leave(held.filter(passed)[SLOT].to_numpy()) if passed.any() else None
        pane, before = self._window.pane, self._promised
        if promise.before > self._mark:  # old partials of these groups have left
            before = max(before, self._limit(promise.before))
        marks = promise.marks.with_columns(kept_end(pl.col(MARK) // pane * pane))
        marks = marks.filter(pl.col(MARK) > before)
        promises = [GroupPunctuation(PANE, marks, before)] if marks.height else []
        return [*self._up([gone]), *promises]

    def _promise(self) -> list[Element]:
        if self._mark == BEGINNING:
            return []
        least = int(self._pane.min()) if self._old else END_OF_TIME
        mark = min(self._limit(self._mark), least)
        if mark <= self._promised:
            return []
        self._promised = mark
        return [Punctuation.linear(PANE, mark)]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return all partials that are left."""
        left = self._leave(np.flatnonzero(self._at >= 0))
        take(self.store, ENTRIES)
        self._clear()
        return self._up([left])

    # ---- requests and saving ---------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request the mark at which the oldest partial leaves, or else becomes old."""
        least = int(self._pane.min())
        if least == END_OF_TIME:
            return []
        window = self._window
        if least < self._limit(self._mark):
            return [Request(0, self._time, least + window.pane + self._bound)]
        return [Request(0, self._time, window.starts_covering(least)[0] + window.range)]

    def releases(self) -> Sequence[Release]:
        """Return the marks that release rows, here or above: the ends of their windows."""
        return self._grouping.releases()

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request a mark that is higher by the time for which old partials may stay."""
        if attribute != PANE:
            return []
        return [Request(0, self._time, mark + self._bound)]

    def floors(self) -> Sequence[Floor]:
        """Return the start of the first pane that is needed."""
        if PANE not in self.floor:
            return [{}]
        first, pane = self.floor[PANE], self._window.pane
        return [{self._time: first if first >= END_OF_TIME else -(-first // pane) * pane}]

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def settle(self) -> None:
        """Drop entries that are in no slot any more."""
        if self._live == self._added:
            return
        slots = np.flatnonzero(self._at >= 0)
        live = self._entries(self._at[slots])
        take(self.store, ENTRIES)
        self._added = len(slots)
        self._at[slots] = np.arange(self._added)
        if live is not None:
            self.store.put(ENTRIES, 0, live)

    def snapshot(self) -> dict[str, Any]:
        """Return the marks, and which entries are in the table."""
        alive = np.zeros(self._added, dtype=bool)
        alive[self._at[self._at >= 0]] = True
        return super().snapshot() | {
            "mark": self._mark,
            "promised": self._promised,
            "rows": self._rows,
            "next": self._next,
            "alive": (self._added, np.packbits(alive).tobytes()),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._clear()
        self._mark, self._promised = saved["mark"], saved["promised"]
        self._rows, self._next = saved["rows"], saved["next"]
        self._added, bits = saved["alive"]
        alive = np.unpackbits(np.frombuffer(bits, np.uint8), count=self._added).astype(bool)
        at = np.flatnonzero(alive)
        held = self._entries(at)
        if held is not None:
            slots, panes = held[SLOT].to_numpy(), held[PANE].to_numpy()
            self._at[slots], self._pane[slots] = at, panes
            self._live = len(at)
            self._old = int((panes < self._limit(self._mark)).sum())
