"""Typed values as other types, where none is altered: what Parquet files and programs hand over.

A type is read as another of its kind: numbers as numbers, times as times, texts as texts. A value
that the other type does not have is not taken: 1.9 is no BIGINT, 300 is no TINYINT.
"""

from __future__ import annotations

import polars as pl

from lowwater.sources.text import Schema, type_name
from lowwater.stream.element import Chunk


def alike(have: pl.DataType, want: pl.DataType) -> bool:
    """Whether values of one type may be read as another: both are of one kind."""
    return have in (want, pl.Null()) or _kind(have) == _kind(want)


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
    """The columns in the types of the schema; what is no value of its type is null."""
    return rows.select(
        pl.col(name)
        if rows.schema[name] == dtype
        else _taken(pl.col(name), rows.schema[name], dtype)
        for name, dtype in schema.items()
    )


def _taken(column: pl.Expr, have: pl.DataType, want: pl.DataType) -> pl.Expr:
    value = column.cast(want, strict=False)
    if have.is_float() and want.is_float():  # the nearest, if it is neither infinite nor zero
        fine = (value.is_finite() == column.is_finite()) & ((value == 0) == (column == 0))
    else:
        fine = value.cast(have, strict=False).eq_missing(column)
    return pl.when(fine).then(value)


def altered(rows: Chunk, values: Chunk) -> tuple[int, str] | None:
    """The first row, counted from 0, with a value that was not taken, and what to say of it."""
    found = []
    for value in values:
        name = value.name
        if value.null_count() > rows[name].null_count():
            at = (value.is_null() & rows[name].is_not_null()).arg_max() or 0
            found.append((at, f"column {name}: {rows[name][at]} is no {type_name(value.dtype)}"))
    return min(found, default=None)
