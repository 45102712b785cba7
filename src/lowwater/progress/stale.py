"""Channels that are set aside, so that they do not hold the stream back (``stale_after``).

A channel is stale if its mark is more than a length of time behind most of the others: behind the
mark that half of the channels, and at least two, have reached. So one channel that is dated far in
the future makes no other stale. It is also stale if it has sent nothing for that long by the
clock, while others have: of a pause in the arrivals no more than a quarter of that length counts,
so that a pause of the whole stream makes no channel stale. A channel that has not been heard counts
from the stream's first rows on. A channel has caught up when its own rows promise as much as the
stream does.

Everything is decided at the end of a chunk or batch, from marks and the clock it was given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowwater.stream.element import BEGINNING


@dataclass(frozen=True, slots=True)
class Place:
    """Where a channel stands."""

    mark: int
    own: int
    """The mark that follows from its rows alone."""


@dataclass(slots=True)
class Moved:
    """Who was set aside, with how far behind in ticks (None: by silence), and who has returned."""

    aside: list[tuple[Hashable, int | None]] = field(default_factory=list)
    back: list[Hashable] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.aside or self.back)


class Stale:
    """Decides which channels hold the stream, and which are set aside."""

    def __init__(self, ticks: int, nanoseconds: int):
        self._ticks, self._nanoseconds = ticks, nanoseconds
        self.names: set[Hashable] = set()
        self._first: int | None = None  # what most had reached when that was first known
        self._heard: dict[Hashable, int] = {}  # by the time in which somebody was heard
        self._spent = 0
        self._last: int | None = None

    def hear(self, names: Iterable[Hashable], now: int) -> None:
        """Rows of some channels have come."""
        if self._last is not None:
            self._spent += min(max(0, now - self._last), self._nanoseconds // 4)
        self._last = now if self._last is None else max(now, self._last)
        self._heard.update(dict.fromkeys(names, self._spent))

    def decide(self, channels: Mapping[Hashable, Place], held: int) -> Moved:
        """Who is stale from now on and who is not; ``held`` is the mark of the others so far."""
        moved = Moved()
        for name in [each for each in self.names if channels[each].own >= held > BEGINNING]:
            self.names.discard(name)
            self._heard[name] = self._spent
            moved.back.append(name)
        reached = self._reached(channels)
        if self._first is None and reached > BEGINNING:
            self._first = reached
        for name, each in channels.items():
            if name in self.names or len(self.names) + 1 >= len(channels):
                continue
            mark = each.mark if each.mark > BEGINNING else self._first
            behind = reached - mark if mark is not None and reached > BEGINNING else 0
            if behind > self._ticks:
                moved.aside.append((name, behind if each.mark > BEGINNING else None))
            elif self._spent - self._heard.get(name, 0) > self._nanoseconds:
                moved.aside.append((name, None))
            else:
                continue
            self.names.add(name)
        return moved

    def _reached(self, channels: Mapping[Hashable, Place]) -> int:
        """The mark that half of the channels that have one, and at least two, have reached."""
        marks = [each.own if name in self.names else each.mark for name, each in channels.items()]
        known = sorted((mark for mark in marks if mark > BEGINNING), reverse=True)
        many = max(2, -(-len(known) // 2))
        return known[many - 1] if len(known) >= many else BEGINNING

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "names": set(self.names),
            "first": self._first,
            "heard": dict(self._heard),
            "spent": self._spent,
            "last": self._last,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Go on from a snapshot."""
        self.names, self._first = set(saved["names"]), saved["first"]
        self._heard, self._spent = dict(saved["heard"]), saved["spent"]
        self._last = saved["last"]
