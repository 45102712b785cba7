"""Which results a join has lost: counted exactly for recent keys, for a sample of older ones.

A *key* is what rows are joined on. Of each key in the sample, the rows of every input are counted,
also rows that were dropped since. When a row is joined, or is given up without having been joined,
it should make as many results as there are combinations of rows of the other inputs counted so far.
The results it does not make are lost. So each result is counted once, with the last of its rows,
whatever it was lost by.

The sample is bounded. Keys are in it by their hash: all keys of the newest values, half of those
of the values below, a quarter of those below these, and so on. A row whose key is not in the sample
counts as the average sampled row of the same level, late rows and others apart.

Invariant: whether a key is in the sample follows from its hash and the edges between levels. Edges
only rise, so that a key that has left does not come back, and the counts of those inside are whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.joins.oblivious.records import Ticks

Keys = NDArray[np.uint64]
Flags = NDArray[np.bool_]

NEWEST = 2_048
"""Keys of the newest values of which all are counted; up to twice as many before they are cut."""
OLDER = 256
"""The same of each level below, where a part of the keys is counted."""
LEVELS = 40
"""Levels at most: on the last one, one key in 2 ** 39 is counted."""
SPREAD = 2.0
"""The margin told is so many standard deviations."""
TOTAL, SAMPLED, LOST = range(3)
FIGURES = 6


def hashes(values: NDArray[Any]) -> Keys:
    """Hashes of whole numbers, different for different numbers."""
    found = values.astype(np.uint64)
    found += np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = found ^ (found >> np.uint64(31))
    return mixed


class Losses:
    """Counts rows by key, and the results that rows should have made and did not."""

    def __init__(self, ports: int):
        self.copies = 1
        self.found = 0
        """Results found."""
        self.pairs = 0
        """Combinations of equal rows, of which those that pass the join's condition are results."""
        self._keys: Keys = np.empty(0, dtype=np.uint64)  # ascending
        self._ticks: Ticks = np.empty(0, dtype=np.int64)
        self._counts = np.empty((0, ports), dtype=np.int64)
        self._limit = 0  # keys, before levels are cut again
        self._edges: list[int] = []  # the least value of each level but the last; they fall
        self._rows = np.zeros((LEVELS, 2, FIGURES))
        # By level and whether rows were late: all rows, those in the sample, and of these the
        # results lost, and sums of squares and products by key.

    def __len__(self) -> int:
        return len(self._keys)

    def take(self, port: int, keys: Keys, ticks: Ticks, late: Flags, made: Keys) -> None:
        """Rows were joined, or given up; ``made`` are the keys of the combinations they made."""
        self.pairs += len(made)
        levels, inside = self._placed(keys, ticks)
        classes = levels * 2 + late
        table = self._rows.reshape(-1, FIGURES)
        table[:, TOTAL] += np.bincount(classes, minlength=len(table))
        if not inside.any():
            return
        keys, ticks, classes = keys[inside], ticks[inside], classes[inside]
        own, first, counts = np.unique(keys, return_index=True, return_counts=True)
        place, known = self._found(own)
        should = np.zeros(len(own), dtype=np.int64)
        others = np.delete(self._counts[place[known]], port, axis=1)
        should[known] = counts[known] * others.prod(axis=1)
        expected = np.flatnonzero(should)
        missing = np.zeros(len(own))
        if len(expected):
            ordered = np.sort(made)
            low, high = (np.searchsorted(ordered, own[expected], side) for side in _SIDES)
            missing[expected] = should[expected] - (high - low)
        classes = classes[first]  # rows of one key are of one value, and late together
        nothing, squares = np.zeros(len(own)), (missing**2, missing * counts, counts**2)
        np.add.at(table, classes, np.column_stack([nothing, counts, missing, *squares]))
        self._counts[place[known], port] += counts[known]
        if not known.all():
            self._add(port, own[~known], ticks[first][~known], counts[~known])

    def begin_again(self) -> None:
        """Rows still to come meet none of those that came; the figures stay."""
        none = np.zeros(len(self._keys), dtype=np.bool_)
        self._keys, self._ticks = self._keys[none], self._ticks[none]
        self._counts, self._edges, self._limit = self._counts[none], [], 0

    def put_back(self, port: int, keys: Keys, ticks: Ticks) -> None:
        """Rows that were taken, and had nothing to meet, will be taken again."""
        _, inside = self._placed(keys, ticks)
        own, counts = np.unique(keys[inside], return_counts=True)
        place, known = self._found(own)
        self._counts[place[known], port] -= counts[known]

    def _placed(self, keys: Keys, ticks: Ticks) -> tuple[Ticks, Flags]:
        """The level of each row, and whether its key is in the sample."""
        if not self._edges:
            return np.zeros(len(keys), dtype=np.int64), np.ones(len(keys), dtype=np.bool_)
        edges = np.array(self._edges[::-1])
        levels = len(edges) - np.searchsorted(edges, ticks, side="right")
        part = ~np.uint64(0) >> levels.astype(np.uint64)
        return levels, keys <= part

    def _found(self, keys: Keys) -> tuple[Ticks, Flags]:
        """Where keys are, or would be, and whether they are."""
        place = np.searchsorted(self._keys, keys)
        if not len(self._keys):
            return place, np.zeros(len(keys), dtype=np.bool_)
        known: Flags = self._keys[np.minimum(place, len(self._keys) - 1)] == keys
        return place, known

    def _add(self, port: int, keys: Keys, ticks: Ticks, counts: Ticks) -> None:
        place = np.searchsorted(self._keys, keys)
        rows = np.zeros((len(keys), self._counts.shape[1]), dtype=np.int64)
        rows[:, port] = counts
        self._keys = np.insert(self._keys, place, keys)
        self._ticks = np.insert(self._ticks, place, ticks)
        self._counts = np.insert(self._counts, place, rows, axis=0)
        if len(self._keys) > max(2 * self._most(0), self._limit):
            self._cut()
            self._limit = len(self._keys) + self._most(0) // 2

    def _most(self, level: int) -> int:
        share = (OLDER if level else NEWEST) // self.copies
        return max(share, 16)

    def _cut(self) -> None:
        """Raise the edges of levels with too many keys."""
        for level in range(LEVELS - 1):
            if level > len(self._edges):
                return
            top = self._edges[level - 1] if level else None
            low = self._edges[level] if level < len(self._edges) else None
            own = np.ones(len(self._ticks), dtype=np.bool_)
            if top is not None:
                own &= self._ticks < top
            if low is not None:
                own &= self._ticks >= low
            most = self._most(level)
            if own.sum() <= 2 * most:
                continue
            edge = int(np.sort(self._ticks[own])[-most - 1]) + 1
            if low is None:
                self._edges.append(edge)
            else:
                self._edges[level] = edge
            stay = self._placed(self._keys, self._ticks)[1]
            self._keys, self._ticks = self._keys[stay], self._ticks[stay]
            self._counts = self._counts[stay]

    @property
    def lost_more(self) -> bool:
        """Whether any results are lost, as far as rows in the sample show."""
        return bool(self._rows[:, :, LOST].any())

    @property
    def lost(self) -> tuple[float, float]:
        """Results lost, and by how many that may be wrong."""
        total, sampled, missing, squares, products, sizes = np.moveaxis(self._rows, 2, 0)
        average = missing.sum(axis=0) / np.maximum(sampled.sum(axis=0), 1)  # if none was sampled
        share = np.where(sampled > 0, missing / np.maximum(sampled, 1), average)
        scatter = np.maximum(squares - 2 * share * products + share**2 * sizes, 0)
        times = total / np.maximum(sampled, 1)
        spread = float(np.sqrt((scatter * times * np.maximum(times - 1, 0)).sum()))
        passed = self.found / self.pairs if self.pairs else 1.0
        return float((share * total).sum()) * passed, SPREAD * spread * passed

    def snapshot(self) -> Any:
        """All counts."""
        arrays = (self._keys, self._ticks, self._counts, self._rows)
        numbers = self.found, self.pairs, self._limit, list(self._edges)
        return numbers, [each.tobytes() for each in arrays]

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot."""
        (self.found, self.pairs, self._limit, edges), (keys, ticks, counts, rows) = saved
        self._edges = list(edges)
        self._keys = np.frombuffer(keys, dtype=np.uint64).copy()
        self._ticks = np.frombuffer(ticks, dtype=np.int64).copy()
        self._counts = np.frombuffer(counts, dtype=np.int64).reshape(-1, self._counts.shape[1])
        self._counts = self._counts.copy()
        self._rows = np.frombuffer(rows).reshape(self._rows.shape).copy()


_SIDES: tuple[Any, Any] = ("left", "right")
