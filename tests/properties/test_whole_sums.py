"""Sums and averages of whole numbers: DuckDB's value, or an error that names the column."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import duckdb
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw

EDGES = [-(2**63), -(2**63) + 1, -(2**62), -(2**32), -1, 0, 1, 2**31, 2**32, 2**62, 2**63 - 1]
NUMBERS = st.one_of(st.sampled_from(EDGES), st.integers(-(2**63), 2**63 - 1), st.none())
MOST = 2**63 - 1
ASKED = {"total": "sum(v)", "mean": "avg(v)", "n": "count(v)"}
MEAN = {"mean": "avg(v)", "n": "count(v)"}

QUERIES: dict[str, Callable[[lw.Stream], Any]] = {
    "tumbling": lambda s: s.window(10).group_by("g"),
    "sliding": lambda s: s.window(10, slide=3).group_by("g"),
    "session": lambda s: s.session(2).group_by("g"),
    "group": lambda s: s.group_by("ts", "g"),
}


def stream(values: list[int | None]) -> lw.Stream:
    """Values of two groups, two at each time."""
    at = range(len(values))
    columns = {"ts": [each // 2 for each in at], "g": [each % 2 for each in at], "v": values}
    table = pl.DataFrame(columns, schema={"ts": pl.Int64, "g": pl.Int64, "v": pl.Int64})
    return lw.stream(table, name="s", time="ts")


def batch(rows: list[dict[str, Any]], values: list[int | None], name: str) -> list[tuple[Any, ...]]:
    """Count, sum and average of each answer's rows, from DuckDB; the sum is of any size."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE s (ts BIGINT, g BIGINT, v BIGINT)")
    connection.executemany(
        "INSERT INTO s VALUES (?, ?, ?)", [(n // 2, n % 2, v) for n, v in enumerate(values)]
    )
    found = []
    for row in rows:
        low, high = (
            (row["ts"], row["ts"] + 1)
            if name == "group"
            else (row["window_start"], row["window_end"])
        )
        found += connection.execute(
            "SELECT count(v), sum(v), avg(v) FROM s WHERE g = ? AND ts >= ? AND ts < ?",
            [row["g"], low, high],
        ).fetchall()
    return found


@pytest.mark.parametrize("name", QUERIES)
@given(values=st.lists(NUMBERS, min_size=1, max_size=40), rows=st.sampled_from([1, 3, 100]))
def test_sums_are_those_of_duckdb_or_an_error(
    name: str, values: list[int | None], rows: int
) -> None:
    query = QUERIES[name](stream(values))
    means = query.agg(**MEAN).collect(chunk_rows=rows).to_pylist()
    wanted = batch(means, values, name)
    for row, (count, _, mean) in zip(means, wanted, strict=True):
        assert row["n"] == count
        assert row["mean"] == (None if mean is None else pytest.approx(mean, rel=1e-15, abs=1e-3))
    fits = all(total is None or -MOST - 1 <= total <= MOST for _, total, _ in wanted)
    asked = query.agg(**ASKED)
    if fits:
        got = [row["total"] for row in asked.collect(chunk_rows=rows).to_pylist()]
        assert got == [total for _, total, _ in wanted]
    else:
        with pytest.raises(lw.OperatorError, match="total: the sum does not fit BIGINT"):
            asked.collect(chunk_rows=rows)


@given(values=st.lists(NUMBERS, min_size=1, max_size=30), rows=st.sampled_from([1, 3, 100]))
def test_windows_that_slide_on_change_do_not_wrap(values: list[int | None], rows: int) -> None:
    query = stream(values).window(4, slide="on change").agg(total="sum(v)")
    times = range(len(values) // 2 + 8)
    sums = []
    for end in times:
        inside = [v for n, v in enumerate(values) if v is not None and end - 4 < n // 2 <= end]
        sums.append(sum(inside) if inside else None)
    if any(total is not None and not -MOST - 1 <= total <= MOST for total in sums):
        with pytest.raises(lw.OperatorError, match="total: the sum does not fit BIGINT"):
            query.collect(chunk_rows=rows)
        return
    for row in query.collect(chunk_rows=rows).to_pylist():
        assert row["total"] == sums[row["window_end"]]


@pytest.mark.parametrize("dtype", [pl.Int8, pl.Int16, pl.Int32, pl.UInt8, pl.UInt32])
def test_sums_of_narrow_numbers_are_wide(dtype: type[pl.DataType]) -> None:
    most = pl.select(pl.lit(0, dtype=dtype)).to_series().dtype.max()
    value = pl.select(most).item()
    table = pl.DataFrame({"ts": [0] * 300, "v": [value] * 300}, schema_overrides={"v": dtype})
    query = lw.stream(table, time="ts").window(10).agg(x="sum(v)", m="avg(v)")
    (row,) = query.collect().to_pylist()
    assert (row["x"], row["m"]) == (300 * value, value)


def test_a_sum_whose_parts_do_not_fit_is_exact_if_it_fits() -> None:
    values = [MOST, MOST, MOST, -MOST, -MOST, -5]
    table = pl.DataFrame({"ts": [0] * 6, "v": values})
    query = lw.stream(table, time="ts").window(10, slide=2).agg(x="sum(v)")
    for rows in (1, 2, 6):
        assert {row["x"] for row in query.collect(chunk_rows=rows).to_pylist()} == {MOST - 5}
