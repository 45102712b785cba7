"""Rows are numbered as they come: refused rows have numbers, bare punctuation has none."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.stream.element import SEQUENCE
from tests.support.local_spark import LocalSpark, Unordered


def counted(table: pl.DataFrame, **options: Any) -> lw.Stream:
    stream = lw.stream(lw.replay(table), name="s", time="ts", late="drop", **options)
    return stream.window(rows=2).agg(n="count(*)", total="sum(v)")


REFUSED: list[tuple[dict[str, list[Any]], dict[str, Any], list[tuple[int, int, int, int]]]] = [
    # late: the second row of the first window, and all of the third
    (
        {"ts": [5, 3, 6, 7, 2, 1, 8]},
        {},
        [(0, 2, 1, 0), (2, 4, 2, 5), (6, 8, 1, 6)],
    ),
    # no time, or none that can be one
    ({"ts": [None, 3.0, float("nan"), 4.0]}, {}, [(0, 2, 1, 1), (2, 4, 1, 3)]),
    # no channel
    (
        {"ts": [1, 2, 3, 4], "c": ["a", None, "a", "a"]},
        {"channel": "c"},
        [(0, 2, 1, 0), (2, 4, 2, 5)],
    ),
    # dated far ahead
    (
        {"ts": [1, 10**6, 3, 4]},
        {"jump": lw.jump("1 day", "quarantine")},
        [(0, 2, 1, 0), (2, 4, 2, 5)],
    ),
    # a producer's punctuation is no row
    (
        {"ts": [1, None, 2, 3], "p": [None, 1, None, None]},
        {"progress": lw.punctuated("p")},
        [(0, 2, 2, 2), (2, 4, 1, 3)],
    ),
]


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
@pytest.mark.parametrize("chunk_rows", [1, 2, 3, 100])
@pytest.mark.parametrize(("columns", "options", "wanted"), REFUSED)
def test_what_is_refused_keeps_its_number(
    columns: dict[str, list[Any]],
    options: dict[str, Any],
    wanted: list[tuple[int, int, int, int]],
    chunk_rows: int,
) -> None:
    table = pl.DataFrame(columns).with_row_index("v").cast({"v": pl.Int64})
    query = counted(table, **options)
    assert [
        tuple(row.values()) for row in query.collect(chunk_rows=chunk_rows).to_pylist()
    ] == wanted
    assert sorted(LocalSpark(query, seed=chunk_rows).results().rows()) == wanted


def test_numbers_are_not_shown_beside_refused_rows() -> None:
    table = pl.DataFrame({"ts": [5, 3, 6], "v": [1, 2, 3]})
    run = lw.stream(table, name="s", time="ts").window(rows=2).agg(n="count(*)").run()
    run.await_termination()
    refused = run.late_rows("s")
    assert refused.num_rows == 1
    assert SEQUENCE not in refused.column_names


def test_in_batches_too() -> None:
    rows = pl.DataFrame({"ts": [5, 6, 3, 7, 8], "v": [0, 1, 2, 3, 4]})
    stream = lw.stream(Unordered(rows, [2, 2, 1]), name="s", time="ts", late="drop")
    found = LocalSpark(stream.window(rows=2).agg(n="count(*)", total="sum(v)"), seed=1).results()
    assert sorted(found.rows()) == [(0, 2, 2, 1), (2, 4, 1, 3), (4, 6, 1, 4)]
