"""Marks left on the machine for the next batch: they spare work and never decide anything.

Rows can be judged, filtered and reduced before they are sent if the marks that held before the
batch are known where they are read. Every bucket knows them at the end of the batch before and
leaves them here; who finds none sends rows as they are, and they are judged where they arrive.
Where each bucket knows its own groups only, the marks of all buckets are needed. Both ways come to
the same verdict. Files are named by run and batch and written by renaming, so what is read is
always whole and always the batch's own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowwater.engines.spark.wire.folders import private_folder
from lowwater.engines.spark.wire.message import pickled, unpickled
from lowwater.engines.spark.worker.cache import FORGOTTEN

KEPT = 3
"""Batches for which hints are kept."""


def _folder(run: str) -> Path | None:
    home = private_folder(Path(tempfile.gettempdir()), "lowwater-hints")
    return home / run if home is not None and run else None


def leave(run: str, batch: int, stage: int, marks: Any, bucket: int | None = None) -> None:
    """Leave the marks that hold after a batch, unless somebody on this machine has.

    With a ``bucket`` they are those of its own groups; without, those of all.
    """
    folder = _folder(run)
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


def find(run: str, batch: int, stage: int, buckets: Sequence[int] = ()) -> list[Any] | None:
    """The marks that held after a batch, of all buckets named; None if some are not known here."""
    folder = _folder(run)
    if folder is None:
        return None
    places = [f"{stage}-{bucket}" for bucket in buckets] or [str(stage)]
    try:
        return [unpickled((folder / f"{batch}-{place}").read_bytes()) for place in places]
    except (OSError, EOFError):
        return None


def sweep() -> None:
    """Remove what runs left behind that were killed long ago."""
    home = private_folder(Path(tempfile.gettempdir()), "lowwater-hints")
    with contextlib.suppress(OSError):
        for each in home.iterdir() if home is not None else ():
            if time.time() - each.stat().st_mtime > FORGOTTEN:
                shutil.rmtree(each, ignore_errors=True)


def forget(run: str) -> None:
    """Remove what a run left on this machine."""
    folder = _folder(run)
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)
