"""What every memory manager of windows does: rows of each key by time, in the order they came.

A window buffer holds what may be needed of one key: rows are appended, those between two times are
read, and those before a time are dropped (UpStream §7.2).
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk

Times = NDArray[np.int64]
"""The times of rows, in ticks."""

TIME = "__time"
"""The column of a page that has the times of rows."""


def with_times(schema: pl.Schema) -> pl.Schema:
    """What is kept of a row: its time comes first."""
    return pl.Schema([(TIME, pl.Int64()), *schema.items()])


def split(times: Times, counts: Sequence[int]) -> list[Times]:
    """The times of as many rows as counted, one part after the other."""
    ends = np.cumsum([0, *counts])
    return [times[start:end] for start, end in pairwise(ends.tolist())]


class Window(Protocol):
    """The rows of one key that may be needed."""

    @property
    def rows(self) -> int:
        """Rows held."""

    @property
    def bytes(self) -> int:
        """Bytes of its locations and of the objects in them."""

    def append(self, rows: Chunk, times: Times) -> None:
        """Add rows, in any order of time."""

    def between(self, start: int, end: int) -> Chunk:
        """The rows with ``start <= time < end``, in the order they came."""

    def drop_before(self, time: int) -> None:
        """Rows below a time are not needed any more."""


class WindowMemory(Protocol):
    """The window buffers of all keys, in pages."""

    @property
    def used(self) -> int:
        """Locations that hold a row."""

    @property
    def allocated(self) -> int:
        """Locations of the pages in use."""

    @property
    def dirty(self) -> int:
        """Locations handed out that hold no row."""

    @property
    def bytes(self) -> int:
        """Bytes of the pages in use."""

    @property
    def pages(self) -> int:
        """Pages in use."""

    def buffer(self, owner: int) -> Window:
        """The window buffer of a key, by its number."""

    def append(
        self, owners: Sequence[int], counts: Sequence[int], rows: Chunk, times: Times
    ) -> None:
        """Add rows to many buffers: as many as counted to each, one key after the other."""

    def save(self, store: ChunkStore, name: str) -> dict[str, Any]:
        """Write pages that changed since the last time; all else that :meth:`load` needs."""

    def load(self, store: ChunkStore, name: str, saved: dict[str, Any]) -> None:
        """Go on from what was saved, in a new memory; pages are read when touched."""
