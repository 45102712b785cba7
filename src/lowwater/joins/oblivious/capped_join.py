"""The window-oblivious join under a cap on memory (WO-Join §4).

What does not fit in any mode is given up: first the rows that all inputs have mostly passed, then
those furthest ahead, then those with the least values. Rows of outer sides come out alone when they
are given up, and are counted as early.
"""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.operators.shared_memory import MemoryNeed
from lowwater.stream.element import Chunk, Element


class CappedJoin(ObliviousJoin):
    """A window-oblivious join that keeps to a cap on memory."""

    def _obey_cap(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released."""
        results: list[Chunk] = []
        if self._memory.is_over:
            results += self._choose()
        while self._memory.is_over:
            results += self._give_up()
        return results

    @property
    def memory_need(self) -> MemoryNeed | None:
        """The memory needed by the last measurement; None before there is one."""
        return self._memory.need

    @property
    def memory_used(self) -> int:
        """Bytes of the rows in memory now."""
        return self._stored.memory

    def take_share(self, share: int) -> Sequence[Element]:
        """Obey a share of a memory budget from now on; return the elements that leave."""
        self._memory.share = share
        if not self._memory.is_over:
            return []
        self._drop_matched()
        self._stored.matched.limit(self._memory.cap // 2)
        return self._finish_step(self._begin_step())

    def _give_up(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released.

        Rows that all inputs have mostly passed go first, then those furthest ahead, then those with
        the least values.
        """
        settled = min(estimate.mostly_passed for estimate in self._estimates.disorders)
        above, least = self._memory.to_free(settled, self._bounds.reached)
        if above is not None:
            self._clear_above(above)
        if least is None:
            return []
        results = self._advance_marks(least)  # join waiting rows before they are dropped
        self._bounds.given_up_below = max(self._bounds.given_up_below, least)
        for port in self._shape.ports:
            self._drop_to(port, least)
        return results

    def _clear_above(self, value: int) -> None:
        """Remove the rows at or above a value from memory; the value is above the frontier.

        They are spilled if the mode allows that, and given up otherwise.
        """
        for port in self._shape.ports:
            spilled = self._stored.spilled[port]
            spilled.forget_ahead(value)
            waited, kept = self._stored.take_from(port, value)
            if self._chooser.spills and kept is not None:
                self._account.put_back(port, kept)
            elif not self._chooser.spills and waited is not None:
                self._account.take(port, waited, self._bounds.late_below(port))
            for rows in (waited, kept):
                if rows is not None and self._chooser.spills:
                    spilled.put(rows)
                elif rows is not None:
                    self._estimates.add_given_up(port, rows.height)
                    self._leave(port, rows)
            spilled.flush()
