"""Answers corrected by the late rows are the batch answer over all rows, whatever was late."""

from __future__ import annotations

import warnings
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from lowwater.errors import StreamWarning
from tests.support.oracle import answer, table_rows
from tests.support.streams import Sample, samples

WINDOWS = {
    "tumbling": (("5 seconds",), "SELECT ts - (ts % 5 + 5) % 5 AS s, k, v FROM t"),
    "sliding": (
        ("6 seconds", "2 seconds"),
        "SELECT unnest(range(ts - (ts % 2 + 2) % 2 - 4, ts + 1, 2)) AS s, k, v FROM t",
    ),
}
AGGREGATES = {"n": "count(*)", "some": "count(v)", "total": "sum(v)", "least": "min(v)"}
LISTED = "count(*), count(v), sum(v)::BIGINT, min(v), max(v)"


def late_of(stream: Any, name: str, **options: Any) -> tuple[Any, Any]:
    """What a run answers, and what it refused."""
    run = stream.run(**options)
    run.await_termination()
    return run.results(), run.late_rows(name)


def all_rows(sample: Sample) -> pl.DataFrame:
    return pl.concat([sample.kept, sample.late])


@given(samples("s"), st.sampled_from(sorted(WINDOWS)), st.integers(1, 9))
def test_window_aggregates_corrected_are_those_of_all_rows(
    sample: Sample, kind: str, chunk_rows: int
) -> None:
    lengths, rows = WINDOWS[kind]
    query = (sample.stream.window(*lengths).group_by("k").agg(**AGGREGATES, most="max(v)")).select(
        "window_start", "k", "n", "some", "total", "least", "most"
    )
    answers, late = late_of(query, "s", chunk_rows=chunk_rows)
    expected = answer(f"SELECT s, k, {LISTED} FROM ({rows}) GROUP BY s, k", {"t": all_rows(sample)})
    assert table_rows(query.corrected(answers, late)) == expected


@given(samples("s"), st.integers(1, 9))
def test_groups_corrected_are_those_of_all_rows(sample: Sample, chunk_rows: int) -> None:
    query = sample.stream.where("v > -5 OR v IS NULL").group_by("ts", "k").agg(n="count(*)")
    answers, late = late_of(query, "s", chunk_rows=chunk_rows)
    kept = "SELECT ts, k, count(*) FROM t WHERE v > -5 OR v IS NULL GROUP BY ts, k"
    assert table_rows(query.corrected(answers, late)) == answer(kept, {"t": all_rows(sample)})


@given(samples("a"), samples("b"))
def test_rows_of_several_streams_are_told_by_name(one: Sample, two: Sample) -> None:
    query = one.stream.union(two.stream).select("ts", twice="v * 2")
    run = query.run()
    run.await_termination()
    late = {name: run.late_rows(name) for name in ("a", "b")}
    expected = answer(
        "SELECT ts, v * 2 FROM a UNION ALL SELECT ts, v * 2 FROM b",
        {"a": all_rows(one), "b": all_rows(two)},
    )
    assert table_rows(query.corrected(run.results(), late)) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", StreamWarning)
        assert query.corrections(late).num_rows == one.late.height + two.late.height
