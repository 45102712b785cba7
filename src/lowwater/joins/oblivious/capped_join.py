"""The window-oblivious join under a cap on memory (WO-Join §4).

What does not fit in any mode is given up: first the rows that all inputs have mostly passed, then
those furthest ahead, then those with the least values. Rows of outer sides come out alone when they
are given up, and are counted as early.
"""

from __future__ import annotations

import numpy as np

from lowwater.joins.oblivious.oblivious_join import SPARE, ObliviousJoin
from lowwater.stream.element import Chunk


class CappedJoin(ObliviousJoin):
    """A window-oblivious join that keeps to a cap on memory."""

    def _obey_cap(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released."""
        results: list[Chunk] = []
        if self._memory_allowed is not None and self._stored.memory > self._cap:
            results += self._choose()
        while self._memory_allowed is not None and self._stored.memory > self._cap:
            results += self._give_up()
        return results

    def _give_up(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released.

        Rows that all inputs have mostly passed go first, then those furthest ahead, then those with
        the least values.
        """
        memory, values = self._stored.memory, map(self._stored.values, self._shape.ports)
        everything = np.sort(np.concatenate(list(values)))
        rows = len(everything)
        excess = memory - self._cap + self._cap // SPARE
        count = min(rows, -(-excess * rows // memory))
        settled = min(estimate.mostly_passed for estimate in self._estimates.disorders)
        reached = max(map(self._bounds.frontier, self._shape.ports))
        passed, ahead = np.searchsorted(everything, [settled, reached + 1]).tolist()
        above = min(count - min(count, passed), rows - ahead)
        if above:
            self._clear_above(int(everything[rows - above]))
        if above == count:
            return []
        least = int(everything[count - above - 1]) + 1
        results = self._advance_marks(least)  # join waiting rows before they are dropped
        self._bounds.given_up_below = max(self._bounds.given_up_below, least)
        self._drop_all(least)
        return results

    def _clear_above(self, value: int) -> None:
        """Remove the rows at or above a value from memory; the value is above the frontier.

        They are spilled if the mode allows that, and given up otherwise.
        """
        for port in self._shape.ports:
            spilled = self._stored.spilled[port]
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

    def _drop_all(self, below: int) -> None:
        for port in self._shape.ports:
            self._drop_to(port, below)
