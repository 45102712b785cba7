"""What all queues of windows do: mark rows with windows, tell starts and ends, wait for the end.

Where work takes no time nothing waits: a row leaves at once for all windows it is in, and the
aggregate behind answers a window when it is complete, as it would without a queue.

Invariant: promises on the edges of windows are true of all rows that leave later and never go back;
after the input has ended all that waits leaves, and then the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.operators.kernel import Ask, Kernel
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.sources.replay import clock_times
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    End,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Updates
from lowwater.updates.pace import Pace
from lowwater.updates.staleness import Account, Staleness, staleness_of
from lowwater.updates.update_queue import PORTION
from lowwater.updates.windows.open_windows import Ticks
from lowwater.updates.windows.spreading import Marks


class WindowQueue(Kernel):
    """Holds rows until there is time for the windows they are in."""

    rule: ClassVar[str] = "the least start of a window that waits, is worked on or is still to come"
    queues: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        by: Updates,
        schema: Mapping[str, pl.DataType],
        time: str,
        domain: TimeDomain,
        window: WindowSpec,
        now: Callable[[], int],
        arrival: str | None = None,
    ):
        super().__init__(store)
        self._by, self._schema, self._time, self._domain = by, dict(schema), time, domain
        self._window, self._now, self._arrival = window, now, arrival
        self._marking = Marks(window, domain)
        self._pace = Pace()
        self._mark = BEGINNING
        self._told = BEGINNING
        self._served = False
        self._ending = False

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Let rows wait; if work takes no time, they pass."""
        ticks = self._domain.array_of(chunk[self._time])
        if self.unhurried:
            at, starts = self._marking.spread(ticks)
            return [self._marking.marked(chunk[at], starts)] if len(at) else []
        self._enqueue(chunk, ticks, self._arrivals(chunk))
        return []

    def _arrivals(self, chunk: Chunk) -> Ticks:
        if self._arrival is None:
            return np.full(chunk.height, self._now(), np.int64)
        return clock_times(chunk[self._arrival]) + self.shift

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Windows that end by the promise are complete."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        if self.unhurried:
            return self._tell(self._window.first_open(self._mark))
        return self._promised(self._mark)

    def _tell(self, start: int) -> list[Element]:
        """Promise that no window starts before."""
        if not self._told < start < END_OF_TIME - self._window.range:
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
        if not self.unhurried:
            self._promised(END_OF_TIME)
            self._ending = True
            if self._has_work:
                return []
        return self._end()

    def _end(self) -> list[Element]:
        self._ending = False
        self._save_rows()  # that nothing is left of them
        return [End()]

    # ---- work ------------------------------------------------------------------------------

    @property
    def more(self) -> bool:
        """Whether a portion may leave now."""
        return self._has_work and (not self._served or self._ending)

    def go_on(self) -> Sequence[Element]:
        """Let a portion out."""
        elements = self._dequeue(self._portion())
        self._served = self.in_batches
        return [*elements, *(self._end() if self._ending and not self._has_work else [])]

    def _portion(self) -> int:
        """How many rows are taken on at once, about."""
        if self.in_batches:
            return END_OF_TIME if self._ending else self._pace.fitting(self._by.budget)
        return 1 if self.singly else self._pace.fitting(PORTION)

    @abstractmethod
    def _enqueue(self, rows: Chunk, ticks: Ticks, when: Ticks) -> None:
        """Let rows wait."""

    @abstractmethod
    def _promised(self, mark: int) -> list[Element]:
        """Let windows be complete."""

    @abstractmethod
    def _dequeue(self, rows: int) -> list[Element]:
        """Take out about so many rows."""

    @property
    @abstractmethod
    def _has_work(self) -> bool:
        """Whether something can leave now."""

    @abstractmethod
    def _save_rows(self) -> None:
        """Write rows that wait."""

    @abstractmethod
    def _accounts(self) -> dict[tuple[object, ...], tuple[Account, float]]:
        """The account of each key, and its weight."""

    @property
    @abstractmethod
    def _begun(self) -> int | None:
        """When the first row came."""

    # ---- asking and telling ----------------------------------------------------------------

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """A promise on a window's edge needs the mark past all earlier windows."""
        if attribute not in (START, END):
            return []
        slide, range_ = self._window.slide, self._window.range
        first = mark if attribute == START else mark - range_
        return [Ask(0, self._time, -(-first // slide) * slide - slide + range_)]

    def marks(self) -> dict[str, int]:
        """The input's mark."""
        return {self._time: self._mark}

    def staleness(self) -> Staleness:
        """How stale what is shown was, and is."""
        now = self._now()
        return staleness_of(self._accounts(), now if self._begun is None else self._begun, now)

    def snapshot(self) -> dict[str, Any]:
        """What was promised, and what a row costs."""
        return super().snapshot() | {
            "pace": self._pace.saved(),
            "mark": self._mark,
            "told": self._told,
            "ending": self._ending,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._pace.restore(saved["pace"])
        self._mark, self._told, self._ending = saved["mark"], saved["told"], saved["ending"]
