"""The oracle: the batch answer of a plain SQL query over the same rows, by DuckDB."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
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


def last_rows(
    source: str,
    aggregates: Mapping[str, str],
    *,
    slide: int,
    keys: tuple[str, ...],
    ties: Sequence[str],
    rows: int | None = None,
    length: int | str = 0,
    expire: int | str | None = None,
    time: str = "ts",
) -> str:
    """SQL for the answers of windows that slide by rows: the last ``rows`` rows of each key, or
    those of the last ``length``.

    ``aggregates`` are over the columns of ``b``. Rows of one time are counted in the order of
    ``ties``.
    """
    part = f"PARTITION BY {', '.join(keys)}" if keys else ""
    order = "ORDER BY " + ", ".join(f"{each} NULLS LAST" for each in (time, *ties))
    gone = "false" if expire is None else f"{time} - lag({time}) OVER ({part} {order}) >= {expire}"
    lives = ", ".join([*keys, "life_"])
    same = "".join(f" AND b.{key} IS NOT DISTINCT FROM a.{key}" for key in (*keys, "life_"))
    near = f"b.no_ > a.no_ - {rows}" if rows is not None else f"b.{time} > a.{time} - {length}"
    start = f"min(b.{time})" if rows is not None else f"a.{time} - {length}"
    found = ", ".join(f"{text} AS {name}" for name, text in aggregates.items())
    over = "".join(f", a.{key}" for key in keys)
    return f"""
        WITH gaps_ AS (SELECT *, coalesce({gone}, false) AS gone_ FROM {source}),
        lives_ AS (SELECT *, sum(CAST(gone_ AS INT)) OVER (
                       {part} {order} ROWS UNBOUNDED PRECEDING) AS life_ FROM gaps_),
        rows_ AS (SELECT *, row_number() OVER (PARTITION BY {lives} {order}) AS no_ FROM lives_)
        SELECT {start} AS window_start, a.{time} AS window_end{over}, {found}
        FROM rows_ a JOIN rows_ b ON b.no_ <= a.no_ AND {near}{same}
        WHERE a.no_ % {slide} = 0 GROUP BY a.{time}, a.no_, a.life_{over}"""
