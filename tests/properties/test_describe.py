"""Describe (OOP A.1.1) over whole plans: sources tell what is of use, once, and soon enough.

A stream is read one row at a time, once with the promises the plan asks for and once with every
promise there is. The first must answer everything after the same row as the second.
"""

from __future__ import annotations

import random
from itertools import accumulate
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.nodes import SourceNode
from lowwater.progress.demand import Demand
from tests.properties import test_graphs as small
from tests.properties.test_graphs import Query
from tests.properties.test_joint import Joined, leaf, matched
from tests.properties.test_layout import by_time, changing, counted, full_joined, met, paired
from tests.support.batches import dense
from tests.support.paced_run import PacedRun
from tests.support.streams import Sample, samples

SHAPES = st.sampled_from(["out-of-order", "in-order"])


def bucketed(q: Query, draw: Any) -> Query:
    """Times rounded down; the SQL is of no matter here."""
    width = draw(st.integers(2, 6))
    cut = Stream(row_builders.bucketed(q.stream._node, "cut", "ts", width, False))
    return Query(cut.select(ts="cut", k="k", v="v"), "")


def joined_by_buckets(q: Query, r: Query, draw: Any) -> Query:
    pairs = q.stream.join(r.stream, on="k", within=lw.same(draw(st.integers(2, 6))))
    time = draw(st.sampled_from(["ts", "ts_right", "least(ts, ts_right)"]))
    return Query(pairs.select(ts=time, k="k", v="v"), "")


def halved(q: Query, r: Query, draw: Any) -> Query:
    how = draw(st.sampled_from(["semi", "anti"]))
    return Query(q.stream.join(r.stream, on="k", within=draw(st.integers(0, 4)), how=how), "")


def in_sessions(q: Query, draw: Any) -> Query:
    answers = q.stream.session(draw(st.integers(1, 4))).group_by("k").agg(v="count(v)")
    return Query(answers.select(ts="window_end", k="k", v="v"), "")


ONE = [*small.ONE, bucketed, counted, changing, by_time, in_sessions]
TWO = [*small.TWO, joined_by_buckets, full_joined, halved, met, paired]


@st.composite
def plans(draw: Any, queries: list[Query], depth: int) -> Query:
    if depth == 0:
        return draw(st.sampled_from(queries))
    below = draw(plans(queries, depth - 1))
    if draw(st.booleans()):
        return draw(st.sampled_from(ONE))(below, draw)
    return draw(st.sampled_from(TWO))(below, draw(plans(queries, depth - 1)), draw)


def finer(sample: Sample, ticks: int) -> Sample:
    """The stream with times that count milliseconds, so that not every tick is of use to a join."""
    node = sample.stream._node
    assert isinstance(node, SourceNode)
    table = node.source.table.with_columns(pl.col("ts") * ticks + 7)  # type: ignore[attr-defined]
    keys = {"channel": node.spec.channel} if node.spec.channel else {}
    stream = lw.stream(
        table,
        name=node.spec.name,
        time="ts",
        unit="ms",
        progress=node.spec.contracts["ts"],
        jump=None,
        **keys,
    )
    return Sample(stream, table, table)


@settings(max_examples=settings.default.max_examples * 2)
@given(
    st.data(),
    st.one_of(samples("a", most=10), dense("a", most=30)),
    dense("b", most=30),
    st.integers(1, 3),
    st.integers(0, 2**32),
)
def test_what_is_not_told_would_have_answered_nothing(
    data: Any, a: Sample, b: Sample, depth: int, seed: int
) -> None:
    if data.draw(st.booleans()):
        ticks = data.draw(st.sampled_from([300, 1000, 1700]))
        a, b = finer(a, ticks), finer(b, ticks)
    query = data.draw(plans([small.base("a", a), small.base("b", b)], depth)).stream
    shape = data.draw(SHAPES)
    asked, all_ = (PacedRun(query, seed, shape, thin) for thin in (True, False))
    assert sorted(asked.left, key=repr) == sorted(all_.left, key=repr)
    for operator in asked.plan.sources:
        name = operator.node.spec.name  # type: ignore[attr-defined]
        wanted = asked.plan.demands[operator.index]
        for promise in asked.told[name]:
            ((attribute, mark),) = promise.bounds
            assert wanted[attribute].round_down(mark) == mark
        assert len(asked.told[name]) <= len(all_.told[name])


@settings(max_examples=settings.default.max_examples * 2)
@given(st.data(), st.integers(2, 3), st.integers(0, 2**32))
def test_windows_over_joins_close_with_the_row_that_completes_them(
    data: Any, number: int, seed: int
) -> None:
    """Windows on any time of joined streams, shifted and rounded times among them."""
    chance = random.Random(seed)
    leaves = []
    for at in range(number):
        steps = accumulate(chance.choice([70, 400, 999, 2600]) for _ in range(24))
        frame = pl.DataFrame({"ts": list(steps), "k": [0] * 24, "v": [0] * 24})
        stream = lw.stream(frame, name=f"s{at}", time="ts", unit="ms")
        leaves.append(leaf(at, Sample(stream, frame, frame.clear())))
    joined = leaves[0]
    for each in leaves[1:]:
        joined = matched(joined, each, data.draw, data.draw(st.sampled_from(["inner", "semi"])))
        time = data.draw(st.sampled_from(joined.times))
        made = f"made{len(joined.stream.schema)}"
        if data.draw(st.booleans()):
            width = data.draw(st.sampled_from([500, 1000, 1500]))
            stream = Stream(row_builders.bucketed(joined.stream._node, made, time, width, False))
        else:
            stream = joined.stream.map(**{made: f"{time} + {data.draw(st.integers(1, 2500))}"})
        joined = Joined(stream, "", (*joined.times, made))
    on = data.draw(st.sampled_from(joined.times))
    slide = data.draw(st.integers(1, 5))
    query = joined.stream.window(data.draw(st.integers(1, 5)), slide, on=on).agg(n="count(*)")
    asked, all_ = (PacedRun(query, seed, thin=thin) for thin in (True, False))
    assert sorted(asked.left) == sorted(all_.left)


GRIDS = st.sets(st.tuples(st.integers(1, 12), st.integers(0, 11)), min_size=1, max_size=3)


@given(GRIDS, st.integers(-40, 40), st.integers(-20, 20))
def test_a_demand_rolls_to_the_nearest_point_below(
    grids: set[tuple[int, int]], mark: int, by: int
) -> None:
    demand = Demand()
    for step, offset in grids:
        demand |= Demand.grid(step, offset)
    points = {x for x in range(-80, 41) for step, offset in grids if (x - offset) % step == 0}
    assert demand.round_down(mark) == max(x for x in points if x <= mark)
    assert demand.shifted(by).round_down(mark) == demand.round_down(mark + by) - by


@given(GRIDS, st.integers(2, 7), st.integers(-40, 40), st.booleans())
def test_a_demand_on_a_rounded_time_asks_for_what_moves_it_to_a_point(
    grids: set[tuple[int, int]], bucket: int, mark: int, numbered: bool
) -> None:
    """A mark of the time rolled down to what is asked for says as much of the rounded time."""
    demand = Demand()
    for step, offset in grids:
        demand |= Demand.grid(step, offset)
    scale = 1 if numbered else bucket
    told = demand.unrounded(bucket, numbered).round_down(mark)
    assert demand.round_down(told // bucket * scale) == demand.round_down(mark // bucket * scale)


def _counts(query: Stream, seed: int = 1) -> dict[str, int]:
    run = PacedRun(query, seed)
    return {name: len(told) for name, told in run.told.items()}


@pytest.mark.parametrize("punctuated", [False, True])
def test_a_source_speaks_once_a_slide_however_many_windows_stand_on_it(punctuated: bool) -> None:
    times = list(range(600))
    frame = pl.DataFrame({"ts": times, "k": [0] * 600, "v": times, "said": times})
    progress = lw.punctuated("said") if punctuated else lw.ordered()
    stream = lw.stream(frame, name="s", time="ts", progress=progress)
    both = stream.window(60).agg(n="count(*)").union(stream.window(120, slide=60).agg(n="count(*)"))
    assert _counts(both) == {"s": 10}  # 0, 60, ... 540
    # Two grids that do not meet: every 60, and every 60 from 30 on.
    late = stream.select("k", ts="ts + 30").window(60).agg(n="count(*)")
    assert _counts(stream.window(60).agg(n="count(*)").union(late)) == {"s": 20}
