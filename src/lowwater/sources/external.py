"""Places that only Spark can read, by the name of Spark's format: Kafka, files elsewhere, ..."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import NoReturn

import polars as pl

from lowwater.errors import OptionError

OF_FILES = ("parquet", "csv", "json", "orc", "text", "avro", "xml")
"""Formats of files, of which there are so many; other formats go on for ever."""


class External:
    """A format of Spark's, with its path and options."""

    arrival = None
    """Rows arrive when Spark reads them."""

    def __init__(
        self,
        format_: str,
        path: str,
        options: Mapping[str, str],
        schema: Mapping[str, pl.DataType],
        follow: bool = False,
    ):
        self.format, self.path, self.options = format_, path, dict(options)
        self._schema = dict(schema)
        self.live = follow or format_ not in OF_FILES

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns that are read."""
        return self._schema

    @property
    def where(self) -> str:
        """What is read, in words."""
        return f"{self.format} {self.path}".rstrip()

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Nobody knows who will speak."""
        return ()

    def open(self) -> NoReturn:
        """Only Spark can read it."""
        raise OptionError(f"'{self.format}:{self.path}' is read by Spark: use the Spark engine")
