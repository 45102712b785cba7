"""Aggregates without a key are put together from parts only where all parts close alike."""

from __future__ import annotations

import random

import polars as pl
import pytest

import lowwater as lw
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.layout import lay_out
from tests.support.local_spark import LocalSpark
from tests.unit.running import rows

SESSIONS = pl.DataFrame(
    {
        "ts": sorted(random.Random(1).choices(range(400), k=300)),
        "k": random.Random(2).choices(range(9), k=300),
    }
)


def of_sessions() -> lw.Stream:
    sessions = lw.stream(SESSIONS, name="s", time="ts").session("20 seconds").group_by("k")
    return sessions.agg(n="count(*)").window("50 seconds", on="window_start").agg(m="count(*)")


def test_windows_over_sessions_are_a_stage_of_their_own() -> None:
    first, second = lay_out(compile_plan(of_sessions()._node)).stages
    assert (first.combined, second.combined) == (None, 2)


@pytest.mark.parametrize("seed", range(4))
def test_windows_over_sessions_are_answered_once(seed: int) -> None:
    found = LocalSpark(of_sessions(), seed, 3).results().sort("window_start")
    assert found.to_dicts() == sorted(rows(of_sessions()), key=lambda row: row["window_start"])
