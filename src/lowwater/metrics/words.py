"""Metrics become words here: times, lengths, shares and sizes, and sentences about operators."""

from __future__ import annotations

from datetime import datetime

from lowwater.joins.oblivious.estimates import ACCURACY, GIVEN_UP, LATE_ROWS
from lowwater.metrics.streams import HoldingChannel
from lowwater.metrics.values import OperatorMetrics, UpdateMetrics
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES
from lowwater.stream.duration import spell


def moment(mark: datetime | int | None) -> str:
    """Return a mark as a date and time, or as a number; a dash if there is none."""
    if mark is None:
        return "-"
    if isinstance(mark, datetime):
        whole = mark.replace(tzinfo=None).isoformat(" ", "milliseconds")
        return whole.removesuffix(".000")
    return f"{mark:,}"


def length(seconds: float) -> str:
    """Return a length of time: in seconds below 100 s, above in its two largest units."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, "d"), (hours, "h"), (minutes, "min"), (rest, "s")]
    some = [f"{count} {unit}" for count, unit in parts if count]
    return " ".join(some[:2])


def percent(share: float) -> str:
    """Return a share in percent, rounded down to three decimals, so that only all is 100 %."""
    return f"{int(share * 1e5) / 1e3:.3f}".rstrip("0").rstrip(".") + " %"


def size(amount: int) -> str:
    """Return an amount of bytes in the unit that fits; a kilobyte is 1000 bytes."""
    units = ("B", "kB", "MB", "GB", "TB")
    value = float(amount)
    for unit in units[:-1]:
        if value < 1_000:
            return f"{value:.0f} {unit}" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1_000
    return f"{value:.1f} {units[-1]}"


# ---- sentences ---------------------------------------------------------------------------------


def join_words(operator: OperatorMetrics) -> str | None:
    """Return the share of its results that a join without a window found, and why it lost others;
    None for other operators."""
    found = operator.readings
    if ACCURACY not in found:
        return None
    lost = [f"{found[LATE_ROWS]:,} rows came too late for it"] if found[LATE_ROWS] else []
    if found[GIVEN_UP]:
        lost.append(f"{found[GIVEN_UP]:,} had no place in memory")
    if not lost or found[ACCURACY] == 1:
        return f"{operator.title}: all results found"
    share = f"about {found[ACCURACY] * 100:.5g} % of results found"
    return f"{operator.title}: {share}; {', '.join(lost)}"


def update_words(operator: OperatorMetrics) -> str | None:
    """Return the staleness of an update stream, and the number of rows that wait and that newer
    ones replaced; None for other operators."""
    queue = UpdateMetrics.of(operator)
    if queue is None:
        return None
    worst = ", ".join(map(str, queue.stalest_key))
    stale = f"{queue.staleness_seconds:.3g} s out of date on average"
    if queue.keys > 1:
        stale += f" (most: {worst}, {queue.stalest_seconds:.3g} s)"
    things = "windows" if queue.of_windows else "rows"
    gone = f"{queue.given_up:,} {things} given up for newer ones"
    return f"{queue.title}: {queue.keys:,} keys, {stale}; {gone}, {queue.waiting:,} wait"


def strategy_words(operator: OperatorMetrics) -> str | None:
    """Return the strategy that an operator chose and its reason; None if it has no choice."""
    found = operator.readings
    return f"{operator.title}: {found[STRATEGY]}, {found[REASON]}" if SWITCHES in found else None


def holding_words(holding: HoldingChannel) -> str:
    """Return a sentence about the channel that holds a stream back, with its lag and a remedy."""
    text = f"channel {holding.channel!r} holds the stream back: it "
    if holding.behind_nanoseconds is None:
        text += "has promised nothing yet"
    else:
        text += f"is {spell(holding.behind_nanoseconds)} behind the one furthest ahead"
    if holding.stale_after is not None:
        return f"{text}; a channel is stale by stale_after={holding.stale_after!r}"
    return (
        f"{text}; with stale_after='1 hour' (STALE AFTER 1 HOUR in a pipeline) a channel that is"
        " further behind than that no longer does"
    )
