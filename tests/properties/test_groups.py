"""Group-wise progress: answers are the same, and a lagging group delays nobody else."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.errors import StreamWarning
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.stream.element import GroupPunctuation
from tests.properties.test_kernels import BANDS, SHAPES, SLOWLY, WINDOWED, check, unmatched
from tests.support.checked_run import CheckedRun
from tests.support.oracle import answer, multiset, table_rows
from tests.support.streams import SCHEMA, Sample, samples
from tests.unit.progress.judging import contracts, rows, spec_of, table

ALONE = Demand.any_value().with_linear(False)
HOWS = st.sampled_from(["inner", "left", "right", "full"])


def grouped(name: str, most: int = 16) -> st.SearchStrategy[Sample]:
    """A stream whose groups progress each by itself."""
    return samples(name, groups=True, most=most)


def either(name: str, most: int = 16) -> st.SearchStrategy[Sample]:
    """A stream with groups, or without."""
    return st.one_of(samples(name, groups=True, most=most), samples(name, most=most))


def unannounced(query: Stream, sql: str, data: Any, sample: Sample) -> None:
    """The answer over all rows that break no promise of their own group, all groups newcomers."""
    run = CheckedRun(query, data.draw, announced=False)
    assert table_rows(run.results()) == answer(sql, {"a": sample.kept})
    refused = run.refused.get("a", [])
    late = pl.concat(refused).select(sample.late.columns) if refused else sample.late.clear()
    assert multiset(late.rows()) == multiset(sample.late.rows())


def promises_on_the_whole(query: Stream) -> list[bool]:
    """For each source in turn, whether it is asked for a promise on the whole stream."""
    plan = compile_plan(query._node)
    demands = (plan.demands[each.index].values() for each in plan.sources)
    return [any(demand.linear for demand in each) for each in demands]


# ---- answers equal those of a batch ----------------------------------------------------------


@given(grouped("a"), grouped("b"), st.integers(1, 12), st.data())
def test_windows_answered_group_by_group_equal_batch(
    a: Sample, b: Sample, size: int, data: Any
) -> None:
    query = a.stream.union(b.stream).where("v IS NOT NULL").window(size).group_by("s", "k")
    run = CheckedRun(query.agg(n="count(*)"), data.draw, data.draw(SHAPES))
    sql = WINDOWED.format(
        range=size,
        slide=size,
        keys="s, k, ",
        groups=", s, k",
        aggregates="count(*)",
        source="(SELECT * FROM a UNION ALL SELECT * FROM b) WHERE v IS NOT NULL",
    )
    assert table_rows(run.results()) == answer(sql, {"a": a.kept, "b": b.kept})


@given(grouped("a"), st.integers(1, 12), st.integers(1, 12), st.booleans(), st.data())
def test_sliding_windows_equal_batch_announced_or_not(
    a: Sample, size: int, slide: int, known: bool, data: Any
) -> None:
    query = a.stream.window(size, slide=slide).group_by("s", "k").agg(n="count(*)", m="max(v)")
    assert promises_on_the_whole(query) == [False]
    sql = WINDOWED.format(
        range=size,
        slide=slide,
        keys="s, k, ",
        groups=", s, k",
        aggregates="count(*), max(v)",
        source="a",
    )
    if known:
        check(query, sql, data, a)
    else:
        unannounced(query, sql, data, a)


SESSIONS = """
    SELECT min(ts), max(ts) + {gap}, s, count(*) FROM (
        SELECT *, sum(CASE WHEN before IS NULL OR ts - before >= {gap} THEN 1 ELSE 0 END)
            OVER (PARTITION BY s ORDER BY ts ROWS UNBOUNDED PRECEDING) AS number
        FROM (SELECT *, lag(ts) OVER (PARTITION BY s ORDER BY ts) AS before FROM a))
    GROUP BY s, number
"""


@given(grouped("a", 24), st.integers(1, 9), st.booleans(), st.data())
def test_sessions_equal_batch(a: Sample, gap: int, known: bool, data: Any) -> None:
    query = a.stream.session(gap, flush=data.draw(SLOWLY)).group_by("s").agg(n="count(*)")
    assert promises_on_the_whole(query) == [False]
    sql = SESSIONS.format(gap=gap)
    if known:
        check(query, sql, data, a)
    else:
        unannounced(query, sql, data, a)


@given(grouped("a", 24), st.booleans(), st.data())
def test_distinct_equals_batch(a: Sample, known: bool, data: Any) -> None:
    query = a.stream.distinct("ts", "s", "k")
    assert promises_on_the_whole(query) == [False]
    sql = "SELECT DISTINCT ts, s, k FROM a"
    if known:
        check(query, sql, data, a)
    else:
        unannounced(query, sql, data, a)


@given(grouped("a", 24), st.booleans(), st.data())
def test_groups_of_a_time_and_of_what_is_computed_from_it_equal_batch(
    a: Sample, known: bool, data: Any
) -> None:
    text, column = data.draw(
        st.sampled_from([("ts", "ts"), ("ts + 3", "ts + 3"), ("ts/7", "floor(ts / 7.0)")])
    )
    select = f"SELECT {text} AS t, s AS name, count(*) AS n FROM a GROUP BY {text}, s"
    query = lw.sql(select, a=a.stream)
    assert promises_on_the_whole(query) == [False]
    sql = f"SELECT CAST({column} AS BIGINT), s, count(*) FROM a GROUP BY ALL"
    if known:
        check(query, sql, data, a)
    else:
        unannounced(query, sql, data, a)


@given(either("a", 14), either("b", 14), BANDS, HOWS, st.data())
def test_joins_equal_batch(
    a: Sample, b: Sample, band: tuple[int, int], how: Any, data: Any
) -> None:
    on = data.draw(st.sampled_from([["s"], ["k", "s"], ["k"]]))
    query = a.stream.join(b.stream, on=on, within=band, how=how, flush=unmatched(data.draw, how))
    match = f"b.ts >= a.ts - {band[0]} AND b.ts <= a.ts + {band[1]}"
    match += "".join(f" AND a.{key} = b.{key}" for key in on)
    keys = {key: f"coalesce(a.{key}, b.{key})" for key in on}
    left = ", ".join(keys.get(name, f"a.{name}") for name in ("ts", "k", "s", "v"))
    right = ", ".join(f"b.{name}" for name in ("ts", "k", "s", "v") if name not in on)
    check(query, f"SELECT {left}, {right} FROM a {how} JOIN b ON {match}", data, a, b)


@st.composite
def dense(draw: Any, name: str) -> Sample:
    """A stream whose rows of each group come in order, so that most have passed others soon."""
    steps = draw(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 2)), min_size=8))
    now = {"a": draw(st.integers(0, 4)), "b": draw(st.integers(0, 4))}
    table = []
    for number, (group, step) in enumerate(steps[:20]):
        now[group] += step
        table.append((now[group], number % 2, group, number))
    sent = pl.DataFrame(table, schema=SCHEMA, orient="row")
    stream = lw.stream(lw.replay(sent), name=name, time="ts", groups="s", jump=None)
    return Sample(stream, sent, sent.clear())


@pytest.mark.parametrize("how", ["inner", "left", "full", "semi", "anti"])
@given(dense("a"), dense("b"), st.integers(0, 2), st.integers(0, 2), st.data())
def test_joins_equal_batch_where_rows_of_a_group_are_dropped_by_its_marks(
    how: Any, a: Sample, b: Sample, before: int, after: int, data: Any
) -> None:
    query = a.stream.join(
        b.stream, on="s", within=(before, after), how=how, flush=unmatched(data.draw, how)
    )
    columns = (
        "a.*" if how in ("semi", "anti") else "a.ts, a.k, coalesce(a.s, b.s), a.v, b.ts, b.k, b.v"
    )
    sql = f"""SELECT {columns} FROM a {how} JOIN b
              ON a.s = b.s AND b.ts BETWEEN a.ts - {before} AND a.ts + {after}"""
    run = CheckedRun(query, data.draw)
    assert table_rows(run.results()) == answer(sql, {"a": a.kept, "b": b.kept})


@given(either("a", 14), either("b", 14), st.integers(1, 12), HOWS, st.data())
def test_joins_within_a_bucket_equal_batch(
    a: Sample, b: Sample, width: int, how: Any, data: Any
) -> None:
    query = a.stream.join(
        b.stream, on=[("s", "s")], within=lw.same(width), how=how, flush=unmatched(data.draw, how)
    )
    match = f"floor(a.ts / {width}.0) = floor(b.ts / {width}.0) AND a.s = b.s"
    sql = f"""SELECT a.ts, a.k, coalesce(a.s, b.s), a.v, b.ts, b.k, b.v
              FROM a {how} JOIN b ON {match}"""
    check(query, sql, data, a, b)


@given(either("a", 14), either("b", 14), BANDS, st.sampled_from(["semi", "anti"]), st.data())
def test_semi_and_anti_joins_equal_batch(
    a: Sample, b: Sample, band: tuple[int, int], how: Any, data: Any
) -> None:
    query = a.stream.join(b.stream, on="s", within=band, how=how, flush=unmatched(data.draw, how))
    sql = f"""SELECT * FROM a {how} JOIN b
              ON a.s = b.s AND b.ts >= a.ts - {band[0]} AND b.ts <= a.ts + {band[1]}"""
    check(query, sql, data, a, b)


@given(either("a", 12), either("b", 12), st.integers(0, 6), HOWS, st.data())
def test_a_join_then_windows_equal_batch(
    a: Sample, b: Sample, band: int, how: Any, data: Any
) -> None:
    joined = a.stream.join(b.stream, on="s", within=band, how=how, flush=unmatched(data.draw, how))
    time = "ts" if how in ("inner", "left") else "ts_right" if how == "right" else "t"
    joined = joined.map(t="coalesce(ts, ts_right)") if how == "full" else joined
    query = joined.window(10, on=time).group_by("s").agg(n="count(*)")
    column = {"ts": "a.ts", "ts_right": "b.ts", "t": "coalesce(a.ts, b.ts)"}[time]
    sql = f"""SELECT CAST(floor(t / 10.0) AS BIGINT) * 10,
                     CAST(floor(t / 10.0) AS BIGINT) * 10 + 10, s, count(*)
              FROM (SELECT {column} AS t, coalesce(a.s, b.s) AS s FROM a {how} JOIN b
                    ON a.s = b.s AND b.ts BETWEEN a.ts - {band} AND a.ts + {band}) GROUP BY ALL"""
    check(query, sql, data, a, b)


@given(either("a"), either("b"), either("c"), st.data())
def test_unions_of_streams_with_and_without_groups_equal_batch(
    a: Sample, b: Sample, c: Sample, data: Any
) -> None:
    query = a.stream.union(b.stream, c.stream).window(5).group_by("s").agg(n="count(*)")
    both = "(SELECT * FROM a UNION ALL SELECT * FROM b UNION ALL SELECT * FROM c)"
    sql = WINDOWED.format(
        range=5, slide=5, keys="s, ", groups=", s", aggregates="count(*)", source=both
    )
    check(query, sql, data, a, b, c)


@given(grouped("a", 24), st.integers(1, 6), st.data())
def test_windows_of_windows_equal_batch(a: Sample, size: int, data: Any) -> None:
    wide = 4 * size
    inner = a.stream.window(size).group_by("s", "k").agg(n="count(*)")
    query = inner.window(wide, on="window_end").group_by("s").agg(total="sum(n)")
    sql = f"""SELECT w, w + {wide}, s, CAST(count(*) AS BIGINT) FROM (
                SELECT CAST(floor((floor(ts / {size}.0) + 1) * {size} / {wide}.0) AS BIGINT)
                    * {wide} AS w, s FROM a) GROUP BY w, s"""
    check(query, sql, data, a)


# ---- who is asked for a promise on the whole stream ------------------------------------------


def stream(name: str = "s", **options: Any) -> Stream:
    empty = pl.DataFrame(schema={"ts": pl.Int64, "g": pl.String, "v": pl.Int64})
    return lw.stream(empty, name=name, time="ts", jump=None, **options)


def test_a_promise_on_the_whole_stream_is_made_only_if_somebody_needs_it() -> None:
    devices, plain = stream(groups="g"), stream("plain")
    by_group = devices.window(10).group_by("g", "v").agg(n="count(*)")
    cases = [
        (by_group, [False]),
        (devices.window(10).agg(n="count(*)"), [True]),
        (devices.window(10).group_by("v").agg(n="count(*)"), [True]),
        (by_group.window(20, on="window_end").group_by("g").agg(n="sum(n)"), [False]),
        (by_group.window(20, on="window_end").agg(n="sum(n)"), [True]),
        (by_group.order_by("window_end"), [True]),
        (devices.distinct("ts", "g"), [False]),
        (devices.distinct("ts", "v"), [True]),
        (devices.select(t="ts", name="g").window(10, on="t").group_by("name").agg(n="count(*)"),
         [False]),
        (devices.select(t="ts", name="upper(g)").window(10, on="t").group_by("name")
         .agg(n="count(*)"), [True]),
        (devices.union(plain).window(10).group_by("g").agg(n="count(*)"), [True, True]),
        (devices.join(plain, on="g", within=5), [True, True]),
        (devices.where("v > 1"), [False]),
    ]  # fmt: skip
    for query, expected in cases:
        assert promises_on_the_whole(query) == expected, query.explain()


def test_explain_says_for_whom_promises_are_made() -> None:
    devices = stream(groups="g")
    by_group = devices.window(10).group_by("g").agg(n="count(*)")
    assert "punctuates: ts every 10 s, for each g alone" in by_group.explain()
    whole = devices.window(10).agg(n="count(*)")
    assert "punctuates: ts every 10 s, for each g and for all" in whole.explain()


# ---- a lagging group delays nobody else ------------------------------------------------------


def outcomes(query: Stream, chunk_rows: int = 1) -> list[tuple[Any, ...]]:
    """The answers in the order in which they left."""
    out: list[tuple[Any, ...]] = []
    query.run(
        sink=lambda t: out.extend(tuple(row.values()) for row in t.to_pylist()),
        chunk_rows=chunk_rows,
    ).await_termination()
    return out


def log(rows: list[tuple[int, str]], name: str = "s", **options: Any) -> Stream:
    frame = pl.DataFrame(rows, schema={"ts": pl.Int64, "g": pl.String}, orient="row")
    return lw.stream(frame, name=name, time="ts", jump=None, **options)


# time      0        10        20        30
# prompt    x         x         x         x
# lagging   x    (nothing more until the others are at 30)
LAGGING = [(0, "prompt"), (0, "lagging"), (10, "prompt"), (20, "prompt"), (30, "prompt")]


def test_a_lagging_group_delays_its_own_windows_and_nobody_elses() -> None:
    devices = log([*LAGGING, (5, "lagging")], groups="g")
    out = outcomes(devices.window(10).group_by("g").agg(n="count(*)"))
    assert [row[::2] + row[3:] for row in out[:3]] == [
        (0, "prompt", 1),
        (10, "prompt", 1),
        (20, "prompt", 1),
    ]
    assert sorted(row[::2] + row[3:] for row in out[3:]) == [(0, "lagging", 2), (30, "prompt", 1)]


def test_a_lagging_group_delays_nobodys_sessions() -> None:
    devices = log([*LAGGING, (5, "lagging")], groups="g")
    out = outcomes(devices.session(8).group_by("g").agg(n="count(*)"))
    assert out[:3] == [(0, 8, "prompt", 1), (10, 18, "prompt", 1), (20, 28, "prompt", 1)]
    assert sorted(out[3:]) == [(0, 13, "lagging", 2), (30, 38, "prompt", 1)]


def test_a_lagging_group_delays_nobodys_rows_without_a_partner() -> None:
    left = log([(0, "prompt"), (0, "lagging"), (40, "prompt")], "l", groups="g")
    right = log([*LAGGING[1:], (5, "lagging")], "r", groups="g")
    out = outcomes(left.join(right, on="g", within=3, how="anti"))
    assert out == [(0, "prompt"), (40, "prompt")]
    held: list[int] = []
    both = left.join(right, on="g", within=3, how="left")
    both.run(sink=lambda t: held.extend(t["ts"].to_pylist()), chunk_rows=1).await_termination()
    assert sorted(held) == [0, 0, 40]


def test_a_group_that_appears_late_loses_nothing() -> None:
    rows = [(100, "a"), (200, "a"), (1, "b"), (2, "b"), (300, "a"), (3, "b")]
    pushed = lw.push(schema={"ts": pl.Int64, "g": pl.String})
    devices = lw.stream(pushed, name="s", time="ts", groups="g", jump=None)
    run = devices.window(10).group_by("g").agg(n="count(*)").run()
    for row in rows:
        pushed.send([{"ts": row[0], "g": row[1]}])
    pushed.close()
    run.await_termination()
    assert run.late_rows().num_rows == 0
    assert multiset([tuple(row.values()) for row in run.results().to_pylist()]) == multiset(
        [(0, 10, "b", 3), (100, 110, "a", 1), (200, 210, "a", 1), (300, 310, "a", 1)]
    )


# ---- state -----------------------------------------------------------------------------------

QUERIES = {
    "window": lambda a, b: a.window(10).group_by("g").agg(n="count(*)"),
    "session": lambda a, b: a.session(8).group_by("g").agg(n="count(*)"),
    "distinct": lambda a, b: a.distinct("ts", "g"),
    "group": lambda a, b: a.group_by("ts", "g").agg(n="count(*)"),
    "inner": lambda a, b: a.join(b, on="g", within=3),
    "full": lambda a, b: a.join(b, on="g", within=3, how="full"),
    "semi": lambda a, b: a.join(b, on="g", within=3, how="semi"),
}


@pytest.mark.parametrize("name", QUERIES)
def test_what_a_group_has_passed_is_gone_while_another_lags(name: str) -> None:
    rows = [(0, "lagging"), *((time, "prompt") for time in range(0, 400, 2))]
    ahead = [*rows, (400, "prompt")]
    query = QUERIES[name](log(rows, "a", groups="g"), log(ahead, "b", groups="g"))
    run = query.run(chunk_rows=1)
    run.await_termination()
    held = [each.state_rows_peak for each in run.metrics().operators]
    assert max(held) <= 24, held


# ---- many groups, few numbers ----------------------------------------------------------------


@given(rows, contracts, st.one_of(st.none(), st.sampled_from([1, 10, 40]).map(lw.jump)), st.data())
def test_groups_in_columns_are_judged_like_channels(
    given_rows: Any, contract: Any, jump: Any, data: Any
) -> None:
    """The same marks and verdicts, row by row, however the stream is cut and put together."""
    frame = table(given_rows)
    announced = data.draw(st.sampled_from(["", "a", "ab"]))
    some = {"progress": contract, "jump": jump}
    by_column = Intake(spec_of(groups="c", **some), {"ts": Demand.any_value()}, announced)
    by_object = Intake(spec_of(channel="c", **some), {"ts": Demand.any_value()}, announced)
    at = 0
    while at < frame.height:
        size = data.draw(st.integers(1, 8))
        chunk, at = frame.slice(at, size), at + size
        known = [each.account.strays for each in (by_column, by_object)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StreamWarning)
            one, two = by_column.take(chunk, at), by_object.take(chunk, at)
        assert one.rows["id"].to_list() == two.rows["id"].to_list()
        assert by_column.mark("ts") == by_object.mark("ts")
        strays = [each.account.strays for each in (by_column, by_object)]
        assert strays[0] - known[0] == strays[1] - known[1]
        if data.draw(st.booleans()):
            saved = copy.deepcopy(by_column.snapshot())
            by_column = Intake(by_column.spec, {"ts": Demand.any_value()})
            by_column.restore(saved)


@given(st.lists(st.integers(0, 40), min_size=40, max_size=120), st.integers(0, 9), st.data())
def test_many_groups_of_a_chunk_are_judged_together(
    numbers: list[int], slack: int, data: Any
) -> None:
    """Each group's marks are the running maximum of its own times, whoever else is in the chunk."""
    times = data.draw(st.lists(st.integers(-99, 99), min_size=len(numbers), max_size=len(numbers)))
    frame = table([(t, f"g{n}", None) for t, n in zip(times, numbers, strict=True)])
    taker = Intake(spec_of(groups="c", progress=lw.within(slack)), {"ts": ALONE})
    told: dict[str, int] = {}
    kept: list[int] = []
    newest: dict[str, int] = {}
    expected = []
    for number, time, name, _ in frame.iter_rows():
        if name not in newest or time >= newest[name] - slack:
            expected.append(number)
        newest[name] = max(newest.get(name, time), time)
    cut = data.draw(st.integers(0, frame.height))
    for chunk in (frame.head(cut), frame.slice(cut)):
        taken = taker.take(chunk, 0)
        kept += taken.rows["id"].to_list()
        for each in taken.promises:
            assert isinstance(each, GroupPunctuation)
            told |= dict(each.marks.rows())
    assert kept == expected
    assert told == {name: time - slack for name, time in newest.items()}
