"""Amounts of memory as people write them, read as bytes."""

from __future__ import annotations

import re
from fractions import Fraction

from lowwater.errors import OptionError

Size = str | int
"""An amount of memory as the API takes it: ``"64 MB"``, ``"1.5 GiB"``, or a number of bytes."""

_UNITS = {
    "b": 1,
    "byte": 1,
    "bytes": 1,
    **{f"{letter}b": 1000**power for power, letter in enumerate("kmgt", start=1)},
    **{f"{letter}ib": 1024**power for power, letter in enumerate("kmgt", start=1)},
}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", re.IGNORECASE)
_EXAMPLES = "for example '64 MB' (64,000,000), '64 MiB' (67,108,864) or '1.5 GB'"


def byte_count(value: Size, what: str = "memory=") -> int:
    """Return an amount of memory above zero in bytes; a part of a byte is dropped.

    ``what`` names the option in error messages.

    >>> byte_count("1.5 kB")
    1500
    """
    if isinstance(value, int) and not isinstance(value, bool):
        found = value
    elif isinstance(value, str):
        found = _parse(value, what)
    else:
        raise OptionError(f"{what} is an amount of memory, {_EXAMPLES}, not {value!r}")
    if found <= 0:
        raise OptionError(f"{what} is an amount of memory above zero, {_EXAMPLES}, not {value!r}")
    return found


def _parse(text: str, what: str) -> int:
    part = _SIZE.fullmatch(text)
    unit = _UNITS.get(part[2].lower()) if part else None
    if part is None or unit is None:
        raise OptionError(
            f"{what} {text!r} is not an amount of memory; write a number and a unit, {_EXAMPLES}"
        )
    return int(Fraction(part[1]) * unit)


def spell_bytes(count: int) -> str:
    """Return a number of bytes as a person writes it, in three digits.

    >>> spell_bytes(67_108_864)
    '67.1 MB'
    """
    if count < 1000:
        return f"{count} bytes"
    power, value = 0, float(count)
    while value >= 999.5 and power < 4:
        value, power = value / 1000, power + 1
    return f"{value:.3g} {' kMGT'[power]}B"
