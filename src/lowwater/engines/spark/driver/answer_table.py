"""The driver keeps the newest answer of each key of a run on Spark, from the files of committed
batches.

Invariant: the file of all keys and the files of later batches together give the table after the
last committed batch, at any moment at which the process may be killed.
"""

from __future__ import annotations

import threading
import warnings
from pathlib import Path

import polars as pl

from lowwater.engines.answers import SINCE, Answers
from lowwater.engines.spark.driver.checkpoint_folder import BatchNumbers
from lowwater.engines.spark.wire.answer_files import (
    SUFFIX,
    place_of,
    read_changes,
    write_whole,
)
from lowwater.engines.spark.wire.message import packed, pickled, unpacked, unpickled
from lowwater.errors import CheckpointError, StreamWarning
from lowwater.stream.element import MARK
from lowwater.updates.answers import AnswerShape, AnswerTable

ALL_KEYS = "all-keys"
"""The name of the file with the table."""
MOST_FILES, LEAST_ROWS = 256, 1_000
"""The file of all keys is written anew after so many files of batches, or after as many of their
rows as the table has, and at least so many."""


class CommittedAnswers:
    """The table of newest answers, in memory and in a folder."""

    def __init__(self, shape: AnswerShape, folder: Path):
        self._shape, self._folder = shape, folder
        self._table = AnswerTable(shape)
        self._pending: dict[tuple[int, int], pl.DataFrame] = {}
        self._batch = -1
        self._now = 0
        self._folded: list[Path] = []
        self._rows = 0
        self._trouble: Exception | None = None
        self._lock = threading.Lock()

    def begin(self, progress: BatchNumbers) -> None:
        """Read the table of the run that went before; warn if the folder lacks it."""
        with self._lock:
            if progress.fresh:
                for each in self._files():
                    each.unlink()
                self._save()
                return
            saved = self._folder / ALL_KEYS
            if saved.exists():
                self._batch, rows, pending, self._now = unpickled(saved.read_bytes())
                self._table.put(unpacked(rows))
                self._pending = {place: unpacked(body) for place, body in pending.items()}
            elif progress.done >= 0:
                warnings.warn(
                    f"latest() and table() know the keys from batch {progress.done + 1} on only:"
                    f" the checkpoint has no {self._folder.name}/{ALL_KEYS}, the newest answers of"
                    " earlier batches. Put back a copy of the whole checkpoint to have all keys",
                    StreamWarning,
                    stacklevel=2,
                )
                self._batch = progress.done
            self._fold(progress.done)

    def fold(self, batch: int) -> None:
        """Take the changes of all batches up to one that was committed. If that fails, the run goes
        on, and :meth:`answers` raises the error."""
        with self._lock:
            if self._trouble is None:
                try:
                    self._fold(batch)
                except Exception as error:
                    self._trouble = error

    def end(self) -> None:
        """Write the file of all keys."""
        with self._lock:
            if self._trouble is None:
                self._save()

    def answers(self, now: int | None) -> Answers:
        """Return the newest answers after the last committed batch, at a clock time in nanoseconds;
        None for that of the batch."""
        with self._lock:
            if self._trouble is not None:
                raise CheckpointError(
                    f"the newest answers in {self._folder} cannot be read or written:"
                    f" {self._trouble}. The run itself is not affected"
                ) from self._trouble
            types = {name: self._shape.schema[name] for name in self._shape.update_key}
            none = pl.DataFrame(schema={**types, SINCE: pl.Int64()})
            pending = pl.concat([none, *self._pending.values()])
            return Answers(self._table.copy(), pending, max(self._now, now or 0))

    # ---- files -----------------------------------------------------------------------------

    def _files(self) -> list[Path]:
        return sorted(self._folder.glob(f"batch-*{SUFFIX}"))

    def _fold(self, batch: int) -> None:
        if batch <= self._batch:
            return
        by_batch: dict[int, list[Path]] = {}
        for path in self._files():
            by_batch.setdefault(place_of(path.name)[0], []).append(path)
        for number in sorted(by_batch):
            if self._batch < number <= batch:
                self._apply(by_batch[number])
            if number <= batch:
                self._folded += [path for path in by_batch[number] if path not in self._folded]
        self._batch = batch
        enough = max(LEAST_ROWS, self._table.size)
        if len(self._folded) > MOST_FILES or self._rows > enough:
            self._save()

    def _apply(self, paths: list[Path]) -> None:
        """Take the changes of one batch: first the ends of keys, then the answers."""
        found = {place_of(path.name)[1]: read_changes(path) for path in paths}
        for each in found.values():
            if each.ended.height:
                self._table.drop(each.ended.drop(MARK))
        for place, each in found.items():
            self._table.put(each.rows)
            self._pending[place] = each.pending
            self._now = max(self._now, each.now)
            self._rows += each.rows.height + each.ended.height

    def _save(self) -> None:
        pending = {place: packed(each) for place, each in self._pending.items()}
        body = pickled((self._batch, packed(self._table.rows()), pending, self._now))
        write_whole(self._folder / ALL_KEYS, body)
        for path in self._folded:
            path.unlink(missing_ok=True)
        self._folded, self._rows = [], 0
