"""No value is altered on its way in: every declared type, every kind of file, on both engines.

What a value is, Python's own numbers and times say; a type has it, or the record is bad.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from lowwater.engines.spark.driver.inputs import FileRows, LineRows
from lowwater.sources.files import Files
from lowwater.sources.lines import parse_lines

BAD = "bad"
BITS = {pl.Int8(): 8, pl.Int16(): 16, pl.Int32(): 32, pl.Int64(): 64}
FLOATS = {pl.Float32(): "f", pl.Float64(): "d"}
DECIMAL = pl.Decimal(6, 2)
TIMES = [pl.Datetime(unit, zone) for unit in ("ms", "us", "ns") for zone in (None, "UTC")]
TYPES = [*BITS, *FLOATS, DECIMAL, pl.Boolean(), pl.String(), pl.Date(), *TIMES]
NUMBERS = [
    *("0", "1", "-1", "127", "128", "300", "-129", "32768", "2147483648", "1.9", "1.0", "0.1"),
    *("9223372036854775807", "9223372036854775808", "9007199254740993", "9999.99", "10000"),
    *("1.234", "1.230", "1e300", "1e-60", "99999999999999999999"),
]
WORDS = [
    *("true", "false", "x", "one", "2024-02-29", "2023-02-29", "2024-01-02T03:04:05"),
    *("2024-01-02T03:04:05.123", "2024-01-02T03:04:05.123456", "2024-01-02T03:04:05.1234567"),
    *("2024-01-02T03:04:05.1234560", "2024-01-02T03:04:05+01:00", "2024-13-01"),
]
DIGITS = {"ms": 3, "us": 6, "ns": 9}


def as_integer(number: Decimal, dtype: pl.DataType) -> Any:
    fits = number == int(number) and -(2 ** (BITS[dtype] - 1)) <= number < 2 ** (BITS[dtype] - 1)
    return int(number) if fits else BAD


def as_float(number: float, dtype: pl.DataType) -> Any:
    """The nearest, unless that is infinity or, of something, nothing."""
    try:
        nearest = struct.unpack(FLOATS[dtype], struct.pack(FLOATS[dtype], number))[0]
    except OverflowError:
        return BAD
    return BAD if math.isinf(nearest) or (nearest == 0) != (number == 0) else nearest


def as_decimal(number: Decimal) -> Any:
    return number if abs(number) < 10_000 and number == round(number, 2) else BAD


def as_time(text: str, dtype: pl.Datetime) -> Any:
    """Python tells times to the microsecond: what is beyond is looked at as digits."""
    whole, _, fraction = text.partition(".")
    try:
        when = datetime.fromisoformat(whole)
    except ValueError:
        return BAD
    digits = fraction.rstrip("0")
    if len(digits) > DIGITS[dtype.time_unit]:
        return BAD
    when = when.replace(tzinfo=None) - (when.utcoffset() or timedelta())
    return when, int(digits.ljust(9, "0")) if digits else 0


def expected(text: str, dtype: pl.DataType, kind: str) -> Any:
    """What a text is as a value; ``kind`` is how it is written: csv, a JSON text or number."""
    if dtype == pl.String:
        return text
    if kind == "text" and (dtype.is_numeric() or dtype == pl.Boolean) and dtype != DECIMAL:
        return BAD  # a JSON text is no number
    if dtype == pl.Boolean:
        return {"true": True, "false": False}.get(text, BAD)
    if dtype.is_numeric():
        if text not in NUMBERS:
            return BAD
        if dtype in BITS:
            return as_integer(Decimal(text), dtype) if text.lstrip("-").isdigit() else BAD
        if dtype in FLOATS:
            return as_float(float(text), dtype)
        return as_decimal(Decimal(text)) if "e" not in text else BAD
    if kind == "number":
        return BAD
    if isinstance(dtype, pl.Datetime):
        return as_time(text, dtype)
    try:
        return date.fromisoformat(text)
    except ValueError:
        return BAD


def shown(found: pl.Series) -> list[Any]:
    """Values that were read, to be set beside what was expected."""
    if not isinstance(found.dtype, pl.Datetime):
        return found.to_list()
    ticks = found.dt.cast_time_unit("ns").to_physical()
    epoch = datetime(1970, 1, 1)
    return [(epoch + timedelta(seconds=each // 10**9), each % 10**9) for each in ticks]


Reader = Callable[[str, Path, dict[str, Any]], pl.Series]


def by_this_engine(format_: str, path: Path, schema: dict[str, Any]) -> pl.Series:
    if format_ == "socket":
        return parse_lines(path.read_bytes().splitlines(), schema)["v"]
    return pl.concat(Files(format_, path, schema).read(path))["v"]


def by_spark(format_: str, path: Path, schema: dict[str, Any]) -> pl.Series:
    """What runs in a worker of Spark, here."""
    rows: Any
    if format_ == "socket":
        rows, given = LineRows(schema), {"value": path.read_text().splitlines()}
    else:
        rows, given = FileRows(Files(format_, path, schema)), {"path": [f"file:{path}"]}
    return pl.DataFrame(pa.Table.from_batches(rows([pa.RecordBatch.from_pydict(given)])))["v"]


WAYS = {
    ("csv", "csv"): "{},1",
    ("socket", "csv"): "{},1",
    ("json", "text"): '{{"v": "{}", "w": 1}}',
    ("json", "number"): '{{"v": {}, "w": 1}}',
    ("socket", "text"): '{{"v": "{}", "w": 1}}',
}
"""The formats, how a value is written in them, and a line of them."""


def values(dtype: pl.DataType, way: str) -> list[tuple[str, Any]]:
    """Values as they are written, with what they are: of what is far from the type, a few."""
    if way == "number" and dtype == pl.String:
        return []  # a number's text is that of its value
    written = NUMBERS + WORDS
    if way == "number":
        written = [*NUMBERS, "true", "false"]
    elif dtype.is_temporal():
        written = [*NUMBERS[:3], *WORDS]
    elif dtype.is_numeric():
        written = [*NUMBERS, *WORDS[:5]]
    return [(text, expected(text, dtype, way)) for text in written]


@pytest.mark.parametrize(("format_", "way"), WAYS)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_a_written_value_is_taken_as_it_is_or_not_at_all(
    tmp_path: Path, dtype: pl.DataType, format_: str, way: str
) -> None:
    schema = {"v": dtype, "w": pl.Int64()}
    path, head = tmp_path / "a", "v,w\n" if format_ == "csv" else ""
    line = WAYS[format_, way]
    judged = values(dtype, way)
    good = [(text, value) for text, value in judged if value is not BAD]
    if good:
        path.write_text(head + "".join(f"{line.format(text)}\n" for text, _ in good))
        assert shown(by_this_engine(format_, path, schema)) == [value for _, value in good]
        if dtype not in NANO:
            assert shown(by_spark(format_, path, schema)) == [value for _, value in good]
    taken = []
    for text in (text for text, value in judged if value is BAD):
        path.write_text(f"{head}{line.format(text)}\n")
        try:
            taken.append((text, by_this_engine(format_, path, schema)[0]))
        except lw.BadInput as error:
            said = str(error)
    assert not taken
    if len(good) < len(judged):
        with pytest.raises(Exception, match="v") as caught:
            by_spark(format_, path, schema)
        assert said in str(caught.value)  # what leaves a worker carries the error in its text


NANO = [pl.Datetime("ns"), pl.Datetime("ns", "UTC")]
"""Spark has no times this fine; they are cut to what it has where they are handed over."""


TYPED: dict[pl.DataType, list[Any]] = {
    pl.Int64(): [0, 1, -1, 127, 128, 300, 2**31, 2**53 + 1, -(2**63), 2**63 - 1],
    pl.Int8(): [0, -128, 127],
    pl.UInt64(): [0, 1, 2**63, 2**64 - 1],
    pl.Float64(): [0.0, 1.0, 1.9, -0.5, 1e300, 1e-60, 2.0**53, math.inf, 300.0],
    pl.Float32(): [0.0, 1.0, 1.5, 2.0**40],
    pl.Decimal(20, 3): [Decimal("1.900"), Decimal("1.230"), Decimal("1.234"), Decimal(300)],
    pl.Datetime("ns"): [datetime(2024, 1, 2, 3, 4, 5, 123456), datetime(2024, 1, 2)],
    pl.Date(): [date(2024, 1, 2)],
    pl.String(): ["x", "1", ""],
    pl.Boolean(): [True, False],
    pl.Binary(): [b"x"],
}
KINDS = [(pl.Date, pl.Datetime), (pl.String,), (pl.Boolean,), (pl.Binary,)]
ALL = [*TYPES, pl.Binary()]


def kind(dtype: pl.DataType) -> int:
    found = [at for at, types in enumerate(KINDS) if isinstance(dtype, types)]
    return found[0] if found else -1


def becomes(value: Any, have: pl.DataType, want: pl.DataType) -> Any:
    """What a value of a Parquet file is in another type of its kind."""
    if kind(have) >= 0 or isinstance(value, bool):
        if isinstance(want, pl.Datetime):
            moment = value if isinstance(value, datetime) else datetime(*value.timetuple()[:3])
            fraction = moment.microsecond
            fits = fraction % 10 ** (6 - min(6, DIGITS[want.time_unit])) == 0
            return (moment.replace(microsecond=0), fraction * 1000) if fits else BAD
        if want == pl.Date and isinstance(value, datetime):
            return value.date() if value == datetime(*value.timetuple()[:3]) else BAD
        return value
    if want in FLOATS:
        if isinstance(value, float):
            return value if math.isinf(value) else as_float(value, want)
        nearest = struct.unpack(FLOATS[want], struct.pack(FLOATS[want], float(value)))[0]
        return nearest if have == pl.Decimal(20, 3) or Decimal(nearest) == value else BAD
    if isinstance(value, float) and not math.isfinite(value):
        return BAD
    exact = Decimal(repr(value)) if want == DECIMAL and isinstance(value, float) else Decimal(value)
    return as_integer(exact, want) if want in BITS else as_decimal(exact)


@pytest.mark.parametrize("engine", [by_this_engine, by_spark])
@pytest.mark.parametrize("want", ALL, ids=str)
def test_a_value_of_a_parquet_file_is_taken_as_it_is_or_not_at_all(
    tmp_path: Path, engine: Reader, want: pl.DataType
) -> None:
    path = tmp_path / "a.parquet"
    for have, given in TYPED.items():
        same = kind(have) == kind(want)
        judged = [(value, becomes(value, have, want) if same else BAD) for value in given]
        good = [(value, meant) for value, meant in judged if meant is not BAD]
        if good:
            column = pl.Series("v", [value for value, _ in good], dtype=have)
            column.to_frame().write_parquet(path)
            if engine is not by_spark or want not in NANO:
                found = shown(engine("parquet", path, {"v": want}))
                assert found == [meant for _, meant in good], have
        for value in (value for value, meant in judged if meant is BAD):
            pl.Series("v", [value], dtype=have).to_frame().write_parquet(path)
            with pytest.raises(Exception, match=r"a\.parquet"):
                engine("parquet", path, {"v": want})


def test_nanoseconds_of_a_parquet_file_are_not_cut(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pl.DataFrame({"v": pl.Series([1_000, 1_001]).cast(pl.Datetime("ns"))}).write_parquet(path)
    with pytest.raises(lw.BadInput, match=r"row 2, column v: .* is no TIMESTAMP"):
        by_this_engine("parquet", path, {"v": pl.Datetime("us")})
