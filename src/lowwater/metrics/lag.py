"""A lag is the time by which a mark is behind the clock or, if streams do not follow it, behind the
newest mark."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lowwater.stream.time_domain import TimeDomain

Mark = datetime | int | None

NEAR_SECONDS = 86_400
"""Seconds between the clock and the newest mark from which streams do not follow the clock."""


def seconds(mark: Mark, domain: TimeDomain) -> float | None:
    """Return a mark in seconds; None if there is none, or if it counts rows."""
    if isinstance(mark, datetime):
        return (mark if mark.tzinfo else mark.replace(tzinfo=UTC)).timestamp()
    if mark is None or domain.counts_rows:
        return None
    return mark / domain.ticks_per_second


def reference(marks: Iterable[float | None], clock: float | None) -> float | None:
    """Return the time in seconds that lags are measured from: the clock if there is one and the
    newest mark is near it, else that mark; None if there are no marks."""
    newest = max((mark for mark in marks if mark is not None), default=None)
    if newest is None or clock is None:
        return newest
    return clock if abs(clock - newest) < NEAR_SECONDS else newest


def lag(mark: float | None, ahead: float | None) -> float | None:
    """Return the seconds by which ``mark`` is behind ``ahead``; None if one of them is None."""
    return None if mark is None or ahead is None else round(max(0.0, ahead - mark), 6)
