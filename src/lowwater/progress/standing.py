"""The marks that held before a batch: what its rows are judged by."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import polars as pl

from lowwater.progress.channel import Ticks
from lowwater.progress.spec import channel_name
from lowwater.stream.element import MARK, Chunk


@dataclass(frozen=True, slots=True)
class Channels:
    """How far the channels of an attribute have come."""

    count: int
    ahead: int
    """The highest mark of all."""
    behind: tuple[tuple[Hashable, int, int | None], ...]
    """Those with the least marks, the least first: name, mark, and the clock when a row last
    came."""
    stale: tuple[Hashable, ...] = ()
    """Those of them that are set aside."""
    stale_count: int = 0
    """How many are set aside in all."""


class Standing(Protocol):
    """Marks per channel, and for channels nobody knows yet."""

    @property
    def known(self) -> dict[Hashable, int]:
        """The marks of the channels known."""

    @property
    def others(self) -> int:
        """The mark of all others."""

    @property
    def highest(self) -> int:
        """No row at or above this can be late."""

    def met(self, keys: Chunk) -> Ticks:
        """The marks of some channels."""


@dataclass(frozen=True)
class NamedStanding:
    """Marks by name."""

    known: dict[Hashable, int]
    others: int

    @property
    def highest(self) -> int:
        """No row at or above this can be late."""
        return max((*self.known.values(), self.others))

    def with_(self, others: Iterable[NamedStanding]) -> NamedStanding:
        """Together with what others know of other channels."""
        known = dict(self.known)
        for each in others:
            known |= each.known
        return NamedStanding(known, self.others)

    def met(self, keys: Chunk) -> Ticks:
        """The marks of some channels."""
        names = [channel_name(parts) for parts in keys.rows()]
        marks = (self.known.get(name, self.others) for name in names)
        return np.fromiter(marks, np.int64, len(names))


@dataclass(frozen=True)
class FrameStanding:
    """Marks in a frame."""

    marks: Chunk | None
    others: int
    highest: int

    @property
    def known(self) -> dict[Hashable, int]:
        """The marks of the channels known."""
        if self.marks is None:
            return {}
        return {channel_name(keys): mark for *keys, mark in self.marks.rows()}

    def with_(self, others: Iterable[FrameStanding]) -> FrameStanding:
        """Together with what others know of other channels."""
        every = [self, *others]
        marks = [each.marks for each in every if each.marks is not None]
        keys = [name for name in marks[0].columns if name != MARK] if marks else []
        return FrameStanding(
            pl.concat(marks).unique(keys) if marks else None,
            self.others,
            max(each.highest for each in every),
        )

    def met(self, keys: Chunk) -> Ticks:
        """The marks of some channels."""
        if self.marks is None:
            return np.full(keys.height, self.others, np.int64)
        on = keys.columns
        near = self.marks.join(keys, on=on, how="semi")
        met = keys.join(near, on=on, how="left", maintain_order="left")[MARK]
        return met.fill_null(self.others).to_numpy()
