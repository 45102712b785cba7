"""A union goes by the time of its first stream, or by one that is named, and by no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows

BOTH = {"ts": lw.ordered(), "sent": lw.ordered()}
ONE = pl.DataFrame({"ts": [0, 10, 20], "sent": [0, 1, 12], "k": [1, 1, 2]})
TWO = pl.DataFrame({"ts": [5, 3, 1], "sent": [0, 4, 15], "k": [1, 2, 1]})
WHY = (
    "the time of this union is ts of stream 'one', which stream 'two' does not promise"
    r" \(it promises sent\). Promise it there too, progress={'ts': ..., ...}; or name the"
    " attribute: "
)


def one() -> lw.Stream:
    return lw.stream(ONE, name="one", time="ts", progress=BOTH)


def two() -> lw.Stream:
    return lw.stream(TWO, name="two", time="sent")


USES: list[tuple[Callable[[lw.Stream], Any], str]] = [
    (lambda union: union.window("10 s").agg(n="count(*)"), "on='sent', in a query's text WA"),
    (lambda union: union.session("10 s").agg(n="count(*)"), "on='sent', in a query's text WA"),
    (lambda union: union.order_by(), r"order_by\('sent'\)"),
    (lambda union: union.join(union, on="k", within="1 s"), r"times=\('sent', ...\)"),
    (lambda union: lw.join([union, union], on="k", within="1 s"), r"times=\['sent', ...\]"),
    (lambda union: union.updates("k"), ""),
]


@pytest.mark.parametrize("use", range(len(USES)))
@pytest.mark.parametrize(
    "through",
    [
        lambda union: union,
        lambda union: union.where("k > 0"),
        lambda union: union.map(twice="k * 2"),
        lambda union: union.apply(lambda rows: rows),
        lambda union: union.where("k > 0").select("sent", "k", "ts"),
    ],
)
def test_a_time_that_not_all_streams_promise_is_not_replaced_by_another(
    through: Callable[[lw.Stream], lw.Stream], use: int
) -> None:
    run, say = USES[use]
    why = WHY + say if say else WHY.partition(". Promise")[0]
    with pytest.raises(lw.QueryError, match=why):
        run(through(one().union(two())))


def test_so_it_is_in_texts() -> None:
    text = "SELECT count(*) AS n FROM one UNION two [RANGE 10 seconds]"
    with pytest.raises(lw.QueryError, match=WHY):
        lw.sql(text, one=one(), two=two())
    views = """SELECT count(*) AS n FROM (SELECT * FROM one UNION ALL SELECT * FROM two) AS both
        [RANGE 10 seconds]"""
    with pytest.raises(lw.QueryError, match="the time of this union is ts of stream 'one'"):
        lw.sql(views, one=one(), two=two())


def test_a_time_in_another_unit_is_said_to_be_so() -> None:
    rows = ONE.with_columns(pl.from_epoch("sent"))
    first, second = (
        lw.stream(rows, name=unit, time="ts", progress=BOTH, unit=unit) for unit in ("s", "ms")
    )
    with pytest.raises(
        lw.QueryError, match="ts of stream 's', which stream 'ms' counts in another"
    ):
        first.union(second).window("10 s")


BY_NAME: list[Callable[[], lw.Stream]] = [
    lambda: one().union(two()).window("10 s", on="sent").agg(n="count(*)"),
    lambda: two().union(one()).window("10 s").agg(n="count(*)"),
    lambda: lw.sql(
        """SELECT window_start, window_end, count(*) AS n
           FROM one UNION two [RANGE 10 seconds, WA sent]""",
        one=one(),
        two=two(),
    ),
]


@pytest.mark.parametrize("build", BY_NAME)
def test_a_time_that_all_promise_can_be_named(build: Callable[[], lw.Stream]) -> None:
    sql = """SELECT sent // 10 * 10, sent // 10 * 10 + 10, count(*)
             FROM (SELECT * FROM one UNION ALL SELECT * FROM two) GROUP BY ALL"""
    wanted = answer(sql, {"one": ONE, "two": TWO})
    assert table_rows(build().collect()) == wanted
    assert table_rows(LocalSpark(build(), seed=1).results()) == wanted


def test_explain_says_which_time_a_union_goes_by() -> None:
    twice = one()
    assert "2 inputs, time ts" in twice.union(twice.where("k > 1")).explain()
    assert "2 inputs, time sent" in two().union(one()).explain()
    split = one().union(two()).window("10 s", on="sent").agg(n="count(*)").explain()
    assert "2 inputs, no main time (promised by all: sent)" in split
