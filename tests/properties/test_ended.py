"""Channels and groups that end: the answers are those over the rows before the ends, the rows after
them are refused with that reason, and nothing of them is kept."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.api import Stream
from lowwater.progress.late import AFTER_END
from tests.support.checked_run import CheckedRun
from tests.support.ended_streams import Ended, ending, ending_in_batches
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, multiset, on_change, table_rows

WINDOW = "CAST(floor(ts / 10.0) AS BIGINT) * 10, CAST(floor(ts / 10.0) AS BIGINT) * 10 + 10"
Query = tuple[Callable[..., Stream], str]
ONE: dict[str, Query] = {
    "windows": (
        lambda a: a.window(10).group_by("s", "k").agg(n="count(*)", t="sum(v)"),
        f"SELECT {WINDOW}, s, k, count(*), CAST(sum(v) AS BIGINT) FROM a GROUP BY ALL",
    ),
    "windows of two levels": (
        lambda a: a.window(10, table=3).group_by("s").agg(n="count(*)"),
        f"SELECT {WINDOW}, s, count(*) FROM a GROUP BY ALL",
    ),
    "sessions": (
        lambda a: a.session(4).group_by("s").agg(n="count(*)"),
        """SELECT min(ts), max(ts) + 4, s, count(*) FROM (
               SELECT *, sum(CASE WHEN before IS NULL OR ts - before >= 4 THEN 1 ELSE 0 END)
                   OVER (PARTITION BY s ORDER BY ts ROWS UNBOUNDED PRECEDING) AS number
               FROM (SELECT *, lag(ts) OVER (PARTITION BY s ORDER BY ts) AS before FROM a))
           GROUP BY s, number""",
    ),
    "distinct": (lambda a: a.distinct("ts", "s"), "SELECT DISTINCT ON (ts, s) ts, s FROM a"),
    "groups of a time": (
        lambda a: a.map(t="ts + 3").group_by("t", "s").agg(n="count(*)"),
        "SELECT ts + 3, s, count(*) FROM a GROUP BY ALL",
    ),
    "windows of windows": (
        lambda a: (
            a.window(5)
            .group_by("s")
            .agg(n="count(*)")
            .window(10, on="window_start")
            .group_by("s")
            .agg(m="sum(n)")
        ),
        f"""SELECT {WINDOW.replace("ts", "w")}, s, CAST(count(*) AS BIGINT)
            FROM (SELECT CAST(floor(ts / 5.0) AS BIGINT) * 5 AS w, s FROM a) GROUP BY ALL""",
    ),
}
WHOLE: dict[str, Query] = {
    "windows over all groups": (
        lambda a: a.window(10).agg(n="count(*)"),
        f"SELECT {WINDOW}, count(*) FROM a GROUP BY ALL",
    ),
    "windows in order": (
        lambda a: a.window(10).group_by("s").agg(n="count(*)").order_by("window_end"),
        f"SELECT {WINDOW}, s, count(*) FROM a GROUP BY ALL",
    ),
    "windows that slide on change": (
        lambda a: a.window(4, slide="on change").group_by("s").agg(n="count(*)"),
        on_change("a", "4", {"n": "count(r.ts)"}, ("s",)),
    ),
}
TWO: dict[str, Query] = {
    "a union": (
        lambda a, b: a.union(b).window(10).group_by("s").agg(n="count(*)"),
        f"""SELECT {WINDOW}, s, count(*)
            FROM (SELECT * FROM a UNION ALL SELECT * FROM b) GROUP BY ALL""",
    ),
    **{
        f"{how} join": (
            lambda a, b, how=how: (
                a.join(b, on="s", within=(2, 3), how=how)
                .map(t="coalesce(ts, ts_right)")
                .window(10, on="t")
                .group_by("s")
                .agg(n="count(*)", m="count(v)", o="count(v_right)")
            ),
            f"""SELECT {WINDOW.replace("ts", "t")}, s, count(*), count(v), count(w) FROM (
                    SELECT coalesce(a.ts, b.ts) AS t, coalesce(a.s, b.s) AS s, a.v, b.v AS w
                    FROM a {how} JOIN b ON a.s = b.s AND b.ts BETWEEN a.ts - 2 AND a.ts + 3)
                GROUP BY ALL""",
        )
        for how in ("inner", "left", "full")
    },
    **{
        f"{how} join": (
            lambda a, b, how=how: (
                a.join(b, on="s", within=(2, 3), how=how)
                .window(10)
                .group_by("s")
                .agg(n="count(*)", m="count(v)")
            ),
            f"""SELECT {WINDOW}, s, count(*), count(v) FROM (
                    SELECT * FROM a {how} JOIN b
                    ON a.s = b.s AND b.ts BETWEEN a.ts - 2 AND a.ts + 3)
                GROUP BY ALL""",
        )
        for how in ("semi", "anti")
    },
}


def seen(given: pl.DataFrame) -> Any:
    """What is compared of a result; of distinct rows, one of those of a key."""
    columns = given.columns
    return table_rows(
        given.select("ts", "s") if columns == ["ts", "k", "s", "v", "gone"] else given
    )


def refused(given: pl.DataFrame | None, after_end: bool) -> Any:
    if given is None:
        return multiset([])
    reason = pl.col("_reason") == AFTER_END
    rows = given.filter(reason if after_end else ~reason)
    return multiset(rows.select("ts", "k", "s", "v", "gone").rows())


def check(name: str, query: Stream, sql: str, data: Any, *given: Ended, **options: Any) -> None:
    run = CheckedRun(query, data.draw, **options)
    found = seen(run.results())
    for letter, each in zip("ab", given, strict=False):
        parts = run.refused.get(letter)
        out = pl.concat(parts, how="diagonal_relaxed") if parts else None
        for after_end, verdict in ((True, "over"), (False, "late")):
            assert refused(out, after_end) == multiset(each.rows(verdict).rows()), (letter, verdict)
    tables = {letter: each.kept for letter, each in zip("ab", given, strict=False)}
    assert found == answer(sql, tables), name


@pytest.mark.parametrize("name", ONE)
@given(st.booleans(), st.data())
def test_groups_that_end_are_answered_once(name: str, announced: bool, data: Any) -> None:
    build, sql = ONE[name]
    a = data.draw(ending("a"))
    check(name, build(a.stream), sql, data, a, announced=announced)


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("key", ["channel", "groups"])
@given(st.booleans(), st.data())
def test_what_has_ended_holds_no_mark_of_the_whole_stream(
    name: str, key: str, announced: bool, data: Any
) -> None:
    build, sql = WHOLE[name]
    a = data.draw(ending("a", key, whole=True, announced=announced))
    check(name, build(a.stream), sql, data, a, announced=announced)


@pytest.mark.parametrize("name", TWO)
@given(st.data())
def test_groups_of_two_inputs_end_each_for_itself(name: str, data: Any) -> None:
    build, sql = TWO[name]
    announced = data.draw(st.booleans())
    a, b = (data.draw(ending(each, whole=True, announced=announced, most=20)) for each in "ab")
    check(name, build(a.stream, b.stream), sql, data, a, b, announced=announced)


@pytest.mark.parametrize("name", [*ONE, *WHOLE])
@given(st.integers(0, 999), st.integers(1, 3), st.data())
def test_on_spark_what_ends_is_answered_once(name: str, seed: int, buckets: int, data: Any) -> None:
    build, sql = (ONE | WHOLE)[name]
    key = data.draw(st.sampled_from(["groups", "channel"] if name in WHOLE else ["groups"]))
    whole = name in WHOLE
    ordered = data.draw(st.booleans())
    kind = ending("a", key, whole) if ordered else ending_in_batches("a", key, whole)
    a = data.draw(kind)
    local = LocalSpark(build(a.stream), seed, buckets)
    found = seen(local.results())
    assert refused(local.late("a"), True) == multiset(a.rows("over").rows())
    assert refused(local.late("a"), False) == multiset(a.rows("late").rows())
    assert found == answer(sql, {"a": a.kept})


@pytest.mark.parametrize("name", TWO)
@given(st.integers(0, 999), st.integers(1, 3), st.data())
def test_on_spark_groups_of_two_inputs_end_each_for_itself(
    name: str, seed: int, buckets: int, data: Any
) -> None:
    build, sql = TWO[name]
    a, b = (data.draw(ending_in_batches(each, whole=True, most=24)) for each in "ab")
    local = LocalSpark(build(a.stream, b.stream), seed, buckets)
    found = seen(local.results())
    for letter, each in (("a", a), ("b", b)):
        assert refused(local.late(letter), True) == multiset(each.rows("over").rows())
        assert refused(local.late(letter), False) == multiset(each.rows("late").rows())
    assert found == answer(sql, {"a": a.kept, "b": b.kept})
