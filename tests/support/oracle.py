"""The oracle: the batch answer of a plain SQL query over the same rows, by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import duckdb
import polars as pl
import pyarrow as pa


def answer(sql: str, tables: Mapping[str, pl.DataFrame]) -> Counter[tuple[Any, ...]]:
    """The multiset of rows DuckDB gives for a query over these tables."""
    with duckdb.connect() as connection:
        for name, table in tables.items():
            connection.register(name, table.to_arrow())
        return multiset(connection.execute(sql).fetchall())


def multiset(rows: list[tuple[Any, ...]]) -> Counter[tuple[Any, ...]]:
    """Rows as a multiset; floats are rounded, so that the order of additions does not matter."""
    return Counter(tuple(_plain(value) for value in row) for row in rows)


def table_rows(table: pa.Table | pl.DataFrame) -> Counter[tuple[Any, ...]]:
    """The multiset of rows of a table."""
    frame = table if isinstance(table, pl.DataFrame) else pl.DataFrame(table)
    return multiset(frame.rows())


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, list):
        return tuple(map(_plain, value))
    return value
