"""A busy input and a sparse one, merged in order: the scene of the enabling-timestamp paper."""

from __future__ import annotations

from typing import Any

import polars as pl

import lowwater as lw
from lowwater.sources.replay import Replay
from tests.unit.running import finished

SECOND = 1_000_000_000


def log(arrivals: list[int], times: list[int] | None = None) -> Replay:
    """Rows that arrive at these seconds; unless told otherwise, that is their time too."""
    columns = {"arrived": arrivals, "ts": arrivals if times is None else times}
    return lw.replay(pl.DataFrame(columns, schema={"arrived": pl.Int64, "ts": pl.Int64}), "arrived")


def merged(busy: list[int], sparse: list[int], plan: str = "in-order", **options: Any) -> lw.Run:
    """The union of both, each row handed over as it arrives."""
    one = lw.stream(log(busy), name="busy", time="ts", jump=None, **options)
    two = lw.stream(log(sparse), name="sparse", time="ts", jump=None, **options)
    return finished(one.union(two), plan=plan, tick=0)


def stamped(busy: list[int], sparse: list[int], stamp: str, **options: Any) -> lw.Run:
    """The same with timestamps made by the engine."""

    def declared(name: str, arrivals: list[int]) -> lw.Stream:
        source = lw.replay(pl.DataFrame({"arrived": arrivals}), "arrived")
        return lw.stream(source, name=name, time="ts", stamp=stamp, jump=None, **options)  # type: ignore[arg-type]

    query = declared("busy", busy).union(declared("sparse", sparse))
    return finished(query, plan="in-order", tick=0)
