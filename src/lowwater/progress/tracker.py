"""The marks of a stream on one attribute: its channels judged, and the minimum over them.

A channel nobody announced joins at the mark the stream had when its first row came, because that
promise was already made to everyone downstream; its earlier rows are late. Channels that are
announced (``channels=``, or by a replay that knows its log) hold the mark from the start.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lowwater.progress.channel import (
    Channel,
    MeasuredChannel,
    ProducerChannel,
    Ticks,
    Verdict,
)
from lowwater.progress.contract import Contract, Jump, Learned, Punctuated, Within, WithinRows
from lowwater.progress.learned import LearnedChannel
from lowwater.stream.element import BEGINNING
from lowwater.stream.low_water_mark import LowWaterMark
from lowwater.stream.time_domain import TimeDomain


@dataclass(slots=True)
class Judgement:
    """What the tracker says of the rows of a chunk, by row position."""

    met: Ticks
    leaps: NDArray[np.bool_]
    strays: int
    backward: int


def channel_maker(
    contract: Contract, domain: TimeDomain, jump: Jump | None
) -> Callable[[], Channel]:
    """How to make a channel that keeps this contract."""
    if isinstance(contract, Punctuated):
        return ProducerChannel
    over = domain.ticks(jump.over, "jump(...)") if jump else None
    if isinstance(contract, Learned):
        completeness = contract.completeness
        return lambda: LearnedChannel(completeness, over)
    slack = domain.ticks(contract.bound, "within(...)") if isinstance(contract, Within) else 0
    rows = contract.rows if isinstance(contract, WithinRows) else 0
    return lambda: MeasuredChannel(slack, rows, over)


class Tracker:
    """Follows every channel of one progressing attribute."""

    def __init__(self, make: Callable[[], Channel], announced: Iterable[Hashable] = ()):
        self._make = make
        self._floor = BEGINNING  # promised for every channel, those to come included
        self._channels: dict[Hashable, Channel] = {}
        self._marks = LowWaterMark()
        for name in announced:
            self._admit(name, BEGINNING)

    @property
    def mark(self) -> int:
        """The promise that holds for the whole stream."""
        return max(self._marks.value, self._floor)

    @property
    def channels(self) -> dict[Hashable, Channel]:
        """The channels known so far."""
        return self._channels

    @property
    def slowest(self) -> Hashable:
        """The channel that holds the mark back."""
        return self._marks.slowest if self._channels else None

    def observe(
        self, times: Ticks, marks: Ticks, order: Iterable[tuple[Hashable, NDArray[np.int64]]]
    ) -> Judgement:
        """Judge a chunk; ``order`` gives each channel's row positions, by first appearance."""
        judged = Judgement(
            np.full(len(times), BEGINNING, dtype=np.int64), np.zeros(len(times), bool), 0, 0
        )
        start = {name: channel.mark for name, channel in self._channels.items()}
        trails: dict[Hashable, tuple[NDArray[np.int64], Ticks]] = {}
        for name, rows in sorted(order, key=lambda each: each[0] not in self._channels):
            if name not in self._channels:
                floor = self._mark_before(int(rows[0]), start, trails)
                self._admit(name, floor)
                start[name] = floor
            alone = len(rows) == len(times)
            verdict = self._channels[name].observe(
                times if alone else times[rows], marks if alone else marks[rows]
            )
            if alone:
                judged.met = verdict.met
            else:
                judged.met[rows] = verdict.met
            judged.leaps[rows[verdict.leaps]] = True
            judged.strays += verdict.strays
            judged.backward += verdict.backward
            trails[name] = (rows, verdict.after)
        self._marks.advance_all({name: self._channels[name].mark for name in trails})
        return judged

    @property
    def joining(self) -> int:
        """The mark at which a channel nobody has announced would join now."""
        return self.mark if self._channels else self._floor

    def absorb(
        self, runs: Iterable[tuple[Hashable, Ticks, Ticks]]
    ) -> list[tuple[Hashable, Verdict, Ticks]]:
        """Take in each channel's times of one batch, in ascending order; all joined at once."""
        joining = self.joining
        verdicts = []
        for name, times, marks in runs:
            if name not in self._channels:
                self._admit(name, joining)
            verdicts.append((name, self._channels[name].absorb(times, marks), times))
        self._marks.advance_all({name: self._channels[name].mark for name, _, _ in verdicts})
        return verdicts

    def _mark_before(
        self,
        row: int,
        start: dict[Hashable, int],
        trails: dict[Hashable, tuple[NDArray[np.int64], Ticks]],
    ) -> int:
        """The stream's mark just before a row of the chunk in hand."""
        least = None
        for name, mark in start.items():
            if name in trails:
                rows, after = trails[name]
                seen = int(np.searchsorted(rows, row))
                mark = int(after[seen - 1]) if seen else mark  # noqa: PLW2901
            least = mark if least is None else min(least, mark)
        return self._floor if least is None else max(least, self.mark)

    def _admit(self, name: Hashable, floor: int) -> None:
        channel = self._make()
        channel.floor = floor
        self._channels[name] = channel
        self._marks.advance(name, floor)

    def promise(self, name: Hashable, mark: int) -> None:
        """Take a mark made by other means for one channel (an enabling timestamp)."""
        channel = self._channels[name]
        channel.floor = max(channel.floor, mark)
        self._marks.advance(name, channel.mark)

    def promise_all(self, mark: int) -> None:
        """Take a mark made by other means for all channels, also those nobody has seen yet."""
        self._floor = max(self._floor, mark)
        for channel in self._channels.values():
            channel.floor = max(channel.floor, mark)
        self._marks.advance_all({name: each.mark for name, each in self._channels.items()})

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "channels": {name: channel.snapshot() for name, channel in self._channels.items()},
            "marks": self._marks.marks(),
            "value": self._marks.value,
            "floor": self._floor,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._channels = {}
        for name, state in saved["channels"].items():
            self._channels[name] = self._make()
            self._channels[name].restore(state)
        self._marks.restore(saved["marks"], saved["value"])
        self._floor = saved["floor"]
