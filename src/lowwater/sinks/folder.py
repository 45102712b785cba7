"""A folder of Parquet, CSV or JSON files: its options, and the sink that writes it.

Invariant: a file gets its name only when it is complete, and no file with a name is overwritten. So
the rows counted by :attr:`FolderSink.rows_written` are there for readers, however the process ends.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import polars as pl

from lowwater.errors import OptionError, SinkError
from lowwater.sinks.folder_lock import FolderLock, FolderLocked
from lowwater.stream.duration import SECOND, Duration, nanoseconds
from lowwater.stream.element import Chunk
from lowwater.stream.size import Size, byte_count

FORMATS = {"parquet": "Parquet", "csv": "CSV", "json": "JSON"}
"""Formats of files, and their names for people."""
Mode = Literal["fail", "append", "replace"]
MODES: tuple[Mode, ...] = get_args(Mode)
SPARKS_LOG = "_spark_metadata"
"""Name of the list of files that Spark keeps in a folder it writes to."""
UNFINISHED = ".unfinished"
"""End of the name of a file that is being written."""


@dataclass(frozen=True)
class Folder:
    """A folder of files for results, or for late rows, and how they are written.

    The embedded engine gathers rows and writes a file when one of ``flush_every``, ``flush_rows``
    and ``flush_size`` is reached. On Spark each batch writes its files.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
    >>> s.run(sink=lw.folder("answers", format="csv")).await_termination()
    True
    >>> pl.read_csv("answers/*.csv")["ts"].to_list()
    [1, 2]

    ``path``
        The folder; it is made if it is not there. One that another run is writing to is refused.
    ``format``
        "parquet", "csv" or "json" (one object a line). Default: "parquet".
    ``mode``
        What happens if the folder already holds results: "fail" refuses it, "append" adds files to
        it, "replace" removes the files that runs have written there. Default: "fail".
    ``flush_every``
        Length of real time after which a row is in a file. Default: "2 seconds".
    ``flush_rows``
        Most rows of a file. Default: 1,000,000.
    ``flush_size``
        Most memory for rows that are in no file yet, in bytes or as a text. Default: "128 MB".
    """

    path: Path
    format: str = "parquet"
    mode: Mode = "fail"
    flush_every: Duration = "2 seconds"
    flush_rows: int = 1_000_000
    flush_size: Size = "128 MB"

    def __post_init__(self) -> None:
        object.__setattr__(self, "path", Path(self.path))
        if self.format not in FORMATS:
            raise OptionError(f"results are written as {', '.join(FORMATS)}, not {self.format!r}")
        if self.mode not in MODES:
            raise OptionError(f"mode= is {', '.join(MODES)}, not {self.mode!r}")
        if self.every < 0:
            raise OptionError(f"flush_every= is zero or more, not {self.flush_every!r}")
        rows = self.flush_rows
        if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
            raise OptionError(f"flush_rows= is a whole number above zero, not {rows!r}")
        byte_count(self.flush_size, "flush_size=")

    @property
    def every(self) -> float:
        """The value of ``flush_every`` in seconds."""
        return nanoseconds(self.flush_every, "flush_every=") / SECOND

    def lock(self) -> FolderLock:
        """Make the folder if it is not there, and lock it against other runs."""
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            return FolderLock(self.path)
        except FolderLocked:
            raise SinkError(
                f"another run is writing to {self.path}; wait for its end or stop it, or give this"
                " run a folder of its own"
            ) from None
        except OSError as error:
            raise SinkError(f"cannot write results to {self.path}: {error}") from None

    def make_ready(self) -> None:
        """Refuse or remove the files that are there, by ``mode``; call it only under the lock."""
        if self.mode == "replace":
            self.remove_results()
        if self.mode == "append" and (self.path / SPARKS_LOG).exists():
            raise SinkError(
                f"{self.path} was written by Spark, which lists its files in {SPARKS_LOG} and reads"
                ' no others; give another folder, or mode="replace" to remove its files'
            )
        if self.mode != "append":
            self.refuse_if_used()
        for left in self.path.glob(f"part-*{UNFINISHED}"):  # by a process that was killed
            left.unlink(missing_ok=True)

    def remove_results(self) -> None:
        """Remove the files that runs have written; call it only under the lock."""
        for kind in FORMATS:
            for file in self.path.glob(f"part-*.{kind}"):
                file.unlink(missing_ok=True)
        shutil.rmtree(self.path / SPARKS_LOG, ignore_errors=True)

    def refuse_if_used(self) -> None:
        """Raise if the folder already holds files of the format."""
        if any(self.path.glob(f"*.{self.format}")) or (self.path / SPARKS_LOG).exists():
            raise SinkError(
                f"{self.path} already holds {FORMATS[self.format]} files; give an empty folder, or"
                ' mode="append" to add to them or "replace" to remove what runs have written'
                " (of the command: --output-mode)"
            )


class FolderSink:
    """Writes results as files into a folder, which it locks.

    ``schema`` is the columns to write if there are no rows; None to write no file then.
    ``rows_per_file`` takes the place of the folder's ``flush_rows``. Times are real time.
    """

    def __init__(
        self,
        folder: Folder,
        schema: Mapping[str, pl.DataType] | None = None,
        rows_per_file: int | None = None,
    ):
        self._folder = folder
        self._most_rows = rows_per_file or folder.flush_rows
        self._most_bytes = byte_count(folder.flush_size, "flush_size=")
        self._every = folder.every
        # an empty JSON file has no columns
        self._schema = None if folder.format == "json" else schema
        self._held: list[Chunk] = []
        self._bytes = 0
        self._since: float | None = None
        self.rows_waiting = 0
        """Number of rows that are in no file yet."""
        self.rows_written = 0
        """Number of rows in files that readers can see."""
        self._error: SinkError | None = None
        self._closed = False
        self._changed = threading.Condition()
        self._flusher: threading.Thread | None = None
        self._on_failure: Callable[[], None] = lambda: None
        self._lock = folder.lock()
        try:
            folder.make_ready()
            self._number = self._next_number()
        except BaseException as error:
            self._lock.release()
            if isinstance(error, OSError):
                raise SinkError(f"cannot write results to {folder.path}: {error}") from None
            raise

    def _next_number(self) -> int:
        """Return one more than the highest number of a file that is there."""
        numbers = [
            int(named[1])
            for file in self._folder.path.glob("part-*")
            if len(named := file.name.partition(".")[0].split("-")) > 1 and named[1].isdigit()
        ]
        return max(numbers, default=-1) + 1

    def on_failure(self, act: Callable[[], None]) -> None:
        """Set the function to call if a file cannot be written between two calls of ``write``."""
        self._on_failure = act

    @property
    def path(self) -> Path:
        """The folder."""
        return self._folder.path

    def write(self, chunk: Chunk) -> None:
        """Gather rows, and write a file when there are enough."""
        with self._changed:
            self._refuse_after_failure()
            self._held.append(chunk)
            self.rows_waiting += chunk.height
            self._bytes += int(chunk.estimated_size())
            enough = self.rows_waiting >= self._most_rows or self._bytes >= self._most_bytes
            if enough or not self._every:
                self._write()
            elif self._since is None:
                self._since = time.monotonic()
                self._flush_later()

    def flush(self) -> None:
        """Write the gathered rows now; may be called from any thread."""
        with self._changed:
            self._refuse_after_failure()
            if self._held:
                self._write()

    def complete(self) -> None:
        """Make :meth:`close` write a file without rows if there were none, so that the folder can
        be read."""
        with self._changed:
            empty = not self._held and not self.rows_written
            if self._schema and empty and not any(self._folder.path.glob("part-*")):
                self._held = [pl.DataFrame(schema=self._schema)]

    def close(self) -> None:
        """Write the gathered rows, and end the lock of the folder."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
            try:
                if self._held:
                    self._write()
                    self._error = None
            finally:
                self._lock.release()

    def _refuse_after_failure(self) -> None:
        if self._error is not None:
            raise self._error

    # ---- by time ---------------------------------------------------------------------------

    def _flush_later(self) -> None:
        if self._flusher is None:
            work = threading.Thread(target=self._flush_by_time, name="lowwater-flush", daemon=True)
            self._flusher = work
            work.start()
        self._changed.notify_all()

    def _flush_by_time(self) -> None:
        with self._changed:
            while not self._closed and self._error is None:
                if self._since is None:
                    self._changed.wait()
                elif (left := self._since + self._every - time.monotonic()) > 0:
                    self._changed.wait(left)
                else:
                    self._try_to_write()
        if self._error is not None:
            self._on_failure()

    def _try_to_write(self) -> None:
        try:
            self._write()
        except SinkError as error:
            self._error = error

    # ---- files -----------------------------------------------------------------------------

    def _write(self) -> None:
        path, kind = self._folder.path, self._folder.format
        rows = pl.concat(self._held, how="diagonal")
        target = path / f"part-{self._number:05d}.{kind}"
        unfinished = target.with_name(target.name + UNFINISHED)
        try:
            try:
                if kind == "csv":
                    rows.write_csv(unfinished)
                elif kind == "json":
                    rows.write_ndjson(unfinished)
                else:
                    rows.write_parquet(unfinished)
                self._give_name(unfinished)
            except BaseException:
                with contextlib.suppress(OSError):
                    unfinished.unlink(missing_ok=True)
                raise
        except (OSError, pl.exceptions.PolarsError) as error:
            raise SinkError(f"cannot write {target}: {str(error).splitlines()[0]}") from None
        self.rows_written += rows.height
        self._held, self._bytes, self._since = [], 0, None
        self.rows_waiting = 0

    def _give_name(self, unfinished: Path) -> None:
        """Rename a complete file to the next free name; never overwrite another file."""
        while True:
            target = self._folder.path / f"part-{self._number:05d}.{self._folder.format}"
            self._number += 1
            try:
                os.link(unfinished, target)
            except FileExistsError:
                continue
            except OSError:  # a file system without links; the lock keeps others out
                if target.exists():
                    continue
                unfinished.rename(target)
                return
            unfinished.unlink()
            return
