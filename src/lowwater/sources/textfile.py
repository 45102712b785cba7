"""A file of CSV or JSON lines, read in pieces of whole records, as far as it is written.

What follows the last end of line is a record too if the file is complete; in a file that may still
be written it is none yet, and reading goes on there when the file has grown.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import polars as pl

from lowwater.errors import BadInput, unknown_name
from lowwater.sources.faults import PACKED, no_text
from lowwater.sources.noticing import Noticed
from lowwater.sources.records import BadRecord, Layout, objects, records
from lowwater.sources.text import Schema
from lowwater.stream.element import Chunk

PIECE = 1 << 24
"""Bytes that are read at once."""
LINES_AT_ONCE = 65_536
BOM = b"\xef\xbb\xbf"


class TextFile:
    """One file, and how far it has been read."""

    def __init__(
        self,
        path: Path,
        format_: str,
        schema: Schema,
        header: bool = True,
        separator: str = ",",
        noticed: Noticed | None = None,
    ):
        self._noticed = noticed
        self.path, self._schema, self._header = path, schema, header
        self._separator = separator
        self._csv = format_ == "csv"
        self._layout: Layout | None = None
        if self._csv and not header:
            self._layout = Layout(tuple(schema), separator)
        self.read_to = 0
        """Bytes that have been read."""
        self._line = 1

    def read(self, complete: bool, piece_bytes: int | None = None) -> Iterator[Chunk]:
        """The rows of what has not been read yet; ``complete`` if no more will be written."""
        if self.read_to == 0 and (what := no_text(self.path)):
            raise BadInput(f"cannot read {self.path}: {what}")
        for piece in self._pieces(complete, piece_bytes or PIECE):
            text = piece
            if self.read_to == 0:
                text = text.removeprefix(BOM)
            if self._csv and self._layout is None:
                text = self._take_header(text)
            try:
                if self._layout is not None:
                    yield records(text, self._schema, self._layout)
                elif not self._csv:
                    rows = objects(text, self._schema)
                    if self._noticed is not None:
                        self._noticed.take(text, rows)
                    yield rows
            except BadRecord as bad:
                where = "" if bad.line is None else f"line {self._line + bad.line}, "
                raise BadInput(f"cannot read {self.path}: {where}{bad.why}") from None
            self.read_to += len(piece)
            self._line += text.count(b"\n")

    def _take_header(self, text: bytes) -> bytes:
        """Learn the columns; what is left are records."""
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
        self._layout = Layout(names, self._separator)
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
            if file.read(4).startswith(PACKED):
                for some in pl.scan_lines(self.path).collect_batches(chunk_size=LINES_AT_ONCE):
                    yield "".join(f"{line}\n" for line in some["line"]).encode()
                return
            file.seek(self.read_to)
            while block := file.read(size):
                yield block


def _first_end(text: bytes) -> int:
    """The end of the first line that is not within quotes."""
    at = 0
    while (end := text.find(b"\n", at) + 1) > 0:
        if text.count(b'"', 0, end) % 2 == 0:
            return end
        at = end
    return len(text)


def _last_end(text: bytes, quotes: bool) -> int:
    """The end of the last line that is whole; in CSV an end of line within quotes is none."""
    end = text.rfind(b"\n") + 1
    if not quotes:
        return end
    odd = text.count(b'"', 0, end) % 2
    while end and odd:
        before = text.rfind(b"\n", 0, end - 1) + 1
        odd ^= text.count(b'"', before, end) % 2
        end = before
    return end
