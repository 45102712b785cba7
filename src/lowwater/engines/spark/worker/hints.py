"""Hints are marks in files for readers of the next batch; they save work and change no result.

Rows can be judged, filtered and reduced before they are sent if the marks that held before the
batch are known where rows are read. Every bucket has them at the end of the batch before and writes
them to a file; where no file is found, rows are sent as they are and judged where they arrive, with
the same verdict. Where each bucket has the marks of its own groups only, the files of all buckets
are needed. Files are named by run and batch and written by renaming, so a file that is read is
whole and of the right batch.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowwater.engines.spark.wire.message import pickled, unpickled
from lowwater.engines.spark.worker.run_folders import RunFolders

KEPT = 3
"""Number of batches for which hints are kept."""


FOLDERS = RunFolders(Path(tempfile.gettempdir()), "lowwater-hints")


def write(run: str, batch: int, stage: int, marks: Any, bucket: int | None = None) -> None:
    """Write the marks that hold after a batch, unless another bucket on this machine has.

    ``bucket``: the bucket whose groups they are; None if they are of all groups.
    """
    folder = FOLDERS.of(run)
    place = str(stage) if bucket is None else f"{stage}-{bucket}"
    if folder is None or (target := folder / f"{batch}-{place}").exists():
        return
    try:
        folder.mkdir(exist_ok=True)
        unfinished = target.with_name(f".{target.name}-{os.getpid()}")
        unfinished.write_bytes(pickled(marks))
        unfinished.replace(target)
        for old in range(max(0, batch - KEPT - 5), batch - KEPT):
            (folder / f"{old}-{place}").unlink(missing_ok=True)
    except OSError:
        return  # a full or read-only disk costs speed only


def read(run: str, batch: int, stage: int, buckets: Sequence[int] = ()) -> list[Any] | None:
    """Return the marks that held after a batch, of all buckets named; None if some are missing."""
    folder = FOLDERS.of(run)
    if folder is None:
        return None
    places = [f"{stage}-{bucket}" for bucket in buckets] or [str(stage)]
    try:
        return [unpickled((folder / f"{batch}-{place}").read_bytes()) for place in places]
    except (OSError, EOFError):
        return None
