"""The order of results that have one time.

Rows of one time have an order, too: those of a later input come before those of an earlier one, and
those of one input come as they arrived. So a position is a time and a *rank*, 0 for the last input.
A result is at the position of the last of its rows; results of one position go by the number of
that row, then by the numbers of the others.

Invariant: once every input has promised to be at or after a position, no result before it can
come, and one at it has a row that is not there yet. So results may leave up to that position, and
what leaves is in the same order however rows were cut and however inputs were interleaved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lowwater.stream.time_domain import TimeDomain

AT = "__at"
"""The time of a row or result, in ticks."""
Position = tuple[int, int]
"""A time in ticks and a rank."""


def number_of(port: int) -> str:
    """The column that numbers the rows of an input as they come."""
    return f"__n{port}"


@dataclass(frozen=True)
class Ties:
    """Tells results of one time apart."""

    inputs: int
    stamps: Mapping[int, tuple[str, ...]]
    """Of each input whose rows are in the output: the columns the greatest of which is the time of
    its row."""
    domain: TimeDomain

    def rank(self, port: int) -> int:
        """The rank of the rows of an input."""
        return self.inputs - 1 - port

    def _is_last(self, port: int) -> pl.Expr:
        """Whether a result has its time from an input."""
        times = [self.domain.to_ticks(pl.col(name)) for name in self.stamps[port]]
        return pl.max_horizontal(times) == pl.col(AT)

    @property
    def result(self) -> pl.Expr:
        """The rank of a result; :data:`AT` is there."""
        ranks = (pl.when(self._is_last(each)).then(self.rank(each)) for each in self.stamps)
        return pl.max_horizontal(ranks)

    @property
    def then(self) -> list[pl.Expr | str]:
        """What results of one time are sorted by."""
        numbers = {port: number_of(port) for port in sorted(self.stamps)}
        last = pl.coalesce(
            pl.when(self._is_last(port)).then(pl.col(name)) for port, name in numbers.items()
        )
        return [self.result, last, *numbers.values()]

    def after(self, position: Position) -> pl.Expr:
        """Whether a result is after a position."""
        time, rank = position
        later = self.result > rank
        return (pl.col(AT) > time) | ((pl.col(AT) == time) & later)
