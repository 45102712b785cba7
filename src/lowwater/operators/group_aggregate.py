"""Aggregates grouped by progressing attributes (OOP §5.2, §7).

A group is complete when no row to come can fall into it: when a linear promise is above one of its
progressing values, or a joint promise is above all of them. By joint promises ``GROUP BY S0.ts,
S1.ts`` over a band join answers as soon as both inputs have passed the pair, instead of a whole
band later. Over joins of joins the promise is on the times of all inputs.

A promise on single groups, named by other key columns, covers the groups with these values.

Invariant: a group is answered once, by the first promise that covers it; then it is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.aggregates import Aggregate, finish, in_key_order, merge
from lowwater.operators.kernel import ALONE, Host, Reducer, Request
from lowwater.operators.partials import Partials
from lowwater.operators.waiting import Release
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    ENDED,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import TimeDomain


class GroupAggregate(Reducer):
    """Aggregates rows by a key of which some columns are progressing attributes.

    ``groups`` are all key columns, ``progressing`` those that progress. Slices of the state follow
    the first of these, ``slice_ticks`` wide at first. ``by`` has, for each attribute with promises
    on single groups, the columns that name a group.
    """

    rule: ClassVar[str] = "groups a promise covers are answered, then the promise passes on"

    def __init__(
        self,
        store: ChunkStore,
        groups: Sequence[str],
        progressing: Mapping[str, TimeDomain],
        aggregates: Sequence[Aggregate],
        slice_ticks: int,
        by: Mapping[str, Sequence[str]] | None = None,
        host: Host = ALONE,
    ):
        super().__init__(store, host=host)
        self._groups, self._aggregates = list(groups), list(aggregates)
        self._domains = dict(progressing)
        self._by = dict(by or {})
        self._first = next(iter(self._domains))
        self._slicing = Slicing(slice_ticks)
        self._partials = Partials(store, pl.col(self._first), self._groups, self._aggregates)
        self._least: dict[int, dict[str, int]] = {}  # least value of each attribute, by slice
        self._received: dict[tuple[str, ...], tuple[int, ...]] = {}  # bounds, by attributes

    def _ticks(self, attribute: str) -> pl.Expr:
        return self._domains[attribute].to_ticks(pl.col(attribute))

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Reduce rows by group, and keep the partials."""
        slice_ = self._slice_for(chunk)
        self._partials.put(chunk, slice_)
        self._note_all(chunk, slice_)
        return []

    def reduced(self, chunk: Chunk) -> Chunk:
        """Return rows as partials by group."""
        return self._partials.reduced(chunk)

    def on_partials(self, partials: Chunk) -> None:
        """Keep partials of groups."""
        if partials.height:
            slice_ = self._slice_for(partials)
            self._partials.put_partials(partials, slice_)
            self._note_all(partials, slice_)

    def _slice_for(self, chunk: Chunk) -> pl.Expr:
        times = self._domains[self._first].array_of(chunk[self._first])
        if self._slicing.observe(chunk.height, int(times.min()), int(times.max())):
            self._reslice()
        return self._ticks(self._first) // self._slicing.width

    def _note_all(self, rows: Chunk, slice_: pl.Expr) -> None:
        low = [self._ticks(name).min().alias(name) for name in self._domains]
        for number, *least in rows.group_by(slice_.alias("__slice")).agg(low).iter_rows():
            self._note(number, dict(zip(self._domains, least, strict=True)))

    def _reslice(self) -> None:
        slice_ = self._ticks(self._first) // self._slicing.width
        self._partials.regroup(slice_)
        self._least.clear()
        for _, held in self._partials.items():
            self._note_all(held, slice_)

    def _note(self, slice_: int, least: dict[str, int]) -> None:
        held = self._least.get(slice_, least)
        self._least[slice_] = {name: min(held[name], least[name]) for name in least}

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Return the answers of groups that the promise covers, then the promise."""
        if not set(promise.attributes) <= set(self._domains):
            return []
        if not promise.goes_beyond(self._received.get(promise.attributes)):
            return []
        self._received[promise.attributes] = promise.values
        return [*self._answer(promise), promise]

    def _answer(self, promise: Punctuation) -> list[Element]:
        covered = reduce(and_, (self._ticks(name) < mark for name, mark in promise.bounds))
        done: list[Chunk] = []
        for slice_ in self._partials.slices():
            least = self._least[slice_]
            if any(least[name] >= mark for name, mark in promise.bounds):
                continue
            held = self._partials.get(slice_)
            assert held is not None
            del self._least[slice_]
            rest = held.filter(~covered)
            self._partials.replace(slice_, rest)
            if rest.height:
                self._note_all(rest, self._ticks(self._first) // self._slicing.width)
            done.append(held.filter(covered))
        rows = [chunk for chunk in done if chunk.height]
        return [self._finish(pl.concat(rows))] if rows else []

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Return the answers of groups that the promise covers, then the promise.

        A report that update keys have ended comes after the promise that covers them.
        """
        attribute, keys = promise.attribute, list(promise.keys)
        if attribute == ENDED:
            return [promise]
        if attribute not in self._domains or not set(keys) <= set(self._groups):
            return []
        first = None
        if attribute == self._first and promise.before > BEGINNING:
            first = promise.before // self._slicing.width
        furthest = int(promise.marks[MARK].max())  # type: ignore[arg-type]
        covered = (self._ticks(attribute) < pl.col(MARK)).fill_null(False)
        near = [
            held
            for slice_ in self._partials.slices(first)
            if self._least[slice_][attribute] < furthest
            and (held := self._partials.get(slice_)) is not None
        ]
        if not near:
            return [promise]
        marked = (
            pl.concat(near)
            .join(promise.marks, on=keys, how="inner", nulls_equal=True)
            .filter(covered)
        )
        done = marked.drop(MARK)
        if not done.height:
            return [promise]
        slice_of = self._ticks(self._first) // self._slicing.width
        for slice_ in done.select(slice_of.unique()).to_series().to_list():
            held = self._partials.get(slice_)
            assert held is not None
            left = held.join(
                promise.marks, on=keys, how="left", nulls_equal=True, maintain_order="left"
            )
            rest = left.filter(~covered).drop(MARK)
            del self._least[slice_]
            self._partials.replace(slice_, rest)
            if rest.height:
                self._note_all(rest, slice_of)
        return [self._finish(done), promise]

    def _finish(self, partials: Chunk) -> Chunk:
        merged = merge(partials, self._groups, self._aggregates)
        return merged if self.host.in_part else self._finished(merged)

    def finished(self, parts: Chunk) -> Chunk:
        """Return the answers of groups from the partial answers of all copies."""
        return self._finished(merge(parts, self._groups, self._aggregates))

    def _finished(self, merged: Chunk) -> Chunk:
        merged = in_key_order(merged, self._groups)
        return finish(merged, [pl.col(name) for name in self._groups], self._aggregates)

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the answers of everything that is left."""
        self._least.clear()
        held = [self._partials.take(slice_) for slice_ in self._partials.slices()]
        return [self._finish(chunk) for chunk in held if chunk is not None]

    def requests(self) -> Sequence[Request]:
        """Request a joint promise just above the values of the earliest group."""
        if not self._least:
            return []
        slice_ = min(self._least, key=lambda each: self._least[each][self._first])
        if len(self._domains) == 1:
            return [Request(0, self._first, self._least[slice_][self._first] + 1)]
        held = self._partials.get(slice_)
        assert held is not None
        values = held.select(self._ticks(name) for name in self._domains)
        earliest = values.sort(list(self._domains)).row(0)
        bounds = [(n, value + 1) for n, value in zip(self._domains, earliest, strict=True)]
        return [Request.any_of(0, bounds)]

    def releases(self) -> Sequence[Release]:
        """Return the marks that release groups: just above any of their values."""
        return [
            Release(0, self._ticks(attribute), tuple(keys), attribute, 1, 1)
            for attribute, keys in self._by.items()
        ]

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the same of the input."""
        return [Request.any_of(0, bounds)]

    def forget(self, floor: Floor) -> None:
        """Drop the groups below the floor."""
        super().forget(floor)
        below = [(name, ticks) for name, ticks in self.floors()[0].items() if name in self._domains]
        for slice_ in self._partials.slices() if below else ():
            if all(self._least[slice_][name] >= ticks for name, ticks in below):
                continue
            held = self._partials.get(slice_)
            assert held is not None
            del self._least[slice_]
            rest = held.filter(self._ticks(name) >= ticks for name, ticks in below)
            self._partials.replace(slice_, rest)
            if rest.height:
                self._note_all(rest, self._ticks(self._first) // self._slicing.width)

    def floors(self) -> Sequence[Floor]:
        """Return the floor of the columns by which rows are grouped."""
        return [{name: ticks for name, ticks in self.floor.items() if name in self._groups}]

    def marks(self) -> dict[str, int]:
        """Return the linear marks received."""
        return {names[0]: values[0] for names, values in self._received.items() if len(names) == 1}

    @property
    def held(self) -> tuple[int, int]:
        """The bytes of the indexes by which partials are found; no rows."""
        return 0, self._partials.index_bytes

    def settle(self) -> None:
        """Merge partials of many values, before an engine saves the state."""
        self._partials.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the promises received, and the least values of each slice."""
        return super().snapshot() | {
            "heard": dict(self._received),
            "least": dict(self._least),
            "slicing": self._slicing.snapshot(),
            "partials": self._partials.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._received = dict(saved["heard"])
        self._least = dict(saved["least"])
        self._slicing.restore(saved["slicing"])
        self._partials.restore(saved["partials"])
