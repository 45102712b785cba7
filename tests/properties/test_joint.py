"""Joint promises (OOP §7) through whole plans: joins over joins under everything that uses them.

Every query gives the batch answer, every promise on every arc is kept (the checked run sees to
that), and a group leaves with the promise that covers it, not a band later.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.plan.builders import rows as row_builders
from lowwater.stream.element import BEGINNING
from tests.support.batches import dense
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows
from tests.support.paced_run import AFTER_ALL, PacedRun
from tests.support.streams import Sample, samples

FEWER = settings(max_examples=settings.default.max_examples // 2)
SHAPES = st.sampled_from(["out-of-order", "in-order"])
ORDERS = st.sampled_from([None, None, "sync-filter", "filter-order", "adaptive"])
"""Joins whose results are in order promise what others do."""


@dataclass(frozen=True)
class Joined:
    """Streams joined in some way: columns t0, t1, ... are their times, k is what they share."""

    stream: Stream
    sql: str
    times: tuple[str, ...]


def leaf(number: int, sample: Sample) -> Joined:
    name = sample.stream._node.spec.name  # type: ignore[attr-defined]
    time = f"t{number}"
    stream = sample.stream.select("k", **{time: "ts", f"v{number}": "v"})
    return Joined(stream, f"SELECT k, ts AS {time}, v AS v{number} FROM {name}", (time,))


def matched(
    one: Joined, two: Joined, draw: Any, how: Any = "inner", orders: Any = ORDERS
) -> Joined:
    """A join on any time of each side, with any kind of reach; which times are never null."""
    left, right = draw(st.sampled_from(one.times)), draw(st.sampled_from(two.times))
    kind = draw(st.sampled_from(["band", "band", "same", "equal"]))
    if kind == "same":
        width = draw(st.integers(1, 8))
        within: Any = lw.same(width)
        near = f"floor(q.{left} / {width}.0) = floor(r.{right} / {width}.0)"
    else:
        before, after = draw(st.tuples(st.integers(-1, 6), st.integers(1, 6)))
        if kind == "equal":
            before = after = 0
        within = (before, after)
        near = f"r.{right} BETWEEN q.{left} - {before} AND q.{left} + {after}"
    stream = one.stream.join(
        two.stream, on="k", within=within, times=(left, right), how=how, order=draw(orders)
    )
    columns = "q.*" if how in ("semi", "anti") else "q.*, r.* EXCLUDE (k)"
    sql = f"""SELECT {columns} FROM ({one.sql}) q {how} JOIN ({two.sql}) r
              ON q.k = r.k AND {near}"""
    return Joined(stream, sql, one.times + two.times if how == "inner" else one.times)


@st.composite
def trees(draw: Any, leaves: list[Joined], orders: Any = ORDERS) -> Joined:
    """The leaves joined two at a time, in any order: left-deep, right-deep or bushy."""
    left = list(leaves)
    while len(left) > 1:
        one = left.pop(draw(st.integers(0, len(left) - 1)))
        two = left.pop(draw(st.integers(0, len(left) - 1)))
        left.append(matched(one, two, draw, orders=orders))
    return left[0]


def selected(q: Joined, draw: Any) -> Joined:
    """Times under other names, twice, shifted, rounded, and the greatest of them all."""
    columns, texts, times = {}, [], []
    for time in q.times:
        by = draw(st.sampled_from([0, 0, 3, -2]))
        for copy in range(draw(st.sampled_from([1, 1, 2]))):
            name = f"{time}_{copy}"
            columns[name] = time if not by else f"{time} + {by}" if by > 0 else f"{time} - {-by}"
            texts.append(f"{time} + {by} AS {name}")
            times.append(name)
    if draw(st.booleans()):
        both = f"greatest({', '.join(q.times)})"
        columns["top"] = both
        texts.append(f"{both} AS top")
        times.append("top")
    kept = draw(st.sets(st.sampled_from(times), min_size=1))
    columns = {name: text for name, text in columns.items() if name in kept}
    texts = [text for text in texts if text.rpartition(" ")[2] in kept]
    return Joined(
        q.stream.select("k", **columns),
        f"SELECT k, {', '.join(texts)} FROM ({q.sql})",
        tuple(columns),
    )


def filtered(q: Joined, _: Any) -> Joined:
    return Joined(q.stream.where("k <> 1"), f"SELECT * FROM ({q.sql}) WHERE k <> 1", q.times)


def deduplicated(q: Joined, draw: Any) -> Joined:
    kept = draw(st.lists(st.sampled_from(q.times), min_size=1, unique=True))
    sql = f"SELECT DISTINCT k, {', '.join(kept)} FROM ({q.sql})"
    return Joined(q.stream.distinct("k", *kept), sql, tuple(kept))


def counted(q: Joined, draw: Any) -> Joined:
    """A count by some times that itself tells promises on them; the key is counted by."""
    kept = draw(st.lists(st.sampled_from(q.times), min_size=1, unique=True))
    stream = q.stream.group_by("k", *kept).agg(n="count(*)").select("k", *kept)
    sql = f"SELECT k, {', '.join(kept)} FROM ({q.sql}) GROUP BY ALL"
    return Joined(stream, sql, tuple(kept))


def doubled(q: Joined, _: Any) -> Joined:
    later = ", ".join(f"{time} + 2 AS {time}" for time in q.times)
    other = [name for name in q.stream.schema if name not in q.times]
    moved = {name: f"{name} + 2" if name in q.times else name for name in q.stream.schema}
    sql = ", ".join(other)
    names = ", ".join(q.times)
    return Joined(
        q.stream.union(q.stream.select(**moved)),
        f"""SELECT {sql}, {names} FROM ({q.sql}) UNION ALL SELECT {sql}, {later} FROM ({q.sql})""",
        q.times,
    )


def grouped(q: Joined, draw: Any) -> tuple[Stream, str]:
    kept = draw(st.lists(st.sampled_from(q.times), min_size=1, unique=True))
    names = ", ".join(kept)
    having = draw(st.booleans())
    stream = q.stream.group_by(*kept).agg(n="count(*)")
    sql = f"SELECT {names}, count(*) FROM ({q.sql}) GROUP BY {names}"
    return (stream.where("n > 1"), sql + " HAVING count(*) > 1") if having else (stream, sql)


def windowed(q: Joined, draw: Any) -> tuple[Stream, str]:
    time = draw(st.sampled_from(q.times))
    stream = q.stream.window(7, on=time).agg(n="count(*)")
    start = f"CAST(floor({time} / 7.0) AS BIGINT) * 7"
    return stream, f"SELECT {start}, {start} + 7, count(*) FROM ({q.sql}) GROUP BY 1"


def ordered(q: Joined, draw: Any) -> tuple[Stream, str]:
    time = draw(st.sampled_from(q.times))
    return q.stream.order_by(time).select(time), f"SELECT {time} FROM ({q.sql})"


MIDDLE = [selected, filtered, deduplicated, counted, doubled]
TOP = [grouped, grouped, windowed, ordered]


@st.composite
def queries(draw: Any, leaves: list[Joined]) -> tuple[Stream, str]:
    joined = draw(trees(leaves))
    for each in draw(st.lists(st.sampled_from(MIDDLE), max_size=2)):
        joined = each(joined, draw)
    return draw(st.sampled_from(TOP))(joined, draw)


def streams(data: Any, number: int) -> list[Sample]:
    """Streams of a few rows in any order, or of more with times that go up."""
    if data.draw(st.booleans()):
        return [data.draw(samples(f"s{at}", most=16 // number)) for at in range(number)]
    return [data.draw(dense(f"s{at}", most=48 // number)) for at in range(number)]


def expected(sql: str, inputs: list[Sample]) -> Any:
    names = [each.stream._node.spec.name for each in inputs]  # type: ignore[attr-defined]
    return answer(sql, dict(zip(names, (each.kept for each in inputs), strict=True)))


@pytest.mark.parametrize("number", [2, 3, 4])
@FEWER
@given(data=st.data())
def test_any_joins_under_any_aggregate_equal_batch(number: int, data: Any) -> None:
    inputs = streams(data, number)
    query, sql = data.draw(queries([leaf(at, each) for at, each in enumerate(inputs)]))
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == expected(sql, inputs)


@FEWER
@given(data=st.data())
def test_a_stream_joined_with_itself_equals_batch(data: Any) -> None:
    (one,) = streams(data, 1)
    query, sql = data.draw(queries([leaf(at, one) for at in range(3)]))
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == expected(sql, [one])


@pytest.mark.parametrize("number", [2, 3])
@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_joint_promises_survive_the_way_between_stages(number: int, data: Any, seed: int) -> None:
    """Spread over buckets, each batch gives what it gives in one."""
    inputs = streams(data, number)
    query, sql = data.draw(queries([leaf(at, each) for at, each in enumerate(inputs)]))
    shape = data.draw(SHAPES)
    runs = [LocalSpark(query, seed, buckets, shape) for buckets in (1, 3)]
    for run in runs:
        assert table_rows(run.results()) == expected(sql, inputs)
    one, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert one == many


@pytest.mark.parametrize("number", [2, 3, 4])
@FEWER
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_group_of_all_times_leaves_when_all_inputs_have_passed_it(
    number: int, data: Any, seed: int
) -> None:
    """However the inputs are joined and however wide the bands are, if none is in order.

    A union with times moved by 2 gives groups of times that the join by buckets gives to none of
    its own rows; what the join promises of buckets completes them sooner.
    """
    inputs = [data.draw(dense(f"s{at}", most=60 // number)) for at in range(number)]
    leaves = [leaf(at, each) for at, each in enumerate(inputs)]
    joined = data.draw(trees(leaves, orders=st.none()))
    times = [f"t{at}" for at in range(number)]
    by_bucket = "floor(" in joined.sql
    changes = data.draw(st.lists(st.sampled_from([filtered, doubled]), max_size=1))
    for each in changes:
        joined = each(joined, data.draw)
    run = PacedRun(joined.stream.group_by(*times).agg(n="count(*)"), seed)
    for row, step in run.left:
        passed = (
            at
            for at, marks in enumerate(run.marks, 1)
            if all(marks.get(f"s{i}", BEGINNING) > row[i] for i in range(number))
        )
        due = next(passed, AFTER_ALL)
        assert step <= due if by_bucket and doubled in changes else step == due


def rounded(q: Joined, draw: Any) -> Joined:
    """One more time: another one cut to whole buckets."""
    time, width = draw(st.sampled_from(q.times)), draw(st.integers(2, 5))
    name = f"cut{len(q.times)}"
    cut = f"CAST(floor({time} / {width}.0) AS BIGINT) * {width}"
    return Joined(
        Stream(row_builders.bucketed(q.stream._node, name, time, width, False)),
        f"SELECT *, {cut} AS {name} FROM ({q.sql})",
        (*q.times, name),
    )


def topped(q: Joined, _: Any) -> Joined:
    """One more time: the greatest of the others, one of them a little later."""
    first, *others = q.times
    greatest = f"greatest({first} + 1, {', '.join(others)})"
    top = f"top{len(q.times)}"
    sql = f"SELECT *, {greatest} AS {top} FROM ({q.sql})"
    return Joined(q.stream.map(**{top: greatest}), sql, (*q.times, top))


@pytest.mark.parametrize("pace", ["one after the other", "all at random"])
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_whatever_follows_from_joins_is_promised_and_kept(pace: str, data: Any, seed: int) -> None:
    """Every row meets every other in reach, one input may be far ahead of another, and somebody
    waits for any times, alone or together."""
    chance = random.Random(seed)
    tables = []
    for _ in range(3):
        steps = [chance.choice([0, 1, 1, 2, 5]) for _ in range(14)]
        table = pl.DataFrame({"ts": list(accumulate(steps))}, schema={"ts": pl.Int64})
        tables.append(table.with_columns(k=pl.lit(0, pl.Int64), v=pl.lit(0, pl.Int64)))
    inputs = [
        Sample(lw.stream(table, name=f"s{at}", time="ts"), table, table.clear())
        for at, table in enumerate(tables)
    ]
    leaves = [leaf(at, each) for at, each in enumerate(inputs)]
    one, two = chance.sample(range(3), 2)
    (three,) = {0, 1, 2} - {one, two}
    below = matched(leaves[one], leaves[two], data.draw)
    for each in data.draw(st.lists(st.sampled_from([rounded, topped]), max_size=2)):
        below = each(below, data.draw)
    sides = data.draw(st.permutations([below, leaves[three]]))
    how = data.draw(st.sampled_from(["inner", "inner", "inner", "left", "semi", "anti"]))
    joined = matched(*sides, data.draw, how)
    more = [rounded, topped] if len(joined.times) > 1 else [rounded]
    for each in data.draw(st.lists(st.sampled_from(more), max_size=1)):
        joined = each(joined, data.draw)
    query, sql = data.draw(st.sampled_from(TOP))(joined, data.draw)
    order = [f"s{at}" for at in (one, two, three)] if pace != "all at random" else []
    run = PacedRun(query, seed, data.draw(SHAPES), order=order)
    assert Counter(row for row, _ in run.left) == expected(sql, inputs)
