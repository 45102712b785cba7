"""The line of waiting keys: the order in which they are served (UpStream §5.2, §5.3).

Invariant: a key stands in the line at most once, and exactly while an update of it waits.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Generic, Protocol, TypeVar

from lowwater.updates.options import Key, Updates

PATIENCE = 4
"""A key that has waited for this many rounds of the line is served before all line cutters."""
SLOWER = 1.5
"""The gaps of a rare updater are at least this many times the average gap of all updates."""
MANY = 64
"""Approximate number of updates over which the average gap is taken."""
ROUNDS = 2
"""A gap between updates of a key counts as at most this many rounds of the line."""


class Waiting(Protocol):
    """What a line knows of a key that waits."""

    @property
    def key(self) -> Key:
        """The values of the key."""

    @property
    def first(self) -> int:
        """Arrival of its first waiting update, in clock nanoseconds."""

    @property
    def gap(self) -> float | None:
        """Average nanoseconds between its updates; None before the second."""

    @property
    def weight(self) -> float:
        """Weight of its staleness."""


W = TypeVar("W", bound=Waiting)


class KeyLine(ABC, Generic[W]):
    """Keys that wait, and the order in which they are served."""

    @abstractmethod
    def arrived(self, key: W) -> None:
        """Record that an update of a key arrived; the key may be in the line already."""

    @abstractmethod
    def head(self) -> W:
        """Return the key that is served next."""

    @abstractmethod
    def leave(self, key: W) -> None:
        """Take a key out of the line."""

    @abstractmethod
    def saved(self) -> Any:
        """Return the keys in their order, for :meth:`restore`."""

    @abstractmethod
    def restore(self, saved: Any, keys: Mapping[Key, W]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __iter__(self) -> Iterator[W]: ...

    def next(self) -> W:
        """Take out the key that is served next and return it."""
        key = self.head()
        self.leave(key)
        return key


class InPlace(KeyLine[W]):
    """Serves the key whose first waiting update arrived longest ago."""

    def __init__(self) -> None:
        self._line: OrderedDict[W, None] = OrderedDict()

    def arrived(self, key: W) -> None:
        """Put a new key at the end; a waiting key stays where it is."""
        self._line.setdefault(key, None)

    def head(self) -> W:
        """Return the key at the front."""
        return next(iter(self._line))

    def leave(self, key: W) -> None:
        """Take a key out of the line."""
        del self._line[key]

    def saved(self) -> list[Key]:
        """Return the keys from the front to the end."""
        return [each.key for each in self._line]

    def restore(self, saved: list[Key], keys: Mapping[Key, W]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        self._line = OrderedDict.fromkeys(keys[each] for each in saved)

    def __contains__(self, key: W) -> bool:
        return key in self._line

    def __len__(self) -> int:
        return len(self._line)

    def __iter__(self) -> Iterator[W]:
        return iter(self._line)


class Fifo(InPlace[W]):
    """Serves the key whose newest update arrived longest ago: each update moves it to the end.

    A key that is updated faster than the line moves may never be served, which is why this is not
    the default.
    """

    def arrived(self, key: W) -> None:
        """Move the key to the end."""
        self._line[key] = None
        self._line.move_to_end(key)


class Cutting(KeyLine[W]):
    """Serves line cutters before the others; both are served in place among themselves.

    The subclass decides which keys may cut.
    """

    def __init__(self, cost: Callable[[], float]):
        self._cost = cost
        self._cutters: InPlace[W] = InPlace()
        self._line: InPlace[W] = InPlace()

    @abstractmethod
    def _cuts(self, key: W) -> bool:
        """Return true if a key that has just been updated may cut the line."""

    def arrived(self, key: W) -> None:
        """Put a key that may cut among the line cutters; any other key keeps its place."""
        cuts = self._cuts(key)
        if key in self._cutters:
            return
        if cuts:
            if key in self._line:
                self._line.leave(key)
            self._cutters.arrived(key)
        else:
            self._line.arrived(key)

    def _waiting_with(self, key: W) -> int:
        """Return the number of keys that wait, with a key that may not wait yet."""
        return len(self) + (key not in self._line and key not in self._cutters)

    def head(self) -> W:
        """Return the first line cutter; without one, the first of the others."""
        return self._cutters.head() if self._cutters else self._line.head()

    def leave(self, key: W) -> None:
        """Take a key out of the line."""
        if key in self._cutters:
            self._cutters.leave(key)
        else:
            self._line.leave(key)

    def saved(self) -> Any:
        """Return the line cutters and the others."""
        return self._cutters.saved(), self._line.saved()

    def restore(self, saved: Any, keys: Mapping[Key, W]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        cutters, line = saved
        self._cutters.restore(cutters, keys)
        self._line.restore(line, keys)

    def __len__(self) -> int:
        return len(self._cutters) + len(self._line)

    def __iter__(self) -> Iterator[W]:
        yield from self._cutters
        yield from self._line


class Linecutting(Cutting[W]):
    """Lets a key cut the line if its rate is below ``1 / (cost * n)``, as UpStream §5.3 has it.

    ``n`` is the number of keys that wait, with the key that is updated. The rate is that of its
    updates; before the second, none is known, and the key does not cut. Where all keys may cut, the
    paper has the line in place, so those that cut are in place among themselves.
    """

    def _cuts(self, key: W) -> bool:
        return key.gap is not None and key.gap > self._cost() * self._waiting_with(key)


class RareFirst(Cutting[W]):
    """Lets a key cut the line if it is updated rarely by two measures, and no key wait too long.

    A key is rare if all other keys could be served between two of its updates, and if its gaps are
    clearly above the average: where few keys wait, a fast key, whose rate is measured, would often
    pass for rare by the first condition alone. The gap of a new key counts from the begin of the
    stream, so new keys cut; and because there may always be new keys, a key at the front of the
    line that has waited very long goes before those that cut.
    """

    def __init__(self, cost: Callable[[], float], now: Callable[[], int]):
        super().__init__(cost)
        self._now = now
        self._usual = 0.0  # average gap between updates of a key, in nanoseconds
        self._seen = 0  # number of gaps in the average, at most MANY

    def _cuts(self, key: W) -> bool:
        if key.gap is None:
            return False
        self._seen = min(self._seen + 1, MANY)
        self._usual += (key.gap - self._usual) / self._seen
        return key.gap > max(self._cost() * self._waiting_with(key), SLOWER * self._usual)

    def head(self) -> W:
        """Return the first line cutter, unless the first in line has waited too long."""
        if self._cutters and self._line:
            head = self._line.head()
            if self._now() - head.first > PATIENCE * self._cost() * len(self):
                return head
        return super().head()

    def saved(self) -> Any:
        """Return the line cutters, the others, the average gap and the number of gaps in it."""
        return *super().saved(), self._usual, self._seen

    def restore(self, saved: Any, keys: Mapping[Key, W]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        *lines, self._usual, self._seen = saved
        super().restore(lines, keys)


class Lanes(KeyLine[W]):
    """A line for each kind of key; the key served next is the head of one of them."""

    def __init__(self, make: Callable[[], KeyLine[W]]):
        self._make = make
        self._lines: dict[tuple[float, ...], KeyLine[W]] = {}
        self._where: dict[W, tuple[float, ...]] = {}

    @abstractmethod
    def _lane(self, key: W) -> tuple[float, ...]:
        """Return the kind of a key that begins to wait."""

    @abstractmethod
    def _rank(self) -> Callable[[W], Any]:
        """Return the function whose greatest value the next key has."""

    def arrived(self, key: W) -> None:
        """Put a new key in the line of its kind; a waiting key stays in its line."""
        where = self._where.get(key)
        if where is None:
            where = self._where[key] = self._lane(key)
            if where not in self._lines:
                self._lines[where] = self._make()
        self._lines[where].arrived(key)

    def head(self) -> W:
        """Return the head with the greatest rank."""
        return max((line.head() for line in self._lines.values() if line), key=self._rank())

    def leave(self, key: W) -> None:
        """Take a key out of its line."""
        self._lines[self._where.pop(key)].leave(key)

    def saved(self) -> dict[tuple[float, ...], Any]:
        """Return each line by its kind, also empty ones, because among heads of equal rank that of
        the first line is served."""
        return {where: line.saved() for where, line in self._lines.items()}

    def restore(self, saved: dict[tuple[float, ...], Any], keys: Mapping[Key, W]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        for where, each in saved.items():
            line = self._lines[where] = self._make()
            line.restore(each, keys)
            self._where |= dict.fromkeys(line, where)

    def __len__(self) -> int:
        return len(self._where)

    def __iter__(self) -> Iterator[W]:
        for line in self._lines.values():
            yield from line


class Weighted(Lanes[W]):
    """A line for each weight; serves the key whose waiting time, times its weight, is greatest.

    While a key waits, it adds its age times its weight to the weighted average of staleness, so
    this is the in-place rule for weighted keys, and no key waits for ever.
    """

    def __init__(self, make: Callable[[], KeyLine[W]], now: Callable[[], int]):
        super().__init__(make)
        self._now = now

    def _lane(self, key: W) -> tuple[float, ...]:
        return (key.weight,)

    def _rank(self) -> Callable[[W], Any]:
        now = self._now()
        return lambda key: ((now - key.first) * key.weight, key.weight)


class Worth(Lanes[W]):
    """Serves the key whose service is worth most.

    A service removes the staleness of a key until its next update. If a service had a price, a key
    whose updates arrive at random, ``gap`` apart on average, would best be served at the age at
    which ``(age² / 2 + price) / (age + gap)`` is least. There the price is ``age² / 2 + age *
    gap``, so this is the worth of a service. Keys with equal gaps leave in the order of in-place; a
    slow key goes before others, but only as far as that pays; and no key waits for ever.

    A gap counts as a few rounds of the line at most, because longer gaps are not known well. There
    is one in-place line for each doubling of the gap (and each weight), and only heads of lines are
    compared.
    """

    def __init__(self, cost: Callable[[], float], now: Callable[[], int]):
        super().__init__(InPlace)
        self._cost, self._now = cost, now

    def _lane(self, key: W) -> tuple[float, ...]:
        return key.weight, int(key.gap or 0).bit_length()

    def _rank(self) -> Callable[[W], Any]:
        now, most = self._now(), ROUNDS * self._cost() * len(self)

        def worth(key: W) -> float:
            age = now - key.first
            return key.weight * age * (age / 2 + min(key.gap or 0.0, most))

        return worth


def make_line(by: Updates, cost: Callable[[], float], now: Callable[[], int]) -> KeyLine[W]:
    """Return the line of a schedule; ``cost`` returns that of an update, in nanoseconds."""
    if by.schedule == "auto":
        return Worth(cost, now)

    def make() -> KeyLine[W]:
        if by.schedule == "fifo":
            return Fifo()
        if by.schedule == "linecutting":
            return Linecutting(cost)
        return RareFirst(cost, now) if by.schedule == "rare-first" else InPlace()

    return Weighted(make, now) if by.weights else make()
