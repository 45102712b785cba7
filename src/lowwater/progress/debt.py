"""How many late rows a channel owes, and what share of the rows to come may be late for it.

A *debt* is how many rows were late, less those that were allowed to be. Two things follow from it,
by which the slack is chosen: the pressure on the price of a late row (see ``lateness``), and the
share of recent rows that may be later than the slack. With no debt that share is the allowed one;
it is smaller the more is owed, and larger while there is credit. So the share of late rows over the
run comes to the allowed one, whatever the disorder was, once rows are no later than recent ones.

An old debt alone makes the share no smaller than ``LEAST`` of the allowed one: to wait for all rows
would pay it little sooner and cost much. A share of late rows that is too large *now* may make it
smaller than that. If it is several times too large, or has been too large for a while and much is
owed, the slack is longer than any that recent rows recommend: their lateness grows.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp
from typing import Any

MEMORY = 30.0
"""The memory of a channel: as many rows as may have so many late ones among them."""
LATELY = 5.0
"""The memory by which sudden disorder is noticed, counted likewise."""
FORBEARANCE = 20.0
"""So many late rows too many (or as many as are allowed between two choices of the slack) are worth
one more ``e`` of pressure; so is a recent share of late rows that is twice the allowed one."""
EARLY = (2.0, 0.001)
"""While few rows have come, it is so many late rows, or this share of all rows if that is more."""
CREDIT, STRAIN = 3.0, 8.0
"""The most that credit takes away from the pressure, and the most there is, as powers of ``e``."""
LEAST = 0.5
"""An old debt makes the share of rows that may be late no smaller than this part of the allowed."""
SUDDEN = 2.0
"""Disorder is sudden if more than ``1 + SUDDEN`` times the allowed share were late lately."""
BEYOND, FURTHEST = 0.25, 4.0
"""What each further such share adds to the slack, as a part of it, and how many of them count."""


@dataclass(frozen=True, slots=True)
class Need:
    """What a choice of the slack goes by."""

    pressure: float
    """On the price of a late row."""
    share: float
    """The share of recent rows that may be later than the slack."""
    beyond: float
    """How many times the slack that leaves this share is to be allowed."""


class Debt:
    """The late rows of a channel against those it is allowed; ``missing`` is the allowed share."""

    __slots__ = ("_lately", "_missing", "_owed", "_recent", "_unit")

    def __init__(self, missing: float):
        self._missing = missing
        self._owed = 0.0  # late rows, less those allowed
        self._unit = EARLY[0]  # the late rows that are worth one more ``e`` of pressure
        self._recent = 0.0  # the share of late rows, of those remembered
        self._lately = 0.0  # the same of the last few

    @property
    def recent(self) -> float:
        """The share of late rows, of those remembered."""
        return self._recent

    def add(self, rows: int, late: int, before: int) -> None:
        """Take rows into account; ``before`` is how many there were."""
        fewest, part = EARLY
        unit = min(FORBEARANCE, max(fewest, part * (before + rows)))
        self._unit = max(unit, self._missing * rows)
        owed = self._owed + late - self._missing * rows
        self._owed = max(owed, -CREDIT * self._unit)
        self._recent = self._faded(self._recent, rows, late, MEMORY)
        self._lately = self._faded(self._lately, rows, late, LATELY)

    def _faded(self, share: float, rows: int, late: int, memory: float) -> float:
        fading = exp(-rows * self._missing / memory)
        return share * fading + late / rows * (1 - fading)

    def need(self) -> Need:
        """What the next slack is chosen by."""
        owed = self._owed / self._unit
        excess = self._recent / self._missing - 1
        lately = self._lately / self._missing
        sudden = lately - 1 - SUDDEN
        share = max(LEAST, exp(-owed)) * exp(-max(0.0, excess, sudden))
        return Need(
            exp(min(owed + excess, STRAIN)),
            self._missing * share,
            1 + BEYOND * min(FURTHEST, max(0.0, sudden, min(excess, owed, lately))),
        )

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "owed": self._owed,
            "unit": self._unit,
            "recent": self._recent,
            "lately": self._lately,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._owed, self._unit = saved["owed"], saved["unit"]
        self._recent, self._lately = saved["recent"], saved["lately"]
