"""Columns of JSON objects that were declared and never come: a name that was mistyped, most likely.

An object may leave a column out, so one that some objects have is fine. One that none of the first
thousand has (or none at all, if there are fewer) is warned of, with the names that are there.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping

import polars as pl

from lowwater.errors import StreamWarning, unknown_name
from lowwater.stream.element import Chunk

ENOUGH = 1_000
"""Objects after which a column is missed."""


class Noticed:
    """Which columns the objects of a stream have had so far."""

    def __init__(self, where: str, schema: Mapping[str, pl.DataType]):
        self._where, self._missed = where, list(schema)
        self._keys: set[str] = set()
        self._objects = 0

    def take(self, text: bytes, rows: Chunk) -> None:
        """Take note of objects and the rows they came to."""
        if not self._missed:
            return
        self._missed = [name for name in self._missed if rows[name].null_count() == rows.height]
        if self._missed:
            for line in text.split(b"\n", ENOUGH)[:ENOUGH]:
                if line.strip():
                    self._keys.update(json.loads(line))
            self._missed = [name for name in self._missed if name not in self._keys]
        self._objects += rows.height
        if self._objects >= ENOUGH:
            self.tell()

    def take_records(self) -> None:
        """Take note of a record that has all columns."""
        self._missed = []

    def missing(self) -> list[str]:
        """What to say of each column that no object has had."""
        if not self._objects:
            return []
        return [
            f"{self._where}: {unknown_name('column', name, self._keys)} It was declared, and none"
            f" of the {self._objects:,} objects read so far has it; where it is left out it is null"
            for name in self._missed
        ]

    def tell(self) -> None:
        """Warn of the columns that no object has had; once."""
        said, self._missed = self.missing(), []
        for each in said:
            warnings.warn(each, StreamWarning, stacklevel=2)
