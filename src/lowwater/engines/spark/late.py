"""The side output on Spark: rows that were not let in, as Parquet files named by batch and bucket.

A batch that is run again writes the same files again, so the folder holds each row once.
"""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl
import polars.selectors as cs

from lowwater.errors import SinkError
from lowwater.stream.element import Chunk

STREAM = "_stream"
COMPUTED = "__computed"
"""How columns begin that Spark computed for an operator; nobody else is shown them."""


def keep_refused(
    folder: str | None, stage: int, batch: int, bucket: int, refused: dict[str, list[Chunk]]
) -> None:
    """Write the rows a bucket refused in a batch, in place of what an earlier try left."""
    if folder is None:
        return
    target = Path(folder) / f"batch-{batch:08d}-{stage}-{bucket}.parquet"
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
    """The rows of a stream that were refused so far; None if there are none."""
    files = sorted(Path(folder).glob("batch-*.parquet"))
    frames = [pl.read_parquet(each) for each in files]
    mine = [frame.filter(pl.col(STREAM) == stream).drop(STREAM) for frame in frames]
    some = [frame for frame in mine if frame.height]
    return pl.concat(some, how="diagonal_relaxed") if some else None
