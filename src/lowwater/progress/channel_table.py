"""The channels of a stream in columns: their marks, and what their timestamps follow from.

Rows move the channels they belong to, one by one. What concerns all channels, silent ones too, is
computed in columns: the least mark, a lower bound for all, the timestamps at a clock time.

Invariant: the mark of a channel is the greater of its floor here and the mark by its rows. A
channel that is restored is not built until its rows come.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from lowwater.progress.channel import Channel, Ticks
from lowwater.progress.idle import EnablingRule
from lowwater.state.group_table import GroupTable, Numbers
from lowwater.stream.element import BEGINNING

HELD, FLOOR, NEWEST, START, SEEN = "__held", "__floor", "__newest", "__start", "__seen"
"""Columns with a channel's mark, the lower bound on it that does not follow from rows, its newest
time, the timestamp at its last row, and the clock time of that row."""
COLUMNS = (HELD, FLOOR, NEWEST, START, SEEN)


class ChannelTable:
    """The channels of one attribute by name; ``make`` builds one."""

    def __init__(self, make: Callable[[], Channel]):
        self._make = make
        self._channels: dict[Hashable, Channel | dict[str, Any]] = {}  # snapshots until needed
        self._table = GroupTable(dict.fromkeys(COLUMNS, BEGINNING))
        self._outdated: set[Hashable] = set()  # channels with rows since :meth:`starts`
        self.least = BEGINNING
        """The least mark of all channels so far; it never goes back."""

    def __len__(self) -> int:
        """Return the number of channels."""
        return len(self._channels)

    def __contains__(self, name: Hashable) -> bool:
        """Return whether a channel is known."""
        return name in self._channels

    def __iter__(self) -> Iterator[Hashable]:
        """Yield the names of the channels, in the order in which they became known."""
        return iter(list(self._channels))

    @property
    def marks(self) -> Ticks:
        """The marks of all channels."""
        return self._table.column(HELD)

    @property
    def seen(self) -> Ticks:
        """The clock times of the last rows of all channels; ``BEGINNING`` without rows."""
        return self._table.column(SEEN)

    def name(self, place: int) -> Hashable:
        """Return the name of the channel at a place."""
        return self._table.name(place)

    def mark_of(self, name: Hashable) -> int:
        """Return the mark of a channel."""
        return int(self.marks[self._table.place(name)])

    def places(self, names: Iterable[Hashable]) -> Numbers:
        """Return the places of channels."""
        return np.fromiter((self._table.place(name) for name in names), np.int64)

    def of(self, name: Hashable) -> Channel:
        """Return a channel without its floor, which is in the table."""
        held = self._channels[name]
        if isinstance(held, dict):
            channel = self._channels[name] = self._make()
            channel.restore(held)
            return channel
        return held

    def with_floor(self, name: Hashable) -> Channel:
        """Return a channel with its floor, so that it can judge rows."""
        channel = self.of(name)
        channel.floor = int(self._table.column(FLOOR)[self._table.place(name)])
        return channel

    def all_with_floors(self) -> dict[Hashable, Channel]:
        """Return all channels with their floors."""
        return {name: self.with_floor(name) for name in self._channels}

    # ---- changes ---------------------------------------------------------------------------

    def admit(self, name: Hashable, floor: int) -> None:
        """Add a channel with a floor."""
        self._channels[name] = self._make()
        place = self._table.add([name])
        self._table.put(FLOOR, place, floor)
        self._table.put(HELD, place, floor)

    def advance(self, names: Sequence[Hashable], seen: int) -> None:
        """Take over the marks of channels that got rows, the last ones at clock time ``seen``."""
        places = self.places(names)
        marks = np.fromiter((self.of(name).mark for name in names), np.int64, len(names))
        self._table.put(HELD, places, np.maximum(self._table.get(HELD, places), marks))
        self._table.put(SEEN, places, seen)
        self._outdated.update(names)
        self._find_least()

    def lift(self, places: Numbers, marks: Ticks | int) -> None:
        """Raise the floors of channels to at least these marks, also above those by their rows."""
        lifted = np.maximum(self._table.get(HELD, places), marks)
        self._table.put(FLOOR, places, lifted)
        self._table.put(HELD, places, lifted)
        self._find_least()

    def remove(self, names: Sequence[Hashable]) -> None:
        """Remove channels, one after the other. If none is left, the least mark stays at that of
        the one removed last."""
        if not names:
            return
        places = self.places(names)
        last = int(self.marks[places[-1]])
        for name in names:
            del self._channels[name]
            self._outdated.discard(name)
        self._table.remove_at(places)
        self.least = self.least if self._channels else max(self.least, last)
        self._find_least()

    def _find_least(self) -> None:
        if self._channels:
            self.least = max(self.least, int(self.marks.min()))

    # ---- times -----------------------------------------------------------------------------

    def newest(self, enabling: EnablingRule) -> Ticks:
        """Return the newest times of all channels; ``BEGINNING`` without rows."""
        self.starts(enabling)
        return self._table.column(NEWEST)

    def starts(self, enabling: EnablingRule) -> Ticks:
        """Return the timestamps that channels had when their last rows came.

        Cost: that of the channels that got rows since the last call.
        """
        if self._outdated:
            names, self._outdated = list(self._outdated), set()
            held = [self.of(name) for name in names]
            starts = [enabling.start(each.newest, each.contract_mark) for each in held]
            places = self.places(names)
            self._table.put(START, places, np.array(starts, np.int64))
            self._table.put(NEWEST, places, np.array([each.newest for each in held], np.int64))
        return self._table.column(START)

    # ---- saving ----------------------------------------------------------------------------

    def snapshot(self, enabling: EnablingRule) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        self.starts(enabling)
        places = self.places(self._channels)
        return {
            "channels": {
                name: held if isinstance(held, dict) else held.snapshot()
                for name, held in self._channels.items()
            },
            "columns": {name: self._table.get(name, places) for name in COLUMNS},
            "least": self.least,
        }

    def restore(self, saved: Mapping[str, Any]) -> None:
        """Set the state to that of a snapshot; for a table without channels."""
        self._channels = dict(saved["channels"])
        places = self._table.add(list(self._channels))
        for name, numbers in saved["columns"].items():
            self._table.put(name, places, numbers)
        self.least = saved["least"]
