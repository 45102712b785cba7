"""Sources that only Spark can read: streaming DataFrames, and Spark's formats such as Kafka.

No module of Spark is imported here; a DataFrame is recognised by the module of its class.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.sources.source import Source

_PLAIN: Mapping[str, pl.DataType] = {
    "boolean": pl.Boolean(),
    "byte": pl.Int8(),
    "short": pl.Int16(),
    "integer": pl.Int32(),
    "long": pl.Int64(),
    "float": pl.Float32(),
    "double": pl.Float64(),
    "string": pl.String(),
    "binary": pl.Binary(),
    "date": pl.Date(),
    "timestamp": pl.Datetime("us", "UTC"),
    "timestamp_ntz": pl.Datetime("us"),
    "void": pl.Null(),
}


T = TypeVar("T")


class SparkFrame(Source):
    """A streaming DataFrame as a source; ``origin`` is that of the source it was made from."""

    live = True

    def __init__(self, dataframe: Any, origin: Hashable = None):
        self.dataframe = dataframe
        self._origin = id(dataframe) if origin is None else origin
        call = call_apart if is_remote(dataframe) else _call
        if not call(lambda: dataframe.isStreaming):
            raise OptionError(
                "this DataFrame is not streaming; use spark.readStream, or play it as a log:"
                " lw.replay(df.toArrow())"
            )
        fields = call(lambda: dataframe.schema).jsonValue()["fields"]
        self.schema = {each["name"]: _dtype(each["name"], each["type"]) for each in fields}

    @property
    def origin(self) -> Hashable:
        """The place that Spark reads; a DataFrame that the user made is a place of its own."""
        return self._origin

    def open(self) -> NoReturn:
        """Raise: only Spark can read a DataFrame."""
        raise OptionError('a Spark DataFrame runs on Spark: use engine="spark" or q.to_spark()')


def is_dataframe(value: Any) -> bool:
    """Return true if a value is a Spark DataFrame, classic or of Spark Connect."""
    kind = type(value)  # an attribute of the value itself may need a call to Spark
    return kind.__module__.startswith("pyspark.sql") and hasattr(kind, "isStreaming")


def is_remote(value: Any) -> bool:
    """Return true if a session or DataFrame is one of Spark Connect."""
    return type(value).__module__.startswith("pyspark.sql.connect")


def call_apart(function: Callable[[], T]) -> T:
    """Call a function that needs a remote Spark in a thread of its own, and return its result.

    Spark answers no calls about DataFrames from the thread in which a declarative pipeline calls
    its functions.
    """
    with ThreadPoolExecutor(1, "lowwater-remote") as other:
        return other.submit(function).result()


def _call(function: Callable[[], T]) -> T:
    return function()


def _dtype(name: str, kind: Any) -> pl.DataType:
    if isinstance(kind, dict):
        if kind["type"] == "array":
            return pl.List(_dtype(name, kind["elementType"]))
        if kind["type"] == "struct":
            return pl.Struct({f["name"]: _dtype(name, f["type"]) for f in kind["fields"]})
        if kind["type"] == "map":
            entry = {"key": kind["keyType"], "value": kind["valueType"]}
            return pl.List(pl.Struct({each: _dtype(name, t) for each, t in entry.items()}))
        raise QueryError(f"column {name!r} has Spark type {kind['type']!r}, which cannot be read")
    if kind.startswith("decimal("):
        precision, scale = kind[8:-1].split(",")
        return pl.Decimal(int(precision), int(scale))
    if kind.startswith("interval "):
        return pl.Duration("us")
    if kind.startswith(("string", "varchar", "char")):
        return pl.String()
    if kind not in _PLAIN:
        raise QueryError(f"column {name!r} has Spark type {kind!r}, which cannot be read")
    return _PLAIN[kind]


OF_FILES = ("parquet", "csv", "json", "orc", "text", "avro", "xml")
"""Formats of files, whose rows end; streams of other formats go on for ever."""


class SparkFormat(Source):
    """A place that Spark reads: a format, with its path and options.

    ``schema`` is the declared columns; ``follow`` is true if files that are added are read too.
    """

    def __init__(
        self,
        format_: str,
        path: str,
        options: Mapping[str, str],
        schema: Mapping[str, pl.DataType],
        follow: bool = False,
    ):
        self.format, self.path, self.options = format_, path, dict(options)
        self.schema = dict(schema)
        self.live = follow or format_ not in OF_FILES

    @property
    def origin(self) -> Hashable:
        """The place."""
        return self.where

    @property
    def where(self) -> str:
        """The place as a phrase for people."""
        return f"{self.format} {self.path}".rstrip()

    def open(self) -> NoReturn:
        """Raise: only Spark can read it."""
        raise OptionError(f"'{self.format}:{self.path}' is read by Spark: use the Spark engine")
