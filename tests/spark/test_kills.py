"""Exactly once: a run that is killed at any point and started again answers as if it had not been.

A short form runs with the other tests; ``make soak`` sets LOWWATER_SOAK to run many kills.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from tests.support.killing import (
    committed,
    judged,
    kill_driver,
    kill_worker,
    make_data,
    oracle,
    pairs_of,
    survive,
)

ROUNDS = int(os.environ.get("LOWWATER_SOAK", "1"))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_and_started_again_each_result_is_there_once(tmp_path: Path, seed: int):
    kills = [kill_driver, kill_worker] if ROUNDS == 1 else [kill_driver, kill_worker] * 3
    make_data(tmp_path, files=4 * len(kills) + 4, rows=1_000, seed=seed)
    hits = survive(tmp_path, kills, seed)
    assert hits or ROUNDS == 1  # a kill between batches proves less
    results = committed(tmp_path / "results")
    late = pl.read_parquet(tmp_path / "late" / "batch-*.parquet")
    assert results.select("window_start", "k").is_duplicated().sum() == 0
    expected, refused = oracle(tmp_path / "data")
    last = results["window_end"].max()
    keys = ["window_start", "window_end", "k"]
    answered = expected.filter(pl.col("window_end") <= last)
    assert results.sort(keys).equals(answered.select(results.columns).sort(keys))
    assert sorted(late.select("_stream", "ts", "k", "v").rows()) == sorted(refused.rows())
    assert answered.height > 20 * 3


def test_killed_and_started_again_what_waits_goes_on_waiting(tmp_path: Path):
    make_data(tmp_path, files=8, rows=1_000, seed=2)
    survive(tmp_path, [kill_driver, kill_worker], 2, "updates")
    shown = committed(tmp_path / "results")
    rows = judged(tmp_path / "data")[0]["left"]
    newest = rows.group_by("k").agg(pl.col("ts").max())
    assert shown.group_by("k").agg(pl.col("ts").max()).sort("k").equals(newest.sort("k"))
    assert shown.select("k", "ts").is_duplicated().sum() == 0
    assert shown.join(rows, on=["k", "ts", "v"], how="anti").is_empty()
    assert shown.height < rows.height / 10


def test_killed_and_started_again_rows_go_on_in_order(tmp_path: Path):
    make_data(tmp_path, files=8, rows=1_000, seed=1)
    survive(tmp_path, [kill_driver], 1, "in-order")
    results = committed(tmp_path / "results")
    assert results["ts"].is_sorted()
    pairs = pairs_of(judged(tmp_path / "data")[0], pl.duration(milliseconds=200))
    latest = pairs.select("k", "v", "v_right", ts=pl.max_horizontal("ts", "ts_right"))
    answered = latest.filter(pl.col("ts") <= results["ts"].max())
    assert results.height > 1_000
    order = ["ts", "v", "v_right"]
    assert results.sort(order).equals(answered.select(results.columns).sort(order))
