"""Unions and joins of update streams: whatever the cuts, the interleaving and the load, what is
newest wins, and no key ever goes back."""

from __future__ import annotations

import random
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.kernel import Host
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import multiset
from tests.unit.running import finished

SCHEMA = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}
SEEDS = st.integers(0, 9_999)
Row = tuple[Any, ...]


def table(chance: random.Random, most: int = 30) -> pl.DataFrame:
    """Rows in the order of their times, of few keys; no key has two of one time."""
    rows: list[Row] = []
    at = 0
    for _ in range(chance.randint(0, most)):
        at += chance.choice([0, 1, 1, 2, 5])
        key = chance.choice(["a", "a", "b", "c", None])
        if not any(row[:2] == (at, key) for row in rows):
            rows.append((at, key, chance.randint(0, 5)))
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def stream(rows: pl.DataFrame, name: str, **options: Any) -> lw.Stream:
    return lw.stream(rows, name=name, time="ts", jump=None, **{"update_key": "k"} | options)


def schedules(chance: random.Random) -> dict[str, Any]:
    return {"schedule": chance.choice(["in-place", "fifo", "linecutting", "rare-first", "auto"])}


class Unhurried(CheckedRun):
    """A run in which work takes no time, so that nothing has to wait in a queue."""

    hurried = False


def by_key(rows: Iterable[Row], at: int) -> dict[Any, list[Row]]:
    found: dict[Any, list[Row]] = {}
    for row in rows:
        found.setdefault(row[at], []).append(row)
    return found


def newness(row: Row) -> tuple[int, int]:
    """How new a pair (ts, k, v, ts_right, v_right) is."""
    return max(row[0], row[3]), min(row[0], row[3])


def pairs(a: pl.DataFrame, b: pl.DataFrame) -> list[Row]:
    """All pairs of equal keys."""
    return a.join(b, on="k", suffix="_right").rows()


# ---- unions ------------------------------------------------------------------------------------


@given(SEEDS, st.data())
def test_a_union_shows_the_newest_row_of_each_key_and_never_goes_back(seed: int, data: Any) -> None:
    chance = random.Random(seed)
    tables = [table(chance) for _ in range(chance.randint(2, 3))]
    options = schedules(chance)
    first, *others = (stream(each, f"s{at}", **options) for at, each in enumerate(tables))
    prefer = chance.choice([None, "s0", "s1"])
    query = first.union(*others, prefer=prefer).where("v >= 0")
    found = CheckedRun(query, data.draw).results().rows()
    came = [row for each in tables for row in each.rows()]
    assert set(found) <= set(came)
    newest = {key: max(row[0] for row in rows) for key, rows in by_key(came, 1).items()}
    shown = by_key(found, 1)
    for rows in shown.values():
        times = [row[0] for row in rows]
        assert times == sorted(set(times)), "one row of each time, and none goes back"
    assert {key: rows[-1][0] for key, rows in shown.items()} == newest


@given(SEEDS)
def test_a_union_prefers_among_rows_that_wait_together(seed: int) -> None:
    """The queue of a union, step by step beside a plain one: a row of a key and time that comes to
    one that waits takes its place if its stream is preferred, and never one that left."""
    chance = random.Random(seed)
    prefer = chance.choice([None, 0, 1, 2])
    streams = [stream(pl.DataFrame(schema=SCHEMA), f"s{at}") for at in range(3)]
    query = streams[0].union(*streams[1:], prefer=None if prefer is None else streams[prefer])
    (operator,) = (each for each in compile_plan(query.node).kernels if each.name == "update")
    kernel = operator.build(MemoryStore(), Host(singly=True))
    waits: dict[str, tuple[int, int, int]] = {}
    left: dict[str, int] = {}
    for step in range(60):
        if chance.random() < 0.6:
            port, time, key = chance.randint(0, 2), chance.randint(0, 8), chance.choice("ab")
            kernel.on_chunk(port, pl.DataFrame([(time, key, step)], SCHEMA, orient="row"))
            before = waits.get(key)
            if time <= left.get(key, -1):
                continue
            same = before is not None and time == before[0]
            if before is None or time > before[0] or (same and port == prefer != before[1]):
                waits[key] = (time, port, step)
        elif kernel.has_work:
            (rows, *_) = kernel.work_on()
            assert isinstance(rows, pl.DataFrame)
            ((time, key, value),) = rows.rows()
            assert waits.pop(key)[::2] == (time, value)
            left[key] = time


# ---- joins -------------------------------------------------------------------------------------


@given(SEEDS, st.data())
def test_a_join_shows_the_newest_pair_of_each_key_and_never_goes_back(seed: int, data: Any) -> None:
    chance = random.Random(seed)
    a, b = table(chance), table(chance)
    where = chance.choice([None, "v <= v_right"])
    options = schedules(chance)
    query = stream(a, "a", **options).join(stream(b, "b", **options), on="k", where=where)
    run = chance.choice([CheckedRun, Unhurried])(query, data.draw)
    found = run.results().rows()
    possible = [row for row in pairs(a, b) if where is None or row[2] <= row[4]]
    assert set(found) <= set(possible)
    shown = by_key(found, 1)
    for rows in shown.values():
        for one, two in pairwise(rows):
            assert one[0] <= two[0]
            assert one[3] <= two[3]
            assert one[::3] != two[::3]
    for key, rows in by_key(pairs(a, b), 1).items():
        last = max(rows, key=lambda row: (row[0], row[3]))
        if last in possible:
            assert shown[key][-1] == last


@given(SEEDS, st.data())
def test_a_join_within_a_band_shows_pairs_in_it_and_the_newest_at_last(
    seed: int, data: Any
) -> None:
    chance = random.Random(seed)
    a, b = table(chance), table(chance)
    before, after = chance.randint(0, 4), chance.randint(0, 4)
    query = stream(a, "a").join(stream(b, "b"), on="k", within=(before, after))
    hurried = chance.random() < 0.5
    run = (CheckedRun if hurried else Unhurried)(query, data.draw)
    found = run.results().rows()
    near = [row for row in pairs(a, b) if row[0] - before <= row[3] <= row[0] + after]
    assert set(found) <= set(near)
    shown = by_key(found, 1)
    for rows in shown.values():
        news = [newness(row) for row in rows]
        assert news == sorted(set(news))
    if not hurried:
        newest = {key: max(map(newness, rows)) for key, rows in by_key(near, 1).items()}
        assert {key: newness(rows[-1]) for key, rows in shown.items()} == newest


@given(SEEDS, st.integers(1, 4))
def test_spread_over_buckets_the_newest_of_each_key_still_meet(seed: int, buckets: int) -> None:
    chance = random.Random(seed)
    a, b, c = table(chance), table(chance), table(chance)
    options = schedules(chance) | chance.choice([{}, {"budget": "1 ms"}])
    one, two, three = (
        stream(rows, name, **options) for rows, name in ((a, "a"), (b, "b"), (c, "c"))
    )
    united = one.union(three)
    query = (united if chance.random() < 0.5 else one).join(two, on="k")
    lefts = pl.concat([a, c]) if query.node.inputs[0] is united.node else a
    found = LocalSpark(query, seed, buckets).results().rows()
    assert set(found) <= set(pairs(lefts, b))
    shown = by_key(found, 1)
    for key, rows in by_key(pairs(lefts, b), 1).items():
        newest = max(row[0] for row in rows), max(row[3] for row in rows)
        assert newest in {(row[0], row[3]) for row in shown[key]}


@given(SEEDS, st.booleans())
def test_rows_read_as_they_arrive_meet_what_came_before_them(seed: int, banded: bool) -> None:
    """Each row of either side with the newest of the other side before it: an as-of join."""
    chance = random.Random(seed)
    times = chance.sample(range(200), 40)
    a, b = (
        pl.DataFrame(
            [(time, chance.choice("ab"), at) for at, time in enumerate(sorted(part))],
            schema=SCHEMA,
            orient="row",
        )
        for part in (times[:20], times[20:])
    )
    within = chance.randint(0, 30) if banded else None
    one, two = (
        stream(lw.replay(each.with_columns(at=pl.col("ts")), arrival="at"), name)
        for each, name in ((a, "a"), (b, "b"))
    )
    query = one.select("ts", "k", "v").join(two.select("ts", "k", "v"), on="k", within=within)
    found = pl.DataFrame(query.collect(chunk_rows=1, tick=0))
    assert multiset(found.rows()) == multiset(as_of(a, b, within).rows())


@given(SEEDS)
def test_under_load_what_is_shown_last_is_what_is_newest(seed: int) -> None:
    chance = random.Random(seed)
    a, b = table(chance), table(chance)
    one, two = (
        stream(lw.replay(each.with_columns(at=pl.col("ts").cast(pl.Float64)), arrival="at"), name)
        for each, name in ((a, "a"), (b, "b"))
    )
    one, two = one.select("ts", "k", "v"), two.select("ts", "k", "v")
    options: Any = {"tick": 0, "charge": lw.per_row(f"{chance.choice([0.1, 3, 40])} seconds")}
    came = [*a.rows(), *b.rows()]
    shown = by_key(pl.DataFrame(finished(one.union(two), **options).results()).rows(), 1)
    newest = {key: max(row[0] for row in rows) for key, rows in by_key(came, 1).items()}
    assert {key: rows[-1][0] for key, rows in shown.items()} == newest
    assert all(rows == sorted(rows) for rows in shown.values())
    shown = by_key(pl.DataFrame(finished(one.join(two, on="k"), **options).results()).rows(), 1)
    both = by_key(pairs(a, b), 1)
    assert shown.keys() == both.keys()
    for key, rows in both.items():
        assert shown[key][-1] == max(rows, key=lambda row: (row[0], row[3]))


def test_a_window_over_a_union_counts_a_row_of_a_key_and_time_once() -> None:
    a = pl.DataFrame([(1, "a", 1), (2, "a", 2), (3, "b", 3)], schema=SCHEMA, orient="row")
    b = pl.DataFrame([(1, "a", 1), (2, "b", 5), (3, "b", 3)], schema=SCHEMA, orient="row")
    both = stream(a, "a").union(stream(b, "b"))
    answers = both.window(10).group_by("k").agg(n="count(*)", total="sum(v)")
    assert sorted(pl.DataFrame(answers.collect()).rows()) == [
        (0, 10, "a", 2, 3),
        (0, 10, "b", 2, 8),
    ]


def as_of(a: pl.DataFrame, b: pl.DataFrame, within: int | None) -> pl.DataFrame:
    """Rows of both sides with the newest of the other side before them, as (left, right)."""
    found = []
    for one, two in ((a, b), (b, a)):
        others = two.select("k", ts_right="ts", v_right="v", ts="ts")
        options: Any = {"by": "k", "tolerance": within, "check_sortedness": False}
        found.append(one.join_asof(others, on="ts", **options).drop_nulls("ts_right"))
    columns = ("ts", "k", "v", "ts_right", "v_right")
    swapped = dict(zip(columns, ("ts_right", "k", "v_right", "ts", "v"), strict=True))
    return pl.concat([found[0].select(columns), found[1].select(**swapped)])


@pytest.mark.parametrize("how", ["update left", "update right"])
@given(SEEDS, st.data())
def test_a_join_with_an_ordinary_stream_is_an_ordinary_join(how: str, seed: int, data: Any) -> None:
    chance = random.Random(seed)
    a, b = table(chance), table(chance)
    one, two = stream(a, "a"), stream(b, "b")
    if how == "update left":
        two = lw.stream(b, name="b", time="ts")
    else:
        one = lw.stream(a, name="a", time="ts")
    query = one.join(two, on="k", within=3)
    assert query.node.updates is None
    near = [row for row in pairs(a, b) if abs(row[0] - row[3]) <= 3]
    assert multiset(Unhurried(query, data.draw).results().rows()) == multiset(near)
