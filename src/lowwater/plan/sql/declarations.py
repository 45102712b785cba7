"""This module reads the declaration of a stream from the clauses of CREATE STREAM."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import polars as pl
from sqlglot import exp

from lowwater.errors import unknown_name
from lowwater.plan.expressions import Formula
from lowwater.plan.sql import dialect
from lowwater.plan.sql.clauses import Length
from lowwater.plan.sql.scope import found
from lowwater.plan.sql.values import (
    Span,
    Values,
    duration,
    number,
    parameter,
    rate,
    share,
    span,
    whole,
)
from lowwater.plan.text_places import at, line_of, wrong
from lowwater.progress.contract import Learned, Unpromised
from lowwater.updates.options import (
    BUDGET,
    COMPLETE_WITHIN,
    DELETE_WHEN,
    EXPIRE,
    FRESH_WITHIN,
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
"""The clauses of update streams; each may stand once."""


@dataclass(frozen=True)
class Declared:
    """A stream as a pipeline file declares it."""

    name: str
    columns: Mapping[str, pl.DataType] | None
    location: str
    time: str | None = None
    unit: str = "s"
    """The unit of integers in the time column: s, ms, us or ns."""
    within: Span | None = None
    times: tuple[str, ...] = ()
    """The time columns, if there are several; ``time`` is the first."""
    punctuated: tuple[str, ...] = ()
    jointly: bool = False
    alone: str | None = None
    ended: str | None = None
    learned: float | None = None
    unpromised: Unpromised | None = None
    channel: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    on_demand: bool = False
    skew: Span | None = None
    heartbeat: Span | None = None
    behind_clock: Span | None = None
    stale_after: Span | None = None
    late_to: str | None = None
    updates: Updates | None = None
    deletes: Formula | None = None
    """The condition of DELETE WHEN."""
    follow: bool = False
    options: Mapping[str, str] = field(default_factory=dict)
    line: int = 1


_FACTS = ("DISORDER", "MULTIPLICITY", "RATE", "DELAY")
"""The clauses that declare facts about a stream that promises nothing."""
_FIELDS = {
    "ORDERED BY": "time",
    "ON": "time",
    "UNIT": "unit",
    "WITHIN": "within",
    "PUNCTUATED BY": "punctuated",
    "ALONE BY": "alone",
    "JOINTLY": "jointly",
    "ENDED BY": "ended",
    "LEARNED": "learned",
    "UNPROMISED": "unpromised",
    "PER CHANNEL": "channel",
    "PER GROUP": "groups",
    "IDLE ON DEMAND": "on_demand",
    "HEARTBEAT EVERY": "heartbeat",
    "IDLE HEARTBEAT EVERY": "heartbeat",
    "BEHIND CLOCK": "behind_clock",
    "STALE AFTER": "stale_after",
    "LATE TO": "late_to",
    "FOLLOW": "follow",
    "OPTIONS": "options",
    **{name: name.lower() for name in _FACTS},
}
"""The field of the declaration, or the fact, that each clause gives; those of update streams are
read together."""
_SKEWED = ("IDLE ON DEMAND", "HEARTBEAT EVERY", "IDLE HEARTBEAT EVERY")
"""The clauses after which WITHIN is the skew of an idle source."""
_BETWEEN = ("LEARNED", "UNPROMISED", *_FACTS, "BEHIND CLOCK", "OPTIONS", *UPDATES)
"""The clauses that may stand between these and their WITHIN."""


def read_declaration(tree: dialect.CreateStream, values: Values, text: str) -> Declared:
    """Return the declaration of a CREATE STREAM statement; ``values`` are the script's
    parameters."""
    columns = _columns(tree.args.get("columns"), text)
    clauses = tree.args["clauses"]
    made: dict[str, Any] = {}
    idle = False
    for clause in clauses:
        name = clause.this
        if name != "PROGRESS" and name not in UPDATES:
            given = "skew" if name == "WITHIN" and idle else _FIELDS[name]
            value = _value(clause, columns, values, text)
            if given in made:
                raise wrong(f"{name} is given twice", text, clause)
            made[given] = value
        idle = name in _SKEWED or (idle and name in _BETWEEN)
    made["unpromised"] = _unpromised(made, clauses, text)
    said = {name: [each for each in clauses if each.this == name] for name in UPDATES}
    key = [name for each in said[KEY] for name in _listed(each, columns, text)]
    made["updates"], made["deletes"] = _read_updates(said, key, columns, values, text)
    time = made.pop("time", None) or _only_time(columns, made.get("punctuated", ()))
    if isinstance(time, tuple):
        made["times"], time = time, time[0]
    if time is None:
        raise wrong(
            f"stream {tree.this.name!r}: say which column is the time: PROGRESS ORDERED BY ts",
            text,
            tree,
        )
    return Declared(
        tree.this.name,
        columns,
        tree.args["location"].name,
        time,
        line=line_of(tree, text),
        **made,
    )


def _value(
    clause: exp.Expr, columns: Mapping[str, pl.DataType] | None, values: Values, text: str
) -> object:
    """Return the value of a clause: a length, a share, a number, names, or True if it has none."""
    name, length = clause.this, clause.args.get("length")
    if name == "OPTIONS":
        return {each.this.name: each.expression.name for each in clause.expressions}
    if name == "LEARNED":
        given = clause.args.get("share")
        return share(given, values, text, name) if given is not None else Learned().completeness
    if name == "DELAY":
        return duration(clause.args["length"], values, text, name, "10 seconds")
    if name == "RATE":
        return rate(clause.args["length"], values, text, name)
    if name == "DISORDER":
        return whole(clause.args["length"], values, text, name, "ROWS", least=0)
    if name == "MULTIPLICITY":
        return whole(clause.args["length"], values, text, name)
    if length is not None:
        return span(length, values, text, name)
    listed = _listed(clause, columns, text)
    if name in ("PER CHANNEL", "PER GROUP", "PUNCTUATED BY"):
        return listed
    if name == "ON" and len(listed) > 1:
        return listed
    if name in ("ORDERED BY", "ON", "ALONE BY", "ENDED BY") and len(listed) != 1:
        raise wrong(f"{name} names one column", text, clause)
    return listed[0] if listed else True


def _listed(
    clause: exp.Expr, columns: Mapping[str, pl.DataType] | None, text: str
) -> tuple[str, ...]:
    """Return the names that a clause lists: columns, as they were declared, or a location."""
    names = tuple(each.name for each in clause.expressions if each is not None)
    if clause.this == "UNIT":
        return (_unit(clause, text),)
    if clause.this == "LATE TO" or columns is None:
        return names
    known = [found(name, columns) for name in names]
    for name, column, each in zip(names, known, clause.expressions, strict=True):
        if column is None:
            raise wrong(unknown_name("column", name, columns), text, each, clause)
        dtype = columns[column]
        if clause.this in ("ORDERED BY", "ON") and not (dtype.is_temporal() or dtype.is_numeric()):
            raise wrong(f"a time is a TIMESTAMP, a DATE or a number; {column} is none", text, each)
    return tuple(column for column in known if column is not None)


UNITS = {"s": "SECONDS", "ms": "MILLISECONDS", "us": "MICROSECONDS", "ns": "NANOSECONDS"}


def _unit(clause: exp.Expr, text: str) -> str:
    """Return the unit of integers; ``MILLISECONDS``, ``millisecond`` and ``ms`` are one."""
    name = clause.expressions[0].name
    for short, long in UNITS.items():
        if name.lower() == short or name.upper().rstrip("S") == long.rstrip("S"):
            return short
    raise wrong(unknown_name("unit", name, UNITS.values()), text, clause)


def _unpromised(made: dict[str, Any], clauses: Sequence[exp.Expr], text: str) -> Unpromised | None:
    """Return the contract of a stream that promises nothing, with the facts taken out of
    ``made``."""
    facts = {name.lower(): made.pop(name.lower()) for name in _FACTS if name.lower() in made}
    places = [each for each in clauses if each.this in _FACTS]
    if made.pop("unpromised", False):
        with at(text, *places):
            return Unpromised(**facts)
    if places:
        raise wrong(
            f"{places[0].this} goes with PROGRESS UNPROMISED: it is a fact about a stream that"
            " promises nothing",
            text,
            places[0],
        )
    return None


def _only_time(columns: Mapping[str, pl.DataType] | None, marks: Sequence[str]) -> str | None:
    """Return the time column where no clause names it: the only one beside the producer's marks."""
    times = [name for name, dtype in (columns or {}).items() if isinstance(dtype, pl.Datetime)]
    times = [name for name in times if name not in marks]
    return times[0] if len(times) == 1 else None


_TYPES: Mapping[str, pl.DataType] = {
    "BOOLEAN": pl.Boolean(),
    "TINYINT": pl.Int8(),
    "SMALLINT": pl.Int16(),
    "INT": pl.Int32(),
    "BIGINT": pl.Int64(),
    "FLOAT": pl.Float32(),
    "DOUBLE": pl.Float64(),
    "TEXT": pl.String(),
    "VARCHAR": pl.String(),
    "CHAR": pl.String(),
    "DATE": pl.Date(),
    "TIMESTAMP": pl.Datetime("us"),
    "DATETIME": pl.Datetime("us"),
    "TIMESTAMPTZ": pl.Datetime("us", "UTC"),
    "TIMESTAMPLTZ": pl.Datetime("us", "UTC"),
    "BINARY": pl.Binary(),
    "VARBINARY": pl.Binary(),
}


def _columns(listed: list[exp.Expr] | None, text: str) -> dict[str, pl.DataType] | None:
    if listed is None:
        return None
    columns: dict[str, pl.DataType] = {}
    for each in listed:
        kind = each.args.get("kind") if isinstance(each, exp.ColumnDef) else None
        if kind is None:
            raise wrong("a column has a name and a type, for example ts TIMESTAMP", text, each)
        if each.name in columns:
            raise wrong(f"column {each.name!r} is declared twice", text, each)
        columns[each.name] = _type(kind, text, each)
    return columns


def _type(kind: exp.Expr, text: str, at: exp.Expr) -> pl.DataType:
    name = kind.this.name if hasattr(kind.this, "name") else str(kind.this)
    if name == "DECIMAL":
        sizes = [int(each.name) for each in kind.expressions if each.name.isdecimal()]
        fits = len(sizes) < 2 or sizes[1] <= sizes[0]
        if len(sizes) != len(kind.expressions) or not fits or not all(n <= 38 for n in sizes):
            raise wrong("DECIMAL(digits, digits after the point) has at most 38 digits", text, at)
        return pl.Decimal(*sizes) if sizes else pl.Decimal(38, 9)
    if name == "ARRAY" and kind.expressions:
        return pl.List(_type(kind.expressions[0], text, at))
    if name not in _TYPES:
        known = "BOOLEAN, INT, BIGINT, DOUBLE, STRING, DATE, TIMESTAMP and DECIMAL"
        raise wrong(f"unknown type {name}; a column is of type {known}, for example", text, at)
    return _TYPES[name]


# ---- update streams ----------------------------------------------------------------------------


def _read_updates(
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
            raise wrong(f"{name} is a clause of update streams: add UPDATE KEY (...)", text, clause)
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
        "fresh_within": _fresh_within(given.get(FRESH_WITHIN.clause), values, text),
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
    """Return a condition on a row, with columns as they were declared and values for parameters."""
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
    return duration(clause.args["length"], values, text, clause.this)


def _weights(
    clause: exp.Expr | None, values: Values, text: str
) -> dict[Hashable, float | str] | None:
    if clause is None:
        return None
    weights: dict[Hashable, float | str] = {}
    for each in clause.expressions:
        key = _constants(each.this, values, text, clause.this)
        if key in weights:
            raise wrong("WEIGHTS names a key twice", text, each)
        weights[key] = _weight(each.expression, values, text)
    return weights


def _fresh_within(
    clause: exp.Expr | None, values: Values, text: str
) -> str | dict[Hashable, str] | None:
    """Return the staleness that is asked for of all keys, or of single keys."""
    if clause is None:
        return None
    if clause.args.get("length") is not None:
        return duration(clause.args["length"], values, text, clause.this)
    found: dict[Hashable, str] = {}
    for each in clause.expressions:
        key = _constants(each.this, values, text, clause.this)
        if key in found:
            raise wrong(f"{clause.this} names a key twice", text, each)
        found[key] = duration(each.expression, values, text, clause.this)
    return found


def _weight(tree: exp.Expr, values: Values, text: str) -> float | str:
    """Return a weight, or the period at which a reader looks at a key."""
    amount = tree.this if isinstance(tree, Length) and tree.args.get("unit") is None else None
    if isinstance(amount, exp.Placeholder | exp.Parameter):
        amount = parameter(amount, values, text)
    size = number(amount)
    return float(size) if size is not None else duration(tree, values, text, "WEIGHTS")


def _constants(tree: exp.Expr, values: Values, text: str, clause: str) -> tuple[Hashable, ...]:
    """Return the values of a key: one, or several in parentheses."""
    if isinstance(tree, exp.Paren | exp.Tuple):
        parts = tree.expressions if isinstance(tree, exp.Tuple) else [tree.this]
        return tuple(_constant(each, values, text, clause) for each in parts)
    return (_constant(tree, values, text, clause),)


def _constant(tree: exp.Expr, values: Values, text: str, clause: str) -> Hashable:
    if isinstance(tree, exp.Placeholder | exp.Parameter):
        tree = parameter(tree, values, text)
    if isinstance(tree, exp.Literal) and tree.is_string:
        return str(tree.this)
    if isinstance(tree, exp.Boolean):
        return bool(tree.this)
    whole = number(tree)
    if whole is None or whole.denominator != 1:
        raise wrong(f"a key in {clause} is a text, a whole number, TRUE or FALSE", text, tree)
    return int(whole)
