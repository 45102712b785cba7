"""The same queries as :mod:`lowwater.bench.spark_plain`, as ours are written."""

from __future__ import annotations

from typing import Any

from lowwater.api import stream
from lowwater.bench.spark_plain import KEY
from lowwater.progress.contract import within


def tumbling(sources: list[Any], buckets: int | None = None) -> Any:
    """Count a minute by two columns."""
    rows = stream(sources[0], name="rows", time="ts", progress=within("2 seconds"))
    counted = rows.window("1 minute").group_by("ip", "port").agg(n="count(*)")
    return counted.to_spark(buckets=buckets)


def band_join(sources: list[Any]) -> Any:
    """Join rows at most a minute apart, count the pairs a minute."""
    left, right = (
        stream(each, name=name, time="ts", progress=within("2 seconds"))
        for name, each in zip(("left", "right"), sources, strict=True)
    )
    pairs = left.join(right, on=list(KEY), within="60 seconds")
    return pairs.window("1 minute").agg(n="count(*)").to_spark()
