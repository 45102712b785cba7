"""Replayed arrival logs."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from lowwater.sources.source import AT_ONCE
from lowwater.stream.time_domain import clock_times

LOG = pl.DataFrame({"at": [0.0, 1.0, 1.0, 2.5], "v": [1, 2, 3, 4]})


@pytest.mark.parametrize("table", [LOG, LOG.lazy(), LOG.to_arrow(), LOG.to_arrow().to_batches()[0]])
def test_polars_and_arrow_tables_are_taken(table: Any) -> None:
    source = lw.replay(table, "at")
    assert source.rows == 4
    assert list(source.schema) == ["at", "v"]
    assert source.arrival == "at"


@pytest.mark.parametrize("table", [{"a": [1]}, [1, 2], "file.parquet", None])
def test_other_things_are_refused(table: Any) -> None:
    with pytest.raises(lw.OptionError, match="a stream is made of a polars frame"):
        lw.replay(table)


def test_rows_are_read_once_they_have_arrived() -> None:
    reader = lw.replay(LOG, "at").open()
    assert reader.due() == 0
    assert reader.due(rows=3) == 1_000_000_000
    first = reader.read(now=500_000_000, limit=10)
    assert first is not None
    assert first["v"].to_list() == [1]
    assert reader.read(now=999_999_999, limit=10) is None
    second = reader.read(now=1_000_000_000, limit=10)
    assert second is not None
    assert second["v"].to_list() == [2, 3]
    assert reader.due(rows=100) == 2_500_000_000
    third = reader.read(now=10**18, limit=10)
    assert third is not None
    assert third["v"].to_list() == [4]
    assert reader.ended
    assert reader.due() is None


def test_the_limit_is_kept() -> None:
    reader = lw.replay(LOG).open()
    sizes = []
    while not reader.ended:
        chunk = reader.read(0, 3)
        assert chunk is not None
        sizes.append(chunk.height)
    assert sizes == [3, 1]


def test_without_arrival_times_everything_is_there_at_once() -> None:
    assert lw.replay(LOG).open().due(rows=4) == AT_ONCE


def test_each_opening_starts_from_the_first_row() -> None:
    source = lw.replay(LOG)
    assert source.open().read(0, 9) is not None
    again = source.open().read(0, 9)
    assert again is not None
    assert again.equals(LOG)


def test_an_arrival_column_that_goes_back_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="must be in arrival order, but column 'v' goes back"):
        lw.replay(pl.DataFrame({"v": [2, 1]}), "v")


def test_an_arrival_column_with_nulls_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="arrival column 'v' has nulls"):
        lw.replay(pl.DataFrame({"v": [1, None]}), "v")


def test_an_unknown_arrival_column_is_refused_with_a_suggestion() -> None:
    with pytest.raises(
        lw.QueryError, match=r"unknown arrival column 'arived'. Did you mean 'arrived'"
    ):
        lw.replay(pl.DataFrame({"arrived": [1]}), "arived")


def test_an_arrival_column_of_another_type_is_refused() -> None:
    with pytest.raises(lw.QueryError, match="must be a Datetime or a number of seconds"):
        lw.replay(pl.DataFrame({"at": ["noon"]}), "at")


def test_clock_times_are_nanoseconds_whatever_the_type() -> None:
    expected = [0, 1_500_000_000]
    floats = pl.Series("t", [0.0, 1.5])
    assert clock_times(floats).tolist() == expected
    for unit in ("ms", "us", "ns"):
        moments = pl.Series("t", [datetime(1970, 1, 1), datetime(1970, 1, 1, 0, 0, 1, 500_000)])
        assert clock_times(moments.cast(pl.Datetime(unit))).tolist() == expected  # type: ignore[arg-type]
    assert clock_times(pl.Series("t", [0, 3])).tolist() == [0, 3_000_000_000]


def test_the_channels_of_a_log_are_known_in_order_without_null() -> None:
    source = lw.replay(pl.DataFrame({"c": ["b", None, "a", "b"]}))
    assert source.channels("c") == ("b", "a")


def test_a_table_is_replayed_without_saying_so() -> None:
    got = lw.stream(pa.table({"ts": np.arange(5)}), time="ts").collect()
    assert got["ts"].to_pylist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_an_arrival_column_must_be_finite(value: float) -> None:
    with pytest.raises(lw.QueryError, match="arrival column 'at' has NaN or infinite values"):
        lw.replay(pl.DataFrame({"at": [0.0, value]}), "at")
