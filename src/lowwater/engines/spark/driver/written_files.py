"""The files that a query has written are read in the order in which they were written.

Spark reads the files of a folder in any order. But it keeps a log of the files it wrote, batch by
batch, and a file keeps its rows in order, so both together give the order of the rows.

Invariant: rows that left in one partition a batch are read in the order in which they left.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.engines.spark.wire.late_files import LAST_FILES
from lowwater.sinks import Folder, LastRows
from lowwater.stream.element import Chunk

LOG = "_spark_metadata"
WHOLE = ".compact"
"""The suffix of a part of the log that repeats all parts before it."""
AT, FILE, ROW = "__at", "__file", "__row"
"""Columns for sorting rows: the place of the file in the log, its name, the row's place in it."""


def has_log(folder: Path) -> bool:
    """Return whether a query has written files to a folder."""
    return (folder / LOG).is_dir()


def read_written(spark: Any, folder: Path) -> Chunk:
    """Return the rows of all Parquet files in a folder, in any order."""
    return _taken(spark.read.parquet(str(folder)))


def read_in_order(spark: Any, folder: Path) -> Chunk:
    """Return the rows of all Parquet files in a folder, in the order in which they were written."""
    table = spark.read.parquet(str(folder))
    places = {name: at for at, name in enumerate(logged(folder))}  # has all files that are read
    about = table.metadataColumn("_metadata")
    about = (about["file_name"].alias(FILE), about["row_index"].alias(ROW))
    rows = _taken(table.select("*", *about))
    at = pl.col(FILE).replace_strict(places, return_dtype=pl.Int64).alias(AT)
    return rows.with_columns(at).sort(AT, ROW).drop(AT, FILE, ROW)


def logged(folder: Path) -> list[str]:
    """Return the names of the files that were written, batch after batch."""
    parts = [each for each in (folder / LOG).iterdir() if each.name[:1].isdigit()]
    numbers = {each: int(each.name.removesuffix(WHOLE)) for each in parts}
    first = max((n for each, n in numbers.items() if each.suffix == WHOLE), default=-1)
    names: dict[str, None] = {}
    for part in sorted(parts, key=lambda each: (numbers[each], each.suffix != WHOLE)):
        if numbers[part] >= first:
            lines = part.read_text(encoding="utf-8").splitlines()
            paths = [json.loads(line)["path"] for line in lines if line.startswith("{")]
            names.update(dict.fromkeys(Path(path).name for path in paths))
    return list(names)


READERS: dict[str, Callable[[Path], Chunk]] = {
    "parquet": pl.read_parquet,
    "csv": pl.read_csv,
    "json": pl.read_ndjson,
}


def last_written(folder: Folder, limit: int) -> Chunk:
    """Return the last rows of a folder, at most ``limit``, from the files written last."""
    if not limit or not has_log(folder.path):
        return pl.DataFrame()
    last = LastRows(limit)
    for name in logged(folder.path)[-LAST_FILES:]:
        last.add(READERS[folder.format](folder.path / name))
    return last.table()


def _taken(table: Any) -> Chunk:
    found = pl.from_arrow(table.toArrow())
    assert isinstance(found, pl.DataFrame)
    return found
