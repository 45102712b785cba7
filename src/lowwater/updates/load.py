"""How many rows come in a stretch of time, recent ones counting more."""

from __future__ import annotations

from math import exp, expm1

MASK = 2**64 - 1


def throw(number: int) -> float:
    """A number between 0 and 1, for the so-manieth throw."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / 2**53


class DecayingRate:
    """Rows a nanosecond, over about the last so many nanoseconds."""

    __slots__ = ("_begun", "_last", "_rows")

    def __init__(self) -> None:
        self._rows = 0.0
        self._last: int | None = None
        self._begun = 0

    def seen(self, rows: int, now: int, span: float) -> None:
        """Rows came."""
        if self._last is None:
            self._begun = self._last = now
            return  # nobody knows since when they might have come
        self._rows = self._left(now, span) + rows
        self._last = max(now, self._last)

    def _left(self, now: int, span: float) -> float:
        since = now if self._last is None else self._last
        return self._rows * exp(min(0.0, since - now) / max(span, 1.0))

    def now(self, now: int, span: float) -> float:
        """The rate."""
        length = max(now - self._begun, 1)
        return self._left(now, span) / (max(span, 1.0) * -expm1(-length / max(span, 1.0)))

    def saved(self) -> tuple[float, int | None, int]:
        """What it takes to go on."""
        return self._rows, self._last, self._begun

    def restore(self, saved: tuple[float, int | None, int]) -> None:
        """Go on from what :meth:`saved` gave."""
        self._rows, self._last, self._begun = saved
