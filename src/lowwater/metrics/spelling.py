"""Times, lengths, shares and sizes as people write them."""

from __future__ import annotations

from datetime import datetime


def moment(mark: datetime | int | None) -> str:
    """A mark, as people write times."""
    if mark is None:
        return "-"
    if isinstance(mark, datetime):
        whole = mark.replace(tzinfo=None).isoformat(" ", "milliseconds")
        return whole.removesuffix(".000")
    return f"{mark:,}"


def length(seconds: float) -> str:
    """A length of time, with no more digits than people read."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    some = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(some[:2])


def percent(share: float) -> str:
    """A share, finer the nearer it is to all: never rounded up to all of it."""
    return f"{int(share * 1e5) / 1e3:.3f}".rstrip("0").rstrip(".") + " %"


def size(amount: int) -> str:
    """Bytes, in the unit that fits."""
    units = ("B", "kB", "MB", "GB", "TB")
    value = float(amount)
    for unit in units[:-1]:
        if value < 1_000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:.1f} {units[-1]}"
