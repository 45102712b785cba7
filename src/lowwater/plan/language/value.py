"""A value of an expression has a Polars expression, a type, and the rows for which it fails.

A written number has no type of its own: it takes the type of the value beside it, if it fits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

import polars as pl
from sqlglot import exp

from lowwater.errors import ExpressionError
from lowwater.operators.checked import Failure
from lowwater.plan.text_places import wrong

SIGNED: Mapping[pl.DataType, int] = {pl.Int8(): 8, pl.Int16(): 16, pl.Int32(): 32, pl.Int64(): 64}
UNSIGNED: Mapping[pl.DataType, int] = {
    pl.UInt8(): 8,
    pl.UInt16(): 16,
    pl.UInt32(): 32,
    pl.UInt64(): 64,
}
BITS = {**SIGNED, **UNSIGNED}
NAMES: Mapping[pl.DataType, str] = {
    pl.Boolean(): "BOOLEAN",
    pl.Int8(): "TINYINT",
    pl.Int16(): "SMALLINT",
    pl.Int32(): "INTEGER",
    pl.Int64(): "BIGINT",
    pl.UInt8(): "UTINYINT",
    pl.UInt16(): "USMALLINT",
    pl.UInt32(): "UINTEGER",
    pl.UInt64(): "UBIGINT",
    pl.Float32(): "FLOAT",
    pl.Float64(): "DOUBLE",
    pl.String(): "VARCHAR",
    pl.Date(): "DATE",
}


class Unfit(Exception):
    """Raised for types that do not go together, and for parts that the language lacks; the compiler
    adds the place."""


@dataclass(frozen=True)
class Value:
    """The value of an expression."""

    expr: pl.Expr
    dtype: pl.DataType
    failures: tuple[Failure, ...] = ()
    bare: int | Decimal | None = None
    """A written number, which takes its type from the value beside it; None for other values."""
    constant: bool = False
    months: int | None = None
    """Months of a length of time that has no fixed length; None for other values."""

    @property
    def is_null(self) -> bool:
        """True for NULL, which has no type."""
        return self.dtype == pl.Null()

    @property
    def is_integer(self) -> bool:
        """True for whole numbers."""
        return self.dtype in BITS

    @property
    def is_text(self) -> bool:
        """True for texts."""
        return self.dtype == pl.String()

    @property
    def is_number(self) -> bool:
        """True for numbers of any kind."""
        return self.is_integer or self.dtype.is_float() or isinstance(self.dtype, pl.Decimal)

    @property
    def item(self) -> Any:
        """The Python value of a constant."""
        return pl.select(self.expr).item()


def null() -> Value:
    """Return NULL."""
    return Value(pl.lit(None), pl.Null(), constant=True)


def derived(
    expr: pl.Expr, dtype: pl.DataType, inputs: Sequence[Value], *failures: Failure
) -> Value:
    """Return a value computed from others; it fails where they do, and where ``failures`` hold."""
    inherited = tuple(each for value in inputs for each in value.failures)
    return Value(
        expr,
        dtype,
        (*inherited, *failures),
        constant=all(value.constant for value in inputs),
    )


def guarded(value: Value, condition: pl.Expr) -> Value:
    """Return a value that fails only where a condition is true."""
    if not value.failures:
        return value
    return replace(value, failures=tuple(each.only_if(condition) for each in value.failures))


def holds(dtype: pl.DataType, number: int) -> bool:
    """Return True if an integer type has room for a number."""
    low, high = limits(dtype)
    return low <= number <= high


def limits(dtype: pl.DataType) -> tuple[int, int]:
    """Return the least and the greatest number of an integer type."""
    bits = BITS[dtype]
    return (0, (1 << bits) - 1) if dtype in UNSIGNED else (-(1 << bits - 1), (1 << bits - 1) - 1)


def own_type(number: int) -> pl.DataType:
    """Return the type of a whole number that stands alone."""
    for dtype in (pl.Int32(), pl.Int64()):
        if holds(dtype, number):
            return dtype
    raise Unfit(f"{number} does not fit BIGINT")


def named(dtype: pl.DataType) -> str:
    """Return the name of a type in the language."""
    if isinstance(dtype, pl.Decimal):
        return f"DECIMAL({dtype.precision}, {dtype.scale})"
    if isinstance(dtype, pl.Datetime):
        return "TIMESTAMPTZ" if dtype.time_zone else "TIMESTAMP"
    if isinstance(dtype, pl.Duration):
        return "INTERVAL"
    return NAMES.get(dtype, str(dtype))


# ---- types that go together ----------------------------------------------------------------------


def common(values: Sequence[Value], widest: pl.DataType | None = None) -> pl.DataType:
    """Return the type that several values have in common.

    UBIGINT and whole numbers that may be below zero have none, unless ``widest`` is given.
    """
    if any(each.months is not None for each in values):
        raise Unfit("months and years are not always as long; they can be added to a time only")
    typed = [each for each in values if not each.is_null and each.bare is None]
    found: pl.DataType = pl.Null()
    for each in typed:
        found = each.dtype if found == pl.Null() else _both(found, each.dtype, widest)
    for each in values:
        if each.bare is not None:
            found = _beside(found, each.bare, widest)
    return found


def _both(one: pl.DataType, two: pl.DataType, widest: pl.DataType | None) -> pl.DataType:
    if one == two:
        return one
    if one in BITS and two in BITS:
        return _integers(one, two, widest)
    kinds = {type(one), type(two)}
    if one.is_numeric() and two.is_numeric():
        return _numbers(one, two)
    if kinds <= {pl.Date, pl.Datetime}:
        moments = [each for each in (one, two) if isinstance(each, pl.Datetime)]
        zones = {each.time_zone if isinstance(each, pl.Datetime) else None for each in (one, two)}
        if len(zones) == 1:
            fine = any(each.time_unit == "ns" for each in moments)
            return pl.Datetime("ns" if fine else "us", zones.pop())
    if kinds == {pl.Duration}:
        return pl.Duration("us")
    raise Unfit(f"{named(one)} and {named(two)} do not go together; CAST one of them")


def _integers(one: pl.DataType, two: pl.DataType, widest: pl.DataType | None) -> pl.DataType:
    if (one in SIGNED) == (two in SIGNED):
        return max(one, two, key=BITS.__getitem__)
    signed, other = (one, two) if one in SIGNED else (two, one)
    bits = max(SIGNED[signed], 2 * UNSIGNED[other])
    if bits > 64:
        if widest is None:
            raise Unfit(f"{named(one)} and {named(two)} do not go together; CAST one of them")
        return widest
    return next(dtype for dtype, has in SIGNED.items() if has == bits)


def _numbers(one: pl.DataType, two: pl.DataType) -> pl.DataType:
    """Return the common type of numbers that are not both whole."""
    if pl.Float64() in (one, two):
        return pl.Float64()
    if pl.Float32() in (one, two):
        return pl.Float32()
    scales = [each.scale for each in (one, two) if isinstance(each, pl.Decimal)]
    return pl.Decimal(38, max(scales))


def _beside(dtype: pl.DataType, number: int | Decimal, widest: pl.DataType | None) -> pl.DataType:
    """Return the type of a written number beside a value of a type."""
    if dtype.is_float():
        return dtype
    if isinstance(dtype, pl.Decimal):
        places = 0 if isinstance(number, int) else max(0, -int(number.as_tuple().exponent))
        return pl.Decimal(38, min(18, max(dtype.scale, places)))
    if dtype != pl.Null() and dtype not in BITS:
        raise Unfit(f"{named(dtype)} and a number do not go together; CAST one of them")
    if isinstance(number, Decimal):
        return pl.Float64()
    if dtype == pl.Null():
        return own_type(number)
    return dtype if holds(dtype, number) else _integers(dtype, own_type(number), widest)


def fitted(value: Value, dtype: pl.DataType) -> pl.Expr:
    """Return a value converted to a type that :func:`common` returned."""
    if value.bare is not None:
        if dtype in BITS or dtype == pl.Int128():
            return pl.lit(int(value.bare), dtype=dtype)
        if isinstance(dtype, pl.Decimal):
            return pl.lit(Decimal(value.bare)).cast(dtype)
        return pl.lit(float(value.bare), dtype=dtype)
    return value.expr if value.dtype == dtype else value.expr.cast(dtype, strict=False)


def number(value: int | Decimal) -> Value:
    """Return the value of a written number."""
    if isinstance(value, int):
        try:
            dtype = own_type(value)
        except Unfit:
            return Value(pl.lit(float(value)), pl.Float64(), bare=value, constant=True)
        return Value(pl.lit(value, dtype=dtype), dtype, bare=value, constant=True)
    return Value(pl.lit(float(value), dtype=pl.Float64()), pl.Float64(), bare=value, constant=True)


def divided(rows: pl.Expr, divisor: pl.Expr) -> pl.Expr:
    """Return the quotient of floating-point numbers, right to the last bit.

    Polars multiplies by the reciprocal of a divisor that is one value for all rows, so that 3 / 10
    is 0.30000000000000004. Multiplying the divisor by a column of ones prevents that.
    """
    ones = (rows.is_null() | rows.is_not_null()).cast(pl.Int8)
    return rows / (divisor * ones)


# ---- calls ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function or an operator with its arguments; rules compute its value."""

    name: str
    tree: exp.Expr
    trees: Sequence[exp.Expr]
    arguments: Sequence[Value]
    text: str

    def __len__(self) -> int:
        return len(self.arguments)

    def __getitem__(self, at: int) -> Value:
        return self.arguments[at]

    @property
    def written(self) -> str:
        """The call as SQL, for errors about values; at most 80 characters."""
        sql = self.tree.sql()
        return sql if len(sql) <= 80 else f"{sql[:77]}..."

    def wrong(self, message: str, at: int | None = None) -> ExpressionError:
        """Return an error at an argument, or at the call."""
        first = self.tree if at is None else self.trees[at]
        return wrong(message, self.text, first, self.tree)

    def result(self, expr: pl.Expr, dtype: pl.DataType, *failures: Failure) -> Value:
        """Return the value of the call."""
        return derived(expr, dtype, self.arguments, *failures)

    def failure(self, when: pl.Expr, why: str) -> Failure:
        """Return a failure of the call: the condition, and the reason after the call's text."""
        return Failure(when, f"{self.written}: {why}")

    def need(self, at: int, kind: str, is_one: Callable[[Value], bool]) -> pl.Expr:
        """Return an argument that must be of a kind; NULL is of every kind."""
        value = self[at]
        if not (value.is_null or is_one(value)):
            raise self.wrong(f"{self.name} takes {kind} here, and this is {named(value.dtype)}", at)
        return value.expr

    def a_text(self, at: int) -> pl.Expr:
        """Return an argument that must be a text."""
        return self.need(at, "a text", lambda value: value.is_text).cast(pl.String)

    def a_float(self, at: int) -> pl.Expr:
        """Return an argument that must be a number, as a double."""
        self.need(at, "a number", lambda value: value.is_number)
        return fitted(self[at], pl.Float64())

    def a_whole(self, at: int) -> pl.Expr:
        """Return an argument that must be a whole number, in 64 bits."""
        self.need(at, "a whole number", lambda value: value.is_integer)
        if self[at].dtype == pl.UInt64():
            raise self.wrong(f"{self.name} takes a BIGINT here, and this is UBIGINT", at)
        return self[at].expr.cast(pl.Int64)

    def constant(self, at: int, what: str) -> Any:
        """Return the Python value of an argument that must be the same in every row."""
        if not self[at].constant:
            raise self.wrong(f"{self.name} takes {what} here that is the same in every row", at)
        return self[at].item

    def constant_text(self, at: int) -> str | None:
        """Return a text that must be the same in every row; None if it is NULL."""
        self.a_text(at)
        found: str | None = self.constant(at, "a text")
        return found

    def constant_whole(self, at: int, low: int, high: int) -> int | None:
        """Return a whole number that must be the same in every row; None if it is NULL."""
        self.a_whole(at)
        found: int | None = self.constant(at, f"a whole number from {low:,} to {high:,}")
        if found is not None and not low <= found <= high:
            raise self.wrong(
                f"{self.name} takes a whole number from {low:,} to {high:,} here, not {found:,}", at
            )
        return found
