"""Ordered joins: results never go back, none is lost, none early, whatever the strategy does.

The order of results is that of their times, the greatest of their rows'. Which results have left
follows from the marks alone, so strategies that change at any moment give the same results in the
same order after every element.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.joins.ordered import strategy
from lowwater.joins.ordered.ordered_join import OrderedJoin
from lowwater.operators.kernel import ALONE
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import BEGINNING, Element, End
from tests.support.batches import dense
from tests.support.checked_run import CheckedRun, feed
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows
from tests.support.paced_run import AFTER_ALL, PacedRun
from tests.support.streams import Sample, samples

ORDERS = ["sync-filter", "filter-order", "adaptive"]
HOWS = st.sampled_from(["inner", "inner", "left", "right", "full", "semi", "anti"])
BANDS = st.tuples(st.integers(-1, 6), st.integers(1, 6))


def inputs(data: Any, number: int = 2) -> list[Sample]:
    """Streams of a few rows in any order, or of more with times that go up."""
    make = samples if data.draw(st.booleans()) else dense
    return [data.draw(make(f"s{at}", most=30 // number)) for at in range(number)]


def joined(one: Sample, two: Sample, band: tuple[int, int], how: Any, order: Any) -> Stream:
    left = one.stream.select("k", "v", a="ts")
    right = two.stream.select("k", w="v", b="ts")
    return left.join(right, on="k", within=band, how=how, order=order)


def times(table: pl.DataFrame) -> list[int]:
    """The time of each result: the greatest its rows have."""
    have = [name for name in ("a", "b", "c") if name in table.columns]
    return table.select(pl.max_horizontal(have)).to_series().to_list()


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data())
def test_results_are_ordered_and_all_there(order: Any, data: Any) -> None:
    one, two = inputs(data)
    (before, after), how = data.draw(BANDS), data.draw(HOWS)
    query = joined(one, two, (before, after), how, order)
    with mock.patch.object(strategy, "ENOUGH", 2), mock.patch.object(strategy, "ARRIVALS", 4):
        found = CheckedRun(query, data.draw).results()
    columns = "l.k, l.v, l.ts"
    if how not in ("semi", "anti"):
        columns = "coalesce(l.k, r.k), l.v, l.ts, r.v, r.ts"
    sql = f"""SELECT {columns} FROM s0 l {how} JOIN s1 r
              ON l.k = r.k AND r.ts BETWEEN l.ts - {before} AND l.ts + {after}"""
    wanted = answer(sql, {"s0": one.kept, "s1": two.kept})
    assert table_rows(found) == wanted
    assert times(found) == sorted(times(found))


def elements(plan: Any, data: Any) -> list[tuple[int, Element]]:
    """What two sources say, cut and interleaved at random: (port, element)."""
    feeds = []
    for port, operator in enumerate(plan.sources):
        spec = operator.node.spec
        channels = spec.channels or (
            operator.node.source.channels(spec.key_columns) if spec.key_columns else ()
        )
        intake = Intake(spec, plan.demands[operator.index], channels)
        feeds.append((port, intake, operator.node.source.open()))
    said: list[tuple[int, Element]] = []
    while feeds:
        at = data.draw(st.integers(0, len(feeds) - 1))
        port, intake, reader = feeds[at]
        if reader.ended:
            said.append((port, End()))
            feeds.pop(at)
            continue
        chunk = reader.read(2**62, data.draw(st.integers(1, 4)))
        taken = intake.take(chunk, 0)
        rows = [taken.rows] if taken.rows.height else []
        said += [(port, element) for element in (*rows, *taken.promises)]
    return said


@given(data=st.data())
def test_changing_the_strategy_at_any_moment_changes_nothing(data: Any) -> None:
    """After every element exactly the same rows have left, in the same order, ties included."""
    one, two = inputs(data)
    query = one.stream.join(two.stream, on="k", within=data.draw(BANDS), order="sync-filter")
    plan = compile_plan(query._node)
    build = plan.result.build
    assert build is not None
    kernels = [build(MemoryStore(), ALONE) for _ in range(3)]
    _, other, wavering = kernels
    assert all(isinstance(each, OrderedJoin) for each in kernels)
    for each in (other, wavering):
        each._strategy.mode = each._mode = "filter-order"  # type: ignore[attr-defined]
    for port, element in elements(plan, data):
        wavering._strategy.mode = data.draw(st.sampled_from(ORDERS[:2]))  # type: ignore[attr-defined]
        results = [
            [rows for rows in feed(each, port, element) if isinstance(rows, pl.DataFrame)]
            for each in kernels
        ]
        first, *others = [pl.concat(rows) if rows else None for rows in results]
        for each in others:
            assert (first is None and each is None) or (
                first is not None and each is not None and first.equals(each)
            )
    for each in kernels:
        assert each.store.rows == 0 == each.store.bytes
        assert each.about()["held_rows"] == 0 == each.about()["waiting_rows"]


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_result_leaves_with_the_mark_that_passes_it(order: Any, data: Any, seed: int) -> None:
    """Not before and not after, however far the join reaches."""
    one, two = (data.draw(dense(f"s{at}", most=24)) for at in range(2))
    run = PacedRun(joined(one, two, data.draw(BANDS), "inner", order), seed)
    for row, step in run.left:
        time = max(row[2], row[4])
        # Of rows of one time those of the second input come first: none of it may still come.
        promised = (time, time + (row[2] == time))
        passed = (
            at
            for at, marks in enumerate(run.marks, 1)
            if all(marks.get(f"s{i}", BEGINNING) >= promised[i] for i in range(2))
        )
        first = next(passed, AFTER_ALL)
        assert step >= first
        if step > first:  # one of its rows came at that very time, after the mark
            assert time in run.marks[step - 2].values()


@given(data=st.data())
def test_pipelines_of_ordered_joins_are_ordered_by_the_greatest_time(data: Any) -> None:
    one, two, three = inputs(data, 3)
    band, far = data.draw(BANDS), data.draw(BANDS)
    first, second = data.draw(st.tuples(*[st.sampled_from([*ORDERS, None])] * 2))
    near = joined(one, two, band, "inner", first)
    last = three.stream.select("k", x="v", c="ts")
    by = data.draw(st.sampled_from(["a", "b"]))
    query = near.join(last, on="k", within=far, times=(by, "c"), order=second or "filter-order")
    found = CheckedRun(query, data.draw).results()
    sql = f"""SELECT s0.k, s0.v, s0.ts, s1.v, s1.ts, s2.v, s2.ts FROM s0, s1, s2
              WHERE s0.k = s1.k AND s0.k = s2.k
              AND s1.ts BETWEEN s0.ts - {band[0]} AND s0.ts + {band[1]}
              AND s2.ts BETWEEN {"s0" if by == "a" else "s1"}.ts - {far[0]}
                            AND {"s0" if by == "a" else "s1"}.ts + {far[1]}"""
    kept = {f"s{at}": each.kept for at, each in enumerate((one, two, three))}
    assert table_rows(found) == answer(sql, kept)
    assert times(found) == sorted(times(found))


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_spread_over_buckets_the_same_results_leave_with_each_batch(
    order: Any, data: Any, seed: int
) -> None:
    one, two = inputs(data)
    query = joined(one, two, data.draw(BANDS), "inner", order)
    runs = [LocalSpark(query, seed, buckets) for buckets in (1, 3)]
    whole = [table_rows(run.results()) for run in runs]
    assert whole[0] == whole[1]
    single, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert single == many
    latest = -(10**9)
    for batch in runs[1].answers:
        if batch.height:
            assert min(times(batch)) >= latest
            latest = max(times(batch))


def test_the_times_of_results_are_counted_once() -> None:
    """Rows of equal time leave by the order in which their rows came, left first."""
    left = lw.stream(pl.DataFrame({"ts": [1, 2, 2], "v": [1, 2, 3]}), name="l", time="ts")
    right = lw.stream(pl.DataFrame({"ts": [2, 2], "w": [1, 2]}), name="r", time="ts")
    for order in ORDERS:
        found = left.join(right, within="1 second", order=order).collect().to_pylist()
        assert [(row["v"], row["w"]) for row in found] == [
            (1, 1), (1, 2), (2, 1), (2, 2), (3, 1), (3, 2)
        ]  # fmt: skip


@pytest.mark.parametrize("order", ORDERS)
@given(data=st.data())
def test_one_join_over_many_inputs_is_ordered_and_has_what_a_pipeline_has(
    order: Any, data: Any
) -> None:
    number = data.draw(st.integers(2, 4))
    given_ = inputs(data, number)
    windows = data.draw(st.lists(st.integers(0, 6), min_size=number, max_size=number))
    names = "abcd"[:number]
    streams = [
        each.stream.select("k", **{name: "ts"}) for name, each in zip(names, given_, strict=True)
    ]
    query = lw.join(streams, on="k", within=windows, order=order)
    found = CheckedRun(query, data.draw).results()
    tables = [f"s{at}" for at in range(number)]
    latest = f"greatest({', '.join(f'{each}.ts' for each in tables)})"
    conditions = [f"{each}.k = s0.k" for each in tables]
    conditions += [f"{latest} - s{at}.ts <= {window}" for at, window in enumerate(windows)]
    sql = f"""SELECT s0.k, {", ".join(f"{each}.ts" for each in tables)}
              FROM {", ".join(tables)} WHERE {" AND ".join(conditions)}"""
    kept = dict(zip(tables, (each.kept for each in given_), strict=True))
    assert table_rows(found) == answer(sql, kept)
    times = found.select(pl.max_horizontal(list(names))).to_series().to_list()
    assert times == sorted(times)
