"""The language against the oracle over any rows, and against texts that nobody would write."""

from __future__ import annotations

import random
import re
import warnings
from math import ceil, floor
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import lowwater as lw
from lowwater.plan.sql.script import read_script
from tests.conformance.sql_cases import all_cases
from tests.conformance.traces import traces
from tests.conftest import FULL
from tests.properties.test_kernels import BANDS, SHAPES, SLOWLY, WINDOWED, check
from tests.support.checked_run import CheckedRun
from tests.support.oracle import answer
from tests.support.streams import Sample, samples

# ---- kernels the language names ----------------------------------------------------------------

AGGREGATES = {
    "n": ("count(*)", "count(*)"),
    "big": ("count(*) FILTER (WHERE v > 0)", "count(*) FILTER (v > 0)"),
    "total": ("sum(v) FILTER (WHERE s = 'a')", "CAST(sum(v) FILTER (s = 'a') AS BIGINT)"),
    "kinds": (
        "count(DISTINCT v) FILTER (WHERE k IS NULL)",
        "count(DISTINCT v) FILTER (k IS NULL)",
    ),
    "last": (
        "last(v) FILTER (WHERE k > 0)",
        "last(v ORDER BY ts, v) FILTER (v IS NOT NULL AND k > 0)",
    ),
    "vs": ("collect(v)", "coalesce(list(v ORDER BY ts, v) FILTER (v IS NOT NULL), [])"),
    "ss": (
        "collect(s) FILTER (WHERE v < 0)",
        "coalesce(list(s ORDER BY ts, s) FILTER (v < 0), [])",
    ),
    "about": ("approx_count_distinct(v)", "count(DISTINCT v)"),
    "texts": ("approx_count_distinct(s) FILTER (WHERE v > 0)", "count(DISTINCT s) FILTER (v > 0)"),
    "spread": ("stddev(v)", "stddev(v)"),
}
SESSIONS = """
    SELECT min(ts), max(ts) + {gap}, {keys} {aggregates}
    FROM (SELECT *, sum(begins) OVER (PARTITION BY {over} ORDER BY ts RANGE UNBOUNDED PRECEDING) s_
          FROM (SELECT *, CASE WHEN ts - lag(ts) OVER (PARTITION BY {over} ORDER BY ts) < {gap}
                               THEN 0 ELSE 1 END AS begins FROM {source}))
    GROUP BY s_, {over}
"""
NAMES = st.lists(st.sampled_from(sorted(AGGREGATES)), min_size=1, unique=True)
KEYS = st.sampled_from([(), ("k",), ("k", "s")])


@given(samples("a"), samples("b"), st.integers(1, 12), KEYS, NAMES, st.data())
def test_session_equals_batch(
    a: Sample, b: Sample, gap: int, keys: tuple[str, ...], names: list[str], data: Any
) -> None:
    wanted = {name: AGGREGATES[name][0] for name in names}
    flush = data.draw(SLOWLY)
    query = a.stream.union(b.stream).session(gap, flush=flush).group_by(*keys).agg(**wanted)
    sql = SESSIONS.format(
        gap=gap,
        keys="".join(f"{key}, " for key in keys),
        over=", ".join(keys) or "true",
        aggregates=", ".join(AGGREGATES[name][1] for name in names),
        source="(SELECT * FROM a UNION ALL SELECT * FROM b)",
    )
    check(query, sql, data, a, b)


@given(samples("a"), st.integers(1, 12), st.integers(1, 12), KEYS, NAMES, st.data())
def test_filtered_collected_and_sketched_aggregates_equal_batch(
    a: Sample, size: int, slide: int, keys: tuple[str, ...], names: list[str], data: Any
) -> None:
    wanted = {name: AGGREGATES[name][0] for name in names}
    query = a.stream.window(size, slide=slide).group_by(*keys).agg(**wanted)
    sql = WINDOWED.format(
        range=size,
        slide=slide,
        keys="".join(f"{key}, " for key in keys),
        groups="".join(f", {key}" for key in keys),
        aggregates=", ".join(AGGREGATES[name][1] for name in names),
        source="a",
    )
    check(query, sql, data, a)


@given(samples("a"), st.integers(1, 30), st.floats(0, 1), st.data())
def test_quantile_lies_between_its_neighbours(
    a: Sample, size: int, share: float, data: Any
) -> None:
    share = round(share, 3)
    query = a.stream.window(size).agg(q=f"approx_quantile(v, {share})", vs="collect(v)")
    run = CheckedRun(query, data.draw, data.draw(SHAPES))
    for row in run.results().to_dicts():
        values = sorted(row["vs"])
        if not values:
            assert row["q"] is None
            continue
        at = share * len(values)
        low, high = max(0, floor(at) - 1), min(len(values) - 1, ceil(at))
        assert values[low] - 1e-9 <= row["q"] <= values[high] + 1e-9


def test_sketches_are_near_for_many_values() -> None:
    chance = random.Random(7)
    values = [chance.gauss(0, 1000) for _ in range(60_000)]
    table = pl.DataFrame({"ts": range(60_000), "v": values})
    stream = lw.stream(table, name="many", time="ts")
    query = stream.window(60_000).agg(
        n="approx_count_distinct(v)", half="approx_quantile(v, 0.5)", most="approx_quantile(v, 1)"
    )
    (row,) = query.collect(chunk_rows=7_000).to_pylist()
    assert row["n"] == pytest.approx(len(set(values)), rel=0.05)
    assert row["half"] == pytest.approx(sorted(values)[30_000], abs=20)
    assert row["most"] == pytest.approx(max(values))


@given(samples("a", most=14), samples("b", most=14), BANDS, st.data())
def test_semi_and_anti_join_equal_batch(
    a: Sample, b: Sample, band: tuple[int, int], data: Any
) -> None:
    how = data.draw(st.sampled_from(["semi", "anti"]))
    on = data.draw(st.sampled_from([["k"], ["k", "s"], []]))
    where = data.draw(st.sampled_from([None, "v < v_right"]))
    query = a.stream.join(b.stream, on=on, within=band, where=where, how=how)
    match = f"b.ts >= a.ts - {band[0]} AND b.ts <= a.ts + {band[1]}"
    match += "".join(f" AND a.{key} = b.{key}" for key in on)
    match += " AND a.v < b.v" if where else ""
    word = "EXISTS" if how == "semi" else "NOT EXISTS"
    check(query, f"SELECT * FROM a WHERE {word} (SELECT 1 FROM b WHERE {match})", data, a, b)


@given(samples("a", most=14), samples("b", most=14), st.integers(1, 12), st.data())
def test_semi_and_anti_join_in_buckets_equal_batch(
    a: Sample, b: Sample, width: int, data: Any
) -> None:
    how = data.draw(st.sampled_from(["semi", "anti"]))
    query = a.stream.join(b.stream, on=[("k", "v")], within=lw.same(width), how=how)
    match = f"floor(a.ts / {width}.0) = floor(b.ts / {width}.0) AND a.k = b.v"
    word = "EXISTS" if how == "semi" else "NOT EXISTS"
    check(query, f"SELECT * FROM a WHERE {word} (SELECT 1 FROM b WHERE {match})", data, a, b)


@given(samples("a", most=12), samples("b", most=12), st.integers(0, 6), st.data())
def test_anti_join_then_window_equals_batch(a: Sample, b: Sample, band: int, data: Any) -> None:
    how = data.draw(st.sampled_from(["semi", "anti"]))
    kept = a.stream.join(b.stream, on="k", within=band, how=how)
    query = kept.window(10).agg(n="count(*)")
    word = "EXISTS" if how == "semi" else "NOT EXISTS"
    sql = f"""SELECT CAST(floor(ts / 10.0) AS BIGINT) * 10,
                     CAST(floor(ts / 10.0) AS BIGINT) * 10 + 10, count(*)
              FROM a WHERE {word} (SELECT 1 FROM b WHERE a.k = b.k
                                   AND b.ts BETWEEN a.ts - {band} AND a.ts + {band})
              GROUP BY ALL"""
    check(query, sql, data, a, b)


# ---- queries -----------------------------------------------------------------------------------


@given(samples("a"), st.integers(1, 30), st.data())
def test_groups_of_buckets_equal_batch(a: Sample, width: int, data: Any) -> None:
    text = f"SELECT ts/{width} AS b, k, count(*) AS n, max(v) AS most FROM a GROUP BY 1, k"
    sql = f"""SELECT CAST(floor(ts / {width}.0) AS BIGINT), k, count(*), max(v) FROM a
              GROUP BY ALL"""
    check(lw.sql(text, a=a.stream), sql, data, a)


@given(samples("a"), st.sampled_from(["second", "minute", "hour"]), st.data())
def test_groups_of_cut_times_equal_batch(a: Sample, unit: str, data: Any) -> None:
    text = f"SELECT date_trunc('{unit}', ts) AS b, s, sum(v) AS total FROM a GROUP BY b, s"
    width = {"second": 1, "minute": 60, "hour": 3600}[unit]
    sql = f"""SELECT CAST(floor(ts / {width}.0) AS BIGINT) * {width}, s, CAST(sum(v) AS BIGINT)
              FROM a GROUP BY ALL"""
    check(lw.sql(text, a=a.stream), sql, data, a)


def conditions(lengths: st.SearchStrategy[float]) -> st.SearchStrategy[str]:
    """Conditions on the times of two sources, in many spellings."""
    one, two = st.sampled_from([("a.ts", "b.ts"), ("b.ts", "a.ts")]), lengths
    sign = st.sampled_from(["<", "<=", ">", ">="])
    plain = st.builds(
        "{0[0]} {1} {0[1]} {3} {2}".format, one, sign, two, st.sampled_from(["+", "-"])
    )
    turned = st.builds("{0[0]} - {2} {1} {0[1]} + 1".format, one, sign, two)
    difference = st.builds("{0[0]} - {0[1]} {1} {2}".format, one, sign, two)
    near = st.builds("abs({0[0]} - {0[1]}) {1} {2}".format, one, st.sampled_from(["<", "<="]), two)
    nearer = st.builds(
        "{2} {1} abs({0[0]} - {0[1]})".format, one, st.sampled_from([">", ">="]), two
    )
    between = st.builds("{0[0]} BETWEEN {0[1]} - {1} AND {0[1]} + {2}".format, one, two, two)
    equal = st.builds("{0[0]} = {0[1]} + {1}".format, one, two)
    other = st.just("a.ts <> b.ts")
    return st.one_of(plain, turned, difference, near, nearer, between, equal, other)


@given(samples("a", most=12), samples("b", most=12), st.data())
def test_bands_in_any_spelling_equal_batch(a: Sample, b: Sample, data: Any) -> None:
    lengths = st.sampled_from([0, 1, 2, 3, 5, 8, 1.5])
    found = data.draw(st.lists(conditions(lengths), min_size=1, max_size=4))
    where = " AND ".join([*found, *data.draw(st.sampled_from([[], ["a.k = b.k"], ["a.v < b.v"]]))])
    text = f"SELECT a.ts AS one, a.v AS v, b.ts AS two FROM a, b WHERE {where}"
    try:
        query = lw.sql(text, a=a.stream, b=b.stream)
    except lw.QueryError as error:
        if "could never forget a row" not in str(error):
            raise
        return
    check(query, text, data, a, b)


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
@pytest.mark.parametrize("least", range(-2, 3))
@pytest.mark.parametrize("most", range(-2, 3))
@given(samples("a", most=8), samples("b", most=8), st.data())
@settings(max_examples=settings.default.max_examples // 8)
def test_bands_of_any_two_bounds_also_empty_ones_equal_batch(
    most: int, least: int, kind: str, a: Sample, b: Sample, data: Any
) -> None:
    text = f"""SELECT a.ts AS one, a.v AS v, b.ts AS two FROM a {kind} b
               ON b.ts >= a.ts + {least} AND b.ts <= a.ts + {most}"""
    check(lw.sql(text, a=a.stream, b=b.stream), text, data, a, b)


@given(samples("a", most=10), samples("b", most=10), samples("c", most=10), st.data())
def test_windows_on_three_sources_hold_between_any_two(
    a: Sample, b: Sample, c: Sample, data: Any
) -> None:
    x, y, z = (data.draw(st.integers(1, 9)) for _ in "abc")
    text = f"""SELECT a.ts AS a, b.ts AS b, c.ts AS c
               FROM a [RANGE {x}], b [RANGE {y}], c [RANGE {z}] WHERE a.s = b.s"""
    sql = f"""SELECT a.ts, b.ts, c.ts FROM a, b, c WHERE a.s = b.s
              AND b.ts > a.ts - {y} AND b.ts < a.ts + {x}
              AND c.ts > a.ts - {z} AND c.ts < a.ts + {x}
              AND c.ts > b.ts - {z} AND c.ts < b.ts + {y}"""
    check(lw.sql(text, a=a.stream, b=b.stream, c=c.stream), sql, data, a, b, c)


@given(samples("a", most=14), samples("b", most=14), st.integers(0, 5), st.data())
def test_exists_and_its_opposite_make_up_all_rows(
    a: Sample, b: Sample, band: int, data: Any
) -> None:
    inner = f"SELECT 1 FROM b WHERE b.k = a.k AND abs(a.ts - b.ts) <= {band} AND b.v > 0"
    text = f"""SELECT * FROM a WHERE EXISTS ({inner})
               UNION ALL SELECT * FROM a WHERE NOT EXISTS ({inner})"""
    run = CheckedRun(lw.sql(text, a=a.stream, b=b.stream), data.draw, "out-of-order")
    rows = {"a": a.kept, "found": run.results()}
    assert answer("SELECT * FROM found", rows) == answer("SELECT * FROM a", rows)


# ---- texts that nobody would write -------------------------------------------------------------

PIPELINES = [
    """CREATE STREAM Main1 (srcIP STRING, len BIGINT, ts TIMESTAMP) FROM 'parquet:trace/main1'
       PROGRESS ORDERED BY ts PER CHANNEL host IDLE ON DEMAND WITHIN 1 SECOND LATE TO 'late/';
       CREATE VIEW big AS SELECT * FROM Main1 WHERE len > :n;
       INSERT INTO 'parquet:out/' SELECT count(*) FROM big [RANGE 1 minute];""",
    """CREATE STREAM M FROM 'csv:m.csv' PROGRESS ON ts WITHIN 5 SECONDS FOLLOW; -- grows
       CREATE STREAM T (symbol STRING, price DECIMAL(10, 2), ts TIMESTAMP, mark TIMESTAMP)
       FROM 'json:t' PUNCTUATED BY mark ON ts HEARTBEAT EVERY 1 SECOND UPDATE KEY (symbol)
       SCHEDULE in-place BUDGET '1 second' COMPLETE WITHIN 2 seconds WINDOWS eager
       WEIGHTS ('GOOG' = 60, 'GM' = 1);
       SELECT * FROM M; SELECT srcIP FROM M""",
]
QUERIES = [
    *(case.query for case in all_cases() for _ in range(1 if case.error else 3)),
    *PIPELINES * 4,
]
TOKEN = re.compile(r"\s+|\w+|'[^']*'|\"[^\"]*\"|--[^\n]*|[<>=!≤≥]+|.", re.DOTALL)
WORDS = sorted({token for query in QUERIES for token in TOKEN.findall(query) if token.strip()})
ROUNDS = 100_000 if FULL else 10_000
GIVEN = {"n": 30, "SYN": "SYN", "word": "x", "step": "30 seconds", "none": None, "limit": 3}


def mutated(chance: random.Random) -> str:
    """A query with a few things wrong with it, or no query at all."""
    kind = chance.random()
    if kind < 0.03:
        return "".join(
            chr(chance.choice([*range(32, 127), 0, 10, 233, 0x1F600])) for _ in range(40)
        )
    if kind < 0.08:
        return " ".join(chance.choices(WORDS, k=chance.randint(1, 30)))
    tokens = TOKEN.findall(chance.choice(QUERIES)) or [""]
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        at, other = chance.randrange(len(tokens)), chance.randrange(len(tokens))
        change = chance.randrange(7)
        if change == 0:
            tokens[at] = ""
        elif change == 1:
            tokens.insert(at, tokens[other])
        elif change == 2:
            tokens[at], tokens[other] = tokens[other], tokens[at]
        elif change == 3:
            tokens.insert(at, f" {chance.choice(WORDS)} ")
        elif change == 4:
            tokens[at] = chance.choice(WORDS)
        elif change == 5:
            tokens = tokens[: at + 1]
        else:
            noise = chance.choice("()[]{},;.'\"\\-+*/<>=:?!@#$%^&|~`\n\t\0éSZ09")
            place = chance.randint(0, len(tokens[at]))
            tokens[at] = tokens[at][:place] + noise + tokens[at][place:]
    return "".join(tokens)


def plan(text: str, refusal: type[lw.LowwaterError] = lw.ExpressionError) -> None:
    """Plan a text; fail on anything but a plan or an error that says something, and where."""
    said = "planned"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if "STREAM" in text:
                read_script(text, GIVEN, lambda _: traces().streams["M"]._node, "here")
            else:
                lw.sql(text, **traces().streams, **GIVEN).explain()
    except refusal as error:
        said = str(error).strip()
    except BaseException as error:  # a panic of the expression engine is no Exception
        raise AssertionError(f"{type(error).__name__}: {error}\n{text!r}") from error
    assert said, text


@pytest.mark.parametrize("part", range(10))
def test_mutated_queries_are_planned_or_refused(part: int) -> None:
    chance = random.Random(part)
    for _ in range(ROUNDS // 10):
        plan(mutated(chance))


@pytest.mark.parametrize("part", range(8))
def test_queries_that_end_too_soon_are_planned_or_refused(part: int) -> None:
    """Every query of the conformance suite up to each of its words."""
    for query in list(dict.fromkeys(QUERIES))[part::8]:
        tokens = TOKEN.findall(query)
        for at, token in enumerate(tokens, 1):
            if token.strip():
                plan("".join(tokens[:at]))


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 3_000 + "ts" + ")" * 3_000 + " FROM M",
        "SELECT " + "(" * 200 + "ts" + ")" * 200 + " FROM M",
        "SELECT ts FROM M WHERE " + "NOT " * 5_000 + "len > 3",
        "SELECT ts FROM M WHERE " + " AND ".join(["len > 3"] * 2_000),
        "SELECT ts, " + " + ".join(["len"] * 5_000) + " AS x FROM M",
        "SELECT ts, " + " || ".join(["flag"] * 1_000) + " AS x FROM M",
        "SELECT ts, " + "-" * 999 + "len AS x FROM M",
        "SELECT ts FROM " + "(SELECT ts FROM " * 300 + "M" + ")" * 300,
        "SELECT ts FROM M " + "UNION ALL SELECT ts FROM M " * 300,
        "SELECT ts FROM M" + " UNION M" * 500,
        "SELECT " + "CASE WHEN len > 1 THEN " * 300 + "1" + " END" * 300 + " AS x, ts FROM M",
        "[" * 5_000,
        "SELECT " * 3_000,
        "x" * 200_000,
        "SELECT ts FROM M WHERE flag = '" + "y" * 90_000 + "'",
    ],
    ids=range(15),
)
def test_texts_that_are_too_deep_or_too_long_are_planned_or_refused(text: str) -> None:
    plan(text, lw.QueryError)
