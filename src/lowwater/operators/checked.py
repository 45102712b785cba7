"""Expressions that stop a run if there is no right value, instead of returning a wrong one.

A *failure* is a condition over the same rows, with the message for rows for which it is true. A
condition is an expression, so that it can leave out rows for which a branch of a CASE is not taken.
It is evaluated once, next to the finished value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl


class ComputationError(ArithmeticError):
    """A value that cannot be computed: it does not fit its type, or there is none."""


@dataclass(frozen=True)
class Failure:
    """A condition under which there is no value, and the reason as a message."""

    when: pl.Expr
    message: str

    def only_if(self, condition: pl.Expr) -> Failure:
        """Return the same failure, limited to rows for which a condition is true."""
        return Failure(condition & self.when, self.message)


@dataclass(frozen=True)
class _Check:
    """Returns the first of some columns; raises if one of the others is true anywhere."""

    messages: tuple[str, ...]

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        value, *failed = columns
        for column, message in zip(failed, self.messages, strict=True):
            if column.any():
                raise ComputationError(message)
        return value


def checked(value: pl.Expr, dtype: pl.DataType, failures: Sequence[Failure]) -> pl.Expr:
    """Return the expression of a value, which raises :class:`ComputationError` on a failure."""
    if not failures:
        return value
    check = _Check(tuple(each.message for each in failures))
    return pl.map_batches([value, *(each.when for each in failures)], check, return_dtype=dtype)
