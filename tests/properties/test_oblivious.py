"""Joins without a window: nothing is lost where disorder is known, nothing is made up anywhere."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.oblivious import aside, gauge, measures, oblivious_join, records
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.operators.kernel import Kernel
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

STRATEGIES = st.sampled_from(["plain", "msf", "dbf", "hybrid"])
FEWER = settings(max_examples=max(1, settings.default.max_examples // 2))


@pytest.fixture(autouse=True)
def small() -> Iterator[None]:
    """What decides only what things cost is made small, so that small streams go through it."""
    sizes: list[tuple[Any, str, Any]] = [
        (aside, "PAGE_ROWS", 3),
        (oblivious_join, "PAGE_ROWS", 3),
        (oblivious_join, "LEAST_ROWS", 2),
        (oblivious_join, "ROUND_TRIPS", 0),
        (gauge, "START", 6),
        (measures, "FEW", 3),
        (records, "LIMIT", 8),
    ]
    with ExitStack() as stack:
        for module, name, value in sizes:
            stack.enter_context(mock.patch.object(module, name, value))
        yield


def scrambling(keys: list[int]) -> int:
    """Definition 2.2, word by word."""
    pairs = (
        later - earlier
        for later, one in enumerate(keys)
        for earlier, two in enumerate(keys[:later])
        if one <= two
    )
    return max(pairs, default=0)


@dataclass(frozen=True)
class Input:
    """A stream of which its disorder may be known."""

    name: str
    rows: pl.DataFrame

    def stream(self, known: bool) -> lw.Stream:
        keys = self.rows["epoch"].to_list()
        most = max(Counter(keys).values())
        given = {"disorder": scrambling(keys), "multiplicity": most} if known else {}
        promise = lw.unpromised(**given)
        return lw.stream(self.rows, name=self.name, time="epoch", progress=promise)


@st.composite
def inputs(draw: Any, number: int, most: int = 24) -> list[Input]:
    found = []
    for at in range(number):
        steps = draw(st.lists(st.integers(0, 2), min_size=1, max_size=most))
        keys = [sum(steps[: place + 1]) for place in range(len(steps))]
        moves = [draw(st.integers(0, draw(st.integers(0, 6)))) for _ in keys]
        order = sorted(range(len(keys)), key=lambda place: (place + moves[place], place))
        rows = pl.DataFrame(
            {
                "epoch": [keys[place] for place in order],
                "k": [draw(st.integers(0, 1)) for _ in order],
                "v": list(range(len(order))),
            },
            schema={"epoch": pl.Int64, "k": pl.Int64, "v": pl.Int64},
        )
        found.append(Input(f"s{at}", rows))
    return found


def all_results(found: list[Input], also: str = "", key: bool = False) -> Counter[Any]:
    first, *rest = (each.name for each in found)
    columns = [f"{first}.*", *(f"{name}.{'v' if key else 'k, ' + name + '.v'}" for name in rest)]
    equal = [f"{first}.epoch = {name}.epoch" for name in rest]
    equal += [f"{first}.k = {name}.k" for name in rest] if key else []
    equal += [also] if also else []
    tables = ", ".join([first, *rest])
    sql = f"SELECT {', '.join(columns)} FROM {tables} WHERE {' AND '.join(equal)}"
    return answer(sql, {each.name: each.rows for each in found})


def ordered(run: CheckedRun) -> bool:
    """Whether results left in order of what was joined on."""
    chunks = [each["epoch"] for each in run.elements if isinstance(each, pl.DataFrame)]
    return not chunks or pl.concat(chunks).is_sorted()


# ---- disorder that is known ----------------------------------------------------------------


@pytest.mark.parametrize("number", [2, 3, 4])
@given(data=st.data())
def test_with_disorder_known_every_result_is_found(number: int, data: Any) -> None:
    """Whatever the disorder, the multiplicity, the lag between inputs and the relief are."""
    found = data.draw(inputs(number))
    key = data.draw(st.booleans())
    where, also = data.draw(st.sampled_from([(None, ""), ("v <= v_2", "s0.v <= s1.v")]))
    strategy = data.draw(STRATEGIES)
    on = ["epoch", "k"] if key else ["epoch"]
    query = lw.join([each.stream(True) for each in found], on, where=where, strategy=strategy)
    run = CheckedRun(query, data.draw)
    assert table_rows(run.results()) == all_results(found, also, key)
    assert ordered(run) or strategy in ("plain", "dbf")


@FEWER
@given(data=st.data())
def test_joins_of_joins_find_every_result(data: Any) -> None:
    """What comes out of a join is scrambled by no more than Theorem 3.1 says."""
    found = data.draw(inputs(4, 14))
    one, two, three, four = (each.stream(True) for each in found)
    options = {"strategy": data.draw(STRATEGIES)}
    left = one.join(two, on="epoch", suffix="_2", **options)
    right = three.join(four, on="epoch", suffix="_2", **options)
    query = left.join(right.select("epoch", k3="k", v3="v", k4="k_2", v4="v_2"), on="epoch")
    run = CheckedRun(query, data.draw)
    assert table_rows(run.results()) == all_results(found)


@FEWER
@given(data=st.data())
def test_what_follows_the_join_is_exact_and_does_not_wait_for_the_end(data: Any) -> None:
    found = data.draw(inputs(2))
    streams = [each.stream(True) for each in found]
    joined = streams[0].join(streams[1], on="epoch", strategy=data.draw(STRATEGIES))
    query = joined.window("4 seconds").group_by().agg(n="count(*)")
    sql = """SELECT s0.epoch // 4 * 4 AS a, a + 4, count(*) FROM s0 JOIN s1 USING (epoch)
             GROUP BY a"""
    expected = answer(sql, {each.name: each.rows for each in found})
    assert table_rows(CheckedRun(query, data.draw).results()) == expected


@settings(max_examples=max(1, settings.default.max_examples // 3))
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_spread_over_buckets_every_result_is_found(data: Any, seed: int) -> None:
    found = data.draw(inputs(3, 16))
    options = {"strategy": data.draw(STRATEGIES)}
    query = lw.join([each.stream(True) for each in found], "epoch", **options)
    for buckets in (1, 3):
        run = LocalSpark(query, seed, buckets, "out-of-order")
        assert table_rows(run.results()) == all_results(found)


# ---- disorder that is measured, memory that is limited -----------------------------------------


class Watched(CheckedRun):
    """A run that looks at the join after each step."""

    def __init__(self, query: lw.Stream, draw: Any, memory: int | None):
        self._allowed = memory
        super().__init__(query, draw)

    def _emit_all(self, index: int, elements: Any) -> None:
        super()._emit_all(index, elements)
        kernel: Kernel = self._kernels[index]
        if isinstance(kernel, ObliviousJoin):
            if self._allowed is not None:
                assert kernel._places.memory <= self._allowed
            kernel.about()


@pytest.mark.parametrize("number", [2, 3])
@given(data=st.data())
def test_whatever_is_lost_nothing_is_made_up_and_promises_are_kept(number: int, data: Any) -> None:
    found = data.draw(inputs(number, 40))
    memory = data.draw(st.one_of(st.none(), st.integers(200, 2_000)))
    strategy = data.draw(st.one_of(STRATEGIES, st.just("auto")))
    options = {"memory": memory, "strategy": strategy, "accuracy": 0.9}
    known = data.draw(st.booleans())
    query = lw.join([each.stream(known) for each in found], "epoch", **options)
    run = Watched(query, data.draw, memory)
    assert not table_rows(run.results()) - all_results(found)
    assert ordered(run) or strategy not in ("msf", "hybrid")


@FEWER
@given(data=st.data())
def test_a_promise_of_an_input_counts_beside_what_is_measured(data: Any) -> None:
    """With a promise of each input, what is measured may only take rows away sooner."""
    found = data.draw(inputs(2, 30))
    streams = [
        lw.stream(each.rows.sort("epoch"), name=each.name, time="epoch", progress=lw.ordered())
        for each in found
    ]
    exact = CheckedRun(streams[0].join(streams[1], on="epoch"), data.draw).results()
    both = streams[0].join(streams[1], on="epoch", accuracy=0.999)
    run = Watched(both, data.draw, None)
    assert table_rows(run.results()) == table_rows(exact)
