"""Rows that are nothing but a promise: they are neither answered, counted nor refused."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.running import LONG

SCHEMA = {"ts": pl.Int64, "s": pl.String, "mark": pl.Int64, "only": pl.Boolean}
ROWS: list[tuple[Any, ...]] = [
    (1, "a", None, None),
    (2, "b", None, False),
    (None, "a", 10, None),
    (77, "a", 20, True),
    (3, "b", None, None),
    (12, "a", None, False),
    (25, "a", None, None),
    (30, "b", 5, True),
    (4, "b", None, None),
]


def stream(source: Any, **options: Any) -> lw.Stream:
    contract = lw.punctuated("mark", alone="only")
    return lw.stream(source, name="told", time="ts", progress=contract, **options)


@pytest.mark.parametrize("chunk_rows", [1, 2, 100])
@pytest.mark.parametrize("key", ["channel", "groups"])
def test_a_row_marked_as_a_promise_is_one_whatever_its_columns_hold(
    key: str, chunk_rows: int
) -> None:
    options: Any = {key: "s"}
    table = pl.DataFrame(ROWS, SCHEMA, orient="row")
    counted = stream(table, **options).window(10).group_by("s").agg(n="count(*)")
    run = counted.run(chunk_rows=chunk_rows)
    assert run.await_termination(LONG)
    found = sorted(pl.DataFrame(run.results()).rows())
    assert found == [(0, 10, "a", 1), (0, 10, "b", 2), (20, 30, "a", 1)]
    assert sorted(run.late_rows()["ts"].to_pylist()) == [4, 12]
    metrics = run.metrics().stream("told")
    assert (metrics.rows, metrics.refused_rows) == (6, 2)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("key", ["channel", "groups"])
def test_on_spark_such_rows_are_not_counted_either(key: str, seed: int) -> None:
    options: Any = {key: "s"}
    source: Any = Unordered(pl.DataFrame(ROWS, SCHEMA, orient="row"), [4, 3, 2])
    local = LocalSpark(
        stream(source, **options).window(10).group_by("s").agg(n="count(*)"), seed, 2
    )
    found, late = sorted(local.results().rows()), local.late("told")
    # Mark 20 of a comes a batch before its row 12, mark 5 of b in the batch of its row 4.
    assert found == [(0, 10, "a", 1), (0, 10, "b", 3), (20, 30, "a", 1)]
    assert late is not None
    assert late["ts"].to_list() == [12]
    metrics = local.metrics().stream("told")
    assert (metrics.rows, metrics.refused_rows) == (6, 1)


def test_row_numbers_leave_no_gaps_for_them() -> None:
    table = pl.DataFrame([row for row in ROWS if row[2] != 5], SCHEMA, orient="row")
    run = stream(table).window(rows=2).agg(n="count(*)").run()
    assert run.await_termination(LONG)
    assert sum(run.results()["n"].to_pylist()) == 6 - run.late_rows().num_rows


@pytest.mark.parametrize(
    ("column", "message"),
    [("s", r"alone= names a Boolean column.*'s' has type String"), ("onyl", "onyl")],
)
def test_the_column_that_marks_them_is_of_truth_values(column: str, message: str) -> None:
    contract = lw.punctuated("mark", alone=column)
    with pytest.raises(lw.QueryError, match=message):
        lw.stream(pl.DataFrame(schema=SCHEMA), time="ts", progress=contract)
