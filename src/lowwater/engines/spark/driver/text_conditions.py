"""Conditions on texts become Spark SQL if Spark gives the same truth values as Polars.

A condition compares columns of texts with literals: ``=``, ``<>``, IN, LIKE, ``starts_with`` and
IS NULL, put together by AND, OR and NOT. Such a condition never fails, and a wide text that only it
reads need not be sent to Python. Texts are compared byte by byte, whatever the column's collation,
and no escape depends on the session. No other condition is translated
(docs/decisions/050-conditions-that-spark-computes.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl
from sqlglot import exp

from lowwater.engines.spark.wire.types import quoted
from lowwater.plan.expressions import column_tree

LONGEST = 20_000
"""The greatest number of characters of a condition that Spark computes."""


class _Different(Exception):
    """Raised for a part of a condition on which Spark and Polars may differ."""


@dataclass(frozen=True)
class Condition:
    """One of the conditions that a filter puts together by AND."""

    tree: exp.Expr
    text: str | None
    """Spark SQL with the same truth values; None if Spark might differ."""

    @property
    def columns(self) -> set[str]:
        """The names of the columns that the condition reads."""
        return {each.name for each in self.tree.find_all(exp.Column)}


def conditions(tree: exp.Expr, schema: Mapping[str, pl.DataType]) -> list[Condition]:
    """Return the conditions of a filter over columns of these types."""
    if isinstance(tree, exp.Paren) and isinstance(tree.this, exp.And | exp.Paren):
        return conditions(tree.this, schema)
    if isinstance(tree, exp.And):
        return [*conditions(tree.this, schema), *conditions(tree.expression, schema)]
    return [Condition(tree, _spark_text(tree, schema))]


def _spark_text(tree: exp.Expr, schema: Mapping[str, pl.DataType]) -> str | None:
    if not tree.find(exp.Column):
        return None
    try:
        text = _condition(tree, schema)
    except _Different:
        return None
    return text if len(text) <= LONGEST else None


def replaced(tree: exp.Expr, names: Mapping[int, str]) -> exp.Expr:
    """Return a filter's tree with conditions, by the ``id`` of their trees, replaced by columns."""
    if id(tree) in names:
        return column_tree(names[id(tree)])
    if isinstance(tree, exp.Paren):
        return exp.Paren(this=replaced(tree.this, names))
    if isinstance(tree, exp.And):
        sides = (replaced(each, names) for each in (tree.this, tree.expression))
        return exp.And(**dict(zip(("this", "expression"), sides, strict=True)))
    return tree.copy()


# ---- translation -------------------------------------------------------------------------------

_ARGUMENTS: Mapping[type[exp.Expr], str] = {
    exp.Paren: "this",
    exp.Not: "this",
    exp.And: "this expression",
    exp.Or: "this expression",
    exp.EQ: "this expression",
    exp.NEQ: "this expression",
    exp.In: "this expressions",
    exp.Like: "this expression negate",
    exp.StartsWith: "this expression",
    exp.Is: "this expression",
}
"""The trees that are translated, with the arguments that are understood."""


def _condition(tree: exp.Expr, schema: Mapping[str, pl.DataType]) -> str:
    known = _ARGUMENTS.get(type(tree), "").split()
    if not known or any(tree.args[each] for each in tree.args.keys() - known):
        raise _Different
    inner: Any = tree.this
    match tree:
        case exp.Paren():
            return _condition(inner, schema)
        case exp.Not():
            return f"(NOT {_condition(inner, schema)})"
        case exp.And() | exp.Or():
            word = "AND" if isinstance(tree, exp.And) else "OR"
            return f"({_condition(inner, schema)} {word} {_condition(tree.expression, schema)})"
        case exp.EQ() | exp.NEQ():
            sign = "=" if isinstance(tree, exp.EQ) else "<>"
            return _compared(sign, inner, tree.expression, schema)
        case exp.In():
            return (
                "(" + " OR ".join(_compared("=", inner, e, schema) for e in tree.expressions) + ")"
            )
        case exp.Like():
            word = "NOT LIKE" if tree.args.get("negate") else "LIKE"
            return f"({_column(inner, schema)} {word} {_pattern(tree.expression)})"
        case exp.StartsWith():
            return f"startswith({_column(inner, schema)}, {_literal(tree.expression)})"
    if not isinstance(tree.expression, exp.Null):
        raise _Different
    return f"({_column(inner, schema)} IS NULL)"


def _compared(sign: str, one: exp.Expr, two: exp.Expr, schema: Mapping[str, pl.DataType]) -> str:
    if isinstance(one, exp.Literal):
        one, two = two, one
    return f"({_column(one, schema)} {sign} {_literal(two)})"


def _column(tree: exp.Expr, schema: Mapping[str, pl.DataType]) -> str:
    while isinstance(tree, exp.Paren):
        tree = tree.this
    name = tree.name
    if not isinstance(tree, exp.Column) or schema.get(name) != pl.String:
        raise _Different
    twins = [each for each in schema if each.lower() == name.lower()]
    if twins != [name] or "${" in name:  # Spark folds case, and puts variables into texts
        raise _Different
    return f"({quoted(name)} COLLATE UTF8_BINARY)"


def _pattern(tree: exp.Expr) -> str:
    if "\\" in tree.name:  # a letter in Polars, an escape in Spark
        raise _Different
    return _literal(tree)


def _literal(tree: exp.Expr) -> str:
    """Return a literal text as Spark SQL, in hexadecimal if a session's settings could change its
    meaning."""
    if not isinstance(tree, exp.Literal) or not tree.is_string:
        raise _Different
    text = str(tree.this)
    if text.isprintable() and not set(text) & set("'\"\\$"):
        return f"'{text}'"
    return f"CAST(X'{text.encode().hex()}' AS STRING)"
