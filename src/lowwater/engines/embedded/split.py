"""Rows that leave a shared queue are for some of the queries; the work for each is counted apart.

Between two portions every arc is empty, so while a portion is followed to the results, every row on
an arc comes from it.
"""

from __future__ import annotations

from collections.abc import Sequence


class Split:
    """The queries that the rows of the present portion are for, and what each of them cost.

    ``row_costs`` are the nanoseconds that a row costs each query on a virtual clock; None if work
    is counted where it is done.
    """

    def __init__(self, row_costs: Sequence[float] | None = None):
        self._row_costs = row_costs
        self._present: frozenset[int] | None = None
        self._spent: dict[int, float] = {}

    def begin(self, queries: frozenset[int]) -> None:
        """Begin a portion for some queries."""
        self._present, self._spent = queries, dict.fromkeys(queries, 0.0)

    def charge(self, rows: int) -> int:
        """Return what the clock is charged for rows that leave a queue: their number, or their
        nanoseconds if rows have costs."""
        if self._row_costs is None or self._present is None:
            return rows
        for query in self._present:
            self._spent[query] += self._row_costs[query] * rows
        return round(sum(self._spent.values()))

    def spend(self, queries: frozenset[int], nanoseconds: int) -> None:
        """Count work that was done for some queries; it is nobody's own if there are several."""
        if self._row_costs is None and self._present is not None and len(queries) == 1:
            (query,) = queries
            self._spent[query] = self._spent.get(query, 0.0) + nanoseconds

    def passes(self, queries: frozenset[int]) -> bool:
        """Return true if the rows of the present portion are for one of these queries."""
        return self._present is None or not self._present.isdisjoint(queries)

    def end(self) -> dict[int, float]:
        """End the portion; return the nanoseconds that each query took by itself."""
        self._present = None
        return self._spent
