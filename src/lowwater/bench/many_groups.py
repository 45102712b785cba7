"""Many groups, of which few move: what a chunk costs beside a stream that has but these few.

Everybody speaks twice; then the same hundred groups go on. Processor time, because waiting is not
what is compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from lowwater.api import Stream, stream
from lowwater.engines.step import Where, step
from lowwater.operators.kernel import ALONE
from lowwater.plan.physical.compile import compile_plan
from lowwater.progress.contract import ordered
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk, Element

KNOWN, MOVING = 100_000, 100
ROWS = 1_000
"""Rows of a chunk."""
CHUNKS = 60
TARGET = 1.5
NOWHERE = Where("bench", "", "")

Query = Callable[[Stream, Stream], Stream]

QUERIES: dict[str, Query] = {
    "rows judged": lambda a, _: a.where("v >= 0"),
    "tumbling window": lambda a, _: a.window(10).group_by("g").agg(n="count(*)"),
    "session": lambda a, _: a.session(8).group_by("g").agg(n="count(*)"),
    "distinct": lambda a, _: a.distinct("ts", "g"),
    "group by time": lambda a, _: a.group_by("ts", "g").agg(n="count(*)"),
    "band join": lambda a, b: a.join(b, on="g", within=5),
    "anti join": lambda a, b: a.join(b, on="g", within=5, how="anti"),
}


def chunks(known: int) -> tuple[list[Chunk], list[Chunk]]:
    """Chunks in which everybody speaks, then such in which few do; equally dense in time."""
    rng = np.random.default_rng(0)
    rate = ROWS // 10
    first = []
    for turn in (-2, -1):
        for low in range(0, known, 10_000):
            groups = np.arange(low, min(low + 10_000, known))
            first.append(_frame(turn * known // rate + groups // rate, groups))
    later = []
    for number in range(CHUNKS):
        times = np.sort(rng.integers(10 + number * 10, 20 + number * 10, ROWS))
        later.append(_frame(times, rng.integers(0, min(MOVING, known), ROWS)))
    return first, later


def _frame(times: Any, groups: Any) -> Chunk:
    return pl.DataFrame({"ts": times, "g": groups, "v": groups})


def millis(query: Query, known: int) -> float:
    """Milliseconds of processor a chunk takes, in the middle."""
    empty = pl.DataFrame(schema={"ts": pl.Int64, "g": pl.Int64, "v": pl.Int64})
    sides = [stream(empty, name=each, time="ts", progress=ordered(), groups="g") for each in "ab"]
    plan = compile_plan(query(sides[0], sides[1])._node)
    kernels = {each.index: each.build(MemoryStore(), ALONE) for each in plan.kernels}
    intakes = {each.index: Intake(each.spec, plan.demands[each.index]) for each in plan.sources}

    def push(producer: int, elements: Sequence[Element]) -> None:
        for element in elements:
            if isinstance(element, pl.DataFrame) and not element.height:
                continue
            for index, port in plan.consumers(producer):
                push(index, step(kernels[index], port, element, NOWHERE))

    def taken(chunk: Chunk) -> float:
        begun = time.process_time()
        for index, intake in intakes.items():
            result = intake.take(chunk, 0)
            push(index, [result.rows, *result.promises])
        return time.process_time() - begun

    first, later = chunks(known)
    for chunk in first:
        taken(chunk)
    return median(map(taken, later)) * 1e3


def run_many_groups() -> Iterator[dict[str, Any]]:
    """Each query with few groups and with many."""
    for name, query in QUERIES.items():
        turns = [(millis(query, MOVING), millis(query, KNOWN)) for _ in range(2)]
        few, many = (min(each) for each in zip(*turns, strict=True))
        yield {
            "name": f"many groups: {name}",
            "what": f"a chunk of {ROWS:,} rows of {MOVING} groups, {KNOWN:,} known",
            "rows": ROWS * CHUNKS,
            "unit": "ms",
            "ours": many,
            "peer": f"ours, {MOVING} groups in all",
            "peer_value": few,
            "ratio": many / few,
            "target": TARGET,
        }
