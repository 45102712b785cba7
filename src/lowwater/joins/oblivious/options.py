"""The options of a window-oblivious join, such as memory, strategy, accuracy and latency."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lowwater.errors import OptionError
from lowwater.joins.oblivious.read_ahead import AUTO, ReadAhead

ReliefMode = Literal["plain", "msf", "dbf", "hybrid"]
RELIEF_MODES: tuple[ReliefMode, ...] = ("plain", "msf", "dbf", "hybrid")
SORTING_MODES: tuple[ReliefMode, ...] = ("msf", "hybrid")
"""The modes that sort rows before they are joined."""
SPILLING_MODES: tuple[ReliefMode, ...] = ("dbf", "hybrid")
"""The modes that keep rows of inputs far ahead on disk."""
Strategy = Literal["auto", "plain", "msf", "dbf", "hybrid"]
STRATEGIES: tuple[Strategy, ...] = ("auto", *RELIEF_MODES)
Admission = Literal["warn", "refuse"]
ADMISSIONS: tuple[Admission, ...] = ("warn", "refuse")
"""What may happen to a query whose joins need more memory than a budget has left."""
ACCURACY = 0.999
"""Default share of results to be found."""


@dataclass(frozen=True, slots=True)
class Oblivious:
    """The options of a window-oblivious join."""

    memory: int | None = None
    """The most bytes of rows in memory; None: no limit."""
    strategy: Strategy = "auto"
    """The relief of memory: rows are sorted first (msf), rows of inputs that are far ahead wait on
    disk (dbf), both (hybrid), neither (plain), or the model decides (auto)."""
    accuracy: float = ACCURACY
    """Share of results to be found where disorder is measured, between 0 and 1."""
    latency: int | None = None
    """Nanoseconds that a row may wait to be sorted under auto; None: no limit."""
    read_ahead: ReadAhead = AUTO
    """The rows on disk that are read before they are due."""
    disorder: tuple[int | None, ...] = ()
    """Scrambling factor of each input, in rows; None: it is measured."""

    def __post_init__(self) -> None:
        if self.strategy not in STRATEGIES:
            known = ", ".join(map(repr, STRATEGIES))
            raise OptionError(f"strategy= is one of {known}, not {self.strategy!r}")
        if not 0 < self.accuracy < 1:
            raise OptionError(
                "accuracy= is the share of results that should be found, between 0 and 1 (0.999"
                f" if not given), not {self.accuracy!r}"
            )
        if self.memory is not None and self.memory <= 0:
            raise OptionError("memory= is an amount above zero, '64 MB' for example")

    def describe(self) -> str:
        """Return the options as text for explain."""
        parts = [self.strategy, f"{self.accuracy * 100:.10g} % of results"]
        if self.memory is not None:
            parts.append(f"at most {self.memory:,} bytes")
        return ", ".join(parts)
