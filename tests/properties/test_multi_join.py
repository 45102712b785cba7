"""One join over many inputs, under everything: the batch answer, kept promises, nothing left."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.stream.element import BEGINNING
from tests.properties.test_joint import MIDDLE, TOP, Joined, expected, leaf, matched, streams
from tests.support.batches import dense
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.oracle import table_rows
from tests.support.paced_run import AFTER_ALL, PacedRun
from tests.support.streams import Sample, samples

FEWER = settings(max_examples=settings.default.max_examples // 2)
SHAPES = st.sampled_from(["out-of-order", "in-order"])
COLUMNS = ("ts", "k", "s", "v")


def near(times: list[str], windows: list[int]) -> str:
    """That no time is further below another than its window, pair by pair."""
    pairs = permutations(zip(times, windows, strict=True), 2)
    return " AND ".join(f"{other} - {time} <= {window}" for (time, window), (other, _) in pairs)


@dataclass(frozen=True)
class Keys:
    """What rows of n inputs share, as the API and as SQL take it."""

    on: list[str | tuple[str, ...]]

    def names(self, number: int) -> list[tuple[str, ...]]:
        """The columns of all inputs that are equal, for each key."""
        return [(each,) * number if isinstance(each, str) else each for each in self.on]

    def equal(self, number: int) -> list[str]:
        return [
            f"r0.{names[0]} = r{at}.{names[at]}"
            for names in self.names(number)
            for at in range(1, number)
        ]

    def shown(self, at: int) -> list[str]:
        """The columns of an input that come out of it: a key that inputs call alike comes once."""
        once = [names[at] for names in self.names(at + 1) if names[at] in names[:at]]
        return [f"r{at}.{name}" for name in COLUMNS if name not in once]


def keys(number: int) -> st.SearchStrategy[Keys]:
    crossed = ("v", *["k"] * (number - 1))
    choices: list[list[Any]] = [["k"], ["k"], ["k", "s"], [], [crossed], ["s", crossed]]
    return st.sampled_from([Keys(each) for each in choices])


def batch(number: int, on: Keys, windows: list[int], where: str | None) -> str:
    columns = ", ".join(name for at in range(number) for name in on.shown(at))
    conditions = [*on.equal(number), near([f"r{at}.ts" for at in range(number)], windows)]
    conditions += [where] if where else []
    sources = ", ".join(f"s{at} AS r{at}" for at in range(number))
    return f"SELECT {columns} FROM {sources} WHERE {' AND '.join(conditions)}"


@pytest.mark.parametrize("number", [2, 3, 4])
@given(data=st.data())
def test_a_join_of_many_inputs_equals_batch(number: int, data: Any) -> None:
    most = {2: 14, 3: 10, 4: 7}[number]
    inputs = [data.draw(samples(f"s{at}", most=most)) for at in range(number)]
    on = data.draw(keys(number))
    windows = data.draw(st.lists(st.integers(0, 12), min_size=number, max_size=number))
    last, shown = f"v_{number}", f"r{number - 1}.v"
    given, where = data.draw(st.sampled_from([(None, None), (f"v <= {last}", f"r0.v <= {shown}")]))
    query = lw.join([each.stream for each in inputs], on.on, windows, where=given)
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == expected(batch(number, on, windows, where), inputs)


@given(st.lists(st.integers(0, 6), min_size=3, max_size=3), st.data())
def test_it_equals_a_pipeline_of_joins_of_two(windows: list[int], data: Any) -> None:
    a, b, c = (data.draw(dense(f"s{at}", most=24)).stream for at in range(3))
    at_once = lw.join([a, b, c], on="k", within=windows)
    pairs = a.join(b, on="k", within=(windows[1], windows[0]), suffix="_2")
    piped = pairs.join(
        c,
        on="k",
        within=(windows[2], windows[0]),
        where=f"ts_3 - ts_2 <= {windows[1]} AND ts_2 - ts_3 <= {windows[2]}",
        suffix="_3",
    )
    assert at_once.schema == piped.schema
    found = CheckedRun(at_once, data.draw).results()
    assert table_rows(found) == table_rows(CheckedRun(piped, data.draw).results())


@given(data=st.data())
def test_equal_times_as_keys_equal_batch(data: Any) -> None:
    inputs = [data.draw(samples(f"s{at}", most=10)) for at in range(3)]
    query = lw.join([each.stream for each in inputs], on=["ts", "k"])
    sql = """SELECT r0.ts, r0.k, r0.s, r0.v, r1.s, r1.v, r2.s, r2.v
             FROM s0 AS r0 JOIN s1 AS r1 USING (ts, k) JOIN s2 AS r2 USING (ts, k)"""
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    assert table_rows(run.results()) == expected(sql, inputs)


# ---- promises ------------------------------------------------------------------------------


def gathered(parts: list[Joined], draw: Any) -> Joined:
    """A join of all parts at once, on any time of each."""
    times = [draw(st.sampled_from(each.times)) for each in parts]
    windows = [draw(st.integers(0, 6)) for _ in parts]
    if draw(st.booleans()):
        windows = windows[:1] * len(parts)
    stream = lw.join([each.stream for each in parts], "k", windows, times=times)
    columns = ", ".join(["r0.*", *(f"r{at}.* EXCLUDE (k)" for at in range(1, len(parts)))])
    sources = ", ".join(f"({each.sql}) r{at}" for at, each in enumerate(parts))
    equal = " AND ".join(f"r0.k = r{at}.k" for at in range(1, len(parts)))
    close = near([f"r{at}.{time}" for at, time in enumerate(times)], windows)
    sql = f"SELECT {columns} FROM {sources} WHERE {equal} AND {close}"
    return Joined(stream, sql, tuple(time for each in parts for time in each.times))


def over_joins(leaves: list[Joined], draw: Any) -> Joined:
    """All leaves at once, or some of them joined before, by two or many, or the result joined."""
    kind = draw(st.sampled_from(["flat", "flat", "below", "above", "twice"]))
    if kind == "below":
        below = matched(leaves[0], leaves[1], draw)
        return gathered(draw(st.permutations([below, *leaves[2:]])), draw)
    if kind == "above":
        sides = draw(st.permutations([gathered(leaves[:-1], draw), leaves[-1]]))
        return matched(sides[0], sides[1], draw)
    if kind == "twice":
        return gathered(draw(st.permutations([gathered(leaves[:2], draw), *leaves[2:]])), draw)
    return gathered(leaves, draw)


@st.composite
def queries(draw: Any, leaves: list[Joined]) -> tuple[lw.Stream, str]:
    joined = over_joins(leaves, draw)
    for each in draw(st.lists(st.sampled_from(MIDDLE), max_size=1)):
        joined = each(joined, draw)
    return draw(st.sampled_from(TOP))(joined, draw)


@pytest.mark.parametrize("number", [3, 4])
@FEWER
@given(data=st.data())
def test_whatever_is_below_or_above_it_equals_batch(number: int, data: Any) -> None:
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


@settings(max_examples=settings.default.max_examples // 3)
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_spread_over_buckets_each_batch_gives_what_it_gives_in_one(data: Any, seed: int) -> None:
    inputs = streams(data, 3)
    query, sql = data.draw(queries([leaf(at, each) for at, each in enumerate(inputs)]))
    shape = data.draw(SHAPES)
    runs = [LocalSpark(query, seed, buckets, shape) for buckets in (1, 3)]
    for run in runs:
        assert table_rows(run.results()) == expected(sql, inputs)
    one, many = ([table_rows(batch) for batch in run.answers] for run in runs)
    assert one == many


def paced(data: Any, number: int) -> tuple[list[Sample], Joined, list[int]]:
    """Inputs that go up, and all of them joined."""
    inputs = [data.draw(dense(f"s{at}", most=60 // number)) for at in range(number)]
    windows = [data.draw(st.integers(0, 6)) for _ in inputs]
    leaves = [leaf(at, each) for at, each in enumerate(inputs)]
    times = [f"t{at}" for at in range(number)]
    stream = lw.join([each.stream for each in leaves], "k", windows, times=times)
    return inputs, Joined(stream, "", tuple(times)), windows


@pytest.mark.parametrize("number", [2, 3, 4])
@FEWER
@given(data=st.data(), seed=st.integers(0, 2**32))
def test_a_group_leaves_when_what_is_told_of_some_of_its_times_covers_it(
    number: int, data: Any, seed: int
) -> None:
    """A group of times leaves when, for some of these inputs, each has passed its own time and all
    other inputs have passed the window of the one with the least. If it is of all times: when all
    inputs have passed it, however wide the windows are."""
    _, joined, windows = paced(data, number)
    kept = sorted(data.draw(st.sets(st.sampled_from(range(number)), min_size=1)))
    run = PacedRun(joined.stream.group_by(*(f"t{at}" for at in kept)).agg(n="count(*)"), seed)

    def covers(marks: dict[str, int], times: dict[int, int], ports: tuple[int, ...]) -> bool:
        least = min(ports, key=lambda port: (windows[port], port))
        further = times[least] + windows[least]
        bounds = {port: times.get(port, BEGINNING) if port in ports else further for port in all_}
        return all(marks.get(f"s{port}", BEGINNING) > bound for port, bound in bounds.items())

    all_ = range(number)
    choices = [each for size in all_ for each in combinations(kept, size + 1)]
    for row, step in run.left:
        times = dict(zip(kept, row, strict=False))
        passed = (
            at
            for at, marks in enumerate(run.marks, 1)
            if any(covers(marks, times, ports) for ports in choices)
        )
        assert step == next(passed, AFTER_ALL)
