"""This claim compares learned progress with the best slack that could have been declared.

Both are judged by the channels that every run uses. The smallest fixed slack that is as complete as
learned progress is computed *afterwards*; nobody could have known it before. The claim compares how
long answers wait, and how many rows are held for them.

The disorder of the streams is unknown and changes. The made-up ones behave like the real ones:
sensors whose clocks drift apart, a radio link that loses contact and hands over what it held, a
market feed with busy and quiet times, and lines of different length into one stream. Real data is
read from the folder that LOWWATER_DATA names.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims import oop_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, judge
from lowwater.probe import judge_rows
from lowwater.typing import Contract

# ---- streams -------------------------------------------------------------------------------

DATA = "LOWWATER_DATA"
Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class Series:
    """The times of a stream's rows, in the order in which they arrived."""

    name: str
    part: str
    """The name of this stream among several that are judged together; empty if it is alone."""
    times: Ticks
    per_second: int
    """Ticks a second."""
    window: int
    """Length of the query's windows, in ticks."""
    arrived: Ticks | None = None
    """Arrival time of each row in ticks; None if unknown."""
    channels: Ticks | None = None
    """The number of each row's channel; None if there is one."""


def _arriving(name: str, times: Ticks, delays: Ticks, per_second: int, window: int) -> Series:
    """Return rows that arrive after their delays."""
    arrived = times + delays
    order = np.argsort(arrived, kind="stable")
    return Series(name, "", times[order], per_second, window, arrived[order])


def drifting(rows: int) -> Series:
    """Return rows of two sensors, of which one falls behind: by a hundred seconds at first and
    twenty minutes in the end, less for a while because its clock is set."""
    chance = np.random.default_rng(1)
    times = np.cumsum(chance.exponential(8.0, rows)).astype(np.int64)
    at = np.linspace(0, 1, rows)
    behind = 100 + 1_100 * at - 150 * ((at > 0.4) & (at < 0.5))
    delays = np.where(chance.random(rows) < 0.5, behind, 0) + chance.exponential(15.0, rows)
    return _arriving("drifting clocks", times, delays.astype(np.int64), 1, 300)


def bursts(rows: int) -> Series:
    """Return rows of a link that passes through bad areas, the first at once: there its delays are
    long and it loses contact. Most rows sent meanwhile arrive together when contact is back; the
    rest take another way."""
    chance = np.random.default_rng(2)
    times = np.cumsum(chance.exponential(60.0, rows)).astype(np.int64)
    at = np.linspace(0, 1, rows)
    bad = (at < 0.03) | ((at > 0.55) & (at < 0.7))
    delays = 30 + chance.gamma(2.0, 25.0, rows) * np.where(bad, 6.0, 1.0)
    for begin in times[bad][:: max(1, rows // 200)].tolist():
        end = begin + int(chance.integers(300, 1_500))
        held = (times >= begin) & (times < end) & (chance.random(rows) < 0.6)
        delays = np.where(held, end - times + delays, delays)
    return _arriving("outages", times, delays.astype(np.int64), 1_000, 1_000)


def seasons(rows: int) -> Series:
    """Return rows of a feed that is quick in quiet times and slow in busy ones."""
    chance = np.random.default_rng(3)
    times = np.cumsum(chance.exponential(1.7, rows)).astype(np.int64)
    length = max(1, rows // 12)
    busy = chance.choice([1.0, 2.0, 4.0], rows // length + 1).repeat(length)[:rows]
    delays = 5 + busy * chance.gamma(1.5, 2.0, rows)
    return _arriving("busy and quiet times", times, delays.astype(np.int64), 1_000, 100)


def lines(rows: int) -> Series:
    """Return rows of four channels: three with short delays, and one whose delays are long until it
    gets a better line."""
    chance = np.random.default_rng(4)
    times = np.cumsum(chance.exponential(10.0, rows)).astype(np.int64)
    channels = chance.integers(0, 4, rows)
    worse = np.where((channels == 3) & (np.arange(rows) < 0.3 * rows), 4.0, 1.0)
    scale = np.array([8.0, 15.0, 25.0, 80.0])[channels] * worse
    arrived = times + chance.exponential(scale).astype(np.int64)
    order = np.argsort(arrived, kind="stable")
    return Series("four lines", "", times[order], 1_000, 1_000, arrived[order], channels[order])


def made_up(quick: bool) -> list[Series]:
    """Return all made-up streams."""
    rows = 120_000 if quick else 200_000
    return [make(rows) for make in (drifting, bursts, seasons, lines)]


def real() -> Iterator[Series]:
    """Yield the real streams whose files are in the folder."""
    folder = Path(os.environ.get(DATA, "no-data"))
    packets = folder / "honeypot_marx/honeypot_marx.parquet"
    if packets.exists():
        seconds = pl.read_parquet(packets).sort("arrival_seq")["ts"].dt.epoch("s")
        yield Series("honeypots", "", _ticks(seconds), 1, 300)
    radio = folder / "ooo_umts/ooo_umts.parquet"
    if radio.exists():
        table = pl.read_parquet(radio)
        for session in table["session"].unique().sort():
            rows = table.filter(pl.col("session") == session).sort("recv_ms")
            times, arrived = _ticks(rows["detect_ms"]), _ticks(rows["recv_ms"])
            yield Series("UMTS", str(session), times, 1_000, 1_000, arrived)
    feed = folder / "binance_feed/binance_feed.parquet"
    if feed.exists():
        rows = pl.read_parquet(feed).drop_nulls("event_ms").sort("local_ns")
        arrived = _ticks(rows["local_ns"]) // 1_000_000
        yield Series("Binance", "", _ticks(rows["event_ms"]), 1_000, 100, arrived)


def _ticks(column: pl.Series) -> Ticks:
    return column.cast(pl.Int64).to_numpy()


# ---- comparison ----------------------------------------------------------------------------

TARGETS = (0.99, 0.999)
NEAR = 0.003
"""The most by which the share of rows on time may differ from the target."""
PHASES = 50
"""Number of offsets at which windows begin, so that no single grid decides the result."""


@dataclass(frozen=True)
class Trace:
    """The marks, completeness and delays that a contract gives a stream."""

    met: Ticks
    """For each row, the mark at which it was judged."""
    complete: float
    delay: float
    """Mean ticks from a window's end to the newest time when the window was answered."""
    waited: float | None
    """Mean ticks from the arrival of the first row beyond a window to its answer; None if arrivals
    are unknown."""
    held: float
    """Mean number of rows in open windows."""


def trace(series: Series, contract: Contract) -> Trace:
    """Judge a stream row by row, and follow its windows."""
    times = series.times
    tops = np.maximum.accumulate(times)
    met, marks = _judged(series, contract)
    kept = times >= met
    step = max(1, series.window // PHASES)
    offsets = np.arange(1, series.window // step + 1)
    ends = np.unique(np.unique(times[kept] // step)[:, None] + offsets) * step
    answered = np.searchsorted(marks, ends)
    by_marks = answered < len(times)  # the others are answered by the stream's end
    ends, answered = ends[by_marks], answered[by_marks]
    waited = None
    if series.arrived is not None:
        passed = np.searchsorted(tops, ends)
        waited = float((series.arrived[answered] - series.arrived[passed]).mean())
    closed = np.searchsorted(marks, (times[kept] // series.window + 1) * series.window)
    held = float((closed - np.flatnonzero(kept)).sum() / len(times))
    delay = float((tops[answered] - ends).mean())
    return Trace(met, float(kept.mean()), delay, waited, held)


def _judged(series: Series, contract: Contract) -> tuple[Ticks, Ticks]:
    """Return for each row the mark at which it was judged, and the stream's mark after it."""
    times = series.times
    if series.channels is None:
        return judge_rows(contract, times, series.per_second)
    met = np.empty(len(times), dtype=np.int64)
    least = np.full(len(times), np.iinfo(np.int64).max)
    for each in np.unique(series.channels):
        rows = np.flatnonzero(series.channels == each)
        met[rows], marks = judge_rows(contract, times[rows], series.per_second)
        before = np.searchsorted(rows, np.arange(len(times)), "right")
        after = np.concatenate([met[rows[:1]], marks])
        least = np.minimum(least, after[before])
    return met, least


def smallest_slack(series: Series, met: Ticks) -> int:
    """Return the least slack in ticks with which every channel is as complete as with these marks.

    A contract holds for each channel by itself, so its completeness is measured by channel.
    """
    parts = series.channels if series.channels is not None else np.zeros(len(series.times))
    least = 0
    for each in np.unique(parts):
        times = series.times[parts == each]
        lateness = np.sort(np.maximum.accumulate(times) - times)
        kept = int((times >= met[parts == each]).sum())
        least = max(least, int(lateness[max(0, kept - 1)]))
    return least


def compare(series: Series, target: float) -> dict[str, Any]:
    """Return one line of the table."""
    learned = trace(series, lw.learned(completeness=target))
    slack = smallest_slack(series, learned.met)
    fixed = trace(series, lw.within(slack / series.per_second))
    second = series.per_second
    return {
        "stream": series.name,
        "part": series.part,
        "rows": len(series.times),
        "target": target,
        "complete": learned.complete,
        "fixed_complete": fixed.complete,
        "fixed_slack_seconds": slack / second,
        "delay_seconds": learned.delay / second,
        "fixed_delay_seconds": fixed.delay / second,
        "arrival_delay_seconds": None if learned.waited is None else learned.waited / second,
        "fixed_arrival_delay_seconds": None if fixed.waited is None else fixed.waited / second,
        "held_rows": learned.held,
        "fixed_held_rows": fixed.held,
    }


def measured(streams: Iterable[Series]) -> pl.DataFrame:
    """Measure all streams at all targets of completeness."""
    lines = [compare(series, target) for series in streams for target in TARGETS]
    return pl.DataFrame(lines, infer_schema_length=None)


def judged(table: pl.DataFrame) -> pl.DataFrame:
    """Return a line for each stream and target: means over its parts, and whether it holds."""
    figures = [
        name for name in table.columns if name.endswith(("complete", "seconds", "held_rows"))
    ]
    whole = table.group_by("stream", "target", maintain_order=True).agg(
        pl.len().alias("parts"), pl.col("rows").sum(), *(pl.col(name).mean() for name in figures)
    )
    near = (pl.col("complete") - pl.col("target")).abs() <= NEAR
    sooner = pl.col("delay_seconds") < pl.col("fixed_delay_seconds")
    return whole.with_columns(
        (pl.col("delay_seconds") / pl.col("fixed_delay_seconds")).alias("ratio"),
        (near & sooner).alias("holds"),
    )


def run_learned(quick: bool) -> Outcome:
    """Measure completeness and delay of learned progress, over streams that change."""
    table = measured([*made_up(quick), *real()])
    whole = judged(table)
    ours = "; ".join(_line(part) for part in whole.partition_by("stream", maintain_order=True))
    criteria = [
        Criterion(held, f"{stream} at {target:.1%}: off the target, or no sooner")
        for stream, target, held in whole.select("stream", "target", "holds").iter_rows()
    ]
    return judge(ours, criteria, table, lambda figure: plots.learned(figure, whole, TARGETS))


def _line(part: pl.DataFrame) -> str:
    shares = [
        f"{each['complete']:.2%} of {each['target']:.1%} at {each['ratio']:.0%} of the delay"
        for each in part.iter_rows(named=True)
    ]
    return f"{part['stream'][0]}: {', '.join(shares)}"


LEARNED = Claim(
    "OOP-LEARNED",
    "Progress learned from lateness, against the best fixed slack",
    "slack is stated beforehand, by someone who knows the stream",
    f"rows on time within {NEAR:.1%} of 99 % and 99.9 %; answers sooner than with the least fixed"
    " slack that is as complete",
    run_learned,
)
