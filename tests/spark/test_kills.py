"""Exactly once: a run that is killed at any point and started again answers as if it had not been.

A short form runs with the other tests; ``make soak`` sets LOWWATER_SOAK to run many kills.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import pytest

from tests.support.killing import kill_driver, kill_worker, make_data, survive

pytestmark = pytest.mark.xdist_group("spark")
ROUNDS = int(os.environ.get("LOWWATER_SOAK", "1"))


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_killed_and_started_again_each_result_is_there_once(spark, tmp_path: Path, seed: int):
    kills = [kill_driver, kill_worker] if ROUNDS == 1 else [kill_driver, kill_worker] * 3
    make_data(tmp_path, files=4 * len(kills) + 4, rows=1_000, seed=seed)
    hits = survive(tmp_path, kills, seed)
    assert hits or ROUNDS == 1  # a kill between batches proves less
    results = pl.from_arrow(spark.read.parquet(str(tmp_path / "results")).toArrow())
    late = pl.read_parquet(tmp_path / "late" / "batch-*.parquet")
    assert results.select("window_start", "k").is_duplicated().sum() == 0
    expected, refused = _oracle(tmp_path / "data")
    last = results["window_end"].max()
    keys = ["window_start", "window_end", "k"]
    answered = expected.filter(pl.col("window_end") <= last)
    assert results.sort(keys).equals(answered.select(results.columns).sort(keys))
    assert sorted(late.select("_stream", "ts", "k", "v").rows()) == sorted(refused.rows())
    assert answered.height > 20 * 3


def _oracle(data: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The batch answer over the rows that kept the promise, and those that did not."""
    sides, refused = {}, []
    for name in ("left", "right"):
        mark, kept = None, []
        for path in sorted((data / name).glob("*.parquet")):  # one file a batch
            rows = pl.read_parquet(path)
            late = rows.filter(pl.col("ts") < mark) if mark is not None else rows.clear()
            refused.append(late.select(pl.lit(name).alias("_stream"), "ts", "k", "v"))
            kept.append(rows.join(late, on=["ts", "k", "v"], how="anti"))
            newest = rows["ts"].max() - pl.Series([5_000_000]).cast(pl.Duration("us"))[0]
            mark = newest if mark is None else max(mark, newest)
        sides[name] = pl.concat(kept)
    pairs = (
        sides["left"]
        .join(sides["right"], on="k", suffix="_right")
        .filter((pl.col("ts") - pl.col("ts_right")).abs() <= pl.duration(seconds=10))
    )
    start = pl.col("ts").dt.truncate("1m").alias("window_start")
    counted = pairs.group_by(start, "k").agg(n=pl.len().cast(pl.Int64), top=pl.col("v").max())
    counted = counted.with_columns(window_end=pl.col("window_start") + pl.duration(minutes=1))
    return counted, pl.concat(refused)
