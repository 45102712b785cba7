"""Lines of text from a socket as a source: each is a CSV record of the columns, or a JSON object.

The stream ends when the other side closes the connection. While ``MOST_WAITING`` lines are unread,
nothing is read from the socket, so the sender blocks.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from itertools import groupby

import polars as pl

from lowwater.errors import BadInput, StreamError
from lowwater.sources.files import refuse_unwritable_types
from lowwater.sources.records import (
    BadRecord,
    CsvLayout,
    MissingColumns,
    read_objects,
    read_records,
)
from lowwater.sources.source import AT_ONCE, Reader, Source
from lowwater.sources.values import type_name
from lowwater.stream.element import Chunk

MOST_WAITING = 1_000_000
"""Greatest number of lines that are read ahead."""
CONNECT_SECONDS = 10


class Lines(Source):
    """Lines of text from a host and port, with columns ``schema``."""

    live = True

    def __init__(self, host: str, port: int, schema: Mapping[str, pl.DataType]):
        self.host, self.port, self.schema = host, port, dict(schema)
        self.address = f"{host}:{port}"
        refuse_unwritable_types("csv", self.schema)

    @property
    def origin(self) -> Hashable:
        """The place."""
        return self.where

    @property
    def where(self) -> str:
        """The place as a phrase for people."""
        return f"lines from {self.address}"

    def open(self) -> LinesReader:
        """Connect, and return a reader of the lines."""
        try:
            connection = socket.create_connection((self.host, self.port), CONNECT_SECONDS)
        except OSError as error:
            raise StreamError(
                f"cannot connect to {self.address}: {error.strerror or error}"
            ) from None
        connection.settimeout(None)
        return LinesReader(self, connection)


class LinesReader(Reader):
    """Reads the lines of one connection; a thread of its own reads ahead."""

    def __init__(self, source: Lines, connection: socket.socket):
        self._source, self._connection = source, connection
        self._missing = MissingColumns(source.where, source.schema)
        self._lines: deque[bytes] = deque()
        self._changed = threading.Condition()
        self._bytes = 0
        self._closed = self._released = False
        self._failure: StreamError | None = None

    def release(self) -> None:
        """Close the connection."""
        with self._changed:
            self._released = True
            self._changed.notify_all()
        with contextlib.suppress(OSError):
            self._connection.shutdown(socket.SHUT_RDWR)
        self._connection.close()

    @property
    def ended(self) -> bool:
        """True if the other side closed the connection and every line was read."""
        with self._changed:
            return self._closed and not self._lines and self._failure is None

    def due(self, rows: int = 1) -> int | None:
        """Return ``AT_ONCE`` if there is a line, else None."""
        with self._changed:
            return AT_ONCE if self._lines or self._failure else None

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return the next lines as rows; None if there are none."""
        with self._changed:
            if not self._lines and self._failure:
                raise self._failure
            taken = [self._lines.popleft() for _ in range(min(limit, len(self._lines)))]
            self._bytes -= sum(map(len, taken))
            self._changed.notify_all()
            over = self._closed and not self._lines
        rows = parse_lines(taken, self._source.schema, self._missing) if taken else None
        if over:
            self._missing.warn()
        return rows

    def waiting(self) -> tuple[int, int]:
        """Return the number of lines read ahead, and their size in bytes."""
        with self._changed:
            return len(self._lines), self._bytes

    def notify(self, wake: Callable[[], None]) -> None:
        """Start to read ahead; call ``wake``, from a thread, when lines have come."""
        threading.Thread(target=self._listen, args=(wake,), daemon=True).start()

    def _listen(self, wake: Callable[[], None]) -> None:
        rest = b""
        try:
            while more := self._connection.recv(1 << 16):
                *lines, rest = (rest + more).split(b"\n")
                self._keep(lines)
                wake()
            self._end_within(rest)
        except OSError as error:
            self._failure = StreamError(
                f"the connection to {self._source.address} broke: {error.strerror or error}"
            )
        with self._changed:
            self._closed = True
        wake()

    def _end_within(self, rest: bytes) -> None:
        """Fail if there is text after the last end of line: more of that line may be missing."""
        if rest.strip() and not self._released:
            with self._changed:
                self._failure = BadInput(
                    f"the connection to {self._source.address} was closed in the middle of a line:"
                    f" {_shown(rest)} has no end of line, and more of it may be missing"
                )

    def _keep(self, lines: list[bytes]) -> None:
        some = [line.strip() for line in lines if line.strip()]
        with self._changed:
            self._changed.wait_for(lambda: self._released or len(self._lines) < MOST_WAITING)
            self._lines.extend(some)
            self._bytes += sum(map(len, some))


def parse_lines(
    lines: Sequence[bytes],
    schema: Mapping[str, pl.DataType],
    missing: MissingColumns | None = None,
) -> Chunk:
    """Return lines as rows; ``missing`` collects the columns that no JSON object has."""
    return pl.concat(list(_parts(lines, schema, missing)))


def _parts(
    lines: Sequence[bytes], schema: Mapping[str, pl.DataType], missing: MissingColumns | None
) -> Iterator[Chunk]:
    layout = CsvLayout(tuple(schema))
    for is_json, some in groupby(lines, lambda line: line.startswith(b"{")):
        part = list(some)
        text = b"\n".join(part)
        try:
            rows = read_objects(text, schema) if is_json else read_records(text, schema, layout)
        except BadRecord as bad:
            line = part[bad.line] if bad.line is not None else text
            columns = ", ".join(f"{name} {type_name(dtype)}" for name, dtype in schema.items())
            why = bad.why if bad.line is not None else f"no row of ({columns})"
            raise BadInput(f"cannot read the line {_shown(line)}: {why}") from None
        if missing is not None and is_json:
            missing.take(text, rows)
        elif missing is not None:
            missing.take_record()
        yield rows


def _shown(line: bytes) -> str:
    return repr(line[:200].decode(errors="replace"))
