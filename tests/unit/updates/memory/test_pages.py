"""Pages give back what was put in them, of whatever type, and say what they take."""

from __future__ import annotations

import sys
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_series_equal

from lowwater.updates.memory.pages import PagedRows

NAN = float("nan")
NOON = datetime(2024, 2, 29, 12, tzinfo=UTC)
INNER = pl.Struct({"at": pl.Datetime("ns"), "x": pl.Float32, "e": pl.Enum(["p", "q"])})
VALUES: list[tuple[Any, list[Any]]] = [
    *((kind, [1, 0, 127]) for kind in (pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128)),
    *((kind, [1, 0, 255]) for kind in (pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128)),
    (pl.Int64, [2**63 - 1, -(2**63)]),
    (pl.UInt64, [2**64 - 1]),
    (pl.Int128, [2**126, -(2**126)]),
    *((kind, [0.5, NAN, -0.0, float("inf")]) for kind in (pl.Float16, pl.Float32, pl.Float64)),
    (pl.Boolean, [True, False]),
    (pl.Date, [date(1, 1, 1), date(2024, 2, 29)]),
    *((pl.Datetime(unit), [datetime(1969, 7, 20), NOON]) for unit in ("ms", "us", "ns")),
    (pl.Datetime("ns", "Europe/Zurich"), [NOON]),
    (pl.Duration("ms"), [timedelta(days=-1), timedelta(milliseconds=1)]),
    (pl.Time, [time(23, 59, 59, 999999)]),
    (pl.String, ["", "a", "äöü", "a longer text that is not kept in place"]),
    (pl.Binary, [b"", b"\x00", b"\xff" * 20]),
    (pl.Categorical, ["one", "", "two"]),
    (pl.Enum(["p", "q", ""]), ["q", "p", ""]),
    (pl.Enum([str(each) for each in range(300)]), ["299", "0"]),
    (pl.Decimal(38, 3), [Decimal("12345678901234567890123456789012345.678"), Decimal("-0.001")]),
    (pl.Null, [None]),
    (pl.List(pl.Int64), [[1, None], []]),
    (pl.List(pl.Null), [[None], []]),
    (pl.List(pl.Datetime("ns", "Asia/Tokyo")), [[NOON, None]]),
    (pl.List(pl.List(pl.Decimal(10, 2))), [[[Decimal("1.25")], None, []]]),
    (pl.List(pl.Categorical), [["x", None, ""]]),
    (pl.List(pl.Binary), [[b"\xff", b""]]),
    (pl.Array(pl.Time, 2), [[time(1), None]]),
    (pl.Array(pl.Float64, (1, 2)), [[[NAN, -0.0]]]),
    (INNER, [{"at": datetime(2024, 1, 1), "x": NAN, "e": "q"}, {"at": None, "x": None, "e": None}]),
    (pl.List(INNER), [[{"at": None, "x": 0.1, "e": "p"}, None]]),
    (pl.Struct([]), [{}]),
    (pl.Map(pl.String, pl.Date), [{"a": date(2024, 1, 1), "b": None}, {}]),
]


def paged(schema: pl.Schema, page_rows: int) -> PagedRows:
    """A memory with one page, whose locations are its slots."""
    memory = PagedRows(schema, page_rows)
    assert memory.alloc() == 0
    return memory


@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize(("dtype", "values"), VALUES, ids=lambda each: str(each)[:40])
def test_every_type_comes_back_as_it_was(dtype: Any, values: list[Any], nulls: bool) -> None:
    column = pl.Series("x", [None, *values, None] if nulls else values, dtype=dtype)
    memory = paged(pl.Schema({"x": column.dtype}), 16)
    slots = np.random.default_rng(1).permutation(16)[: len(column)]
    memory.write(slots, column.to_frame())
    found = memory.read(slots).to_series()
    assert_series_equal(found, column, check_exact=True)
    assert found.dtype == column.dtype
    signs = (np.signbit(each.to_numpy()) for each in (found, column))
    assert not column.dtype.is_float() or nulls or np.array_equal(*signs)


def test_times_finer_than_python_has_come_back() -> None:
    times = pl.Series([[1, 2_000_000_001]], dtype=pl.List(pl.Int64)).cast(
        pl.List(pl.Datetime("ns"))
    )
    memory = paged(pl.Schema({"x": times.dtype}), 4)
    memory.write(np.array([2]), pl.DataFrame({"x": times}))
    assert memory.read(np.array([2]))["x"].explode().to_physical().to_list() == [1, 2_000_000_001]


SCHEMA = pl.Schema({"n": pl.Int32, "s": pl.String})


def rows(*values: tuple[int | None, str | None]) -> pl.DataFrame:
    return pl.DataFrame(list(values), schema=SCHEMA, orient="row")


def test_a_page_takes_its_arrays_its_masks_and_its_objects() -> None:
    memory = paged(SCHEMA, 10)
    (page,) = memory._pages.values()
    bare = 10 * (4 + 8)
    assert page.bytes == memory.bytes == bare
    memory.write(np.array([3, 5]), rows((1, "abc"), (2, "")))
    assert page.bytes == bare + sys.getsizeof(b"abc")
    memory.write(np.array([5]), rows((None, "ä")))
    assert page.bytes == bare + sys.getsizeof(b"abc") + sys.getsizeof("ä".encode()) + 10
    memory.clear(np.array([3]))
    assert page.bytes == bare + sys.getsizeof("ä".encode()) + 10
    memory.write(np.array([5]), rows((1, None)))
    assert page.bytes == memory.bytes == bare


def test_cells_that_were_null_are_not_null_after_a_value() -> None:
    memory = paged(SCHEMA, 4)
    memory.write(np.array([0, 1]), rows((None, None), (None, "b")))
    memory.clear(np.array([1]))
    memory.write(np.array([1]), rows((7, "c")))
    assert memory.read(np.array([1, 0, 1])).rows() == [(7, "c"), (None, None), (7, "c")]


def test_a_new_page_has_the_least_number_that_is_free() -> None:
    memory = PagedRows(SCHEMA, 10)
    assert [memory.alloc() for _ in range(3)] == [0, 1, 2]
    bare = memory.bytes // 3
    memory.write(np.arange(10), rows(*[(1, "x" * 100)] * 10))
    assert memory.bytes > 3 * bare
    memory.free(1)
    memory.free(0)
    assert (memory.pages, memory.bytes) == (1, bare)
    assert [memory.alloc() for _ in range(3)] == [0, 1, 3]
