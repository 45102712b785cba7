"""These are the benchmarks' queries, as a Spark user writes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

KEY = ("a", "b", "c", "d")
"""The columns on which rows are joined."""


def tumbling(sources: list[Any]) -> Any:
    """Count a minute by two columns."""
    return counted(sources[0].withWatermark("ts", "2 seconds"), "1 minute", "ip", "port")


def one_watermark(sources: list[Any], delay: str, length: str, slide: str | None = None) -> Any:
    """Count over a union, with a watermark that allows for the slowest source."""
    first, *others = sources
    for other in others:
        first = first.unionAll(other)
    return counted(first.withWatermark("ts", delay), length, "key", slide=slide)


def watermark_each(sources: list[Any], delay: str, length: str, slide: str | None = None) -> Any:
    """Count over a union of sources that have a watermark each; Spark takes the least."""
    first, *others = (each.withWatermark("ts", delay) for each in sources)
    for other in others:
        first = first.unionAll(other)
    return counted(first, length, "key", slide=slide)


def band_join(sources: list[Any], band: int, length: str, delay: str) -> Any:
    """Join rows at most ``band`` seconds apart, and count the pairs of each window."""
    return counted(_matched(sources, KEY, band, delay), length)


def pairs(sources: list[Any], band: int, delay: str) -> Any:
    """Find pairs of rows at most ``band`` seconds apart, with the greater time."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    found = _matched(sources, ["k"], band, delay)
    return found.select("k", "ts", "ts_right", F.greatest("ts", "ts_right").alias("at"))


def _matched(sources: list[Any], keys: Sequence[str], band: int, delay: str) -> Any:
    """Join rows of equal keys that are at most ``band`` seconds apart."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    left, right = (each.withWatermark("ts", delay) for each in sources)
    right = right.select(F.col("ts").alias("ts_right"), *(F.col(k).alias(f"{k}2") for k in keys))
    same = [F.col(k) == F.col(f"{k}2") for k in keys]
    reach = f"INTERVAL {band} SECONDS"
    near = F.expr(f"ts_right BETWEEN ts - {reach} AND ts + {reach}")
    return left.join(right, [*same, near])


def equal_times(sources: list[Any], delay: str | None = None) -> Any:
    """Find pairs of rows of equal times; without a delay, rows are kept for ever."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    left, right = sources if delay is None else (e.withWatermark("ts", delay) for e in sources)
    right = right.select(F.col("ts").alias("ts_right"), F.col("v").alias("v_right"))
    return left.join(right, F.col("ts") == F.col("ts_right")).select("ts", "v", "v_right")


def counted(rows: Any, length: str, *groups: str, slide: str | None = None) -> Any:
    """Count rows by window and group."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    counts = rows.groupBy(F.window("ts", length, slide), *groups).agg(F.count("*").alias("n"))
    start, end = F.col("window.start"), F.col("window.end")
    return counts.select(start.alias("window_start"), end.alias("window_end"), *groups, "n")
