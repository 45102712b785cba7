"""Late rows told as corrections, and queries of which that cannot be said."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.running import finished

ROWS = pl.DataFrame({"ts": [0, 4, 11, 3, 12, 25, 13], "k": list("abaabba"), "v": range(7)})


def stream(**options: Any) -> lw.Stream:
    return lw.stream(ROWS, name="s", time="ts", progress=lw.within("5 seconds"), **options)


def test_corrections_are_the_answer_to_late_rows_alone_and_corrected_adds_them() -> None:
    query = stream().window("10 seconds").group_by("k").agg(n="count(*)", most="max(v)")
    run = finished(query)
    late = run.late_rows()
    assert late["ts"].to_pylist() == [3, 13]
    told = query.corrections(late).select(["window_start", "k", "n", "most"]).to_pylist()
    assert [tuple(row.values()) for row in told] == [(0, "a", 1, 3), (10, "a", 1, 6)]
    restated = query.corrected(run.results(), late).to_pylist()
    got = sorted((row["window_start"], row["k"], row["n"], row["most"]) for row in restated)
    assert got == [
        (0, "a", 2, 3),
        (0, "b", 1, 1),
        (10, "a", 2, 6),
        (10, "b", 1, 4),
        (20, "b", 1, 5),
    ]


def test_files_of_a_side_output_and_of_answers_will_do(tmp_path: Any) -> None:
    query = stream().window("10 seconds").agg(n="count(*)")
    run = query.run(sink=tmp_path / "answers", late_sink=tmp_path / "late")
    run.await_termination()
    restated = query.corrected(tmp_path / "answers", tmp_path / "late")
    assert sorted(restated["n"].to_pylist()) == [1, 3, 3]
    (tmp_path / "empty").mkdir()
    assert query.corrections(tmp_path / "empty").num_rows == 0
    assert query.corrected(tmp_path / "empty", tmp_path / "late")["n"].to_pylist() == [1, 1]
    with pytest.raises(lw.OptionError, match="nothing is not there; if no row was late"):
        query.corrections(tmp_path / "nothing")


def test_rows_without_a_time_are_in_no_answer() -> None:
    rows = pl.DataFrame({"ts": [9, None, 1]}, schema={"ts": pl.Int64})
    query = lw.stream(rows, name="s", time="ts").window("5 seconds").agg(n="count(*)")
    assert query.corrections(finished(query).late_rows())["n"].to_pylist() == [1]


def test_answers_in_order_stay_in_order() -> None:
    query = stream().select("ts").order_by()
    run = finished(query)
    assert query.corrected(run.results(), run.late_rows())["ts"].to_pylist() == sorted(ROWS["ts"])


@pytest.mark.parametrize(
    ("query", "words"),
    [
        (lambda s: s.join(s, on="k", within="1 second"), "it joins"),
        (lambda s: s.distinct("ts", "k"), "it keeps distinct rows"),
        (lambda s: s.session("2 seconds").agg(n="count(*)"), "it has sessions"),
        (lambda s: s.window(rows=2).agg(n="count(*)"), "its windows count rows"),
        (lambda s: s.window(rows=2, by="k").agg(n="count(*)"), "its window slides by rows"),
        (lambda s: s.window(2, "on change").agg(n="count(*)"), "its window slides on change"),
        (
            lambda s: s.window("5 seconds").agg(n="count(*)").where("n > 1"),
            "it chooses among answers .* leave that part out",
        ),
        (
            lambda s: s.window("5 seconds").agg(n="count(*)").window("10 seconds").agg(n="sum(n)"),
            "it aggregates aggregates",
        ),
    ],
)
def test_what_late_rows_alone_cannot_be_asked_is_refused(query: Any, words: str) -> None:
    asked = query(stream())
    for correct in (asked.corrections, lambda late: asked.corrected(pl.DataFrame(), late)):
        with pytest.raises(lw.QueryError, match=f"cannot be corrected: {words}"):
            correct(pl.DataFrame())


@pytest.mark.parametrize(
    ("aggregate", "words"),
    [
        ("avg(v)", r"x is avg\(v\), .* select sum and count"),
        ("count(DISTINCT v)", "two such values cannot be merged; leave it out"),
        ("approx_quantile(v, 0.5)", "two such values cannot be merged"),
        ("last(v)", "two such values cannot be merged"),
    ],
)
def test_aggregates_that_do_not_add_up_are_told_but_not_put_together(
    aggregate: str, words: str
) -> None:
    query = stream().window("10 seconds").agg(x=aggregate)
    run = finished(query)
    assert query.corrections(run.late_rows()).num_rows == 2
    with pytest.raises(lw.QueryError, match=words):
        query.corrected(run.results(), run.late_rows())


def test_answers_that_are_computed_or_have_lost_their_window_are_refused() -> None:
    counted = stream().window("10 seconds").agg(n="count(*)")
    late = finished(counted).late_rows()
    with pytest.raises(lw.QueryError, match="twice is computed from answers"):
        counted.select("window_start", twice="n * 2").corrected(pl.DataFrame(), late)
    with pytest.raises(lw.QueryError, match=r"does not show window_start, .* too"):
        counted.select("n").corrected(pl.DataFrame(), late)


def test_tables_that_are_something_else_are_refused() -> None:
    query = stream().window("10 seconds").agg(n="count(*)")
    late = finished(query).late_rows()
    with pytest.raises(lw.OptionError, match="not the late rows of stream 's': column 'k'"):
        query.corrections(late.drop_columns("k"))
    with pytest.raises(lw.OptionError, match="not answers of this query"):
        query.corrected(late, late)
    with pytest.raises(lw.OptionError, match="give a table or a folder"):
        query.corrections(7)
    with pytest.raises(lw.OptionError, match="unknown stream 'z'"):
        query.corrections({"z": late})
    both = stream().union(lw.stream(ROWS, name="t", time="ts"))
    with pytest.raises(lw.OptionError, match="give a table for each, by name"):
        both.corrections(late)
