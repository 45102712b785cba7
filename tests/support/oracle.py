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


def on_change(
    source: str,
    length: str,
    aggregates: Mapping[str, str],
    keys: tuple[str, ...] = (),
    time: str = "ts",
) -> str:
    """SQL for the answers of a window of this length that slides on change.

    ``aggregates`` are over the columns of ``r``; none counts the row that stands for no row. Those
    that are 0 over nothing begin with ``count``.
    """
    over = "".join(f", {key}" for key in keys)
    same = "".join(f" AND r.{key} IS NOT DISTINCT FROM e.{key}" for key in keys)
    found = ", ".join(f"{text} AS {name}" for name, text in aggregates.items())
    part = f"PARTITION BY {', '.join(keys)}" if keys else ""
    empty = {n: 0 if text.startswith("count") else "NULL" for n, text in aggregates.items()}
    changed = " OR ".join(
        f"{n} IS DISTINCT FROM lag({n}, 1, {empty[n]}) OVER ({part} ORDER BY at_)"
        for n in aggregates
    )
    return f"""
        WITH rows_ AS (SELECT * FROM {source}),
        events_ AS (SELECT {time} AS at_{over} FROM rows_
                    UNION SELECT {time} + {length}{over} FROM rows_),
        answers_ AS (
            SELECT e.at_{"".join(f", e.{key}" for key in keys)}, {found}
            FROM events_ e LEFT JOIN rows_ r
                ON r.{time} > e.at_ - {length} AND r.{time} <= e.at_{same}
            GROUP BY ALL)
        SELECT at_ - {length} AS window_start, at_ AS window_end{over}, {", ".join(aggregates)}
        FROM answers_ QUALIFY {changed}
    """
