"""Windows of update streams on Spark: whole ones, the newest of each key, across restarts."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater as lw

KEYS = 40
SCHEMA = "ts bigint, key bigint, v bigint"


def slowly(rows: pl.DataFrame) -> pl.DataFrame:
    """Work that takes its time."""
    time.sleep(0.01 * rows.height)
    return rows


def rows_of(first: int, until: int) -> pl.DataFrame:
    """A row of every key at every time."""
    times = [ts for ts in range(first, until) for _ in range(KEYS)]
    return pl.DataFrame(
        {"ts": times, "key": [*range(KEYS)] * (until - first), "v": range(len(times))}
    )


def begun(run: lw.Run) -> bool:
    """Whether a window has begun to be worked on."""
    found = [each for each in run.metrics().operators if each.title.startswith("update windows")]
    return any(each.about.get("worked on") or each.about.get("windows shown") for each in found)


def spark_rows(spark: Any, folder: Path) -> pl.DataFrame:
    """What a folder of results shows."""
    return pl.DataFrame(spark.read.parquet(str(folder)).toArrow())


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_windows_that_are_shown_are_whole_and_the_newest_is_shown(
    spark: Any, tmp_path: Path, windows: Any
) -> None:
    folder, out = tmp_path / "in", tmp_path / "out"
    folder.mkdir()
    parts = [rows_of(at, at + 5) for at in (0, 5, 10)]

    def run(trigger: str | None, budget: str) -> lw.Run:
        source = spark.readStream.schema(SCHEMA).parquet(str(folder))
        stream = lw.stream(
            source, name="S", time="ts", update_key="key", windows=windows, budget=budget
        )
        query = stream.window(4, slide=2).group_by("key").agg(n="count(*)", total="sum(v)")
        return query.apply(slowly).run(
            engine="spark",
            session=spark,
            sink=out,
            checkpoint=tmp_path / "checkpoint",
            trigger=trigger,
            buckets=2,
        )

    parts[0].write_parquet(folder / "0.parquet")
    started = run(None, "50 milliseconds")
    while not begun(started):
        assert not started.await_termination(0.05)
    started.stop()
    parts[1].write_parquet(folder / "1.parquet")
    parts[2].write_parquet(folder / "2.parquet")
    run("available-now", "1 minute").await_termination()
    found = spark_rows(spark, out)
    assert not found.select("key", "window_start").is_duplicated().any()
    every = pl.concat(parts)
    for start, key, n, total in found.select("window_start", "key", "n", "total").iter_rows():
        own = every.filter(pl.col("key") == key, pl.col("ts").is_between(start, start + 3))
        assert (n, total) == (own.height, own["v"].sum())
    newest = found.group_by("key").agg(pl.col("window_start").max())
    if windows == "lazy":  # the last that ends by 14
        assert newest["window_start"].to_list() == [10] * KEYS
    else:  # that from 14 on has begun for all keys, and only those begun before it are over
        assert newest["window_start"].unique().to_list() == [4]
        assert 0 < newest.height < KEYS


@pytest.mark.parametrize("windows", ["lazy", "eager"])
def test_where_work_takes_no_time_all_windows_are_shown(spark: Any, windows: Any) -> None:
    stream = lw.stream(
        lw.replay(rows_of(0, 9)), name="S", time="ts", update_key="key", windows=windows
    )
    query = stream.where("key < 5").window(3, slide=1).group_by("key").agg(n="count(*)")
    here = pl.DataFrame(query.collect()).sort("window_start", "key")
    there = query.collect("spark", session=spark, chunk_rows=70, buckets=2)
    assert here.equals(pl.DataFrame(there).sort("window_start", "key"))
    assert here.height == 5 * 11
