"""The marks that held before a batch: what its rows are judged by."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from lowwater.progress.channel import Ticks
from lowwater.progress.spec import channel_name
from lowwater.stream.element import Chunk


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

    def met(self, keys: Chunk) -> Ticks:
        """The marks of some channels."""
        names = [channel_name(parts) for parts in keys.rows()]
        marks = (self.known.get(name, self.others) for name in names)
        return np.fromiter(marks, np.int64, len(names))
