"""Expressions that stop a run where a value cannot be given, instead of giving a wrong one.

A *failure* is a condition over the same rows and what to say where it holds. Conditions are
expressions, so a branch of a CASE that is not taken can be left out of them. They are looked at
once, beside the finished value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import polars as pl


class ComputationError(ArithmeticError):
    """A value that cannot be computed: it does not fit its type, or there is none."""


@dataclass(frozen=True)
class Failure:
    """Where ``when`` is true, there is no value; ``message`` says why."""

    when: pl.Expr
    message: str

    def only_if(self, condition: pl.Expr) -> Failure:
        """The same, in the rows for which a condition is true."""
        return Failure(condition & self.when, self.message)


@dataclass(frozen=True)
class _Check:
    """Gives the first of some columns, unless one of the others is true somewhere."""

    messages: tuple[str, ...]

    def __call__(self, columns: Sequence[pl.Series]) -> pl.Series:
        value, *failed = columns
        for column, message in zip(failed, self.messages, strict=True):
            if column.any():
                raise ComputationError(message)
        return value


def checked(value: pl.Expr, dtype: pl.DataType, failures: Sequence[Failure]) -> pl.Expr:
    """A value of a type, which raises :class:`ComputationError` where a failure holds."""
    if not failures:
        return value
    check = _Check(tuple(each.message for each in failures))
    return pl.map_batches([value, *(each.when for each in failures)], check, return_dtype=dtype)
