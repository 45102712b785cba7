"""Reads CSV records and JSON objects, one a line, as rows.

A record has as many values as there are columns, and each is a value of its column's type; an empty
line is no record. A JSON object may leave columns out, which are null. A column that none of the
first thousand objects has (or none at all, if there are fewer) was most likely mistyped; a warning
names it, and the columns that are there.

Where text cannot be read as declared, a slow search finds the first line at fault and the reason.
"""

from __future__ import annotations

import csv
import json
import re
import warnings
from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.errors import StreamWarning, unknown_name
from lowwater.sources.values import (
    Schema,
    as_declared,
    as_json,
    as_written,
    digits_of,
    is_there,
    scan_csv,
    type_name,
)
from lowwater.stream.element import Chunk

MAYBE_BLANK = (b"\n", b"\r", b" ", b"\t")
"""The first bytes of an empty line."""
BLANK = re.compile(rb"(?m)^[ \t]*\r?\n")
SHOWN = 60
"""Characters of a value that error messages show."""
BEGINNING_BYTES = 4_096
"""Bytes of a file by which it is recognised as text."""
COMPRESSED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""First bytes of files of gzip and Zstandard, which Polars decompresses."""
ENOUGH_OBJECTS = 1_000
"""Number of objects after which a column that none of them has is reported."""


class BadRecord(Exception):
    """A record that cannot be read: its line, from 0 (None if unknown), and the reason."""

    def __init__(self, line: int | None, why: str):
        self.line, self.why = line, why
        super().__init__(line, why)


@dataclass(frozen=True)
class CsvLayout:
    """The layout of CSV records: the columns in their order, and the separator."""

    names: tuple[str, ...]
    separator: str = ","


def read_records(text: bytes, schema: Schema, layout: CsvLayout) -> Chunk:
    """Return CSV records as rows; raise :class:`BadRecord` if one cannot be read."""
    some = _without_blank_lines(text)
    if not some.strip():
        return pl.DataFrame(schema=schema)
    written = as_written(schema)
    types = {name: written.get(name, pl.String()) for name in layout.names}
    last = layout.names[-1]
    try:
        # all columns are read: otherwise Polars overlooks a record that is too long
        found = scan_csv(some, types, False, layout.separator).collect()
    except pl.exceptions.PolarsError as error:
        raise _bad_record(text, some, schema, layout, error) from None
    values = found.select(as_declared(schema, written))
    if _differ(found, values, schema, written):
        raise _bad_record(text, some, schema, layout, None)
    if found[last].null_count() and not _all_complete(some, layout):
        raise _bad_record(text, some, schema, layout, None)
    return values


def read_objects(text: bytes, schema: Schema) -> Chunk:
    """Return JSON objects as rows; raise :class:`BadRecord` if one cannot be read."""
    if not text.strip():
        return pl.DataFrame(schema=schema)
    try:
        found = _read(text, schema)
    except (pl.exceptions.PolarsError, ValueError):
        found = None
    if found is not None:
        return found
    lines = text.split(b"\n")
    at = _first_bad(lines, lambda part: _read(part, schema) is not None)
    if at == len(lines):
        raise BadRecord(None, "no JSON objects")
    why = _bad_object(lines[at], schema, lambda part, some: _read(part, some) is not None)
    raise BadRecord(at, why or "no JSON object with these columns")


def _read(text: bytes, schema: Schema) -> Chunk | None:
    """Return objects as rows; None if a value is not of its column's type."""
    if not text.strip():
        return pl.DataFrame(schema=schema)
    written = as_json(schema)
    exact = [name for name, dtype in schema.items() if isinstance(dtype, pl.Decimal)]
    read = {name: dtype for name, dtype in written.items() if name not in exact}
    found = pl.read_ndjson(text, schema=read or {"": pl.String()})
    if exact:
        found = found.with_columns(_digits(text, exact))
    values = found.select(as_declared(schema, written))
    return None if _differ(found, values, schema, written) else values


def _digits(text: bytes, names: list[str]) -> list[pl.Series]:
    """Return numbers with the digits they are written with; Polars reads them as floats."""
    lines = (line for line in text.split(b"\n") if line.strip())
    read = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    columns = ([_spelled(each.get(name)) for each in read] for name in names)
    return [pl.Series(name, each, pl.String) for name, each in zip(names, columns, strict=True)]


def _spelled(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else f"not a number: {value}"


def _differ(found: Chunk, values: Chunk, schema: Schema, written: Schema) -> bool:
    """Return true if a written value is none of its column's type."""
    for name, dtype in schema.items():
        if values[name].null_count():
            there = found.select(is_there(name, dtype, written[name])).to_series()
            if bool((there & values[name].is_null()).any()):
                return True
    return False


# ---- lines -------------------------------------------------------------------------------------


def _without_blank_lines(text: bytes) -> bytes:
    if text[:1] not in MAYBE_BLANK and not any(b"\n" + each in text for each in MAYBE_BLANK):
        return text
    if b'"' not in text:
        return BLANK.sub(b"", text)
    kept, inside = [], False
    for line in text.splitlines(keepends=True):
        if inside or line.strip():
            kept.append(line)
        inside ^= line.count(b'"') % 2 == 1
    return b"".join(kept)


def _all_complete(text: bytes, layout: CsvLayout) -> bool:
    """Return true if every record has as many values as there are columns."""
    count = len(layout.names)
    if b'"' in text:
        try:
            return all(len(record) == count for _, record in _split(text, layout))
        except (csv.Error, UnicodeDecodeError):
            return True  # Polars could read it
    separator = layout.separator.encode()
    return all(line.count(separator) == count - 1 for line in text.splitlines())


def _split(text: bytes, layout: CsvLayout) -> Iterator[tuple[int, list[str]]]:
    """Yield the records of a text, each with the line it begins in, from 0."""
    reader = csv.reader(StringIO(text.decode(), newline=""), delimiter=layout.separator)
    begin = 0
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            yield begin, record
        begin = reader.line_num


# ---- faults ------------------------------------------------------------------------------------


def _bad_record(
    text: bytes, some: bytes, schema: Schema, layout: CsvLayout, error: Exception | None
) -> BadRecord:
    """Return the first record that cannot be read, and the reason."""
    try:
        found = _bad_value(some, schema, layout)
        for row, (line, record) in enumerate(_split(text, layout)):
            if found is not None and row == found[0]:
                return BadRecord(line, found[1])
            if len(record) != len(layout.names):
                return BadRecord(line, _wrong_count(len(record), layout.names))
    except UnicodeDecodeError:
        return BadRecord(_not_utf8(text), "not UTF-8")
    except csv.Error:
        pass
    return BadRecord(None, str(error).splitlines()[0] if error else "a record cannot be read")


def _bad_value(text: bytes, schema: Schema, layout: CsvLayout) -> tuple[int, str] | None:
    """Return the row, from 0, of the first value its column cannot have, and a phrase about it.

    Such a value is not null if everything is read as text, and null if it is read as declared.
    """
    written = as_written(schema)
    names, as_text = list(schema), dict.fromkeys(layout.names, pl.String())
    types = {name: written.get(name, pl.String()) for name in layout.names}
    try:
        texts, found = (
            scan_csv(text, each, False, layout.separator, strict=False).select(names).collect()
            for each in (as_text, types)
        )
    except pl.exceptions.PolarsError:
        return None
    values = found.select(as_declared(schema, written))
    first = None
    for name, dtype in schema.items():
        if dtype == pl.String:
            continue
        there = texts[name].is_not_null()
        if written[name] != pl.String or dtype.is_float():
            there = (texts[name].str.strip_chars() != "").fill_null(False)
        bad = there & values[name].is_null()
        at = bad.arg_max()
        if at is not None and bad[at] and (first is None or at < first[0]):
            first = at, _no_value(name, texts[name][at], dtype)
    return first


def why_not_text(path: Path) -> str | None:
    """Return why a file is not text, as a phrase, by its first bytes; None if it is text."""
    with path.open("rb") as file:
        begin = file.read(BEGINNING_BYTES)
    if begin.startswith(b"PAR1"):
        return "it is a Parquet file"
    return "it is not a text" if b"\0" in begin and not begin.startswith(COMPRESSED) else None


def _first_bad(lines: Sequence[bytes], reads: Callable[[bytes], bool]) -> int:
    """Return the first line, from 0, that ``reads`` cannot read; the number of lines if none."""

    def fails(count: int) -> bool:
        return not _can(reads, b"\n".join(lines[:count]))

    counts = range(1, len(lines) + 1)
    return bisect_left(counts, True, key=fails) if fails(len(lines)) else len(lines)


def _can(reads: Callable[[bytes], bool], text: bytes) -> bool:
    try:
        return reads(text)
    except (pl.exceptions.PolarsError, ValueError):
        return False


def _bad_object(line: bytes, schema: Schema, reads: Callable[[bytes, Schema], bool]) -> str | None:
    """Return why a line is no JSON object with these columns; None if it is one."""
    if not _can(lambda text: reads(text, {}), line):
        return "no JSON object"
    for name, dtype in schema.items():
        if not _can(lambda text, only={name: dtype}: reads(text, only), line):  # type: ignore[misc]
            return _no_value(name, json.loads(line).get(name), dtype)
    return None


def _no_value(column: str, value: Any, dtype: pl.DataType) -> str:
    """Return a phrase for a value that is none of its column's type, with the reason if needed."""
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    cut = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    why = ""
    if isinstance(dtype, pl.Datetime) and digits_of(str(value)) > digits_of(dtype):
        why = f", which has {digits_of(dtype)} digits of a second"
    return f"column {column}: {cut} is no {type_name(dtype)}{why}"


def _wrong_count(count: int, names: Sequence[str]) -> str:
    """Return a phrase for a record with too many values, or too few."""
    many = "many" if count > len(names) else "few"
    columns = "column" if len(names) == 1 else "columns"
    return f"too {many} values: {count} for {len(names)} {columns}"


def _not_utf8(text: bytes) -> int | None:
    """Return the first line, from 0, that is no UTF-8; None if there is none."""
    for number, line in enumerate(text.split(b"\n")):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return None


# ---- columns that never come --------------------------------------------------------------------


class MissingColumns:
    """The declared columns that no JSON object of a stream has had so far.

    ``where`` names the stream in warnings; ``schema`` is the declared columns.
    """

    def __init__(self, where: str, schema: Mapping[str, pl.DataType]):
        self._where, self._missed = where, list(schema)
        self._keys: set[str] = set()
        self._objects = 0

    def take(self, text: bytes, rows: Chunk) -> None:
        """Look for the columns in some objects, given as text and as rows."""
        if not self._missed:
            return
        self._missed = [name for name in self._missed if rows[name].null_count() == rows.height]
        if self._missed:
            for line in text.split(b"\n", ENOUGH_OBJECTS)[:ENOUGH_OBJECTS]:
                if line.strip():
                    self._keys.update(json.loads(line))
            self._missed = [name for name in self._missed if name not in self._keys]
        self._objects += rows.height
        if self._objects >= ENOUGH_OBJECTS:
            self.warn()

    def take_record(self) -> None:
        """Take a CSV record, which has all columns."""
        self._missed = []

    def messages(self) -> list[str]:
        """Return a message for each column that no object has had."""
        if not self._objects:
            return []
        return [
            f"{self._where}: {unknown_name('column', name, self._keys)} It was declared, and none"
            f" of the {self._objects:,} objects read so far has it; where it is left out it is null"
            for name in self._missed
        ]

    def warn(self) -> None:
        """Warn of the columns that no object has had; only the first call does."""
        messages, self._missed = self.messages(), []
        for each in messages:
            warnings.warn(each, StreamWarning, stacklevel=2)
