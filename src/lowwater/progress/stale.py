"""Stale channels, which do not hold the stream back (``stale_after``).

A channel is stale if its mark is more than ``stale_after`` behind that of most others: behind the
mark that half of the channels, and at least two, have reached. So one channel that is dated far in
the future makes no other channel stale.

A channel is also stale if it has been silent for ``stale_after`` by the clock while others were
not. Of a pause in the arrivals at most a quarter of that length counts, so that a pause of the
whole stream makes no channel stale. The silence of a channel that has sent nothing counts from the
first rows of the stream.

A stale channel has caught up when the mark by its own rows is at least that of the stream. Channels
are judged at the end of a chunk or batch, by marks and by the clock time given.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lowwater.progress.channel import Channel
from lowwater.stream.element import BEGINNING


@dataclass(slots=True)
class StaleChanges:
    """The channels that became stale, and those that caught up."""

    stale: list[tuple[Hashable, int | None]] = field(default_factory=list)
    """Each channel with the ticks that it is behind; None if it was silent for too long."""
    caught_up: list[Hashable] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.stale or self.caught_up)


class StaleChannels:
    """The channels that are stale now.

    ``ticks`` and ``nanoseconds`` are the same length of time, that of ``stale_after``.
    """

    def __init__(self, ticks: int, nanoseconds: int):
        self._ticks, self._nanoseconds = ticks, nanoseconds
        self.names: set[Hashable] = set()
        self._first: int | None = None  # the first mark that half of the channels had reached
        self._heard: dict[Hashable, int] = {}  # value of _spent at the last row of a channel
        self._spent = 0  # nanoseconds so far, pauses of the whole stream shortened
        self._last: int | None = None  # clock time of the last rows

    def observe(self, names: Iterable[Hashable], now: int) -> None:
        """Record that rows of some channels came at clock time ``now``, in nanoseconds."""
        if self._last is not None:
            self._spent += min(max(0, now - self._last), self._nanoseconds // 4)
        self._last = now if self._last is None else max(now, self._last)
        self._heard.update(dict.fromkeys(names, self._spent))

    def forget(self, name: Hashable) -> None:
        """Forget a channel that has ended."""
        self.names.discard(name)
        self._heard.pop(name, None)

    def update(self, channels: Mapping[Hashable, Channel], held: int) -> StaleChanges:
        """Update the stale channels; ``held`` is the least mark of the channels that are not stale.

        Invariant: at least one channel is not stale.
        """
        changes = StaleChanges()
        for name in [each for each in self.names if channels[each].row_mark >= held > BEGINNING]:
            self.names.discard(name)
            self._heard[name] = self._spent
            changes.caught_up.append(name)
        reached = self._reached(channels)
        if self._first is None and reached > BEGINNING:
            self._first = reached
        for name, each in channels.items():
            if name in self.names or len(self.names) + 1 >= len(channels):
                continue
            mark = each.mark if each.mark > BEGINNING else self._first
            behind = reached - mark if mark is not None and reached > BEGINNING else 0
            if behind > self._ticks:
                changes.stale.append((name, behind if each.mark > BEGINNING else None))
            elif self._spent - self._heard.get(name, 0) > self._nanoseconds:
                changes.stale.append((name, None))
            else:
                continue
            self.names.add(name)
        return changes

    def _reached(self, channels: Mapping[Hashable, Channel]) -> int:
        """Return the mark that half of the channels with a mark, and at least two, have reached."""
        marks = [
            each.row_mark if name in self.names else each.mark for name, each in channels.items()
        ]
        known = sorted((mark for mark in marks if mark > BEGINNING), reverse=True)
        many = max(2, -(-len(known) // 2))
        return known[many - 1] if len(known) >= many else BEGINNING

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {
            "names": set(self.names),
            "first": self._first,
            "heard": dict(self._heard),
            "spent": self._spent,
            "last": self._last,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self.names, self._first = set(saved["names"]), saved["first"]
        self._heard, self._spent = dict(saved["heard"]), saved["spent"]
        self._last = saved["last"]
