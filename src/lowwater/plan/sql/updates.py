"""Clauses of an update stream: its key, and what waits in which order under load."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from sqlglot import exp

from lowwater.errors import OptionError, unknown_name
from lowwater.plan.sql.clauses import Length
from lowwater.plan.sql.scope import found
from lowwater.plan.sql.values import Values, number, parameter, span
from lowwater.plan.text_places import wrong
from lowwater.updates.options import SCHEDULES, WINDOWS, Updates, updates_of

KEY = "UPDATE KEY"
UPDATES = (
    *(KEY, "SCHEDULE", "WEIGHTS", "BUDGET", "COMPLETE WITHIN", "WINDOWS"),
    *("EXPIRE", "DELETE WHEN"),
)
"""The clauses, each of which can be said once."""
_OPTIONS = {
    "update_key=": KEY,
    "schedule=": "SCHEDULE",
    "weights=": "WEIGHTS",
    "budget=": "BUDGET",
    "complete_within=": "COMPLETE WITHIN",
    "windows=": "WINDOWS",
    "expire=": "EXPIRE",
    "delete_when=": "DELETE WHEN",
}
"""What they are called where they are no clauses."""


def read_updates(
    said: Mapping[str, Sequence[exp.Expr]],
    key: Sequence[str],
    columns: Mapping[str, object] | None,
    values: Values,
    text: str,
) -> Updates | None:
    """What the clauses of a stream, by name, say of its updates; None if they say nothing."""
    given = {name: clauses[0] for name, clauses in said.items() if clauses}
    for name, clauses in said.items():
        if len(clauses) > 1:
            raise wrong(f"{name} is given twice", text, clauses[1])
    if KEY not in given:
        for name, clause in given.items():
            raise wrong(f"{name} is about updates: say by which UPDATE KEY (...) too", text, clause)
        return None
    options: dict[str, Any] = {
        "schedule": _word(given.get("SCHEDULE"), SCHEDULES, text),
        "windows": _word(given.get("WINDOWS"), WINDOWS, text),
        "budget": _length(given.get("BUDGET"), values, text),
        "complete_within": _length(given.get("COMPLETE WITHIN"), values, text),
        "weights": _weights(given.get("WEIGHTS"), values, text),
        "expire": _length(given.get("EXPIRE"), values, text),
        "delete_when": _condition(given.get("DELETE WHEN"), columns, values, text),
    }
    try:
        return updates_of(tuple(key), **options)
    except OptionError as error:
        message = in_clauses(str(error))
        about = [clause for name, clause in given.items() if message.startswith(name)]
        raise wrong(message, text, *about, given[KEY]) from None


def in_clauses(message: str) -> str:
    """What is said of the options of update streams, said of the clauses for them."""
    for option, name in _OPTIONS.items():
        message = re.sub(rf"\b{option}'([\w-]+)'", rf"{name} \1", message)
        message = re.sub(rf"\b{option}", name, message)
    return message


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
) -> str | None:
    """A condition on a row, with its columns as they were declared and parameters put in."""
    if clause is None:
        return None
    tree = clause.args["condition"].copy()
    for node in list(tree.walk()):
        if isinstance(node, exp.Placeholder | exp.Parameter):
            node.replace(parameter(node, values, text))
        elif isinstance(node, exp.Column) and columns is not None:
            column = found(node.name, columns)
            if column is None:
                raise wrong(unknown_name("column", node.name, columns), text, node, clause)
            node.this.set("this", column)
    return str(tree.sql(identify=True))


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
