"""Pull queries on Spark: the table of a run has the newest answer of each key after the last
committed batch, with any sink, and goes on from a checkpoint with all keys."""

from __future__ import annotations

import shutil
import time
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.support.oracle import answer, table_rows

SCHEMA = "ts bigint, k string, v bigint"
EXTRA = ["_time", "_age", "_staleness"]
Rows = list[tuple[int, str, int]]


def write(folder: Path, rows: Rows) -> None:
    folder.mkdir(exist_ok=True)
    table = pl.DataFrame(rows, {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}, orient="row")
    table.write_parquet(folder / f"{len(list(folder.iterdir()))}.parquet")


def source(spark: Any, folder: Path, **options: Any) -> lw.Stream:
    rows = spark.readStream.schema(SCHEMA).parquet(str(folder))
    return lw.stream(rows, name="S", time="ts", update_key="k", **options)


def pulled(run: lw.Run) -> Counter[tuple[Any, ...]]:
    for row in run.table().to_pylist():
        found = run.latest(row["k"])
        assert found is not None
        assert {n: v for n, v in found.items() if n not in EXTRA} == {
            n: v for n, v in row.items() if n not in EXTRA
        }
    return table_rows(run.table().drop_columns(EXTRA))


def test_the_table_goes_on_from_a_checkpoint_with_all_keys(spark, tmp_path):
    """Three runs: new keys; a row that deletes one, alone; and a checkpoint without its table."""
    folder, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    written: Rows = []

    def run(rows: Rows) -> lw.Run:
        written.extend(rows)
        write(folder, rows)
        stream = source(spark, folder, delete_when="v = 0")
        started = stream.map(w="v * 2").run(
            engine="spark",
            session=spark,
            sink=lambda table: None,
            checkpoint=checkpoint,
            trigger="available-now",
            buckets=2,
        )
        started.await_termination()
        return started

    def expected() -> Counter[tuple[Any, ...]]:
        table = pl.DataFrame(written, ["ts", "k", "v"], orient="row")
        sql = """SELECT ts, k, v, v * 2 FROM (SELECT * FROM S
            QUALIFY row_number() OVER (PARTITION BY k ORDER BY ts DESC) = 1) WHERE v <> 0"""
        return answer(sql, {"S": table})

    first = run([(n, f"k{n % 7}", n + 1) for n in range(50)])
    assert pulled(first) == expected()
    assert first.latest("k1")["_staleness"] == 0
    second = run([(60, "k3", 0)])
    assert pulled(second) == expected()
    assert second.latest("k3") is None
    assert second.latest("k2")["ts"] == 44
    assert not list((checkpoint / "answers").glob("batch-*")), "they are in the file of all keys"

    shutil.rmtree(checkpoint / "answers")
    with pytest.warns(lw.StreamWarning, match=r"know the keys from batch \d+ on only"):
        third = run([(70, "k3", 5), (71, "new", 6)])
    assert {row["k"] for row in third.table().to_pylist()} == {"k3", "new"}


def test_answers_that_wait_are_stale_while_the_run_goes_on(spark, tmp_path):
    def slowly(rows: pl.DataFrame) -> pl.DataFrame:
        time.sleep(0.005 * rows.height)
        return rows

    folder = tmp_path / "in"
    write(folder, [(n, f"k{n % 100}", n) for n in range(1_000)])
    stream = source(spark, folder, budget="20 milliseconds").apply(slowly)
    run = stream.run(engine="spark", session=spark, buckets=2)
    while not 0 < run.table().num_rows < 100:
        assert not run.await_termination(0.05)
    write(folder, [(n, f"k{n % 100}", n) for n in range(1_000, 1_100)])
    stale: dict[str, Any] | None = None
    while stale is None:
        assert not run.await_termination(0.05)
        rows = run.table().to_pylist()
        stale = next((row for row in rows if row["_staleness"] > 0), None)
    assert stale["ts"] < 1_000
    assert stale["_age"] > 0
    run.stop()


def test_windows_and_joins_have_the_tables_of_the_embedded_engine(spark):
    chance = [(n, f"k{n % 5}", n % 4) for n in range(300)]
    table = pl.DataFrame(chance, ["ts", "k", "v"], orient="row")

    def stream(name: str, **options: Any) -> lw.Stream:
        return lw.stream(lw.replay(table), name=name, time="ts", update_key="k", **options)

    windows = stream("S", expire=30).where("k <> 'k1' OR ts < 100").window("10 s")
    by_window = windows.group_by("k").agg(n="count(*)")
    other = stream("B", delete_when="v = 1 AND k = 'k2'").select("ts", "k", u="v")
    for query in (by_window, stream("A", expire=40).join(other, on="k")):
        here, there = query.run(), query.run("spark", session=spark, chunk_rows=60, buckets=2)
        for run in (here, there):
            run.await_termination()
        found = [table_rows(run.table().drop_columns(["_age"])) for run in (here, there)]
        assert found[0] == found[1]
        assert 0 < sum(found[0].values()) < 5
