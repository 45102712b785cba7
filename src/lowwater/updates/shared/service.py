"""The order of service of a shared queue: which key is given to which readers next.

UpStream leaves the scheduling of several queries open (§8). For one query and key, whose updates
come at random a ``gap`` apart, a service at age ``age`` is worth ``weight * age * (age / 2 + gap)``
(see :class:`lowwater.updates.key_lines.Worth`): the price of a service at which serving at this age
is best. Processor time is what readers compete for, so the price is per nanosecond of work, and the
readers ``S`` and the key are served for which::

    sum of worth over S / (shared cost + sum of cost over S)

is greatest. The shared cost is that of work that is done once however many readers are given the
row. For a fixed key the best ``S`` is exact: readers are added in the order of worth per cost while
the ratio grows. Of all keys only those are compared that lead the line of some reader, which is
exact where there is no shared cost.

Invariant: a key stands in the line of a reader exactly while the reader is behind in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from lowwater.updates.key_lines import ROUNDS, InPlace, KeyLine, Lanes
from lowwater.updates.options import Key
from lowwater.updates.pace import Pace
from lowwater.updates.shared.readers import Reader, ReaderKey, SharedCell


class Costs:
    """The cost of a row for each reader, and the cost that all readers share, in nanoseconds."""

    def __init__(self, readers: int):
        self.shared = Pace()
        self.own = [Pace() for _ in range(readers)]

    def learn(self, rows: int, own: Mapping[int, float], nanoseconds: float) -> None:
        """Update the costs by a portion of ``rows`` rows that took ``nanoseconds``; ``own`` is the
        part that each reader took by itself."""
        for reader, spent in own.items():
            self.own[reader].learn(rows, round(spent))
        self.shared.learn(rows, round(max(0.0, nanoseconds - sum(own.values()))))

    def of(self, reader: int) -> float:
        """Return the cost of a row for a reader; before its first, the mean of those known."""
        if self.own[reader].learned:
            return self.own[reader].cost
        known = [each.cost for each in self.own if each.learned]
        return sum(known) / len(known) if known else 1.0

    def of_all(self, readers: Sequence[int]) -> float:
        """Return the cost of a row that is given to some readers at once."""
        return self.shared.cost + sum(map(self.of, readers))

    def saved(self) -> Any:
        """Return the snapshot."""
        return self.shared.saved(), [each.saved() for each in self.own]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        shared, own = saved
        self.shared.restore(shared)
        for pace, each in zip(self.own, own, strict=True):
            pace.restore(each)


class ReaderLine(Lanes[ReaderKey]):
    """The keys in which one reader is behind: an in-place line for each weight and, if gaps count,
    for each doubling of the gap."""

    def __init__(self, worth: Callable[[], Callable[[ReaderKey], float]], gaps: bool):
        super().__init__(InPlace)
        self._worth, self._gaps = worth, gaps

    def _lane(self, key: ReaderKey) -> tuple[float, ...]:
        return key.weight, int(key.gap or 0).bit_length() if self._gaps else 0

    def _rank(self) -> Callable[[ReaderKey], Any]:
        return self._worth()


class SharedLine(KeyLine[SharedCell]):
    """The keys in which some reader is behind; :meth:`choose` returns what is served next."""

    def __init__(
        self, readers: Sequence[Reader], costs: Costs, now: Callable[[], int], *, gaps: bool
    ):
        self._costs, self._now, self._gaps = costs, now, gaps
        self._lines = [ReaderLine(self._worth, gaps) for _ in readers]

    def _worth(self) -> Callable[[ReaderKey], float]:
        """Return the function that gives the worth of serving a reader a key now."""
        now, most = self._now(), self._longest_gap() if self._gaps else 0.0

        def worth(key: ReaderKey) -> float:
            age = now - key.first
            return key.weight * age * (age / 2 + min(key.gap or 0.0, most))

        return worth

    def _longest_gap(self) -> float:
        """Return the length that a gap counts as at most: a few rounds of all lines."""
        work = sum(self._costs.of(at) * len(line) for at, line in enumerate(self._lines))
        return ROUNDS * (work + self._costs.shared.cost * max(map(len, self._lines)))

    def arrived(self, key: SharedCell) -> None:
        """Put a key into the line of each reader that is behind in it."""
        for each in key.keys:
            if each.behind:
                self._lines[each.reader].arrived(each)

    def choose(self) -> tuple[SharedCell, tuple[int, ...]]:
        """Return the key that is served next, and the readers that are given it."""
        worth = self._worth()
        heads = dict.fromkeys(line.head().cell for line in self._lines if line)
        best: tuple[float, SharedCell, tuple[int, ...]] | None = None
        for cell in heads:
            ratio, readers = self._readers_of(cell, worth)
            if best is None or ratio > best[0]:
                best = ratio, cell, readers
        assert best is not None
        return best[1], best[2]

    def _readers_of(
        self, cell: SharedCell, worth: Callable[[ReaderKey], float]
    ) -> tuple[float, tuple[int, ...]]:
        """Return the greatest worth per cost of a service of a key, and the readers it has it
        for."""
        behind = [
            (worth(each), self._costs.of(each.reader), each) for each in cell.keys if each.behind
        ]
        behind.sort(key=lambda each: -each[0] / max(each[1], 1e-9))
        value, cost = 0.0, self._costs.shared.cost
        readers: list[int] = []
        for own, more, each in behind:
            if readers and own * cost <= value * more:
                break
            value, cost = value + own, cost + more
            readers.append(each.reader)
        return value / max(cost, 1e-9), tuple(readers)

    def take(self, cell: SharedCell, readers: Sequence[int]) -> bool:
        """Take a key out of the lines of some readers; return true if no other is behind in it."""
        for at in readers:
            cell.keys[at].behind = False
            self._lines[at].leave(cell.keys[at])
        return not any(each.behind for each in cell.keys)

    def head(self) -> SharedCell:
        """Return the key that is served next."""
        return self.choose()[0]

    def leave(self, key: SharedCell) -> None:
        """Take a key out of the lines of all readers."""
        self.take(key, [each.reader for each in key.keys if each.behind])

    def saved(self) -> Any:
        """Return the line of each reader."""
        return [line.saved() for line in self._lines]

    def restore(self, saved: Any, keys: Mapping[Key, SharedCell]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        for at, (line, own) in enumerate(zip(self._lines, saved, strict=True)):
            line.restore(own, {key: cell.keys[at] for key, cell in keys.items()})

    def __len__(self) -> int:
        return sum(map(len, self._lines))

    def __iter__(self) -> Iterator[SharedCell]:
        found = dict.fromkeys(each.cell for line in self._lines for each in line)
        return iter(found)
