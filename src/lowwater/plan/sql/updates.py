"""Clauses of an update stream: its key, and what waits in which order under load."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from lowwater.errors import unknown_name
from lowwater.plan.expressions import Formula
from lowwater.plan.sql.clauses import Length
from lowwater.plan.sql.scope import found
from lowwater.plan.sql.values import Values, number, parameter, span
from lowwater.plan.text_places import at, wrong
from lowwater.updates.options import (
    BUDGET,
    COMPLETE_WITHIN,
    DELETE_WHEN,
    EXPIRE,
    OPTIONS,
    SCHEDULE,
    SCHEDULES,
    UPDATE_KEY,
    UPDATE_WINDOWS,
    WEIGHTS,
    WINDOWS,
    Updates,
    updates_of,
)

KEY = UPDATE_KEY.clause
UPDATES = tuple(each.clause for each in OPTIONS)
"""The clauses, each of which can be said once."""


def read_updates(
    said: Mapping[str, Sequence[exp.Expr]],
    key: Sequence[str],
    columns: Mapping[str, object] | None,
    values: Values,
    text: str,
) -> tuple[Updates | None, Formula | None]:
    """Return the options that the clauses of a stream give, and the condition of DELETE WHEN."""
    given = {name: clauses[0] for name, clauses in said.items() if clauses}
    for name, clauses in said.items():
        if len(clauses) > 1:
            raise wrong(f"{name} is given twice", text, clauses[1])
    if KEY not in given:
        for name, clause in given.items():
            raise wrong(f"{name} is about updates: say by which UPDATE KEY (...) too", text, clause)
        return None, None
    deletes = _condition(given.get(DELETE_WHEN.clause), columns, values, text)
    options: dict[str, Any] = {
        "schedule": _word(given.get(SCHEDULE.clause), SCHEDULES, text),
        "windows": _word(given.get(UPDATE_WINDOWS.clause), WINDOWS, text),
        "budget": _length(given.get(BUDGET.clause), values, text),
        "complete_within": _length(given.get(COMPLETE_WITHIN.clause), values, text),
        "weights": _weights(given.get(WEIGHTS.clause), values, text),
        "expire": _length(given.get(EXPIRE.clause), values, text),
        "delete_when": deletes.shown if deletes is not None else None,
    }
    with at(text, given[KEY], clauses=given):
        return updates_of(tuple(key), **options), deletes


def _word(clause: exp.Expr | None, known: Sequence[str], text: str) -> str | None:
    if clause is None:
        return None
    word = clause.expressions[0].name
    if word not in known:
        upper = [each.upper() for each in known]
        raise wrong(unknown_name(clause.this, word.upper(), upper), text, clause.expressions[0])
    return str(word)


def _condition(
    clause: exp.Expr | None, columns: Mapping[str, object] | None, values: Values, text: str
) -> Formula | None:
    """A condition on a row, with its columns as they were declared and parameters put in."""
    if clause is None:
        return None

    def resolved(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Placeholder | exp.Parameter):
            return parameter(node, values, text)
        if isinstance(node, exp.Column) and columns is not None:
            column = found(node.name, columns)
            if column is None:
                raise wrong(unknown_name("column", node.name, columns), text, node, clause)
            node.this.set("this", column)
        return node

    return Formula.of(clause.args["condition"].transform(resolved), text, clause)


def _length(clause: exp.Expr | None, values: Values, text: str) -> str | None:
    if clause is None:
        return None
    return _time(clause.args["length"], values, text, clause.this)


def _time(tree: exp.Expr, values: Values, text: str, what: str) -> str:
    length = span(tree, values, text, what)
    if length.rows is not None:
        raise wrong(f"{what} takes a length of time such as 1 second", text, tree)
    return f"{int(length.nanoseconds)} ns"


def _weights(
    clause: exp.Expr | None, values: Values, text: str
) -> dict[Hashable, float | str] | None:
    if clause is None:
        return None
    weights: dict[Hashable, float | str] = {}
    for each in clause.expressions:
        key = _constants(each.this, values, text)
        if key in weights:
            raise wrong("WEIGHTS names a key twice", text, each)
        weights[key] = _weight(each.expression, values, text)
    return weights


def _weight(tree: exp.Expr, values: Values, text: str) -> float | str:
    """A number, or a length of time: how often a key is looked at."""
    amount = tree.this if isinstance(tree, Length) and tree.args.get("unit") is None else None
    if isinstance(amount, exp.Placeholder | exp.Parameter):
        amount = parameter(amount, values, text)
    size = number(amount)
    return float(size) if size is not None else _time(tree, values, text, "WEIGHTS")


def _constants(tree: exp.Expr, values: Values, text: str) -> tuple[Hashable, ...]:
    """The values of a key: one, or several in parentheses."""
    if isinstance(tree, exp.Paren | exp.Tuple):
        parts = tree.expressions if isinstance(tree, exp.Tuple) else [tree.this]
        return tuple(_constant(each, values, text) for each in parts)
    return (_constant(tree, values, text),)


def _constant(tree: exp.Expr, values: Values, text: str) -> Hashable:
    if isinstance(tree, exp.Placeholder | exp.Parameter):
        tree = parameter(tree, values, text)
    if isinstance(tree, exp.Literal) and tree.is_string:
        return str(tree.this)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    whole = number(tree)
    if whole is None or whole.denominator != 1:
        raise wrong("a key in WEIGHTS is a text, a whole number, TRUE or FALSE", text, tree)
    return int(whole)
