"""Builders of aggregate nodes check windows, groups that end by progress, and aggregates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lowwater.errors import OptionError, QueryError, Term
from lowwater.operators.aggregates import BUILT_IN, Aggregate, Call, UserAggregate, build
from lowwater.operators.flush import Flush, Immediate, Slow
from lowwater.operators.last_rows import LastRows
from lowwater.operators.sliding_aggregate import check as check_sliding
from lowwater.operators.sliding_aggregate import unsupported
from lowwater.operators.window_aggregate import END, IMMEDIATE
from lowwater.operators.window_state import START, Form, check_form
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.expressions import (
    Formula,
    compile_expression,
    compile_predicate,
    read_aggregate,
)
from lowwater.plan.main_time import main_time
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import EXPIRE, Updates


@dataclass(frozen=True, slots=True)
class Closing:
    """Options of windows that close: the pace of their answers, the form of their state, and the
    slots of a table that reduces rows first (None for no table)."""

    flush: Flush = IMMEDIATE
    keep: Form | None = None
    table: int | None = None

    @classmethod
    def of(cls, flush: Flush | None, keep: str | None, table: int | None) -> Closing:
        """Return the options as a user gives them, checked."""
        if flush is not None and not isinstance(flush, Flush):
            raise OptionError(
                FLUSH,
                " is ",
                Term(
                    "lw.slow(every=160, within_windows=2) or lw.lazy(within_windows=2), or None for"
                    " at once",
                    "SLOW EVERY 160 ROWS WITHIN 2 WINDOWS or LAZY WITHIN 2 WINDOWS",
                ),
                f", not {flush!r}",
            )
        if table is not None:
            if not isinstance(table, int) or isinstance(table, bool) or table < 1:
                raise OptionError(f"table= is a whole number of slots above zero, not {table!r}")
            if keep == "rows":
                raise OptionError("table= holds partials; leave keep='rows' out")
        return cls(flush or IMMEDIATE, check_form(keep), table)


FLUSH = Term("flush=", "FLUSH")


def slow_flush(
    flush: object, what: str, windows: str | None = None, about: Term = FLUSH
) -> Slow | None:
    """Return the pace of answers that leave slowly, checked; None if they leave at once.

    ``what`` names the answers. ``windows`` says why they cannot be bounded in windows; None if they
    can. ``about`` names the option in errors.
    """
    if flush is None or isinstance(flush, Immediate):
        return None
    example = Term("lw.slow(every=160, within='1 minute')", "SLOW EVERY 160 ROWS WITHIN 1 MINUTE")
    if not isinstance(flush, Slow):
        raise OptionError(about, f": {what} leave at once or slowly: write ", example)
    if windows is not None and flush.within is None:
        raise OptionError(about, f": {windows}; give the bound as a length of time: ", example)
    return flush


AT_ONCE = Closing()
"""The defaults: all answers leave at once, the form is chosen from the data, there is no table."""

GROUPS = Term("group_by(...)", "GROUP BY")
BY = Term("by=", "PARTITION BY")
SLIDE_ROWS = Term("slide_rows=1", "SLIDE 1 ROW")
_CLAUSE = "after the source, [RANGE 1 minute, SLIDE 1 minute, WA ts]"
A_WINDOW = Term("window(...) before it", f"a window {_CLAUSE}")
ONE = Term("window(...) before it", f"one {_CLAUSE}")

Aggregates = Mapping[str, Formula | UserAggregate]
"""Calls of aggregates, and aggregates of the user's own, by the names of their output columns."""


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that end when no row of their group comes for ``gap`` ticks."""

    gap: int
    flush: Slow | None = None


@dataclass(frozen=True, slots=True)
class OnChange:
    """A window of ``range`` ticks that moves with every row and answers when its answer changes."""

    range: int


ON_CHANGE = "on change"
"""Slide of a window that moves with every row."""


@dataclass(frozen=True, slots=True)
class Window:
    """A checked window: the attribute whose values it cuts, and its arithmetic."""

    attribute: str
    spec: WindowSpec | Session | OnChange | LastRows
    closing: Closing = AT_ONCE


def window(
    node: Node,
    range_: Duration | None,
    slide: Duration | None,
    rows: int | None,
    slide_rows: int | None,
    on: str | None,
    closing: Closing = AT_ONCE,
    by: Sequence[str] | None = None,
    expire: Duration | None = None,
) -> Window:
    """Return a checked window; a length of time (``range_``) or a number of rows must be given."""
    if by is not None or (range_ is not None and slide_rows is not None):
        return _last_rows(node, range_, slide, rows, slide_rows, on, closing, by or (), expire)
    if expire is not None:
        raise OptionError(EXPIRE, " forgets keys; name them by ", BY)
    if rows is not None:
        if range_ is not None or slide is not None or on is not None:
            raise OptionError("a window has a length of time or a number of rows=, not both")
        if not node.numbered:
            raise QueryError(
                "a window of rows counts the rows of one source, as they came in; it cannot be put"
                " over a union, a join or an aggregate, whose rows have no such order. The rows of"
                " a key can be counted there, in order of time: add ",
                BY,
            )
        step = rows if slide_rows is None else slide_rows
        closing.flush.bound(ROWS, 1)  # refuses a length of time
        return Window(SEQUENCE, WindowSpec(_whole(rows), _whole(step)), closing)
    if slide_rows is not None:
        raise OptionError("slide_rows= goes with rows=, or with a length of time")
    if range_ is None:
        raise OptionError("a window needs a length, window('1 minute'), or rows=100")
    attribute = on or main_time(node, "a window", "on={}, in a query's text WA")
    domain = node.progressing(attribute, "a window")
    on_change = isinstance(slide, str) and " ".join(slide.lower().split()) == ON_CHANGE
    if on_change and closing != AT_ONCE:
        raise OptionError(
            "flush=, keep= and table= are about windows that close; one that slides on change"
            " never does"
        )
    length = _ticks(range_, domain, "a window")
    if on_change:
        return Window(attribute, OnChange(length))
    step = length
    if slide is not None:
        try:
            nanoseconds(slide, "a window's slide")
        except OptionError as error:
            raise OptionError(*error.parts, f"; or {ON_CHANGE!r}") from None
        step = _ticks(slide, domain, "a window's slide")
    return Window(attribute, WindowSpec(length, step), closing)


def _last_rows(
    node: Node,
    range_: Duration | None,
    slide: Duration | None,
    rows: int | None,
    slide_rows: int | None,
    on: str | None,
    closing: Closing,
    by: Sequence[str],
    expire: Duration | None,
) -> Window:
    """Return a checked window that slides by rows, which are counted in order of time."""
    if (rows is None) == (range_ is None):
        raise OptionError("a window has a length of time or a number of rows=, one of the two")
    if slide is not None or (range_ is not None and slide_rows is None):
        raise OptionError(
            BY,
            " names the keys whose rows are counted, so the window slides by rows: ",
            SLIDE_ROWS,
            ". Windows of time have ",
            GROUPS,
        )
    if closing != AT_ONCE:
        raise OptionError(
            "flush=, keep= and table= are about windows of time that close; one that slides by"
            " rows never does"
        )
    attribute = on or main_time(node, "a window", "on={}, in a query's text WA")
    domain = node.progressing(attribute, "a window")
    keys = tuple(dict.fromkeys(by))
    for name in keys:
        node.need(name, "key column")
    if expire is not None and not keys:
        raise OptionError(EXPIRE, " forgets keys; name them by ", BY)
    length = 0 if range_ is None else _ticks(range_, domain, "a window")
    forget = None if expire is None else _ticks(expire, domain, EXPIRE)
    if forget is not None and forget < length:
        raise OptionError(EXPIRE, " is at least the length of the window, whose rows are needed")
    number = None if rows is None else _whole(rows)
    assert rows is not None or slide_rows is not None
    step = _whole(slide_rows if slide_rows is not None else rows)
    return Window(attribute, LastRows(step, number, length, keys, forget))


def _ticks(given: Duration, domain: TimeDomain, what: str | Term) -> int:
    """Return a length above zero in ticks."""
    if nanoseconds(given, what) <= 0:
        raise OptionError(what, f" must be longer than zero, not {given!r}")
    return domain.ticks(given, what)


def session(node: Node, gap: Duration, on: str | None, flush: Flush | None = None) -> Window:
    """Return windows that end when no row of a group comes for ``gap``."""
    attribute = on or main_time(node, "a session", "on={}, in a query's text WA")
    domain = node.progressing(attribute, "a session")
    slowly = slow_flush(flush, "sessions", "sessions have no length, so there is none to count in")
    if slowly is not None:
        slowly.bound(domain, 0)  # refuses a length finer than the time column
    return Window(attribute, Session(_ticks(gap, domain, "a session's gap"), slowly))


def _whole(rows: object) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows <= 0:
        raise OptionError(f"a window of rows needs a whole number above zero, not {rows!r}")
    return rows


def window_aggregated(
    node: Node,
    clause: Window,
    groups: Sequence[str],
    aggregates: Aggregates,
    origin: str,
) -> Node:
    """Return the node of aggregates per window and group."""
    by, arrival = node.updates, None
    if by is not None:
        _check_updates(node, by, clause, groups)
        arrival = update_builders.arrival(node)
        node = update_builders.without_queue(node)
        update_builders.check_deletion(by, "window")
    time = clause.attribute
    if isinstance(clause.spec, LastRows):
        _check_keys(clause.spec, groups)
        groups = clause.spec.keys
    found = _measures(node, groups, aggregates, time, isinstance(clause.spec, OnChange))
    domain = ROWS if time == SEQUENCE else node.progress[time].domain
    taken = {START, END} & {*groups, *aggregates}
    if taken:
        raise QueryError(
            f"{taken.pop()!r} is a column of every window aggregate; choose another name"
        )
    schema = {START: domain.dtype, END: domain.dtype}
    schema |= {name: node.need(name) for name in groups} | found.types
    progress = _edges(domain, clause.spec)
    if isinstance(clause.spec, Session):
        return nodes.SessionNode(
            (node,),
            schema,
            progress,
            START,
            time,
            clause.spec.gap,
            tuple(groups),
            found.built,
            found.texts,
            clause.spec.flush,
            origin=origin,
        )
    if isinstance(clause.spec, LastRows):
        return nodes.LastRowsNode(
            (node,),
            schema,
            progress,
            END,
            time,
            clause.spec,
            found.built,
            _reads(node, found.built),
            found.texts,
            origin=origin,
        )
    if isinstance(clause.spec, OnChange):
        return nodes.SlidingNode(
            (node,),
            schema,
            progress,
            END,
            time,
            clause.spec.range,
            tuple(groups),
            tuple(each for each in found.calls if each is not None),
            found.texts,
            origin=origin,
        )
    if clause.closing.table is not None and not groups:
        raise OptionError("table= spreads groups over slots; say group_by(...) before agg(...)")
    return nodes.WindowAggregateNode(
        (node,),
        schema,
        progress,
        START,
        time,
        clause.spec,
        tuple(groups),
        found.built,
        found.texts,
        clause.closing.flush,
        clause.closing.keep,
        clause.closing.table,
        calls=found.calls,
        by=by,
        arrival=arrival,
        origin=origin,
    )


def _check_keys(window: LastRows, groups: Sequence[str]) -> None:
    """Refuse groups that are not the keys of the window."""
    if groups and set(groups) != set(window.keys):
        keys = ", ".join(window.keys) or "none"
        raise QueryError(
            f"a window that slides by rows counts the rows of each key ({keys}), and its groups"
            f" are these keys, not ({', '.join(groups)}). Name the groups by ",
            BY,
        )


def _reads(node: Node, aggregates: Sequence[Aggregate]) -> tuple[str, ...]:
    """Return the columns that aggregates read, in the order of the stream; they must be comparable,
    as rows of one time are counted in their order."""
    read = {name for each in aggregates for part in each.lift for name in part.meta.root_names()}
    for each in aggregates:
        read |= set(each.own.columns) if each.own is not None else set()
    found = tuple(name for name in node.schema if name in read)
    for name in found:
        if node.schema[name].is_nested() or node.schema[name] == pl.Object:
            raise QueryError(
                f"a window that slides by rows counts rows of one time in the order of what is"
                f" aggregated, and values of {name!r} ({node.schema[name]}) have no order"
            )
    return found


def _check_updates(node: Node, by: Updates, clause: Window, groups: Sequence[str]) -> None:
    """Refuse windows that have no meaning over an update stream."""
    if not isinstance(clause.spec, WindowSpec) or clause.attribute == SEQUENCE:
        raise QueryError(
            "a window of an update stream has a length of time and slides by a length of time;"
            " sessions, windows of rows and windows that slide on change or by rows do not replace"
            " each other"
        )
    if clause.closing != AT_ONCE:
        raise OptionError(
            "flush=, keep= and table= are options of windows that are all answered; of an update"
            " stream only the newest window of each key is answered"
        )
    missing = [name for name in by.key if name not in groups]
    if missing:
        add = f": add {', '.join(missing)} to group_by({', '.join(groups)})"
        clause_ = f", ({', '.join(by.key)}): GROUP BY {', '.join([*groups, *missing])}"
        raise QueryError(
            "windows of an update stream are grouped by its key at least",
            Term(add, clause_),
            about=GROUPS,
        )
    if by.complete_within is not None:
        raise OptionError(
            "complete_within= is an option of rows that replace each other; of windows only the"
            " newest of each key is answered"
        )
    for name in (START, END):
        if name in node.schema:
            raise QueryError(f"every window has a column {name!r}; give yours another name")


def _edges(
    domain: TimeDomain, spec: WindowSpec | Session | OnChange | LastRows
) -> dict[str, Progressing]:
    """Return the progress of window starts and ends, which are a range apart, in sessions at least
    a gap. The first of a number of rows may be of any time."""
    if isinstance(spec, LastRows) and spec.rows is not None:
        return {END: Progressing(domain)}
    if isinstance(spec, Session):
        return {START: Progressing(domain), END: Progressing(domain, behind={START: -spec.gap})}
    return {
        START: Progressing(domain, behind={END: spec.range}),
        END: Progressing(domain, behind={START: -spec.range}),
    }


def group_aggregated(
    node: Node,
    groups: Sequence[str],
    aggregates: Aggregates,
    origin: str,
) -> Node:
    """Return the node of aggregates per group; one group column must progress."""
    update_builders.refuse(
        [node],
        "an aggregate without a window",
        "put ",
        ONE,
        ", or select the newest row of each key without an aggregate",
    )
    for name in groups:
        node.need(name)
    known = {name: each.domain for name, each in node.progress.items() if not each.nullable}
    usable = {name: known[name] for name in groups if name in known}
    never = "this aggregate could never answer"
    if not groups:
        also = ", or group by a progressing attribute"
        raise QueryError(f"{never}: it has no window. Put ", ONE, also)
    if not usable:
        raise QueryError(
            f"{never}: no group is ever complete, because none of ({', '.join(groups)}) is a"
            f" progressing attribute (here: {', '.join(known) or 'none'}). Put ",
            A_WINDOW,
            ", or group by a progressing attribute too",
        )
    found = _measures(node, groups, aggregates, next(iter(usable)), on_change=False)
    schema = {name: node.schema[name] for name in groups} | found.types
    progress = {
        name: Progressing(domain, behind=node.progress[name].behind)
        for name, domain in usable.items()
    }
    return nodes.GroupAggregateNode(
        (node,),
        schema,
        progress,
        next(iter(usable)),
        tuple(groups),
        usable,
        found.built,
        found.texts,
        calls=found.calls,
        origin=origin,
    )


# ---- aggregates --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Measures:
    """The aggregates of a node, in order."""

    built: tuple[Aggregate, ...]
    calls: tuple[Call | None, ...]
    """The call each was built from; None for one of the user's own."""
    types: dict[str, pl.DataType]
    texts: tuple[str, ...]


def _measures(
    node: Node, groups: Sequence[str], aggregates: Aggregates, time: str, on_change: bool
) -> _Measures:
    """Return the checked aggregates over rows of a node; ``first`` and ``last`` are by ``time``."""
    if not aggregates:
        raise OptionError('agg needs at least one aggregate, for example agg(n="count(*)")')
    for name in groups:
        node.need(name, "group column")
    clash = set(groups) & set(aggregates)
    if clash:
        raise QueryError(f"{clash.pop()!r} is both a group column and an aggregate")
    built: list[Aggregate] = []
    calls: list[Call | None] = []
    types: dict[str, pl.DataType] = {}
    texts: list[str] = []
    for name, each in aggregates.items():
        if isinstance(each, UserAggregate):
            if on_change:
                raise unsupported("aggregates of your own")
            for column in each.columns:
                node.need(column)
            built.append(each.build(name, node.schema))
            types[name] = pl.Schema({name: each.returns})[name]
            calls.append(None)
            texts.append(name)
            continue
        with each.located():
            call, types[name] = _call(name, each, node, time)
            if on_change:
                check_sliding(call)
            built.append(build(call))
        calls.append(call)
        texts.append(f"{each.shown} AS {name}")
    return _Measures(tuple(built), tuple(calls), types, tuple(texts))


def _call(name: str, formula: Formula, node: Node, time: str) -> tuple[Call, pl.DataType]:
    """Return a checked call of a built-in aggregate, and the type it gives."""
    parts = read_aggregate(formula)
    function, argument, given = parts.function, None, None
    takes = BUILT_IN[function].takes
    if parts.condition is not None:
        compile_predicate(parts.condition, node.schema)
    if parts.argument is not None:
        compiled = compile_expression(parts.argument, node.schema)
        argument, given = compiled.polars, compiled.dtype
        compares = parts.distinct or takes == "comparable"
        if compares and (given.is_nested() or given == pl.Object):
            raise QueryError(f"{formula.shown}: {given} values cannot be compared")
        if takes == "numbers" and not (given.is_numeric() or given == pl.Boolean):
            raise QueryError(f"{formula.shown}: {function} needs numbers, and this is {given}")
    dtype = BUILT_IN[function].gives(given if given is not None else pl.Int64())
    if function == "sum" and argument is not None and dtype == pl.Int64:
        argument = argument.cast(pl.Int64)
    ticks = (
        pl.col(SEQUENCE) if time == SEQUENCE else node.progress[time].domain.to_ticks(pl.col(time))
    )
    call = Call(
        name, function, argument, parts.distinct, dtype.is_float(), ticks, parts.share, given
    )
    return call, dtype
