"""SQL text to polars expressions.

Text is parsed and checked here, column by column, so that an error points at its place;
:mod:`lowwater.plan.language` says what each part of it means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl
import sqlglot
from sqlglot import exp
from sqlglot.errors import ParseError, TokenError

from lowwater.errors import ExpressionError, OptionError, QueryError, unknown_name
from lowwater.operators.rowwise import Derivation
from lowwater.plan.language.compiler import Compiler, finished
from lowwater.plan.language.functions import AGGREGATES, Expressions
from lowwater.plan.spark_sql import translate
from lowwater.plan.text_places import wrong
from lowwater.stream.duration import nanoseconds
from lowwater.stream.time_domain import TimeDomain

Schema = Mapping[str, pl.DataType]


@dataclass(frozen=True)
class Expression:
    """A checked expression: its text, what polars runs, and the type it gives."""

    text: str
    polars: pl.Expr
    dtype: pl.DataType
    sql: bool = True
    """Whether the text is SQL that says the same."""
    can_fail: bool = False
    """Whether some values end the run."""

    def spark(self, schema: Schema) -> str | None:
        """The same as Spark SQL over columns of these types; None where Spark might differ.

        Each column must have the Spark type that ``spark_values.spark_type`` names for it.
        """
        if not self.sql or self.can_fail:
            return None
        if self.polars.meta.is_column():
            tree: exp.Expr = exp.column(self.polars.meta.output_name(), quoted=True)
        else:
            tree = parsed(self.text)
        _check_columns(tree, self.text, schema)
        return translate(tree, schema, self.dtype)


@dataclass(frozen=True)
class AggregateText:
    """An aggregate call taken apart."""

    function: str
    argument: str | None
    distinct: bool
    share: float | None = None
    """Which quantile."""


def compile_expression(text: str, schema: Schema) -> Expression:
    """Check an expression against the columns it may use and make it runnable."""
    tree = parsed(text)
    _check_columns(tree, text, schema)
    _refuse_other_rows(tree, text)
    if isinstance(tree, exp.Column):
        return Expression(text, pl.col(tree.name), dict(pl.Schema(schema))[tree.name])
    try:
        value = Compiler(schema, text).value(tree)
    except RecursionError:
        raise ExpressionError("this expression is nested too deeply", text) from None
    return Expression(text, finished(value).expr, value.dtype, can_fail=bool(value.failures))


def compile_predicate(text: str, schema: Schema) -> Expression:
    """An expression that must be true or false."""
    compiled = compile_expression(text, schema)
    if compiled.dtype != pl.Boolean:
        raise ExpressionError(f"a condition must be true or false; this is {compiled.dtype}", text)
    return compiled


_AGGREGATES: Mapping[type[exp.Expr], str] = {
    exp.Count: "count",
    exp.Sum: "sum",
    exp.Avg: "avg",
    exp.Min: "min",
    exp.Max: "max",
    exp.Stddev: "stddev",
    exp.StddevSamp: "stddev",
    exp.First: "first",
    exp.Last: "last",
    exp.ArrayAgg: "collect",
    exp.ApproxDistinct: "approx_count_distinct",
    exp.ApproxQuantile: "approx_quantile",
}
_NAMED = {"collect": "collect", "approx_percentile": "approx_quantile"}
"""Aggregates that the parser takes for plain functions."""


def aggregate_name(tree: exp.Expr) -> str | None:
    """Which aggregate a tree is a call of."""
    if isinstance(tree, exp.Anonymous):
        return _NAMED.get(tree.name.lower())
    return _AGGREGATES.get(type(tree))


def is_aggregate(tree: exp.Expr) -> bool:
    """Whether a tree is a call of an aggregate, known or not."""
    return aggregate_name(tree) is not None or isinstance(tree, exp.AggFunc | exp.Filter)


def take_apart(text: str) -> AggregateText:
    """The function and argument of an aggregate such as ``count(DISTINCT a + b)``."""
    tree = parsed(text)
    condition = None
    if isinstance(tree, exp.Filter):
        tree, condition = tree.this, tree.expression.this
    function = aggregate_name(tree)
    if function is None:
        known = ", ".join(sorted(AGGREGATES))
        raise ExpressionError(
            f"an aggregate is one call of {known}, for example sum(a + b); compute around it with"
            " select(...) afterwards",
            text,
            length=len(text),
        )
    inner, option = _arguments(tree, function, text)
    if isinstance(inner, exp.Star):
        if function != "count":
            raise ExpressionError(f"{function} needs an argument", text, length=len(text))
        argument = exp.Literal.number(1) if condition is not None else None
        return AggregateText(function, _only_if(condition, argument), False)
    if isinstance(inner, exp.Distinct):
        if len(inner.expressions) != 1:
            raise ExpressionError("count(DISTINCT ...) takes one argument", text, length=len(text))
        return AggregateText(function, _only_if(condition, inner.expressions[0]), True, option)
    if inner is None:
        raise ExpressionError(f"{function} needs an argument", text, length=len(text))
    return AggregateText(function, _only_if(condition, inner), False, option)


def _arguments(tree: exp.Expr, function: str, text: str) -> tuple[exp.Expr | None, float | None]:
    """What is aggregated, and which quantile where one is asked for."""
    arguments = tree.expressions if isinstance(tree, exp.Anonymous) else [tree.this]
    if function == "approx_quantile":
        share = tree.args.get("quantile") or (arguments[1] if len(arguments) > 1 else None)
        try:
            wanted = float(share.name) if isinstance(share, exp.Literal) else -1.0
        except ValueError:
            wanted = -1.0
        if not 0 <= wanted <= 1:
            raise ExpressionError(
                "approx_quantile takes a value and a share from 0 to 1, such as 0.5",
                text,
                length=len(text),
            )
        return arguments[0], wanted
    if len(arguments) > 1 or (tree.args.get("expressions") and not isinstance(tree, exp.Anonymous)):
        raise ExpressionError(f"{function} takes one argument", text, length=len(text))
    return (arguments[0] if arguments else None), None


def _only_if(condition: exp.Expr | None, argument: exp.Expr | None) -> str | None:
    """An argument that is null unless a condition holds: all aggregates pass nulls over."""
    if argument is None:
        return None
    if condition is not None:
        argument = exp.Case(ifs=[exp.If(this=condition, true=argument)])
    return argument.sql(identify=True)


def plain_column(text: str) -> str | None:
    """The column an expression consists of, if it is nothing but a column."""
    tree = parsed(text)
    return tree.name if isinstance(tree, exp.Column) and not tree.table else None


def derivation(text: str, progressing: Mapping[str, TimeDomain]) -> Derivation | None:
    """How an expression progresses, if it is monotone in progressing attributes.

    Known forms: an attribute, an attribute plus or minus a constant, and ``greatest``, ``least``
    or ``coalesce`` of such.
    """
    return _derive(parsed(text), progressing)


def _derive(tree: exp.Expr, progressing: Mapping[str, TimeDomain]) -> Derivation | None:
    if isinstance(tree, exp.Paren):
        return _derive(tree.this, progressing)
    if isinstance(tree, exp.Greatest | exp.Least | exp.Coalesce):
        parts = [_derive(each, progressing) for each in (tree.this, *tree.expressions)]
        if not all(part and len(part.sources) == 1 for part in parts):
            return None
        sources = tuple(part.sources[0] for part in parts if part)
        return Derivation(sources, "all" if isinstance(tree, exp.Greatest) else "least")
    single = _attribute_and_shift(tree, progressing)
    return Derivation((single,)) if single else None


def _attribute_and_shift(
    tree: exp.Expr, progressing: Mapping[str, TimeDomain]
) -> tuple[str, int] | None:
    if isinstance(tree, exp.Column):
        return (tree.name, 0) if tree.name in progressing else None
    if isinstance(tree, exp.Add | exp.Sub) and isinstance(tree.this, exp.Column):
        name = tree.this.name
        if name not in progressing:
            return None
        shift = _constant(tree.expression, progressing[name])
        if shift is None:
            return None
        return name, shift if isinstance(tree, exp.Add) else -shift
    return None


def _constant(tree: exp.Expr, domain: TimeDomain) -> int | None:
    if isinstance(tree, exp.Literal) and not tree.is_string and domain.dtype == pl.Int64:
        return int(tree.this) if tree.this.isdigit() else None
    if isinstance(tree, exp.Interval) and isinstance(tree.this, exp.Literal) and tree.unit:
        try:
            length = nanoseconds(f"{tree.this.this} {tree.unit.name}", "interval")
            return domain.ticks(f"{length} ns", "interval")
        except OptionError:  # a month has no fixed length: the column does not progress
            return None
    return None


def parsed(text: str) -> exp.Expr:
    """The tree of a text that is one expression."""
    if not isinstance(text, str) or not text.strip():
        raise QueryError(f"an expression is a piece of SQL text, not {text!r}")
    try:
        tree: exp.Expr = sqlglot.parse_one(text, dialect=Expressions)
    except ParseError as error:
        first = error.errors[0]
        raise ExpressionError(
            f"cannot read this SQL: {first['description']}",
            text,
            line=first["line"] or 1,
            column=max(1, (first["col"] or 1) - len(first["highlight"] or "") + 1),
            length=len(first["highlight"] or " "),
        ) from None
    except TokenError as error:
        raise ExpressionError(f"cannot read this SQL: {_first_line(error)}", text) from None
    if tree.find(exp.Query):
        raise ExpressionError("an expression cannot hold a query", text)
    return tree


def _check_columns(tree: exp.Expr, text: str, schema: Schema) -> None:
    unknown = []
    for column in tree.find_all(exp.Column):
        name = column.name if not column.table else f"{column.table}.{column.name}"
        if name not in schema:
            unknown.append((column.this.meta.get("start", 0), name, column))
        elif column.table:
            column.set("table", None)
            column.this.set("this", name)
    if unknown:
        start, name, column = min(unknown, key=lambda each: each[0])
        line = column.this.meta.get("line", 1)
        begin = text.rfind("\n", 0, start) + 1
        visible = [each for each in schema if not each.startswith("__")]
        message = unknown_name("column", name, visible)
        raise ExpressionError(message, text, line, start - begin + 1, len(column.name))


_LOOKS_AT_OTHER_ROWS = (exp.Window, exp.RowNumber, exp.Rank, exp.DenseRank, exp.Lag, exp.Lead)
_READS_A_CLOCK = tuple(
    getattr(exp, name)
    for name in dir(exp)
    if name.startswith(("Current", "Local", "Rand", "Uuid", "Utc", "Sys"))
    and isinstance(getattr(exp, name), type)
    and issubclass(getattr(exp, name), exp.Func)
)
_CHANGES = frozenset(
    (
        *("now", "today", "localtimestamp", "localtime", "random", "uuid", "gen_random_uuid"),
        *("getdate", "sysdate", "clock_timestamp", "transaction_timestamp", "get_current_time"),
        *(
            "get_current_timestamp",
            "current_localtimestamp",
            "current_localtime",
            "uuidv4",
            "uuidv7",
        ),
    )
)


def _refuse_other_rows(tree: exp.Expr, text: str) -> None:
    """An expression sees one row and nothing else."""
    found: exp.Expr | None
    if found := tree.find(*_LOOKS_AT_OTHER_ROWS):
        raise wrong(
            f"{found.sql()} looks at other rows; an expression sees one row at a time", text, found
        )
    clock = tree.find(*_READS_A_CLOCK)
    named = (each for each in tree.find_all(exp.Anonymous) if each.name.lower() in _CHANGES)
    if found := clock or next(named, None):
        raise wrong(
            f"{found.sql()} reads a clock or rolls dice, so a run could not be repeated;"
            ' lw.stream(..., stamp="internal") stamps rows as they come in',
            text,
            found,
        )
    if found := tree.find(exp.AggFunc):
        raise wrong(
            f"{found.sql()} is an aggregate; aggregates go into agg(...), after window(...)"
            " or group_by(...)",
            text,
            found,
        )


def _first_line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
