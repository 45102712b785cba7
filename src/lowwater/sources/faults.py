"""Where a text cannot be read, and why: the slow search, once the fast way has failed."""

from __future__ import annotations

import csv
import json
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.sources.text import (
    Schema,
    as_declared,
    as_written,
    headed,
    read_objects,
    scan_csv,
    type_name,
)

SHOWN = 60
"""Characters of a value that are shown."""
LOOKED_AT = 4_096
"""Bytes of a file by which it is told whether it is a text."""
LINES_AT_ONCE = 65_536
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How files of gzip and Zstandard begin, which Polars unpacks."""


def fault(
    format_: str, path: Path, schema: Schema, header: bool = True, separator: str = ","
) -> str | None:
    """What is wrong with a text file, and in which line; None if that cannot be told."""
    if format_ == "parquet":
        return None
    try:
        if what := no_text(path):
            return what
        if format_ == "json":
            return _bad_object_in(path, schema)
        bad = _bad_value_in(path, schema, header, separator)
        return bad or _miscounted_in(path, None if header else len(schema), separator)
    except (pl.exceptions.PolarsError, csv.Error):
        return _undecodable(path)
    except OSError:
        return None


def no_text(path: Path) -> str | None:
    """What a file is instead of a text, judged by how it begins."""
    with path.open("rb") as file:
        begin = file.read(LOOKED_AT)
    if begin.startswith(b"PAR1"):
        return "it is a Parquet file"
    return "it is not a text" if b"\0" in begin and not begin.startswith(PACKED) else None


def first_bad(lines: Sequence[bytes], read: Callable[[bytes], object]) -> int:
    """Where the first line is that ``read`` cannot read, counted from 0; their number if none."""

    def fails(count: int) -> bool:
        return _fails(read, b"\n".join(lines[:count]))

    counts = range(1, len(lines) + 1)
    return bisect_left(counts, True, key=fails) if fails(len(lines)) else len(lines)


def _fails(read: Callable[[bytes], object], text: bytes) -> bool:
    try:
        read(text)
    except pl.exceptions.PolarsError:
        return True
    return False


def _no_value(column: str, value: Any, dtype: pl.DataType) -> str:
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    cut = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    return f"column {column}: {cut} is no {type_name(dtype)}"


def _undecodable(path: Path) -> str | None:
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return None if line.startswith(PACKED) else f"line {number}, not UTF-8"
    return None


def _lines(path: Path) -> Iterator[list[str]]:
    """The lines of a text, many at a time."""
    for rows in pl.scan_lines(path).collect_batches(chunk_size=LINES_AT_ONCE):
        yield rows["line"].to_list()


# ---- CSV ---------------------------------------------------------------------------------------


def bad_record(line: bytes, schema: Schema) -> str | None:
    """Why a line is no CSV row of these columns; None if that cannot be told."""
    found = _bad_value(headed(line, schema), schema, True, ",")
    if found is not None:
        return found[1]
    try:
        [record] = csv.reader([line.decode()])
    except (csv.Error, UnicodeDecodeError):
        return None
    return _miscounted(record, len(schema)) if len(record) > len(schema) else None


def _bad_value_in(path: Path, schema: Schema, header: bool, separator: str) -> str | None:
    found = _bad_value(path, schema, header, separator)
    if found is None:
        return None
    row, said = found
    rows = scan_csv(path, as_written(schema), header, separator, strict=False)
    one_a_line = _count(rows) + header == _count(pl.scan_lines(path))
    return f"line {row + header}, {said}" if one_a_line else f"row {row}, {said}"


def _count(rows: pl.LazyFrame) -> int:
    count: int = rows.select(pl.len()).collect().item()
    return count


def _bad_value(
    source: Path | bytes, schema: Schema, header: bool, separator: str
) -> tuple[int, str] | None:
    """The first value that its column cannot have: its row, counted from 1, and what to say.

    It is there if everything is read as text, and is not if everything is read as declared.
    """
    types = {name: dtype for name, dtype in schema.items() if dtype != pl.String}
    as_text = dict.fromkeys(schema, pl.String())
    texts = scan_csv(source, as_text, header, separator, strict=False).select(list(types))
    rows = scan_csv(source, as_written(schema), header, separator, strict=False)
    values = rows.select(as_declared(types, strict=False))
    both = [texts.select(pl.all().name.prefix("text ")), values.select(pl.all().name.prefix("is "))]
    bad = {f"bad {name}": _is_bad(name, dtype) for name, dtype in as_written(types).items()}
    found = pl.concat(both, how="horizontal").with_row_index("row").with_columns(**bad)
    try:
        first = found.filter(pl.any_horizontal(*bad)).head(1).collect(engine="streaming")
    except pl.exceptions.PolarsError:
        return None
    for row in first.iter_rows(named=True):
        name = next(name for name in types if row[f"bad {name}"])
        return row["row"] + 1, _no_value(name, row[f"text {name}"], types[name])
    return None


def _is_bad(name: str, written: pl.DataType) -> pl.Expr:
    """Whether a text is there and its value is not; an empty number is null."""
    text = pl.col(f"text {name}")
    there = text.is_not_null() if written == pl.String else text.str.strip_chars() != ""
    return there & pl.col(f"is {name}").is_null()


def _miscounted_in(path: Path, columns: int | None, separator: str) -> str | None:
    """The first line that has too many values; ``columns`` are counted there, if not given.

    What a line leaves out is null, but for the first, by which Polars counts.
    """
    records = csv.reader(chain.from_iterable(_lines(path)), delimiter=separator)
    fewest = columns
    for record in filter(None, records):
        columns = len(record) if columns is None else columns
        if len(record) > columns or len(record) < (fewest or 0):
            return f"line {records.line_num}, {_miscounted(record, columns)}"
        fewest = None
    return None


def _miscounted(record: Sequence[str], columns: int) -> str:
    many = "many" if len(record) > columns else "few"
    return f"too {many} values: {len(record)} for {columns} columns"


# ---- JSON --------------------------------------------------------------------------------------


def bad_object(line: bytes, schema: Schema) -> str | None:
    """Why a line is no JSON object with these columns."""
    if _fails(_reading({}), line):
        return "no JSON object"
    for name, dtype in schema.items():
        if _fails(_reading({name: dtype}), line):
            return _no_value(name, json.loads(line).get(name), dtype)
    return None


def _bad_object_in(path: Path, schema: Schema) -> str | None:
    begin = 1
    for texts in _lines(path):
        lines = [text.encode() for text in texts]
        at = first_bad(lines, _reading(schema))
        if at < len(lines):
            said = bad_object(lines[at], schema)
            return said and f"line {begin + at}, {said}"
        begin += len(lines)
    return None


def _reading(schema: Schema) -> Callable[[bytes], object]:
    """Reads objects, for the sake of the errors; a column that is in none of them does no harm."""
    return partial(read_objects, schema=schema or {"": pl.String()})
