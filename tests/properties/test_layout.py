"""Any query spread over any number of buckets equals the batch answer, and answers when one would.

The layout's invariant is tested by running it: whatever rows must come together did come together
if the answers are right for all keys, cuts and numbers of buckets.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.joins.ordered.strategy import ORDERS
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.planner import compile_plan
from tests.properties import test_graphs as small
from tests.properties.test_graphs import Query, deduplicated, filtered
from tests.support.batches import dense, unordered
from tests.support.local_spark import BATCH_SECONDS, LocalSpark, Unordered
from tests.support.oracle import answer, multiset, on_change, table_rows
from tests.support.streams import SCHEMA, Sample, samples

SHAPES = st.sampled_from(["out-of-order", "in-order"])


def swapped(q: Query, _: Any) -> Query:
    return Query(q.stream.select("ts", k="v", v="k"), f"SELECT ts, v AS k, k AS v FROM ({q.sql})")


def renamed(q: Query, _: Any) -> Query:
    return Query(q.stream.select("ts", k="k", v="k"), f"SELECT ts, k, k AS v FROM ({q.sql})")


def applied(q: Query, _: Any) -> Query:
    def merged(chunk: pl.DataFrame) -> pl.DataFrame:
        return chunk.with_columns(pl.col("k") // 2, pl.col("v").abs() % 3)

    return Query(
        q.stream.apply(merged),
        f"SELECT ts, CAST(floor(k / 2.0) AS BIGINT) AS k, abs(v) % 3 AS v FROM ({q.sql})",
    )


def by_key(q: Query, draw: Any) -> Query:
    size = draw(st.integers(1, 12))
    keys = draw(st.sampled_from(["v", "k, v"]))
    counted = q.stream.window(size).group_by(*keys.split(", ")).agg(n="count(*)", most="max(k)")
    return Query(
        counted.select(ts="window_start", k="v", v="n + coalesce(most, 0)"),
        f"""SELECT CAST(floor(ts / {size}.0) AS BIGINT) * {size} AS ts, v AS k,
                   count(*) + coalesce(max(k), 0) AS v
            FROM ({q.sql}) GROUP BY floor(ts / {size}.0), {keys}""",
    )


def counted(q: Query, draw: Any) -> Query:
    size = draw(st.integers(1, 12))
    answers = q.stream.window(size).agg(k="max(k)", v="sum(v)").where("v IS NOT NULL")
    return Query(
        answers.select(ts="window_end", k="k", v="v"),
        f"""SELECT CAST(floor(ts / {size}.0) AS BIGINT) * {size} + {size} AS ts, max(k) AS k,
                   CAST(sum(v) AS BIGINT) AS v
            FROM ({q.sql}) GROUP BY floor(ts / {size}.0) HAVING sum(v) IS NOT NULL""",
    )


def changing(q: Query, draw: Any) -> Query:
    size = draw(st.integers(1, 12))
    keys = draw(st.sampled_from([(), ("k",), ("v", "k")]))
    answers = q.stream.window(size, slide="on change").group_by(*keys)
    wanted = {"most": "max(r.v)", "n": "count(DISTINCT r.k)"}
    found = on_change(f"({q.sql})", str(size), wanted, keys)
    return Query(
        answers.agg(most="max(v)", n="count(DISTINCT k)").select(ts="window_end", k="n", v="most"),
        f"SELECT window_end AS ts, n AS k, most AS v FROM ({found})",
    )


def by_time(q: Query, _: Any) -> Query:
    return Query(
        q.stream.group_by("ts").agg(k="min(k)", v="count(v)"),
        f"SELECT ts, min(k) AS k, count(v) AS v FROM ({q.sql}) GROUP BY ts",
    )


def keys_only(q: Query, _: Any) -> Query:
    return Query(
        q.stream.distinct("ts", "v").select("ts", k="v", v="v"),
        f"SELECT DISTINCT ts, v AS k, v FROM ({q.sql})",
    )


def crossed(q: Query, r: Query, draw: Any) -> Query:
    band = draw(st.integers(0, 4))
    pairs = q.stream.join(r.stream, on=[("k", "v")], within=band)
    return Query(
        pairs.select("ts", "k", v="v_right"),
        f"""SELECT q.ts, q.k, r.v FROM ({q.sql}) q JOIN ({r.sql}) r
            ON q.k = r.v AND r.ts BETWEEN q.ts - {band} AND q.ts + {band}""",
    )


def left_crossed(q: Query, r: Query, draw: Any) -> Query:
    """What is matched on has another name on the right, and is null where nothing was matched."""
    band = draw(st.integers(0, 4))
    pairs = q.stream.join(r.stream, on=[("k", "v")], within=band, how="left")
    return Query(
        pairs.select("ts", k="v_right", v="k"),
        f"""SELECT q.ts, r.v AS k, q.k AS v FROM ({q.sql}) q LEFT JOIN ({r.sql}) r
            ON q.k = r.v AND r.ts BETWEEN q.ts - {band} AND q.ts + {band}""",
    )


def full_joined(q: Query, r: Query, draw: Any) -> Query:
    width = draw(st.integers(1, 6))
    pairs = q.stream.join(r.stream, on="k", within=lw.same(width), how="full")
    return Query(
        pairs.select(ts="coalesce(ts, ts_right)", k="k", v="coalesce(v_right, v)"),
        f"""SELECT coalesce(q.ts, r.ts) AS ts, coalesce(q.k, r.k) AS k, coalesce(r.v, q.v) AS v
            FROM ({q.sql}) q FULL JOIN ({r.sql}) r
            ON q.k = r.k AND floor(q.ts / {width}.0) = floor(r.ts / {width}.0)""",
    )


def met(q: Query, r: Query, _: Any) -> Query:
    pairs = q.stream.join(r.stream, on=["ts", "v"])
    return Query(
        pairs.select("ts", k="k_right", v="v"),
        f"SELECT q.ts, r.k, q.v FROM ({q.sql}) q JOIN ({r.sql}) r ON q.ts = r.ts AND q.v = r.v",
    )


def paired(q: Query, r: Query, draw: Any) -> Query:
    band = draw(st.integers(0, 4))
    pairs = q.stream.join(r.stream, on="k", within=band)
    return Query(
        pairs.group_by("ts", "ts_right").agg(n="count(*)").select("ts", k="n", v="ts_right"),
        f"""SELECT q.ts, count(*) AS k, r.ts AS v FROM ({q.sql}) q JOIN ({r.sql}) r
            ON q.k = r.k AND r.ts BETWEEN q.ts - {band} AND q.ts + {band} GROUP BY q.ts, r.ts""",
    )


def thrice(q: Query, r: Query, draw: Any) -> Query:
    """Three inputs; the key has two names, and what comes out as key may be another column."""
    window = draw(st.integers(0, 4))
    on, columns = draw(
        st.sampled_from(
            [
                (("k", "v", "k"), {"k": "a.k", "v_2": "b.v", "k_3": "c.k", "k_2": "b.k"}),
                (("v", "k", "k"), {"v": "a.v", "k_2": "b.k", "k": "a.k", "v_2": "b.v"}),
            ]
        )
    )
    rows = lw.join([q.stream, r.stream, r.stream], on=[on], within=window)
    key = draw(st.sampled_from(sorted(columns.keys() & set(rows.columns))))
    return Query(
        rows.select("ts", k=key, v="v_3"),
        f"""SELECT a.ts, {columns[key]} AS k, c.v FROM ({q.sql}) a, ({r.sql}) b, ({r.sql}) c
            WHERE a.{on[0]} = b.{on[1]} AND b.{on[1]} = c.{on[2]}
            AND greatest(a.ts, b.ts, c.ts) - least(a.ts, b.ts, c.ts) <= {window}""",
    )


ONE = [*small.ONE, swapped, renamed, applied, by_key, counted, changing, by_time, keys_only]
TWO = [*small.TWO, crossed, left_crossed, full_joined, met, paired, thrice]


@st.composite
def graphs(draw: Any, queries: list[Query], depth: int) -> Query:
    """A query over the given ones, of at most so many levels; parts may be shared."""
    if depth == 0:
        return draw(st.sampled_from(queries))
    below = draw(graphs(queries, depth - 1))
    if draw(st.booleans()):
        return draw(st.sampled_from(ONE))(below, draw)
    other = draw(st.sampled_from([*queries, below]))
    if draw(st.booleans()):
        other = draw(st.sampled_from(ONE))(other, draw)
    return draw(st.sampled_from(TWO))(below, other, draw)


SEEDS = st.integers(0, 2**32)
FEWER = settings(max_examples=settings.default.max_examples // 3)


def check(query: Query, data: Any, *streams: Sample) -> None:
    """A query on any number of buckets gives the batch answer and the right side outputs, and it
    gives in each batch what it would give on one bucket."""
    names = [each.stream._node.spec.name for each in streams]  # type: ignore[attr-defined]
    seed, shape = data.draw(SEEDS), data.draw(SHAPES)
    streams = tuple(_judged(query, shape, each) for each in streams)
    expected = answer(query.sql, dict(zip(names, (each.kept for each in streams), strict=True)))
    runs = [LocalSpark(query.stream, seed, buckets, shape) for buckets in (1, 2 + seed % 3)]
    for run in runs:
        assert table_rows(run.results()) == expected
        for source in run.program.sources:
            whole = streams[names.index(source.spec.name)].late
            late = run.late(source.spec.name)
            found = whole.clear() if late is None else late.select(whole.columns)
            assert multiset(found.rows()) == multiset(whole.rows())
        if run.plan.order is not None:
            assert run.plan.result.node.time == "ts"
            assert pl.concat(run.answers)["ts"].is_sorted()
    one, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert one == many


def _judged(query: Query, shape: Any, sample: Sample) -> Sample:
    plan = compile_plan(query.stream._node, shape)
    used = any(each.node is sample.stream._node for each in plan.sources)
    return sample.judged(plan) if used else sample


@given(st.data(), samples("a", most=10), samples("b", most=10), st.integers(1, 4))
def test_any_graph_over_small_logs_equals_batch(
    data: Any, a: Sample, b: Sample, depth: int
) -> None:
    check(data.draw(graphs([small.base("a", a), small.base("b", b)], depth)), data, a, b)


@given(st.data(), dense("a"), dense("b"), st.integers(1, 3))
def test_any_graph_over_dense_logs_equals_batch(
    data: Any, a: Sample, b: Sample, depth: int
) -> None:
    check(data.draw(graphs([small.base("a", a), small.base("b", b)], depth)), data, a, b)


@given(st.data(), unordered("a"), unordered("b"), st.integers(1, 3))
def test_any_graph_over_batches_without_order_equals_batch(
    data: Any, a: Sample, b: Sample, depth: int
) -> None:
    check(data.draw(graphs([small.base("a", a), small.base("b", b)], depth)), data, a, b)


ROWWISE = [filtered, small.shifted, swapped, applied]


@pytest.mark.parametrize("kind", [dense, unordered], ids=lambda each: each.__name__)
@FEWER
@given(data=st.data(), depth=st.integers(0, 3), keep=st.booleans())
def test_any_graph_in_order_never_goes_back(kind: Any, data: Any, depth: int, keep: bool) -> None:
    """Rows are in order within a batch and from batch to batch, in whatever bucket they were."""
    a, b = data.draw(kind("a")), data.draw(kind("b"))
    below = data.draw(graphs([small.base("a", a), small.base("b", b)], depth))
    query = small.ordered(below, None)
    if not keep:
        query = data.draw(st.sampled_from(ROWWISE))(query, data.draw)
    assert compile_plan(query.stream._node).order is not None
    check(query, data, a, b)


@pytest.mark.parametrize("two", TWO, ids=lambda each: each.__name__)
@settings(max_examples=max(1, settings.default.max_examples // 30))
@given(data=st.data(), a=dense("a"), b=unordered("b"))
def test_every_operator_over_every_join_and_union(
    two: Any, data: Any, a: Sample, b: Sample
) -> None:
    one, other = small.base("a", a), small.base("b", b)
    for above in ONE:
        right = data.draw(st.sampled_from([one, other, swapped(one, None), swapped(other, None)]))
        check(above(two(one, right, data.draw), data.draw), data, a, b)


@pytest.mark.parametrize("above", ONE, ids=lambda each: each.__name__)
@settings(max_examples=max(1, settings.default.max_examples // 30))
@given(data=st.data(), a=dense("a"))
def test_every_two_operators_that_share_what_another_gives(
    above: Any, data: Any, a: Sample
) -> None:
    """One passes everything on, two read it with keys of their own, and both meet again."""
    for beside in ONE:
        below = data.draw(st.sampled_from([deduplicated, swapped, filtered]))(
            small.base("a", a), data.draw
        )
        two = data.draw(st.sampled_from(TWO))
        check(two(above(below, data.draw), beside(below, data.draw), data.draw), data, a)


def _by(stream: lw.Stream, key: str) -> lw.Stream:
    counted = stream.window(10).group_by(key).agg(n="count(*)")
    return counted.select(ts="window_start", k=key, n="n")


def _by_both(stream: lw.Stream) -> lw.Stream:
    return _by(stream, "k").union(_by(stream, "v"))


MISLEADING = {
    "one stream is matched with itself by two columns": lambda a, b: a.join(
        a, on=[("k", "v")], within=3
    ),
    "one of three is matched by another column": lambda a, b: _by(
        lw.join([a, b, b], on=[("k", "v", "k")], within=1).select("ts", k="k_2"), "k"
    ),
    "a column beside the key of three has its name": lambda a, b: _by(
        lw.join([a, b, b], on=[("v", "k", "k")], within=1), "k"
    ),
    "one stream brings two columns as one": lambda a, b: _by(
        a.union(a.select("ts", k="v", v="k")), "k"
    ),
    "a key is null where nothing was matched": lambda a, b: _by(
        a.join(b, on=[("k", "v")], within=1, how="left").select("ts", k="v_right"), "k"
    ),
    "two read the same rows by different keys": lambda a, b: _by(a.distinct(), "k").union(
        _by(a.distinct(), "v")
    ),
    "two read one operator by different keys": lambda a, b: _by_both(a.distinct()),
    "a computed column takes the name of the key": lambda a, b: _by(
        _by(a, "k").select("ts", k="n"), "k"
    ),
    "a function changes the key": lambda a, b: _by(
        a.distinct().apply(lambda chunk: chunk.with_columns(pl.col("k") % 2)), "k"
    ),
}


@pytest.mark.parametrize("name", MISLEADING)
@pytest.mark.parametrize("buckets", [2, 3, 4])
def test_keys_that_look_alike_and_are_not(name: str, buckets: int) -> None:
    """Queries for which an easy way to choose a key would tear apart what belongs together."""
    rows = {
        "ts": list(range(60)),
        "k": [at % 7 for at in range(60)],
        "v": [at * 3 % 5 for at in range(60)],
    }
    a, b = (lw.stream(pl.DataFrame(rows), name=each, time="ts") for each in "ab")
    query = MISLEADING[name](a, b)
    expected = table_rows(query.collect())
    assert len(expected) > 4
    for seed in range(3):
        assert table_rows(LocalSpark(query, seed, buckets).results()) == expected


@FEWER
@given(unordered("a"), st.integers(1, 9), SEEDS)
def test_windows_of_rows_count_every_row_of_a_batch_once(a: Sample, size: int, seed: int) -> None:
    """Which row of a batch is which is not defined; that each has a number of its own is."""
    query = a.stream.window(rows=size).agg(n="count(*)", total="sum(v)")
    a = a.judged(compile_plan(query._node))
    found = LocalSpark(query, seed, buckets=3).results()
    rows, came = a.kept.height, a.kept.height + a.late.height
    assert found["window_start"].is_unique().all()
    assert set(found["window_start"]) <= set(range(0, came, size))
    assert found["n"].is_between(1, size).all()
    if rows == came:
        assert sorted(found["window_start"]) == list(range(0, rows, size))
        assert sorted(found["n"], reverse=True)[: rows // size] == [size] * (rows // size)
    assert found["n"].sum() == rows
    assert found["total"].sum() == a.kept["v"].sum()


@pytest.mark.parametrize("stamp", ["internal", "latent"])
@pytest.mark.parametrize("keys", [[], ["k"]], ids=["over everything", "by key"])
@FEWER
@given(tables=st.tuples(unordered("a"), unordered("b")), joined=st.booleans(), seed=SEEDS)
def test_rows_stamped_by_the_clock_are_in_one_window_each(
    stamp: Any, keys: list[str], tables: tuple[Sample, Sample], joined: bool, seed: int
) -> None:
    """Whatever the clock says, a window is answered once, with all its rows."""
    one, two = (
        lw.stream(
            each.stream._node.source,  # type: ignore[attr-defined]
            name=each.stream._node.spec.name,  # type: ignore[attr-defined]
            time="seen",
            stamp=stamp,
        )
        for each in tables
    )
    pairs = one.join(two, on="k", within=BATCH_SECONDS)
    stream = pairs if joined else one.union(two)
    counted = stream.window(2 * BATCH_SECONDS).group_by(*keys).agg(n="count(*)")
    runs = [LocalSpark(counted, seed, buckets) for buckets in (1, 3)]
    single, many = (table_rows(run.results()) for run in runs)
    assert single == many
    assert len({row[:-1] for row in many}) == len(many)
    rows = sum(each.stream._node.source.table.height for each in tables)  # type: ignore[attr-defined]
    assert joined or sum(row[-1] for row in many) == rows


IDLE = {
    "on demand": {"idle": lw.on_demand(skew=5)},
    "heartbeat": {"idle": lw.heartbeat(BATCH_SECONDS, skew=900)},
    "timer": {"punctuate": lw.timer(BATCH_SECONDS)},
}


@pytest.mark.parametrize("idle", IDLE)
@FEWER
@given(tables=st.tuples(unordered("a"), unordered("b")), keyed=st.booleans(), seed=SEEDS)
def test_silent_streams_speak_and_no_row_is_lost_or_counted_twice(
    idle: str, tables: tuple[Sample, Sample], keyed: bool, seed: int
) -> None:
    """A row is in the answer or in the side output, whenever the clock ticks."""
    one, two = (
        lw.stream(
            each.stream._node.source,  # type: ignore[attr-defined]
            name=each.stream._node.spec.name,  # type: ignore[attr-defined]
            time="ts",
            progress=lw.within(4),
            jump=None,
            **IDLE[idle],
        )
        for each in tables
    )
    counted = one.union(two).window(5).group_by(*(["k"] if keyed else [])).agg(n="count(*)")
    runs = [LocalSpark(counted, seed, buckets) for buckets in (1, 3)]
    single, many = (table_rows(run.results()) for run in runs)
    assert single == many
    assert set(many.values()) <= {1}
    assert len({row[:-1] for row in many}) == len(many)
    sides = [run.late(name) for run in runs for name in ("a", "b")]
    late = [0 if side is None else side.height for side in sides]
    assert late[:2] == late[2:]
    rows = sum(each.stream._node.source.table.height for each in tables)  # type: ignore[attr-defined]
    assert sum(row[-1] for row in many) + sum(late[:2]) == rows


# ---- order -----------------------------------------------------------------------------------


either = st.sampled_from([dense, unordered])


def _greater(a: lw.Stream, b: lw.Stream) -> lw.Stream:
    return a.join(b, on="k", within=3).select(
        ts="greatest(ts, ts_right)", k="k", v="v", other="v_right"
    )


IN_ORDER: dict[str, tuple[Any, str, list[str]]] = {
    "one stream": (lambda a, b: a, "ts", ["parts"]),
    "a union": (lambda a, b: a.union(b), "ts", ["parts"]),
    "a join, by the greater time": (_greater, "ts", ["parts"]),
    "a join, by the other time": (lambda a, b: a.join(b, on="k", within=3), "ts_right", ["parts"]),
    "an outer join": (
        lambda a, b: a.join(b, on="k", within=3, how="left"), "ts", ["parts"]
    ),
    "an anti join": (lambda a, b: a.join(b, on="k", within=3, how="anti"), "ts", ["parts"]),
    "duplicates": (lambda a, b: a.distinct("ts", "k"), "ts", ["parts"]),
    "windows": (lambda a, b: _count(a, 7, "k"), "window_end", ["parts"]),
    "times": (lambda a, b: a.group_by("ts", "k").agg(n="count(*)"), "ts", ["parts"]),
    "a join by one key, windows by another": (
        lambda a, b: _count(_greater(a, b), 7, "v"), "window_end", ["", "parts"]
    ),
    "joins by two keys": (
        lambda a, b: _greater(a, b).join(b.select(t="ts", u="v"), on=[("v", "u")], within=3),
        "t", ["", "parts"],
    ),
    "a window of everything": (
        lambda a, b: a.window(5).agg(n="count(*)"), "window_start", ["single"]
    ),
    "a join in order": (
        lambda a, b: a.join(b, on="k", within=3, order="filter-order"), "ts", ["parts"]
    ),
    "a join in order, in front of which rows wait": (
        lambda a, b: a.join(b, on="k", within=3, order="sync-filter"), "ts", ["", "single"]
    ),
    "in order twice": (
        lambda a, b: a.distinct("ts", "k").order_by().distinct("ts"), "ts", ["", "single"]
    ),
    "sessions, by their start": (
        lambda a, b: a.session(3).group_by("k").agg(n="count(*)"), "window_start", ["", "single"]
    ),
    "sessions and a join": (
        lambda a, b: a.session(3).group_by("k").agg(n="count(*)")
        .join(b, on="k", within=3, times=("window_start", "ts")),
        "window_start", ["", "single"],
    ),
    "windows that answer slowly": (
        lambda a, b: a.window(5, flush=lw.slow()).group_by("k").agg(n="count(*)"),
        "window_end", ["", "single"],
    ),
    "windows that answer lazily": (
        lambda a, b: a.window(5, flush=lw.lazy()).group_by("k").agg(n="count(*)"),
        "window_end", ["", "single"],
    ),
    "windows from a table": (
        lambda a, b: a.window(5, table=2).group_by("k").agg(n="count(*)"),
        "window_end", ["", "single"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IN_ORDER)
@settings(max_examples=settings.default.max_examples // 5)
@given(data=st.data())
def test_what_is_in_order_never_goes_back_on_any_number_of_buckets(name: str, data: Any) -> None:
    build, column, expected = IN_ORDER[name]
    a, b = (data.draw(data.draw(either)(each)) for each in "ab")
    query, seed = build(a.stream, b.stream).order_by(column), data.draw(SEEDS)
    layout = lay_out(compile_plan(query._node))
    kinds = [
        "single" if each.single else "parts" if each.combined else "" for each in layout.stages
    ]
    assert kinds == expected
    runs = [LocalSpark(query, seed, buckets) for buckets in (1, 4)]
    for run in runs:
        run.results()
        assert pl.concat(run.answers)[column].is_sorted()
    one, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert one == many


@pytest.mark.parametrize("how", ["inner", "left", "full", "anti"])
@pytest.mark.parametrize("order", ORDERS)
@settings(max_examples=settings.default.max_examples // 5)
@given(data=st.data(), keyed=st.booleans())
def test_results_of_a_join_leave_in_order_on_any_number_of_buckets(
    order: Any, how: Any, data: Any, keyed: bool
) -> None:
    """Where rows may wait, what an outer join lets go depends on which do: then in one bucket."""
    a, b = (data.draw(data.draw(either)(each)) for each in "ab")
    on, seed = ["k"] if keyed else [], data.draw(SEEDS)
    query = a.stream.join(b.stream, on=on, within=3, how=how, order=order)
    (stage,) = lay_out(compile_plan(query._node)).stages
    spread = keyed and (how == "inner" or order == "filter-order")
    assert (stage.single, stage.combined is not None) == (not spread, spread)
    runs = [LocalSpark(query, seed, buckets) for buckets in (1, 4)]
    times = ["ts"] if how == "anti" else ["ts", "ts_right"]
    for run in runs:
        run.results()
        found = pl.concat(run.answers)
        assert found.select(pl.max_horizontal(times)).to_series().is_sorted()
    one, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert one == many


@pytest.mark.parametrize("stamp", ["internal", "latent"])
@FEWER
@given(tables=st.tuples(unordered("a"), unordered("b")), seed=SEEDS)
def test_rows_stamped_by_the_clock_leave_in_order(
    stamp: Any, tables: tuple[Sample, Sample], seed: int
) -> None:
    one, two = (
        lw.stream(
            each.stream._node.source,  # type: ignore[attr-defined]
            name=each.stream._node.spec.name,  # type: ignore[attr-defined]
            time="seen",
            stamp=stamp,
        )
        for each in tables
    )
    query = one.join(two, on="k", within=BATCH_SECONDS, how="left").order_by("seen")
    assert lay_out(compile_plan(query._node)).stages[-1].single == (stamp == "latent")
    runs = [LocalSpark(query, seed, buckets) for buckets in (1, 3)]
    single, many = (table_rows(run.results()) for run in runs)
    assert single == many
    for run in runs:
        assert pl.concat(run.answers)["seen"].is_sorted()


@pytest.mark.parametrize("idle", IDLE)
@FEWER
@given(tables=st.tuples(unordered("a"), unordered("b")), seed=SEEDS)
def test_silent_streams_speak_and_rows_leave_in_order(
    idle: str, tables: tuple[Sample, Sample], seed: int
) -> None:
    one, two = (
        lw.stream(
            each.stream._node.source,  # type: ignore[attr-defined]
            name=each.stream._node.spec.name,  # type: ignore[attr-defined]
            time="ts",
            progress=lw.within(4),
            jump=None,
            **IDLE[idle],
        )
        for each in tables
    )
    runs = [LocalSpark(_greater(one, two).order_by(), seed, buckets) for buckets in (1, 3)]
    single, many = (table_rows(run.results()) for run in runs)
    assert single == many
    for run in runs:
        assert pl.concat(run.answers)["ts"].is_sorted()


def test_an_order_makes_what_is_said_of_a_group_known_in_all_buckets() -> None:
    rows = pl.DataFrame({"ts": range(60), "s": [str(at % 9) for at in range(60)]})
    devices = lw.stream(rows, name="a", time="ts", groups="s", jump=None)
    run = LocalSpark(_count(devices, 10, "s").order_by("window_end"), 0, 3)
    assert [each.owned for source in run.program.sources for each in source.deliveries] == [False]
    assert run.program.stages[-1].ids == run.program.stages[0].ids
    run.results()
    assert pl.concat(run.answers)["window_end"].is_sorted()


# ---- groups ----------------------------------------------------------------------------------

GROUPED = ("groups",)


def _windows(size: int, keys: str, source: str) -> str:
    start = f"CAST(floor(ts / {size}.0) AS BIGINT) * {size}"
    ends = f"{start} AS ws, {start} + {size} AS we"
    return f"SELECT {ends}, {keys}, count(*) AS n FROM {source} GROUP BY ALL"


def _sessions(gap: int) -> str:
    return f"""SELECT min(ts), max(ts) + {gap}, s, count(*) FROM (
        SELECT *, sum(CASE WHEN before IS NULL OR ts - before >= {gap} THEN 1 ELSE 0 END)
            OVER (PARTITION BY s ORDER BY ts ROWS UNBOUNDED PRECEDING) AS number
        FROM (SELECT *, lag(ts) OVER (PARTITION BY s ORDER BY ts) AS before FROM a))
        GROUP BY s, number"""


def _count(stream: lw.Stream, size: int, *keys: str) -> lw.Stream:
    return stream.window(size).group_by(*keys).agg(n="count(*)")


def _twice(a: lw.Stream, *keys: str) -> lw.Stream:
    inner = _count(a, 5, "s", "k").select(ts="window_start", s="s", k="k", n="n")
    return inner.window(10).group_by(*keys).agg(total="sum(n)")


BY_GROUP: dict[str, tuple[Any, str]] = {
    "windows": (lambda a, b: _count(a, 7, "s"), _windows(7, "s", "a")),
    "windows by more": (lambda a, b: _count(a, 7, "k", "s"), _windows(7, "k, s", "a")),
    "windows by less": (lambda a, b: _count(a, 7, "k"), _windows(7, "k", "a")),
    "sessions": (lambda a, b: a.session(3).group_by("s").agg(n="count(*)"), _sessions(3)),
    "windows on change": (
        lambda a, b: a.window(5, slide="on change").group_by("s").agg(n="count(*)", t="sum(v)"),
        on_change("a", "5", {"n": "count(r.ts)", "t": "CAST(sum(r.v) AS BIGINT)"}, ("s",)),
    ),
    "duplicates": (
        lambda a, b: a.distinct("ts", "k", "s"), "SELECT DISTINCT ts, k, s FROM a"
    ),
    "times": (
        lambda a, b: a.group_by("ts", "s").agg(n="count(*)"),
        "SELECT ts, s, count(*) FROM a GROUP BY ALL",
    ),
    "duplicates, then windows": (
        lambda a, b: _count(a.distinct("ts", "k", "s"), 7, "s"),
        _windows(7, "s", "(SELECT DISTINCT ts, k, s FROM a)"),
    ),
    "windows of windows": (
        lambda a, b: _twice(a, "s"),
        """SELECT CAST(floor(ws / 10.0) AS BIGINT) * 10, CAST(floor(ws / 10.0) AS BIGINT) * 10 + 10,
           s, CAST(sum(n) AS BIGINT) FROM (""" + _windows(5, "s, k", "a") + ") GROUP BY ALL",
    ),
    "windows of windows, by another key": (
        lambda a, b: _twice(a, "k"),
        """SELECT CAST(floor(ws / 10.0) AS BIGINT) * 10, CAST(floor(ws / 10.0) AS BIGINT) * 10 + 10,
           k, CAST(sum(n) AS BIGINT) FROM (""" + _windows(5, "s, k", "a") + ") GROUP BY ALL",
    ),
    "a join": (
        lambda a, b: a.join(b, on="s", within=2, how="left").select("ts", "s", "ts_right"),
        """SELECT a.ts, a.s, b.ts FROM a LEFT JOIN b
           ON a.s = b.s AND b.ts BETWEEN a.ts - 2 AND a.ts + 2""",
    ),
    "a join, then windows": (
        lambda a, b: _count(a.join(b, on="s", within=2), 7, "s"),
        _windows(7, "s", "(SELECT a.* FROM a JOIN b ON a.s = b.s AND abs(a.ts - b.ts) <= 2)"),
    ),
    "an anti join": (
        lambda a, b: a.join(b, on="s", within=2, how="anti"),
        "SELECT * FROM a ANTI JOIN b ON a.s = b.s AND b.ts BETWEEN a.ts - 2 AND a.ts + 2",
    ),
    "a union": (
        lambda a, b: _count(a.union(b), 7, "s"),
        _windows(7, "s", "(SELECT * FROM a UNION ALL SELECT * FROM b)"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_GROUP)
@FEWER
@given(data=st.data())
def test_groups_progress_each_in_its_bucket(name: str, data: Any) -> None:
    build, sql = BY_GROUP[name]
    a = data.draw(data.draw(either)("a", keys=GROUPED))
    b = data.draw(data.draw(either)("b"))
    query = Query(build(a.stream, b.stream), sql)
    check(query, data, *((a, b) if " b" in sql else (a,)))


@FEWER
@given(a=unordered("a", keys=GROUPED), idle=st.sampled_from(sorted(IDLE)), seed=SEEDS)
def test_silent_groups_speak_and_no_row_is_lost(a: Sample, idle: str, seed: int) -> None:
    """A row is in the answer or in the side output, whenever the clock ticks."""
    source = a.stream._node.source  # type: ignore[attr-defined]
    options = {"time": "ts", "progress": lw.within(4), "jump": None, "groups": "s", **IDLE[idle]}
    counted = lw.stream(source, name="a", **options).window(5).group_by("s").agg(n="count(*)")
    runs = [LocalSpark(counted, seed, buckets) for buckets in (1, 3)]
    single, many = (table_rows(run.results()) for run in runs)
    assert single == many
    assert len({row[:-1] for row in many}) == len(many)
    late = [0 if (side := run.late("a")) is None else side.height for run in runs]
    assert late[0] == late[1]
    assert sum(row[-1] for row in many) + late[0] == source.table.height


def test_a_silent_group_is_answered_while_others_are_busy() -> None:
    busy = [(at, 0, "b", 1) for at in range(1, 41)]
    rows = pl.DataFrame([(0, 0, "a", 1), *busy], schema=SCHEMA, orient="row")
    source: Any = Unordered(rows, [5, 6, 6, 6, 6, 6, 6])
    options = {"time": "ts", "groups": "s", "jump": None, "idle": lw.on_demand()}
    counted = lw.stream(source, name="a", **options).window(5).group_by("s").agg(n="count(*)")
    run = LocalSpark(counted, seed=1, buckets=3)
    always = mock.Mock(random=lambda: 0.0)  # every batch brings rows, and a tick of the clock
    with (
        mock.patch.object(run, "_schedule", always),
        mock.patch.object(run._feeds[0], "_schedule", always),
    ):
        run.results()
    found = [batch.filter(pl.col("s") == "a").height for batch in run.answers]
    assert found.index(1) == 1
    assert sum(found) == 1


def test_what_is_said_of_a_group_goes_to_its_bucket_alone() -> None:
    rows = pl.DataFrame({"ts": range(60), "s": [str(at % 9) for at in range(60)]})
    devices = lw.stream(rows, name="a", time="ts", groups="s", jump=None)
    by_group = devices.window(10).group_by("s").agg(n="count(*)")
    (source,) = LocalSpark(by_group, 0, 3).program.sources
    assert [each.owned for each in source.deliveries] == [True]
    assert "spread by" not in by_group.explain()
    assert "rows go to buckets: by s" in by_group.explain()
    more = devices.map(k="ts % 2").window(10).group_by("k", "s").agg(n="count(*)")
    assert "rows go to buckets: by s" in more.explain()
    whole = devices.window(10).agg(n="count(*)")
    (source,) = LocalSpark(whole, 0, 3).program.sources
    assert [each.owned for each in source.deliveries] == [False]
