"""What is wrong with a text, in words: the slow search, once the fast way has failed."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.sources.text import Schema, digits_of, type_name

SHOWN = 60
"""Characters of a value that are shown."""
LOOKED_AT = 4_096
"""Bytes of a file by which it is told whether it is a text."""
PACKED = (b"\x1f\x8b", b"\x28\xb5\x2f\xfd")
"""How files of gzip and Zstandard begin, which Polars unpacks."""


def no_text(path: Path) -> str | None:
    """What a file is instead of a text, judged by how it begins."""
    with path.open("rb") as file:
        begin = file.read(LOOKED_AT)
    if begin.startswith(b"PAR1"):
        return "it is a Parquet file"
    return "it is not a text" if b"\0" in begin and not begin.startswith(PACKED) else None


def first_bad(lines: Sequence[bytes], reads: Callable[[bytes], bool]) -> int:
    """Where the first line is that cannot be read, counted from 0; their number if none."""

    def fails(count: int) -> bool:
        return not _can(reads, b"\n".join(lines[:count]))

    counts = range(1, len(lines) + 1)
    return bisect_left(counts, True, key=fails) if fails(len(lines)) else len(lines)


def _can(reads: Callable[[bytes], bool], text: bytes) -> bool:
    try:
        return reads(text)
    except (pl.exceptions.PolarsError, ValueError):
        return False


def bad_object(line: bytes, schema: Schema, reads: Callable[[bytes, Schema], bool]) -> str | None:
    """Why a line is no JSON object with these columns."""
    if not _can(lambda text: reads(text, {}), line):
        return "no JSON object"
    for name, dtype in schema.items():
        if not _can(lambda text, only={name: dtype}: reads(text, only), line):  # type: ignore[misc]
            return no_value(name, json.loads(line).get(name), dtype)
    return None


def no_value(column: str, value: Any, dtype: pl.DataType) -> str:
    """That a value is none of its column's type, and why if that is not plain to see."""
    shown = repr(value) if isinstance(value, str) else json.dumps(value)
    cut = shown if len(shown) <= SHOWN else f"{shown[:SHOWN]}…"
    why = ""
    if isinstance(dtype, pl.Datetime) and digits_of(str(value)) > digits_of(dtype):
        why = f", which has {digits_of(dtype)} digits of a second"
    return f"column {column}: {cut} is no {type_name(dtype)}{why}"


def miscounted(count: int, names: Sequence[str]) -> str:
    """That a record has too many values, or too few."""
    many = "many" if count > len(names) else "few"
    columns = "column" if len(names) == 1 else "columns"
    return f"too {many} values: {count} for {len(names)} {columns}"


def not_utf8(text: bytes) -> int | None:
    """The first line, counted from 0, that is no text in UTF-8."""
    for number, line in enumerate(text.split(b"\n")):
        try:
            line.decode()
        except UnicodeDecodeError:
            return number
    return None
