"""Lengths of time as people write them, read as whole nanoseconds."""

from __future__ import annotations

import re
from datetime import timedelta
from fractions import Fraction
from math import isfinite

from lowwater.errors import OptionError, Term

Duration = str | int | float | timedelta
"""A length of time as the API takes it: ``"5 seconds"``, ``"1 min"``, a ``timedelta``, or a number
of seconds."""

SECOND = 1_000_000_000
"""Number of nanoseconds in a second."""

_UNITS = {
    "ns": 1,
    "nanosecond": 1,
    "us": 1_000,
    "µs": 1_000,
    "microsecond": 1_000,
    "ms": 1_000_000,
    "millisecond": 1_000_000,
    "s": SECOND,
    "sec": SECOND,
    "second": SECOND,
    "m": 60 * SECOND,
    "min": 60 * SECOND,
    "minute": 60 * SECOND,
    "h": 3600 * SECOND,
    "hr": 3600 * SECOND,
    "hour": 3600 * SECOND,
    "d": 86400 * SECOND,
    "day": 86400 * SECOND,
    "w": 604800 * SECOND,
    "week": 604800 * SECOND,
}
_PART = re.compile(r"\s*([+-]?\d+(?:\.\d+)?)\s*([a-zµ]+)\s*", re.IGNORECASE)


def nanoseconds(value: Duration, what: str | Term = "duration") -> int:
    """Return a length of time in nanoseconds.

    A sum such as ``"1 minute 30 seconds"`` is allowed. ``what`` names the option in error messages.

    >>> nanoseconds("1.5 ms")
    1500000
    """
    if isinstance(value, bool):
        raise OptionError(what, f" must be a length of time such as '5 seconds', not {value!r}")
    if isinstance(value, timedelta):
        whole = value.days * 86400 + value.seconds
        return whole * SECOND + value.microseconds * 1_000
    if isinstance(value, int):
        return value * SECOND
    if isinstance(value, float):
        if not isfinite(value):
            raise OptionError(what, f" must be a finite length of time, not {value!r}")
        return round(value * SECOND)
    if isinstance(value, str):
        return _parse(value, what)
    raise OptionError(what, f" must be a length of time such as '5 seconds', not {value!r}")


def _parse(text: str, what: str | Term) -> int:
    position, total = 0, Fraction(0)
    while position < len(text):
        part = _PART.match(text, position)
        unit = part and _unit(part[2])
        if not part or not unit:
            raise OptionError(
                what,
                f" {text!r} is not a length of time; write a number and a unit,"
                " for example '500 ms', '5 seconds', '1 minute', '2 hours', '1 day'",
            )
        total += Fraction(part[1]) * unit
        position = part.end()
    if position == 0:
        raise OptionError(what, " is empty; write for example '5 seconds'")
    return _exact(total, text, what)


def _unit(word: str) -> int | None:
    lower = word.lower()
    if lower in _UNITS:
        return _UNITS[lower]
    return _UNITS.get(lower.removesuffix("s")) if len(lower) > 2 else None


def _exact(total: Fraction, value: object, what: str | Term) -> int:
    if total.denominator != 1:
        raise OptionError(what, f" {value!r} is finer than a nanosecond")
    return int(total)


def spell(length: int) -> str:
    """Return a length of time, in nanoseconds, as a person writes it.

    >>> spell(90 * SECOND)
    '90 s'
    """
    if length < 0:
        return "-" + spell(-length)
    for name, unit in (("day", 86400 * SECOND), ("hour", 3600 * SECOND), ("minute", 60 * SECOND)):
        if length >= unit and length % unit == 0:
            count = length // unit
            return f"{count} {name}{'s' if count != 1 else ''}"
    for name, unit in (("s", SECOND), ("ms", 1_000_000), ("µs", 1_000)):
        if length >= unit or length == 0:
            return f"{length / unit:.9f}".rstrip("0").rstrip(".") + f" {name}"
    return f"{length} ns"
