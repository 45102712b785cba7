"""Values that are written out in text files and lines: times are read here, the rest by Polars."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

import polars as pl

Schema = Mapping[str, pl.DataType]

ZONED = r"(Z|:\d\d(\.\d+)?[+-]\d\d(:?\d\d)?)$"
"""How a time ends that says its zone."""


def as_written(schema: Schema) -> dict[str, pl.DataType]:
    """The columns as they stand in a text: times are strings."""
    return {name: pl.String() if _spelled(dtype) else dtype for name, dtype in schema.items()}


def as_json(schema: Schema) -> dict[str, pl.DataType]:
    """The same in JSON, where Polars reads no short numbers."""
    short = (pl.Int8, pl.Int16)
    written = as_written(schema).items()
    return {name: pl.Int64() if isinstance(dtype, short) else dtype for name, dtype in written}


def as_declared(schema: Schema, strict: bool = True) -> list[pl.Expr]:
    """From the columns as they are written to those that were declared.

    What is no value of its type is an error, or null if not ``strict``.
    """
    return [_read(pl.col(name), dtype, strict) for name, dtype in schema.items()]


def scan_csv(
    source: Path | bytes, types: Schema, header: bool, separator: str, strict: bool = True
) -> pl.LazyFrame:
    """The rows of a CSV text; without a header, ``types`` are all its columns."""
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


def headed(lines: bytes, schema: Schema) -> bytes:
    """CSV rows under the names of their columns."""
    return pl.DataFrame(schema=schema).write_csv().encode() + lines


def read_objects(text: bytes, schema: Schema) -> pl.DataFrame:
    """JSON objects, one a line, as rows; what an object leaves out is null."""
    return pl.read_ndjson(text, schema=as_json(schema)).select(as_declared(schema))


def moments(
    texts: pl.Series, unit: Literal["ns", "us", "ms"] = "us", strict: bool = True
) -> pl.Series:
    """Times in UTC; those that are written without a zone are UTC already."""
    try:
        return texts.str.to_datetime(time_unit=unit, time_zone="UTC")
    except pl.exceptions.PolarsError:  # perhaps some have a zone and some have none
        zoned = texts.str.contains(ZONED)
        alike = [pl.when(some).then(texts) for some in (zoned, ~zoned)]
        read = [
            each.str.to_datetime(time_unit=unit, time_zone="UTC", strict=strict) for each in alike
        ]
        return pl.select(pl.coalesce(read)).to_series()


def _spelled(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime | pl.Date | pl.Decimal)


def _read(column: pl.Expr, dtype: pl.DataType, strict: bool) -> pl.Expr:
    """A value; a time that is written without a zone is UTC, as is one declared without."""
    if isinstance(dtype, pl.Date):
        return column.str.to_date(strict=strict)
    if isinstance(dtype, pl.Datetime):
        read = partial(moments, unit=dtype.time_unit, strict=strict)
        utc = pl.Datetime(dtype.time_unit, "UTC")
        moment = column.map_batches(read, return_dtype=utc, is_elementwise=True)
        if dtype.time_zone is None:
            return moment.dt.replace_time_zone(None)
        return moment.dt.convert_time_zone(dtype.time_zone)
    return column.cast(dtype, strict=strict)


def plain(dtype: pl.DataType) -> pl.DataType:
    """The nearest type that every engine has."""
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", "UTC" if dtype.time_zone else None)
    if isinstance(dtype, pl.List):
        return pl.List(plain(dtype.inner))  # type: ignore[arg-type]
    if isinstance(dtype, pl.Struct):
        return pl.Struct({each.name: plain(each.dtype) for each in dtype.fields})  # type: ignore[arg-type]
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
    """A type as pipeline files write it."""
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
