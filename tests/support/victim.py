"""A run on Spark in a process of its own, to be killed and started again.

Reads Parquet files one a batch, joins two streams, counts per minute and key (or puts the pairs in
order, or shows the newest row of each key), and ends when it has read all. Started again, it goes
on from its checkpoint.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import polars as pl

import lowwater as lw
from lowwater.engines.spark.session import spark_session

SCHEMA = "ts timestamp_ntz, k bigint, v double"


def query(spark, data: Path, in_order: bool = False) -> lw.Stream:
    """Two streams joined by key and time: pairs in order, or counted by key and minute."""

    def read(name: str) -> lw.Stream:
        frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
        return lw.stream(
            frame.parquet(str(data / name)),
            name=name,
            time="ts",
            progress=lw.within("5 seconds"),
        )

    if in_order:
        pairs = read("left").join(read("right"), on=["k"], within="200 milliseconds")
        latest = pairs.select("k", "v", "v_right", ts="greatest(ts, ts_right)")
        return latest.order_by("ts")
    pairs = read("left").join(read("right"), on=["k"], within="10 seconds")
    return pairs.window("1 minute").group_by("k").agg(n="count(*)", top="max(v)")


def slowly(rows: pl.DataFrame) -> pl.DataFrame:
    """Work that takes its time."""
    time.sleep(0.002 * rows.height)
    return rows


def newest(spark, data: Path) -> lw.Stream:
    """The newest row of each key, as far as there is time."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    updates = lw.stream(
        frame.parquet(str(data / "left")),
        name="left",
        time="ts",
        progress=lw.within("5 seconds"),
        update_key="k",
        budget="6 milliseconds",
    )
    return updates.apply(slowly)


def main(folder: Path, how: list[str]) -> None:
    """Run to the end of what is there."""
    spark = spark_session("local[2]", **{"spark.sql.shuffle.partitions": 2})
    data = folder / "data"
    asked = newest(spark, data) if "updates" in how else query(spark, data, "in-order" in how)
    run = asked.run(
        engine="spark",
        sink=folder / "results",
        late_sink=folder / "late",
        checkpoint=folder / "checkpoint",
        trigger="available-now",
        session=spark,
    )
    run.await_termination()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
