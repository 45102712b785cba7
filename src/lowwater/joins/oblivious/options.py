"""What a user may say of a window-oblivious join: how much memory, how complete, how soon."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from lowwater.errors import OptionError
from lowwater.joins.oblivious.model import MODES

Strategy = Literal["auto", "plain", "msf", "dbf", "hybrid"]
STRATEGIES: tuple[Strategy, ...] = ("auto", *MODES)
ACCURACY = 0.999
"""The share of results that should be found, unless the user says otherwise."""


@dataclass(frozen=True, slots=True)
class Oblivious:
    """How a window-oblivious join keeps its rows."""

    memory: int | None = None
    """Bytes that rows may take in memory; None: as many as they need."""
    strategy: Strategy = "auto"
    """What relieves memory: rows are sorted first (msf), rows of inputs that are far ahead wait on
    disk (dbf), both (hybrid), neither (plain), or what the model recommends (auto)."""
    accuracy: float = ACCURACY
    """The share of results that should be found where disorder is measured."""
    latency: int | None = None
    """Nanoseconds that a row may wait to be put in order under auto; None: as long as needed."""
    disorder: tuple[int | None, ...] = ()
    """The scrambling factor of each input where it is known; None: it is measured."""

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
        """In words, for people."""
        parts = [self.strategy, f"{self.accuracy * 100:.10g} % of results"]
        if self.memory is not None:
            parts.append(f"at most {self.memory:,} bytes")
        return ", ".join(parts)
