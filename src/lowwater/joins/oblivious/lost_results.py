"""The results that a window-oblivious join has lost: counted for recent keys, estimated for older.

The *key* of a row is its value of the columns that are joined on. For each key in a sample, the
rows of every input are counted, also rows dropped since. When a row is joined, or is given up
without having been joined, it should make one result with each combination of counted rows of the
other inputs. Those that it does not make are lost. So each lost result is counted once, with the
last of its rows, whatever the reason for the loss.

The sample is bounded and has *levels* by value. It has all keys of the newest level, half of the
keys of the level below, a quarter of those of the next one, and so on; the hash of a key decides. A
row whose key is not in the sample counts as the average sampled row of its level; late rows have an
average of their own.

In an outer join, a row that is *told* as unmatched is contradicted if a partner of it is counted
later, or came before it and was gone. A told row is contradicted once. A contradiction that is seen
on a level stands for as many as there are keys for one in the sample.

In a join of near times, the keys of a row's partners are *stretches* of neighbouring numbers
(``result_account``), and the keys of one block of time are on one level.

Invariant: whether a key is in the sample follows from its hash and the edges between levels. Edges
only rise, so a key that has left the sample does not return, and the counts of keys in it are
complete.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.joins.oblivious.disorder import Ticks

Keys = NDArray[np.uint64]
Flags = NDArray[np.bool_]
Stretch = tuple[Keys, Keys, Ticks]
"""For each row the least and the greatest key of partners, and the tick of their level."""
Near = list[Stretch]

NEWEST = 2_048
"""Number of keys that stay on the newest level when it is cut, which is at twice as many."""
OLDER = 256
"""Number of sampled keys that stay on each older level when it is cut, at twice as many."""
LEVELS = 40
"""Greatest number of levels; of the last one, one key in 2 ** 39 is in the sample."""
SPREAD = 2.0
"""Width of the reported margin, in standard deviations."""
TOTAL, SAMPLED, LOST = range(3)
FIGURES = 6


def hashes(values: NDArray[Any]) -> Keys:
    """Return hashes of integers; different integers have different hashes."""
    found = values.astype(np.uint64)
    found += np.uint64(0x9E3779B97F4A7C15)
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = found ^ (found >> np.uint64(31))
    return mixed


class LostResults:
    """Counts of rows by key, and of the results that rows should have made and did not.

    ``copies`` is the number of joins that share the sample, each with some of the keys. ``tells``
    is True if rows are told as unmatched.
    """

    def __init__(self, ports: int, copies: int = 1, tells: bool = False):
        self._copies, self._ports = copies, ports
        self.found = 0
        """Results found."""
        self.pairs = 0
        """Combinations of equal rows; those that pass the join's condition are results."""
        self._keys: Keys = np.empty(0, dtype=np.uint64)  # ascending
        self._ticks: Ticks = np.empty(0, dtype=np.int64)
        # By key, for each input: the number of rows; if rows are told, also the number of rows told
        # and not contradicted, and 1 if a row of the key has missed a partner.
        self._counts = np.empty((0, ports * 3 if tells else ports), dtype=np.int64)
        self._limit = 0  # number of keys at which levels are cut again
        self._edges: list[int] = []  # the least value of each level but the last, descending
        # By level and by whether rows were late: the number of all rows, the number in the sample,
        # the results that the sampled rows lost, and sums of squares and products by key.
        self._rows = np.zeros((LEVELS, 2, FIGURES))
        self._contradicted = self._spread = 0.0

    def __len__(self) -> int:
        return len(self._keys)

    def take(
        self, port: int, keys: Keys, ticks: Ticks, late: Flags, made: Keys, near: Near | None = None
    ) -> None:
        """Count rows of an input that were joined or given up.

        ``late`` are the rows that came too late for some of their results. ``made`` has the key of
        each combination that the rows made. ``near`` has the keys of the partners of each row; None
        if rows match rows of the same key.
        """
        self.pairs += len(made)
        levels, inside = self._placed(keys, ticks)
        judged = inside
        if near is not None:
            edges = [self._placed(low, start)[1] for low, _, start in near]
            judged = inside & np.logical_and.reduce(edges)
        classes = levels * 2 + late
        table = self._rows.reshape(-1, FIGURES)
        table[:, TOTAL] += np.bincount(classes, minlength=len(table))
        if not inside.any():
            return
        keys, ticks, classes, judged = keys[inside], ticks[inside], classes[inside], judged[inside]
        own, first, counts = np.unique(keys, return_index=True, return_counts=True)
        if near is not None:
            near = [_picked(_picked(each, inside), first) for each in near]
        others = self._partners(port, own, near)
        should = counts * others
        expected = np.flatnonzero(should)
        missing = np.zeros(len(own))
        if len(expected):
            ordered = np.sort(made)
            low, high = (np.searchsorted(ordered, own[expected], side) for side in _SIDES)
            missing[expected] = should[expected] - (high - low)
        lack = missing > 0
        classes, judged = classes[first], judged[first]  # rows of one key have one value
        missing[~judged] = 0
        nothing, squares = np.zeros(len(own)), (missing**2, missing * counts, counts**2)
        figures = np.column_stack([nothing, counts, missing, *squares])
        np.add.at(table, classes[judged], figures[judged])
        place, known = self._found(own)
        self._counts[place[known], port] += counts[known]
        if self._tells and lack.any():
            self._contradict(port, own[lack], near and [_picked(each, lack) for each in near])
        if not known.all():
            self._add(port, own[~known], ticks[first][~known], counts[~known])
        if self._tells and lack.any():
            place, known = self._found(own[lack])
            self._counts[place[known], 2 * self._ports + port] = 1

    def _partners(self, port: int, own: Keys, near: Near | None) -> Ticks:
        """Return the number of combinations of counted rows of the other inputs, by key."""
        found = np.zeros(len(own), dtype=np.int64)
        if near is None:
            place, known = self._found(own)
            others = np.delete(self._counts[place[known], : self._ports], port, axis=1)
            found[known] = others.prod(axis=1)
            return found
        before = np.concatenate([[0], np.cumsum(self._counts[:, 1 - port])])
        for low, high, _ in near:
            first, last = self._stretch(low, high)
            found += before[last] - before[first]
        return found

    def _stretch(self, low: Keys, high: Keys) -> tuple[Ticks, Ticks]:
        """Return the places of the first key of each stretch, and of the first one after it."""
        first = np.searchsorted(self._keys, low)
        return first, np.maximum(first, np.searchsorted(self._keys, high, side="right"))

    # ---- rows told as unmatched ------------------------------------------------------------

    @property
    def _tells(self) -> bool:
        return self._counts.shape[1] > self._ports

    def tell(self, port: int, keys: Keys, ticks: Ticks) -> None:
        """Count rows of an input that are told as unmatched."""
        _, inside = self._placed(keys, ticks)
        own, counts = np.unique(keys[inside], return_counts=True)
        place, known = self._found(own)
        place, counts = place[known], counts[known]
        told, missed = self._ports + port, 2 * self._ports + port
        wrong = counts * self._counts[place, missed]
        self._counts[place, told] += counts - wrong
        self._add_contradicted(wrong, self._ticks[place])

    def _contradict(self, port: int, own: Keys, near: Near | None) -> None:
        """Record that rows with some keys have missed partners: told rows are contradicted, and
        those that are told later will be."""
        wrong = np.zeros(len(self._keys), dtype=np.bool_)
        if near is None:
            place, known = self._found(own)
            wrong[place[known]] = True
        else:
            edges = np.zeros(len(self._keys) + 1, dtype=np.int64)
            for low, high, _ in near:
                first, last = self._stretch(low, high)
                np.add.at(edges, first, 1)
                np.add.at(edges, last, -1)
            wrong = np.cumsum(edges)[:-1] > 0
        told, missed = self._ports + 1 - port, 2 * self._ports + 1 - port
        self._add_contradicted(self._counts[wrong, told], self._ticks[wrong])
        self._counts[wrong, told] = 0
        self._counts[wrong, missed] = 1

    def _add_contradicted(self, rows: Ticks, ticks: Ticks) -> None:
        times = np.exp2(self._levels(ticks))
        self._contradicted += float((rows * times).sum())
        self._spread += float((rows**2 * times * (times - 1)).sum())

    @property
    def contradicted(self) -> tuple[float, float]:
        """The number of told rows that had a partner, and its margin of error."""
        passed = self.found / self.pairs if self.pairs else 1.0
        return self._contradicted * passed, SPREAD * float(np.sqrt(self._spread)) * passed

    # ---- the sample ------------------------------------------------------------------------

    def add_found(self, results: int) -> None:
        """Count results that were found."""
        self.found += results

    def reset(self) -> None:
        """Drop all keys, because rows to come match none of them; the figures stay."""
        none = np.zeros(len(self._keys), dtype=np.bool_)
        self._keys, self._ticks = self._keys[none], self._ticks[none]
        self._counts, self._edges, self._limit = self._counts[none], [], 0

    def put_back(self, port: int, keys: Keys, ticks: Ticks) -> None:
        """Subtract rows that matched nothing from the counts; they will be counted again."""
        _, inside = self._placed(keys, ticks)
        own, counts = np.unique(keys[inside], return_counts=True)
        place, known = self._found(own)
        self._counts[place[known], port] -= counts[known]

    def _placed(self, keys: Keys, ticks: Ticks) -> tuple[Ticks, Flags]:
        """Return the level of each row, and True for each row whose key is in the sample."""
        if not self._edges:
            return np.zeros(len(keys), dtype=np.int64), np.ones(len(keys), dtype=np.bool_)
        levels = self._levels(ticks)
        part = ~np.uint64(0) >> levels.astype(np.uint64)
        return levels, keys <= part

    def _levels(self, ticks: Ticks) -> Ticks:
        """Return the level of each row."""
        edges = np.array(self._edges[::-1], dtype=np.int64)
        levels: Ticks = len(edges) - np.searchsorted(edges, ticks, side="right")
        return levels

    def _found(self, keys: Keys) -> tuple[Ticks, Flags]:
        """Return the index at which each key is or would be, and True for each that is there."""
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
        share = (OLDER if level else NEWEST) // self._copies
        return max(share, 16)

    def _cut(self) -> None:
        """Raise the edges of levels with too many keys, and drop the keys that leave the sample."""
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
    def any_lost(self) -> bool:
        """True if sampled rows show that a result was lost."""
        return bool(self._rows[:, :, LOST].any())

    @property
    def lost(self) -> tuple[float, float]:
        """The number of lost results, and its margin of error."""
        total, sampled, missing, squares, products, sizes = np.moveaxis(self._rows, 2, 0)
        average = missing.sum(axis=0) / np.maximum(
            sampled.sum(axis=0), 1
        )  # for levels without a sample
        share = np.where(sampled > 0, missing / np.maximum(sampled, 1), average)
        scatter = np.maximum(squares - 2 * share * products + share**2 * sizes, 0)
        times = total / np.maximum(sampled, 1)
        spread = float(np.sqrt((scatter * times * np.maximum(times - 1, 0)).sum()))
        passed = self.found / self.pairs if self.pairs else 1.0
        return float((share * total).sum()) * passed, SPREAD * spread * passed

    def snapshot(self) -> Any:
        """Return all counts."""
        arrays = (self._keys, self._ticks, self._counts, self._rows)
        wrong = self._contradicted, self._spread
        numbers = self.found, self.pairs, self._limit, list(self._edges), wrong
        return numbers, [each.tobytes() for each in arrays]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        (self.found, self.pairs, self._limit, edges, wrong), arrays = saved
        (self._contradicted, self._spread), (keys, ticks, counts, rows) = wrong, arrays
        self._edges = list(edges)
        self._keys = np.frombuffer(keys, dtype=np.uint64).copy()
        self._ticks = np.frombuffer(ticks, dtype=np.int64).copy()
        self._counts = np.frombuffer(counts, dtype=np.int64).reshape(-1, self._counts.shape[1])
        self._counts = self._counts.copy()
        self._rows = np.frombuffer(rows).reshape(self._rows.shape).copy()


_SIDES: tuple[Any, Any] = ("left", "right")


def _picked(stretch: Stretch, which: Any) -> Stretch:
    low, high, start = stretch
    return low[which], high[which], start[which]
