"""Expressions as Spark SQL, where Spark is sure to give the values polars gives.

Trees are translated node by node, and only nodes listed here. An expression that might differ is
not translated at all and runs in a stage of ours. What the texts keep to:

- Nothing raises, in ANSI mode or out of it. An expression that has no value for some rows, because
  a sum is too large or a divisor is zero, is not translated: Spark also computes rows that a filter
  has left out.
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
from sqlglot import exp

from lowwater.errors import ExpressionError
from lowwater.plan.expressions import Expression
from lowwater.plan.language import times
from lowwater.plan.language.compiler import Compiler
from lowwater.plan.language.value import Unfit, Value
from lowwater.plan.spark_values import (
    MightDiffer,
    Number,
    Operand,
    Typed,
    Untyped,
    as_double,
    compared,
    computed,
    fitted,
    holds,
    known,
    literal,
    spark_type,
    typed,
)

_LONGEST_TEXT = 20_000


def spark_text(expression: Expression, schema: Mapping[str, pl.DataType]) -> str | None:
    """Return the Spark SQL of an expression over columns of these types; None if it might differ.

    Each column must have the Spark type that ``spark_values.spark_type`` names for it.
    """
    if expression.tree is None or expression.failures:
        return None
    return translate(expression.tree, schema, expression.dtype)


def translate(tree: exp.Expr, schema: Mapping[str, pl.DataType], dtype: pl.DataType) -> str | None:
    """The Spark SQL of a checked expression that gives this type, or None if it might differ."""
    translation = _Translation(dict(pl.Schema(schema)))
    try:
        if isinstance(tree, exp.Column):
            return translation.copied(tree.name, dtype)
        return translation.fitted(tree, dtype)
    except (MightDiffer, Unfit, ExpressionError, pl.exceptions.PolarsError, OverflowError):
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
            exp.If: (self._if, "this true false"),
            exp.Concat: (self._passing_nulls, "expressions safe coalesce"),
            exp.Div: (self._quotient, f"{pair} typed safe"),
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
            return self._constant(tree)
        handler, arguments = self._handlers.get(type(tree), (None, ""))
        if handler is None or any(tree.args[each] for each in tree.args.keys() - arguments.split()):
            raise MightDiffer
        value = handler(tree)
        if isinstance(value, Typed) and len(value.text) > _LONGEST_TEXT:
            raise MightDiffer
        return value

    def _constant(self, tree: exp.Expr) -> Operand:
        """A tree without columns, computed now; bare numbers stay as they are."""
        while isinstance(tree, exp.Paren):
            tree = tree.this
        if isinstance(tree, exp.Null):
            return Untyped(None)
        bare = _bare_number(tree)
        if bare is not None:
            return Untyped(bare)
        value = self._value(tree)
        if value.dtype.is_numeric() and not isinstance(tree, exp.Cast):
            raise MightDiffer
        return _typed_constant(value)

    def _quoted(self, name: str) -> str:
        twins = [each for each in self._schema if each.lower() == name.lower()]
        if twins != [name] or "${" in name:  # Spark folds case, and puts variables into texts
            raise MightDiffer
        return "`" + name.replace("`", "``") + "`"

    def _type_of(self, tree: exp.Expr) -> pl.DataType:
        return self._value(tree).dtype

    def _value(self, tree: exp.Expr) -> Value:
        return Compiler(self._schema, "").value(tree)

    def _column(self, tree: exp.Column) -> Operand:
        dtype = self._schema[tree.name]
        if spark_type(dtype) is None:
            raise MightDiffer
        text = self._quoted(tree.name)
        return Typed(f"({text} COLLATE UTF8_BINARY)" if dtype == pl.String() else text, dtype)

    def _inner(self, tree: exp.Paren) -> Operand:
        return self.read(tree.this)

    def fitted(self, tree: exp.Expr, dtype: pl.DataType) -> str:
        """The text of a tree as a value of a type."""
        value = self._read_beside(tree, dtype)
        return as_double(value) if dtype == pl.Float64() else fitted(value, dtype)

    def _read_beside(self, tree: exp.Expr, dtype: pl.DataType) -> Operand:
        """A tree as it is read next to a value of a type: a written text is a time there."""
        if isinstance(tree, exp.Literal) and tree.is_string and dtype.is_temporal():
            return _typed_constant(times.read_constant(self._value(tree), dtype))
        return self.read(tree)

    def _pair(self, one: exp.Expr, two: exp.Expr) -> tuple[Operand, Operand]:
        """Two trees beside each other."""
        return self._read_beside(one, self._type_of(two)), self._read_beside(
            two, self._type_of(one)
        )

    # ---- true or false ---------------------------------------------------------------------------

    def _truth(self, tree: exp.Expr) -> str:
        return self.fitted(tree, pl.Boolean())

    def _not(self, tree: exp.Not) -> Operand:
        return _boolean(f"NOT {self._truth(tree.this)}")

    def _logic(self, tree: exp.And | exp.Or) -> Operand:
        word = "AND" if isinstance(tree, exp.And) else "OR"
        return _boolean(f"{self._truth(tree.this)} {word} {self._truth(tree.expression)}")

    def _comparison(self, tree: exp.Binary) -> Operand:
        left, right = self._pair(tree.this, tree.expression)
        return _boolean(compared(_COMPARISONS[type(tree)], left, right))

    def _is(self, tree: exp.Is) -> Operand:
        if isinstance(tree.expression, exp.Null):
            return _boolean(f"{typed(self.read(tree.this)).text} IS NULL")
        if isinstance(tree.expression, exp.Boolean):
            return _boolean(f"{self._truth(tree.this)} <=> {str(tree.expression.this).upper()}")
        raise MightDiffer

    def _between(self, tree: exp.Between) -> Operand:
        low = compared(">=", *self._pair(tree.this, tree.args["low"]))
        high = compared("<=", *self._pair(tree.this, tree.args["high"]))
        return _boolean(f"{low} AND {high}")

    def _in(self, tree: exp.In) -> Operand:
        same = [compared("=", *self._pair(tree.this, each)) for each in tree.expressions]
        return _boolean(" OR ".join(same))

    def _like(self, tree: exp.Like) -> Operand:
        pattern = tree.expression
        if not isinstance(pattern, exp.Literal) or not pattern.is_string or "\\" in pattern.this:
            raise MightDiffer  # a backslash is a letter in polars and an escape in Spark
        word = "NOT LIKE" if tree.args.get("negate") else "LIKE"
        value, text = self.fitted(tree.this, pl.String()), self.fitted(pattern, pl.String())
        return _boolean(f"{value} {word} {text}")

    def _starts_with(self, tree: exp.StartsWith) -> Operand:
        value, start = (self.fitted(each, pl.String()) for each in (tree.this, tree.expression))
        return _boolean(f"startswith({value}, {start})")

    # ---- choices ---------------------------------------------------------------------------------

    def _case(self, tree: exp.Case) -> Operand:
        dtype = self._type_of(tree)
        parts = []
        for each in tree.args["ifs"]:
            if tree.this:
                when = compared("=", *self._pair(tree.this, each.this))
            else:
                when = self._truth(each.this)
            parts.append(f"WHEN {when} THEN {self.fitted(each.args['true'], dtype)}")
        default = tree.args.get("default") or exp.Null()
        parts.append(f"ELSE {self.fitted(default, dtype)}")
        return Typed(f"CASE {' '.join(parts)} END", dtype)

    def _if(self, tree: exp.If) -> Operand:
        dtype = self._type_of(tree)
        one, other = (self.fitted(tree.args[each], dtype) for each in ("true", "false"))
        return Typed(f"CASE WHEN {self._truth(tree.this)} THEN {one} ELSE {other} END", dtype)

    def _passing_nulls(self, tree: exp.Concat) -> Operand:
        parts = [self.fitted(each, pl.String()) for each in tree.expressions]
        return Typed(" || ".join(f"coalesce({each}, '')" for each in parts), pl.String())

    def _coalesce(self, tree: exp.Coalesce) -> Operand:
        dtype = self._type_of(tree)
        parts = [self.fitted(each, dtype) for each in (tree.this, *tree.expressions)]
        return Typed(f"coalesce({', '.join(parts)})", dtype)

    def _nullif(self, tree: exp.Nullif) -> Operand:
        left, right = self._pair(tree.this, tree.expression)
        value, same = typed(left), compared("=", left, right)
        return Typed(f"CASE WHEN {same} THEN NULL ELSE {value.text} END", value.dtype)

    def _extreme(self, tree: exp.Greatest | exp.Least) -> Operand:
        dtype = self._type_of(tree)
        if dtype.is_float() or not tree.expressions:  # polars passes over NaN
            raise MightDiffer
        parts = [self.fitted(each, dtype) for each in (tree.this, *tree.expressions)]
        word = "greatest" if isinstance(tree, exp.Greatest) else "least"
        return Typed(f"{word}({', '.join(parts)})", dtype)

    # ---- computing -------------------------------------------------------------------------------

    def _arithmetic(self, tree: exp.Add | exp.Sub | exp.Mul) -> Operand:
        left, right = self.read(tree.this), self.read(tree.expression)
        sign = {exp.Add: "+", exp.Sub: "-", exp.Mul: "*"}[type(tree)]
        return computed(sign, left, right, self._type_of(tree))

    def _negative(self, tree: exp.Neg) -> Operand:
        value = typed(self.read(tree.this))
        if not value.dtype.is_float():
            raise MightDiffer
        return Typed(f"(- {value.text})", value.dtype)

    def _quotient(self, tree: exp.Div) -> Operand:
        if self._type_of(tree) != pl.Float64():
            raise MightDiffer
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

    def _absolute(self, tree: exp.Abs) -> Operand:
        value = typed(self.read(tree.this))
        if not value.dtype.is_float():
            raise MightDiffer
        return Typed(f"abs({value.text})", value.dtype)

    def _concatenated(self, tree: exp.DPipe) -> Operand:
        left, right = (self.fitted(each, pl.String()) for each in (tree.this, tree.expression))
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


def _boolean(text: str) -> Typed:
    return Typed(f"({text})", pl.Boolean())


# ---- constants -----------------------------------------------------------------------------------


def _typed_constant(value: Value) -> Typed:
    """A constant that has a type."""
    item = pl.select(value.expr).to_series().to_physical().item()
    if item is None or spark_type(value.dtype) is None:
        raise MightDiffer
    return Typed(literal(item, value.dtype), value.dtype, constant=True)


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


def _spelled(text: str) -> Number:
    """A number as it is written: with a point it is exact, with an exponent a double."""
    if text.isascii() and text.isdigit():
        return int(text)
    return float(text) if "e" in text.lower() else Decimal(text)
