"""What is being handed to a sink now, so that a run that waits for a sink can say for which."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from lowwater.sinks.folder import FolderSink
from lowwater.sinks.sink import FunctionSink


class Handing:
    """Keeps which sink has rows in hand, how many, and since when."""

    def __init__(self) -> None:
        self._now: tuple[object, int, float] | None = None

    @contextmanager
    def over(self, sink: object, rows: int) -> Iterator[None]:
        """While a sink takes so many rows, or is closed."""
        self._now = sink, rows, time.monotonic()
        try:
            yield
        finally:
            self._now = None

    def blocked(self, seconds: float) -> str | None:
        """Which sink has not returned for so long, and what it holds; None if there is none."""
        now = self._now
        if now is None or time.monotonic() - now[2] < seconds:
            return None
        sink, rows, since = now
        work = f"took {rows:,} rows" if rows else "was told to close"
        return (
            f"the sink {_called(sink)} {work} {time.monotonic() - since:.1f} s ago and has not"
            " returned"
        )


def _called(sink: object) -> str:
    if isinstance(sink, FunctionSink):
        sink = sink.function
    if isinstance(sink, FolderSink):
        return str(sink.path)
    return str(getattr(sink, "__qualname__", type(sink).__qualname__))
