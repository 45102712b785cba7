"""Column types are converted on the way into Spark and out of it."""

from __future__ import annotations

from collections.abc import Mapping

import polars as pl
import pyarrow as pa

from lowwater.errors import QueryError
from lowwater.stream.element import Chunk

_PLAIN: Mapping[type[pl.DataType], tuple[str, pl.DataType]] = {
    pl.Boolean: ("boolean", pl.Boolean()),
    pl.Int8: ("tinyint", pl.Int8()),
    pl.Int16: ("smallint", pl.Int16()),
    pl.Int32: ("int", pl.Int32()),
    pl.Int64: ("bigint", pl.Int64()),
    pl.UInt8: ("smallint", pl.Int16()),
    pl.UInt16: ("int", pl.Int32()),
    pl.UInt32: ("bigint", pl.Int64()),
    pl.UInt64: ("decimal(20,0)", pl.Decimal(20, 0)),
    pl.Float32: ("float", pl.Float32()),
    pl.Float64: ("double", pl.Float64()),
    pl.String: ("string", pl.String()),
    pl.Categorical: ("string", pl.String()),
    pl.Enum: ("string", pl.String()),
    pl.Binary: ("binary", pl.Binary()),
    pl.Date: ("date", pl.Date()),
    pl.Duration: ("interval day to second", pl.Duration("us")),
    pl.Null: ("void", pl.Null()),
}


def quoted(name: str) -> str:
    """Return the name of a column as Spark SQL reads it, whatever is in it."""
    return "`" + name.replace("`", "``") + "`"


def spark_type(name: str, dtype: pl.DataType) -> tuple[str, pl.DataType]:
    """Return the Spark type of a result column, and the type in which Spark takes its values."""
    if isinstance(dtype, pl.Datetime):
        return (
            ("timestamp", pl.Datetime("us", "UTC"))
            if dtype.time_zone
            else ("timestamp_ntz", pl.Datetime("us"))
        )
    if isinstance(dtype, pl.Decimal):
        return f"decimal({dtype.precision or 38},{dtype.scale})", dtype
    if isinstance(dtype, pl.List):
        inner = spark_type(name, dtype.inner)  # type: ignore[arg-type]
        return f"array<{inner[0]}>", pl.List(inner[1])
    if isinstance(dtype, pl.Struct):
        fields = [(field.name, *spark_type(name, field.dtype)) for field in dtype.fields]  # type: ignore[arg-type]
        ddl = ", ".join(f"`{each}`: {kind}" for each, kind, _ in fields)
        return f"struct<{ddl}>", pl.Struct({each: kind for each, _, kind in fields})
    found = _PLAIN.get(type(dtype))
    if found is None:
        raise QueryError(f"column {name!r} has type {dtype}, which Spark does not have; cast it")
    return found


def spark_ddl(schema: Mapping[str, pl.DataType]) -> str:
    """Return the schema of a result as Spark reads it."""
    return ", ".join(
        f"{quoted(name)} {spark_type(name, dtype)[0]}" for name, dtype in schema.items()
    )


def handed_over(chunk: Chunk) -> Chunk:
    """Return rows in the types that Spark takes."""
    changes = []
    for name, dtype in chunk.schema.items():
        taken = spark_type(name, dtype)[1]
        if taken == dtype:
            continue
        column = pl.col(name)
        if isinstance(dtype, pl.Datetime) and dtype.time_zone not in (None, "UTC"):
            column = column.dt.convert_time_zone("UTC")
        changes.append(column.cast(taken))
    return chunk.with_columns(changes) if changes else chunk


def spark_batches(chunk: Chunk) -> list[pa.RecordBatch]:
    """Return rows in the types and the layout that Spark takes."""
    table = handed_over(chunk).to_arrow()
    schema = pa.schema([field.with_type(_in_spark(field.type)) for field in table.schema])
    batches: list[pa.RecordBatch] = table.cast(schema).to_batches()
    return batches


def _in_spark(kind: pa.DataType) -> pa.DataType:
    """Return the layout of a type that Spark reads."""
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_large_binary(kind) or pa.types.is_binary_view(kind):
        return pa.binary()
    if pa.types.is_large_list(kind) or pa.types.is_list(kind):
        return pa.list_(_in_spark(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([each.with_type(_in_spark(each.type)) for each in kind])
    return kind


def taken_back(chunk: Chunk, schema: Mapping[str, pl.DataType]) -> Chunk:
    """Return rows from Spark in the types they had."""
    columns = []
    for name, dtype in schema.items():
        column = pl.col(name)
        if isinstance(dtype, pl.Datetime) and dtype.time_zone:
            column = column.dt.convert_time_zone(dtype.time_zone)
        columns.append(column.cast(dtype))
    return chunk.select(columns)
