"""Files as a source on Spark, one a batch: the answers of the oracle over the rows on time.

Within a batch nobody knows what came first, so a row is late if it is below what held before its
batch (``kept_in_batches`` is the plain definition).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

import lowwater as lw
from tests.conformance.engines import Engine
from tests.conformance.logs import world
from tests.conformance.queries import moments, windows
from tests.support.batches import kept_in_batches
from tests.support.oracle import answer, multiset, table_rows

pytestmark = pytest.mark.xdist_group("spark")


@dataclass(frozen=True)
class Files:
    """A folder of files and the streaming DataFrame that reads one of them a batch."""

    frame: Any
    table: pl.DataFrame
    sizes: list[int]

    def kept(self, contract: Any, channel: str | None) -> pl.DataFrame:
        """The rows that are on time."""
        names = self.table[channel] if channel else [""] * self.table.height
        rows = [(time, name, None) for time, name in zip(self.table["ts"], names, strict=True)]
        fine = kept_in_batches(rows, self.sizes, contract, channel is not None)
        return self.table.filter(pl.Series(fine))


Write = Callable[..., Files]


@pytest.fixture
def files(spark: SparkSession, tmp_path: Path) -> Write:
    def write(table: pl.DataFrame, cuts: Sequence[int], name: str = "files") -> Files:
        folder = tmp_path / name
        folder.mkdir()
        edges = [0, *cuts, table.height]
        sizes = [last - first for first, last in pairwise(edges)]
        for number, (first, size) in enumerate(zip(edges, sizes, strict=False)):
            path = folder / f"{number}.parquet"
            table.slice(first, size).write_parquet(path)
            os.utime(path, (number, number))  # Spark reads them in this order
        schema = spark.read.parquet(str(folder)).schema
        reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return Files(reader.parquet(str(folder)), table, sizes)

    return write


@pytest.fixture
def engine(spark: SparkSession) -> Engine:
    return Engine("spark", {"session": spark})


def numbers(rows: int = 90) -> pl.DataFrame:
    """Whole seconds with some disorder, here and there far back; two devices out of step."""
    return pl.DataFrame(
        {
            "ts": [at // 2 - at % 5 - (20 if at % 17 == 16 else 0) for at in range(rows)],
            "dev": ["ab"[at % 3 == 0] for at in range(rows)],
            "v": [at % 7 for at in range(rows)],
        }
    )


@pytest.mark.parametrize("zone", [None, "UTC"], ids=["TIMESTAMP_NTZ", "TIMESTAMP"])
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["over everything", "by key"])
def test_windows_over_files(files: Write, engine: Engine, zone: Any, keys: list[str]) -> None:
    table = world().tables["events"].with_columns(pl.col("ts").dt.replace_time_zone(zone))
    source = lw.stream(
        files(table, [60, 120]).frame, name="events", time="ts", progress=lw.within("5 seconds")
    )
    assert source.schema["ts"] == pl.Datetime("us", zone)
    query = source.where("v IS NOT NULL").window("10 seconds").group_by(*keys)
    found = engine.collect(query.agg(n="count(*)", total="sum(v)"), buckets=2)
    assert pl.DataFrame(found).schema["window_start"] == pl.Datetime("us", zone)
    naive = pl.DataFrame(found).with_columns(
        pl.col("window_start", "window_end").dt.replace_time_zone(None)
    )
    by = "".join(f"{key}, " for key in keys)
    sql = f"""SELECT ws, we, {by} count(*), sum(v) FROM {moments("events", 10)}
              WHERE v IS NOT NULL GROUP BY ALL"""
    assert table_rows(naive) == answer(sql, world().tables)


def test_rows_pass_with_every_type_they_have(files: Write, engine: Engine) -> None:
    table = world().tables["events"]
    source = lw.stream(
        files(table, [100]).frame, name="events", time="ts", progress=lw.within("5 seconds")
    )
    found = pl.DataFrame(engine.collect(source, buckets=2))
    assert found.schema == table.schema
    assert table_rows(found) == multiset(table.rows())


LATE = {
    "within": (lw.within(3), None),
    "per channel": (lw.ordered(), "dev"),
    "within rows": (lw.within_rows(4), None),
}


@pytest.mark.parametrize("name", LATE)
def test_rows_below_the_marks_of_earlier_batches_are_late(
    files: Write, engine: Engine, name: str
) -> None:
    contract, channel = LATE[name]
    given = files(numbers(), [20, 45, 60])
    source = lw.stream(given.frame, name="log", time="ts", progress=contract, channel=channel)
    run = engine.run(source.select("ts", "dev", twice="v * 2"), buckets=2, trigger="available-now")
    kept = given.kept(contract, channel)
    late = given.table.join(kept, on=given.table.columns, how="anti")
    assert 0 < late.height < given.table.height / 2
    assert table_rows(run.results()) == answer("SELECT ts, dev, v * 2 FROM kept", {"kept": kept})
    side = pl.DataFrame(run.late_rows("log"))
    assert multiset(side.select(late.columns).rows()) == multiset(late.rows())
    assert run.metrics().late_rows == late.height
    assert set(side["_reason"]) == {"late"}
    assert (side["_late_by_seconds"] == side["_mark"] - side["ts"]).all()


def test_windows_over_the_rows_that_are_on_time(files: Write, engine: Engine) -> None:
    given = files(numbers(), [20, 45, 60])
    source = lw.stream(given.frame, name="log", time="ts", channel="dev")
    sliding = source.select("ts", "dev", twice="v * 2").window(8, slide=4).group_by("dev")
    with pytest.warns(lw.StreamWarning, match="of log came late"):
        found = engine.collect(sliding.agg(n="count(*)", most="max(twice)"), buckets=2)
    sql = f"""SELECT ws, we, dev, count(*), max(v * 2) FROM {windows("log", 8, 4)} GROUP BY ALL"""
    assert table_rows(found) == answer(sql, {"log": given.kept(lw.ordered(), "dev")})


def test_a_late_row_ends_a_run_that_must_not_have_any(files: Write, engine: Engine) -> None:
    given = files(pl.DataFrame({"ts": [5, 9, 8, 7], "dev": "a"}), [2])
    source = lw.stream(given.frame, name="log", time="ts", channel="dev", late="fail")
    with pytest.raises(lw.BrokenPromise, match="nothing below 9") as raised:
        engine.collect(source.window(10).agg(n="count(*)"), buckets=2)
    broken = raised.value
    assert (broken.stream, broken.channel, broken.mark) == ("log", "a", 9)
    assert broken.time in (7, 8)


def test_the_producer_of_files_tells_marks(files: Write, engine: Engine) -> None:
    table = world().told._node.source.table  # type: ignore[attr-defined]
    given = files(table, [30, 80])
    source = lw.stream(given.frame, name="told", time="ts", progress=lw.punctuated("mark"))
    found = engine.collect(source.window(10).group_by("k").agg(n="count(*)"), buckets=2)
    sql = f"SELECT ws, we, k, count(*) FROM {windows('told', 10)} GROUP BY ALL"
    assert table_rows(found) == answer(sql, world().tables)


def test_windows_of_rows_over_files(files: Write, engine: Engine) -> None:
    given = files(numbers(60), [20, 40])
    source = lw.stream(given.frame, name="log", time="ts", progress=lw.within(100))
    found = engine.collect(source.where("v > 0").window(rows=12).agg(n="count(*)"), buckets=2)
    counted = pl.DataFrame(found).sort("window_start")
    assert counted["window_start"].to_list() == [0, 12, 24, 36, 48]
    assert counted["n"].sum() == given.table.filter(pl.col("v") > 0).height


def test_files_and_a_log_joined(files: Write, engine: Engine) -> None:
    """Streams of both kinds in one query; the files' stream is read by two operators."""
    table = numbers(60)
    given = files(table, [25])
    one = lw.stream(given.frame, name="one", time="ts", progress=lw.within(100))
    two = lw.stream(table, name="two", time="ts", progress=lw.within(100))
    pairs = one.join(two, on=["dev", "v"], within=2).select("ts", "dev", "v", other="ts_right")
    query = pairs.union(one.select("ts", "dev", "v", other="ts")).distinct()
    found = engine.collect(query, buckets=2, chunk_rows=30)
    sql = """SELECT DISTINCT * FROM (SELECT a.ts, a.dev, a.v, b.ts FROM one a JOIN two b
               ON a.dev = b.dev AND a.v = b.v AND b.ts BETWEEN a.ts - 2 AND a.ts + 2
             UNION ALL SELECT ts, dev, v, ts FROM one)"""
    assert table_rows(found) == answer(sql, {"one": table, "two": table})


def test_files_with_nulls_and_unknown_channels(files: Write, engine: Engine) -> None:
    """Rows without a time or channel are refused; a channel nobody announced joins at the mark."""
    table = pl.DataFrame(
        {
            "ts": [1, 2, None, 4, 20, 21, 3, 22, 30],
            "dev": ["a", "a", "a", None, "a", "a", "new", "new", "new"],
        }
    )
    given = files(table, [4, 6])
    source = lw.stream(given.frame, name="log", time="ts", channel="dev")
    run = engine.run(source, buckets=2, trigger="available-now")
    assert sorted(run.results()["ts"].to_pylist()) == [1, 2, 20, 21, 22, 30]
    reasons = Counter(pl.DataFrame(run.late_rows("log"))["_reason"])
    assert reasons == {"no time": 1, "no channel": 1, "late": 1}


def test_moments_beyond_what_python_counts_in_are_kept(files: Write, engine: Engine) -> None:
    """Microseconds survive, before 1970 and after."""
    moment = [datetime(1969, 12, 31, 23, 59, 59, 999_999), datetime(1970, 1, 1, 0, 0, 0, 1)]
    table = pl.DataFrame({"ts": [each.replace(tzinfo=UTC) for each in moment], "k": [1, 2]})
    given = files(table, [1])
    source = lw.stream(given.frame, name="log", time="ts")
    found = engine.collect(source.window("1 second").group_by("ts").agg(n="count(*)"), buckets=2)
    assert sorted(found["ts"].to_pylist()) == sorted(table["ts"].to_list())
