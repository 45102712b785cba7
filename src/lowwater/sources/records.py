"""Pieces of a text as rows: records of CSV, or JSON objects, one a line.

A record has as many values as there are columns, and each is a value of its column's type; an empty
line is no record. A JSON object may leave columns out, which are null.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO

import polars as pl

from lowwater.sources.faults import bad_object, first_bad, miscounted, no_value, not_utf8
from lowwater.sources.text import Schema, as_declared, as_json, as_written, is_there, scan_csv
from lowwater.stream.element import Chunk

MAYBE_BLANK = (b"\n", b"\r", b" ", b"\t")
"""How a line that is empty begins."""
BLANK = re.compile(rb"(?m)^[ \t]*\r?\n")


class BadRecord(Exception):
    """A record that cannot be read: its line, counted from 0, and why."""

    def __init__(self, line: int | None, why: str):
        self.line, self.why = line, why
        super().__init__(line, why)


@dataclass(frozen=True)
class Layout:
    """How records of CSV are laid out: the columns in their order, and what separates them."""

    names: tuple[str, ...]
    separator: str = ","


def records(text: bytes, schema: Schema, layout: Layout) -> Chunk:
    """Records of CSV as rows."""
    some = _without_blank_lines(text)
    if not some.strip():
        return pl.DataFrame(schema=schema)
    written = as_written(schema)
    types = {name: written.get(name, pl.String()) for name in layout.names}
    last = layout.names[-1]
    try:
        # all columns: a record that is too long is overlooked where its end is not read
        found = scan_csv(some, types, False, layout.separator).collect()
    except pl.exceptions.PolarsError as error:
        raise _bad_record(text, some, schema, layout, error) from None
    values = found.select(as_declared(schema, written))
    if _differ(found, values, schema, written):
        raise _bad_record(text, some, schema, layout, None)
    if found[last].null_count() and not _all_complete(some, layout):
        raise _bad_record(text, some, schema, layout, None)
    return values


def objects(text: bytes, schema: Schema) -> Chunk:
    """JSON objects as rows; what an object leaves out is null."""
    if not text.strip():
        return pl.DataFrame(schema=schema)
    try:
        found = _read(text, schema)
    except (pl.exceptions.PolarsError, ValueError):
        found = None
    if found is not None:
        return found
    lines = text.split(b"\n")
    at = first_bad(lines, lambda part: _read(part, schema) is not None)
    if at == len(lines):
        raise BadRecord(None, "no JSON objects")
    why = bad_object(lines[at], schema, lambda part, some: _read(part, some) is not None)
    raise BadRecord(at, why or "no JSON object with these columns")


def _read(text: bytes, schema: Schema) -> Chunk | None:
    """Objects as rows; None if a value is not of its column's type."""
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
    """Numbers as they are written, digit by digit; Polars reads them as floats."""
    lines = (line for line in text.split(b"\n") if line.strip())
    read = [json.loads(line, parse_float=str, parse_int=str) for line in lines]
    columns = ([_spelled(each.get(name)) for each in read] for name in names)
    return [pl.Series(name, each, pl.String) for name, each in zip(names, columns, strict=True)]


def _spelled(value: object) -> str | None:
    return value if value is None or isinstance(value, str) else f"not a number: {value}"


def _differ(found: Chunk, values: Chunk, schema: Schema, written: Schema) -> bool:
    """Whether something is written that is no value of its column's type."""
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


def _all_complete(text: bytes, layout: Layout) -> bool:
    """Whether every record has as many values as there are columns."""
    count = len(layout.names)
    if b'"' in text:
        try:
            return all(len(record) == count for _, record in _split(text, layout))
        except (csv.Error, UnicodeDecodeError):
            return True  # Polars could read it
    separator = layout.separator.encode()
    return all(line.count(separator) == count - 1 for line in text.splitlines())


def _split(text: bytes, layout: Layout) -> Iterator[tuple[int, list[str]]]:
    """The records of a text, each with the line it begins in, counted from 0."""
    reader = csv.reader(StringIO(text.decode(), newline=""), delimiter=layout.separator)
    begin = 0
    for record in reader:
        if record and (len(record) > 1 or record[0].strip()):
            yield begin, record
        begin = reader.line_num


# ---- what is wrong -----------------------------------------------------------------------------


def _bad_record(
    text: bytes, some: bytes, schema: Schema, layout: Layout, error: Exception | None
) -> BadRecord:
    """The first record that cannot be read, and why."""
    try:
        found = _bad_value(some, schema, layout)
        for row, (line, record) in enumerate(_split(text, layout)):
            if found is not None and row == found[0]:
                return BadRecord(line, found[1])
            if len(record) != len(layout.names):
                return BadRecord(line, miscounted(len(record), layout.names))
    except UnicodeDecodeError:
        return BadRecord(not_utf8(text), "not UTF-8")
    except csv.Error:
        pass
    return BadRecord(None, str(error).splitlines()[0] if error else "a record cannot be read")


def _bad_value(text: bytes, schema: Schema, layout: Layout) -> tuple[int, str] | None:
    """The first value that its column cannot have: its row, counted from 0, and what to say.

    It is there if everything is read as text, and is not if everything is read as declared.
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
            first = at, no_value(name, texts[name][at], dtype)
    return first
