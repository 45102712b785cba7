"""Order on Spark: rows never go back, within a batch and from batch to batch, in any sink."""

from __future__ import annotations

import json
import os
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.spark.driver.written_files import logged
from tests.support.oracle import multiset, table_rows

ROWS, KEYS, BUCKETS = 600, 7, 4
GREATER = """
    SELECT GREATEST(A.ts, B.ts) AS ts, A.v AS a, B.v AS b FROM A, B
    WHERE A.k = B.k AND A.ts - B.ts BETWEEN -10 AND 10 ORDER BY ts
"""
MANY = {"engine": "spark", "buckets": BUCKETS, "chunk_rows": 100}
"""Six batches."""


def rows(seed: int, late: int = 3) -> pl.DataFrame:
    """Rows at most five seconds behind, but for some; no two have the same time."""
    rng = np.random.default_rng(seed)
    micros = np.sort(rng.choice(300_000_000, ROWS, replace=False))
    micros = micros - rng.integers(0, 5_000_000, ROWS)
    micros[rng.integers(ROWS // 2, ROWS, late)] -= 60_000_000
    return pl.DataFrame(
        {
            "ts": pl.Series(micros).cast(pl.Datetime("us")),
            "k": rng.integers(0, KEYS, ROWS),
            "v": rng.permutation(ROWS),
        }
    )


def stream(source: Any, name: str) -> lw.Stream:
    return lw.stream(
        source, name=name, time="ts", progress=lw.within("5 seconds"), late="drop", jump=None
    )


def greater() -> lw.Stream:
    return lw.sql(GREATER, A=stream(rows(1), "A"), B=stream(rows(2), "B"))


def latest() -> lw.Stream:
    pairs = stream(rows(1), "A").join(stream(rows(2), "B"), on="k", within="10 seconds")
    return pairs.select(ts="greatest(ts, ts_right)", a="v", b="v_right").order_by("ts")


def both() -> lw.Stream:
    return stream(rows(3), "A").union(stream(rows(4), "B")).order_by()


def file_stream(spark, folder: Path, name: str, seed: int) -> lw.Stream:
    """The same rows as a live source: six files, one a batch, read in several tasks."""
    (folder / name).mkdir(parents=True)
    for number, part in enumerate(rows(seed).iter_slices(100)):
        path = folder / name / f"{number:03d}.parquet"
        part.write_parquet(path, row_group_size=30)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))
    reader = spark.readStream.schema("ts timestamp_ntz, k bigint, v bigint")
    return stream(reader.option("maxFilesPerTrigger", 1).parquet(str(folder / name)), name)


def by_batch(frame, checkpoint: Path) -> list[pl.DataFrame]:
    """The rows of each batch, as foreachBatch sees them."""
    found: list[pl.DataFrame] = []

    def keep(batch, number: int) -> None:
        assert number == len(found)
        found.append(pl.from_arrow(batch.toArrow()))

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def files_in_order(folder: Path) -> list[list[Path]]:
    """The files of each batch, as the sink's log names them."""
    log = folder / "_spark_metadata"
    found = []
    for number in range(len([each for each in log.iterdir() if each.name[:1].isdigit()])):
        part = log / str(number)
        lines = (part if part.exists() else log / f"{number}.compact").read_text().splitlines()
        paths = [json.loads(line)["path"] for line in lines[1:]]
        found.append([Path(unquote(urlsplit(path).path)) for path in paths])
    before: set[Path] = set()
    for batch in found:  # a compact part of the log repeats all before it
        batch[:] = [path for path in batch if path not in before]
        before |= set(batch)
    return found


def assert_in_order(batches: list[pl.DataFrame], least: int = 5) -> None:
    some = [batch for batch in batches if batch.height]
    assert len(some) >= least
    for batch in some:
        assert batch["ts"].is_sorted()
    for before, after in pairwise(some):
        assert before["ts"][-1] <= after["ts"][0]


@pytest.mark.parametrize("query", [greater, latest, both], ids=lambda each: each.__name__)
def test_batches_go_on_where_the_one_before_ended(spark, query):
    expected = query().collect()
    batches: list[pl.DataFrame] = []
    run = query().run(sink=lambda table: batches.append(pl.from_arrow(table)), **MANY)
    run.await_termination()
    assert_in_order(batches)
    found = pl.concat(batches)
    assert found["ts"].to_list() == expected["ts"].to_pylist()
    assert multiset(found.rows()) == table_rows(pl.from_arrow(expected))
    assert run.metrics().rows_out == found.height
    operators = [json.loads(r) for p in run.query.recentProgress[:1] for r in _reports(p)]
    assert {each["stage"] for each in operators} == {0}  # order takes no stage of its own
    assert len({each["bucket"] for each in operators}) == BUCKETS


def _reports(progress) -> list[str]:
    return progress.observedMetrics["lowwater"]["reports"]


def test_rows_of_equal_time_leave_alike_whatever_the_strategy(spark):
    """Rows of one time: those of the second input come before those of the first."""
    seconds = [
        rows(seed, late=0)
        .with_columns(pl.col("ts").dt.truncate("2s"))
        .with_columns(pl.Series("v", range(ROWS)))
        for seed in (5, 6)
    ]
    found = []
    for order in ("sync-filter", "filter-order", "adaptive"):
        one, two = (stream(each, name) for each, name in zip(seconds, "AB", strict=True))
        query = one.join(two, on="k", within="4 seconds", order=order)
        table = query.collect(**MANY)
        assert table_rows(table) == table_rows(query.collect())
        times = [(row["ts"], row["ts_right"]) for row in table.to_pylist()]
        positions = [(max(each), each[0] == max(each)) for each in times]
        assert positions == sorted(positions)
        found.append([(row["v"], row["v_right"]) for row in table.to_pylist()])
    assert found[0] == found[1] == found[2]


def test_live_batches_without_order_leave_in_order(spark, tmp_path):
    a, b = (file_stream(spark, tmp_path, name, seed) for seed, name in enumerate("AB"))
    frame = lw.sql(GREATER, A=a, B=b).to_spark(spark, buckets=BUCKETS)
    batches = by_batch(frame, tmp_path / "checkpoint")
    assert_in_order(batches)
    assert sum(batch.height for batch in batches) > ROWS


def test_a_folder_holds_one_file_a_batch_and_each_is_in_order(spark, tmp_path):
    spark.conf.set("spark.sql.streaming.fileSink.log.compactInterval", 3)
    try:
        greater().run(sink=tmp_path / "out", **MANY).await_termination()
    finally:
        spark.conf.unset("spark.sql.streaming.fileSink.log.compactInterval")
    files = files_in_order(tmp_path / "out")
    assert {len(batch) for batch in files} == {1}
    assert logged(tmp_path / "out") == [path.name for (path,) in files]
    assert_in_order([pl.read_parquet(batch) for batch in files])


def test_a_table_in_memory_is_in_order(spark, tmp_path):
    a, b = (file_stream(spark, tmp_path, name, seed) for seed, name in enumerate("AB"))
    frame = a.union(b).order_by().to_spark(spark, buckets=BUCKETS)
    writer = frame.writeStream.format("memory").queryName("in_order").outputMode("append")
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    assert len(query.recentProgress) == ROWS // 100
    found = pl.from_arrow(spark.table("in_order").toArrow())
    assert found.height > ROWS
    assert found["ts"].is_sorted()


def test_collected_rows_are_in_order_though_their_time_is_not_shown(spark):
    query = both().where("v % 2 = 0").select("v", "k")
    expected = query.collect()
    assert expected.num_rows > ROWS // 2
    assert query.collect(**MANY).to_pylist() == expected.to_pylist()  # no two times are the same


def test_what_every_bucket_chose_is_in_the_metrics(spark) -> None:
    """With alpha 0 any load is enough, so a bucket changes over once it has seen some rows."""
    one, two = stream(rows(1), "A"), stream(rows(2), "B")
    query = one.join(two, on="k", within="10 seconds", order="adaptive", alpha=0.0)
    run = query.run(session=spark, **MANY)
    run.await_termination()
    about = run.metrics().operator("join").about
    switches = int(about["switches"])
    assert 1 < switches <= BUCKETS  # keys are few, a bucket may have none
    assert str(about["strategy"]).startswith("filter-order")
    assert str(about["because"]).count("c·|w|·λ1·λ2 = ") == switches  # each its own load
    assert about["held_rows"] == 0 < about["held_rows_peak"]
    times = [max(row["ts"], row["ts_right"]) for row in run.results().to_pylist()]
    assert times == sorted(times)
    assert table_rows(run.results()) == table_rows(query.collect())
