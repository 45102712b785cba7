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


class Line(ABC, Generic[W]):
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


class InPlace(Line[W]):
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


class Linecutting(Line[W]):
    """Slow updaters go before the others; the rest keep their place.

    A key is slow if all that wait could be served between two of its updates: its rate is below
    ``1 / (cost * waiting)``. Slow keys together ask for less than all capacity, but new ones have
    no rate yet, so a key at the front of the line that has waited very long goes before them.
    """

    def __init__(
        self, cost: Callable[[], float], now: Callable[[], int], may_cut: Callable[[], bool]
    ):
        self._cost, self._now, self._may_cut = cost, now, may_cut
        self._cutters: InPlace[W] = InPlace()
        self._line: InPlace[W] = InPlace()

    def arrived(self, key: W) -> None:
        """A slow updater goes to the front; another keeps its place."""
        if key in self._cutters:
            return
        if self._may_cut() and self._slow(key):
            if key in self._line:
                self._line.leave(key)
            self._cutters.arrived(key)
        else:
            self._line.arrived(key)

    def _slow(self, key: W) -> bool:
        others = len(self) + (key not in self._line)
        return key.gap is not None and key.gap > self._cost() * others

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

    def saved(self) -> tuple[list[Key], list[Key]]:
        """The line cutters, and the others."""
        return self._cutters.saved(), self._line.saved()

    def restore(self, saved: tuple[list[Key], list[Key]], keys: Mapping[Key, W]) -> None:
        """Let keys stand as they stood."""
        self._cutters.restore(saved[0], keys)
        self._line.restore(saved[1], keys)

    def __len__(self) -> int:
        return len(self._cutters) + len(self._line)

    def __iter__(self) -> Iterator[W]:
        yield from self._cutters
        yield from self._line


class Weighted(Line[W]):
    """A line for each weight; next is the key whose waiting, times its weight, is greatest.

    What every key's staleness adds to the weighted average while it waits is its age times its
    weight, so this is the in-place rule for weighted keys, and no key waits for ever.
    """

    def __init__(self, make: Callable[[], Line[W]], now: Callable[[], int]):
        self._make, self._now = make, now
        self._lines: dict[float, Line[W]] = {}

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


def line_of(
    schedule: Schedule,
    weighted: bool,
    cost: Callable[[], float],
    now: Callable[[], int],
    may_cut: Callable[[], bool] = lambda: True,
) -> Line[W]:
    """The line of a schedule; of "auto" one in which keys cut only while they may."""

    def make() -> Line[W]:
        if schedule == "fifo":
            return Fifo()
        if schedule in ("linecutting", "auto"):
            return Linecutting(cost, now, may_cut)
        return InPlace()

    return Weighted(make, now) if weighted else make()
