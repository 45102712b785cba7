"""How columns count time."""

from __future__ import annotations

from datetime import UTC, datetime

import polars as pl
import pytest

from lowwater.errors import OptionError, QueryError
from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.time_domain import ROWS, TimeDomain

US = TimeDomain.of(pl.Datetime("us"))


@pytest.mark.parametrize(("unit", "ticks"), [("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_datetimes_count_in_their_own_unit(unit: str, ticks: int) -> None:
    domain = TimeDomain.of(pl.Datetime(unit))  # type: ignore[arg-type]
    assert domain.ticks_per_second == ticks
    assert domain.dtype == pl.Datetime(unit)  # type: ignore[arg-type]


def test_time_zones_are_kept() -> None:
    assert TimeDomain.of(pl.Datetime("us", "UTC")).dtype == pl.Datetime("us", "UTC")


@pytest.mark.parametrize("dtype", [pl.Date(), pl.Float64(), pl.Float32()])
def test_dates_and_float_seconds_become_microseconds(dtype: pl.DataType) -> None:
    assert TimeDomain.of(dtype) == US


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
@pytest.mark.parametrize("dtype", [pl.Int64(), pl.Int32(), pl.UInt16()])
def test_integers_count_in_the_unit_named(dtype: pl.DataType, unit: str) -> None:
    domain = TimeDomain.of(dtype, unit)
    assert domain.dtype == pl.Int64
    assert domain.ticks("1 second") == {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit]


def test_an_unknown_unit_is_refused_with_the_known_ones() -> None:
    with pytest.raises(OptionError, match="unit must be one of s, ms, us, ns, not 'min'"):
        TimeDomain.of(pl.Int64(), "min")


@pytest.mark.parametrize(
    "dtype", [pl.String(), pl.Boolean(), pl.Duration("us"), pl.Time(), pl.List(pl.Int64)]
)
def test_other_types_are_no_time(dtype: pl.DataType) -> None:
    with pytest.raises(QueryError, match=r"time column 'x' has type .*; a time is a Datetime"):
        TimeDomain.of(dtype, what="time column 'x'")


def test_lengths_finer_than_the_column_are_refused() -> None:
    with pytest.raises(OptionError, match="a window of 500 ms is finer than the time column"):
        TimeDomain.of(pl.Int64()).ticks("500 ms", "a window")
    with pytest.raises(OptionError, match="counts in 1 ms"):
        TimeDomain.of(pl.Datetime("ms")).ticks("1500 us")
    assert TimeDomain.of(pl.Datetime("ms")).ticks("1500 ms") == 1500


def test_ticks_and_values_are_inverse() -> None:
    moments = pl.Series("t", [datetime(1969, 12, 31, 23), datetime(2024, 2, 29)])
    for unit in ("ms", "us", "ns"):
        domain = TimeDomain.of(pl.Datetime(unit))  # type: ignore[arg-type]
        column = moments.cast(domain.dtype)
        ticks = domain.ticks_of(column).alias("t")
        back = pl.DataFrame({"t": ticks}).select(domain.from_ticks(pl.col("t")))["t"]
        assert back.equals(column)
        asked = pl.DataFrame({"t": column}).select(domain.to_ticks(pl.col("t")))["t"]
        assert asked.equals(ticks)


def test_show_gives_what_a_person_reads() -> None:
    assert US.show(0) == datetime(1970, 1, 1)
    assert TimeDomain.of(pl.Datetime("ms", "UTC")).show(-1000) == datetime(
        1969, 12, 31, 23, 59, 59, tzinfo=UTC
    )
    assert TimeDomain.of(pl.Int64()).show(42) == 42


def test_marks_that_say_nothing_show_as_none() -> None:
    for domain in (US, TimeDomain.of(pl.Int64()), TimeDomain.of(pl.Datetime("ms"))):
        assert domain.show(BEGINNING) is None
        assert domain.show(END_OF_TIME) is None


def test_valid_times_are_the_years_1_to_9999() -> None:
    low, high = US.valid
    assert US.show(low) == datetime(1, 1, 1)
    assert US.show(high - 1) == datetime(9999, 12, 31, 23, 59, 59, 999999)


def test_row_numbers_are_a_domain_of_their_own() -> None:
    assert ROWS.counts_rows
    assert not US.counts_rows
    assert ROWS.spell(500) == "500 rows"
    assert US.spell(60_000_000) == "1 minute"
