"""Window arithmetic: the windows that cover a tick, and the panes that make a window (WID; panes).

Windows start at multiples of ``slide`` and cover ``[start, start + range)``. A pane is the longest
stretch whose ticks all lie in the same windows. So a row is reduced once, into its pane, however
many windows it is in. All values are ticks. All divisions are floor divisions, so times before the
epoch need no special case.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError

T = TypeVar("T", int, NDArray[np.int64], pl.Expr)


@dataclass(frozen=True, slots=True)
class WindowSpec:
    """Windows of ``range`` ticks that start at every multiple of ``slide`` ticks."""

    range: int
    slide: int

    def __post_init__(self) -> None:
        if self.range <= 0:
            raise OptionError("a window must be longer than zero, for example '1 minute'")
        if self.slide <= 0:
            raise OptionError("a window's slide must be longer than zero, for example '1 minute'")

    @property
    def pane(self) -> int:
        """The length of a pane, in ticks."""
        return gcd(self.range, self.slide)

    @property
    def panes(self) -> int:
        """The number of panes in a window."""
        return self.range // self.pane

    @property
    def overlap(self) -> int:
        """The greatest number of windows that a tick lies in."""
        return -(-self.range // self.slide)

    @property
    def tumbling(self) -> bool:
        """True if each tick lies in exactly one window."""
        return self.range == self.slide

    def first_open(self, mark: T) -> T:
        """Return the start of the earliest window that rows at ``mark`` or later can change.

        ``mark`` is one mark, or an array or an expression of marks.
        """
        return ((mark - self.range) // self.slide + 1) * self.slide

    def covers(self, ticks: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Return true for each tick that lies in a window: all, unless there are gaps between
        windows."""
        found: NDArray[np.bool_] = ticks % self.slide < self.range
        return found

    def starts_covering(self, pane: int) -> Sequence[int]:
        """Return the starts of all windows that contain the pane starting at ``pane``."""
        first = self.first_open(pane)
        last = pane // self.slide * self.slide
        return range(first, last + 1, self.slide)
