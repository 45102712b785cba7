"""Files as a source: Parquet, CSV or JSON lines; one file, a folder or a pattern.

Files are read one after the other: first those that are there, by name (2 before 10), then files
that are added, as they come. Names that begin with a dot or an underscore are skipped. A followed
text file may grow: a line is read when its end of line is written. A Parquet file must be complete
once it has its name, so write it elsewhere and move it in.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from glob import glob
from pathlib import Path

import polars as pl

from lowwater.errors import BadInput, OptionError, QueryError, StreamWarning, unknown_name
from lowwater.sources.records import COMPRESSED, MissingColumns
from lowwater.sources.source import AT_ONCE, Reader, Source
from lowwater.sources.text_file import TextFile, cannot_read, columns_of, unfinished
from lowwater.sources.values import (
    Schema,
    common_type,
    first_altered,
    read_as,
    same_kind,
    type_name,
)
from lowwater.stream.element import Chunk

FORMATS = ("parquet", "csv", "json")
POLL_SECONDS = 0.2
"""Seconds between two looks at a followed folder."""
UNFINISHED_SECONDS = 10.0
"""Seconds after which a growing file is warned of if its last line has no end of line."""
ROWS_AT_ONCE = 65_536
"""Greatest number of rows of a file in a chunk."""
BEGIN_BYTES = 1 << 16
"""Number of bytes of a text file that are read to check it."""


class Files(Source):
    """Files of one format with the same columns, as a source.

    ``path`` is a file, a folder or a pattern; ``schema`` the columns, None for those of the first
    file; ``follow`` is true if files that are added are read too; ``options`` are those of the
    format: for CSV ``header`` ("true" or "false") and ``sep``.
    """

    def __init__(
        self,
        format_: str,
        path: str | Path,
        schema: Mapping[str, pl.DataType] | None = None,
        follow: bool = False,
        options: Mapping[str, str] | None = None,
    ):
        if format_ not in FORMATS:
            raise OptionError(f"files are {', '.join(FORMATS)}, not {format_!r}")
        self.format, self.path, self.live = format_, str(path), follow
        self.header, self.separator = _csv_options(format_, options or {})
        if schema is None:
            schema = self._found_types()
        self.schema = dict(schema)
        refuse_unwritable_types(format_, self.schema)

    @property
    def origin(self) -> Hashable:
        """The place."""
        return self.where

    @property
    def where(self) -> str:
        """The place as a phrase for people."""
        return f"{self.format} files at {self.path}{', and files added later' if self.live else ''}"

    def listed(self) -> list[Path]:
        """Return the files that are there now, by name."""
        path = Path(self.path)
        if path.is_file():
            return [path]
        found = path.rglob("*") if path.is_dir() else map(Path, glob(self.path, recursive=True))
        folder = path if path.is_dir() else _fixed(path)
        here = (each for each in found if each.is_file() and not _hidden(each, folder))
        return sorted(here, key=_by_name)

    def check(self) -> None:
        """Raise if there are no files and none can come; make the folder if some can."""
        if not self.live and not self.listed():
            raise QueryError(f"there are no files at {self.path}")
        if self.live and not _is_pattern(self.path):
            Path(self.path).mkdir(parents=True, exist_ok=True)

    def _found_types(self) -> dict[str, pl.DataType]:
        """Return the columns of the first file."""
        here = self.listed()
        if not here:
            what = "is empty" if Path(self.path).exists() else "is not there"
            raise QueryError(f"{self.path} {what}, so its columns have to be declared")
        if not self.header:
            raise QueryError("a CSV file without a header needs its columns declared")
        found = (
            _parquet_columns(here[0])
            if self.is_binary
            else columns_of(self.format, here[0], self.separator)
        )
        return {name: common_type(dtype) for name, dtype in found.items()}

    def text(self, path: Path, missing: MissingColumns | None = None) -> TextFile:
        """Return a text file at its first row."""
        return TextFile(path, self.format, self.schema, self.header, self.separator, missing)

    def read(self, path: Path, missing: MissingColumns | None = None) -> Iterator[Chunk]:
        """Yield the rows of a complete file, some at a time, with the declared types."""
        if self.is_binary:
            return self._slices(path, _parquet(path, self.schema))
        return self._slices(path, self.text(path, missing).read(complete=True))

    def begin(self, path: Path, missing: MissingColumns) -> None:
        """Read the first rows of a file; raise if they cannot be read."""
        if self.is_binary:
            next(self._slices(path, _parquet(path, self.schema)), None)
        else:
            text = self.text(path, missing)
            for _ in self._slices(path, text.read(not self.live, BEGIN_BYTES)):
                if text.read_to >= BEGIN_BYTES:
                    break

    def missing_columns(self) -> MissingColumns:
        """Return the collector of the columns that no JSON object of any file has."""
        return MissingColumns(self.where, self.schema)

    def read_once(self, path: Path) -> Iterator[Chunk]:
        """Yield the rows of a file that is read only once; raise if it is not complete."""
        if self.live and not self.is_binary and (line := unfinished(path)):
            raise BadInput(
                f"cannot read {path}: its last line, {line!r}, has no end of line, so the file may"
                " still be written. On Spark a file of a followed folder is read once: write it"
                " elsewhere, and move it in when it is finished"
            )
        return self.read(path)

    @property
    def is_binary(self) -> bool:
        """True if files are complete once they have their name, not written line by line."""
        return self.format == "parquet"

    def read_written(self, text: TextFile) -> Iterator[Chunk]:
        """Yield the rows of a file that may still grow, up to its last end of line."""
        return self._slices(text.path, text.read(complete=False))

    def _slices(self, path: Path, chunks: Iterator[Chunk]) -> Iterator[Chunk]:
        try:
            for chunk in chunks:
                yield from chunk.iter_slices(ROWS_AT_ONCE)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise BadInput(cannot_read(path, error)) from None

    def open(self) -> FilesReader:
        """Return a reader at the first file."""
        self.check()
        return FilesReader(self)


@dataclass
class _GrowingFile:
    """A text file that may still be written: its inode, and its size at the last look."""

    text: TextFile
    identity: int
    size: int = 0
    since: float = 0.0
    """The moment it last grew, by the monotonic clock in seconds; 0 after a warning of its last
    line."""


class FilesReader(Reader):
    """Reads files once; a thread looks for files and lines that are added."""

    def __init__(self, files: Files):
        self._files = files
        self._missing = files.missing_columns()
        self._waiting = deque(files.listed())
        self._seen = set(self._waiting)
        self._growing: dict[Path, _GrowingFile] = {}
        self._reading: Iterator[Chunk] | None = None
        self._rest: Chunk | None = None
        self._lock = threading.Lock()
        self._over = threading.Event()

    def release(self) -> None:
        """Stop looking for new files."""
        self._over.set()

    @property
    def ended(self) -> bool:
        """True if all files were read and none can come."""
        return not self._files.live and not self._more

    def due(self, rows: int = 1) -> int | None:
        """Return ``AT_ONCE`` if there is anything to read, else None."""
        return AT_ONCE if self._more else None

    @property
    def _more(self) -> bool:
        with self._lock:
            return bool(self._rest is not None or self._reading or self._waiting)

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return the next rows of a file; None if there are none."""
        rows = self._rest if self._rest is not None else self._next()
        if rows is None:
            if not self._files.live:
                self._missing.warn()
            return None
        self._rest = rows.slice(limit) if rows.height > limit else None
        return rows.head(limit)

    def _next(self) -> Chunk | None:
        while True:
            if self._reading is None:
                with self._lock:
                    if not self._waiting:
                        return None
                    path = self._waiting.popleft()
                self._reading = self._rows(path)
            for rows in self._reading:
                if rows.height:
                    return rows
            self._reading = None

    def _rows(self, path: Path) -> Iterator[Chunk]:
        """Yield the rows of a file, or those that were added to it."""
        if not self._files.live or self._files.is_binary:
            return self._files.read(path, self._missing)
        growing = self._growing.get(path)
        if growing is None:
            try:
                with path.open("rb") as file:
                    if file.read(4).startswith(COMPRESSED):
                        return self._files.read(path, self._missing)
                about = path.stat()
            except OSError as error:
                raise BadInput(cannot_read(path, error)) from None
            growing = _GrowingFile(
                self._files.text(path, self._missing), about.st_ino, about.st_size, time.monotonic()
            )
            with self._lock:
                self._growing[path] = growing
        return self._files.read_written(growing.text)

    def notify(self, wake: Callable[[], None]) -> None:
        """Start to look for added files and lines; call ``wake``, from a thread, for any found."""
        if self._files.live:
            threading.Thread(target=self._look, args=(wake,), daemon=True).start()

    def _look(self, wake: Callable[[], None]) -> None:
        while not self._over.wait(POLL_SECONDS):
            new = [path for path in self._files.listed() if path not in self._seen]
            new.sort(key=_changed)
            with self._lock:
                growing = list(self._growing.items())
                there = set(self._waiting)
            grown = [path for path, each in growing if path not in there and _has_grown(path, each)]
            if new or grown:
                with self._lock:
                    self._seen.update(new)
                    self._waiting.extend([*grown, *new])
                wake()


def _has_grown(path: Path, growing: _GrowingFile) -> bool:
    """Return true if a file has more to read; warn once of a last line that has no end."""
    try:
        about = path.stat()
    except OSError:  # the file is gone; its rows so far were read
        return False
    if about.st_ino != growing.identity or about.st_size == growing.text.read_to:
        return False
    if about.st_size != growing.size:
        growing.size, growing.since = about.st_size, time.monotonic()
        return True
    if growing.since and time.monotonic() - growing.since > UNFINISHED_SECONDS:
        growing.since = 0.0
        warnings.warn(
            f"{path} ends in the middle of a line: its last line has no end of line and was not"
            " read. It is read when the end of line is written",
            StreamWarning,
            stacklevel=2,
        )
    return False


def _parquet_columns(path: Path) -> Schema:
    try:
        return pl.read_parquet_schema(path)
    except (OSError, pl.exceptions.PolarsError) as error:
        raise QueryError(cannot_read(path, error)) from None


def _parquet(path: Path, schema: Schema) -> Iterator[Chunk]:
    """Yield the rows of a Parquet file in the declared types; raise if a value would be altered."""
    rows = pl.scan_parquet(path)
    have = rows.collect_schema()
    for name, dtype in schema.items():
        if name not in have:
            raise BadInput(f"{path}: {unknown_name('column', name, have)}")
        if not same_kind(have[name], dtype):
            raise BadInput(
                f"{path}: column {name} is {type_name(have[name])} in the file and was declared"
                f" {type_name(dtype)}; declare it as it is, and CAST it in the query"
            )
    first = 1
    for chunk in rows.select(list(schema)).collect_batches(chunk_size=ROWS_AT_ONCE):
        values = read_as(chunk, schema)
        wrong = first_altered(chunk, values)
        if wrong is not None:
            raise BadInput(f"cannot read {path}: row {first + wrong[0]}, {wrong[1]}")
        first += chunk.height
        yield values


def refuse_unwritable_types(format_: str, schema: Schema) -> None:
    """Raise if a column has a type whose values a file of this format cannot hold."""
    types = {"csv": (pl.Binary, pl.List, pl.Struct), "json": (pl.Binary,)}.get(format_, ())
    for name, dtype in schema.items():
        if isinstance(dtype, types):
            raise QueryError(
                f"column {name!r} is {type_name(dtype)}, which {format_.upper()} cannot hold;"
                " declare it as STRING"
            )


def _csv_options(format_: str, options: Mapping[str, str]) -> tuple[bool, str]:
    """Return the value of ``header`` and the separator."""
    known = ("header", "sep") if format_ == "csv" else ()
    for name in options:
        if name not in known:
            raise OptionError(unknown_name(f"option of {format_} files", name, known))
    header, separator = options.get("header", "true").lower(), options.get("sep", ",")
    if header not in ("true", "false"):
        raise OptionError(f"header is 'true' or 'false', not {header!r}")
    if len(separator.encode()) != 1:
        raise OptionError(f"sep is one character, not {separator!r}")
    return header == "true", separator


def _is_pattern(path: str) -> bool:
    return any(sign in path for sign in "*?[")


def _fixed(pattern: Path) -> Path:
    """Return the folder that all files of a pattern are in."""
    return next(each for each in (pattern, *pattern.parents) if not _is_pattern(str(each)))


def _hidden(path: Path, folder: Path) -> bool:
    inside = path.relative_to(folder).parts if folder in path.parents else (path.name,)
    return any(part[0] in "._" for part in inside)


def _by_name(path: Path) -> tuple[list[list[str | int]], Path]:
    """Return the key that orders files by name; numbers in names count as numbers."""
    parts = [enumerate(re.split("([0-9]+)", part)) for part in path.parts]  # each second a number
    return [[int(bit) if at % 2 else bit for at, bit in part] for part in parts], path


def _changed(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except OSError:  # the file is gone; reading it gives the error
        return 0
