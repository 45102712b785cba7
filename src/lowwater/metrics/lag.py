"""How far marks are behind the clock, or, where streams do not go by it, behind the newest."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from lowwater.stream.time_domain import TimeDomain

Mark = datetime | int | None

NEAR_SECONDS = 86_400
"""A stream whose time is this far from the clock's does not go by the clock."""


def seconds(mark: Mark, domain: TimeDomain) -> float | None:
    """A mark in seconds; None where there is none, or where it counts rows."""
    if isinstance(mark, datetime):
        return (mark if mark.tzinfo else mark.replace(tzinfo=UTC)).timestamp()
    if mark is None or domain.counts_rows:
        return None
    return mark / domain.ticks_per_second


def reference(marks: Iterable[float | None], clock: float | None) -> float | None:
    """What lags count from: the clock, if there is one and the newest mark is near it, or else
    that mark; None if there are no marks."""
    newest = max((mark for mark in marks if mark is not None), default=None)
    if newest is None or clock is None:
        return newest
    return clock if abs(clock - newest) < NEAR_SECONDS else newest


def lag(mark: float | None, ahead: float | None) -> float | None:
    """How far a mark is behind, in seconds."""
    return None if mark is None or ahead is None else round(max(0.0, ahead - mark), 6)
