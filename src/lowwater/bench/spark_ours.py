"""These are the queries of :mod:`lowwater.bench.spark_plain`, written for lowwater."""

from __future__ import annotations

from typing import Any

from lowwater.api import Stream, stream
from lowwater.bench.spark_data import DISORDER
from lowwater.bench.spark_plain import KEY
from lowwater.joins.ordered.strategy import Order
from lowwater.operators.flush import Flush
from lowwater.progress.contract import Contract, ordered, unpromised, within
from lowwater.progress.options import Idle


def tumbling(sources: list[Any], buckets: int | None = None, flush: Flush | None = None) -> Any:
    """Count a minute by two columns."""
    (rows,) = _streams(sources, within("2 seconds"))
    counts = rows.window("1 minute", flush=flush).group_by("ip", "port").agg(n="count(*)")
    return counts.to_spark(buckets=buckets)


def union(
    sources: list[Any], length: str, slide: str | None = None, idle: Idle | None = None
) -> Any:
    """Count over a union of sources that are in order, each on its own."""
    first, *others = _streams(sources, ordered(), idle)
    counts = first.union(*others).window(length, slide).group_by("key").agg(n="count(*)")
    return counts.to_spark()


def band_join(sources: list[Any], band: int, length: str, disorder: str) -> Any:
    """Join rows at most ``band`` seconds apart, and count the pairs of each window."""
    left, right = _streams(sources, within(disorder))
    pairs = left.join(right, on=list(KEY), within=f"{band} seconds")
    return pairs.window(length).agg(n="count(*)").to_spark()


def pairs(sources: list[Any], band: int) -> Any:
    """Find pairs of rows at most ``band`` seconds apart, with the greater time."""
    return _latest(sources, band).to_spark()


def pairs_in_order(sources: list[Any], band: int, order: Order | None) -> Any:
    """Find the same in order of the greater time, by a strategy of the join or sorted after it."""
    found = _latest(sources, band, order)
    return (found if order else found.order_by("at")).to_spark()


def _latest(sources: list[Any], band: int, order: Order | None = None) -> Stream:
    left, right = _streams(sources, within(DISORDER))
    found = left.join(right, on=["k"], within=f"{band} seconds", order=order)
    return found.select("k", "ts", "ts_right", at="greatest(ts, ts_right)")


def equal_times(sources: list[Any], **options: Any) -> Any:
    """Find pairs of rows of equal times; the sources promise nothing."""
    left, right = _streams(sources, unpromised())
    return left.join(right, on="ts", **options).select("ts", "v", "v_right").to_spark()


def windowed(sources: list[Any], length: str, disorder: str) -> Any:
    """Count a window and key."""
    (rows,) = _streams(sources, within(disorder))
    return rows.window(length).group_by("key").agg(n="count(*)").to_spark()


def _streams(sources: list[Any], progress: Contract, idle: Idle | None = None) -> list[Stream]:
    return [
        stream(each, name=f"source{number}", time="ts", progress=progress, idle=idle)
        for number, each in enumerate(sources)
    ]
