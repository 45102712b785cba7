"""Results of one time leave in one order, however rows were cut, interleaved and joined.

Of rows of one time those of a later input come before those of an earlier one, and those of one
input as they arrived; a result comes with the last of its rows. DuckDB sorts the same.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, cast
from unittest import mock

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from lowwater.joins.ordered import strategy
from tests.support.checked_run import CheckedRun
from tests.support.local_spark import LocalSpark
from tests.support.streams import Sample, contracts, is_kept

ORDERS = ["sync-filter", "filter-order", "adaptive"]
HOWS = ["inner", "left", "right", "full", "semi", "anti"]
BANDS = st.tuples(st.integers(0, 2), st.integers(0, 2))
SCHEMA = {"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64}


@st.composite
def tied(draw: Any, name: str, most: int = 10) -> Sample:
    """A stream with few different times; ``v`` numbers its rows, ``arrived`` is when they come."""
    times = draw(st.lists(st.integers(0, 3), max_size=most))
    if draw(st.booleans()):
        times.sort()
    keys = draw(st.lists(st.integers(0, 1), min_size=len(times), max_size=len(times)))
    gaps = draw(st.lists(st.integers(0, 2), min_size=len(times), max_size=len(times)))
    contract = draw(contracts)
    table = pl.DataFrame({"ts": times, "k": keys, "v": range(len(times))}, schema=SCHEMA)
    table = table.with_columns(arrived=pl.Series(gaps, dtype=pl.Int64).cum_sum())
    mask = pl.Series(is_kept(times, contract), dtype=pl.Boolean)
    log = lw.replay(table, arrival="arrived")
    stream = lw.stream(log, name=name, time="ts", progress=contract, late="drop", jump=None)
    return Sample(stream, table.filter(mask), table.filter(~mask))


def joined(one: Sample, two: Sample, band: tuple[int, int], how: Any, order: Any) -> Stream:
    left = one.stream.select("k", "v", a="ts")
    right = two.stream.select("k", w="v", b="ts")
    return left.join(right, on="k", within=band, how=how, order=order)


def in_order(one: Sample, two: Sample, band: tuple[int, int], how: str) -> list[Any]:
    """The numbers of the rows of each result, sorted as they should leave."""
    on = f"l.k = r.k AND r.ts BETWEEN l.ts - {band[0]} AND l.ts + {band[1]}"
    shown = "l.ts AS a, l.v AS v, CAST(NULL AS BIGINT) AS b, CAST(NULL AS BIGINT) AS w"
    if how not in ("semi", "anti"):
        shown = "l.ts AS a, l.v AS v, r.ts AS b, r.v AS w"
    sql = f"""WITH found AS (SELECT {shown} FROM s0 l {how} JOIN s1 r ON {on}),
        timed AS (SELECT *, greatest(a, b) AS t FROM found)
        SELECT v, w FROM timed ORDER BY t, coalesce(a = t, false),
          CASE WHEN a = t THEN v ELSE w END, v NULLS FIRST, w NULLS FIRST"""
    return sorted_rows(sql, [one, two])


def sorted_rows(sql: str, inputs: list[Sample]) -> list[Any]:
    """What DuckDB gives for a query over s0, s1 and so on, in the order in which it does."""
    with duckdb.connect() as connection:
        for at, each in enumerate(inputs):
            connection.register(f"s{at}", each.kept.to_arrow())
        return connection.execute(sql).fetchall()


def numbers(table: pl.DataFrame) -> list[Any]:
    if "w" not in table.columns:
        table = table.with_columns(w=pl.lit(None))
    return cast("list[Any]", table.select("v", "w").rows())


@pytest.mark.parametrize("how", HOWS)
@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_results_of_one_time_have_one_order(how: str, data: Any, order: str) -> None:
    one, two = (data.draw(tied(f"s{at}")) for at in range(2))
    band = data.draw(BANDS)
    with mock.patch.object(strategy, "ENOUGH", 2), mock.patch.object(strategy, "ARRIVALS", 4):
        found = CheckedRun(joined(one, two, band, how, order), data.draw).results()
    assert numbers(found) == in_order(one, two, band, how)


@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_so_do_those_of_many_inputs(data: Any, order: str) -> None:
    three = [data.draw(tied(f"s{at}", 6)) for at in range(3)]
    window = data.draw(st.integers(0, 2))
    streams = [
        each.stream.select("k", **{f"t{n}": "ts", f"v{n}": "v"}) for n, each in enumerate(three)
    ]
    found = CheckedRun(lw.join(streams, on="k", within=window, order=order), data.draw).results()
    sql = f"""WITH timed AS (
          SELECT s0.ts a, s1.ts b, s2.ts c, s0.v x, s1.v y, s2.v z, greatest(a, b, c) AS t
          FROM s0, s1, s2 WHERE s0.k = s1.k AND s0.k = s2.k)
        SELECT x, y, z FROM timed WHERE t - least(a, b, c) <= {window}
        ORDER BY t, CASE WHEN a = t THEN 2 WHEN b = t THEN 1 ELSE 0 END,
          CASE WHEN a = t THEN x WHEN b = t THEN y ELSE z END, x, y, z"""
    assert found.select("v0", "v1", "v2").rows() == sorted_rows(sql, three)


@given(data=st.data(), how=st.sampled_from(HOWS))
def test_so_they_do_in_the_engine_however_rows_are_handed_over(data: Any, how: str) -> None:
    one, two = (data.draw(tied(f"s{at}")) for at in range(2))
    band = data.draw(BANDS)
    wanted = in_order(one, two, band, how)
    for order in ORDERS:
        options = data.draw(
            st.fixed_dictionaries(
                {
                    "chunk_rows": st.integers(1, 12),
                    "tick": st.sampled_from([None, 0, "1 second", "3 seconds"]),
                }
            )
        )
        found = pl.from_arrow(joined(one, two, band, how, order).collect(**options))
        assert isinstance(found, pl.DataFrame)
        assert numbers(found) == wanted


@given(data=st.data(), how=st.sampled_from(HOWS), seed=st.integers(0, 2**32))
def test_spread_over_buckets_positions_keep_their_order_and_strategies_are_alike(
    data: Any, how: str, seed: int
) -> None:
    one, two = (data.draw(tied(f"s{at}")) for at in range(2))
    band = data.draw(BANDS)
    wanted = in_order(one, two, band, how)
    orders = data.draw(st.permutations(ORDERS))[:2]
    assert numbers(LocalSpark(joined(one, two, band, how, orders[0]), seed, 1).results()) == wanted
    first, second = (
        numbers(LocalSpark(joined(one, two, band, how, order), seed, 3).results())
        for order in orders
    )
    if how == "inner":  # when rows without partners leave depends on the strategy
        assert first == second
    assert Counter(first) == Counter(wanted)
    assert [position(one, two, each) for each in first] == [
        position(one, two, each) for each in wanted
    ]


def position(one: Sample, two: Sample, result: tuple[int | None, int | None]) -> tuple[int, bool]:
    """The time of a result, and whether the row of the first input has it."""
    times = [
        -1 if number is None else dict(each.kept.select("v", "ts").rows())[number]
        for each, number in zip((one, two), result, strict=True)
    ]
    return max(times), times[0] == max(times)


def test_equal_times_leave_alike_whatever_the_strategy() -> None:
    """The second row of b comes after the first results of its time have left."""
    second = 1_000_000_000
    a = pl.DataFrame(
        {"ts": [0, 0, 2], "v": [0, 1, 2], "arrived": [3 * second, 4 * second, 6 * second]}
    )
    b = pl.DataFrame({"ts": [1, 1], "w": [0, 1], "arrived": [int(3.1 * second), int(7.1 * second)]})
    left = lw.stream(lw.replay(a, arrival="arrived"), name="a", time="ts")
    right = lw.stream(lw.replay(b, arrival="arrived"), name="b", time="ts")
    for order in ORDERS:
        for options in ({}, {"tick": 0}, {"chunk_rows": 1}, {"chunk_rows": 2}):
            query = left.join(right, within="5 seconds", order=order)  # type: ignore[arg-type]
            found = [(row["v"], row["w"]) for row in query.collect(**options).to_pylist()]  # type: ignore[arg-type]
            assert found == [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0), (2, 1)]
