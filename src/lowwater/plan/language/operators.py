"""These rules compute operators: arithmetic that never wraps, comparisons, logic, choices."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from math import ceil, floor
from typing import TypeVar

import numpy as np
import polars as pl
from sqlglot import exp

from lowwater.plan.language import times
from lowwater.plan.language.times import (
    date_difference,
    moment_difference,
    read_constant,
    shifted,
    shifted_days,
)
from lowwater.plan.language.value import (
    BITS,
    SIGNED,
    FunctionCall,
    Unfit,
    Value,
    common,
    derived,
    divided,
    fitted,
    guarded,
    limits,
    named,
    number,
)

N = TypeVar("N", int, pl.Expr)
_MOST = 2**63 - 1


# ---- arithmetic ----------------------------------------------------------------------------------


def sum_or_product(call: FunctionCall) -> Value:
    """Compute ``+``, ``-`` and ``*``."""
    left, right = call.arguments
    kinds = [type(each.dtype) for each in call.arguments]
    if any(kind in (pl.Date, pl.Datetime, pl.Duration) for kind in kinds):
        return _of_times(call)
    for at, each in enumerate(call.arguments):
        if not (each.is_number or each.is_null):
            raise call.wrong(f"{call.name} takes numbers, and this is {named(each.dtype)}", at)
    if isinstance(left.bare, int) and isinstance(right.bare, int):
        return _folded(call, left.bare, right.bare)
    dtype = common(call.arguments, pl.Int64())
    if dtype == pl.Null():
        return call.result(pl.lit(None, dtype=pl.Int64), pl.Int64())
    one, two = (fitted(each, dtype) for each in call.arguments)
    if dtype not in BITS:
        if isinstance(dtype, pl.Decimal):
            return _of_decimals(call, dtype)
        return call.result(_computed(call.name, one, two), dtype)
    wraps = call.failure(_outside(call, dtype), f"the result does not fit {named(dtype)}")
    return call.result(_in_range(call, dtype), dtype, wraps)


def _computed(sign: str, one: N, two: N) -> N:
    return one + two if sign == "+" else one - two if sign == "-" else one * two


def _folded(call: FunctionCall, one: int, two: int) -> Value:
    """Return the result for two written numbers."""
    result = _computed(call.name, one, two)
    dtype = common(call.arguments)
    low, high = limits(dtype)
    if not low <= result <= high:
        raise call.wrong(f"{call.written}: the result does not fit {named(dtype)}")
    return Value(pl.lit(result, dtype=dtype), dtype, constant=True)


def _of_decimals(call: FunctionCall, dtype: pl.Decimal) -> Value:
    """Compute with decimals; a product has the digits of both."""
    scale = dtype.scale
    if call.name == "*":
        scale = sum(_decimals(each) for each in call.arguments)
        if scale > 18:
            raise call.wrong("this product has more than 18 decimals; CAST one factor to DOUBLE")
    one, two = (fitted(each, pl.Decimal(38, scale)) for each in call.arguments)
    result = _computed(call.name, one, two).cast(pl.Decimal(38, scale), strict=False)
    about = _computed(call.name, one.cast(pl.Float64), two.cast(pl.Float64)).abs()
    large = call.failure(about >= 10.0 ** (37 - scale), "the result has more than 37 digits")
    return call.result(result, pl.Decimal(38, scale), large)


def _decimals(value: Value) -> int:
    """Return the number of digits behind the point."""
    if isinstance(value.bare, Decimal):
        return max(0, -int(value.bare.as_tuple().exponent))
    return value.dtype.scale if isinstance(value.dtype, pl.Decimal) else 0


def _in_range(call: FunctionCall, dtype: pl.DataType) -> pl.Expr:
    """Return a result of whole numbers that is right wherever it fits."""
    mixed = any(each.dtype == pl.UInt64() for each in call.arguments)
    wide = pl.Int128() if mixed else pl.Int64()
    one, two = (fitted(each, wide) for each in call.arguments)
    return _computed(call.name, one, two).cast(dtype, strict=False)


def _outside(call: FunctionCall, dtype: pl.DataType) -> pl.Expr:
    """Return the condition that a result does not fit its type."""
    low, high = limits(dtype)
    one, two = call.arguments
    narrow = all(each.bare is not None or each.dtype != pl.UInt64() for each in (one, two))
    if dtype != pl.Int64() or not narrow:
        wide = pl.Int64() if dtype not in (pl.Int64(), pl.UInt64()) else pl.Int128()
        result = _computed(call.name, *(fitted(each, wide) for each in call.arguments))
        return ~result.is_between(low, high)
    left, right = fitted(one, dtype), fitted(two, dtype)
    for value, other in ((one, right), (two, left)):
        if isinstance(value.bare, int):
            return _outside_beside(call.name, other, value.bare, value is one)
    if call.name == "*":
        product = left.cast(pl.Int128) * right.cast(pl.Int128)
        return ~product.is_between(low, high)
    total = _computed(call.name, left, right)
    if call.name == "+":
        return ((left ^ total) & (right ^ total)) < 0
    return ((left ^ right) & (left ^ total)) < 0


def _outside_beside(sign: str, other: pl.Expr, constant: int, first: bool) -> pl.Expr:
    """Return the condition that 64 bits are too few for the result with a constant."""
    low, high = -(2**63), _MOST
    if sign == "*":
        size = abs(constant)
        if size == 0:
            return pl.lit(False)
        most, least = high // size, -(-low // size)
        if constant < 0:
            most, least = -low // size, -(high // size)
    elif sign == "+":
        most, least = high - constant, low - constant
    elif first:  # constant - other
        most, least = constant - low, constant - high
    else:
        most, least = high + constant, low + constant
    fails = [other > pl.lit(most, dtype=pl.Int64)] if most < high else []
    fails += [other < pl.lit(least, dtype=pl.Int64)] if least > low else []
    return reduce(operator.or_, fails) if fails else pl.lit(False)


def _of_times(call: FunctionCall) -> Value:
    """Compute shifted times, and differences of times."""
    left, right = call.arguments
    one, two = left.dtype, right.dtype
    if call.name == "*":
        raise call.wrong(f"{named(one)} and {named(two)} cannot be multiplied")
    if isinstance(two, pl.Date | pl.Datetime) and call.name == "+":
        left, right, one, two = right, left, two, one
    sign = -1 if call.name == "-" else 1
    if isinstance(one, pl.Datetime | pl.Date) and isinstance(two, pl.Duration):
        return shifted(call, left, right, sign)
    if isinstance(one, pl.Date) and (two in SIGNED or two == pl.UInt8()):
        return shifted_days(call, left, right, sign)
    if call.name == "-" and isinstance(one, pl.Date) and isinstance(two, pl.Date):
        return date_difference(call)
    if call.name == "-" and {type(one), type(two)} <= {pl.Date, pl.Datetime}:
        return moment_difference(call, common(call.arguments))
    if isinstance(one, pl.Duration) and isinstance(two, pl.Duration):
        dtype = common(call.arguments)
        first, second = (fitted(each, dtype).to_physical() for each in call.arguments)
        total = _computed(call.name, first, second)
        wraps = ((first ^ total) & ((second if sign > 0 else ~second) ^ total)) < 0
        failure = call.failure(wraps, "the length of time is too large")
        return call.result(total.cast(dtype), dtype, failure)
    raise call.wrong(f"{named(one)} {call.name} {named(two)} is not defined")


def quotient(call: FunctionCall) -> Value:
    """Compute ``/``, true division; by zero it gives an infinity or NaN."""
    for at in (0, 1):
        call.need(at, "a number", lambda value: value.is_number)
    single = pl.Float32() in (call[0].dtype, call[1].dtype) and all(
        each.dtype == pl.Float32() or each.is_integer or each.bare is not None
        for each in call.arguments
    )
    dtype = pl.Float32() if single else pl.Float64()
    one, two = (fitted(each, dtype) for each in call.arguments)
    one, two = one.cast(dtype), two.cast(dtype)
    quotient = divided(one, two).cast(dtype) if call[1].constant else one / two
    return call.result(quotient, dtype)


def remainder(call: FunctionCall) -> Value:
    """Compute ``%``, which has the sign of the dividend; it fails for zero."""
    for at in (0, 1):
        call.need(at, "a number", lambda value: value.is_number)
    dtype = common(call.arguments, pl.Int64())
    if dtype == pl.Null():
        return call.result(pl.lit(None, dtype=pl.Int64), pl.Int64())
    exact = any(isinstance(each.bare, Decimal) for each in call.arguments)
    if isinstance(dtype, pl.Decimal) or (
        exact and not any(_is_double(each) for each in call.arguments)
    ):
        raise call.wrong(
            f"{call.name} takes whole numbers, or a DOUBLE; CAST one of these to DOUBLE"
        )
    if dtype.is_float():
        floats = [fitted(each, dtype) for each in call.arguments]
        return call.result(pl.map_batches(floats, _fmod, return_dtype=dtype), dtype)
    wide = pl.Int128() if dtype in (pl.Int64(), pl.UInt64()) else pl.Int64()
    one, two = first, second = [fitted(each, wide) for each in call.arguments]
    divisor = pl.when(second != 0).then(second).otherwise(1)
    rest = first.abs() % divisor.abs()
    signed = pl.when(first < 0).then(0 - rest).otherwise(rest).cast(dtype, strict=False)
    value = pl.when(two.is_not_null()).then(signed)
    low, high = limits(dtype)
    zero = call.failure((two == 0) & one.is_not_null(), "division by zero")
    # the least number divided by -1 has no quotient of its type
    wraps = (one == low) & (two == -1) if dtype in SIGNED else pl.lit(False)
    large = ~value.is_between(low, high)
    return call.result(
        value, dtype, zero, call.failure(wraps | large, f"the result does not fit {named(dtype)}")
    )


def _is_double(value: Value) -> bool:
    return value.bare is None and value.dtype.is_float()


def _fmod(columns: Sequence[pl.Series]) -> pl.Series:
    one, two = columns
    with np.errstate(all="ignore"):
        rest = np.fmod(one.fill_null(0).to_numpy(), two.fill_null(1).to_numpy())
    known = one.is_not_null() & two.is_not_null()
    return pl.select(pl.when(known).then(pl.Series(rest, dtype=one.dtype))).to_series()


def negative(call: FunctionCall) -> Value:
    """Compute ``-x``."""
    value = call[0]
    if value.bare is not None:
        return number(-value.bare)
    if isinstance(value.dtype, pl.Duration):
        return call.result(-value.expr, value.dtype)
    call.need(0, "a number", lambda each: each.is_number)
    if value.dtype not in BITS:
        return call.result(-value.expr, value.dtype)
    if value.dtype not in SIGNED:
        raise call.wrong(f"{named(value.dtype)} has no negative numbers; CAST it to BIGINT")
    low, _ = limits(value.dtype)
    zero = pl.lit(0, dtype=value.dtype)
    wraps = call.failure(value.expr == low, f"the result does not fit {named(value.dtype)}")
    return call.result(zero - value.expr, value.dtype, wraps)


# ---- comparing -----------------------------------------------------------------------------------

_SIGNS: Mapping[str, Callable[[pl.Expr, pl.Expr], pl.Expr]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "IS DISTINCT FROM": pl.Expr.ne_missing,
    "IS NOT DISTINCT FROM": pl.Expr.eq_missing,
}
_TURNED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}


def comparison(call: FunctionCall) -> Value:
    """Compute a comparison; NaN equals itself and is greater than any number."""
    expr = compared(call.name, call[0], call[1])
    return call.result(expr, pl.Boolean())


def compared(sign: str, one: Value, two: Value) -> pl.Expr:
    """Return a comparison of two values of one type."""
    one, two = beside(one, two), beside(two, one)
    if isinstance(one.bare, int | Decimal) and two.bare is None:
        sign, one, two = _TURNED.get(sign, sign), two, one
    if two.bare is not None and one.is_integer and one.bare is None:
        return _with_number(sign, one, two.bare)
    if {type(one.dtype), type(two.dtype)} == {pl.Date, pl.Datetime}:
        return _SIGNS[sign](times.instant(one), times.instant(two))
    dtype = common([one, two], pl.Int128())
    if dtype.is_nested() or dtype in (pl.Object(), pl.Unknown()):
        raise Unfit(f"values of type {named(dtype)} cannot be compared")
    left, right = (fitted(each, dtype) for each in (one, two))
    if dtype == pl.Null():
        left, right = left.cast(pl.Int64), right.cast(pl.Int64)
    return _SIGNS[sign](left, right)


def _with_number(sign: str, value: Value, constant: int | Decimal) -> pl.Expr:
    """Compare whole numbers with a written number, which may have a fraction or be out of range."""
    low, high = limits(value.dtype)
    whole = int(constant) == constant
    if whole and low <= constant <= high:
        return _SIGNS[sign](value.expr, pl.lit(int(constant), dtype=value.dtype))
    if sign in ("=", "IS NOT DISTINCT FROM", "<>", "IS DISTINCT FROM"):
        answer = pl.lit(sign in ("<>", "IS DISTINCT FROM"))
        return answer if sign.startswith("IS") else pl.when(value.expr.is_not_null()).then(answer)
    if low <= constant <= high:
        edge = floor(constant) if sign in (">", "<=") else ceil(constant)
        return _SIGNS[sign](value.expr, pl.lit(edge, dtype=value.dtype))
    above = sign in (">", ">=")
    return pl.when(value.expr.is_not_null()).then(pl.lit(above == (constant < low)))


def beside(value: Value, other: Value) -> Value:
    """Return a value as it is read beside another one: a written text beside a time is a time."""
    if value.constant and value.is_text and isinstance(other.dtype, pl.Date | pl.Datetime):
        return read_constant(value, other.dtype)
    return value


def between(call: FunctionCall) -> Value:
    """Compute ``x BETWEEN low AND high``."""
    value, low, high = call.arguments
    above, below = compared(">=", value, low), compared("<=", value, high)
    return call.result(above & below, pl.Boolean())


def among(call: FunctionCall) -> Value:
    """Compute ``x IN (...)``."""
    value, *members = call.arguments
    same = [compared("=", value, each) for each in members]
    return call.result(reduce(operator.or_, same), pl.Boolean())


# ---- truth ---------------------------------------------------------------------------------------


def truth(call: FunctionCall, at: int) -> pl.Expr:
    """Return an argument that must be true or false."""
    return call.need(at, "a truth value", lambda value: value.dtype == pl.Boolean()).cast(
        pl.Boolean
    )


def both(call: FunctionCall) -> Value:
    """Compute ``AND``; the right side cannot fail where the left is false."""
    left, right = truth(call, 0), truth(call, 1)
    inputs = [call[0], guarded(call[1], left.fill_null(True))]
    return derived(left & right, pl.Boolean(), inputs)


def either(call: FunctionCall) -> Value:
    """Compute ``OR``; the right side cannot fail where the left is true."""
    left, right = truth(call, 0), truth(call, 1)
    inputs = [call[0], guarded(call[1], ~left.fill_null(False))]
    return derived(left | right, pl.Boolean(), inputs)


def opposite(call: FunctionCall) -> Value:
    """Compute ``NOT``."""
    return call.result(~truth(call, 0), pl.Boolean())


def is_(call: FunctionCall, what: exp.Expr) -> Value:
    """Compute ``IS NULL``, ``IS TRUE`` and ``IS FALSE``, which are never null."""
    if isinstance(what, exp.Null):
        return call.result(call[0].expr.is_null(), pl.Boolean())
    if isinstance(what, exp.Boolean):
        value = truth(call, 0)
        return call.result((value if what.this else ~value).fill_null(False), pl.Boolean())
    raise call.wrong("IS takes NULL, TRUE or FALSE")


# ---- choices -------------------------------------------------------------------------------------


def case(
    call: FunctionCall, conditions: Sequence[Value], results: Sequence[Value], rest: Value
) -> Value:
    """Compute the result of the first condition that is true; other results cannot fail."""
    *results, rest = _alike(call, [*results, rest])
    dtype = common([*results, rest])
    kept: list[Value] = []
    before = pl.lit(False)
    chosen = fitted(rest, dtype)
    for condition, result in zip(conditions, results, strict=True):
        holds = condition.expr.fill_null(False)
        kept += [guarded(condition, ~before), guarded(result, ~before & holds)]
        before = before | holds
    kept.append(guarded(rest, ~before))
    for condition, result in zip(reversed(conditions), reversed(results), strict=True):
        chosen = pl.when(condition.expr).then(fitted(result, dtype)).otherwise(chosen)
    return derived(chosen, dtype, kept)


def _alike(call: FunctionCall, values: Sequence[Value]) -> Sequence[Value]:
    """Return values of one kind: written texts as times beside times, days as moments beside
    moments."""
    found = [each for each in values if times.is_time(each)]
    if not found:
        return values
    values = [beside(each, found[0]) for each in values]
    moments = [each for each in values if isinstance(each.dtype, pl.Datetime)]
    if not moments:
        return values
    dtype = common(values)
    assert isinstance(dtype, pl.Datetime)
    return [_as_moment(call, each, dtype) if times.is_time(each) else each for each in values]


def _as_moment(call: FunctionCall, value: Value, dtype: pl.Datetime) -> Value:
    expr, far = times.as_moment(call, value, dtype)
    return derived(expr, dtype, [value], *far)


def chosen(call: FunctionCall) -> Value:
    """Compute ``if(condition, value, other)``."""
    condition = derived(truth(call, 0), pl.Boolean(), [call[0]])
    return case(call, [condition], [call[1]], call[2])


def coalesce(call: FunctionCall) -> Value:
    """Compute ``coalesce``: the first value that is not null."""
    values = _alike(call, call.arguments)
    dtype = common(values)
    kept = []
    missing = pl.lit(True)
    for each in values:
        kept.append(guarded(each, missing))
        missing = missing & each.expr.is_null()
    return derived(pl.coalesce([fitted(each, dtype) for each in values]), dtype, kept)


def nullif(call: FunctionCall) -> Value:
    """Compute ``nullif``: null where both are equal."""
    same = compared("=", call[0], call[1]).fill_null(False)
    value = call[0]
    dtype = common([value]) if value.bare is not None else value.dtype
    return call.result(pl.when(~same).then(fitted(value, dtype)), dtype)


def extreme(call: FunctionCall) -> Value:
    """Compute ``greatest`` and ``least``: nulls are left out, NaN is greater than any number."""
    values = _alike(call, call.arguments)
    dtype = common(values)
    if dtype.is_nested() or dtype in (pl.Object(), pl.Unknown()):
        raise Unfit(f"values of type {named(dtype)} cannot be compared")
    parts = [fitted(each, dtype) for each in values]
    if dtype == pl.Null():
        return call.result(pl.lit(None), dtype)
    most = call.name == "greatest"
    chosen = parts[0]
    for part in parts[1:]:
        better = part > chosen if most else part < chosen
        take = chosen.is_null() | better.fill_null(False)
        chosen = pl.when(take).then(part).otherwise(chosen)
    return derived(chosen, dtype, values)
