"""This module reads window clauses and turns them into the windows of aggregates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import count

from sqlglot import exp

from lowwater.errors import QueryError
from lowwater.operators.flush import Flush, lazy, slow
from lowwater.operators.window_aggregate import IMMEDIATE
from lowwater.plan.builders import aggregates as aggregate_builders
from lowwater.plan.builders import rows as row_builders
from lowwater.plan.expressions import Formula, column_tree
from lowwater.plan.sql import clauses
from lowwater.plan.sql.scope import Scope
from lowwater.plan.sql.select_list import Item
from lowwater.plan.sql.values import (
    Span,
    Values,
    duration,
    has_unit_of_time,
    interval,
    span,
    whole,
)
from lowwater.plan.text_places import at, wrong


@dataclass(frozen=True)
class Clause:
    """The parts of a window clause; those that are left out are None."""

    tree: exp.Expr
    range: Span | None = None
    slide: Span | None = None
    session: Span | None = None
    expire: Span | None = None
    attribute: exp.Expr | None = None
    keys: tuple[exp.Expr, ...] | None = None
    on: str | None = None
    """The window attribute as a column of the rows, if it is none that the query names."""
    closing: aggregate_builders.Closing = aggregate_builders.AT_ONCE


def read_clause(tree: exp.Expr, values: Values, text: str) -> Clause:
    """Return the parts of a window clause; refuse parts that do not go together."""
    parts = {
        name: _span(tree.args[name], values, text, name.upper())
        for name in ("range", "slide", "session", "expire")
        if tree.args.get(name) is not None
    }
    keys = tree.args.get("partition_by")
    if "session" in parts and (len(parts) > 1 or keys is not None):
        raise wrong(
            "a SESSION window has neither RANGE nor SLIDE nor PARTITION BY: it ends when rows stay"
            " away",
            text,
            tree,
        )
    if "session" not in parts and "range" not in parts:
        raise wrong("a window clause needs RANGE, for example [RANGE 1 minute, WA ts]", text, tree)
    closing = _closing(tree, values, text)
    if "session" in parts and replace(closing, flush=IMMEDIATE) != aggregate_builders.AT_ONCE:
        raise wrong("KEEP and TABLE belong to windows with a RANGE", text, tree)
    if "slide" in parts and parts["slide"].on_change:
        _check_on_change(tree, parts["range"], text)
    by = tuple(keys.expressions) if keys is not None else None
    return Clause(tree, attribute=tree.args.get("wa"), keys=by, on=None, closing=closing, **parts)


def _span(tree: exp.Expr, values: Values, text: str, what: str) -> Span:
    if isinstance(tree, clauses.SlideOnChange):
        return Span(on_change=True)
    return span(tree, values, text, what)


def _check_on_change(tree: exp.Expr, range_: Span, text: str) -> None:
    """Refuse parts that do not go with SLIDE ON CHANGE."""
    if range_.rows is not None:
        raise wrong(
            "SLIDE ON CHANGE goes with a RANGE of time, not of rows", text, tree.args["slide"]
        )
    _refuse_closing(tree, "one with SLIDE ON CHANGE never does", text)


def _refuse_closing(tree: exp.Expr, why: str, text: str) -> None:
    """Refuse the parts that are about windows that close."""
    for part in ("flush", "keep", "table"):
        if tree.args.get(part) is not None:
            told = f"{part.upper()} is about windows that close; {why}"
            raise wrong(told, text, tree.args[part], tree)


def _closing(tree: exp.Expr, values: Values, text: str) -> aggregate_builders.Closing:
    """Return the options FLUSH, KEEP and TABLE."""
    flush, keep, table = (tree.args.get(name) for name in ("flush", "keep", "table"))
    with at(text, keep or tree):
        return aggregate_builders.Closing.of(
            read_flush(flush, values, text) if flush is not None else None,
            keep.name.lower() if keep is not None else None,
            whole(table, values, text, "TABLE", "SLOTS") if table is not None else None,
        )


def read_flush(tree: exp.Expr, values: Values, text: str) -> Flush:
    """Return the policy of ``SLOW EVERY 160 ROWS WITHIN 2 WINDOWS``, with a bound in windows or a
    length of time."""
    every, within = tree.args.get("every"), tree.args.get("within")
    windows, length = None, None
    if within is not None and (interval(within) is not None or has_unit_of_time(within)):
        length = duration(within, values, text, "WITHIN")
    elif within is not None:
        windows = whole(within, values, text, "WITHIN", "WINDOWS")
    kind = tree.this.name.upper()
    if kind == "LAZY" and every is None:
        return lazy(windows, length)
    if kind == "SLOW":
        rows = whole(every, values, text, "EVERY", "ROWS") if every is not None else 160
        return slow(rows, windows, length)
    raise wrong(
        "FLUSH is SLOW EVERY 160 ROWS WITHIN 2 WINDOWS or LAZY WITHIN 2 WINDOWS; the bound may"
        " also be a length of time, WITHIN 1 MINUTE",
        text,
        tree.this,
    )


def item_clause(items: list[Item], values: Values, text: str) -> Clause | None:
    """Return the window that stands after select items, and remove it from them; None without
    one."""
    found = None
    for number, item in enumerate(items):
        for windowed in item.tree.find_all(clauses.WithWindow):
            clause = windowed.args["clause"]
            if found is not None and found.tree != clause:
                raise wrong(
                    "a query has one window; aggregates over different windows are queries of"
                    " their own",
                    text,
                    clause,
                )
            found = read_clause(clause, values, text)
        plain = item.tree.transform(_without_window)
        items[number] = Item(plain, item.name)
    return found


def window(scope: Scope, clause: Clause) -> aggregate_builders.Window:
    """Return the window of an aggregate over the rows of a scope."""
    on = clause.on
    if clause.attribute is not None:
        resolved = scope.resolved(clause.attribute)
        if not isinstance(resolved, exp.Column):
            raise wrong("WA names a column", scope.text, clause.attribute)
        on = resolved.name
    if clause.session is not None:
        flush = clause.closing.flush
        return aggregate_builders.session(scope.node, _duration(clause.session), on, flush)
    assert clause.range is not None
    rows, slide = clause.range.rows, clause.slide
    if clause.keys is not None or (rows is None and slide is not None and slide.rows is not None):
        return _last_rows(scope, clause, on)
    if clause.expire is not None:
        raise wrong("EXPIRE forgets keys; name them by PARTITION BY", scope.text, clause.tree)
    if rows is not None:
        if on is not None and on not in scope.node.progress:
            raise QueryError("a window of rows counts rows; leave WA out")
        if slide is not None and slide.rows is None:
            raise QueryError("RANGE counts rows, so SLIDE counts rows too: SLIDE 10 ROWS")
        step = slide.rows if slide is not None else None
        return aggregate_builders.window(scope.node, None, None, rows, step, None, clause.closing)
    step_time = _duration(slide) if slide is not None else None
    return aggregate_builders.window(
        scope.node, _duration(clause.range), step_time, None, None, on, clause.closing
    )


def over_results(scope: Scope, clause: Clause, origin: str) -> Clause:
    """Return the trailing window of a join as that of an aggregate over its results (Ordered §1):
    it slides on change, over the time of a result, the greatest of its rows' times."""
    stamps = scope.node.stamps
    on = stamps[0]
    if len(stamps) > 1:
        numbers = (f"result_time{number or ''}" for number in count())
        on = next(name for name in numbers if name not in scope.node.schema)
        first, *others = map(column_tree, stamps)
        time = Formula.of(exp.Greatest(this=first, expressions=others), scope.text, clause.tree)
        with at(scope.text, clause.tree):
            scope.node = row_builders.projected(
                scope.node, (), {on: time}, keep=True, origin=origin
            )
    return replace(clause, on=on, slide=Span(on_change=True))


def _last_rows(scope: Scope, clause: Clause, on: str | None) -> aggregate_builders.Window:
    """Return the window of the rows of each key."""
    keys = None if clause.keys is None else list(keys_of(scope, clause))
    if clause.expire is not None and clause.expire.rows is not None:
        raise wrong("EXPIRE is a length of time", scope.text, clause.tree.args["expire"])
    _refuse_closing(clause.tree, "those that slide by rows never do", scope.text)
    assert clause.range is not None
    slide, rows = clause.slide, clause.range.rows
    if slide is not None and slide.rows is None:
        raise QueryError(
            "a window with PARTITION BY counts the rows of each key, so it slides by rows: SLIDE 1"
            " ROW. Windows of time have GROUP BY"
        )
    return aggregate_builders.window(
        scope.node,
        _duration(clause.range) if rows is None else None,
        None,
        rows,
        slide.rows if slide is not None else None,
        on,
        clause.closing,
        keys,
        _duration(clause.expire) if clause.expire is not None else None,
    )


def keys_of(scope: Scope, clause: Clause) -> dict[str, exp.Expr]:
    """Return the columns that PARTITION BY names, each with its resolved tree."""
    found: dict[str, exp.Expr] = {}
    for tree in clause.keys or ():
        resolved = scope.resolved(tree)
        if not isinstance(resolved, exp.Column):
            raise wrong("PARTITION BY names columns", scope.text, tree)
        found[resolved.name] = resolved
    return found


def _without_window(node: exp.Expr) -> exp.Expr:
    inner: exp.Expr = node.this if isinstance(node, clauses.WithWindow) else node
    return inner


def _duration(length: Span) -> str:
    if length.on_change:
        return aggregate_builders.ON_CHANGE
    return length.duration
