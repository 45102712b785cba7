"""The memory manager of a window-oblivious join: cap, mode and read-ahead (WO-Join §4, §5).

The manager compares the rows that the model predicts (``memory_model``) with the memory that the
join may use, and chooses the relief. It also says how many rows of an input on disk are read before
they are due (``read_ahead``). It moves no rows itself.
"""

from __future__ import annotations

from typing import Any

from lowwater.joins.oblivious.estimates import InputEstimates
from lowwater.joins.oblivious.memory_model import FITS, ReliefChooser
from lowwater.joins.oblivious.options import SPILLING_MODES, Oblivious
from lowwater.joins.oblivious.read_ahead import rows_ahead
from lowwater.joins.oblivious.stored_rows import StoredRows
from lowwater.operators.kernel import Host
from lowwater.operators.metric import Readings, seconds, size, total
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME

SPARE = 16
"""When memory is above the cap, the excess and one ``SPARE``-th of the cap are freed. One page of
each input together take at most the same part of the cap, and so do the rows read ahead."""
READ_AHEAD = size(
    "join_read_ahead_rows",
    "read ahead",
    "Rows of an input on disk that are read before they are due.",
    exact=False,
)
PAGES_WAITED = total(
    "join_pages_waited",
    "pages waited for",
    "Pages of an input that were read from disk while results waited for their rows.",
    "count",
    exact=False,
)
PAGE_SECONDS = seconds(
    "join_page_seconds",
    "page read time",
    "The time that it lately took to read a page of rows from disk.",
)
SECOND = 1_000_000_000


class MemoryManager:
    """Decides how a join uses its memory."""

    def __init__(
        self,
        options: Oblivious,
        store: ChunkStore,
        stored: StoredRows,
        estimates: InputEstimates,
        host: Host,
    ):
        self._options, self._store, self._stored = options, store, stored
        self._estimates, self._host = estimates, host
        self.chooser = ReliefChooser(options)

    @property
    def limited(self) -> bool:
        """True if there is a cap on memory."""
        return self._options.memory is not None

    @property
    def cap(self) -> int:
        """The most bytes of rows in memory; a number that is never reached if there is no cap."""
        return (self._options.memory or END_OF_TIME) // self._host.copies

    @property
    def is_over(self) -> bool:
        """True if the rows in memory take more than the cap."""
        return self.limited and self._stored.memory > self.cap

    @property
    def excess(self) -> int:
        """Bytes to free so that a part of the cap is free again."""
        return self._stored.memory - self.cap + self.cap // SPARE

    @property
    def page_bytes(self) -> int | None:
        """The most bytes of a page, and of the rows of an input read ahead; None without a cap."""
        return self.cap // (SPARE * len(self._stored.spilled)) if self.limited else None

    # ---- the mode --------------------------------------------------------------------------

    def choose(self, now: int, reached: int) -> None:
        """Update multiplicities and choose the mode, if enough rows have come or memory is full.

        ``now`` is in clock nanoseconds; all inputs have reached the value ``reached``.
        """
        stored, held, chooser = self._stored, self._store.rows, self.chooser
        over = chooser.chooses and stored.memory > FITS * self.cap
        if not held or not (over or self._estimates.is_count_due(held)):
            return
        if not self._host.in_batches:  # reading state is slow on Spark, and batches show repeats
            self._estimates.count_stored(stored)
        if not chooser.chooses:
            return
        needs = self._estimates.needs(stored, now, not self._host.in_batches)
        if needs is not None:
            ports = range(len(stored.spilled))
            ahead = max(self.rows_ahead(port, now) for port in ports)
            chooser.choose(needs, stored.memory / max(1, stored.rows), self.cap, ahead)
        elif over:
            ports = range(len(stored.spilled))
            ahead = sum(int((stored.values(port) > reached).sum()) for port in ports)
            chooser.guess(ahead, stored.rows - ahead)

    # ---- reading ahead ---------------------------------------------------------------------

    def rows_ahead(self, port: int, now: int) -> int:
        """Return the number of rows of an input that are read before they are due."""
        spilled, size_ = self._stored.spilled[port], self.page_bytes
        most = None if size_ is None else int(size_ // spilled.row_bytes)
        given = self._options.read_ahead.fixed(spilled.row_bytes)
        if given is not None:
            return given if most is None else min(given, most)
        # Rows in memory at the end of a batch are written to Spark's state again.
        burst = 0 if self._host.in_batches else spilled.burst
        rate = self._estimates.disorders[port].rate(now) or 0.0
        return rows_ahead(burst, rate, self._store.read_time, most)

    def ports_to_read(self, frontier: int, now: int) -> list[int]:
        """Return the inputs of which pages above the frontier should be read now: none without
        room in memory."""
        if not self.chooser.spills or (self.limited and self.excess > 0):
            return []
        return [
            port
            for port, each in enumerate(self._stored.spilled)
            if each.has_pages and each.lacks(frontier, self.rows_ahead(port, now))
        ]

    # ---- looking and saving ----------------------------------------------------------------

    def metrics(self, now: int) -> Readings:
        """Return the strategy and its reason and, if rows can be on disk, how pages are read."""
        found = self.chooser.metrics()
        if not self.chooser.chooses and self._options.strategy not in SPILLING_MODES:
            return found
        for port, spilled in enumerate(self._stored.spilled):
            found |= {
                READ_AHEAD.of(port): self.rows_ahead(port, now),
                PAGES_WAITED.of(port): spilled.waited,
            }
        read = self._store.read_time
        return found | {PAGE_SECONDS: read / SECOND if read else None}

    def snapshot(self) -> Any:
        """Return the mode."""
        return self.chooser.snapshot()

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self.chooser.restore(saved)
