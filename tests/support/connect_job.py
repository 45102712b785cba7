"""The victim's query over Spark Connect, in a process of its own: one has one kind of session."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

from lowwater.engines.spark import jvm
from tests.support.victim import query


def main(folder: Path) -> None:
    """Write the results of a DataFrame of ours and of a run to the end, and what a run tells."""
    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    os.environ["SPARK_TESTING"] = "1"  # any free port, not always the same
    with jvm.environment(here=True, start=True):
        spark = SparkSession.builder.config(map=settings).remote("local[2]").getOrCreate()
    counts = query(spark, folder / "data")
    frame = counts.to_spark(spark)
    assert type(frame).__module__ == "pyspark.sql.connect.dataframe"
    assert frame.isStreaming
    assert not spark.streams.active
    writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
    started = writer.format("parquet").trigger(availableNow=True).start(str(folder / "results"))
    started.awaitTermination()
    everything = counts.collect(engine="spark", session=spark)
    pl.DataFrame(everything).write_parquet(folder / "collected.parquet")
    run = counts.run(engine="spark", session=spark, trigger="available-now")
    run.await_termination()
    told = run.metrics()
    rows = {name: told.stream(name).rows for name in ("left", "right")}
    (folder / "rows.json").write_text(json.dumps(rows))
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
