"""Values in Spark SQL: texts that have a type, and numbers that take it from where they stand.

Comparing and computing as polars does it, in Spark's words. Whatever might differ is refused.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import isfinite

import polars as pl

Number = int | float | Decimal

BITS: Mapping[pl.DataType, int] = {pl.Int8(): 8, pl.Int16(): 16, pl.Int32(): 32, pl.Int64(): 64}
_SUFFIX = {8: "Y", 16: "S", 32: "", 64: "L"}
_NAMES: Mapping[pl.DataType, str] = {
    pl.Boolean(): "BOOLEAN",
    pl.Int8(): "TINYINT",
    pl.Int16(): "SMALLINT",
    pl.Int32(): "INT",
    pl.Int64(): "BIGINT",
    pl.Float32(): "FLOAT",
    pl.Float64(): "DOUBLE",
    pl.String(): "STRING",
    pl.Date(): "DATE",
    pl.Datetime("us"): "TIMESTAMP_NTZ",
}
_EXACT_IN_DOUBLE = 1 << 53


class MightDiffer(Exception):
    """Spark and polars might not agree on this, or it is not known that they do."""


@dataclass(frozen=True)
class Typed:
    """Spark SQL that gives a value of a type."""

    text: str
    dtype: pl.DataType
    constant: bool = False


@dataclass(frozen=True)
class Untyped:
    """A number, or null, that takes its type from where it stands."""

    value: Number | None


Operand = Typed | Untyped


def spark_type(dtype: pl.DataType) -> str | None:
    """The Spark type that holds exactly the values of a polars type; None if there is none."""
    if isinstance(dtype, pl.Datetime) and dtype.time_unit == "us" and dtype.time_zone:
        return "TIMESTAMP"
    return _NAMES.get(dtype)


def typed(value: Operand) -> Typed:
    """A value that must have a type."""
    if isinstance(value, Untyped):
        raise MightDiffer
    return value


def known(value: Untyped) -> Number:
    """A number that must not be null."""
    if value.value is None:
        raise MightDiffer
    return value.value


def is_constant(value: Operand) -> bool:
    """Whether a value is the same in every row."""
    return isinstance(value, Untyped) or value.constant


# ---- comparing -----------------------------------------------------------------------------------


def fitted(value: Operand, dtype: pl.DataType) -> str:
    """The text of a value as one of this type; nothing but integers is made wider."""
    if isinstance(value, Untyped):
        return literal(value.value, dtype)
    if value.dtype == dtype:
        return value.text
    if BITS.get(value.dtype, 64) < BITS.get(dtype, 0):
        return f"CAST({value.text} AS {spark_type(dtype)})"
    raise MightDiffer


def as_double(value: Operand) -> str:
    """The text of a number as a double, rounded as polars rounds it."""
    if isinstance(value, Typed) and (value.dtype in BITS or value.dtype == pl.Float32()):
        return f"CAST({value.text} AS DOUBLE)"
    return fitted(value, pl.Float64())


def compared(sign: str, left: Operand, right: Operand) -> str:
    """A comparison, both sides brought to the type in which polars compares."""
    if is_constant(left) and "CASE" in typed(right).text:
        raise MightDiffer  # polars then loses rows where every row takes the same branch
    if isinstance(right, Untyped):
        first, second = _beside_number(typed(left), known(right))
    elif isinstance(left, Untyped):
        second, first = _beside_number(right, known(left))
    else:
        first, second = _alike(left, right)
    return f"({first} {sign} {second})"


def _beside_number(value: Typed, number: Number) -> tuple[str, str]:
    """A value and a number of no type, to be compared."""
    if value.dtype == pl.Float32() and isinstance(number, float):  # compared as doubles
        raise MightDiffer
    if value.dtype.is_float():
        return _unpushed(value), literal(number, value.dtype)
    if value.dtype not in BITS:
        raise MightDiffer
    if isinstance(number, float):
        return f"({as_double(value)} + 0D)", literal(number, pl.Float64())
    if number == int(number):
        dtype = value.dtype if holds(value.dtype, int(number)) else pl.Int64()
        return fitted(value, dtype), literal(int(number), dtype)
    scale = -int(Decimal(number).as_tuple().exponent)
    if scale > 18:
        raise MightDiffer
    exact = f"DECIMAL(38, {scale})"
    return f"CAST({value.text} AS {exact})", f"CAST('{number:f}' AS {exact})"


def _alike(left: Typed, right: Typed) -> tuple[str, str]:
    """Two values of types that may be compared."""
    types = {left.dtype, right.dtype}
    if len(types) == 1:
        return _unpushed(left), _unpushed(right)
    if types <= BITS.keys():
        widest = max(types, key=BITS.__getitem__)
        return fitted(left, widest), fitted(right, widest)
    if pl.Float64() in types:
        first, second = (f"({as_double(each)} + 0D)" for each in (left, right))
        return first, second
    if types == {pl.Date(), pl.Datetime("us")}:
        return _at_midnight(left), _at_midnight(right)
    raise MightDiffer


def _unpushed(value: Typed) -> str:
    """A value to compare, out of the reach of file readers if it is floating-point."""
    if value.dtype.is_float() and not value.constant:
        return f"({value.text} + {literal(0, value.dtype)})"
    return value.text


def _at_midnight(value: Typed) -> str:
    if value.dtype == pl.Datetime("us"):
        return value.text
    if not value.constant:  # a day far off overflows
        raise MightDiffer
    return f"CAST({value.text} AS TIMESTAMP_NTZ)"


# ---- computing -----------------------------------------------------------------------------------


def computed(sign: str, left: Operand, right: Operand, dtype: pl.DataType) -> Typed:
    """A sum, difference or product of floating-point numbers."""
    constants = [each for each in (left, right) if is_constant(each)]
    if any(isinstance(each, Typed) or each == Untyped(0) for each in constants):
        raise MightDiffer
    if dtype == pl.Float64():
        return Typed(f"({as_double(left)} {sign} {as_double(right)})", dtype)
    if dtype == pl.Float32():
        return Typed(f"({fitted(left, dtype)} {sign} {fitted(right, dtype)})", dtype)
    raise MightDiffer


# ---- literals ------------------------------------------------------------------------------------


def holds(dtype: pl.DataType, value: int) -> bool:
    """Whether an integer type has room for a number."""
    half = 1 << (BITS[dtype] - 1)
    return -half <= value < half


def literal(value: object, dtype: pl.DataType) -> str:
    """A value of a type, its time as ticks, in Spark's spelling."""
    name = spark_type(dtype)
    if name is None:
        raise MightDiffer
    if value is None:
        return f"CAST(NULL AS {name})"
    if isinstance(value, bool):
        return str(value).upper() if dtype == pl.Boolean() else _refused()
    if isinstance(value, str):
        return _string(value) if dtype == pl.String() else _refused()
    if not isinstance(value, int | float | Decimal):
        return _refused()
    if dtype.is_float():
        return _floating(value, dtype)
    if not isinstance(value, int):
        return _refused()
    if dtype in BITS:
        return f"{value}{_SUFFIX[BITS[dtype]]}" if holds(dtype, value) else _refused()
    return _moment(value, dtype)


def _refused() -> str:
    raise MightDiffer


def _floating(value: Number, dtype: pl.DataType) -> str:
    """A floating-point literal, if there is but one way to round the number to it."""
    double = float(value)
    rounded = double
    if isinstance(value, int) and abs(value) > _EXACT_IN_DOUBLE and dtype != pl.Float64():
        raise MightDiffer
    if dtype == pl.Float32() and abs(double) < 3e38:
        rounded = struct.unpack("f", struct.pack("f", double))[0]
    if isinstance(value, Decimal) and pl.select(pl.lit(value).cast(dtype)).item() != rounded:
        raise MightDiffer
    if not isfinite(double) or (dtype == pl.Float32() and abs(double) >= 3e38):
        raise MightDiffer
    return f"{double!r}D" if dtype == pl.Float64() else f"CAST({double!r}D AS FLOAT)"


def _string(value: str) -> str:
    """A string; in hexadecimal where the session might read it in another way."""
    if value.isprintable() and not set(value) & set("'\"\\$"):
        return f"'{value}'"
    return f"CAST(X'{value.encode().hex()}' AS STRING)"


def _moment(ticks: int, dtype: pl.DataType) -> str:
    """A day or a timestamp of the years 1 to 9999."""
    try:
        if dtype == pl.Date():
            return f"DATE'{date(1970, 1, 1) + timedelta(days=ticks)}'"
        if isinstance(dtype, pl.Datetime):
            moment = datetime(1970, 1, 1) + timedelta(microseconds=ticks)
            return f"TIMESTAMP_LTZ'{moment}Z'" if dtype.time_zone else f"TIMESTAMP_NTZ'{moment}'"
    except OverflowError:
        pass
    raise MightDiffer
