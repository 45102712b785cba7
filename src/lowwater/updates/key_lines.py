"""The line of waiting keys: who is next (UpStream §5.2, §5.3).

Invariant: a key stands in the line at most once, and exactly while it has an update waiting.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from lowwater.updates.options import Key, Schedule

PATIENCE = 4
"""A key that has stood in line for so many rounds of it is served before all line cutters."""
SLOWER = 1.5
"""Gaps of a slow updater are so many times those of all updates, at least."""
MANY = 64
"""Gaps of all updates are averaged over about so many."""
ROUNDS = 2
"""Between two updates of a key the line counts as served so many times at most."""


class Waiting(Protocol):
    """A key as its line sees it."""

    @property
    def key(self) -> Key:
        """Its values."""

    @property
    def first(self) -> int:
        """When the first update came of those that wait."""

    @property
    def weight(self) -> float:
        """How much its staleness counts."""

    @property
    def gap(self) -> float | None:
        """Nanoseconds between its updates on average; None if nobody knows yet."""


W = TypeVar("W", bound=Waiting)


class KeyLine(ABC, Generic[W]):
    """Keys that wait, and the order in which they are served."""

    @abstractmethod
    def arrived(self, key: W) -> None:
        """An update of a key came; it may stand in line already."""

    @abstractmethod
    def head(self) -> W:
        """The key that is served next."""

    @abstractmethod
    def leave(self, key: W) -> None:
        """Take a key out of the line."""

    @abstractmethod
    def saved(self) -> Any:
        """The keys in their order, for :meth:`restore`."""

    @abstractmethod
    def restore(self, saved: Any, keys: Mapping[Key, W]) -> None:
        """Let keys stand as they stood."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[W]: ...

    def next(self) -> W:
        """Take out the key that is served next."""
        key = self.head()
        self.leave(key)
        return key


class InPlace(KeyLine[W]):
    """A key keeps the place of its first waiting update: the longest waiting is next."""

    def __init__(self) -> None:
        self._line: OrderedDict[W, None] = OrderedDict()

    def arrived(self, key: W) -> None:
        """A new key stands at the end; one that waits stays where it is."""
        self._line.setdefault(key, None)

    def head(self) -> W:
        """The key at the front."""
        return next(iter(self._line))

    def leave(self, key: W) -> None:
        """Take a key out of the line."""
        del self._line[key]

    def saved(self) -> list[Key]:
        """The keys from the front to the end."""
        return [each.key for each in self._line]

    def restore(self, saved: list[Key], keys: Mapping[Key, W]) -> None:
        """Let keys stand as they stood."""
        self._line = OrderedDict.fromkeys(keys[each] for each in saved)

    def __contains__(self, key: W) -> bool:
        return key in self._line

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[W]:
        return iter(self._line)


class Fifo(InPlace[W]):
    """A key stands where its newest update does: an update sends it to the end of the line.

    A key that is updated faster than the line moves may never be served; that is this policy's
    nature, and why it is not the default.
    """

    def arrived(self, key: W) -> None:
        """The key goes to the end."""
        self._line[key] = None
        self._line.move_to_end(key)


class Linecutting(KeyLine[W]):
    """Slow updaters go before the others; the rest keep their place.

    A key is slow if all others, faster ones, could be served between two of its updates: its rate
    is below ``1 / (cost * waiting)``, and clearly below that of others. Rates are measured, and
    where few keys wait a fast one would often look slow by the first alone. Slow keys together may
    ask for nearly all capacity, so a key at the front of the line that has waited very long goes
    before them.
    """

    def __init__(self, cost: Callable[[], float], now: Callable[[], int]):
        self._cost, self._now = cost, now
        self._cutters: InPlace[W] = InPlace()
        self._line: InPlace[W] = InPlace()
        self._usual = 0.0
        self._seen = 0

    def arrived(self, key: W) -> None:
        """A slow updater goes to the front; another keeps its place."""
        self._learn(key)
        if key in self._cutters:
            return
        if self._slow(key):
            if key in self._line:
                self._line.leave(key)
            self._cutters.arrived(key)
        else:
            self._line.arrived(key)

    def _learn(self, key: W) -> None:
        if key.gap is not None:
            self._seen = min(self._seen + 1, MANY)
            self._usual += (key.gap - self._usual) / self._seen

    def _slow(self, key: W) -> bool:
        others = len(self) + (key not in self._line)
        return key.gap is not None and key.gap > max(self._cost() * others, SLOWER * self._usual)

    def head(self) -> W:
        """The first line cutter, unless the first in line has waited too long."""
        if not self._cutters:
            return self._line.head()
        if self._line:
            head = self._line.head()
            if self._now() - head.first > PATIENCE * self._cost() * len(self):
                return head
        return self._cutters.head()

    def leave(self, key: W) -> None:
        """Take a key out of the line."""
        if key in self._cutters:
            self._cutters.leave(key)
        else:
            self._line.leave(key)

    def saved(self) -> tuple[list[Key], list[Key], float, int]:
        """The line cutters, the others, and how often keys update."""
        return self._cutters.saved(), self._line.saved(), self._usual, self._seen

    def restore(
        self, saved: tuple[list[Key], list[Key], float, int], keys: Mapping[Key, W]
    ) -> None:
        """Let keys stand as they stood."""
        cutters, line, self._usual, self._seen = saved
        self._cutters.restore(cutters, keys)
        self._line.restore(line, keys)

    def __len__(self) -> int:
        return len(self._cutters) + len(self._line)

    def __iter__(self) -> Iterator[W]:
        yield from self._cutters
        yield from self._line


class Weighted(KeyLine[W]):
    """A line for each weight; next is the key whose waiting, times its weight, is greatest.

    What every key's staleness adds to the weighted average while it waits is its age times its
    weight, so this is the in-place rule for weighted keys, and no key waits for ever.
    """

    def __init__(self, make: Callable[[], KeyLine[W]], now: Callable[[], int]):
        self._make, self._now = make, now
        self._lines: dict[float, KeyLine[W]] = {}

    def arrived(self, key: W) -> None:
        """The key stands in the line of its weight."""
        if key.weight not in self._lines:
            self._lines[key.weight] = self._make()
        self._lines[key.weight].arrived(key)

    def head(self) -> W:
        """The head of the line whose head counts most."""
        now = self._now()
        heads = [line.head() for line in self._lines.values() if line]
        return max(heads, key=lambda each: ((now - each.first) * each.weight, each.weight))

    def leave(self, key: W) -> None:
        """Take a key out of its line."""
        self._lines[key.weight].leave(key)

    def saved(self) -> dict[float, Any]:
        """Each line by its weight."""
        return {weight: line.saved() for weight, line in self._lines.items()}

    def restore(self, saved: dict[float, Any], keys: Mapping[Key, W]) -> None:
        """Let keys stand as they stood."""
        for weight, each in saved.items():
            self._lines[weight] = self._make()
            self._lines[weight].restore(each, keys)

    def __len__(self) -> int:
        return sum(map(len, self._lines.values()))

    def __iter__(self) -> Iterator[W]:
        for line in self._lines.values():
            yield from line


class Worth(KeyLine[W]):
    """Next is the key whose service is worth most.

    A service takes the staleness of a key away until its next update. If a service had a price,
    a key whose updates come at random, a gap apart on average, were best served at the age at which
    ``(age² / 2 + price) / (age + gap)`` is least, which is where the price is
    ``age² / 2 + age * gap``: so much is a service worth. Keys that update equally often leave in
    the order of in-place; slow ones go before others, but only by as much as it pays; and no key
    waits for ever.

    A gap counts as a few rounds of the line at most: how long the others really are is not known
    well. Keys that update about equally often stand in one line, of which only the head is looked
    at: there is a line for each doubling of the gap.
    """

    def __init__(self, cost: Callable[[], float], now: Callable[[], int]):
        self._cost, self._now = cost, now
        self._lines: dict[tuple[float, int], InPlace[W]] = {}
        self._where: dict[W, tuple[float, int]] = {}

    def arrived(self, key: W) -> None:
        """A new key stands at the end of the line of its rate; one that waits stays where it is."""
        if key not in self._where:
            self._stand(key, (key.weight, int(key.gap or 0).bit_length()))

    def _stand(self, key: W, where: tuple[float, int]) -> None:
        if where not in self._lines:
            self._lines[where] = InPlace()
        self._lines[where].arrived(key)
        self._where[key] = where

    def head(self) -> W:
        """The head that is worth most."""
        now, most = self._now(), ROUNDS * self._cost() * len(self)

        def worth(key: W) -> float:
            age = now - key.first
            return key.weight * age * (age / 2 + min(key.gap or 0.0, most))

        return max((line.head() for line in self._lines.values() if line), key=worth)

    def leave(self, key: W) -> None:
        """Take a key out of its line."""
        self._lines[self._where.pop(key)].leave(key)

    def saved(self) -> dict[tuple[float, int], list[Key]]:
        """Each line."""
        return {where: line.saved() for where, line in self._lines.items()}

    def restore(self, saved: dict[tuple[float, int], list[Key]], keys: Mapping[Key, W]) -> None:
        """Let keys stand as they stood."""
        for where, line in saved.items():
            self._lines[where] = InPlace()  # also of those nobody stands in: the first counts
            for each in line:
                self._stand(keys[each], where)

    def __len__(self) -> int:
        return len(self._where)

    def __iter__(self) -> Iterator[W]:
        for line in self._lines.values():
            yield from line


def make_line(
    schedule: Schedule, weighted: bool, cost: Callable[[], float], now: Callable[[], int]
) -> KeyLine[W]:
    """The line of a schedule."""
    if schedule == "auto":
        return Worth(cost, now)

    def make() -> KeyLine[W]:
        if schedule == "fifo":
            return Fifo()
        return Linecutting(cost, now) if schedule == "linecutting" else InPlace()

    return Weighted(make, now) if weighted else make()
