"""The channels that are told to be furthest behind are, in chunks and in batches."""

from __future__ import annotations

import random
import warnings

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import BEGINNING

WAYS = {"channels": {"channel": "host"}, "groups": {"groups": "host"}}


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize("way", WAYS)
@given(seed=st.integers(0, 100_000))
def test_the_least_marks_come_first_with_when_a_row_last_came(way, stored, seed):
    dice = random.Random(seed)
    empty = pl.DataFrame(schema={"ts": pl.Int64(), "host": pl.String()})
    query = lw.stream(empty, name="s", time="ts", jump=None, **WAYS[way])
    plan = compile_plan(query.window("1 second").group_by("host").agg(n="count(*)").node)
    spec, demands = plan.sources[0].node.spec, plan.demands[0]
    intake = Intake(spec, demands, (), MemoryStore() if stored else None)
    newest: dict[str, int] = {}
    heard: dict[str, int] = {}
    for now in range(1, dice.randint(1, 5)):
        rows = [(dice.randint(0, 99), f"h{dice.randint(0, 9)}") for _ in range(dice.randint(0, 12))]
        chunk = pl.DataFrame(rows, schema=empty.schema, orient="row")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            intake.take(chunk, now)
        if stored:
            intake.settle()
        for ts, host in rows:
            newest[host] = max(ts, newest.get(host, ts))
            heard[host] = now
    limit = dice.randint(1, 12)
    told = intake.channels("ts", limit)
    assert told is not None
    assert told.count == len(newest)
    assert len(told.behind) == min(limit, len(newest))
    marks = [mark for _, mark, _ in told.behind]
    assert marks == sorted(marks)
    whole = intake.channels("ts", 100)
    assert whole is not None
    assert marks == sorted(mark for _, mark, _ in whole.behind)[:limit]
    for host, mark, seen in whole.behind:
        assert seen == heard[host]
        assert mark >= newest[host] or mark == BEGINNING or way == "channels"
    assert told.ahead == max((mark for _, mark, _ in whole.behind), default=BEGINNING)


def test_a_stream_of_one_channel_tells_of_none():
    empty = pl.DataFrame(schema={"ts": pl.Int64()})
    plan = compile_plan(lw.stream(empty, name="s", time="ts").node)
    assert Intake(plan.sources[0].node.spec, plan.demands[0]).channels("ts", 5) is None
