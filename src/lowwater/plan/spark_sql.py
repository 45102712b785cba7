"""Expressions as Spark SQL, where Spark is sure to give the values polars gives.

What is translated is the text polars reads, node by node, and only nodes listed here. An expression
that might differ is not translated at all and runs in a stage of ours. What the texts keep to:

- Nothing raises, in ANSI mode or out of it: integers wrap as in polars, casts only widen.
- No type, zone or escape is left to the session: numbers of no type get the one polars gave them,
  and strings are compared byte by byte, whatever the column's collation.
- Spark's file readers skip rows by statistics that know neither NaN nor -0.0, so a comparison of
  floating-point columns adds a zero, which keeps it from them.
- Where polars depends on the number of rows (``x / 3``, ``x + 0`` in floating point) there is
  nothing to be equal to.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal
from math import frexp

import polars as pl
import sqlglot
from sqlglot import exp
from sqlglot.errors import UnsupportedError

from lowwater.errors import OptionError
from lowwater.plan.polars_sql import plain_text, polars_text
from lowwater.plan.spark_values import (
    BITS,
    MightDiffer,
    Number,
    Operand,
    Typed,
    Untyped,
    among,
    as_double,
    compared,
    computed,
    fitted,
    holds,
    is_constant,
    known,
    literal,
    shifted_moment,
    spark_type,
    typed,
    wrapped,
)
from lowwater.stream.duration import nanoseconds

_UTC = ("UTC", "Etc/UTC")
_LONGEST_SHIFT = 100_000 * 86_400 * 10**6  # days, in microseconds
_LONGEST_TEXT = 20_000


def translate(tree: exp.Expr, schema: Mapping[str, pl.DataType], dtype: pl.DataType) -> str | None:
    """The Spark SQL of a checked expression that gives this type, or None if it might differ."""
    translation = _Translation(dict(pl.Schema(schema)))
    try:
        if isinstance(tree, exp.Column):
            return translation.copied(tree.name, dtype)
        return fitted(translation.read(_as_polars_reads_it(tree, schema)), dtype)
    except (MightDiffer, pl.exceptions.PolarsError, UnsupportedError, OverflowError):
        return None


class _Translation:
    """Reads trees over the columns of one schema."""

    def __init__(self, schema: Mapping[str, pl.DataType]):
        self._schema = schema
        pair, several = "this expression", "this expressions"
        self._handlers: dict[type[exp.Expr], tuple[Callable[..., Operand], str]] = {
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
            raise MightDiffer
        return self._quoted(name)

    def read(self, tree: exp.Expr) -> Operand:
        """Translate a tree."""
        if not tree.find(exp.Column):
            return _constant(tree)
        handler, arguments = self._handlers.get(type(tree), (None, ""))
        if handler is None or any(tree.args[each] for each in tree.args.keys() - arguments.split()):
            raise MightDiffer
        value = handler(tree)
        if isinstance(value, Typed) and len(value.text) > _LONGEST_TEXT:
            raise MightDiffer
        return value

    def _quoted(self, name: str) -> str:
        twins = [each for each in self._schema if each.lower() == name.lower()]
        if twins != [name] or "${" in name:  # Spark folds case, and puts variables into texts
            raise MightDiffer
        return "`" + name.replace("`", "``") + "`"

    def _type_of(self, tree: exp.Expr) -> pl.DataType:
        runnable = pl.sql_expr(plain_text(tree)).alias("x")
        return pl.LazyFrame(schema=self._schema).select(runnable).collect_schema()["x"]

    def _column(self, tree: exp.Column) -> Operand:
        dtype = self._schema[tree.name]
        if spark_type(dtype) is None:
            raise MightDiffer
        text = self._quoted(tree.name)
        return Typed(f"({text} COLLATE UTF8_BINARY)" if dtype == pl.String() else text, dtype)

    def _inner(self, tree: exp.Paren) -> Operand:
        return self.read(tree.this)

    def _text(self, tree: exp.Expr, dtype: pl.DataType) -> str:
        return fitted(self.read(tree), dtype)

    # ---- true or false ---------------------------------------------------------------------------

    def _truth(self, tree: exp.Expr) -> str:
        return self._text(tree, pl.Boolean())

    def _not(self, tree: exp.Not) -> Operand:
        return _boolean(f"NOT {self._truth(tree.this)}")

    def _logic(self, tree: exp.And | exp.Or) -> Operand:
        word = "AND" if isinstance(tree, exp.And) else "OR"
        return _boolean(f"{self._truth(tree.this)} {word} {self._truth(tree.expression)}")

    def _comparison(self, tree: exp.Binary) -> Operand:
        left, right = self.read(tree.this), self.read(tree.expression)
        return _boolean(compared(_COMPARISONS[type(tree)], left, right))

    def _is(self, tree: exp.Is) -> Operand:
        if isinstance(tree.expression, exp.Null):
            return _boolean(f"{typed(self.read(tree.this)).text} IS NULL")
        if isinstance(tree.expression, exp.Boolean):  # null stays null in polars
            return _boolean(f"{self._truth(tree.this)} = {str(tree.expression.this).upper()}")
        raise MightDiffer

    def _between(self, tree: exp.Between) -> Operand:
        value = self.read(tree.this)
        low = compared(">=", value, self.read(tree.args["low"]))
        high = compared("<=", value, self.read(tree.args["high"]))
        return _boolean(f"{low} AND {high}")

    def _in(self, tree: exp.In) -> Operand:
        value = self.read(tree.this)
        members = [self.read(each) for each in tree.expressions]
        if not all(map(is_constant, members)):
            return _boolean(" OR ".join(compared("=", value, each) for each in members))
        return _boolean(among(typed(value), members))

    def _like(self, tree: exp.Like) -> Operand:
        pattern = tree.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.this:
            raise MightDiffer  # a backslash is a letter in polars and an escape in Spark
        word = "NOT LIKE" if tree.args.get("negate") else "LIKE"
        value, text = self._text(tree.this, pl.String()), self._text(pattern, pl.String())
        return _boolean(f"{value} {word} {text}")

    def _starts_with(self, tree: exp.StartsWith) -> Operand:
        value, start = (self._text(each, pl.String()) for each in (tree.this, tree.expression))
        return _boolean(f"startswith({value}, {start})")

    # ---- choices ---------------------------------------------------------------------------------

    def _case(self, tree: exp.Case) -> Operand:
        dtype = self._type_of(tree)
        parts = []
        for each in tree.args["ifs"]:
            if tree.this:
                when = compared("=", self.read(tree.this), self.read(each.this))
            else:
                when = self._truth(each.this)
            parts.append(f"WHEN {when} THEN {self._text(each.args['true'], dtype)}")
        default = tree.args.get("default") or exp.Null()
        parts.append(f"ELSE {self._text(default, dtype)}")
        return Typed(f"CASE {' '.join(parts)} END", dtype)

    def _coalesce(self, tree: exp.Coalesce) -> Operand:
        dtype = self._type_of(tree)
        parts = [self._text(each, dtype) for each in (tree.this, *tree.expressions)]
        return Typed(f"coalesce({', '.join(parts)})", dtype)

    def _nullif(self, tree: exp.Nullif) -> Operand:
        value = typed(self.read(tree.this))
        same = compared("=", value, self.read(tree.expression))
        return Typed(f"CASE WHEN {same} THEN NULL ELSE {value.text} END", value.dtype)

    def _extreme(self, tree: exp.Greatest | exp.Least) -> Operand:
        dtype = self._type_of(tree)
        if dtype.is_float() or not tree.expressions:  # polars passes over NaN
            raise MightDiffer
        parts = [self._text(each, dtype) for each in (tree.this, *tree.expressions)]
        word = "greatest" if isinstance(tree, exp.Greatest) else "least"
        return Typed(f"{word}({', '.join(parts)})", dtype)

    # ---- computing -------------------------------------------------------------------------------

    def _arithmetic(self, tree: exp.Add | exp.Sub | exp.Mul) -> Operand:
        if isinstance(tree.this, exp.Interval) or isinstance(tree.expression, exp.Interval):
            return self._shifted(tree)
        left, right = self.read(tree.this), self.read(tree.expression)
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(tree)]
        return computed(sign, left, right, self._type_of(tree))

    def _negative(self, tree: exp.Neg) -> Operand:
        dtype = self._type_of(tree)  # polars computes 0 - x
        return computed("-", Untyped(0), self.read(tree.this), dtype)

    def _shifted(self, tree: exp.Expr) -> Operand:
        """A timestamp plus or minus a constant."""
        moment, interval = tree.this, tree.expression
        if isinstance(tree, exp.Add) and isinstance(moment, exp.Interval):
            moment, interval = interval, moment
        if isinstance(tree, exp.Mul) or not isinstance(interval, exp.Interval):
            raise MightDiffer
        length = _microseconds(interval) * (-1 if isinstance(tree, exp.Sub) else 1)
        value = typed(self.read(moment))
        if value.dtype == pl.Datetime("us"):
            return Typed(shifted_moment(value.text, length), value.dtype)
        if isinstance(value.dtype, pl.Datetime) and value.dtype.time_zone in _UTC:
            ticks = wrapped("+", f"unix_micros({value.text})", f"{length}L")
            return Typed(f"timestamp_micros({ticks})", value.dtype)
        raise MightDiffer

    def _quotient(self, tree: exp.Div) -> Operand:
        above = as_double(self.read(tree.this))
        below = self.read(tree.expression)
        if isinstance(below, Untyped):
            divisor = float(known(below))
            fraction, power = frexp(divisor)  # polars multiplies by a rounded 1 / divisor
            if abs(fraction) != 0.5 or abs(power) > 1000:
                raise MightDiffer
            return Typed(f"({above} / {literal(divisor, pl.Float64())})", pl.Float64())
        if below.constant:
            raise MightDiffer
        text = as_double(below)
        infinity = (
            f"CASE WHEN CAST({text} AS STRING) = '-0.0' THEN DOUBLE('-Infinity')"
            " ELSE DOUBLE('Infinity') END"
        )
        divided = (
            f"CASE WHEN {text} = 0D THEN {above} * {infinity} ELSE try_divide({above}, {text}) END"
        )
        return Typed(divided, pl.Float64())

    def _remainder(self, tree: exp.Mod) -> Operand:
        dtype = self._type_of(tree)
        left, right = self.read(tree.this), self.read(tree.expression)
        if dtype not in BITS or right == Untyped(0):
            raise MightDiffer
        return Typed(f"try_mod({fitted(left, dtype)}, {fitted(right, dtype)})", dtype)

    def _absolute(self, tree: exp.Abs) -> Operand:
        value = typed(self.read(tree.this))
        text = value.text
        if value.dtype.is_float():
            return Typed(f"abs({text})", value.dtype)
        zero = literal(0, value.dtype)  # the least integer has no opposite and stays
        opposite = f"coalesce(try_subtract({zero}, {text}), {text})"
        return Typed(f"CASE WHEN {text} < {zero} THEN {opposite} ELSE {text} END", value.dtype)

    def _concatenated(self, tree: exp.DPipe) -> Operand:
        left, right = (self._text(each, pl.String()) for each in (tree.this, tree.expression))
        return Typed(f"({left} || {right})", pl.String())

    def _widened(self, tree: exp.Cast) -> Operand:
        dtype, value = self._type_of(tree), typed(self.read(tree.this))
        text = as_double(value) if dtype == pl.Float64() else fitted(value, dtype)
        return Typed(text, dtype)


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


def _as_polars_reads_it(tree: exp.Expr, schema: Mapping[str, pl.DataType]) -> exp.Expr:
    return sqlglot.parse_one(polars_text(tree, schema), dialect="postgres")


def _boolean(text: str) -> Typed:
    return Typed(f"({text})", pl.Boolean())


# ---- constants -----------------------------------------------------------------------------------


def _constant(tree: exp.Expr) -> Operand:
    """A tree without columns, computed by polars; bare numbers stay as they are."""
    while isinstance(tree, exp.Paren):
        tree = tree.this
    if isinstance(tree, exp.Null):
        return Untyped(None)
    bare = _bare_number(tree)
    if bare is not None:
        return Untyped(bare)
    try:
        column = pl.select(pl.sql_expr(plain_text(tree)).alias("x"))["x"]
    except pl.exceptions.PolarsError:
        raise MightDiffer from None
    of_no_type = column.dtype.is_numeric() and not isinstance(tree, exp.Cast)
    value = column.to_physical().item()
    if of_no_type or value is None or spark_type(column.dtype) is None:
        raise MightDiffer
    return Typed(literal(value, column.dtype), column.dtype, constant=True)


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
    result = {exp.Add: left + right, exp.Sub: left - right, exp.Mul: left * right}[type(tree)]
    return result if all(holds(pl.Int32(), each) for each in (left, right, result)) else None


def _spelled(text: str) -> Number | None:
    """What polars makes of a number: with a point a decimal, with an exponent a float."""
    if text.isascii() and text.isdigit():
        return int(text)
    try:
        value = pl.select(pl.sql_expr(text)).item()
    except pl.exceptions.PolarsError:
        return None
    return value if isinstance(value, float | Decimal) else None


def _microseconds(interval: exp.Interval) -> int:
    """A fixed length of time, on which polars and we agree."""
    text = plain_text(interval)
    try:
        found = pl.select(pl.sql_expr(text)).to_series().to_physical().item()
        length = nanoseconds(text.removeprefix("INTERVAL '").removesuffix("'"))
    except (pl.exceptions.PolarsError, OptionError):
        raise MightDiffer from None
    if found != length or length % 1_000 or length // 1_000 > _LONGEST_SHIFT:
        raise MightDiffer
    return length // 1_000
