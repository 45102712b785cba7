"""A file of CSV or JSON lines, read in pieces of whole records, and the types of its columns.

Text after the last end of line is a record if the file is complete. In a file that may still be
written it is not read yet; reading continues there when the file has grown.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lowwater.errors import BadInput, QueryError, unknown_name
from lowwater.sources.records import (
    COMPRESSED,
    SHOWN,
    BadRecord,
    CsvLayout,
    MissingColumns,
    read_objects,
    read_records,
    why_not_text,
)
from lowwater.sources.values import ZONED, Schema, moments
from lowwater.stream.element import Chunk

PIECE = 1 << 24
"""Number of bytes that are read at once."""
LINES_AT_ONCE = 65_536
BOM = b"\xef\xbb\xbf"
TYPED_BY = 10_000
"""Number of rows of a text file by which the types of undeclared columns are found."""


class TextFile:
    """A text file, and the position up to which it has been read.

    ``format_`` is "csv" or "json"; ``schema`` the columns to return; ``header`` is true if a CSV
    file has a header. ``missing`` collects the columns that no JSON object has.
    """

    def __init__(
        self,
        path: Path,
        format_: str,
        schema: Schema,
        header: bool = True,
        separator: str = ",",
        missing: MissingColumns | None = None,
    ):
        self._missing = missing
        self.path, self._schema = path, schema
        self._separator = separator
        self._csv = format_ == "csv"
        self._layout: CsvLayout | None = None
        if self._csv and not header:
            self._layout = CsvLayout(tuple(schema), separator)
        self.read_to = 0
        """Number of bytes that have been read."""
        self._line = 1

    def read(self, complete: bool, piece_bytes: int | None = None) -> Iterator[Chunk]:
        """Yield the rows that have not been read yet.

        ``complete`` is true if no more will be written to the file.
        """
        if self.read_to == 0 and (what := why_not_text(self.path)):
            raise BadInput(f"cannot read {self.path}: {what}")
        for piece in self._pieces(complete, piece_bytes or PIECE):
            text = piece
            if self.read_to == 0:
                text = text.removeprefix(BOM)
            if self._csv and self._layout is None:
                text = self._take_header(text)
            try:
                if self._layout is not None:
                    yield read_records(text, self._schema, self._layout)
                elif not self._csv:
                    rows = read_objects(text, self._schema)
                    if self._missing is not None:
                        self._missing.take(text, rows)
                    yield rows
            except BadRecord as bad:
                where = "" if bad.line is None else f"line {self._line + bad.line}, "
                raise BadInput(f"cannot read {self.path}: {where}{bad.why}") from None
            self.read_to += len(piece)
            self._line += text.count(b"\n")

    def _take_header(self, text: bytes) -> bytes:
        """Read the columns from the header, and return the records after it."""
        header, rest = b"", text
        while rest and not header.strip():
            end = _first_end(rest)
            header, rest = rest[:end], rest[end:]
            self._line += header.count(b"\n")
        if not header.strip():
            return rest
        try:
            lazy = pl.scan_csv(header, separator=self._separator, infer_schema=False)
            names = tuple(lazy.collect_schema().names())
        except pl.exceptions.PolarsError as error:
            said = str(error).splitlines()[0]
            raise BadInput(f"cannot read {self.path}: its header: {said}") from None
        for name in self._schema:
            if name not in names:
                raise BadInput(f"{self.path}: {unknown_name('column', name, names)}")
        self._layout = CsvLayout(names, self._separator)
        return rest

    def _pieces(self, complete: bool, size: int) -> Iterator[bytes]:
        rest = b""
        for block in self._blocks(size):
            text = rest + block
            cut = _last_end(text, self._csv)
            if cut:
                yield text[:cut]
            rest = text[cut:]
        if complete and rest:
            yield rest

    def _blocks(self, size: int) -> Iterator[bytes]:
        with self.path.open("rb") as file:
            if file.read(4).startswith(COMPRESSED):
                for some in pl.scan_lines(self.path).collect_batches(chunk_size=LINES_AT_ONCE):
                    yield "".join(f"{line}\n" for line in some["line"]).encode()
                return
            file.seek(self.read_to)
            while block := file.read(size):
                yield block


def _first_end(text: bytes) -> int:
    """Return the position after the first end of line that is not within quotes."""
    at = 0
    while (end := text.find(b"\n", at) + 1) > 0:
        if text.count(b'"', 0, end) % 2 == 0:
            return end
        at = end
    return len(text)


def _last_end(text: bytes, quotes: bool) -> int:
    """Return the position after the last end of line; with ``quotes``, not one within quotes."""
    end = text.rfind(b"\n") + 1
    if not quotes:
        return end
    odd = text.count(b'"', 0, end) % 2
    while end and odd:
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd ^= text.count(b'"', before, end) % 2
        end = before
    return end


def unfinished(path: Path) -> str:
    """Return the last line of a text if it has no end of line; empty if it has one."""
    with path.open("rb") as file:
        if file.read(4).startswith(COMPRESSED):
            return ""
        file.seek(-min(path.stat().st_size, SHOWN), os.SEEK_END)
        end = file.read(SHOWN)
    return end.rpartition(b"\n")[2].strip().decode(errors="replace")


def cannot_read(path: Path, error: Exception) -> str:
    """Return the message about a file that cannot be read."""
    said = error.strerror if isinstance(error, OSError) else None
    return f"cannot read {path}: {said or str(error).splitlines()[0]}"


# ---- the types of columns ----------------------------------------------------------------------


def columns_of(format_: str, path: Path, separator: str = ",") -> dict[str, pl.DataType]:
    """Return the columns of a text file, with types found from its first rows."""
    try:
        if what := why_not_text(path):
            raise QueryError(f"cannot read {path}: {what}")
        if format_ == "csv":
            frame = pl.read_csv(
                path,
                separator=separator,
                try_parse_dates=True,
                n_rows=TYPED_BY,
                infer_schema_length=TYPED_BY,
            )
        else:
            frame = pl.scan_ndjson(path).head(TYPED_BY).collect()
    except (OSError, pl.exceptions.PolarsError) as error:
        raise QueryError(_fault(format_, path, separator, error)) from None
    texts = [name for name, dtype in frame.schema.items() if dtype == pl.String]
    return dict(frame.with_columns(_perhaps_time(frame[name]) for name in texts).schema)


def _fault(format_: str, path: Path, separator: str, error: Exception) -> str:
    """Return a message with the first line that cannot be read, if there is one."""
    try:
        deque(TextFile(path, format_, {}, True, separator).read(complete=True), maxlen=0)
    except BadInput as found:
        return str(found)
    except (OSError, pl.exceptions.PolarsError):
        pass
    return cannot_read(path, error)


def _perhaps_time(texts: pl.Series) -> pl.Series:
    """Return texts as times if every one of them is a time; else as they are."""
    if texts.null_count() == len(texts):
        return texts
    try:
        times = moments(texts)
    except pl.exceptions.PolarsError:
        return texts
    zoned = texts.drop_nulls().str.contains(ZONED).all()
    return times if zoned else times.dt.replace_time_zone(None)
