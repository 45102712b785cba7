"""These rules compute functions of numbers."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from lowwater.plan.language import times
from lowwater.plan.language.value import (
    BITS,
    SIGNED,
    FunctionCall,
    Value,
    divided,
    fitted,
    limits,
    named,
)


def _numeric(call: FunctionCall, at: int = 0) -> Value:
    call.need(at, "a number", lambda value: value.is_number)
    return call[at]


def absolute(call: FunctionCall) -> Value:
    """Compute ``abs``; it fails for the least whole number of a type, which has no opposite."""
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
    """Compute ``sign``: -1, 0 or 1; 0 for NaN."""
    value = _numeric(call)
    if value.is_null:
        return call.result(pl.lit(None, dtype=pl.Int8), pl.Int8())
    whole = value.dtype in BITS
    found = value.expr.sign() if whole else value.expr.cast(pl.Float64).sign().fill_nan(0)
    return call.result(found.cast(pl.Int8), pl.Int8())


def floor(call: FunctionCall) -> Value:
    """Compute ``floor``: the greatest whole number that is not above."""
    return _cut(call, lambda value: value.floor())


def ceiling(call: FunctionCall) -> Value:
    """Compute ``ceil``: the least whole number that is not below."""
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
    """Compute ``round``: halves go away from zero."""
    value = _numeric(call)
    places = call.constant_whole(1, -300, 300) if len(call) > 1 else 0
    if value.is_null or places is None:
        return call.result(pl.lit(None, dtype=pl.Float64), pl.Float64())
    if value.dtype in BITS:
        return _rounded_whole(call, value, places)
    dtype = pl.Float32() if value.dtype == pl.Float32() else pl.Float64()
    number = fitted(value, dtype).cast(pl.Float64)
    scale = 10.0 ** abs(places)
    grown = number * scale if places >= 0 else divided(number, pl.lit(scale))
    cut = grown.round(mode="half_away_from_zero")
    back = divided(cut, pl.lit(scale)) if places >= 0 else cut * scale
    kept = pl.when(grown.is_finite()).then(back).otherwise(number if places >= 0 else back)
    return call.result(kept.cast(dtype), dtype)


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
    """Return the rule of a function of one double."""

    def rule(call: FunctionCall) -> Value:
        return call.result(compute(call.a_float(0)), pl.Float64())

    return rule


def power(call: FunctionCall) -> Value:
    """Compute ``power(x, y)``."""
    base, exponent = call.a_float(0), call.a_float(1)
    whole = (base == float("-inf")) & (exponent == 0.5)  # polars takes the square root
    return call.result(pl.when(whole).then(float("inf")).otherwise(base**exponent), pl.Float64())


def logarithm(call: FunctionCall) -> Value:
    """Compute ``log(x)`` to the base of ten, or ``log(base, x)``."""
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
    """Compute ``isnan``: true for NaN."""
    value = _numeric(call)
    if not value.dtype.is_float():
        known = pl.when(value.expr.is_not_null()).then(pl.lit(False))
        return call.result(known, pl.Boolean())
    return call.result(value.expr.is_nan(), pl.Boolean())
