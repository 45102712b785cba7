"""Sources that Spark reads become streaming DataFrames with the columns that a stream declares.

Spark lists the files and receives the lines; the readers of the embedded engine parse them in
Spark's workers, so that both engines read them alike.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from lowwater.engines.spark.wire.errors import carrying, translate
from lowwater.engines.spark.wire.types import quoted, spark_batches, spark_ddl, spark_type
from lowwater.engines.spark.worker.task import begin_task
from lowwater.errors import BadInput, LowwaterError, QueryError, unknown_name
from lowwater.plan.physical.operator import Operator, PhysicalPlan, SourceOperator
from lowwater.sources.files import Files
from lowwater.sources.lines import Lines, parse_lines
from lowwater.sources.spark import SparkFormat, SparkFrame

Schema = Mapping[str, pl.DataType]


def with_dataframes(plan: PhysicalPlan, spark: SparkSession) -> PhysicalPlan:
    """Return the plan with a streaming DataFrame for every source that Spark reads itself."""
    return plan.with_operators([_with_dataframe(each, spark) for each in plan.operators])


def _with_dataframe(operator: Operator, spark: SparkSession) -> Operator:
    if not isinstance(operator, SourceOperator):
        return operator
    try:
        frame = _dataframe(spark, operator.source)
    except LowwaterError:
        raise
    except Exception as error:
        raise translate(error) from None
    if frame is None:
        return operator
    source = SparkFrame(frame, operator.source.origin)
    return replace(operator, node=replace(operator.node, source=source))


def _dataframe(spark: SparkSession, source: object) -> DataFrame | None:
    if isinstance(source, Files):
        return _files(spark, source)
    if isinstance(source, Lines):
        return _lines(spark, source)
    return _external(spark, source) if isinstance(source, SparkFormat) else None


def external_columns(
    spark: SparkSession, format_: str, path: str, options: Mapping[str, str]
) -> Schema:
    """Return the columns that a format of Spark's declares itself."""
    try:
        return SparkFrame(_load(spark.readStream.format(format_).options(**options), path)).schema
    except LowwaterError:
        raise
    except Exception as error:
        message = str(translate(error)).rstrip(".")
        raise QueryError(f"{message}. Declaring the stream's columns may help") from None


# ---- files -------------------------------------------------------------------------------------


def _files(spark: SparkSession, source: Files) -> DataFrame:
    """Return the rows of files that Spark lists and the reader of the embedded engine parses."""
    source.check()
    if source.format == "json":
        warn_of_missing(source)
    reader = spark.readStream.format("binaryFile").option("recursiveFileLookup", True)
    files = reader.schema(LISTED).load(str(Path(source.path).absolute())).select("path")
    return files.mapInArrow(FileRows(source), spark_ddl(source.schema))


FILES_LOOKED_AT = 100
"""Number of files that are searched for missing columns."""
LISTED = "path string, modificationTime timestamp, length bigint, content binary"
"""The columns in which Spark lists files; the content is not read where it is not selected."""


def warn_of_missing(source: Files) -> None:
    """Warn of declared columns that no object in the files has: workers cannot warn the user.

    A file that cannot be read is passed over; the run fails on it.
    """
    missing = source.missing_columns()
    for path in source.listed()[:FILES_LOOKED_AT]:
        with suppress(BadInput):
            source.begin(path, missing)
    missing.warn()


class FileRows:
    """Reads files by their names, on a worker."""

    def __init__(self, files: Files):
        self._files = files

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of the files named; Spark calls this once a partition and batch."""
        begin_task()
        with carrying():
            for batch in batches:
                for path in batch.column("path").to_pylist():
                    for rows in self._files.read_once(Path(path.removeprefix("file:"))):
                        yield from spark_batches(rows)


class LineRows:
    """Reads lines, on a worker."""

    def __init__(self, schema: Schema):
        self._schema = dict(schema)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the rows of lines; Spark calls this once a partition and batch."""
        begin_task()
        with carrying():
            for batch in batches:
                lines = [line.strip().encode() for line in batch.column("value").to_pylist()]
                some = [line for line in lines if line]
                if some:
                    yield from spark_batches(parse_lines(some, self._schema))


# ---- lines and other places --------------------------------------------------------------------


def _lines(spark: SparkSession, source: Lines) -> DataFrame:
    reader = spark.readStream.format("socket").option("host", source.host)
    lines = reader.option("port", source.port).load()
    return lines.mapInArrow(LineRows(source.schema), spark_ddl(source.schema))


def _columns(schema: Schema, read: Schema) -> list[str]:
    return [
        f"{_converted(quoted(name), read[name], dtype, name)} AS {quoted(name)}"
        for name, dtype in schema.items()
    ]


def _converted(column: str, have: pl.DataType, to: pl.DataType, name: str) -> str:
    """Return SQL from one type to another; a time without a zone is UTC, whatever the session's
    zone is."""
    if have == to:
        return column
    if isinstance(to, pl.Datetime):
        if isinstance(have, pl.String):
            zoned = f"rtrim({column}) RLIKE '(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$'"
            text = f"if({zoned}, {column}, concat({column}, 'Z'))"
            moment = f"CAST({_full(text)} AS TIMESTAMP)"
            return moment if to.time_zone else _unzoned(moment)
        if isinstance(have, pl.Datetime):
            if have.time_zone and not to.time_zone:
                return _unzoned(column)
            if to.time_zone and not have.time_zone:
                return f"to_timestamp_ltz(concat(CAST({column} AS STRING), 'Z'))"
    return f"CAST({column} AS {spark_type(name, to)[0]})"


def _full(text: str) -> str:
    """Add a time to a date: Spark takes no zone after a date alone."""
    return f"regexp_replace({text}, '^([0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}})Z$', '$1T00:00:00Z')"


def _unzoned(moment: str) -> str:
    return f"timestampadd(MICROSECOND, unix_micros({moment}), TIMESTAMP_NTZ'1970-01-01 00:00:00')"


def _external(spark: SparkSession, source: SparkFormat) -> DataFrame:
    """Return a format by name: with its own columns if it has some, else with those declared."""
    reader = spark.readStream.format(source.format).options(**source.options)
    try:
        frame = _load(reader, source.path)
        have = SparkFrame(frame).schema
    except LowwaterError:
        raise
    except Exception:  # Spark's own class, or Java's: some formats have no columns of their own
        return _load(reader.schema(spark_ddl(source.schema)), source.path)
    for name in source.schema:
        if name not in have:
            raise QueryError(f"{source.format}: {unknown_name('column', name, have)}")
    return frame.selectExpr(*_columns(source.schema, have))


def _load(reader: Any, path: str) -> DataFrame:
    frame: DataFrame = reader.load(path) if path else reader.load()
    return frame
