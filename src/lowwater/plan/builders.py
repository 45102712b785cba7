"""Checked construction of logical nodes: every rule a query must keep is here, with its message."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.joins.reach import Band, Reach, SameBucket
from lowwater.joins.shape import How
from lowwater.operators.aggregates import Aggregate, Call, UserAggregate, build
from lowwater.operators.rowwise import Derivation
from lowwater.operators.window_aggregate import END, START
from lowwater.plan import nodes
from lowwater.plan.expressions import (
    Expression,
    compile_expression,
    compile_predicate,
    derivation,
    plain_column,
    take_apart,
)
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.stream.window import WindowSpec


@dataclass(frozen=True, slots=True)
class Same:
    """Both times of a join lie in the same stretch of this length."""

    width: Duration


def same(width: Duration) -> Same:
    """Join rows whose times fall into the same stretch: a tumbling-window join."""
    return Same(width)


@dataclass(frozen=True, slots=True)
class Window:
    """A window clause, checked: the attribute it goes by and its arithmetic."""

    attribute: str
    spec: WindowSpec


def stamped(node: Node, latent: str | None) -> Node:
    """A node with a time: latent rows get stamped here."""
    return node if latent is None or node.time is not None else nodes.StampNode.of(node, latent)


def filtered(node: Node, predicate: str, origin: str) -> Node:
    """Rows that satisfy a condition."""
    compiled = compile_predicate(predicate, node.schema)
    return nodes.FilterNode((node,), node.schema, node.progress, node.time, compiled, origin=origin)


def projected(
    node: Node, columns: Sequence[str], computed: Mapping[str, str], keep: bool, origin: str
) -> Node:
    """Columns computed from columns; ``keep`` keeps the others too."""
    texts = {name: _quoted(name) for name in (node.schema if keep else ())}
    for name in columns:
        node.need(name)
        texts[name] = _quoted(name)
    texts |= computed
    if not texts:
        raise OptionError("select needs at least one column")
    items = tuple((name, _item(name, text, node)) for name, text in texts.items())
    copied = {source: name for name, item in items if (source := plain_column(item.text))}
    domains = {name: attribute.domain for name, attribute in node.progress.items()}
    derived = {
        name: found for name, item in items if (found := derivation(item.text, domains)) is not None
    }
    derived = {
        name: _with_nulls(node, found)
        for name, found in derived.items()
        if _one_domain(found, domains)
    }
    progress = {
        name: Progressing(domains[found.sources[0][0]], *_nullable(node, name, found, derived))
        for name, found in derived.items()
    }
    time = _main_time(node, progress, derived)
    schema = {name: item.dtype for name, item in items}
    shown = tuple((name, _unquoted(name, item)) for name, item in items)
    return nodes.ProjectNode((node,), schema, progress, time, shown, derived, copied, origin=origin)


def _main_time(
    node: Node, progress: Mapping[str, Progressing], derived: Mapping[str, Derivation]
) -> str | None:
    """The old main time, or what was computed from it, or else whatever progresses."""
    usable = [name for name, attribute in progress.items() if not attribute.nullable]
    if node.time in usable:
        return node.time
    heirs = [name for name in usable if node.time in dict(derived[name].sources)]
    return next(iter([*heirs, *usable]), None)


def _item(name: str, text: str, node: Node) -> Expression:
    if name.startswith("__"):
        raise OptionError(f"column names that start with two underscores are reserved: {name!r}")
    return compile_expression(text, node.schema)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _unquoted(name: str, item: Expression) -> Expression:
    return Expression(name, item.polars, item.dtype) if item.text == _quoted(name) else item


def _one_domain(found: Derivation, domains: Mapping[str, TimeDomain]) -> bool:
    return len({domains[source] for source, _ in found.sources}) == 1


def _with_nulls(node: Node, found: Derivation) -> Derivation:
    """Where one of several times may be null, the greatest may be any one of them."""
    if any(node.progress[source].nullable for source, _ in found.sources):
        return Derivation(found.sources, "least")
    return found


def _nullable(
    node: Node, name: str, found: Derivation, derived: Mapping[str, Derivation]
) -> tuple[bool, frozenset[str]]:
    """Whether a derived column can be null, and which columns with it are never all null.

    coalesce, greatest and least are null only if all their sources are.
    """
    sources = {source for source, _ in found.sources}
    if not all(node.progress[source].nullable for source in sources):
        return False, frozenset()
    partners = [node.progress[source].partners for source in sources]
    if any(each and each <= sources for each in partners):
        return False, frozenset()
    kept = all(derived.get(p) == Derivation(((p, 0),), "least") for p in partners[0])
    return True, partners[0] if sources == {name} and kept else frozenset()


def applied(
    node: Node,
    function: Callable[[pl.DataFrame], pl.DataFrame],
    schema: Mapping[str, pl.DataType | type[pl.DataType]] | None,
    origin: str,
) -> Node:
    """A user's function over chunks."""
    if not callable(function):
        raise OptionError(f"apply takes a function, not {type(function).__name__}")
    columns = dict(node.schema) if schema is None else dict(pl.Schema(schema))
    kept = {n: p for n, p in node.progress.items() if columns.get(n) == node.schema[n]}
    time = node.time if node.time in kept else None
    return nodes.ApplyNode((node,), columns, kept, time, function, origin=origin)


def united(inputs: Sequence[Node], origin: str) -> Node:
    """All rows of several inputs."""
    first = inputs[0]
    if len(inputs) < 2:
        raise OptionError("union needs at least two streams")
    for other in inputs[1:]:
        if dict(other.schema) != dict(first.schema) or list(other.schema) != list(first.schema):
            raise QueryError(
                "union needs streams with the same columns:"
                f" {_spell(first.schema)} against {_spell(other.schema)}"
            )
    progress = {
        name: Progressing(each.domain, any(n.progress[name].nullable for n in inputs))
        for name, each in first.progress.items()
        if all(name in n.progress and n.progress[name].domain == each.domain for n in inputs)
    }
    if first.progress and not progress and all(n.progress for n in inputs):
        raise QueryError(
            "union: the streams progress on different columns or count time in different units:"
            f" {', '.join(str(list(n.progress)) for n in inputs)}"
        )
    time = first.time if first.time in progress else next(iter(progress), None)
    return nodes.UnionNode(tuple(inputs), first.schema, progress, time, origin=origin)


def _spell(schema: Mapping[str, pl.DataType]) -> str:
    return "(" + ", ".join(f"{name} {dtype}" for name, dtype in schema.items()) + ")"


def window(
    node: Node,
    range_: Duration | None,
    slide: Duration | None,
    rows: int | None,
    slide_rows: int | None,
    on: str | None,
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
        return Window(SEQUENCE, WindowSpec(_whole(rows), _whole(step)))
    if slide_rows is not None:
        raise OptionError("slide_rows= goes with rows=")
    if range_ is None:
        raise OptionError("a window needs a length, window('1 minute'), or rows=100")
    attribute = on or node.time
    if attribute is None:
        raise QueryError("a window needs a progressing attribute, and this stream has none")
    domain = node.progressing(attribute, "a window")
    for name, given in (("a window", range_), ("a window's slide", slide)):
        if given is not None and nanoseconds(given, name) <= 0:
            raise OptionError(f"{name} must be longer than zero, not {given!r}")
    length = domain.ticks(range_, "a window")
    step = length if slide is None else domain.ticks(slide, "a window's slide")
    return Window(attribute, WindowSpec(length, step))


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
    time = clause.attribute
    built, types, texts = _aggregates(node, groups, aggregates, time)
    domain = ROWS if time == SEQUENCE else node.progress[time].domain
    taken = {START, END} & {*groups, *aggregates}
    if taken:
        raise QueryError(
            f"{taken.pop()!r} is a column of every window aggregate; choose another name"
        )
    schema = {START: domain.dtype, END: domain.dtype}
    schema |= {name: node.need(name) for name in groups} | types
    progress = {START: Progressing(domain), END: Progressing(domain)}
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
        origin=origin,
    )


def group_aggregated(
    node: Node,
    groups: Sequence[str],
    aggregates: Mapping[str, str | UserAggregate],
    origin: str,
) -> Node:
    """Aggregates per group, where one group column progresses."""
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
    progress = {name: Progressing(domain) for name, domain in usable.items()}
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
    if not aggregates:
        raise OptionError('agg needs at least one aggregate, for example agg(n="count(*)")')
    for name in groups:
        node.need(name, "group column")
    clash = set(groups) & set(aggregates)
    if clash:
        raise QueryError(f"{clash.pop()!r} is both a group column and an aggregate")
    built, types, texts = [], {}, []
    ticks = (
        pl.col(SEQUENCE) if time == SEQUENCE else node.progress[time].domain.to_ticks(pl.col(time))
    )
    for name, wish in aggregates.items():
        if isinstance(wish, UserAggregate):
            for column in wish.columns:
                node.need(column)
            aggregate = wish.build(name, node.schema)
            types[name] = pl.Schema({name: wish.returns})[name]
            texts.append(name)
        else:
            aggregate, types[name] = _builtin(name, wish, node, ticks)
            texts.append(f"{wish} AS {name}")
        built.append(aggregate)
    return tuple(built), types, tuple(texts)


def _builtin(name: str, text: str, node: Node, ticks: pl.Expr) -> tuple[Aggregate, pl.DataType]:
    parts = take_apart(text)
    argument = None
    dtype: pl.DataType = pl.Int64()
    if parts.argument is not None:
        compiled = compile_expression(parts.argument, node.schema)
        argument, dtype = compiled.polars, compiled.dtype
        numeric = dtype.is_numeric() or dtype == pl.Boolean
        if parts.function in ("sum", "avg", "stddev") and not numeric:
            raise QueryError(f"{text}: {parts.function} needs numbers, and this is {dtype}")
    if parts.function == "sum" and argument is not None and not dtype.is_float():
        if dtype.is_integer() or dtype == pl.Boolean:
            argument, dtype = argument.cast(pl.Int64), pl.Int64()
    elif parts.function in ("avg", "stddev"):
        dtype = pl.Float64()
    elif parts.function == "count":
        dtype = pl.Int64()
    call = Call(name, parts.function, argument, parts.distinct, dtype.is_float(), ticks)
    return build(call), dtype


def deduplicated(node: Node, columns: Sequence[str], origin: str) -> Node:
    """One row per key; the key must progress so that it can be forgotten."""
    key = tuple(columns) or tuple(node.schema)
    for name in key:
        node.need(name)
    progressing = [n for n in key if n in node.progress and not node.progress[n].nullable]
    if not progressing:
        known = ", ".join(node.progress) or "none"
        raise QueryError(
            "distinct would have to remember every row for ever: none of"
            f" ({', '.join(key)}) is a progressing attribute (here: {known})"
        )
    attribute = node.time if node.time in progressing else progressing[0]
    assert attribute is not None
    if columns:
        node = projected(node, columns, {}, False, origin)
    return nodes.DistinctNode(
        (node,), node.schema, node.progress, node.time, key, attribute, origin=origin
    )


def ordered_by(node: Node, column: str | None, origin: str) -> Node:
    """Rows in order of a progressing attribute."""
    attribute = column or node.time
    if attribute is None:
        raise QueryError("order_by needs a progressing attribute, and this stream has none")
    domain = node.progressing(attribute, "order_by")
    progress = {attribute: Progressing(domain)}
    return nodes.OrderNode((node,), node.schema, progress, attribute, attribute, origin=origin)


def joined(
    left: Node,
    right: Node,
    on: str | Sequence[str | tuple[str, str]] | Mapping[str, str],
    within: Duration | tuple[Duration, Duration] | Same | None,
    where: str | None,
    how: How,
    times: tuple[str, str] | None,
    suffix: str,
    origin: str,
) -> Node:
    """Matching pairs of two inputs, bounded on progressing attributes."""
    if how not in ("inner", "left", "right", "full"):
        raise OptionError(f"how= is 'inner', 'left', 'right' or 'full', not {how!r}")
    pairs = _pairs(left, right, on)
    left_time, right_time = _join_times(left, right, pairs, within, times)
    domain = left.progressing(left_time, "a join")
    other = right.progressing(right_time, "a join")
    if domain != other:
        raise QueryError(
            f"a join compares times of one kind: {left_time!r} is {domain.dtype} and"
            f" {right_time!r} is {other.dtype}, or they count in different units"
        )
    reach = _reach(domain, pairs, within, left_time, right_time)
    names, merged, schema = _join_columns(left, right, pairs, how, suffix)
    time_right = next((o for o, i in merged.items() if i == names[right_time]), names[right_time])
    both = frozenset({left_time, time_right}) if how == "full" else frozenset()
    progress = {
        left_time: Progressing(domain, how in ("right", "full"), both),
        time_right: Progressing(domain, how in ("left", "full"), both),
    }
    if left_time == time_right:
        progress = {left_time: Progressing(domain)}
    usable = [name for name in (left_time, time_right) if not progress[name].nullable]
    residual = compile_predicate(where, _inside(left, right, names)) if where else None
    return nodes.JoinNode(
        (left, right),
        schema,
        progress,
        usable[0] if usable else None,
        (left_time, right_time),
        reach,
        pairs,
        names,
        merged,
        residual,
        how,
        origin=origin,
    )


def _pairs(
    left: Node, right: Node, on: str | Sequence[str | tuple[str, str]] | Mapping[str, str]
) -> tuple[tuple[str, str], ...]:
    if isinstance(on, str):
        on = [on]
    listed = list(on.items()) if isinstance(on, Mapping) else list(on)
    pairs: list[tuple[str, str]] = []
    for each in listed:
        pair = (each, each) if isinstance(each, str) else tuple(each)
        if len(pair) != 2:
            raise OptionError(f"on= takes column names or pairs of them, not {each!r}")
        one, two = left.need(pair[0], "join column"), right.need(pair[1], "join column")
        if one != two:
            raise QueryError(
                f"join columns must have one type: {pair[0]!r} is {one} and {pair[1]!r} is {two}"
            )
        pairs.append((pair[0], pair[1]))
    return tuple(pairs)


def _join_times(
    left: Node,
    right: Node,
    pairs: Sequence[tuple[str, str]],
    within: object,
    times: tuple[str, str] | None,
) -> tuple[str, str]:
    if times is not None:
        return times
    if within is None:
        for one, two in pairs:
            if one in left.progress and two in right.progress:
                return one, two
        raise QueryError(
            "this join could never forget a row: nothing bounds how far apart matching rows may"
            " be. Give within=('2 minutes', '3 minutes'), within=lw.same('10 seconds'), or put a"
            " progressing attribute of both sides among the on= columns"
        )
    if left.time is None or right.time is None:
        raise QueryError("a join needs a progressing attribute on both sides; use times=(..., ...)")
    return left.time, right.time


def _reach(
    domain: TimeDomain,
    pairs: Sequence[tuple[str, str]],
    within: Duration | tuple[Duration, Duration] | Same | None,
    left_time: str,
    right_time: str,
) -> Reach:
    if within is None or (left_time, right_time) in pairs:
        return Band(0, 0)
    if isinstance(within, Same):
        if nanoseconds(within.width, "same(...)") <= 0:
            raise OptionError("same(...) takes a length of time above zero")
        return SameBucket(domain.ticks(within.width, "same(...)"))
    if isinstance(within, tuple):
        if len(within) != 2:
            raise OptionError("within= takes one length of time or a pair (before, after)")
        before, after = (domain.ticks(each, "within=") for each in within)
    else:
        before = after = domain.ticks(within, "within=")
    if before + after < 0:
        raise OptionError(f"within={within!r} is empty: it ends before it begins")
    return Band(before, after)


def _join_columns(
    left: Node, right: Node, pairs: Sequence[tuple[str, str]], how: How, suffix: str
) -> tuple[dict[str, str], dict[str, str], dict[str, pl.DataType]]:
    """Inside names of right columns, merged key columns, and the output's columns."""
    shared = {two for one, two in pairs if one == two}
    names: dict[str, str] = {}
    schema = dict(left.schema)
    merged: dict[str, str] = {}
    for column, dtype in right.schema.items():
        if column in shared:
            names[column] = f"__right_{column}"
            merged[column] = names[column]
            continue
        name = column + suffix if column in left.schema else column
        if name in schema:
            raise QueryError(
                f"join: column {name!r} would come twice; rename one side with select(...) or"
                " give another suffix="
            )
        names[column] = name
        schema[name] = dtype
    return names, merged, schema


def _inside(left: Node, right: Node, names: Mapping[str, str]) -> dict[str, pl.DataType]:
    return {**left.schema, **{names[column]: dtype for column, dtype in right.schema.items()}}
