"""This module plans all inner joins of a query as one join of equal times without a window.

Equal columns that progress have to connect all inputs, directly or through others. Further columns
that are equal in all inputs become keys; all other conditions are checked on results.
"""

from __future__ import annotations

from collections.abc import Sequence

from sqlglot import exp

from lowwater.joins.oblivious.options import STRATEGIES, Oblivious
from lowwater.plan.builders import multi_joins as multi_join_builders
from lowwater.plan.builders import oblivious as oblivious_builders
from lowwater.plan.nodes import Node
from lowwater.plan.sql.clauses import Length
from lowwater.plan.sql.pairs import JoinSide, Pairs
from lowwater.plan.sql.values import Values, duration, number, parameter, share
from lowwater.plan.text_places import at, wrong
from lowwater.stream.size import byte_count

OPTIONS = ("memory", "strategy", "accuracy", "latency", "read_ahead")
"""The parts of a join clause that are options of joins without a window."""


def read_join_clause(tree: exp.Expr | None, values: Values, text: str) -> Oblivious | None:
    """Return the options in ``[MEMORY '64 MB', STRATEGY hybrid, ACCURACY 0.99, LATENCY 2 seconds,
    READ_AHEAD 512 ROWS]``; None without such a clause."""
    if tree is None:
        return None
    memory, strategy, accuracy, latency, ahead = (tree.args.get(name) for name in OPTIONS)
    wait = None
    if latency is not None:
        wait = duration(latency, values, text, "LATENCY", "2 seconds")
    if strategy is not None and strategy.name.lower() not in STRATEGIES:
        known = ", ".join(STRATEGIES).upper()
        raise wrong(f"STRATEGY is one of {known}, not {strategy.name.upper()}", text, strategy)
    with at(text, *(each for each in (ahead, strategy) if each is not None)):
        return oblivious_builders.options_of(
            memory_size(memory, values, text) if memory is not None else None,
            strategy.name.lower() if strategy is not None else None,
            share(accuracy, values, text, "ACCURACY") if accuracy is not None else None,
            wait,
            _read_ahead(ahead, values, text) if ahead is not None else None,
        )


def memory_size(tree: exp.Expr, values: Values, text: str, what: str = "MEMORY") -> int:
    """Return the bytes of ``'64 MB'``, ``64 MB``, a number, or a parameter that is one of them."""
    amount, unit = _amount(tree, values, text)
    size = number(amount)
    with at(text, tree):
        if size is not None and unit is None:
            return byte_count(int(size), what)
        written = amount.name if isinstance(amount, exp.Literal) else amount.sql()
        return byte_count(f"{written} {unit.name}" if unit is not None else written, what)


def _amount(tree: exp.Expr, values: Values, text: str) -> tuple[exp.Expr, exp.Expr | None]:
    """Return a number or text, perhaps the value of a parameter, and the unit after it."""
    amount, unit = (tree.this, tree.args.get("unit")) if isinstance(tree, Length) else (tree, None)
    if isinstance(amount, exp.Placeholder | exp.Parameter):
        amount = parameter(amount, values, text)
    return amount, unit


def _read_ahead(tree: exp.Expr, values: Values, text: str) -> int | str:
    """Return ``512 ROWS`` or a number as rows, an amount of memory as a text of bytes, and AUTO as
    "auto"."""
    if isinstance(tree, exp.Var):
        return "auto"
    amount, unit = _amount(tree, values, text)
    rows = number(amount)
    if rows is not None and rows.denominator == 1 and (unit is None or _is_rows(unit)):
        return int(rows)
    if unit is not None and _is_rows(unit):
        raise wrong("READ_AHEAD takes a whole number of rows, such as 512 ROWS", text, tree)
    if isinstance(amount, exp.Literal) and amount.name.lower() == "auto":
        return "auto"
    return f"{memory_size(tree, values, text, 'READ_AHEAD')} bytes"


def _is_rows(unit: exp.Expr) -> bool:
    return unit.name.upper() in ("ROW", "ROWS")


def join_all(
    pairs: Pairs,
    sides: Sequence[JoinSide],
    pool: list[exp.Expr],
    options: Oblivious | None,
    source: exp.Expr,
) -> JoinSide | None:
    """Return the inner join of all inputs under all conditions; None if it is planned two inputs at
    a time."""
    if any(side.windows for side in sides) or sum(bool(each.node.updates) for each in sides) > 1:
        return None
    keys = _keys(pairs, sides, pool)
    inputs = [side.node for side in sides]
    times = oblivious_builders.best_times(
        inputs, [names for names in keys if _alike(inputs, names)]
    )
    if times is None or oblivious_builders.measuring_options(inputs, times, options) is None:
        return None
    for side in sides:
        pool = pairs.push(side, pool)
    rest = [each for each in pool if not _is_implied(each, keys)]
    residual, later = pairs.checked(sides, rest)
    with at(pairs.text, *rest, source):
        node = multi_join_builders.joined_together(
            [side.node for side in sides],
            on=keys,
            where=residual,
            times=times,
            options=options,
            origin=pairs.origin,
        )
    whole = JoinSide(node, frozenset().union(*(side.owners for side in sides)))
    pairs.filter_side(whole, *later)
    return whole


def _alike(inputs: Sequence[Node], names: Sequence[str]) -> bool:
    """Return True if all columns progress, have one time domain and are never null."""
    found = [node.progress.get(name) for node, name in zip(inputs, names, strict=True)]
    known = [each for each in found if each is not None and not each.nullable]
    return len(known) == len(found) and len({each.domain for each in known}) == 1


def _keys(
    pairs: Pairs, sides: Sequence[JoinSide], pool: Sequence[exp.Expr]
) -> list[tuple[str, ...]]:
    """Return the columns that are equal in all inputs, one of each input; of several equal columns
    of an input, one that progresses."""
    classes: list[set[str]] = []
    for condition in pool:
        pair = _columns(pairs, sides, condition)
        if pair is not None:
            met = [each for each in classes if each & pair]
            classes = [each for each in classes if not each & pair] + [pair.union(*met)]
    keys = []
    for each in classes:
        chosen = []
        for side in sides:
            own = [name for name in side.node.schema if name in each]
            own.sort(key=lambda name, node=side.node: name not in node.progress)  # type: ignore[misc]
            chosen += own[:1]
        if len(chosen) == len(sides):
            keys.append(tuple(chosen))
    return keys


def _columns(pairs: Pairs, sides: Sequence[JoinSide], condition: exp.Expr) -> set[str] | None:
    """Return the two columns of different inputs that a condition requires to be equal; None for
    other conditions."""
    names = _equal_columns(condition)
    if names is None or len(pairs.owners(condition)) != 2:
        return None
    schema = {name: dtype for side in sides for name, dtype in side.node.schema.items()}
    one, two = map(schema.get, names)
    if one is None or one != two or one.is_nested():
        return None
    return set(names)


def _is_implied(condition: exp.Expr, keys: Sequence[tuple[str, ...]]) -> bool:
    """Return True if a condition holds whenever the keys are equal."""
    equal = _equal_columns(condition)
    return equal is not None and any(set(equal) <= set(names) for names in keys)


def _equal_columns(condition: exp.Expr) -> tuple[str, str] | None:
    """Return the two columns that a condition requires to be equal; None for other conditions."""
    condition = condition.unnest()
    if not isinstance(condition, exp.EQ):
        return None
    one, two = condition.this.unnest(), condition.expression.unnest()
    columns = isinstance(one, exp.Column) and isinstance(two, exp.Column)
    return (one.name, two.name) if columns else None
