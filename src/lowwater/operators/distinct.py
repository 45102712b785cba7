"""Duplicate elimination (OOP §5.4): the first row of each key passes.

The key includes a progressing attribute, so a key below a promise cannot come again and is dropped.
Promises pass through as received. A promise on other progressing attributes of the key, or a joint
one (OOP §7), drops keys too, but only when it has moved by a slice, because all keys have to be
looked at.

Invariant: a key is held from its first row on, as long as another row with it can come, and at most
until the mark, or that of its group, passes its time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.group_rows import take_promised_rows
from lowwater.operators.kernel import Kernel, Request
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split, take
from lowwater.stream.element import BEGINNING, Chunk, Element, GroupPunctuation, Punctuation
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import TimeDomain

SEEN = "seen"


class Distinct(Kernel):
    """Passes one row for each distinct key.

    ``key`` are the columns; ``time`` is the progressing one that slices follow, ``slice_ticks``
    wide at first; ``progressing`` are all progressing columns of the key.
    """

    rule: ClassVar[str] = "promises pass through; keys below the mark are dropped"

    def __init__(
        self,
        store: ChunkStore,
        key: Sequence[str],
        time: str,
        domain: TimeDomain,
        slice_ticks: int,
        progressing: Mapping[str, TimeDomain] | None = None,
    ):
        super().__init__(store)
        self._domains = dict(progressing or {time: domain})
        self._swept: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._key, self._time, self._domain = list(key), time, domain
        self._slicing = Slicing(slice_ticks)
        self._ticks = domain.to_ticks(pl.col(time))
        self._mark = BEGINNING

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Return the rows whose key is new."""
        fresh: list[Element] = []
        once = chunk.unique(subset=self._key, keep="first", maintain_order=True)
        times = self._domain.array_of(once[self._time])
        if self._slicing.observe(once.height, int(times.min()), int(times.max())):
            reslice(self.store, SEEN, self._ticks // self._slicing.width)
        for slice_, rows in split(once, self._ticks // self._slicing.width):
            seen = read(self.store, SEEN, slice_, slice_ + 1)
            new = rows
            if seen is not None:
                new = rows.join(
                    seen, on=self._key, how="anti", nulls_equal=True, maintain_order="left"
                )
            if new.height:
                add(self.store, SEEN, slice_, new.select(self._key))
                fresh.append(new)
        return fresh

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop the keys that the promise covers, and pass it on."""
        if promise.attributes == (self._time,):
            self._drop(promise.values[0])
        elif set(promise.attributes) <= set(self._domains):
            self._sweep(promise)
        return [promise]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Drop the keys of groups below their marks, and pass the promise on."""
        if promise.attribute == self._time and set(promise.keys) <= set(self._key):
            width = self._slicing.width
            take_promised_rows(self.store, SEEN, promise, self._ticks, width, self._mark)
        return [promise]

    def _drop(self, mark: int) -> None:
        if mark <= self._mark:
            return
        self._mark = mark
        take_below(self.store, SEEN, self._ticks, mark, self._slicing.width)

    def _sweep(self, promise: Punctuation) -> None:
        """Drop the keys that a promise covers, if it has moved by a slice since the last time."""
        width = self._slicing.width
        whole = tuple(mark // width for mark in promise.values)
        if whole == self._swept.get(promise.attributes):
            return
        self._swept[promise.attributes] = whole
        passed = [
            self._domains[name].to_ticks(pl.col(name)) < mark for name, mark in promise.bounds
        ]
        top = dict(promise.bounds).get(self._time)
        for slice_ in self.store.slices(SEEN, None, None if top is None else top // width + 1):
            seen = read(self.store, SEEN, slice_, slice_ + 1)
            assert seen is not None
            kept = seen.filter(~pl.all_horizontal(passed))
            if kept.height < seen.height:
                take(self.store, SEEN, slice_, slice_ + 1)
                if kept.height:
                    self.store.put(SEEN, slice_, kept)

    def close_port(self, port: int) -> Sequence[Element]:
        """Drop everything."""
        take(self.store, SEEN)
        return []

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the same promise of the input."""
        return [Request.any_of(0, bounds)]

    def forget(self, floor: Floor) -> None:
        """Drop the keys below the floor."""
        super().forget(floor)
        if self._time in floor:
            least = floor[self._time]
            take_below(self.store, SEEN, self._ticks, least, self._slicing.width)

    def floors(self) -> Sequence[Floor]:
        """Return the floor of the columns of the key, which all rows of a key share."""
        return [{name: ticks for name, ticks in self.floor.items() if name in self._key}]

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """Return the mark, the slices of the last sweep, and the width of a slice."""
        return super().snapshot() | {
            "mark": self._mark,
            "swept": dict(self._swept),
            "slicing": self._slicing.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark, self._swept = saved["mark"], dict(saved["swept"])
        self._slicing.restore(saved["slicing"])
