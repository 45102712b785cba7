"""Real disorder: packets at honeypots whose clocks drift, if the data is at hand.

Set LOWWATER_DATA to a folder that holds honeypot_marx/honeypot_marx.parquet. Learned progress is
also tried on ooo_umts/ooo_umts.parquet and binance_feed/binance_feed.parquet, if they are there.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

import lowwater as lw
from lowwater.claims import learned
from lowwater.claims.learned_streams import real

DATA = Path(os.environ.get("LOWWATER_DATA", "no-data")) / "honeypot_marx/honeypot_marx.parquet"


@pytest.fixture(scope="module")
def packets() -> pl.DataFrame:
    if not DATA.exists():
        pytest.skip("LOWWATER_DATA does not name a folder with the honeypot data")
    return pl.read_parquet(DATA)


def per_minute(packets: pl.DataFrame, **options: str) -> lw.Run:
    stream = lw.stream(packets, name="honeypots", time="ts", progress=lw.ordered(), **options)
    run = stream.window("1 minute").agg(n="count(*)").run()
    run.await_termination()
    return run


def test_a_promise_per_host_loses_nothing(packets: pl.DataFrame) -> None:
    run = per_minute(packets, channel="host")
    counted = pl.DataFrame(run.results()).select("window_start", "n").sort("window_start")
    minute = pl.col("ts").dt.truncate("1m").alias("window_start")
    batch = packets.group_by(minute).agg(n=pl.len().cast(pl.Int64)).sort("window_start")
    assert run.metrics().late_rows == 0
    assert counted.equals(batch)


def test_one_merged_promise_finds_exactly_the_late_half(packets: pl.DataFrame) -> None:
    late = int((packets["ts"] < packets["ts"].cum_max()).sum())
    run = per_minute(packets)
    assert run.metrics().late_rows == late == run.late_rows().num_rows
    assert round(late / packets.height, 3) == 0.507


def test_learned_progress_is_complete_and_sooner_than_the_best_fixed_slack() -> None:
    streams = list(real())
    if not streams:
        pytest.skip("LOWWATER_DATA does not name a folder with streams to learn from")
    whole = learned.judged(learned.measured(streams))
    assert whole["holds"].all(), whole.filter(~pl.col("holds")).to_dicts()
