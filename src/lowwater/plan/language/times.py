"""These rules compute functions of times: parts, shifted and cut times, times as texts."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

import polars as pl
from sqlglot import exp

from lowwater.errors import OptionError
from lowwater.operators.checked import Failure
from lowwater.plan.language.value import FunctionCall, Unfit, Value, derived, named
from lowwater.stream.duration import nanoseconds

UNITS_A_DAY = {"ns": 86_400 * 10**9, "us": 86_400 * 10**6, "ms": 86_400 * 10**3}
"""The number of units in a day, by the unit of a time column."""
_NANOSECONDS = {"ns": 1, "us": 10**3, "ms": 10**6}
"""The nanoseconds in a unit, by the unit of a time column."""
_FIRST_DAY, _LAST_DAY = -95_500_000, 94_500_000
"""The first and the last day, from 1970, that Polars' calendar covers: the years from -258000 to
258000, and some more."""
_GREATEST_DAY = 2**31 - 2
"""The greatest distance of a DATE from 1970, in days; the next number stands for infinity."""
_FIRST_WRITTEN, _LAST_WRITTEN = -719_162, 2_932_896
"""The first and the last day, from 1970, of the years 1 to 9999, which have four digits."""


def is_time(value: Value) -> bool:
    """Return True if a value is a day or a moment."""
    return isinstance(value.dtype, pl.Date | pl.Datetime)


def day_of(value: Value) -> pl.Expr:
    """Return the number of a value's day since 1970, in universal time."""
    ticks = value.expr.to_physical().cast(pl.Int64)
    if isinstance(value.dtype, pl.Datetime):
        ticks = ticks // UNITS_A_DAY[value.dtype.time_unit]
    return ticks


def in_calendar(call: FunctionCall, at: int, written: bool = False) -> tuple[pl.Expr, Failure]:
    """Return a time that the calendar covers, and the failure of others."""
    value = call[at]
    first, last = (_FIRST_WRITTEN, _LAST_WRITTEN) if written else (_FIRST_DAY, _LAST_DAY)
    known = day_of(value).is_between(first, last)
    years = "1 to 9999" if written else "-258000 to 258000"
    far = call.failure(~known, f"the time is not in the years {years}")
    return pl.when(known).then(value.expr), far


_MONTHS = re.compile(r"([+-]?\d{1,9})\s*(month|year)s?", re.IGNORECASE)
_MOST_MONTHS = 12 * 1_000


# ---- shifted times -------------------------------------------------------------------------------


def interval(tree: exp.Interval) -> Value:
    """Return the value of an INTERVAL of fixed length, or of a number of months."""
    amount = tree.this
    if not isinstance(amount, exp.Literal | exp.Neg):
        raise Unfit("INTERVAL takes a number and a unit, such as INTERVAL '5' MINUTE")
    sign = "-" if isinstance(amount, exp.Neg) else ""
    unit = f" {tree.unit.name}" if tree.unit is not None else ""
    text = f"{sign}{amount.name}{unit}"
    if unit and not re.fullmatch(r"[+-]?\d+(\.\d+)?", f"{sign}{amount.name}".strip()):
        raise Unfit(f"INTERVAL takes a number before {unit.strip()}, not {amount.name!r}")
    if months := _MONTHS.fullmatch(text.strip()):
        count = int(months[1]) * (12 if months[2].lower() == "year" else 1)
        if abs(count) > _MOST_MONTHS:
            raise Unfit(f"INTERVAL {text!r} is too long")
        return Value(pl.lit(None), pl.Duration("us"), months=count)
    try:
        length = nanoseconds(text.strip(), "INTERVAL")
    except OptionError as error:
        raise Unfit(str(error)) from None
    ticks, rest = divmod(length, 1_000)
    ticks = length if rest else ticks
    if abs(ticks) >= 2**63:
        raise Unfit(f"INTERVAL {text!r} is too long")
    dtype = pl.Duration("ns" if rest else "us")
    return Value(pl.lit(ticks, dtype=pl.Int64).cast(dtype), dtype, constant=True)


def shifted(call: FunctionCall, moment: Value, length: Value, sign: int) -> Value:
    """Return a time moved by a length of time; a day stays a day if the length is whole days."""
    dtype = moment.dtype
    if length.months is not None:
        at = 0 if call[0] is moment else 1
        start, out = in_calendar(call, at)
        later = start.dt.offset_by(f"{sign * length.months}mo")
        return derived(later, dtype, [moment], out)
    assert isinstance(length.dtype, pl.Duration)
    if isinstance(dtype, pl.Date):
        per_day = UNITS_A_DAY[length.dtype.time_unit]
        ticks = length.expr.to_physical()
        if length.constant and length.item is not None and pl.select(ticks).item() % per_day == 0:
            return _days_later(call, moment, ticks // per_day, sign)
        dtype = pl.Datetime("us")
    assert isinstance(dtype, pl.Datetime)
    if length.dtype.time_unit == "ns" and dtype.time_unit != "ns":
        raise call.wrong(f"{named(moment.dtype)} does not count nanoseconds")
    one, far = as_moment(call, moment, dtype)
    start = one.to_physical()
    ticks = length.expr.cast(pl.Duration(dtype.time_unit), strict=False).to_physical()
    end = start + ticks if sign > 0 else start - ticks
    wraps = ((start ^ end) & ((ticks if sign > 0 else ~ticks) ^ end)) < 0
    failure = call.failure(wraps, f"the result does not fit {named(dtype)}")
    return call.result(end.cast(dtype), dtype, *far, failure)


def shifted_days(call: FunctionCall, day: Value, count: Value, sign: int) -> Value:
    """Return a day moved by a number of days, forward if ``sign`` is 1 and back if it is -1."""
    return _days_later(call, day, count.expr.cast(pl.Int64, strict=False), sign)


def _days_later(call: FunctionCall, day: Value, days: pl.Expr, sign: int) -> Value:
    start = day.expr.to_physical().cast(pl.Int64)
    near = pl.when(days.is_between(-(2**40), 2**40)).then(days).otherwise(2**40)
    end = start + near if sign > 0 else start - near
    end = pl.when(days.is_not_null()).then(end)
    outside = ~end.is_between(-_GREATEST_DAY, _GREATEST_DAY)
    far = call.failure(outside, "the result does not fit DATE")
    return call.result(end.cast(pl.Int32, strict=False).cast(pl.Date), pl.Date(), far)


def as_moment(
    call: FunctionCall, value: Value, dtype: pl.Datetime
) -> tuple[pl.Expr, tuple[Failure, ...]]:
    """Return a time as a moment of a type, and the failures of times too far away."""
    if value.dtype == dtype:
        return value.expr, ()
    if isinstance(value.dtype, pl.Date):
        per_day = UNITS_A_DAY[dtype.time_unit]
        days = value.expr.to_physical().cast(pl.Int64)
        known = days.is_between(-(2**63 // per_day), 2**63 // per_day - 1)
        ticks = pl.when(known).then(days) * per_day
        far = call.failure(~known, f"the day does not fit {named(dtype)}")
        return ticks.cast(dtype), (far,)
    assert isinstance(value.dtype, pl.Datetime)
    ticks = value.expr.to_physical()
    scale = _NANOSECONDS[value.dtype.time_unit] / _NANOSECONDS[dtype.time_unit]
    if scale < 1:
        return (ticks // round(1 / scale)).cast(dtype), ()
    known = ticks.is_between(-(2**63 // round(scale)), 2**63 // round(scale) - 1)
    far = call.failure(~known, f"the time does not fit {named(dtype)}")
    return (pl.when(known).then(ticks) * round(scale)).cast(dtype), (far,)


def instant(value: Value) -> pl.Expr:
    """Return a time in nanoseconds, in an integer wide enough for any time."""
    ticks = value.expr.to_physical().cast(pl.Int128)
    if isinstance(value.dtype, pl.Date):
        return ticks * UNITS_A_DAY["ns"]
    assert isinstance(value.dtype, pl.Datetime)
    return ticks * _NANOSECONDS[value.dtype.time_unit]


def date_difference(call: FunctionCall) -> Value:
    """Return the number of days between two days."""
    one, two = (each.expr.to_physical().cast(pl.Int64) for each in call.arguments)
    return call.result(one - two, pl.Int64())


def moment_difference(call: FunctionCall, dtype: pl.DataType) -> Value:
    """Return the length of time between two moments."""
    assert isinstance(dtype, pl.Datetime)
    (one, far), (two, away) = (as_moment(call, each, dtype) for each in call.arguments)
    left, right = one.to_physical(), two.to_physical()
    length = left - right
    wraps = call.failure(((left ^ right) & (left ^ length)) < 0, "the times are too far apart")
    kind = pl.Duration(dtype.time_unit)
    return call.result(length.cast(kind), kind, *far, *away, wraps)


def absolute(call: FunctionCall) -> Value:
    """Return a length of time without its sign."""
    dtype = call[0].dtype
    ticks = call[0].expr.to_physical()
    wraps = call.failure(ticks == -(2**63), "the length of time is too large")
    return call.result(ticks.abs().cast(dtype), dtype, wraps)


# ---- parts ---------------------------------------------------------------------------------------


def _microsecond(moment: pl.Expr) -> pl.Expr:
    """Return the microseconds since the minute began."""
    return moment.dt.second().cast(pl.Int64) * 1_000_000 + moment.dt.microsecond().cast(pl.Int64)


_PARTS: Mapping[str, Callable[[pl.Expr], pl.Expr]] = {
    "year": lambda t: t.dt.year(),
    "quarter": lambda t: t.dt.quarter(),
    "month": lambda t: t.dt.month(),
    "week": lambda t: t.dt.week(),
    "day": lambda t: t.dt.day(),
    "dow": lambda t: t.dt.weekday() % 7,
    "isodow": lambda t: t.dt.weekday(),
    "doy": lambda t: t.dt.ordinal_day(),
    "hour": lambda t: t.dt.hour(),
    "minute": lambda t: t.dt.minute(),
    "second": lambda t: t.dt.second(),
    "millisecond": lambda t: _microsecond(t) // 1_000,
    "microsecond": _microsecond,
}
_CLOCK = ("hour", "minute", "second", "millisecond", "microsecond")


def part(call: FunctionCall, unit: str, at: int) -> Value:
    """Return a part of a time, as a whole number."""
    name = unit.lower().removesuffix("s")
    if name not in _PARTS:
        raise call.wrong(f"a time has no {unit.lower()!r}; it has {', '.join(_PARTS)}")
    call.need(at, "a time", is_time)
    if call[at].is_null:
        return call.result(pl.lit(None, dtype=pl.Int64), pl.Int64())
    moment, far = in_calendar(call, at)
    if isinstance(call[at].dtype, pl.Date) and name in _CLOCK:
        found: pl.Expr = pl.when(moment.is_not_null()).then(pl.lit(0))
    else:
        found = _PARTS[name](moment)
    return call.result(found.cast(pl.Int64), pl.Int64(), far)


def extract(call: FunctionCall) -> Value:
    """Compute ``EXTRACT(HOUR FROM t)`` and ``hour(t)``."""
    unit = call.tree.this.name if isinstance(call.tree, exp.Extract) else call.name
    return part(call, unit, 0)


def date_part(call: FunctionCall) -> Value:
    """Compute ``date_part('hour', t)``."""
    unit = call.constant_text(0)
    if unit is None:
        raise call.wrong(f"{call.name} takes the name of a part, such as 'hour'", 0)
    return part(call, unit, 1)


_CUTS = {
    "microsecond": "1us",
    "millisecond": "1ms",
    "second": "1s",
    "minute": "1m",
    "hour": "1h",
    "day": "1d",
    "week": "1w",
    "month": "1mo",
    "quarter": "1q",
    "year": "1y",
}


def cut(call: FunctionCall) -> Value:
    """Compute ``date_trunc('hour', t)``."""
    unit = (call.constant_text(0) or "").lower()
    if unit not in _CUTS:
        raise call.wrong(f"a time can be cut to {', '.join(_CUTS)}, not to {unit!r}", 0)
    call.need(1, "a time", is_time)
    if call[1].is_null:
        return call.result(pl.lit(None, dtype=pl.Datetime("us")), pl.Datetime("us"))
    moment, far = in_calendar(call, 1)
    dtype = call[1].dtype
    clock = unit in (*_CLOCK, "day") and isinstance(dtype, pl.Date)
    return call.result(moment if clock else moment.dt.truncate(_CUTS[unit]), dtype, far)


# ---- texts ---------------------------------------------------------------------------------------

_DIRECTIVES = {**{f"%{each}": f"%{each}" for each in "YmdHMSyjaAbBpI%"}, "%f": "%6f"}


def written(call: FunctionCall) -> Value:
    """Compute ``strftime(t, format)``."""
    call.need(0, "a time", is_time)
    pattern = call.constant_text(1)
    if call[0].is_null or pattern is None:
        return call.result(pl.lit(None, dtype=pl.String), pl.String())
    if not pattern:
        raise call.wrong(f"{call.name} takes a format here, such as '%Y-%m-%d'", 1)
    pieces = re.findall(r"%.?|[^%]+", pattern, re.DOTALL)
    for piece in pieces:
        if piece.startswith("%") and piece not in _DIRECTIVES:
            known = " ".join(_DIRECTIVES)
            raise call.wrong(f"{call.name} does not know {piece!r}; it knows {known}", 1)
    moment, far = in_calendar(call, 0, written=True)
    if isinstance(call[0].dtype, pl.Date):
        moment = moment.cast(pl.Datetime("us"))
    texts = "".join(_DIRECTIVES.get(piece, piece) for piece in pieces)
    return call.result(moment.dt.strftime(texts), pl.String(), far)


def text_of(call: FunctionCall, at: int) -> tuple[pl.Expr, Failure]:
    """Return a time as a text, without zeros at the end of a fraction, and the failure of times too
    far away."""
    moment, far = in_calendar(call, at, written=True)
    dtype = call[at].dtype
    if isinstance(dtype, pl.Date):
        return moment.dt.strftime("%Y-%m-%d"), far
    assert isinstance(dtype, pl.Datetime)
    digits = {"ms": 3, "us": 6, "ns": 9}[dtype.time_unit]
    text = moment.dt.replace_time_zone(None) if dtype.time_zone else moment
    text = text.dt.strftime(f"%Y-%m-%d %H:%M:%S%.{digits}f")
    short = text.str.strip_chars_end("0").str.strip_chars_end(".")
    return (short + "+00" if dtype.time_zone else short), far


_DAY = r"\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])"
_MOMENT = rf"^{_DAY}([ T]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d(\.\d{{1,9}})?)?)?(Z|[+-]\d\d(:?\d\d)?)?$"
"""Matches texts of the form of a day or of a moment; not every such day exists."""


def read(text: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Return a text as a time, written year first; null if it is none."""
    zoned = isinstance(dtype, pl.Datetime) and dtype.time_zone is not None
    offset = text.str.slice(16).str.extract(r"([+-]\d\d(:?\d\d)?)$").str.replace(":", "")
    here = pl.lit(True) if zoned else offset.is_null() | offset.is_in(["+00", "+0000"])
    fits = pl.when(text.str.contains(_MOMENT) & here).then(text)
    plain = fits.str.head(16) + fits.str.slice(16).str.replace(r"(Z|[+-]\d\d(:?\d\d)?)$", "")
    plain = plain.str.replace("T", " ", literal=True)
    length = plain.str.len_chars()
    full = (
        pl.when(length == 10)
        .then(plain + " 00:00:00")
        .when(length == 16)
        .then(plain + ":00")
        .otherwise(plain)
    )
    moment = full.str.strptime(pl.Datetime("us"), "%Y-%m-%d %H:%M:%S%.f", strict=False)
    moment = pl.when(moment.dt.year() > 0).then(moment)
    if isinstance(dtype, pl.Date):
        return moment.cast(pl.Date)
    if isinstance(dtype, pl.Datetime) and dtype.time_zone:
        minutes = offset.str.slice(1).str.pad_end(4, "0").cast(pl.Int64, strict=False)
        minutes = minutes // 100 * 60 + minutes % 100
        ahead = pl.when(offset.str.starts_with("-")).then(-minutes).otherwise(minutes).fill_null(0)
        universal = moment - pl.duration(minutes=ahead)
        return universal.dt.replace_time_zone("UTC").dt.convert_time_zone(dtype.time_zone)
    return moment


def read_constant(value: Value, dtype: pl.DataType) -> Value:
    """Return a written text beside a time: as a day if both are days, else as a moment."""
    text = value.item
    if text is None:
        return Value(pl.lit(None, dtype=dtype), dtype, constant=True)
    whole = re.fullmatch(_DAY, text) is not None
    kind = pl.Date() if isinstance(dtype, pl.Date) and whole else dtype
    if isinstance(dtype, pl.Date) and not whole:
        kind = pl.Datetime("us")
    expr = read(pl.lit(text), kind)
    if isinstance(kind, pl.Datetime) and not kind.time_zone:
        kind = pl.Datetime("us")
    moment = pl.select(expr).to_series()
    if moment.item() is None:
        raise Unfit(
            f"{text!r} is no time; write it year first, as in '2024-02-29' or"
            " '2024-02-29 10:20:30.5'"
        )
    return derived(pl.lit(moment.to_physical().item()).cast(moment.dtype), moment.dtype, [value])
