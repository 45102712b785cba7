"""Random small query graphs: whatever is built from the operators equals the batch answer.

Every operator here takes and gives rows of one shape, (ts, k, v) with ts progressing, so that any
of them can stand on any other. Each comes with the SQL text it means.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.api import Stream
from tests.support.checked_run import CheckedRun
from tests.support.oracle import answer, table_rows
from tests.support.streams import Sample, samples


@dataclass(frozen=True)
class Query:
    """A query and the SQL that means the same."""

    stream: Stream
    sql: str


def base(name: str, sample: Sample) -> Query:
    return Query(sample.stream.select("ts", "k", "v"), f"SELECT ts, k, v FROM {name}")


def filtered(q: Query, _: Any) -> Query:
    return Query(q.stream.where("v > 0 OR k = 1"), f"SELECT * FROM ({q.sql}) WHERE v > 0 OR k = 1")


def shifted(q: Query, draw: Any) -> Query:
    by = draw(st.integers(0, 9))
    return Query(
        q.stream.select(ts=f"ts - {by}", k="k", v="v + 1"),
        f"SELECT ts - {by} AS ts, k, v + 1 AS v FROM ({q.sql})",
    )


def deduplicated(q: Query, _: Any) -> Query:
    return Query(q.stream.distinct(), f"SELECT DISTINCT * FROM ({q.sql})")


def ordered(q: Query, _: Any) -> Query:
    return Query(q.stream.order_by(), q.sql)


def windowed(q: Query, draw: Any) -> Query:
    size, slide = draw(st.integers(1, 12)), draw(st.integers(1, 12))
    edge, shift = draw(st.sampled_from([("window_start", 0), ("window_end", size)]))
    counted = q.stream.window(size, slide=slide).group_by("k").agg(v="count(v)")
    return Query(
        counted.select(ts=edge, k="k", v="v"),
        f"""SELECT start + {shift} AS ts, k, count(v) AS v
            FROM (SELECT unnest(generate_series(
                    CAST(floor((ts - {size}) / {slide}.0) AS BIGINT) + 1,
                    CAST(floor(ts / {slide}.0) AS BIGINT))) * {slide} AS start, k, v
                  FROM ({q.sql})) GROUP BY start, k""",
    )


def grouped(q: Query, _: Any) -> Query:
    return Query(
        q.stream.group_by("ts", "k").agg(v="max(v)"),
        f"SELECT ts, k, max(v) AS v FROM ({q.sql}) GROUP BY ts, k",
    )


def united(q: Query, r: Query, _: Any) -> Query:
    return Query(q.stream.union(r.stream), f"({q.sql}) UNION ALL ({r.sql})")


def joined(q: Query, r: Query, draw: Any) -> Query:
    before, after = draw(st.integers(0, 6)), draw(st.integers(0, 6))
    time = draw(st.sampled_from(["ts", "ts_right", "greatest(ts, ts_right)"]))
    pairs = q.stream.join(r.stream, on="k", within=(before, after))
    sql_time = time.replace("ts_right", "r.ts").replace("(ts", "(q.ts")
    return Query(
        pairs.select(ts=time, k="k", v="v + v_right"),
        f"""SELECT {"q.ts" if time == "ts" else sql_time} AS ts, q.k, q.v + r.v AS v
            FROM ({q.sql}) q JOIN ({r.sql}) r
            ON q.k = r.k AND r.ts BETWEEN q.ts - {before} AND q.ts + {after}""",
    )


def left_joined(q: Query, r: Query, draw: Any) -> Query:
    band = draw(st.integers(0, 6))
    pairs = q.stream.join(r.stream, on="k", within=band, how="left", where="v >= v_right")
    return Query(
        pairs.select("ts", "k", v="coalesce(v_right, -1)"),
        f"""SELECT q.ts, q.k, coalesce(r.v, -1) AS v FROM ({q.sql}) q LEFT JOIN ({r.sql}) r
            ON q.k = r.k AND r.ts BETWEEN q.ts - {band} AND q.ts + {band} AND q.v >= r.v""",
    )


def gathered(q: Query, r: Query, draw: Any) -> Query:
    one, two, three = draw(st.tuples(st.integers(0, 6), st.integers(0, 6), st.integers(0, 6)))
    time = draw(st.sampled_from(["ts", "ts_2", "ts_3", "greatest(ts, ts_2, ts_3)"]))
    rows = lw.join([q.stream, r.stream, q.stream], on="k", within=[one, two, three])
    return Query(
        rows.select(ts=time, k="k", v="v_2 + v_3"),
        f"""SELECT {time} AS ts, k, v FROM
            (SELECT a.ts AS ts, b.ts AS ts_2, c.ts AS ts_3, a.k AS k, b.v + c.v AS v
             FROM ({q.sql}) a, ({r.sql}) b, ({q.sql}) c WHERE a.k = b.k AND a.k = c.k
             AND greatest(b.ts, c.ts) - a.ts <= {one} AND greatest(a.ts, c.ts) - b.ts <= {two}
             AND greatest(a.ts, b.ts) - c.ts <= {three})""",
    )


ONE = [filtered, shifted, deduplicated, ordered, windowed, grouped]
TWO = [united, joined, left_joined, gathered]


@st.composite
def graphs(draw: Any, queries: list[Query], depth: int) -> Query:
    """A query over the given ones, of at most so many levels; parts may be shared."""
    if depth == 0:
        return draw(st.sampled_from(queries))
    below = draw(graphs(queries, depth - 1))
    if draw(st.booleans()):
        return draw(st.sampled_from(ONE))(below, draw)
    other = draw(st.sampled_from([*queries, below]))
    return draw(st.sampled_from(TWO))(below, other, draw)


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
@given(st.data(), samples("a", most=10), samples("b", most=10), st.integers(1, 4))
def test_any_graph_equals_batch_in_both_shapes(data: Any, a: Sample, b: Sample, depth: int) -> None:
    query = data.draw(graphs([base("a", a), base("b", b)], depth))
    expected = answer(query.sql, {"a": a.kept, "b": b.kept})
    for shape in ("out-of-order", "in-order"):
        run = CheckedRun(query.stream, data.draw, shape)
        assert table_rows(run.results()) == expected
    chunk_rows = data.draw(st.integers(1, 8))
    assert table_rows(query.stream.collect(chunk_rows=chunk_rows)) == expected
