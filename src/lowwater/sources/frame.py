"""A Spark streaming DataFrame as a source. Nothing of Spark is imported to recognise one."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn, TypeVar

import polars as pl

from lowwater.errors import OptionError, QueryError

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


class Frame:
    """A streaming DataFrame; it runs on Spark only."""

    live = True

    def __init__(self, dataframe: Any):
        self.dataframe = dataframe
        ask = apart if is_remote(dataframe) else _here
        if not ask(lambda: dataframe.isStreaming):
            raise OptionError(
                "this DataFrame is not streaming; use spark.readStream, or play it as a log:"
                " lw.replay(df.toArrow())"
            )
        fields = ask(lambda: dataframe.schema).jsonValue()["fields"]
        self._schema = {each["name"]: _dtype(each["name"], each["type"]) for each in fields}

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of the DataFrame."""
        return self._schema

    @property
    def arrival(self) -> str | None:
        """Rows arrive when Spark reads them."""
        return None

    def open(self) -> NoReturn:
        """Only Spark can read it."""
        raise OptionError('a Spark DataFrame runs on Spark: say engine="spark", or q.to_spark()')

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Nobody knows who will speak."""
        return ()


def is_dataframe(value: Any) -> bool:
    """Whether a value is a Spark DataFrame, of either kind."""
    kind = type(value)  # asking the value itself would be a question to Spark
    return kind.__module__.startswith("pyspark.sql") and hasattr(kind, "isStreaming")


def is_remote(value: Any) -> bool:
    """Whether a session or DataFrame is one of Spark Connect's."""
    return type(value).__module__.startswith("pyspark.sql.connect")


def apart(question: Callable[[], T]) -> T:
    """Ask a remote Spark something in a thread of its own.

    The thread in which a declarative pipeline calls its functions gets no answers about DataFrames;
    others do.
    """
    with ThreadPoolExecutor(1, "lowwater-asks") as other:
        return other.submit(question).result()


def _here(question: Callable[[], T]) -> T:
    return question()


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
