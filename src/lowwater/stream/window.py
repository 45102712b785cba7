"""Window arithmetic: which windows cover a tick, which panes make a window (WID; panes).

Windows start at multiples of ``slide`` and cover ``[start, start + range)``. A pane is the greatest
stretch that lies in exactly the same windows throughout, so a row is reduced once, into its pane,
however many windows it is in. All values are ticks; all divisions are floor divisions, so times
before the epoch need no care.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd

from lowwater.errors import OptionError


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
        """The length of a pane."""
        return gcd(self.range, self.slide)

    @property
    def panes(self) -> int:
        """How many panes make a window."""
        return self.range // self.pane

    @property
    def overlap(self) -> int:
        """In how many windows a tick lies at most."""
        return -(-self.range // self.slide)

    @property
    def tumbling(self) -> bool:
        """Whether each tick lies in exactly one window."""
        return self.range == self.slide

    def pane_of(self, tick: int) -> int:
        """The start of the pane a tick lies in."""
        return tick // self.pane * self.pane

    def first_open(self, mark: int) -> int:
        """The start of the earliest window that rows at ``mark`` or later can still change."""
        return ((mark - self.range) // self.slide + 1) * self.slide

    def starts_covering(self, pane: int) -> Sequence[int]:
        """The starts of all windows that contain the pane starting at ``pane``."""
        first = self.first_open(pane)
        last = pane // self.slide * self.slide
        return range(first, last + 1, self.slide)
