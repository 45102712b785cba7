"""Functions of numbers."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from lowwater.plan.language import times
from lowwater.plan.language.value import BITS, SIGNED, FunctionCall, Value, fitted, limits, named


def _numeric(call: FunctionCall, at: int = 0) -> Value:
    call.need(at, "a number", lambda value: value.is_number)
    return call[at]


def absolute(call: FunctionCall) -> Value:
    """``abs``; the least whole number of a type has no opposite."""
    if isinstance(call[0].dtype, pl.Duration):
        return times.absolute(call)
    value = _numeric(call)
    if value.is_null:
        return call.result(pl.lit(None, dtype=pl.Int64), pl.Int64())
    dtype = value.dtype
    if dtype not in SIGNED:
        return call.result(value.expr.abs(), dtype)
    low, _ = limits(dtype)
    wraps = call.failure(value.expr == low, f"the result does not fit {named(dtype)}")
    return call.result(pl.when(value.expr == low).then(0).otherwise(value.expr.abs()), dtype, wraps)


def sign(call: FunctionCall) -> Value:
    """-1, 0 or 1; that of NaN is 0."""
    value = _numeric(call)
    if value.is_null:
        return call.result(pl.lit(None, dtype=pl.Int8), pl.Int8())
    number = value.expr.cast(pl.Float64) if value.dtype not in BITS else value.expr
    found = pl.when(number.is_not_null()).then(
        pl.when(number.is_nan() if value.dtype not in BITS else pl.lit(False))
        .then(0)
        .when(number > 0)
        .then(1)
        .when(number < 0)
        .then(-1)
        .otherwise(0)
    )
    return call.result(found.cast(pl.Int8), pl.Int8())


def floor(call: FunctionCall) -> Value:
    """The greatest whole number that is not above."""
    return _cut(call, lambda value: value.floor())


def ceiling(call: FunctionCall) -> Value:
    """The least whole number that is not below."""
    return _cut(call, lambda value: value.ceil())


def _cut(call: FunctionCall, cut: Callable[[pl.Expr], pl.Expr]) -> Value:
    value = _numeric(call)
    if value.is_null or value.dtype in BITS:
        return call.result(value.expr, value.dtype)
    number, dtype = value.expr, value.dtype
    if isinstance(dtype, pl.Decimal):
        number, dtype = number.cast(pl.Float64), pl.Float64()
    return call.result(cut(number), dtype)


def rounded(call: FunctionCall) -> Value:
    """Halves go away from zero."""
    value = _numeric(call)
    places = call.constant_whole(1, -300, 300) if len(call) > 1 else 0
    if value.is_null or places is None:
        return call.result(pl.lit(None, dtype=pl.Float64), pl.Float64())
    if value.dtype in BITS:
        return _rounded_whole(call, value, places)
    dtype = pl.Float32() if value.dtype == pl.Float32() else pl.Float64()
    number = fitted(value, dtype).cast(pl.Float64)
    scale = 10.0 ** abs(places)
    grown = number * scale if places >= 0 else number / scale
    cut = _half_away(grown)
    back = cut / scale if places >= 0 else cut * scale
    kept = pl.when(grown.is_finite()).then(back).otherwise(number if places >= 0 else back)
    return call.result(kept.cast(dtype), dtype)


def _half_away(number: pl.Expr) -> pl.Expr:
    """The nearest whole number; of two, the one further from zero."""
    down = number.abs().floor()
    size = pl.when(number.abs() - down >= 0.5).then(down + 1).otherwise(down)
    return pl.when(number < 0).then(-size).otherwise(size)


def _rounded_whole(call: FunctionCall, value: Value, places: int) -> Value:
    dtype = value.dtype
    if places >= 0:
        return call.result(value.expr, dtype)
    if dtype in (pl.UInt8(), pl.UInt16(), pl.UInt32()):
        dtype = pl.Int64()
    if places < -18:
        return call.result(pl.when(value.expr.is_not_null()).then(pl.lit(0, dtype=dtype)), dtype)
    step = 10**-places
    wide = value.expr.cast(pl.Int128)
    size = (wide.abs() + step // 2) // step * step
    number = pl.when(wide < 0).then(0 - size).otherwise(size)
    low, high = limits(dtype)
    wraps = call.failure(~number.is_between(low, high), f"the result does not fit {named(dtype)}")
    return call.result(number.cast(dtype, strict=False), dtype, wraps)


def of_double(compute: Callable[[pl.Expr], pl.Expr]) -> Callable[[FunctionCall], Value]:
    """A function of one double."""

    def rule(call: FunctionCall) -> Value:
        return call.result(compute(call.a_float(0)), pl.Float64())

    return rule


def power(call: FunctionCall) -> Value:
    """``power(x, y)``."""
    base, exponent = call.a_float(0), call.a_float(1)
    whole = (base == float("-inf")) & (exponent == 0.5)  # polars takes the square root
    return call.result(pl.when(whole).then(float("inf")).otherwise(base**exponent), pl.Float64())


def logarithm(call: FunctionCall) -> Value:
    """``log(x)`` to the base of ten, or ``log(base, x)``."""
    if len(call) == 1:
        return call.result(call.a_float(0).log10(), pl.Float64())
    base = call[0].item if call[0].constant else None
    value = call.a_float(1)
    call.a_float(0)
    if base == 10:
        return call.result(value.log10(), pl.Float64())
    if base == 2:
        return call.result(value.log(2), pl.Float64())
    return call.result(value.log10() / call.a_float(0).log10(), pl.Float64())


def is_nan(call: FunctionCall) -> Value:
    """Whether a number is none."""
    value = _numeric(call)
    if not value.dtype.is_float():
        known = pl.when(value.expr.is_not_null()).then(pl.lit(False))
        return call.result(known, pl.Boolean())
    return call.result(value.expr.is_nan(), pl.Boolean())
