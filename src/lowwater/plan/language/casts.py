"""CAST and TRY_CAST convert values; one that does not fit ends the run, or becomes null."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import ROUND_HALF_UP, Context, Decimal, InvalidOperation
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from sqlglot import exp

from lowwater.operators.checked import Failure
from lowwater.plan.language import times
from lowwater.plan.language.value import BITS, FunctionCall, Value, derived, fitted, limits, named

_KIND = exp.DataType.Type
TYPES: Mapping[str, pl.DataType] = {
    "BOOLEAN": pl.Boolean(),
    "TINYINT": pl.Int8(),
    "SMALLINT": pl.Int16(),
    "INT": pl.Int32(),
    "BIGINT": pl.Int64(),
    "UTINYINT": pl.UInt8(),
    "USMALLINT": pl.UInt16(),
    "UINT": pl.UInt32(),
    "UBIGINT": pl.UInt64(),
    "FLOAT": pl.Float32(),
    "DOUBLE": pl.Float64(),
    "DECIMAL": pl.Decimal(18, 3),
    "VARCHAR": pl.String(),
    "TEXT": pl.String(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us"),
    "DATETIME": pl.Datetime("us"),
    "TIMESTAMPNTZ": pl.Datetime("us"),
    "TIMESTAMPTZ": pl.Datetime("us", "UTC"),
}
"""The types that can be cast to, by the parser's names."""


def cast(call: FunctionCall, to: exp.DataType, forgiving: bool) -> Value:
    """Return a value converted to another type.

    Where it does not fit, the result is null if ``forgiving``; otherwise the run ends.
    """
    dtype = _type(call, to)
    value = call[0]
    if value.dtype == dtype and value.bare is None:
        return value
    converted, failures = _converted(call, value, dtype)
    if forgiving:
        for each in failures:
            converted = pl.when(~each.when.fill_null(False)).then(converted)
        return call.result(converted, dtype)
    return call.result(converted, dtype, *failures)


def _type(call: FunctionCall, to: exp.DataType) -> pl.DataType:
    name = to.this.value if isinstance(to.this, _KIND) else str(to.this)
    if name not in TYPES or to.args.get("nested"):
        known = ", ".join(
            each for each in TYPES if each not in ("DATETIME", "TIMESTAMPNTZ", "TEXT")
        )
        raise call.wrong(f"a value cannot be cast to {to.sql()}; it can to {known}")
    given = to.expressions
    if not given:
        return TYPES[name]
    if name != "DECIMAL":
        raise call.wrong(f"{name} takes no length or precision here: write {name}")
    numbers = [each.name for each in given]
    if len(numbers) > 2 or not all(each.isdigit() for each in numbers):
        raise call.wrong(
            "DECIMAL takes the number of digits, and the number of them behind the point"
        )
    precision, scale = int(numbers[0]), int(numbers[1]) if len(numbers) > 1 else 0
    if not 1 <= precision <= 38 or scale > precision:
        raise call.wrong("DECIMAL has 1 to 38 digits, and no more decimals than digits")
    return pl.Decimal(precision, scale)


Converted = tuple[pl.Expr, tuple[Failure, ...]]


def _converted(call: FunctionCall, value: Value, dtype: pl.DataType) -> Converted:
    """Return a value of another type, and the failures of values that do not fit it."""
    if value.is_null:
        return pl.lit(None, dtype=dtype), ()
    if value.is_text:
        return _from_text(call, value, dtype)
    if dtype == pl.String():
        text = as_text(call, 0)
        return text.expr, text.failures
    if isinstance(dtype, pl.Date | pl.Datetime):
        return _to_time(call, value, dtype)
    if not (value.is_number or value.dtype == pl.Boolean()):
        raise call.wrong(f"{named(value.dtype)} cannot be cast to {named(dtype)}", 0)
    if dtype == pl.Boolean():
        return (fitted(value, value.dtype) != 0), ()
    if dtype in BITS:
        return _to_whole(call, value, dtype)
    if isinstance(dtype, pl.Decimal):
        return _to_decimal(call, value, dtype)
    result = fitted(value, dtype).cast(dtype)
    if value.dtype == pl.Float64() and dtype == pl.Float32():
        large = result.is_infinite() & value.expr.is_finite()
        return result, (_does_not_fit(call, large, dtype),)
    return result, ()


def _does_not_fit(call: FunctionCall, when: pl.Expr, dtype: pl.DataType) -> Failure:
    return call.failure(when, f"a value does not fit {named(dtype)}; TRY_CAST gives null for it")


def _to_whole(call: FunctionCall, value: Value, dtype: pl.DataType) -> Converted:
    low, high = limits(dtype)
    number = value.expr
    if value.dtype == pl.Boolean():
        return number.cast(dtype), ()
    if isinstance(value.bare, Decimal) or isinstance(value.dtype, pl.Decimal):
        parsed = _parsed(number.cast(pl.String), dtype, partial(_read_whole, dtype))
        return parsed, (_does_not_fit(call, parsed.is_null() & number.is_not_null(), dtype),)
    if value.dtype in BITS and value.bare is None:
        least, most = limits(value.dtype)
        if low <= least and most <= high:
            return number.cast(dtype), ()
        fits = number.cast(pl.Int128).is_between(low, high)
    elif value.bare is not None:
        fits = pl.lit(low <= value.bare <= high)
        number = pl.lit(int(value.bare) if low <= value.bare <= high else 0)
    else:
        number = number.cast(pl.Float64).round(mode="half_to_even")
        fits = (number >= float(low)) & (number < float(high + 1)) & number.is_not_nan()
        number = pl.when(fits).then(number)
    return number.cast(dtype, strict=False), (_does_not_fit(call, ~fits, dtype),)


def _to_decimal(call: FunctionCall, value: Value, dtype: pl.Decimal) -> Converted:
    number = value.expr.cast(pl.Int8) if value.dtype == pl.Boolean() else value.expr
    if value.bare is not None:
        number = pl.lit(str(value.bare))
    text = number.cast(pl.String) if not value.dtype.is_float() or value.bare is not None else None
    if text is None:
        text = _float_text(number, value.dtype)
    parsed = _parsed(text, dtype, partial(_read_decimal, dtype))
    return parsed, (_does_not_fit(call, parsed.is_null() & number.is_not_null(), dtype),)


def _to_time(call: FunctionCall, value: Value, dtype: pl.DataType) -> Converted:
    if not times.is_time(value):
        raise call.wrong(f"{named(value.dtype)} cannot be cast to {named(dtype)}", 0)
    if isinstance(dtype, pl.Datetime):
        source = value.dtype
        zoned = isinstance(source, pl.Datetime) and source.time_zone is not None
        if zoned != (dtype.time_zone is not None):
            raise call.wrong(f"{named(source)} cannot be cast to {named(dtype)}", 0)
        if zoned:
            return value.expr.cast(dtype, strict=False), ()
        return times.as_moment(call, value, dtype)
    days = times.day_of(value)
    fits = days.is_between(-(2**31), 2**31 - 1)
    if isinstance(value.dtype, pl.Datetime) and value.dtype.time_zone not in (None, "UTC"):
        return value.expr.cast(pl.Date), ()
    return days.cast(pl.Int32, strict=False).cast(pl.Date), (_does_not_fit(call, ~fits, dtype),)


# ---- from texts ----------------------------------------------------------------------------------


def _from_text(call: FunctionCall, value: Value, dtype: pl.DataType) -> Converted:
    if isinstance(dtype, pl.Date | pl.Datetime):
        found = times.read(value.expr, dtype)
    elif dtype == pl.Boolean():
        word = value.expr.str.to_lowercase()
        found = (
            pl.when(word.is_in(["true", "t", "1", "yes", "y"]))
            .then(pl.lit(True))
            .when(word.is_in(["false", "f", "0", "no", "n"]))
            .then(pl.lit(False))
        )
    elif dtype in BITS:
        found = _parsed(value.expr, dtype, partial(_read_whole, dtype))
    elif isinstance(dtype, pl.Decimal):
        found = _parsed(value.expr, dtype, partial(_read_decimal, dtype))
    else:
        found = _parsed(value.expr, dtype, _read_float)
    none = found.is_null() & value.expr.is_not_null()
    failure = call.failure(none, f"a text is no {named(dtype)}; TRY_CAST gives null for it")
    return found, (failure,)


def _parsed(texts: pl.Expr, dtype: pl.DataType, read: Callable[[str], Any]) -> pl.Expr:
    """Return the values that a function reads from texts."""
    parse = partial(_parse, dtype, read)
    return texts.map_batches(parse, return_dtype=dtype, is_elementwise=True)


def _parse(dtype: pl.DataType, read: Callable[[str], Any], texts: pl.Series) -> pl.Series:
    """Read texts one by one, equal ones once."""
    different = texts.unique().drop_nulls()
    values = pl.Series([read(each) for each in different], dtype=dtype, strict=True)
    return texts.replace_strict(different, values, default=None, return_dtype=dtype)


_NUMBER = re.compile(r"\s*([+-]?(\d+(_\d+)*)?(\.(\d+(_\d+)*)?)?([eE][+-]?\d+)?)\s*", re.ASCII)
_EXACT = Context(prec=100)


def _number(text: str) -> Decimal | None:
    """Return the number that a text spells; None if it spells none."""
    found = _NUMBER.fullmatch(text)
    try:
        number = Decimal(found[1].replace("_", "")) if found else None
    except InvalidOperation:
        return None
    return number if number is None or number.adjusted() < 60 else None


def _read_whole(dtype: pl.DataType, text: str) -> int | None:
    number = _number(text)
    if number is None:
        return None
    low, high = limits(dtype)
    whole = int(number.to_integral_value(ROUND_HALF_UP))
    return whole if low <= whole <= high else None


def _read_decimal(dtype: pl.Decimal, text: str) -> Decimal | None:
    number = _number(text)
    if number is None:
        return None
    exact = number.quantize(Decimal(1).scaleb(-dtype.scale), ROUND_HALF_UP, _EXACT)
    return exact if len(exact.as_tuple().digits) <= dtype.precision else None


_WORDS = {"nan": float("nan"), "inf": float("inf"), "infinity": float("inf")}


def _read_float(text: str) -> float | None:
    word = text.strip(" \t\n\r\f\v").lower()
    unsigned = word[1:] if word[:1] in ("+", "-") else word
    if unsigned in _WORDS:
        return -_WORDS[unsigned] if word[:1] == "-" else _WORDS[unsigned]
    found = _NUMBER.fullmatch(text)
    try:
        number = float(found[1].replace("_", "")) if found else None
    except ValueError:
        return None
    return None if number is not None and np.isinf(number) else number


# ---- to texts ------------------------------------------------------------------------------------


def as_text(call: FunctionCall, at: int) -> Value:
    """Return an argument as a text."""
    value = call[at]
    dtype = value.dtype
    if value.is_null or dtype == pl.String():
        return replace(value, expr=value.expr.cast(pl.String), failures=())
    if isinstance(dtype, pl.Date | pl.Datetime):
        text, far = times.text_of(call, at)
        return Value(text, pl.String(), (far,), constant=value.constant)
    if isinstance(value.bare, Decimal):
        return Value(pl.lit(f"{value.bare:f}"), pl.String(), constant=True)
    if dtype.is_float():
        return replace(derived(_float_text(value.expr, dtype), pl.String(), [value]), failures=())
    if not (value.is_number or dtype == pl.Boolean()):
        raise call.wrong(f"{named(dtype)} cannot be converted to a text", at)
    return replace(derived(value.expr.cast(pl.String), pl.String(), [value]), failures=())


def _float_text(numbers: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return the shortest texts that are read as the same floating-point numbers."""
    spell = _spelled_single if dtype == pl.Float32() else _spelled_double
    return numbers.map_batches(spell, return_dtype=pl.String, is_elementwise=True)


def _spelled_double(numbers: pl.Series) -> pl.Series:
    return pl.Series([None if each is None else repr(each) for each in numbers], dtype=pl.String)


def _spelled_single(numbers: pl.Series) -> pl.Series:
    return pl.Series([None if each is None else _short(each) for each in numbers], dtype=pl.String)


def _short(number: float) -> str:
    single = np.float32(number)
    if np.isfinite(number) and 1e-4 <= abs(number) < 1e16:
        return np.format_float_positional(single, trim="0")
    return str(single)
