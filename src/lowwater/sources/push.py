"""A live source: rows are pushed in by the program itself, from any thread."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from lowwater.errors import BadInput, StreamError
from lowwater.stream.element import Chunk


class Push:
    """A live source; one query may read it."""

    def __init__(self, schema: Mapping[str, pl.DataType | type[pl.DataType]]):
        self._schema = dict(pl.Schema(schema))
        self._lock = threading.Lock()
        self._events: deque[Chunk | tuple[str, object]] = deque()
        self._closed = False
        self._opened = False
        self._wake: Callable[[], None] | None = None

    @property
    def schema(self) -> Mapping[str, pl.DataType]:
        """The columns of its rows."""
        return self._schema

    @property
    def arrival(self) -> str | None:
        """Rows arrive when they are pushed."""
        return None

    def send(self, rows: Any) -> None:
        """Push rows: a polars frame, a pyarrow table, a list of dicts or one dict."""
        chunk = self._chunk(rows)
        with self._lock:
            if self._closed:
                raise StreamError("this source was closed; nothing can be sent any more")
            if chunk.height:
                self._events.append(chunk)
        self._notify()

    def punctuate(self, attribute: str, value: object) -> None:
        """Promise that every later row has ``attribute >= value``."""
        with self._lock:
            if self._closed:
                raise StreamError("this source was closed; nothing can be promised any more")
            self._events.append((attribute, value))
        self._notify()

    def close(self) -> None:
        """Say that nothing more will come."""
        with self._lock:
            self._closed = True
        self._notify()

    def _chunk(self, rows: Any) -> Chunk:
        if isinstance(rows, dict):
            rows = [rows]
        try:
            if isinstance(rows, pa.Table | pa.RecordBatch):
                frame = pl.from_arrow(rows)
                assert isinstance(frame, pl.DataFrame)
                return frame
            if isinstance(rows, pl.DataFrame):
                return rows
            return pl.DataFrame(rows, schema=self._schema, strict=True, orient="row")
        except (TypeError, ValueError, pl.exceptions.PolarsError) as error:
            raise BadInput(f"rows do not fit the source's columns: {error}") from None

    def _notify(self) -> None:
        if self._wake is not None:
            self._wake()

    # ---- the reader of the one query --------------------------------------------------------

    def open(self) -> Push:
        """Start reading; a live source can be read once."""
        if self._opened:
            raise StreamError("a live source can feed one run only; make another one")
        self._opened = True
        return self

    def begin(self, now: int, first: int) -> None:
        """Live rows come when they come."""

    def channels(self, columns: Sequence[str]) -> tuple[Hashable, ...]:
        """Nobody knows who will speak."""
        return ()

    @property
    def ended(self) -> bool:
        """Whether the source was closed and everything was read."""
        with self._lock:
            return self._closed and not self._events

    def due(self, rows: int = 1) -> int | None:
        """At once, if something is there."""
        with self._lock:
            return 0 if self._events else None

    def read(self, now: int, limit: int) -> Chunk | None:
        """The next rows pushed, unless a promise made before them has yet to be told."""
        with self._lock:
            chunk = self._events[0] if self._events else None
            if not isinstance(chunk, pl.DataFrame):
                return None
            self._events.popleft()
            if chunk.height > limit:
                self._events.appendleft(chunk.slice(limit))
                chunk = chunk.head(limit)
            return chunk

    def told(self) -> list[tuple[str, object]]:
        """Promises made after the rows read so far and before the next ones."""
        marks = []
        with self._lock:
            while self._events and isinstance(self._events[0], tuple):
                event = self._events.popleft()
                assert isinstance(event, tuple)
                marks.append(event)
        return marks

    def notify(self, wake: Callable[[], None]) -> None:
        """Call ``wake`` when something is pushed."""
        self._wake = wake


def push(schema: Mapping[str, pl.DataType | type[pl.DataType]]) -> Push:
    """A live source with these columns; feed it with ``send``, ``punctuate`` and ``close``."""
    return Push(schema)
