"""The benchmarks' queries as a Spark user writes them."""

from __future__ import annotations

from typing import Any

KEY = ("a", "b", "c", "d")


def tumbling(sources: list[Any]) -> Any:
    """Count a minute by two columns."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    rows = sources[0].withWatermark("ts", "2 seconds")
    counted = rows.groupBy(F.window("ts", "1 minute"), "ip", "port").agg(F.count("*").alias("n"))
    return counted.select(*_edges(), "ip", "port", "n")


def band_join(sources: list[Any]) -> Any:
    """Join rows at most a minute apart, count the pairs a minute."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    left, right = (each.withWatermark("ts", "2 seconds") for each in sources)
    right = right.select(F.col("ts").alias("ts_right"), *(F.col(c).alias(f"{c}2") for c in KEY))
    same = [F.col(c) == F.col(f"{c}2") for c in KEY]
    near = F.expr("ts_right BETWEEN ts - INTERVAL 60 SECONDS AND ts + INTERVAL 60 SECONDS")
    pairs = left.join(right, [*same, near])
    counted = pairs.groupBy(F.window("ts", "1 minute")).agg(F.count("*").alias("n"))
    return counted.select(*_edges(), "n")


def _edges() -> list[Any]:
    from pyspark.sql import functions as F  # noqa: PLC0415

    return [F.col("window.start").alias("window_start"), F.col("window.end").alias("window_end")]
