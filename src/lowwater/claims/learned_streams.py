"""Streams whose disorder nobody knows and which changes as they go: made up, and real if at hand.

The made-up ones behave like the real ones: sensors whose clocks drift apart, a radio link that
loses contact and hands over what it held, a market feed with busy and quiet times, and lines of
different length into one stream. Real data is looked for in the folder that LOWWATER_DATA names.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

DATA = "LOWWATER_DATA"
Ticks = NDArray[np.int64]


@dataclass(frozen=True)
class Series:
    """The times of a stream's rows, in the order in which they arrived."""

    name: str
    part: str
    """One of several streams that are judged together; empty if it is alone."""
    times: Ticks
    per_second: int
    """Ticks a second."""
    window: int
    """The windows that are asked for, in ticks."""
    arrived: Ticks | None = None
    """When rows arrived, in ticks, where that is known."""
    channels: Ticks | None = None
    """The number of each row's channel, if there are several."""


def _arriving(name: str, times: Ticks, delays: Ticks, per_second: int, window: int) -> Series:
    """Rows in the order in which their delays let them arrive."""
    arrived = times + delays
    order = np.argsort(arrived, kind="stable")
    return Series(name, "", times[order], per_second, window, arrived[order])


def drifting(rows: int) -> Series:
    """Two sensors, of which one falls behind: a hundred seconds at first, twenty minutes in the
    end, with steps back when its clock is set."""
    chance = np.random.default_rng(1)
    times = np.cumsum(chance.exponential(8.0, rows)).astype(np.int64)
    at = np.linspace(0, 1, rows)
    behind = 100 + 1_100 * at - 150 * ((at > 0.4) & (at < 0.5))
    delays = np.where(chance.random(rows) < 0.5, behind, 0) + chance.exponential(15.0, rows)
    return _arriving("drifting clocks", times, delays.astype(np.int64), 1, 300)


def bursts(rows: int) -> Series:
    """A link that passes through bad areas, one right at the beginning: there its delays are long
    and it loses contact; most of what was sent meanwhile is handed over at once, the rest had
    found another way."""
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
    """A feed that is quick in quiet times and slow in busy ones."""
    chance = np.random.default_rng(3)
    times = np.cumsum(chance.exponential(1.7, rows)).astype(np.int64)
    length = max(1, rows // 12)
    busy = chance.choice([1.0, 2.0, 4.0], rows // length + 1).repeat(length)[:rows]
    delays = 5 + busy * chance.gamma(1.5, 2.0, rows)
    return _arriving("busy and quiet times", times, delays.astype(np.int64), 1_000, 100)


def lines(rows: int) -> Series:
    """Four channels into one stream: three of short delays, and one whose delays are long, until
    it is given a better line."""
    chance = np.random.default_rng(4)
    times = np.cumsum(chance.exponential(10.0, rows)).astype(np.int64)
    channels = chance.integers(0, 4, rows)
    worse = np.where((channels == 3) & (np.arange(rows) < 0.3 * rows), 4.0, 1.0)
    scale = np.array([8.0, 15.0, 25.0, 80.0])[channels] * worse
    arrived = times + chance.exponential(scale).astype(np.int64)
    order = np.argsort(arrived, kind="stable")
    return Series("four lines", "", times[order], 1_000, 1_000, arrived[order], channels[order])


def made_up(quick: bool) -> list[Series]:
    """All made-up streams."""
    rows = 120_000 if quick else 200_000
    return [make(rows) for make in (drifting, bursts, seasons, lines)]


def real() -> Iterator[Series]:
    """The real streams that are at hand."""
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
