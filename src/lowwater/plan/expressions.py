"""Expressions are trees parsed from SQL text, before and after they are checked.

A :class:`Formula` is parsed and not checked. :func:`compile_expression` checks a formula against
columns and returns an :class:`Expression`; :mod:`lowwater.plan.language` defines the meaning of
each part.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl
from sqlglot import exp

from lowwater.errors import ExpressionError, OptionError, QueryError, Term, unknown_name
from lowwater.operators.aggregates import BUILT_IN
from lowwater.operators.checked import Failure
from lowwater.operators.rowwise import Derivation
from lowwater.plan.language.compiler import ExpressionCompiler, finished
from lowwater.plan.text_places import Message, wrong
from lowwater.stream.duration import nanoseconds
from lowwater.stream.time_domain import UNITS, TimeDomain

Schema = Mapping[str, pl.DataType]


@dataclass(frozen=True)
class Formula:
    """An expression that is parsed, and not yet checked against columns."""

    tree: exp.Expr
    text: str
    """The text that the tree was parsed from; errors underline places in it."""
    shown: str
    """The expression as plans show it."""
    near: exp.Expr | None = None
    """A tree of the same text; errors about a part without a place point at this tree."""

    @classmethod
    def of(cls, tree: exp.Expr, text: str, near: exp.Expr | None = None) -> Formula:
        """Return a formula of a query text, shown as SQL with all names quoted."""
        return cls(tree, text, tree.sql(identify=True), near)

    def part(self, tree: exp.Expr) -> Formula:
        """Return a part of this formula as a formula of its own."""
        return Formula(tree, self.text, self.shown, self.tree)

    def wrong(
        self, message: Message, tree: exp.Expr | None = None, about: Term | None = None
    ) -> ExpressionError:
        """Return an error about this formula, or about one tree of it."""
        return wrong(message, self.text, tree, self.tree, self.near, about=about)

    @contextmanager
    def located(self) -> Iterator[None]:
        """Give errors raised inside the place of this formula, unless they have one."""
        try:
            yield
        except ExpressionError:
            raise
        except QueryError as error:
            raise self.wrong(error.parts, about=error.about) from None


@dataclass(frozen=True)
class Expression:
    """A checked expression: its tree, the Polars expression that computes it, and its type."""

    text: str
    """The expression as plans show it."""
    polars: pl.Expr
    dtype: pl.DataType
    tree: exp.Expr | None = None
    """The tree, over columns by their names; None if no SQL means the same."""
    failures: tuple[Failure, ...] = ()
    """The conditions on rows under which it ends the run."""

    @classmethod
    def of_column(cls, name: str, dtype: pl.DataType, shown: str | None = None) -> Expression:
        """Return the expression that is one column."""
        return cls(shown or name, pl.col(name), dtype, column_tree(name))

    @property
    def column(self) -> str | None:
        """The column that the expression consists of; None if it is more than a column."""
        return self.tree.name if isinstance(self.tree, exp.Column) else None

    def derivation(self, progressing: Mapping[str, TimeDomain]) -> Derivation | None:
        """Return how the expression progresses; None if it is not monotone in progressing columns.

        An expression is monotone if it is a progressing column, plus or minus a constant or not, or
        ``greatest``, ``least`` or ``coalesce`` of such expressions, or a progressing column in a
        finer unit.
        """
        if self.tree is None:
            return None
        return _derive(self.tree, progressing) or self._finer(self.tree, progressing)

    def _finer(self, tree: exp.Expr, progressing: Mapping[str, TimeDomain]) -> Derivation | None:
        """Return the derivation of an integer time multiplied to a finer unit, or of a TIMESTAMP
        made of a coarser one; None for any other tree."""
        tree = tree.this if isinstance(tree, exp.Paren) else tree
        domain = progressing.get(tree.this.name) if isinstance(tree.this, exp.Column) else None
        if domain is None or domain.counts_rows:
            return None
        scale = 0
        if isinstance(tree, exp.Mul) and self.dtype == domain.dtype == pl.Int64:
            digits = tree.expression.name if isinstance(tree.expression, exp.Literal) else ""
            scale = int(digits) if digits.isdigit() else 0
        elif isinstance(tree, exp.Cast) and domain.dtype == pl.Datetime("ms"):
            scale = 1_000 if self.dtype == pl.Datetime("us") else 0
        fits = domain.ticks_per_second * scale in UNITS.values()
        return Derivation(((tree.this.name, 0),), scale=scale) if fits else None


def column_tree(name: str) -> exp.Column:
    """Return the tree that is a column of this name."""
    return exp.column(exp.to_identifier(name, quoted=True))


def compile_expression(formula: Formula, schema: Schema) -> Expression:
    """Return a formula checked against the columns it may use; refuse it at its place."""
    tree = _over_columns(formula, schema)
    _refuse_other_rows(tree, formula)
    if isinstance(tree, exp.Column):
        return Expression(
            formula.shown, pl.col(tree.name), dict(pl.Schema(schema))[tree.name], tree
        )
    try:
        value = ExpressionCompiler(schema, formula.text, formula.tree, formula.near).value(tree)
    except RecursionError:
        raise formula.wrong("this expression is nested too deeply") from None
    return Expression(formula.shown, finished(value).expr, value.dtype, tree, value.failures)


def compile_predicate(formula: Formula, schema: Schema) -> Expression:
    """Return a checked formula; refuse one that is not true or false."""
    compiled = compile_expression(formula, schema)
    if compiled.dtype != pl.Boolean:
        raise formula.wrong(f"a condition must be true or false; this is {compiled.dtype}")
    return compiled


# ---- columns -----------------------------------------------------------------------------------


def _over_columns(formula: Formula, schema: Schema) -> exp.Expr:
    """Return the tree with each ``source.column`` as one name; refuse unknown names."""
    tree, unknown, qualified = formula.tree, [], False
    for column in tree.find_all(exp.Column):
        qualified |= bool(column.table)
        if _name(column) not in schema:
            unknown.append((column.this.meta.get("start", 0), _name(column), column))
    if unknown:
        _, name, column = min(unknown, key=lambda each: each[0])
        visible = [each for each in schema if not each.startswith("__")]
        raise formula.wrong(unknown_name("column", name, visible), column.this)
    return tree.transform(_in_one_name) if qualified else tree


def _name(column: exp.Column) -> str:
    return f"{column.table}.{column.name}" if column.table else column.name


def _in_one_name(tree: exp.Expr) -> exp.Expr:
    if not isinstance(tree, exp.Column) or not tree.table:
        return tree
    whole = column_tree(_name(tree))
    whole.this.meta.update(tree.this.meta)
    return whole


# ---- one row at a time -------------------------------------------------------------------------

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
        *("get_current_timestamp", "current_localtimestamp", "current_localtime"),
        *("uuidv4", "uuidv7"),
    )
)


def _refuse_other_rows(tree: exp.Expr, formula: Formula) -> None:
    """Refuse a tree that reads other rows, a clock or a random number, or aggregates."""
    found: exp.Expr | None
    if found := tree.find(*_LOOKS_AT_OTHER_ROWS):
        raise formula.wrong(
            f"{found.sql()} looks at other rows; an expression sees one row at a time", found
        )
    clock = tree.find(*_READS_A_CLOCK)
    named = (each for each in tree.find_all(exp.Anonymous) if each.name.lower() in _CHANGES)
    if found := clock or next(named, None):
        raise formula.wrong(
            f"{found.sql()} reads a clock or a random number, so a run could not be repeated;"
            ' lw.stream(..., stamp="internal") stamps rows as they come in',
            found,
        )
    if found := tree.find(exp.AggFunc):
        raise formula.wrong(
            f"{found.sql()} is an aggregate; aggregates go into agg(...), after window(...)"
            " or group_by(...)",
            found,
        )


# ---- aggregates --------------------------------------------------------------------------------


@dataclass(frozen=True)
class AggregateCall:
    """A call of one aggregate, taken apart."""

    function: str
    argument: Formula | None
    """The value that is aggregated, null where the condition is not true; None for ``count(*)``."""
    condition: Formula | None = None
    """The condition of FILTER; None if there is none."""
    distinct: bool = False
    share: float | None = None
    """The quantile, from 0 to 1; None for other functions."""


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
    """Return the name of the aggregate that a tree is a call of; None if it is no such call."""
    if isinstance(tree, exp.Anonymous):
        return _NAMED.get(tree.name.lower())
    return _AGGREGATES.get(type(tree))


def is_aggregate(tree: exp.Expr) -> bool:
    """Return True if a tree is a call of an aggregate, known or not."""
    return aggregate_name(tree) is not None or isinstance(tree, exp.AggFunc | exp.Filter)


def read_aggregate(formula: Formula) -> AggregateCall:
    """Return the function and argument of an aggregate such as ``count(DISTINCT a + b)``."""
    tree, condition = formula.tree, None
    if isinstance(tree, exp.Filter):
        tree, condition = tree.this, tree.expression.this
    function = aggregate_name(tree)
    if function is None:
        known = ", ".join(sorted(BUILT_IN))
        raise formula.wrong(
            f"an aggregate is one call of {known}, for example sum(a + b); compute around it with"
            " select(...) afterwards"
        )
    for inner in tree.walk():
        if inner is not tree and is_aggregate(inner):
            first = Term("in an agg(...) before this one", "in a query in FROM")
            said = "an aggregate inside an aggregate: compute the inner one "
            raise formula.wrong((said, first), inner)
    argument, share = _arguments(tree, function, formula)
    distinct = isinstance(argument, exp.Distinct)
    if isinstance(argument, exp.Distinct):
        if len(argument.expressions) != 1:
            raise formula.wrong("count(DISTINCT ...) takes one argument")
        argument = argument.expressions[0]
    if isinstance(argument, exp.Star) and function == "count":
        argument = exp.Literal.number(1) if condition is not None else None
    elif argument is None or isinstance(argument, exp.Star):
        raise formula.wrong(f"{function} needs an argument")
    if argument is not None and condition is not None:  # all aggregates leave nulls out
        when = exp.If(this=condition.copy(), true=argument.copy())
        argument = exp.Case(ifs=[when])
    taken, filtered = (
        None if each is None else formula.part(each) for each in (argument, condition)
    )
    return AggregateCall(function, taken, filtered, distinct, share)


def _arguments(
    tree: exp.Expr, function: str, formula: Formula
) -> tuple[exp.Expr | None, float | None]:
    """Return the argument of an aggregate, and the quantile of a function that takes one."""
    arguments = tree.expressions if isinstance(tree, exp.Anonymous) else [tree.this]
    if function == "approx_quantile":
        share = tree.args.get("quantile") or (arguments[1] if len(arguments) > 1 else None)
        try:
            quantile = float(share.name) if isinstance(share, exp.Literal) else -1.0
        except ValueError:
            quantile = -1.0
        if not 0 <= quantile <= 1:
            said = "approx_quantile takes a value and a share from 0 to 1, such as 0.5"
            raise formula.wrong(said)
        return arguments[0], quantile
    if len(arguments) > 1 or (tree.args.get("expressions") and not isinstance(tree, exp.Anonymous)):
        raise formula.wrong(f"{function} takes one argument")
    return (arguments[0] if arguments else None), None


# ---- progress ----------------------------------------------------------------------------------


def _derive(tree: exp.Expr, progressing: Mapping[str, TimeDomain]) -> Derivation | None:
    if isinstance(tree, exp.Paren):
        return _derive(tree.this, progressing)
    if isinstance(tree, exp.Greatest | exp.Least | exp.Coalesce):
        parts = [_derive(each, progressing) for each in (tree.this, *tree.expressions)]
        if not all(part and len(part.sources) == 1 for part in parts):
            return None
        sources = tuple(part.sources[0] for part in parts if part)
        return Derivation(sources, "all" if isinstance(tree, exp.Greatest) else "least")
    single = column_and_shift(tree, progressing)
    return Derivation((single,)) if single else None


def column_and_shift(
    tree: exp.Expr, progressing: Mapping[str, TimeDomain]
) -> tuple[str, int] | None:
    """Return the progressing column that an expression is, and the ticks that it adds; None for
    any other expression."""
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
    """Return a constant in ticks; None if it is not a whole number of them."""
    if isinstance(tree, exp.Literal) and not tree.is_string and domain.dtype == pl.Int64:
        return int(tree.this) if tree.this.isdigit() else None
    if isinstance(tree, exp.Interval) and isinstance(tree.this, exp.Literal) and tree.unit:
        try:
            length = nanoseconds(f"{tree.this.this} {tree.unit.name}", "interval")
            return domain.ticks(f"{length} ns", "interval")
        except OptionError:  # a month has no fixed length: the column does not progress
            return None
    return None
