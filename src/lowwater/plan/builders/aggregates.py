"""Aggregate nodes, checked: windows, groups that end by progress, and what is aggregated."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.operators.aggregates import Aggregate, Call, UserAggregate, build
from lowwater.operators.flush import Flush
from lowwater.operators.keeping import Form, check_form
from lowwater.operators.sliding_aggregate import check as check_sliding
from lowwater.operators.sliding_aggregate import unable
from lowwater.operators.window_aggregate import END, IMMEDIATE
from lowwater.operators.window_state import START
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.expressions import compile_expression, take_apart
from lowwater.plan.main_time import main_time
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.stream.window import WindowSpec
from lowwater.updates.options import Updates


@dataclass(frozen=True, slots=True)
class Closing:
    """How rows wait for their window to close, and how its answers then leave."""

    flush: Flush = IMMEDIATE
    keep: Form | None = None
    table: int | None = None

    @classmethod
    def of(cls, flush: Flush | None, keep: str | None, table: int | None) -> Closing:
        """Checked options."""
        if flush is not None and not isinstance(flush, Flush):
            raise OptionError(
                "flush= is lw.slow(every=160, within_windows=2) or lw.lazy(within_windows=2), or"
                f" None for at once, not {flush!r}"
            )
        if table is not None:
            if not isinstance(table, int) or isinstance(table, bool) or table < 1:
                raise OptionError(f"table= is a whole number of slots above zero, not {table!r}")
            if keep == "rows":
                raise OptionError("table= holds partials; leave keep='rows' out")
        return cls(flush or IMMEDIATE, check_form(keep), table)


AT_ONCE = Closing()


@dataclass(frozen=True, slots=True)
class Session:
    """Windows that last until rows of their group stay away for ``gap`` ticks."""

    gap: int


@dataclass(frozen=True, slots=True)
class OnChange:
    """Windows of ``range`` ticks, one at every instant; answered where the answer changes."""

    range: int


ON_CHANGE = "on change"
"""The slide of a window that moves with every row."""


@dataclass(frozen=True, slots=True)
class Window:
    """A window clause, checked: the attribute it goes by and its arithmetic."""

    attribute: str
    spec: WindowSpec | Session | OnChange
    closing: Closing = AT_ONCE


def window(
    node: Node,
    range_: Duration | None,
    slide: Duration | None,
    rows: int | None,
    slide_rows: int | None,
    on: str | None,
    closing: Closing = AT_ONCE,
) -> Window:
    """A window clause."""
    if rows is not None:
        if range_ is not None or slide is not None or on is not None:
            raise OptionError("a window has a length of time or a number of rows=, not both")
        if not node.numbered:
            raise QueryError(
                "a window of rows counts the rows of one source, as they came in; it cannot be put"
                " over a union, a join or an aggregate, whose rows have no such order"
            )
        step = rows if slide_rows is None else slide_rows
        return Window(SEQUENCE, WindowSpec(_whole(rows), _whole(step)), closing)
    if slide_rows is not None:
        raise OptionError("slide_rows= goes with rows=")
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
    slide = None if on_change else slide
    for name, given in (("a window", range_), ("a window's slide", slide)):
        if given is not None and _length(given, name) <= 0:
            raise OptionError(f"{name} must be longer than zero, not {given!r}")
    length = domain.ticks(range_, "a window")
    if on_change:
        return Window(attribute, OnChange(length))
    step = length if slide is None else domain.ticks(slide, "a window's slide")
    return Window(attribute, WindowSpec(length, step), closing)


def _length(given: Duration, name: str) -> int:
    try:
        return nanoseconds(given, name)
    except OptionError as error:
        if not name.endswith("slide"):
            raise
        raise OptionError(f"{error}; or {ON_CHANGE!r}") from None


def session(node: Node, gap: Duration, on: str | None) -> Window:
    """Windows that end when rows of a group stay away for ``gap``."""
    attribute = on or main_time(node, "a session", "on={}, in a query's text WA")
    domain = node.progressing(attribute, "a session")
    if nanoseconds(gap, "a session's gap") <= 0:
        raise OptionError(f"a session's gap must be longer than zero, not {gap!r}")
    return Window(attribute, Session(domain.ticks(gap, "a session's gap")))


def check(node: Node, name: str, wish: str, over: Window | None, time: str) -> None:
    """Whether an aggregate can be computed, over a window or by groups that end with a time."""
    if over is not None and isinstance(over.spec, OnChange):
        _calls(node, (), {name: wish}, time)
    else:
        _aggregates(node, (), {name: wish}, time)


def _whole(rows: object) -> int:
    if not isinstance(rows, int) or isinstance(rows, bool) or rows <= 0:
        raise OptionError(f"a window of rows needs a whole number above zero, not {rows!r}")
    return rows


def window_aggregated(
    node: Node,
    clause: Window,
    groups: Sequence[str],
    aggregates: Mapping[str, str | UserAggregate],
    origin: str,
) -> Node:
    """Aggregates per window and group."""
    by, arrival = node.updates, None
    if by is not None:
        _check_updates(node, by, clause, groups)
        arrival = update_builders.arrival(node)
        node = update_builders.without_queue(node)
        update_builders.check_deletion(node, by, "window")
    time = clause.attribute
    calls: tuple[Call, ...] = ()
    built: tuple[Aggregate, ...] = ()
    if isinstance(clause.spec, OnChange):
        calls, types, texts = _calls(node, groups, aggregates, time)
    else:
        built, types, texts = _aggregates(node, groups, aggregates, time)
    domain = ROWS if time == SEQUENCE else node.progress[time].domain
    taken = {START, END} & {*groups, *aggregates}
    if taken:
        raise QueryError(
            f"{taken.pop()!r} is a column of every window aggregate; choose another name"
        )
    schema = {START: domain.dtype, END: domain.dtype}
    schema |= {name: node.need(name) for name in groups} | types
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
            built,
            texts,
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
            calls,
            texts,
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
        built,
        texts,
        clause.closing.flush,
        clause.closing.keep,
        clause.closing.table,
        by=by,
        arrival=arrival,
        origin=origin,
    )


def _check_updates(node: Node, by: Updates, clause: Window, groups: Sequence[str]) -> None:
    """What windows of an update stream may be."""
    if not isinstance(clause.spec, WindowSpec) or clause.attribute == SEQUENCE:
        raise QueryError(
            "windows of an update stream are of a length of time and slide by one; sessions,"
            " windows of rows and those that slide on change have no newest that could stand for"
            " the others"
        )
    if clause.closing != AT_ONCE:
        raise OptionError(
            "flush=, keep= and table= are about windows that all close; of an update stream only"
            " the newest of each key are worked on"
        )
    missing = [name for name in by.key if name not in groups]
    if missing:
        raise QueryError(
            f"windows of an update stream are grouped by its key at least: add"
            f" {', '.join(missing)} to group_by({', '.join(groups)})"
        )
    if by.complete_within is not None:
        raise OptionError(
            "complete_within= is about rows that replace each other; of windows only the newest of"
            " each key is worked on"
        )
    for name in (START, END):
        if name in node.schema:
            raise QueryError(f"{name!r} is a column of windows; give yours another name")


def _edges(domain: TimeDomain, spec: WindowSpec | Session | OnChange) -> dict[str, Progressing]:
    """The edges of windows progress; how far apart they are is known, of a session the least."""
    if isinstance(spec, Session):
        return {START: Progressing(domain), END: Progressing(domain, behind={START: -spec.gap})}
    return {
        START: Progressing(domain, behind={END: spec.range}),
        END: Progressing(domain, behind={START: -spec.range}),
    }


def group_aggregated(
    node: Node,
    groups: Sequence[str],
    aggregates: Mapping[str, str | UserAggregate],
    origin: str,
) -> Node:
    """Aggregates per group, where one group column progresses."""
    update_builders.refuse(
        [node],
        "an aggregate without a window",
        "put window(...) before it, or select what is newest of each key as it is",
    )
    for name in groups:
        node.need(name)
    keys = {name: node.progress[name].domain for name in groups if name in node.progress}
    usable = {name: d for name, d in keys.items() if not node.progress[name].nullable}
    if not usable:
        known = ", ".join(node.progress) or "none"
        raise QueryError(
            "this aggregate could never answer: no group is ever complete, because none of"
            f" ({', '.join(groups)}) is a progressing attribute (here: {known})."
            " Put window(...) before it, or group by a progressing attribute too"
        )
    built, types, texts = _aggregates(node, groups, aggregates, next(iter(usable)))
    schema = {name: node.schema[name] for name in groups} | types
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
        built,
        texts,
        origin=origin,
    )


def _aggregates(
    node: Node, groups: Sequence[str], aggregates: Mapping[str, str | UserAggregate], time: str
) -> tuple[tuple[Aggregate, ...], dict[str, pl.DataType], tuple[str, ...]]:
    _check_names(node, groups, aggregates)
    built, types, texts = [], {}, []
    for name, wish in aggregates.items():
        if isinstance(wish, UserAggregate):
            for column in wish.columns:
                node.need(column)
            aggregate = wish.build(name, node.schema)
            types[name] = pl.Schema({name: wish.returns})[name]
            texts.append(name)
        else:
            call, types[name] = _call(name, wish, node, time)
            aggregate = build(call)
            texts.append(f"{wish} AS {name}")
        built.append(aggregate)
    return tuple(built), types, tuple(texts)


def _calls(
    node: Node, groups: Sequence[str], aggregates: Mapping[str, str | UserAggregate], time: str
) -> tuple[tuple[Call, ...], dict[str, pl.DataType], tuple[str, ...]]:
    """The aggregates of a window that slides on change."""
    _check_names(node, groups, aggregates)
    calls, types = [], {}
    for name, wish in aggregates.items():
        if isinstance(wish, UserAggregate):
            raise unable("aggregates of your own")
        call, types[name] = _call(name, wish, node, time)
        check_sliding(call)
        build(call)  # what cannot be computed at all is refused
        calls.append(call)
    return tuple(calls), types, tuple(f"{wish} AS {name}" for name, wish in aggregates.items())


def _check_names(
    node: Node, groups: Sequence[str], aggregates: Mapping[str, str | UserAggregate]
) -> None:
    if not aggregates:
        raise OptionError('agg needs at least one aggregate, for example agg(n="count(*)")')
    for name in groups:
        node.need(name, "group column")
    clash = set(groups) & set(aggregates)
    if clash:
        raise QueryError(f"{clash.pop()!r} is both a group column and an aggregate")


def _call(name: str, text: str, node: Node, time: str) -> tuple[Call, pl.DataType]:
    """An aggregate as it was asked for, and the type it gives."""
    parts = take_apart(text)
    argument, given = None, None
    dtype: pl.DataType = pl.Int64()
    if parts.argument is not None:
        compiled = compile_expression(parts.argument, node.schema)
        argument, dtype = compiled.polars, compiled.dtype
        given = dtype
        compared = parts.distinct or parts.function in ("min", "max", "first", "last")
        if compared and (dtype.is_nested() or dtype == pl.Object):
            raise QueryError(f"{text}: {dtype} values cannot be compared")
        numeric = dtype.is_numeric() or dtype == pl.Boolean
        if parts.function in ("sum", "avg", "stddev", "approx_quantile") and not numeric:
            raise QueryError(f"{text}: {parts.function} needs numbers, and this is {dtype}")
    if parts.function == "collect":
        dtype = pl.List(dtype)
    elif parts.function == "approx_quantile":
        dtype = pl.Float64()
    elif parts.function == "sum" and argument is not None and not dtype.is_float():
        if dtype.is_integer() or dtype == pl.Boolean:
            argument, dtype = argument.cast(pl.Int64), pl.Int64()
        elif isinstance(dtype, pl.Decimal):
            dtype = pl.Decimal(38, dtype.scale)
    elif parts.function in ("avg", "stddev"):
        dtype = pl.Float64()
    elif parts.function in ("count", "approx_count_distinct"):
        dtype = pl.Int64()
    ticks = (
        pl.col(SEQUENCE) if time == SEQUENCE else node.progress[time].domain.to_ticks(pl.col(time))
    )
    call = Call(
        name, parts.function, argument, parts.distinct, dtype.is_float(), ticks, parts.share, given
    )
    return call, dtype
