"""What all queues of windows do: mark rows with windows, tell starts and ends, wait for the end.

Where work takes no time nothing waits: a row leaves at once for all windows it is in, and the
aggregate behind answers a window when it is complete, as it would without a queue.

Invariant: promises on the edges of windows are true of all rows that leave later and never go back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Host, Request
from lowwater.operators.waiting import Release
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Updates
from lowwater.updates.queue_kernel import QueueKernel
from lowwater.updates.windows.open_windows import Ticks
from lowwater.updates.windows.window_edges import WindowEdges


class WindowQueueKernel(QueueKernel):
    """Holds rows until there is time for the windows they are in."""

    rule: ClassVar[str] = "the least start of a window that waits, is worked on or is still to come"

    def __init__(
        self,
        store: ChunkStore,
        by: Updates,
        schema: Mapping[str, pl.DataType],
        time: str,
        domain: TimeDomain,
        window: WindowSpec,
        host: Host,
        arrival: str | None = None,
        apart: Sequence[str] = (),
    ):
        super().__init__(store, by, host, arrival)
        self._schema, self._time, self._domain = dict(schema), time, domain
        self._window = window
        self._apart = tuple(apart)  # what names the groups that are promised each by itself
        self._marking = WindowEdges(window, domain)
        self._mark = BEGINNING
        self._told = BEGINNING

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Let rows wait; if work takes no time, they pass."""
        ticks = self._domain.array_of(chunk[self._time])
        if not self.host.hurried:
            at, starts = self._marking.spread(ticks)
            return [self._marking.marked(chunk[at], starts)] if len(at) else []
        self._enqueue(chunk, ticks, self._arrivals(chunk))
        return []

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Windows that end by the promise are complete."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        if not self.host.hurried:
            return self._tell(self._window.first_open(self._mark))
        return self._promised(self._mark)

    def _tell(self, start: int) -> list[Element]:
        """Promise that no window starts before."""
        if not self._told < start < END_OF_TIME:
            return []
        self._told = start
        return [
            Punctuation.linear(START, start),
            Punctuation.linear(END, start + self._window.range),
        ]

    def _tell_keys(self, marks: Chunk) -> list[Element]:
        """Promise where windows of keys start at least."""
        if not marks.height:
            return []
        ends = marks.with_columns(pl.col(MARK) + self._window.range)
        return [GroupPunctuation(START, marks), GroupPunctuation(END, ends)]

    def on_end(self, port: int) -> Sequence[Element]:
        """The end leaves after all rows have."""
        self._open.discard(port)
        if self.host.hurried:
            self._promised(END_OF_TIME)
        return self._close()

    @abstractmethod
    def _enqueue(self, rows: Chunk, ticks: Ticks, when: Ticks) -> None:
        """Let rows wait."""

    @abstractmethod
    def _promised(self, mark: int) -> list[Element]:
        """Let windows be complete."""

    # ---- asking and telling ----------------------------------------------------------------

    def releases(self) -> Sequence[Release]:
        """A row is released by the end of any window it is in."""
        window, step = self._window, self._window.slide
        if not self._apart:
            return []
        ticks = self._domain.to_ticks(pl.col(self._time))
        ends = (1, window.range, step, window.range % step)
        return [Release(0, ticks, self._apart, self._time, *ends)]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """A promise on a window's edge needs the mark past all earlier windows."""
        if attribute not in (START, END):
            return []
        slide, range_ = self._window.slide, self._window.range
        first = mark if attribute == START else mark - range_
        return [Request(0, self._time, -(-first // slide) * slide - slide + range_)]

    def marks(self) -> dict[str, int]:
        """The input's mark."""
        return {self._time: self._mark}

    def snapshot(self) -> dict[str, Any]:
        """What was promised."""
        return super().snapshot() | {"mark": self._mark, "told": self._told}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(saved)
        self._mark, self._told = saved["mark"], saved["told"]
