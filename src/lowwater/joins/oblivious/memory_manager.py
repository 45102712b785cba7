"""The memory manager of a window-oblivious join: cap, mode and read-ahead (WO-Join §4, §5).

The manager compares the rows that the model predicts (``memory_model``) with the memory that the
join may use, and chooses the relief. It also says how many rows of an input on disk are read before
they are due (``read_ahead``). If the join shares a budget with others, the manager has the need and
the share. It moves no rows itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from lowwater.joins.oblivious.estimates import FOUND, InputEstimates
from lowwater.joins.oblivious.memory_model import FITS, MemoryNeeds, ReliefChooser
from lowwater.joins.oblivious.memory_need import QUANTILES, JoinNeed
from lowwater.joins.oblivious.options import SPILLING_MODES, Oblivious
from lowwater.joins.oblivious.read_ahead import rows_ahead
from lowwater.joins.oblivious.stored_rows import PAGE_ROWS, StoredRows
from lowwater.operators.kernel import Host
from lowwater.operators.metric import Max, Mean, Metric, Readings, seconds, size, total
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME

ROUND_TRIPS = 3
"""Rows are spilled if they are ahead by at least this many round trips to the disk (§4.2)."""
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
MEMORY_BUDGET = Metric(
    "join_memory_budget_bytes",
    int,
    "bytes",
    Max(),
    "memory budget",
    "The memory that all joins without a window share.",
)
MEMORY_SHARE = size(
    "join_memory_share_bytes",
    "memory share",
    "The part of the shared memory that the join may use.",
    "bytes",
    exact=False,
)
MEMORY_NEEDED = size(
    "join_memory_needed_bytes",
    "memory needed",
    "The memory that the join needs to keep all rows in memory, by the model.",
    "bytes",
    exact=False,
)
MEMORY_LEAST = size(
    "join_memory_least_bytes",
    "least memory",
    "The memory that the join needs at least, with the strategy that takes least.",
    "bytes",
    exact=False,
)
ACCURACY_WITHIN = Metric(
    "join_accuracy_within_share",
    float,
    "share",
    Mean(FOUND),
    "accuracy within share",
    "The share of the results that is to be expected with the memory share.",
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
        self._ports = range(len(stored.spilled))
        self.share = host.memory
        """The part of a shared budget that the join may use, in bytes; None if it shares none."""
        self.need: JoinNeed | None = None
        """What the join needs of a shared budget, by the last measurement."""
        self._was_full = False  # rows have left memory for lack of it
        self.chooser = ReliefChooser(options, self.limited)

    @property
    def limited(self) -> bool:
        """True if there is a cap on memory."""
        return self._own_cap is not None or self.share is not None

    @property
    def _own_cap(self) -> int | None:
        """The bytes that the join's own option allows it here; None if it has none."""
        given = self._options.memory
        return None if given is None else given // self._host.copies

    @property
    def cap(self) -> int:
        """The most bytes of rows in memory; a number that is never reached if there is no cap."""
        caps = [each for each in (self._own_cap, self.share) if each is not None]
        return min(caps, default=END_OF_TIME)

    @property
    def is_over(self) -> bool:
        """True if the rows in memory take more than the cap."""
        return self.limited and self._stored.memory > self.cap

    def to_free(self, settled: int, reached: int) -> tuple[int | None, int | None]:
        """Return the values at or above which, and below which, rows leave memory, so that a part
        of the cap is free again; None for no rows.

        All inputs have reached the value ``reached``, and mostly passed ``settled``. Rows below
        ``settled`` go first, then those above ``reached``, then those with the least values.
        """
        self._was_full = self.share is not None
        everything = np.sort(np.concatenate(list(map(self._stored.values, self._ports))))
        rows = len(everything)
        count = min(rows, -(-self.excess * rows // self._stored.memory))
        passed, ahead = np.searchsorted(everything, [settled, reached + 1]).tolist()
        above = min(count - min(count, passed), rows - ahead)
        first = int(everything[rows - above]) if above else None
        return first, None if above == count else int(everything[count - above - 1]) + 1

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
        if not chooser.chooses and self.share is None:
            return
        needs = self._estimates.needs(stored, now, not self._host.in_batches, self._was_full)
        if needs is not None:
            ahead = max(self.rows_ahead(port, now) for port in self._ports)
            row_bytes = stored.memory / max(1, stored.rows)
            if self.share is not None and stored.rows:
                self.need = self._need(needs, row_bytes, ahead)
            if chooser.chooses:
                chooser.choose(needs, row_bytes, self.cap, ahead)
        elif over:
            ahead = sum(int((stored.values(port) > reached).sum()) for port in self._ports)
            chooser.guess(ahead, stored.rows - ahead)

    def _need(self, needs: MemoryNeeds, row_bytes: float, ahead: int) -> JoinNeed:
        return JoinNeed(
            needs,
            (row_bytes,) * len(needs.inputs),
            tuple(self.chooser.allowed(needs)),
            self._options.accuracy,
            ahead,
            tuple(each.quantiles(QUANTILES) for each in self._estimates.disorders),
            all(each.certain for each in self._estimates.disorders),
            self._estimates.unique,
            self._own_cap,
        )

    # ---- rows on disk --------------------------------------------------------------------------

    def is_far_ahead(self, port: int, reached: int, rows: int, now: int, step: int | None) -> bool:
        """Return true if rows of an input above a value can be read back before they are due.

        ``rows`` is their number, ``step`` the nanoseconds since the last step; None if the clock
        stands still.
        """
        if step is None:
            return rows >= PAGE_ROWS
        since = self._estimates.disorders[port].reached(reached + 1)
        return since is not None and now - since >= ROUND_TRIPS * max(self._store.round_trip, step)

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

    def ports_to_read(self, frontier: Callable[[int], int], now: int) -> list[int]:
        """Return the inputs of which pages above their frontier should be read now: none without
        room in memory."""
        if not self.chooser.spills or (self.limited and self.excess > 0):
            return []
        return [
            port
            for port, each in enumerate(self._stored.spilled)
            if each.has_pages and each.lacks(frontier(port), self.rows_ahead(port, now))
        ]

    # ---- looking and saving ----------------------------------------------------------------

    def metrics(self, now: int) -> Readings:
        """Return the strategy and its reason and, if rows can be on disk, how pages are read."""
        found = self.chooser.metrics() | self._shared()
        if not self.chooser.chooses and self._options.strategy not in SPILLING_MODES:
            return found
        for port, spilled in enumerate(self._stored.spilled):
            found |= {
                READ_AHEAD.of(port): self.rows_ahead(port, now),
                PAGES_WAITED.of(port): spilled.waited,
            }
        read = self._store.read_time
        return found | {PAGE_SECONDS: read / SECOND if read else None}

    def _shared(self) -> Readings:
        """Return the share of a budget, and the need, of a join that shares one."""
        if self.share is None:
            return Readings()
        found = Readings({MEMORY_BUDGET: self._host.budget, MEMORY_SHARE: self.share})
        need = self.need
        if need is None or not need.certain:
            return found
        return found | {
            MEMORY_NEEDED: need.full,
            MEMORY_LEAST: need.least,
            ACCURACY_WITHIN: need.expected(self.share) if self.share else None,  # else it has ended
        }

    def snapshot(self) -> Any:
        """Return the mode, and the need and share of a shared budget."""
        return self.chooser.snapshot(), self.need, self.share, self._was_full

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        mode, self.need, share, self._was_full = saved
        self.chooser.restore(mode)
        if self.share is not None and share is not None:
            self.share = share
