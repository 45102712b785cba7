"""Update streams on Spark: what there is no time for waits in state, and is replaced there."""

from __future__ import annotations

import time
from pathlib import Path

import polars as pl

import lowwater as lw

KEYS = 200
SCHEMA = "ts bigint, key bigint, number bigint"


def slowly(rows: pl.DataFrame) -> pl.DataFrame:
    """Work that takes its time."""
    time.sleep(0.003 * rows.height)
    return rows


def write(folder: Path, name: str, first: int, keys: range, times: int) -> None:
    """So many updates of each key, with times and numbers from a first one on."""
    folder.mkdir(exist_ok=True)
    numbers = range(first, first + len(keys) * times)
    rows = {"ts": numbers, "key": [*keys] * times, "number": numbers}
    pl.DataFrame(rows).write_parquet(folder / f"{name}.parquet")


def test_what_waits_goes_on_from_the_checkpoint_and_is_replaced_by_newer_rows(spark, tmp_path):
    folder = tmp_path / "in"

    def run(budget: str, trigger: str | None, shown: list[pl.DataFrame]) -> lw.Run:
        source = spark.readStream.schema(SCHEMA).parquet(str(folder))
        stream = lw.stream(source, name="S", time="ts", update_key="key", budget=budget)
        return stream.apply(slowly).run(
            engine="spark",
            session=spark,
            sink=lambda table: shown.append(pl.DataFrame(table)),
            checkpoint=tmp_path / "checkpoint",
            trigger=trigger,
            buckets=2,
        )

    first: list[pl.DataFrame] = []
    write(folder, "a", 0, range(KEYS), 5)
    started = run("1 millisecond", None, first)
    while not started.metrics().operator("update").about:  # a batch is done, and was told of
        assert not started.await_termination(0.05)
    started.stop()
    about = started.metrics().operator("update").about
    assert about["keys"] == KEYS
    assert 0 < about["waiting"] < KEYS
    assert about["given up for newer ones"] == 4 * KEYS

    second: list[pl.DataFrame] = []
    write(folder, "b", 5 * KEYS, range(0, KEYS, 2), 1)
    ended = run("1 minute", "available-now", second)
    ended.await_termination()
    shown = pl.concat([each for each in (*first, *second) if each.height])
    shown = shown.unique(maintain_order=True)  # a batch that was cut off is run again, and the same
    assert shown.select("key", "ts").is_duplicated().sum() == 0
    assert shown.group_by("key").agg(pl.col("ts").is_sorted())["ts"].all()
    newest = shown.group_by("key").agg(pl.col("number").max()).sort("key")["number"].to_list()
    updated = iter(range(5 * KEYS, 5 * KEYS + KEYS // 2))
    assert newest == [4 * KEYS + key if key % 2 else next(updated) for key in range(KEYS)]
    metrics = ended.metrics().operator("update")
    assert metrics.about["waiting"] == 0
    assert metrics.staleness is not None
    assert metrics.staleness.keys == KEYS
    assert metrics.staleness.application > metrics.staleness.queue > 0


def test_on_a_clock_on_which_work_takes_no_time_all_rows_are_shown(spark):
    table = pl.DataFrame({"ts": range(40), "key": [n % 3 for n in range(40)], "v": range(40)})
    stream = lw.stream(lw.replay(table), name="S", time="ts", update_key="key")
    query = stream.where("v > 3").map(w="v * 2")
    here = query.collect()
    there = query.collect("spark", session=spark, chunk_rows=7, buckets=2)
    assert pl.DataFrame(here).sort("v").equals(pl.DataFrame(there).sort("v"))
    assert here.num_rows == 36


def test_keys_that_have_expired_or_were_deleted_are_gone_from_the_checkpoint(spark, tmp_path):
    """Keys come and go, and the run is ended and begun again on the way."""
    folder, out = tmp_path / "in", tmp_path / "out"
    states = []
    for part in range(3):
        write(folder, str(part), part * 1_000, range(part * 100, part * 100 + 100), 2)
        source = spark.readStream.schema(SCHEMA).parquet(str(folder))
        stream = lw.stream(
            source,
            name="S",
            time="ts",
            update_key="key",
            expire=500,
            delete_when="number = 1199",
        )
        run = stream.run(
            engine="spark",
            session=spark,
            sink=out,
            checkpoint=tmp_path / "checkpoint",
            trigger="available-now",
            buckets=2,
        )
        run.await_termination()
        states.append(run.metrics().operator("update"))
    shown = pl.DataFrame(spark.read.parquet(str(out)).toArrow())
    newest = shown.group_by("key").agg(pl.col("number").max()).sort("key")["number"].to_list()
    assert newest == [part * 1_000 + 100 + key for part in range(3) for key in range(100)]
    assert [each.about["keys"] for each in states] == [100, 100, 100]
    assert [each.about["keys expired"] for each in states] == [0, 100, 199]
    assert [each.about["keys deleted"] for each in states] == [0, 0, 1]
    assert all(each.state_rows == 100 for each in states)
    assert all(30_000 < each.state_bytes < 300_000 for each in states)
