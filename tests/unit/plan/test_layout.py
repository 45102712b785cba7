"""How plans are cut into stages: what is combined, and what an unknown operator gets."""

from __future__ import annotations

import random
from unittest import mock

import polars as pl
import pytest

import lowwater as lw
from lowwater.operators.rowwise import Derivation, Project
from lowwater.plan import nodes
from lowwater.plan.physical import planner
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.operator import KernelOperator
from lowwater.plan.physical.planner import compile_plan
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


class SwappedNode(nodes.Node):
    """Rows with two columns exchanged, by an operator that declares nothing."""


def compile_swapped(plan, node, inputs):  # type: ignore[no-untyped-def]
    columns = [pl.col("ts"), pl.col("v").alias("k"), pl.col("k").alias("v")]
    kept = {"ts": Derivation((("ts", 0),))}
    return plan.add(
        KernelOperator(
            name="swapped",
            node=node,
            inputs=inputs,
            kernel=Project,
            build=lambda store, _: Project(store, columns, kept, {}),
            describe=lambda demands: [dict(demands)],
        )
    )


SWAPPED = mock.patch.object(
    planner, "_COMPILERS", {**planner._COMPILERS, SwappedNode: compile_swapped}
)


def swapped(stream: lw.Stream) -> lw.Stream:
    node = stream._node
    return lw.Stream(SwappedNode((node,), node.schema, node.progress, node.time))


@SWAPPED
@pytest.mark.parametrize("seed", range(3))
def test_rows_of_an_operator_that_declares_nothing_are_not_misrouted(seed: int) -> None:
    table = {
        "ts": list(range(60)),
        "k": [at % 7 for at in range(60)],
        "v": [at * 3 % 5 for at in range(60)],
    }
    stream = lw.stream(pl.DataFrame(table), name="a", time="ts").distinct()
    query = swapped(stream).window(20).group_by("k").agg(n="count(*)")
    found = LocalSpark(query, seed, 3).results().sort("window_start", "k")
    assert found.to_dicts() == sorted(rows(query), key=lambda row: (row["window_start"], row["k"]))
