"""The base of the queues of windows, which assign rows to windows for all operators after them
(UpStream §6.1.3).

A row leaves once for each of its windows, with the start and the end of that window in two columns
in front of the others.

Where work takes no time, nothing waits: a row leaves at once for every window it is in, and the
aggregate after the queue answers a window when it is complete, as it would without a queue.

Invariant: punctuation on the edges of windows holds for all rows that leave later and never goes
back.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.kernel import Host, Request
from lowwater.operators.metric import Readings
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
    kept_end,
)
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Key, Updates
from lowwater.updates.queue_kernel import (
    COMPLETE,
    GIVEN_UP,
    KEYS,
    SCHEDULE,
    SECONDS_A_ROW,
    SHOWN,
    WAITING,
    WINDOWS,
    WORKED_ON,
    QueueKernel,
)
from lowwater.updates.windows.open_windows import Ticks

AT = "__at"


@dataclass(frozen=True)
class WindowedRows:
    """The rows that arrive at a queue of windows, and the windows over them."""

    schema: Mapping[str, pl.DataType]
    time: str
    """The column by which rows are in windows."""
    domain: TimeDomain
    window: WindowSpec
    arrival: str | None = None
    """The column of arrival times; None if there is none."""
    groups: tuple[str, ...] = ()
    """The columns of groups that have marks of their own; empty if none have."""
    expire: int | None = None
    """Ticks after its newest row at which a key is forgotten; None for never."""


def by_key(rows: Chunk, key: Sequence[str]) -> Iterator[tuple[Key, Ticks]]:
    """Yield the keys in the order of their first rows, each with the numbers of its rows."""
    if not key:
        yield (), np.arange(rows.height)
        return
    if rows.height == 1:
        yield tuple(rows[name][0] for name in key), np.zeros(1, np.int64)
        return
    numbered = rows.select(key).with_row_index(AT)
    for *values, at in numbered.group_by(key, maintain_order=True).agg(AT).iter_rows():
        yield tuple(values), np.array(at, np.int64)


class WindowEdges:
    """Assigns rows to windows and puts the edges of windows in front of them."""

    def __init__(self, window: WindowSpec, domain: TimeDomain):
        self.window, self._domain = window, domain

    def marked(self, rows: Chunk, starts: Ticks) -> Chunk:
        """Return rows with the edges of the windows that start at ``starts``."""
        edges = [
            pl.Series(name, ticks).cast(self._domain.dtype)
            for name, ticks in ((START, starts), (END, starts + self.window.range))
        ]
        return pl.DataFrame([*edges, *rows.get_columns()])

    def spread(self, ticks: Ticks) -> tuple[Ticks, Ticks]:
        """Return, for each row and window it is in, the number of the row and the window's
        start."""
        slide = self.window.slide
        firsts = self.window.first_open(ticks)
        counts = np.maximum((ticks // slide * slide - firsts) // slide + 1, 0)
        rows = np.repeat(np.arange(len(ticks)), counts)
        begins = np.repeat(np.cumsum(counts) - counts, counts)
        return rows, firsts[rows] + (np.arange(len(rows)) - begins) * slide


class WindowQueueKernel(QueueKernel):
    """Holds rows until there is time for the windows they are in."""

    rule: ClassVar[str] = "the least start of a window that waits, is worked on or is still to come"

    def __init__(self, store: ChunkStore, by: Updates, rows: WindowedRows, host: Host):
        super().__init__(store, by, host, rows.arrival)
        self._time, self._domain, self._window = rows.time, rows.domain, rows.window
        self._groups = rows.groups
        self._edges = WindowEdges(rows.window, rows.domain)
        self._mark = BEGINNING
        self._start = BEGINNING
        """The last punctuation on the starts of windows, in ticks."""

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Add rows to the queue; where work takes no time, return them for all their windows."""
        ticks = self._domain.array_of(chunk[self._time])
        if not self.host.hurried:
            self._follow(chunk, ticks)
            at, starts = self._edges.spread(ticks)
            return [self._edges.marked(chunk[at], starts)] if len(at) else []
        self._enqueue(chunk, ticks, self._arrivals(chunk))
        return []

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Complete the windows that end by the mark."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        if not self.host.hurried:
            passed = self._punctuate(self._window.first_open(self._mark))
            return [*passed, *self._end_keys(self._mark)]
        return self._advance(self._mark)

    def _follow(self, rows: Chunk, ticks: Ticks) -> None:
        """Note rows that leave at once, where keys end."""

    def _end_keys(self, mark: int) -> list[Element]:
        """Return the report of the keys that have ended by a mark, where rows leave at once."""
        return []

    def _punctuate(self, start: int) -> list[Element]:
        """Return the punctuation that no window to come starts before ``start``, if it is new."""
        if not self._start < start < END_OF_TIME:
            return []
        self._start = start
        return [
            Punctuation.linear(START, start),
            Punctuation.linear(END, start + self._window.range),
        ]

    def _punctuate_keys(self, marks: Chunk) -> list[Element]:
        """Return punctuation on single keys: the least starts of their windows to come."""
        if not marks.height:
            return []
        ends = marks.with_columns(kept_end(pl.col(MARK) + self._window.range))
        return [GroupPunctuation(START, marks), GroupPunctuation(END, ends)]

    def on_end(self, port: int) -> Sequence[Element]:
        """Complete all windows; the end follows the last of their rows."""
        self._open.discard(port)
        if self.host.hurried:
            self._advance(END_OF_TIME)
        return self._close()

    @abstractmethod
    def _enqueue(self, rows: Chunk, ticks: Ticks, when: Ticks) -> None:
        """Add rows to the queue, with their times and arrivals."""

    @abstractmethod
    def _advance(self, mark: int) -> list[Element]:
        """Complete the windows that end by a mark."""

    # ---- requests and metrics --------------------------------------------------------------

    def releases(self) -> Sequence[Release]:
        """Return the rule by which groups' marks release rows: at the end of any window they are
        in; nothing where groups have no marks."""
        window, step = self._window, self._window.slide
        if not self._groups:
            return []
        ticks = self._domain.to_ticks(pl.col(self._time))
        ends = (1, window.range, step, window.range % step)
        return [Release(0, ticks, self._groups, self._time, *ends)]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark that passes all windows before the one at an edge."""
        if attribute not in (START, END):
            return []
        slide, range_ = self._window.slide, self._window.range
        first = mark if attribute == START else mark - range_
        return [Request(0, self._time, -(-first // slide) * slide - slide + range_)]

    def marks(self) -> dict[str, int]:
        """Return the mark of the input."""
        return {self._time: self._mark}

    def _readings(
        self, waiting: int, worked_on: int | None = None, windows: str | None = None
    ) -> Readings:
        """Return the counts of the queue; None stands for a count that it does not have."""
        keys = self._keys_of_queue
        complete, shown = keys.totals()
        found = Readings(
            {
                SCHEDULE: self._by.schedule,
                WINDOWS: windows,
                KEYS: len(keys.cells),
                WAITING: waiting,
                WORKED_ON: worked_on,
                COMPLETE: complete,
                SHOWN: shown,
                GIVEN_UP: max(0, complete - shown),
                SECONDS_A_ROW: self._seconds_a_row(),
            }
        )
        return found | self._forgotten()

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().snapshot() | {"mark": self._mark, "start": self._start}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._mark, self._start = saved["mark"], saved["start"]
