"""The compiler turns trees of expressions into Polars expressions.

Every kind of tree in the language is listed here or among the functions, with all its arguments;
any other tree is refused at its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import polars as pl
from sqlglot import exp

from lowwater.errors import ExpressionError
from lowwater.operators.checked import checked
from lowwater.plan.language import operators, texts, times
from lowwater.plan.language.casts import cast
from lowwater.plan.language.functions import (
    BY_NAME,
    Function,
    called,
    function_of,
    unknown_function,
)
from lowwater.plan.language.value import FunctionCall, Unfit, Value, null, number
from lowwater.plan.text_places import wrong

Schema = Mapping[str, pl.DataType]
_WITHOUT_MEANING = frozenset({"_type", "safe", "typed", "big_int"})


class ExpressionCompiler:
    """A compiler of trees over the columns of a schema.

    Errors underline a tree's place in ``text``; if it has none, that of the first tree of ``near``
    that has one.
    """

    def __init__(self, schema: Schema, text: str, *near: exp.Expr | None):
        self._schema, self._text = dict(schema), text
        self._near = near
        pair = "this expression"
        self._nodes: Mapping[type[exp.Expr], tuple[Callable[..., Value], str]] = {
            exp.Column: (self._column, "this"),
            exp.Literal: (self._literal, "this is_string"),
            exp.Boolean: (
                lambda tree: Value(pl.lit(tree.this), pl.Boolean(), constant=True),
                "this",
            ),
            exp.Null: (lambda tree: null(), ""),
            exp.Paren: (lambda tree: self.value(tree.this), "this"),
            exp.Interval: (times.interval, "this unit"),
            exp.Neg: (self._operator("-", operators.negative, "this"), "this"),
            exp.Not: (self._operator("NOT", operators.opposite, "this"), "this"),
            exp.And: (self._operator("AND", operators.both, pair), pair),
            exp.Or: (self._operator("OR", operators.either, pair), pair),
            exp.Add: (self._operator("+", operators.sum_or_product, pair), pair),
            exp.Sub: (self._operator("-", operators.sum_or_product, pair), pair),
            exp.Mul: (self._operator("*", operators.sum_or_product, pair), pair),
            exp.Div: (self._operator("/", operators.quotient, pair), pair),
            exp.Mod: (self._operator("%", operators.remainder, pair), pair),
            exp.DPipe: (self._operator("||", texts.joined, pair), pair),
            **{
                node: (self._operator(sign, operators.comparison, pair), pair)
                for node, sign in COMPARISONS.items()
            },
            exp.Like: (self._operator("LIKE", texts.like, pair), f"{pair} negate"),
            exp.ILike: (self._operator("ILIKE", texts.like, pair), f"{pair} negate"),
            exp.Escape: (self._escape, pair),
            exp.Between: (
                self._operator("BETWEEN", operators.between, "this low high"),
                "this low high",
            ),
            exp.In: (self._operator("IN", operators.among, "this expressions"), "this expressions"),
            exp.Is: (self._is, pair),
            exp.Case: (self._case, "this ifs default"),
            exp.Cast: (self._cast, "this to"),
            exp.TryCast: (self._cast, "this to requires_string"),
        }

    def value(self, tree: exp.Expr) -> Value:
        """Return the value of a tree; refuse parts that the language lacks, at their place."""
        handler, known = self._nodes.get(type(tree), (None, ""))
        try:
            if handler is None:
                value = self._called(tree)
            else:
                given = {key for key, each in tree.args.items() if each not in (None, False, [])}
                if surplus := given - _WITHOUT_MEANING - set(known.split()):
                    raise Unfit(f"{' and '.join(sorted(surplus))} is not understood here")
                value = handler(tree)
            if value.months is not None and not isinstance(tree, exp.Interval | exp.Paren):
                raise Unfit("months and years can be added to a time only")
            return self._settled(tree, value)
        except Unfit as error:
            raise wrong(str(error), self._text, tree, *self._near) from None
        except ExpressionError:
            raise
        except pl.exceptions.PolarsError as error:
            raise wrong(
                f"this cannot be computed: {_first_line(error)}", self._text, tree, *self._near
            ) from None

    def _settled(self, tree: exp.Expr, value: Value) -> Value:
        """Return a value; a constant is computed now, and refused if it fails."""
        if (
            not value.constant
            or isinstance(tree, exp.Literal | exp.Paren)
            or value.bare is not None
        ):
            return value
        for each in value.failures:
            if pl.select(each.when.fill_null(False)).to_series().any():
                raise wrong(each.message, self._text, tree, *self._near)
        found = pl.select(value.expr).to_series()
        if value.dtype.is_temporal():
            expr = pl.lit(found.to_physical().item()).cast(found.to_physical().dtype)
            return replace(value, expr=expr.cast(value.dtype), failures=())
        if isinstance(value.dtype, pl.Decimal):
            return replace(value, failures=())
        return replace(value, expr=pl.lit(found.item(), dtype=value.dtype), failures=())

    # ---- leaves ----------------------------------------------------------------------------------

    def _column(self, tree: exp.Column) -> Value:
        if tree.name not in self._schema:
            raise Unfit(f"unknown column {tree.name!r}")
        dtype = self._schema[tree.name]
        dtype = dtype() if isinstance(dtype, type) else dtype
        column = pl.col(tree.name)
        if isinstance(dtype, pl.Categorical | pl.Enum):
            return Value(column.cast(pl.String), pl.String())
        return Value(column, dtype)

    def _literal(self, tree: exp.Literal) -> Value:
        if tree.is_string:
            return Value(pl.lit(str(tree.this)), pl.String(), constant=True)
        written = str(tree.this).replace("_", "")
        if written.isascii() and written.isdigit():
            return number(int(written))
        try:
            if "e" in written.lower():
                double = pl.lit(float(written), dtype=pl.Float64())
                return Value(double, pl.Float64(), constant=True)
            return number(Decimal(written))
        except (ValueError, InvalidOperation):
            raise Unfit("this is no number") from None

    # ---- operators -------------------------------------------------------------------------------

    def _call(self, name: str, tree: exp.Expr, trees: Sequence[exp.Expr]) -> FunctionCall:
        return FunctionCall(name, tree, trees, [self.value(each) for each in trees], self._text)

    def _operator(
        self, name: str, rule: Callable[[FunctionCall], Value], keys: str
    ) -> Callable[[exp.Expr], Value]:
        def compile_(tree: exp.Expr) -> Value:
            trees: list[exp.Expr] = []
            for key in keys.split():
                given = tree.args.get(key)
                if not given:
                    raise Unfit(f"something is missing after {name}")
                trees += given if isinstance(given, list) else [given]
            value = rule(self._call(name, tree, trees))
            if tree.args.get("negate"):
                value = replace(value, expr=~value.expr)
            return value

        return compile_

    def _escape(self, tree: exp.Escape) -> Value:
        inner = tree.this
        if not isinstance(inner, exp.Like | exp.ILike):
            raise Unfit("ESCAPE stands after LIKE")
        name = "LIKE" if isinstance(inner, exp.Like) else "ILIKE"
        call = self._call(name, tree, [inner.this, inner.expression])
        return texts.escaped(call, tree.expression)

    def _is(self, tree: exp.Is) -> Value:
        return operators.is_(self._call("IS", tree, [tree.this]), tree.expression)

    def _case(self, tree: exp.Case) -> Value:
        branches = tree.args["ifs"]
        if tree.this is None:
            conditions = [self._condition(each.this) for each in branches]
        else:
            conditions = [
                operators.comparison(self._call("=", each, [tree.this, each.this]))
                for each in branches
            ]
        results = [self.value(each.args["true"]) for each in branches]
        default = tree.args.get("default")
        rest = self.value(default) if default is not None else null()
        return operators.case(self._call("CASE", tree, []), conditions, results, rest)

    def _condition(self, tree: exp.Expr) -> Value:
        call = self._call("WHEN", tree, [tree])
        return call.result(operators.truth(call, 0), pl.Boolean())

    def _cast(self, tree: exp.Cast) -> Value:
        call = self._call("CAST", tree, [tree.this])
        return cast(call, tree.args["to"], isinstance(tree, exp.TryCast))

    # ---- functions -------------------------------------------------------------------------------

    def _called(self, tree: exp.Expr) -> Value:
        function = function_of(tree)
        if function is None:
            raise self._unknown(tree)
        if surplus := function.surplus(tree):
            more = " and ".join(surplus)
            raise Unfit(f"{called(tree)} takes {function.arity}, and no {more}")
        trees = function.arguments(tree)
        if not function.least <= len(trees) <= function.most:
            raise Unfit(_count(called(tree), function, len(trees)))
        return function.rule(self._call(called(tree), tree, trees))

    def _unknown(self, tree: exp.Expr) -> Exception:
        if isinstance(tree, exp.Anonymous):
            name = tree.name.lower()
            if known := BY_NAME.get(name):
                return Unfit(_count(name, known, len(tree.expressions)))
            return Unfit(unknown_function(name))
        if isinstance(tree, exp.Func) and "start" in tree.meta:
            written = self._text[tree.meta["start"] : tree.meta["end"] + 1]
            name = written if written.isidentifier() else tree.sql_name()
            return Unfit(unknown_function(name))
        return Unfit("cannot use this expression: it is not part of the language")


COMPARISONS: Mapping[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "IS NOT DISTINCT FROM",
    exp.NullSafeNEQ: "IS DISTINCT FROM",
}


def _count(name: str, function: Function, given: int) -> str:
    """Return the message about a wrong number of arguments."""
    return f"{name} takes {function.arity}, and {given} {'is' if given == 1 else 'are'} given"


def finished(value: Value) -> Value:
    """Return a value that ends the run where it fails."""
    return replace(value, expr=checked(value.expr, value.dtype, value.failures))


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
