"""The times and positions of rows and results in an ordered join.

Rows of one time are ordered, too: by input, the last input first, and within an input by arrival.
So a *position* is a time and a *rank*, which is 0 for the last input. A result has the position of
the last of its rows. Results of one position are sorted by the number of that row, then by the
numbers of the others.

Invariant: when the punctuation of every input has reached a position, no result before it can come,
and a result to come at the position itself has a row that has not come yet, so that it sorts last.
So results up to that position may leave, in the same order however rows were cut and inputs
interleaved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lowwater.operators.kernel import Request
from lowwater.stream.element import BEGINNING, Punctuation
from lowwater.stream.time_domain import TimeDomain

AT = "__at"
"""The column with the time of a row or result, in ticks."""
Position = tuple[int, int]
"""A time in ticks, and a rank."""


def number_of(port: int) -> str:
    """Return the column that numbers the rows of an input in order of arrival."""
    return f"__n{port}"


@dataclass(frozen=True)
class Ties:
    """The order of results of one time."""

    inputs: int
    stamps: Mapping[int, tuple[str, ...]]
    """The time columns, in the output, of each input whose rows are there; the greatest is the
    row's time."""
    domain: TimeDomain

    def rank(self, port: int) -> int:
        """Return the rank of the rows of an input."""
        return self.inputs - 1 - port

    def _is_last(self, port: int) -> pl.Expr:
        """Return the condition that a result has its time from an input."""
        times = [self.domain.to_ticks(pl.col(name)) for name in self.stamps[port]]
        return pl.max_horizontal(times) == pl.col(AT)

    @property
    def result(self) -> pl.Expr:
        """The rank of a result, from its :data:`AT` and its time columns."""
        ranks = (pl.when(self._is_last(each)).then(self.rank(each)) for each in self.stamps)
        return pl.max_horizontal(ranks)

    @property
    def then(self) -> list[pl.Expr | str]:
        """The expressions by which results of one time are sorted."""
        numbers = {port: number_of(port) for port in sorted(self.stamps)}
        last = pl.coalesce(
            pl.when(self._is_last(port)).then(pl.col(name)) for port, name in numbers.items()
        )
        return [self.result, last, *numbers.values()]

    def after(self, position: Position) -> pl.Expr:
        """Return the condition that a result is after a position."""
        time, rank = position
        later = self.result > rank
        return (pl.col(AT) > time) | ((pl.col(AT) == time) & later)


@dataclass(frozen=True)
class Timed:
    """The time of the rows of an input, or of the results."""

    stamps: tuple[str, ...]
    """The columns of which the greatest is the time."""
    lags: Mapping[str, int]
    """Progressing columns, and the greatest number of ticks that each is below the time."""
    domain: TimeDomain

    @property
    def ticks(self) -> pl.Expr:
        """The time in ticks, as an expression."""
        return pl.max_horizontal(self.domain.to_ticks(pl.col(name)) for name in self.stamps).alias(
            AT
        )

    def mark(self, promise: Punctuation) -> int:
        """Return the mark on the time that follows from a punctuation; BEGINNING if none does."""
        return min(promise.values) if set(promise.attributes) <= set(self.stamps) else BEGINNING

    def request(self, port: int, mark: int) -> Request:
        """Return the request that an input's time be promised up to a mark."""
        return Request.any_of(port, [(name, mark) for name in self.stamps])


@dataclass(frozen=True)
class OrderedShape:
    """The parts of an ordered join."""

    inputs: tuple[Timed, ...]
    names: tuple[str, ...]
    """The names of the inputs: those of their streams."""
    output: Timed
    columns: tuple[str, ...]
    """The columns of the output."""
    ties: Ties
    """The order of results of one time."""
    sides: Mapping[int, tuple[str, ...]]
    """The inputs whose rows can come out alone, with their time columns in the output. In each
    result the time columns of at least one of them are not null."""
    paired: bool
    """True if every result has a row of each input."""
    windows: tuple[float, ...]
    """Seconds that rows of each input are kept."""
