"""A scope resolves the names in a query, and the numbers beside times.

A resolved tree reads the columns of one node by their own names. A bare number beside a time is a
length of time: ``ts - 30`` is thirty seconds earlier, ``ts / 10`` the number of the ten-second
bucket. Buckets and truncated times are computed as columns ahead of the expression, because they
progress.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

import polars as pl
from sqlglot import exp

from lowwater.errors import unknown_name
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.expressions import Formula, column_tree
from lowwater.plan.nodes import Node
from lowwater.plan.sql.values import Values, given, interval, number, parameter
from lowwater.plan.text_places import wrong
from lowwater.stream.duration import SECOND
from lowwater.stream.time_domain import TimeDomain

UNITS = ("microsecond", "millisecond", "second", "minute", "hour", "day")
"""Units that date_trunc cuts to: those of one fixed length."""


@dataclass
class Scope:
    """The columns that a part of a query can name.

    ``relations`` maps each source to its columns, by the names they have in the query and in
    ``node``.
    """

    text: str
    values: Values
    node: Node
    relations: Mapping[str, Mapping[str, str]]
    merged: Mapping[str, str] = field(default_factory=dict)
    """Columns that may be named without their source, though several sources have them."""
    resolved_names: bool = False
    """True if trees name columns of ``node`` already."""
    made: dict[tuple[str, int, bool], str] = field(default_factory=dict)
    """The columns computed for cut times, by the time column, the width in ticks, and True for
    bucket numbers."""

    # ---- names -----------------------------------------------------------------------------

    def column(self, tree: exp.Column) -> str | None:
        """Return the column of the node that a name stands for; None if it is a parameter."""
        if tree.args.get("db") is not None:
            raise wrong("a column is written source.column", self.text, tree)
        if tree.table:
            relation = self.source(tree)
            name = found(tree.name, self.relations[relation])
            if name is None:
                known = self.relations[relation]
                raise wrong(
                    unknown_name(f"column of {relation}", tree.name, known), self.text, tree.this
                )
            return self.relations[relation][name]
        return self._unqualified(tree)

    def source(self, tree: exp.Column) -> str:
        """Return the source that a column is qualified by."""
        name = found(tree.table, self.relations)
        if name is None:
            message = unknown_name("source", tree.table, [each for each in self.relations if each])
            raise wrong(message, self.text, tree.args["table"])
        return name

    def knows(self, name: str) -> bool:
        """Return True if some source has a column of this name."""
        return any(found(name, columns) for columns in (self.merged, *self.relations.values()))

    def _unqualified(self, tree: exp.Column) -> str | None:
        name = found(tree.name, self.merged)
        if name is not None:
            return self.merged[name]
        having = {
            relation: columns[name]
            for relation, columns in self.relations.items()
            if (name := found(tree.name, columns)) is not None
        }
        if len(having) == 1:
            return next(iter(having.values()))
        if having:
            choices = " or ".join(f"{relation}.{tree.name}" for relation in having)
            raise wrong(
                f"{tree.name!r} is a column of several sources; say {choices}", self.text, tree
            )
        if tree.name in self.values:
            return None
        known = {name for columns in self.relations.values() for name in columns}
        raise wrong(unknown_name("column", tree.name, known | {*self.merged}), self.text, tree)

    # ---- expressions -----------------------------------------------------------------------

    def resolved(self, tree: exp.Expr) -> exp.Expr:
        """Return a copy of a tree that reads this scope's node."""
        return self._timed(self.named(tree))

    def formula(self, tree: exp.Expr) -> Formula:
        """Return the resolved tree as builders of nodes take it."""
        return Formula.of(self.resolved(tree), self.text, tree)

    def named(self, tree: exp.Expr) -> exp.Expr:
        """Return a copy in which names are those of the node's columns, and parameters are
        values."""
        if self.resolved_names:
            return tree.copy()

        def named(node: exp.Expr) -> exp.Expr:
            if isinstance(node, exp.Placeholder | exp.Parameter):
                return parameter(node, self.values, self.text)
            if isinstance(node, exp.Column) and not isinstance(node.this, exp.Star):
                name = self.column(node)
                if name is None:
                    return given(self.values[node.name], node.this, self.text)
                meant = column_tree(name)
                meant.meta.update(node.this.meta)
                if node.args.get("table") is not None:
                    whose = node.args["table"].meta
                    meant.meta.update({k: whose[k] for k in ("line", "start") if k in whose})
                return meant
            return node

        return tree.transform(named)

    def _timed(self, tree: exp.Expr) -> exp.Expr:
        """Return the tree with numbers beside times replaced by lengths of time, and cut times by
        computed columns."""

        def timed(node: exp.Expr) -> exp.Expr:
            bucket = cut(node, self.domain, self.text)
            if bucket is not None:
                made = column_tree(self._made(*bucket))
                made.meta.update(node.meta)
                return made
            if isinstance(node, exp.Add | exp.Sub):
                for one, other in (("this", "expression"), ("expression", "this")):
                    domain = self.time(node.args[one])
                    amount = _nanoseconds(node.args[other])
                    if domain is not None and amount is not None:
                        node.set(other, _length(amount, domain))
            elif isinstance(node, exp.LT | exp.LTE | exp.GT | exp.GTE | exp.EQ | exp.NEQ):
                for one, other in (("this", "expression"), ("expression", "this")):
                    self._lengthen(node, node.args[one], other)
            elif isinstance(node, exp.Between):
                for other in ("low", "high"):
                    self._lengthen(node, node.this, other)
            return node

        return tree.transform(timed, copy=False)

    def _lengthen(self, node: exp.Expr, beside: exp.Expr, key: str) -> None:
        """Replace a number beside a difference of times by a length of time."""
        domain, amount = self._difference(beside), _nanoseconds(node.args[key])
        if domain is not None and amount is not None:
            node.set(key, _length(amount, domain))

    def time(self, tree: exp.Expr) -> TimeDomain | None:
        """Return the domain of a resolved tree that is a time: a time column, shifted or not; else
        None."""
        if isinstance(tree, exp.Paren):
            return self.time(tree.this)
        if isinstance(tree, exp.Column):
            return self.domain(tree.name)
        if isinstance(tree, exp.Add | exp.Sub):
            domain = self.time(tree.this)
            constant = interval(tree.expression) is not None or number(tree.expression) is not None
            return domain if constant else None
        if isinstance(tree, exp.Greatest | exp.Least | exp.Coalesce):
            parts = {self.time(each) for each in (tree.this, *tree.expressions)}
            return parts.pop() if len(parts) == 1 else None
        return None

    def domain(self, column: str) -> TimeDomain | None:
        """Return the domain of a column; None if it is no time."""
        if column in self.node.progress:
            domain = self.node.progress[column].domain
            return None if domain.counts_rows else domain
        dtype = self.node.schema.get(column)
        return TimeDomain.of(dtype) if isinstance(dtype, pl.Datetime) else None

    def _difference(self, tree: exp.Expr) -> TimeDomain | None:
        """Return the domain of two times of which one is subtracted from the other; else None."""
        while isinstance(tree, exp.Paren | exp.Abs):
            tree = tree.this
        if not isinstance(tree, exp.Sub):
            return None
        one, two = self.time(tree.this), self.time(tree.expression)
        return one if one is not None and one == two else None

    # ---- buckets ---------------------------------------------------------------------------

    def _made(self, column: str, width: int, numbered: bool) -> str:
        cut = column, width, numbered
        if cut not in self.made:
            number = len(self.made)
            while f"__time{number}" in self.node.schema:
                number += 1
            self.made[cut] = name = f"__time{number}"
            self.node = row_builders.bucketed(self.node, name, column, width, numbered)
        return self.made[cut]

    def with_names(self, *names: str) -> Scope:
        """Return a scope in which more names stand for themselves; if there is one source, also as
        its columns."""
        own = {name: name for name in names}
        relations = self.relations
        if len(relations) == 1:
            relations = {source: {**own, **columns} for source, columns in relations.items()}
        return replace(self, relations=relations, merged={**self.merged, **own})


def cut(
    tree: exp.Expr, domain_of: Callable[[str], TimeDomain | None], text: str
) -> tuple[str, int, bool] | None:
    """Return the column, the width in ticks, and True for bucket numbers, of a tree that cuts a
    time; None for others."""
    if not isinstance(tree, exp.Div | exp.TimestampTrunc | exp.DateTrunc):
        return None
    domain = domain_of(tree.this.name) if isinstance(tree.this, exp.Column) else None
    if domain is None:
        return None
    if isinstance(tree, exp.Div):
        size = number(tree.expression)
        if size is None:
            return None
        width = size * domain.ticks_per_second
        if width <= 0 or width.denominator != 1:
            raise wrong(
                "a time is divided into buckets of a length above zero that its column can count",
                text,
                tree,
            )
        return tree.this.name, int(width), True
    unit = tree.args["unit"].name.lower()
    if unit not in UNITS:
        raise wrong(f"a time can be cut to {', '.join(UNITS)}, not to {unit!r}", text, tree)
    return tree.this.name, max(1, domain.ticks(f"1 {unit}", "date_trunc")), False


def _nanoseconds(tree: exp.Expr) -> Fraction | None:
    """Return the nanoseconds of a constant beside a time; bare numbers are seconds."""
    seconds = number(tree)
    return interval(tree) if seconds is None else seconds * SECOND


def _length(nanos: Fraction, domain: TimeDomain) -> exp.Expr:
    """Return the tree of a length of time that can be added to a column of a domain."""
    if not isinstance(domain.dtype, pl.Datetime):
        ticks = nanos * domain.ticks_per_second / SECOND
        exact = str(ticks) if ticks.denominator == 1 else str(float(ticks))
        return (
            exp.Literal.number(exact)
            if ticks >= 0
            else exp.Neg(this=exp.Literal.number(exact.lstrip("-")))
        )
    micros = nanos / 1_000
    for unit, size in (("SECONDS", 1_000_000), ("MILLISECONDS", 1_000), ("MICROSECONDS", 1)):
        if (micros / size).denominator == 1:
            return exp.Interval(
                this=exp.Literal.string(str(int(micros / size))), unit=exp.var(unit)
            )
    return exp.Interval(this=exp.Literal.string(str(int(nanos))), unit=exp.var("NANOSECONDS"))


def found(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is equal, or else the only one that differs in letter case alone;
    None if there is none."""
    if name in known:
        return name
    alike = [each for each in known if each.lower() == name.lower()]
    return alike[0] if len(alike) == 1 else None
