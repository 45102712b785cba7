"""Rows of every type come back from bytes as they were, whoever wrote and reads them."""

from __future__ import annotations

from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from unittest import mock

import polars as pl
import pyarrow as pa
import pytest

from lowwater.engines.spark.wire import message
from lowwater.engines.spark.wire.message import packed, unpacked

COLUMNS = {
    "text": ["a", None, "a longer text that is not kept in place"],
    "bytes": [b"x", None, b""],
    "nothing": pl.Series([None] * 3, dtype=pl.Null),
    "numbers": [[1], [], None],
    "record": [{"a": 1, "b": "x"}, {"a": None, "b": None}, {"a": 2, "b": ""}],
    "money": pl.Series([Decimal("1.50"), None, Decimal("-2.00")], dtype=pl.Decimal(10, 2)),
    "day": [date(1960, 1, 1), None, date(2020, 2, 29)],
    "hour": [time(1), None, time(23, 59)],
    "span": [timedelta(days=-1), None, timedelta(microseconds=1)],
    "at": [datetime(2020, 1, 1, tzinfo=UTC), None, datetime(1960, 1, 1, tzinfo=UTC)],
    "yes": [True, None, False],
    "byte": pl.Series([1, None, -1], dtype=pl.Int8),
    "real": [0.5, None, float("inf")],
}
BOTH = pytest.mark.parametrize("large", [0, 10**9], ids=["arrow", "polars"])


@BOTH
@pytest.mark.parametrize("compressed", [False, True])
@pytest.mark.parametrize("height", [0, 1, 3])
def test_rows_come_back(large: int, compressed: bool, height: int):
    rows = pl.DataFrame(COLUMNS).head(height)
    with mock.patch.object(message, "LARGE", large):
        body = packed(rows, compressed)
    for reader in (0, 10**9):
        with mock.patch.object(message, "LARGE", reader):
            for given in (body, pa.py_buffer(body)):
                again = unpacked(given)
                assert again.schema == rows.schema
                assert again.equals(rows)


@BOTH
def test_rows_of_several_chunks_come_back_as_one(large: int):
    rows = pl.concat([pl.DataFrame(COLUMNS)] * 3, rechunk=False)
    with mock.patch.object(message, "LARGE", large):
        assert unpacked(packed(rows)).equals(rows)
