"""The marks of the channels of one attribute as values: all marks before a batch, and a summary.

Rows of a batch without order are judged by the marks before the batch. There are three forms in
which these marks are looked up by channel: a dictionary, a frame, and the table of a tracker. The
first two hold plain values that can be sent to other processes.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from lowwater.progress.channel import Ticks
from lowwater.progress.spec import channel_name
from lowwater.stream.element import MARK, Chunk


@dataclass(frozen=True, slots=True)
class ChannelSummary:
    """The marks of all channels of an attribute, in brief; marks are ticks."""

    count: int
    """Number of channels."""
    ahead: int
    """The highest mark, in ticks."""
    behind: tuple[tuple[Hashable, int, int | None], ...]
    """The channels with the least marks, the least first: name, mark, and the clock time of the
    last row in nanoseconds (None if no row has come)."""
    stale: tuple[Hashable, ...] = ()
    """The stale channels among ``behind``."""
    stale_count: int = 0
    """Number of stale channels in all."""


class MarksBefore(Protocol):
    """The marks of all channels before a batch, in ticks."""

    @property
    def known(self) -> dict[Hashable, int]:
        """The mark of each known channel."""

    @property
    def others(self) -> int:
        """The mark of a channel that is not known."""

    @property
    def highest(self) -> int:
        """The highest mark: no row at or above it can be late."""

    def of(self, keys: Chunk) -> Ticks:
        """Return the mark of each channel; a row of ``keys`` names one."""


@dataclass(frozen=True)
class NamedMarks:
    """Marks before a batch as a dictionary by channel name."""

    known: dict[Hashable, int]
    others: int

    @property
    def highest(self) -> int:
        """The highest mark: no row at or above it can be late."""
        return max((*self.known.values(), self.others))

    def merged(self, parts: Iterable[NamedMarks]) -> NamedMarks:
        """Return these marks together with those of other channels."""
        known = dict(self.known)
        for each in parts:
            known |= each.known
        return NamedMarks(known, self.others)

    def of(self, keys: Chunk) -> Ticks:
        """Return the mark of each channel; a row of ``keys`` names one."""
        names = [channel_name(parts) for parts in keys.rows()]
        marks = (self.known.get(name, self.others) for name in names)
        return np.fromiter(marks, np.int64, len(names))


@dataclass(frozen=True)
class FrameMarks:
    """Marks before a batch as a frame: the key columns and the mark of each known group."""

    marks: Chunk | None
    """The frame; None if no group is known."""
    others: int
    highest: int

    @property
    def known(self) -> dict[Hashable, int]:
        """The mark of each known channel."""
        if self.marks is None:
            return {}
        return {channel_name(keys): mark for *keys, mark in self.marks.rows()}

    def merged(self, parts: Iterable[FrameMarks]) -> FrameMarks:
        """Return these marks together with those of other groups."""
        every = [self, *parts]
        marks = [each.marks for each in every if each.marks is not None]
        keys = [name for name in marks[0].columns if name != MARK] if marks else []
        return FrameMarks(
            pl.concat(marks).unique(keys) if marks else None,
            self.others,
            max(each.highest for each in every),
        )

    def of(self, keys: Chunk) -> Ticks:
        """Return the mark of each group; a row of ``keys`` names one."""
        if self.marks is None:
            return np.full(keys.height, self.others, np.int64)
        on = keys.columns
        near = self.marks.join(keys, on=on, how="semi")
        found = keys.join(near, on=on, how="left", maintain_order="left")[MARK]
        return found.fill_null(self.others).to_numpy()


class TableMarks:
    """Marks before a batch in the table of a tracker.

    ``look_up`` returns the keys and marks of the groups that it is given, or of all for None.
    """

    def __init__(
        self, look_up: Callable[[Chunk | None], tuple[Chunk, Ticks]], others: int, highest: int
    ):
        self._look_up, self.others, self.highest = look_up, others, highest

    @property
    def known(self) -> dict[Hashable, int]:
        """The mark of each known group."""
        keys, marks = self._look_up(None)
        return dict(zip(map(channel_name, keys.rows()), marks.tolist(), strict=True))

    def of(self, keys: Chunk) -> Ticks:
        """Return the mark of each group; a row of ``keys`` names one."""
        return self._look_up(keys)[1]
