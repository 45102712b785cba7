"""Reads values from outside, written as text or already typed, as values of the declared types.

Times, decimals and floating-point numbers in text are read here, other text by Polars. Typed
values, which come from Parquet files and programs, are read as another type of the same kind:
numbers as numbers, times as times, texts as texts.

Invariant: no value is altered. A value that the declared type does not have becomes null, so that
the reader can report it: 1.9 is no BIGINT, 300 is no TINYINT.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl

from lowwater.stream.element import Chunk

Schema = Mapping[str, pl.DataType]
Unit = Literal["ns", "us", "ms"]

ZONED = r"(Z|:\d\d(\.\d+)?[+-]\d\d(:?\d\d)?)$"
"""Pattern of the end of a written time that has a zone."""


def as_written(schema: Schema) -> dict[str, pl.DataType]:
    """Return the types by which Polars reads CSV; columns that are read here are strings."""
    return {name: pl.String() if _spelled(dtype) else dtype for name, dtype in schema.items()}


def as_json(schema: Schema) -> dict[str, pl.DataType]:
    """Return the types by which Polars reads JSON: long integers for short ones, doubles for all
    floats, and the types for CSV for the others."""
    return {name: _in_json(dtype) for name, dtype in schema.items()}


def _in_json(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Int8 | pl.Int16):
        return pl.Int64()
    if dtype.is_float():
        return pl.Float64()
    return pl.String() if _spelled(dtype) else dtype


def as_declared(schema: Schema, written: Schema) -> list[pl.Expr]:
    """Return the expressions from columns as they are written to the declared ones.

    A value that its type does not have is null.
    """
    return [_value(pl.col(name), dtype, written[name]) for name, dtype in schema.items()]


def is_there(name: str, dtype: pl.DataType, written: pl.DataType) -> pl.Expr:
    """Return the expression that is true where a value is written; an empty text is no number."""
    column = pl.col(name)
    if written != pl.String or not dtype.is_float():
        return column.is_not_null()
    return (column.str.strip_chars() != "").fill_null(False)


def scan_csv(
    source: Path | bytes, types: Schema, header: bool, separator: str, strict: bool = True
) -> pl.LazyFrame:
    """Return the rows of a CSV text; without a header, ``types`` must be all its columns."""
    return pl.scan_csv(
        source,
        separator=separator,
        has_header=header,
        schema_overrides=types if header else None,
        schema=None if header else types,
        infer_schema=False,
        ignore_errors=not strict,
        truncate_ragged_lines=not strict,
    )


def moments(texts: pl.Series, unit: Unit = "us", strict: bool = True) -> pl.Series:
    """Return written times in UTC; a time without a zone is in UTC already."""
    try:
        return texts.str.to_datetime(time_unit=unit, time_zone="UTC")
    except pl.exceptions.PolarsError:  # perhaps some have a zone and some have none
        zoned = texts.str.contains(ZONED)
        by_zone = [pl.when(some).then(texts) for some in (zoned, ~zoned)]
        read = [
            each.str.to_datetime(time_unit=unit, time_zone="UTC", strict=strict) for each in by_zone
        ]
        return pl.select(pl.coalesce(read)).to_series()


def _spelled(dtype: pl.DataType) -> bool:
    return dtype.is_float() or isinstance(dtype, pl.Datetime | pl.Date | pl.Decimal)


def _value(column: pl.Expr, dtype: pl.DataType, written: pl.DataType) -> pl.Expr:
    """Return the value of a written column; a time without a zone is in UTC."""
    if isinstance(dtype, pl.Date):
        return column.str.to_date(strict=False)
    if isinstance(dtype, pl.Datetime):
        return _time(column, dtype)
    if isinstance(dtype, pl.Decimal):
        few = rf"^\s*[+-]?\d*(\.\d{{0,{dtype.scale}}}0*)?\s*$"
        return _if(column.str.contains(few), column.str.strip_chars()).cast(dtype, strict=False)
    if dtype.is_float():
        return _float(column, dtype, written)
    return column.cast(dtype, strict=False)


def _time(column: pl.Expr, dtype: pl.Datetime) -> pl.Expr:
    """Return the time of a written column; null if it has more digits than its unit."""
    read = partial(_moments, unit=dtype.time_unit)
    utc = pl.Datetime(dtype.time_unit, "UTC")
    moment = column.map_batches(read, return_dtype=utc, is_elementwise=True)
    if dtype.time_zone is None:
        return moment.dt.replace_time_zone(None)
    return moment.dt.convert_time_zone(dtype.time_zone)


def _moments(texts: pl.Series, unit: Unit) -> pl.Series:
    digits = _DIGITS[unit]
    longest = texts.str.len_bytes().max()
    if isinstance(longest, int) and longest > len("2024-01-01T00:00:00.") + digits:
        many = texts.str.contains(rf"\.\d{{{digits}}}\d*[1-9]")
        texts = texts.set(many, None) if many.any() else texts
    return moments(texts, unit, strict=False)


_DIGITS = {"ms": 3, "us": 6, "ns": 9}
_FRACTION = re.compile(r"\d\.(\d*[1-9])")


def digits_of(value: str | pl.Datetime) -> int:
    """Return the digits of a second's fraction that a type has, or that a written time needs."""
    if isinstance(value, pl.Datetime):
        return _DIGITS[value.time_unit]
    found = _FRACTION.search(value)
    return len(found[1]) if found else 0


def _float(column: pl.Expr, dtype: pl.DataType, written: pl.DataType) -> pl.Expr:
    """Return the nearest number of the type; null if only infinity or zero is near."""
    number = column
    if written == pl.String:
        number = column.map_batches(_numbers, return_dtype=pl.Float64, is_elementwise=True)
    if dtype == pl.Float64:
        return number
    short = number.cast(pl.Float32, strict=False)
    return _if((short.is_finite() == number.is_finite()) & ((short == 0) == (number == 0)), short)


def _numbers(texts: pl.Series) -> pl.Series:
    texts = texts.str.strip_chars()
    numbers = texts.cast(pl.Float64, strict=False)
    odd = ~numbers.is_finite() | (numbers == 0)
    if not odd.any():
        return numbers
    endless = ~numbers.is_finite() & texts.str.contains(r"\d")
    nothing = (numbers == 0) & texts.str.contains(r"^[^eE]*[1-9]")
    return numbers.set(endless | nothing, None)


def _if(fine: pl.Expr, then: pl.Expr) -> pl.Expr:
    """Return a value where it is fine; null elsewhere."""
    return pl.when(fine).then(then)


def common_type(dtype: pl.DataType) -> pl.DataType:
    """Return the nearest type that every engine has."""
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", "UTC" if dtype.time_zone else None)
    if isinstance(dtype, pl.List):
        return pl.List(common_type(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return pl.Struct({each.name: common_type(each.dtype) for each in dtype.fields})  # type: ignore[arg-type]
    return _PLAIN.get(type(dtype), dtype)


_PLAIN: Mapping[type[pl.DataType], pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
    pl.Null: pl.String(),
}


def type_name(dtype: pl.DataType) -> str:
    """Return a type as pipeline files write it."""
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMPTZ" if dtype.time_zone else "TIMESTAMP"
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if isinstance(dtype, pl.List):
        return f"ARRAY<{type_name(dtype.inner)}>"  # type: ignore[arg-type]
    return _NAMES.get(type(dtype), str(dtype))


_NAMES: Mapping[type[pl.DataType], str] = {
    pl.Boolean: "BOOLEAN",
    pl.Int8: "TINYINT",
    pl.Int16: "SMALLINT",
    pl.Int32: "INT",
    pl.Int64: "BIGINT",
    pl.Float32: "FLOAT",
    pl.Float64: "DOUBLE",
    pl.String: "STRING",
    pl.Binary: "BINARY",
    pl.Date: "DATE",
}


# ---- typed values ------------------------------------------------------------------------------


def same_kind(have: pl.DataType, dtype: pl.DataType) -> bool:
    """Return true if values of one type may be read as the other, because both are of one kind."""
    return have in (dtype, pl.Null()) or _kind(have) == _kind(dtype)


def _kind(dtype: pl.DataType) -> object:
    if dtype.is_numeric():
        return "number"
    if isinstance(dtype, pl.Date | pl.Datetime):
        return "time"
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return "text"
    if isinstance(dtype, pl.List):
        return "list", _kind(dtype.inner)  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return "struct", tuple((each.name, _kind(each.dtype)) for each in dtype.fields)  # type: ignore[arg-type]
    return type(dtype)


def read_as(rows: Chunk, schema: Schema) -> Chunk:
    """Return the columns in the types of the schema; a value its type does not have is null."""
    return rows.select(
        pl.col(name)
        if rows.schema[name] == dtype
        else _as_type(pl.col(name), rows.schema[name], dtype)
        for name, dtype in schema.items()
    )


def _as_type(column: pl.Expr, have: pl.DataType, dtype: pl.DataType) -> pl.Expr:
    value = column.cast(dtype, strict=False)
    if have.is_float() and dtype.is_float():  # the nearest, if it is neither infinite nor zero
        fine = (value.is_finite() == column.is_finite()) & ((value == 0) == (column == 0))
    else:
        fine = value.cast(have, strict=False).eq_missing(column)
    return _if(fine, value)


def first_altered(rows: Chunk, values: Chunk) -> tuple[int, str] | None:
    """Return the first row, from 0, with a value that became null, and a phrase about it."""
    found = []
    for value in values:
        name = value.name
        if value.null_count() > rows[name].null_count():
            at = (value.is_null() & rows[name].is_not_null()).arg_max() or 0
            found.append((at, f"column {name}: {rows[name][at]} is no {type_name(value.dtype)}"))
    return min(found, default=None)
