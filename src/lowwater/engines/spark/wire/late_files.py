"""The side output on Spark is a folder of Parquet files, named by batch and bucket.

A batch that is run again writes the same files again, so the folder holds each row once.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import polars as pl
import polars.selectors as cs

from lowwater.errors import OptionError, SinkError
from lowwater.progress.spec import STREAM
from lowwater.sinks import Folder, LastRows
from lowwater.stream.element import Chunk

LAST_FILES = 8
"""Number of files in which the last rows are searched for."""
COMPUTED = "__computed"
"""The prefix of columns that Spark computed for an operator; the side output has none of them."""

LateFolder = str | Mapping[str, str]
"""A folder, or one for each stream."""


def late_folder(given: object, otherwise: str | None = None) -> LateFolder | None:
    """Return the folders that ``late_sink=`` names; ``otherwise`` is that of all other streams."""
    if given is None:
        return otherwise
    if isinstance(given, Mapping):
        folders = {stream: _absolute(each) for stream, each in given.items()}
        return folders | ({ELSEWHERE: otherwise} if otherwise else {})
    return _absolute(given)


def _absolute(given: object) -> str:
    path = given.path if isinstance(given, Folder) and given.format == "parquet" else given
    if not isinstance(path, str | Path):
        raise OptionError(f"late_sink= on Spark is a folder, not {type(given).__name__}")
    return str(Path(path).absolute())


ELSEWHERE = ""
"""The key of the folder for streams that have none of their own."""


def late_folder_of(folder: LateFolder, stream: str) -> str | None:
    """Return the folder of the late rows of a stream."""
    return folder if isinstance(folder, str) else folder.get(stream, folder.get(ELSEWHERE))


def keep_refused(
    folder: LateFolder | None, stage: int, batch: int, bucket: int, refused: dict[str, list[Chunk]]
) -> None:
    """Write the rows that a bucket refused in a batch, in place of those of an earlier try."""
    if folder is None:
        return
    name = f"batch-{batch:08d}-{stage}-{bucket}.parquet"
    for each in {folder} if isinstance(folder, str) else set(folder.values()):
        mine = {s: rows for s, rows in refused.items() if late_folder_of(folder, s) == each}
        _keep(each, name, mine)


def _keep(folder: str, name: str, refused: dict[str, list[Chunk]]) -> None:
    target = Path(folder) / name
    try:
        if not refused:
            target.unlink(missing_ok=True)
            return
        named = [
            chunk.drop(cs.starts_with(COMPUTED)).with_columns(pl.lit(stream).alias(STREAM))
            for stream, chunks in refused.items()
            for chunk in chunks
        ]
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}-{os.getpid()}")
        pl.concat(named, how="diagonal_relaxed").write_parquet(unfinished)
        unfinished.replace(target)
    except OSError as error:
        raise SinkError(f"cannot write late rows to {folder}: {error}") from None


def read_refused(folder: str, stream: str) -> Chunk | None:
    """Return the rows of a stream that were refused so far; None if there are none."""
    some = list(_refused(sorted(Path(folder).glob("batch-*.parquet")), stream))
    return pl.concat(some, how="diagonal_relaxed") if some else None


def last_refused(folder: str, stream: str, limit: int) -> Chunk:
    """Return the last rows of a stream that were refused, at most ``limit``, from the files that
    were written last."""
    last = LastRows(limit)
    for rows in _refused(sorted(Path(folder).glob("batch-*.parquet"))[-LAST_FILES:], stream):
        last.add(rows)
    return last.table()


def _refused(files: Iterable[Path], stream: str) -> Iterator[Chunk]:
    for each in files:
        rows = pl.read_parquet(each)
        rows = rows.filter(pl.col(STREAM) == stream).drop(STREAM)
        if rows.height:
            yield rows
