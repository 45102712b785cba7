"""Feedback: rows that no answer at or above a bound needs are not kept, and no other is touched."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.plan.physical.operator import PhysicalPlan
from tests.properties import test_graphs as small
from tests.properties.test_graphs import Query, base
from tests.properties.test_language import SESSIONS
from tests.properties.test_layout import _judged
from tests.support.batches import dense, unordered
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, on_change, table_rows
from tests.support.streams import Sample, samples

pytestmark = pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
SHAPES = st.sampled_from(["out-of-order", "in-order"])
BOUNDS = st.integers(-4, 30)
FEW = settings(max_examples=max(2, settings.default.max_examples // 6))
FEWER = settings(max_examples=settings.default.max_examples // 2)


def bounded(q: Query, draw: Any) -> Query:
    """A condition on the time, in one of the forms that give a bound."""
    bound = draw(BOUNDS)
    forms = [
        f"ts >= {bound}",
        f"ts > {bound - 1} AND v IS NOT NULL",
        f"{bound} <= ts",
        f"(ts + 3 >= {bound + 3})",
        f"ts BETWEEN {bound} AND {bound + 30}",
    ]
    condition = draw(st.sampled_from(forms))
    return Query(q.stream.where(condition), f"SELECT * FROM ({q.sql}) WHERE {condition}")


def forgotten(q: Query, draw: Any) -> Query:
    bound = draw(BOUNDS)
    return Query(q.stream.forget_before(bound), f"SELECT * FROM ({q.sql}) WHERE ts >= {bound}")


def flushed(q: Query, draw: Any) -> Query:
    """Windows whose answers leave gradually, or from a table of partials."""
    size = draw(st.integers(1, 12))
    options = [{"flush": lw.slow(2, 2)}, {"flush": lw.lazy(1)}, {"table": 3}, {"keep": "rows"}]
    counted = q.stream.window(size, slide=3, **draw(st.sampled_from(options)))
    return Query(
        counted.group_by("k").agg(v="count(v)").select("k", "v", ts="window_start").select(
            "ts", "k", "v"
        ),
        f"""SELECT start AS ts, k, count(v) AS v
            FROM (SELECT unnest(generate_series(
                    CAST(floor((ts - {size}) / 3.0) AS BIGINT) + 1,
                    CAST(floor(ts / 3.0) AS BIGINT))) * 3 AS start, k, v
                  FROM ({q.sql})) GROUP BY start, k""",
    )  # fmt: skip


def in_sessions(q: Query, draw: Any) -> Query:
    gap, edge = draw(st.integers(1, 6)), draw(st.sampled_from(["window_start", "window_end"]))
    answers = q.stream.session(gap).group_by("k").agg(v="count(v)")
    sql = SESSIONS.format(gap=gap, keys="k, ", over="k", aggregates="count(v)", source=f"({q.sql})")
    columns = "window_start, window_end, k, v"
    return Query(
        answers.select(ts=edge, k="k", v="v"),
        f"SELECT {edge} AS ts, k, v FROM ({sql}) AS sessions({columns})",
    )


def changing(q: Query, draw: Any) -> Query:
    size, edge = draw(st.integers(1, 12)), draw(st.sampled_from(["window_start", "window_end"]))
    answers = q.stream.window(size, slide="on change").group_by("k").agg(v="count(*)", m="max(v)")
    sql = on_change(f"({q.sql})", str(size), {"v": "count(r.ts)", "m": "max(r.v)"}, ("k",))
    return Query(answers.select(ts=edge, k="k", v="v"), f"SELECT {edge} AS ts, k, v FROM ({sql})")


def applied(q: Query, _: Any) -> Query:
    return Query(q.stream.apply(lambda rows: rows), q.sql)


def halved(q: Query, r: Query, draw: Any) -> Query:
    how, band = draw(st.sampled_from(["semi", "anti"])), draw(st.integers(0, 5))
    no = "NOT " if how == "anti" else ""
    return Query(
        q.stream.join(r.stream, on="k", within=band, how=how, order=draw(ORDERS)),
        f"""SELECT * FROM ({q.sql}) q WHERE {no}EXISTS (SELECT * FROM ({r.sql}) r
            WHERE q.k = r.k AND r.ts BETWEEN q.ts - {band} AND q.ts + {band})""",
    )


ORDERS = st.sampled_from([None, None, "sync-filter", "filter-order"])


def outer(q: Query, r: Query, draw: Any) -> Query:
    """An outer join, by the time of a side that always comes out or by either."""
    how, band = draw(st.sampled_from(["left", "right", "full"])), draw(st.integers(0, 5))
    time = {"left": "ts", "right": "ts_right", "full": "coalesce(ts, ts_right)"}[how]
    pairs = q.stream.join(r.stream, on="k", within=(0, band), how=how, order=draw(ORDERS))
    sql = f"""SELECT q.ts AS ts, r.ts AS ts_right, coalesce(q.k, r.k) AS k, q.v AS v
              FROM ({q.sql}) q {how} JOIN ({r.sql}) r
              ON q.k = r.k AND r.ts BETWEEN q.ts AND q.ts + {band}"""
    return Query(pairs.select(ts=time, k="k", v="v"), f"SELECT {time} AS ts, k, v FROM ({sql})")


def partners(q: Query, r: Query, draw: Any) -> Query:
    """An outer join by the time of the side that may be missing, which is null then."""
    band = draw(st.integers(0, 5))
    how, time = draw(st.sampled_from([("left", "r.ts"), ("right", "q.ts"), ("full", "r.ts")]))
    pairs = q.stream.join(r.stream, on="k", within=(0, band), how=how)
    out = "ts" if time == "q.ts" else "ts_right"
    return Query(
        pairs.select(ts=out, k="k", v="v"),
        f"""SELECT {time} AS ts, coalesce(q.k, r.k) AS k, q.v AS v
            FROM ({q.sql}) q {how} JOIN ({r.sql}) r
            ON q.k = r.k AND r.ts BETWEEN q.ts AND q.ts + {band}""",
    )


def in_buckets(q: Query, r: Query, draw: Any) -> Query:
    width = draw(st.integers(2, 6))
    time = draw(st.sampled_from(["ts", "ts_right"]))
    pairs = q.stream.join(r.stream, on="k", within=lw.same(width), order=draw(ORDERS))
    return Query(
        pairs.select(ts=time, k="k", v="v"),
        f"""SELECT {"q.ts" if time == "ts" else "r.ts"} AS ts, q.k, q.v
            FROM ({q.sql}) q JOIN ({r.sql}) r
            ON q.k = r.k AND floor(q.ts / {width}.0) = floor(r.ts / {width}.0)""",
    )


ONE = [*small.ONE, bounded, forgotten, flushed, in_sessions, changing, applied]
TWO = [*small.TWO, halved, outer, in_buckets]
OPERATORS = [*ONE, *TWO]


def over(operator: Any, below: Query, other: Query, draw: Any) -> Query:
    """A query with one more operator."""
    return operator(below, other, draw) if operator in TWO else operator(below, draw)


@st.composite
def graphs(draw: Any, queries: list[Query], depth: int) -> Query:
    """A query over the given ones; parts may be shared."""
    query = draw(st.sampled_from(queries))
    for _ in range(depth):
        other = draw(st.sampled_from([*queries, query]))
        query = over(draw(st.sampled_from(OPERATORS)), query, other, draw)
    return query


@st.composite
def inputs(draw: Any) -> dict[str, Sample]:
    """Two streams of a few rows in any order, or of more with times that go up."""
    scattered = [samples(name, most=10) for name in "ab"]
    rising = [dense(name, most=14, keys=(None, "channel")) for name in "ab"]
    return dict(zip("ab", map(draw, draw(st.sampled_from([scattered, rising]))), strict=True))


@pytest.mark.parametrize("operator", OPERATORS, ids=lambda each: each.__name__)
@FEW
@given(data=st.data(), streams=inputs(), depth=st.integers(0, 1))
def test_a_bound_on_the_time_changes_no_other_answer(
    operator: Any, data: Any, streams: dict[str, Sample], depth: int
) -> None:
    bases = [base(name, each) for name, each in streams.items()]
    below, other = data.draw(graphs(bases, depth)), data.draw(st.sampled_from(bases))
    query = bounded(over(operator, below, other, data.draw), data.draw)
    expected = answer(query.sql, {name: each.kept for name, each in streams.items()})
    run = CheckedRun(query.stream, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == expected
    chunk_rows = data.draw(st.integers(1, 8))
    assert table_rows(query.stream.collect(chunk_rows=chunk_rows)) == expected


@pytest.mark.parametrize("operator", [*OPERATORS, partners], ids=lambda each: each.__name__)
@FEW
@given(data=st.data(), streams=inputs(), depth=st.integers(0, 1))
def test_answers_at_or_above_a_bound_do_not_depend_on_when_it_was_stated(
    operator: Any, data: Any, streams: dict[str, Sample], depth: int
) -> None:
    bases = [base(name, each) for name, each in streams.items()]
    below, other = data.draw(graphs(bases, depth)), data.draw(st.sampled_from(bases))
    if operator is partners:
        query = partners(below, other, data.draw)
    else:
        query = over(operator, below, other, data.draw)
    expected = answer(query.sql, {name: each.kept for name, each in streams.items()})
    bounds = data.draw(st.lists(BOUNDS, min_size=1, max_size=3))
    floors = [{"ts": each} for each in bounds if "ts" in query.stream._node.progress]
    run = CheckedRun(query.stream, data.draw, data.draw(SHAPES), forgets=floors)
    found = table_rows(run.results())
    bound = run.forgotten.get("ts", -99)
    needed = {row: n for row, n in expected.items() if row[0] is None or row[0] >= bound}
    assert {row: n for row, n in found.items() if row[0] is None or row[0] >= bound} == needed
    assert found <= expected  # those that left before the bound was stated


@FEWER
@given(st.data(), st.integers(0, 3), st.integers(0, 2**32))
def test_buckets_on_spark_keep_the_same_bound(data: Any, depth: int, seed: int) -> None:
    makes = [data.draw(st.sampled_from([dense, unordered])) for _ in "ab"]
    given_rows = {name: data.draw(make(name)) for make, name in zip(makes, "ab", strict=True)}
    below = data.draw(graphs([base(name, each) for name, each in given_rows.items()], depth))
    query = bounded(below, data.draw)
    kept = {name: _judged(query, "out-of-order", s).kept for name, s in given_rows.items()}
    expected = answer(query.sql, kept)
    for buckets in (1, 2 + seed % 3):
        assert table_rows(LocalSpark(query.stream, seed, buckets).results()) == expected


def without_floors() -> Any:
    """Run as if no operator told another what it needs."""
    none = property(lambda plan: tuple({} for _ in plan.operators))
    return mock.patch.object(PhysicalPlan, "floors", none)


@given(st.data(), samples("a", most=14), samples("b", most=14), BOUNDS)
def test_state_is_never_larger_for_a_bound(data: Any, a: Sample, b: Sample, bound: int) -> None:
    left, right = a.stream.select("ts", "k", "v"), b.stream.select("ts", "k", "v")
    how = data.draw(st.sampled_from(["inner", "semi", "anti", "left"]))
    below = data.draw(
        st.sampled_from(
            [
                left.join(right, on="k", within=4, how=how),
                left.distinct(),
                left.union(right).order_by(),
                lw.join([left, right, left], on="k", within=3),
            ]
        )
    )
    query, peaks = below.where(f"ts >= {bound}"), []
    chunk_rows = data.draw(st.integers(1, 8))
    for told in (True, False):
        if told:
            run = query.run(chunk_rows=chunk_rows)
            run.await_termination()
        else:
            with without_floors():
                run = query.run(chunk_rows=chunk_rows)
                run.await_termination()
        peaks.append([each.state_rows_peak for each in run.metrics().operators])
    assert all(one <= two for one, two in zip(*peaks, strict=True))
