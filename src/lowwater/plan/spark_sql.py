"""Expressions as Spark SQL, where Spark is sure to give the values polars gives.

What is translated is the text polars reads, node by node, and only nodes listed here. An expression
that might differ is not translated at all and runs in a stage of ours. What the texts keep to:

- Nothing raises, in ANSI mode or out of it: integers wrap as in polars, casts only widen.
- No type, zone or escape is left to the session: numbers of no type get the one polars gave them.
- Spark's file readers skip rows by statistics that know neither NaN nor -0.0, so a comparison of
  floating-point columns adds a zero, which keeps it from them.
- Where polars depends on the number of rows (``x / 3``, ``x + 0`` in floating point) there is
  nothing to be equal to.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from math import frexp, isfinite
from typing import cast

import polars as pl
import sqlglot
from sqlglot import exp

from lowwater.errors import OptionError
from lowwater.stream.duration import nanoseconds

Number = int | float | Decimal

_BITS: Mapping[pl.DataType, int] = {pl.Int8(): 8, pl.Int16(): 16, pl.Int32(): 32, pl.Int64(): 64}
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
_UTC = ("UTC", "Etc/UTC")
_HALF, _WHOLE = 1 << 63, 1 << 64
_EXACT_IN_DOUBLE = 1 << 53
_LONGEST_SHIFT = 100_000 * 86_400 * 10**6  # days, in microseconds
_LONGEST_TEXT = 20_000


class _MightDiffer(Exception):
    """Spark and polars might not agree on this, or it is not known that they do."""


@dataclass(frozen=True)
class _Typed:
    """Spark SQL that gives a value of a type."""

    text: str
    dtype: pl.DataType
    constant: bool = False


@dataclass(frozen=True)
class _Untyped:
    """A number, or null, that takes its type from where it stands."""

    value: Number | None


_Operand = _Typed | _Untyped


def spark_type(dtype: pl.DataType) -> str | None:
    """The Spark type that holds exactly the values of a polars type; None if there is none."""
    if isinstance(dtype, pl.Datetime) and dtype.time_unit == "us" and dtype.time_zone:
        return "TIMESTAMP"
    return _NAMES.get(dtype)


def translate(tree: exp.Expr, schema: Mapping[str, pl.DataType], dtype: pl.DataType) -> str | None:
    """The Spark SQL of a checked expression that gives this type, or None if it might differ."""
    translation = _Translation(dict(pl.Schema(schema)))
    try:
        if isinstance(tree, exp.Column):
            return translation.copied(tree.name, dtype)
        return _fitted(translation.read(_as_polars_reads_it(tree)), dtype)
    except (_MightDiffer, pl.exceptions.PolarsError, OverflowError):
        return None


class _Translation:
    """Reads trees over the columns of one schema."""

    def __init__(self, schema: Mapping[str, pl.DataType]):
        self._schema = schema
        pair, several = "this expression", "this expressions"
        self._handlers: dict[type[exp.Expr], tuple[Callable[..., _Operand], str]] = {
            exp.Column: (self._column, "this"),
            exp.Paren: (self._inner, "this"),
            exp.Not: (self._not, "this"),
            exp.And: (self._logic, pair),
            exp.Or: (self._logic, pair),
            **dict.fromkeys(_COMPARISONS, (self._comparison, pair)),
            exp.Is: (self._is, pair),
            exp.Between: (self._between, "this low high"),
            exp.In: (self._in, several),
            exp.Like: (self._like, f"{pair} negate"),
            exp.StartsWith: (self._starts_with, pair),
            exp.Case: (self._case, "this ifs default"),
            exp.Coalesce: (self._coalesce, several),
            exp.Nullif: (self._nullif, pair),
            exp.Greatest: (self._extreme, f"{several} ignore_nulls"),
            exp.Least: (self._extreme, f"{several} ignore_nulls"),
            exp.Add: (self._arithmetic, pair),
            exp.Sub: (self._arithmetic, pair),
            exp.Mul: (self._arithmetic, pair),
            exp.Neg: (self._negative, "this"),
            exp.Div: (self._quotient, f"{pair} typed safe"),
            exp.Mod: (self._remainder, pair),
            exp.Abs: (self._absolute, "this"),
            exp.DPipe: (self._concatenated, f"{pair} safe"),
            exp.Cast: (self._widened, "this to _type"),
        }
        """What is translated, by whom, and the arguments that are understood."""

    def copied(self, name: str, dtype: pl.DataType) -> str:
        """A column as it is: any type will do."""
        if self._schema.get(name) != dtype:
            raise _MightDiffer
        return self._quoted(name)

    def read(self, tree: exp.Expr) -> _Operand:
        """Translate a tree."""
        if not tree.find(exp.Column):
            return _constant(tree)
        handler, arguments = self._handlers.get(type(tree), (None, ""))
        if handler is None or any(tree.args[each] for each in tree.args.keys() - arguments.split()):
            raise _MightDiffer
        value = handler(tree)
        if isinstance(value, _Typed) and len(value.text) > _LONGEST_TEXT:
            raise _MightDiffer
        return value

    def _quoted(self, name: str) -> str:
        twins = [each for each in self._schema if each.lower() == name.lower()]
        if twins != [name] or "${" in name:  # Spark folds case, and puts variables into texts
            raise _MightDiffer
        return "`" + name.replace("`", "``") + "`"

    def _type_of(self, tree: exp.Expr) -> pl.DataType:
        runnable = pl.sql_expr(_polars_text(tree)).alias("x")
        return pl.LazyFrame(schema=self._schema).select(runnable).collect_schema()["x"]

    def _column(self, tree: exp.Column) -> _Operand:
        dtype = self._schema[tree.name]
        if spark_type(dtype) is None:
            raise _MightDiffer
        return _Typed(self._quoted(tree.name), dtype)

    def _inner(self, tree: exp.Paren) -> _Operand:
        return self.read(tree.this)

    def _text(self, tree: exp.Expr, dtype: pl.DataType) -> str:
        return _fitted(self.read(tree), dtype)

    # ---- true or false ---------------------------------------------------------------------------

    def _truth(self, tree: exp.Expr) -> str:
        return self._text(tree, pl.Boolean())

    def _not(self, tree: exp.Not) -> _Operand:
        return _boolean(f"NOT {self._truth(tree.this)}")

    def _logic(self, tree: exp.And | exp.Or) -> _Operand:
        word = "AND" if isinstance(tree, exp.And) else "OR"
        return _boolean(f"{self._truth(tree.this)} {word} {self._truth(tree.expression)}")

    def _comparison(self, tree: exp.Binary) -> _Operand:
        left, right = self.read(tree.this), self.read(tree.expression)
        return _boolean(_compared(_COMPARISONS[type(tree)], left, right))

    def _is(self, tree: exp.Is) -> _Operand:
        if isinstance(tree.expression, exp.Null):
            return _boolean(f"{_typed(self.read(tree.this)).text} IS NULL")
        if isinstance(tree.expression, exp.Boolean):  # null stays null in polars
            return _boolean(f"{self._truth(tree.this)} = {str(tree.expression.this).upper()}")
        raise _MightDiffer

    def _between(self, tree: exp.Between) -> _Operand:
        value = self.read(tree.this)
        low = _compared(">=", value, self.read(tree.args["low"]))
        high = _compared("<=", value, self.read(tree.args["high"]))
        return _boolean(f"{low} AND {high}")

    def _in(self, tree: exp.In) -> _Operand:
        value = self.read(tree.this)
        members = [self.read(each) for each in tree.expressions]
        if not all(map(_is_constant, members)):
            return _boolean(" OR ".join(_compared("=", value, each) for each in members))
        return _boolean(_among(_typed(value), members))

    def _like(self, tree: exp.Like) -> _Operand:
        pattern = tree.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.this:
            raise _MightDiffer  # a backslash is a letter in polars and an escape in Spark
        word = "NOT LIKE" if tree.args.get("negate") else "LIKE"
        value, text = self._text(tree.this, pl.String()), self._text(pattern, pl.String())
        return _boolean(f"{value} {word} {text}")

    def _starts_with(self, tree: exp.StartsWith) -> _Operand:
        value, start = (self._text(each, pl.String()) for each in (tree.this, tree.expression))
        return _boolean(f"startswith({value}, {start})")

    # ---- choices ---------------------------------------------------------------------------------

    def _case(self, tree: exp.Case) -> _Operand:
        dtype = self._type_of(tree)
        parts = []
        for each in tree.args["ifs"]:
            if tree.this:
                when = _compared("=", self.read(tree.this), self.read(each.this))
            else:
                when = self._truth(each.this)
            parts.append(f"WHEN {when} THEN {self._text(each.args['true'], dtype)}")
        default = tree.args.get("default") or exp.Null()
        parts.append(f"ELSE {self._text(default, dtype)}")
        return _Typed(f"CASE {' '.join(parts)} END", dtype)

    def _coalesce(self, tree: exp.Coalesce) -> _Operand:
        dtype = self._type_of(tree)
        parts = [self._text(each, dtype) for each in (tree.this, *tree.expressions)]
        return _Typed(f"coalesce({', '.join(parts)})", dtype)

    def _nullif(self, tree: exp.Nullif) -> _Operand:
        value = _typed(self.read(tree.this))
        same = _compared("=", value, self.read(tree.expression))
        return _Typed(f"CASE WHEN {same} THEN NULL ELSE {value.text} END", value.dtype)

    def _extreme(self, tree: exp.Greatest | exp.Least) -> _Operand:
        dtype = self._type_of(tree)
        if dtype.is_float() or not tree.expressions:  # polars passes over NaN
            raise _MightDiffer
        parts = [self._text(each, dtype) for each in (tree.this, *tree.expressions)]
        word = "greatest" if isinstance(tree, exp.Greatest) else "least"
        return _Typed(f"{word}({', '.join(parts)})", dtype)

    # ---- computing -------------------------------------------------------------------------------

    def _arithmetic(self, tree: exp.Add | exp.Sub | exp.Mul) -> _Operand:
        if isinstance(tree.this, exp.Interval) or isinstance(tree.expression, exp.Interval):
            return self._shifted(tree)
        left, right = self.read(tree.this), self.read(tree.expression)
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(tree)]
        return _computed(sign, left, right, self._type_of(tree))

    def _negative(self, tree: exp.Neg) -> _Operand:
        dtype = self._type_of(tree)  # polars computes 0 - x
        return _computed("-", _Untyped(0), self.read(tree.this), dtype)

    def _shifted(self, tree: exp.Expr) -> _Operand:
        """A timestamp plus or minus a constant."""
        moment, interval = tree.this, tree.expression
        if isinstance(tree, exp.Add) and isinstance(moment, exp.Interval):
            moment, interval = interval, moment
        if isinstance(tree, exp.Mul) or not isinstance(interval, exp.Interval):
            raise _MightDiffer
        length = _microseconds(interval) * (-1 if isinstance(tree, exp.Sub) else 1)
        value = _typed(self.read(moment))
        if value.dtype == pl.Datetime("us"):
            return _Typed(_shifted_moment(value.text, length), value.dtype)
        if isinstance(value.dtype, pl.Datetime) and value.dtype.time_zone in _UTC:
            ticks = _wrapped("+", f"unix_micros({value.text})", f"{length}L")
            return _Typed(f"timestamp_micros({ticks})", value.dtype)
        raise _MightDiffer

    def _quotient(self, tree: exp.Div) -> _Operand:
        above = _as_double(self.read(tree.this))
        below = self.read(tree.expression)
        if isinstance(below, _Untyped):
            divisor = float(_number(below))
            fraction, power = frexp(divisor)  # polars multiplies by a rounded 1 / divisor
            if abs(fraction) != 0.5 or abs(power) > 1000:
                raise _MightDiffer
            return _Typed(f"({above} / {_literal(divisor, pl.Float64())})", pl.Float64())
        if below.constant:
            raise _MightDiffer
        text = _as_double(below)
        infinity = (
            f"CASE WHEN CAST({text} AS STRING) = '-0.0' THEN DOUBLE('-Infinity')"
            " ELSE DOUBLE('Infinity') END"
        )
        divided = (
            f"CASE WHEN {text} = 0D THEN {above} * {infinity} ELSE try_divide({above}, {text}) END"
        )
        return _Typed(divided, pl.Float64())

    def _remainder(self, tree: exp.Mod) -> _Operand:
        dtype = self._type_of(tree)
        left, right = self.read(tree.this), self.read(tree.expression)
        if dtype not in _BITS or right == _Untyped(0):
            raise _MightDiffer
        return _Typed(f"try_mod({_fitted(left, dtype)}, {_fitted(right, dtype)})", dtype)

    def _absolute(self, tree: exp.Abs) -> _Operand:
        value = _typed(self.read(tree.this))
        text = value.text
        if value.dtype.is_float():
            return _Typed(f"abs({text})", value.dtype)
        zero = _literal(0, value.dtype)  # the least integer has no opposite and stays
        opposite = f"coalesce(try_subtract({zero}, {text}), {text})"
        return _Typed(f"CASE WHEN {text} < {zero} THEN {opposite} ELSE {text} END", value.dtype)

    def _concatenated(self, tree: exp.DPipe) -> _Operand:
        left, right = (self._text(each, pl.String()) for each in (tree.this, tree.expression))
        return _Typed(f"({left} || {right})", pl.String())

    def _widened(self, tree: exp.Cast) -> _Operand:
        dtype, value = self._type_of(tree), _typed(self.read(tree.this))
        text = _as_double(value) if dtype == pl.Float64() else _fitted(value, dtype)
        return _Typed(text, dtype)


_COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _polars_text(tree: exp.Expr) -> str:
    return tree.sql(dialect="postgres", identify=True)


def _as_polars_reads_it(tree: exp.Expr) -> exp.Expr:
    return sqlglot.parse_one(_polars_text(tree), dialect="postgres")


def _boolean(text: str) -> _Typed:
    return _Typed(f"({text})", pl.Boolean())


def _typed(value: _Operand) -> _Typed:
    if isinstance(value, _Untyped):
        raise _MightDiffer
    return value


def _number(value: _Untyped) -> Number:
    if value.value is None:
        raise _MightDiffer
    return value.value


def _is_constant(value: _Operand) -> bool:
    return isinstance(value, _Untyped) or value.constant


# ---- types -------------------------------------------------------------------------------------


def _fitted(value: _Operand, dtype: pl.DataType) -> str:
    """The text of a value as one of this type; nothing but integers is made wider."""
    if isinstance(value, _Untyped):
        return _literal(value.value, dtype)
    if value.dtype == dtype:
        return value.text
    if _BITS.get(value.dtype, 64) < _BITS.get(dtype, 0):
        return f"CAST({value.text} AS {spark_type(dtype)})"
    raise _MightDiffer


def _as_double(value: _Operand) -> str:
    if isinstance(value, _Typed) and (value.dtype in _BITS or value.dtype == pl.Float32()):
        return f"CAST({value.text} AS DOUBLE)"
    return _fitted(value, pl.Float64())


def _compared(sign: str, left: _Operand, right: _Operand) -> str:
    """A comparison, both sides brought to the type in which polars compares."""
    if isinstance(left, _Untyped) and isinstance(right, _Untyped):
        raise _MightDiffer
    if isinstance(right, _Untyped):
        first, second = _beside_number(_typed(left), _number(right))
    elif isinstance(left, _Untyped):
        second, first = _beside_number(right, _number(left))
    else:
        first, second = _alike(left, right)
    return f"({first} {sign} {second})"


def _beside_number(value: _Typed, number: Number) -> tuple[str, str]:
    """A value and a number of no type, to be compared."""
    if value.dtype.is_float():
        return _unpushed(value), _literal(number, value.dtype)
    if value.dtype not in _BITS:
        raise _MightDiffer
    if isinstance(number, float):
        return f"({_as_double(value)} + 0D)", _literal(number, pl.Float64())
    if number == int(number):
        dtype = value.dtype if _holds(value.dtype, int(number)) else pl.Int64()
        return _fitted(value, dtype), _literal(int(number), dtype)
    scale = -int(Decimal(number).as_tuple().exponent)
    if scale > 18:
        raise _MightDiffer
    exact = f"DECIMAL(38, {scale})"
    return f"CAST({value.text} AS {exact})", f"CAST('{number:f}' AS {exact})"


def _alike(left: _Typed, right: _Typed) -> tuple[str, str]:
    """Two values of types that may be compared."""
    types = {left.dtype, right.dtype}
    if len(types) == 1:
        return _unpushed(left), _unpushed(right)
    if types <= _BITS.keys():
        widest = max(types, key=_BITS.__getitem__)
        return _fitted(left, widest), _fitted(right, widest)
    if pl.Float64() in types:
        first, second = (f"({_as_double(each)} + 0D)" for each in (left, right))
        return first, second
    if types == {pl.Date(), pl.Datetime("us")}:
        return _at_midnight(left), _at_midnight(right)
    raise _MightDiffer


def _unpushed(value: _Typed) -> str:
    """A value to compare, out of the reach of file readers if it is floating-point."""
    if value.dtype.is_float() and not value.constant:
        return f"({value.text} + {_literal(0, value.dtype)})"
    return value.text


def _at_midnight(value: _Typed) -> str:
    if value.dtype == pl.Datetime("us"):
        return value.text
    if not value.constant:  # a day far off overflows
        raise _MightDiffer
    return f"CAST({value.text} AS TIMESTAMP_NTZ)"


def _among(value: _Typed, members: Sequence[_Operand]) -> str:
    """Whether a value is one of several constants, which polars puts into one series."""
    numbers = [each.value for each in members if isinstance(each, _Untyped)]
    if value.dtype == pl.Float64() and len(numbers) == len(members):
        if not _alike_as_doubles(numbers):
            raise _MightDiffer
        return " OR ".join(_compared("=", value, each) for each in members)
    dtype = value.dtype
    if dtype in _BITS and all(isinstance(each, int) for each in numbers):
        dtype = dtype if all(_holds(dtype, cast("int", each)) for each in numbers) else pl.Int64()
    elif numbers or dtype.is_float():
        raise _MightDiffer
    texts = [_fitted(each, dtype) for each in members]
    return f"{_fitted(value, dtype)} IN ({', '.join(texts)})"


def _alike_as_doubles(numbers: Sequence[Number | None]) -> bool:
    """Whether decimals, brought to one scale, still become the nearest doubles."""
    exact = [Decimal(each) for each in numbers if isinstance(each, int | Decimal)]
    scale = max((-int(each.as_tuple().exponent) for each in exact), default=0)
    small = all(abs(each).scaleb(scale) < _EXACT_IN_DOUBLE for each in exact)
    return len(exact) == len(numbers) and scale <= 22 and small


# ---- computing -----------------------------------------------------------------------------------


def _computed(sign: str, left: _Operand, right: _Operand, dtype: pl.DataType) -> _Typed:
    """A sum, difference or product as polars computes it in a type."""
    if dtype == pl.Int64():
        text = _wrapped(sign, _fitted(left, dtype), _fitted(right, dtype))
        return _Typed(text, dtype)
    if dtype in _BITS:
        wide = (_fitted(each, pl.Int64()) for each in (left, right))
        return _Typed(_folded(f" {sign} ".join(wide), dtype), dtype)
    constants = [each for each in (left, right) if _is_constant(each)]
    if any(isinstance(each, _Typed) or each == _Untyped(0) for each in constants):
        raise _MightDiffer
    if dtype == pl.Float64():
        return _Typed(f"({_as_double(left)} {sign} {_as_double(right)})", dtype)
    if dtype == pl.Float32():
        return _Typed(f"({_fitted(left, dtype)} {sign} {_fitted(right, dtype)})", dtype)
    raise _MightDiffer


def _folded(wide: str, dtype: pl.DataType) -> str:
    """The low bits of a 64-bit integer."""
    half = 1 << (_BITS[dtype] - 1)
    return f"CAST((({wide} + {half}L) & {2 * half - 1}L) - {half}L AS {spark_type(dtype)})"


def _wrapped(sign: str, left: str, right: str) -> str:
    """64-bit arithmetic that wraps: the plain way, or by decimals where that overflows."""
    plain = {"+": "try_add", "-": "try_subtract", "*": "try_multiply"}[sign]
    first, second = (f"CAST({each} AS DECIMAL(38, 0))" for each in (left, right))
    rest = f"pmod({first} {sign} {second} + {_HALF}BD, {_WHOLE}BD)"
    return f"coalesce({plain}({left}, {right}), CAST({rest} - {_HALF}BD AS BIGINT))"


def _shifted_moment(text: str, length: int) -> str:
    """A timestamp moved by microseconds; it wraps, in three steps that do not overflow."""
    turn = 1 if length < 0 else -1
    around = text
    for step in (turn * (_HALF - 1), length + turn * _HALF, turn):
        around = f"try_add({around}, {_interval(step)})"
    return f"coalesce(try_add({text}, {_interval(length)}), {around})"


# ---- constants -----------------------------------------------------------------------------------


def _constant(tree: exp.Expr) -> _Operand:
    """A tree without columns, computed by polars; bare numbers stay as they are."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Null):
        return _Untyped(None)
    number = _bare_number(tree)
    if number is not None:
        return _Untyped(number)
    try:
        column = pl.select(pl.sql_expr(_polars_text(tree)).alias("x"))["x"]
    except pl.exceptions.PolarsError:
        raise _MightDiffer from None
    of_no_type = column.dtype.is_numeric() and not isinstance(tree, exp.Cast)
    value = column.to_physical().item()
    if of_no_type or value is None or spark_type(column.dtype) is None:
        raise _MightDiffer
    return _Typed(_literal(value, column.dtype), column.dtype, constant=True)


def _bare_number(tree: exp.Expr) -> Number | None:
    """A number, or whole numbers computed without leaving 32 bits."""
    if isinstance(tree, exp.Paren):
        return _bare_number(tree.this)
    if isinstance(tree, exp.Literal) and not tree.is_string:
        return _spelled(tree.this)
    if isinstance(tree, exp.Neg):
        number = _bare_number(tree.this)
        return None if number is None else -number
    if not isinstance(tree, exp.Add | exp.Sub | exp.Mul):
        return None
    left, right = _bare_number(tree.this), _bare_number(tree.expression)
    if not isinstance(left, int) or not isinstance(right, int):
        return None
    computed = {exp.Add: left + right, exp.Sub: left - right, exp.Mul: left * right}[type(tree)]
    return computed if all(_holds(pl.Int32(), each) for each in (left, right, computed)) else None


def _spelled(text: str) -> Number | None:
    """What polars makes of a number: with a point a decimal, with an exponent a float."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        value = pl.select(pl.sql_expr(text)).item()
    except pl.exceptions.PolarsError:
        return None
    return value if isinstance(value, float | Decimal) else None


def _holds(dtype: pl.DataType, value: int) -> bool:
    half = 1 << (_BITS[dtype] - 1)
    return -half <= value < half


def _literal(value: object, dtype: pl.DataType) -> str:
    """A value of a type, its time as ticks, in Spark's spelling."""
    name = spark_type(dtype)
    if name is None:
        raise _MightDiffer
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
    if dtype in _BITS:
        return f"{value}{_SUFFIX[_BITS[dtype]]}" if _holds(dtype, value) else _refused()
    return _moment(value, dtype)


def _refused() -> str:
    raise _MightDiffer


def _floating(value: Number, dtype: pl.DataType) -> str:
    """A floating-point literal, if there is but one way to round the number to it."""
    double = float(value)
    rounded = double
    if isinstance(value, int) and abs(value) > _EXACT_IN_DOUBLE and dtype != pl.Float64():
        raise _MightDiffer
    if dtype == pl.Float32() and abs(double) < 3e38:
        rounded = struct.unpack("f", struct.pack("f", double))[0]
    if isinstance(value, Decimal) and pl.select(pl.lit(value).cast(dtype)).item() != rounded:
        raise _MightDiffer
    if not isfinite(double) or (dtype == pl.Float32() and abs(double) >= 3e38):
        raise _MightDiffer
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
    raise _MightDiffer


def _microseconds(interval: exp.Interval) -> int:
    """A fixed length of time, on which polars and we agree."""
    text = _polars_text(interval)
    try:
        found = pl.select(pl.sql_expr(text))["literal"].to_physical().item()
        length = nanoseconds(text.removeprefix("INTERVAL '").removesuffix("'"))
    except (pl.exceptions.PolarsError, OptionError):
        raise _MightDiffer from None
    if found != length or length % 1_000 or length // 1_000 > _LONGEST_SHIFT:
        raise _MightDiffer
    return length // 1_000


def _interval(length: int) -> str:
    seconds, micros = divmod(abs(length), 10**6)
    days, rest = divmod(seconds, 86_400)
    clock = f"{rest // 3600:02}:{rest // 60 % 60:02}:{rest % 60:02}.{micros:06}"
    return f"INTERVAL '{'-' if length < 0 else ''}{days} {clock}' DAY TO SECOND"
