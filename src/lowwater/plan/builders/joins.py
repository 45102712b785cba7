"""Builders of joins of two inputs check equal columns, bounds of times and names of columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from lowwater.errors import OptionError, QueryError, Term
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.ordered.strategy import ORDERS, Order, Ordering
from lowwater.joins.reach import Band, Reach, SameBucket
from lowwater.joins.shape import KINDS, Carried, How, kind_words
from lowwater.operators.flush import Flush, Slow
from lowwater.plan import nodes
from lowwater.plan.builders import oblivious as oblivious_builders
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.builders.aggregates import slow_flush
from lowwater.plan.builders.multi_joins import (
    carried_columns,
    check_types,
    common_domain,
    in_order,
    lag_between,
)
from lowwater.plan.expressions import Formula, compile_predicate
from lowwater.plan.main_time import main_time
from lowwater.plan.nodes import Node, Progressing
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.time_domain import TimeDomain


@dataclass(frozen=True, slots=True)
class Same:
    """A bound by which both times lie in the same stretch of ``width``; stretches begin at time
    0."""

    width: Duration


def same(width: Duration) -> Same:
    """Join rows whose times fall into the same stretch of time: a tumbling-window join.

    Stretches follow each other from time 0 on.

    >>> a = lw.stream(pl.DataFrame({"ts": [9, 19], "k": [1, 1]}), name="a", time="ts")
    >>> b = lw.stream(pl.DataFrame({"ts": [10, 29], "k": [1, 1]}), name="b", time="ts")
    >>> a.join(b, on="k", within=lw.same("10 seconds")).collect()["ts"].to_pylist()
    [19]

    ``width``
        Length of a stretch, above zero.
    """
    return Same(width)


UNMATCHED = Term("flush=", "UNMATCHED")
"""The pace of rows without a partner, as errors name it."""


def ordering_of(order: Order | None, alpha: float | None) -> Ordering | None:
    """Return the checked order of results; None for none."""
    if order is None:
        if alpha is not None:
            raise OptionError("alpha= goes with order='adaptive'")
        return None
    if order not in ORDERS:
        raise OptionError(f"order= is one of {', '.join(map(repr, ORDERS))}, not {order!r}")
    if alpha is None:
        return Ordering(order)
    if order != "adaptive":
        raise OptionError(f"alpha= goes with order='adaptive', and this is {order!r}")
    if not 0 <= alpha < 1:
        raise OptionError(
            "alpha= is the load at which results are worth holding, at least 0 and below 1,"
            f" not {alpha!r}"
        )
    return Ordering(order, alpha)


def joined(
    left: Node,
    right: Node,
    *,
    on: str | Sequence[str | tuple[str, str]] | Mapping[str, str],
    within: Duration | tuple[Duration, Duration] | Same | None,
    where: Formula | None,
    how: How,
    times: tuple[str, str] | None,
    suffix: str,
    ordering: Ordering | None,
    options: Oblivious | None,
    origin: str,
    flush: Flush | None = None,
) -> Node:
    """Return the join of two inputs, bounded on progressing attributes.

    A join measures the disorder of its inputs if ``options`` are given or an input promises
    nothing; otherwise it drops rows by promises alone.
    """
    if how not in KINDS:
        raise OptionError(f"how= is one of {', '.join(map(repr, KINDS))}, not {how!r}")
    pairs = _pairs(left, right, on)
    if update_builders.both(left, right):
        oblivious_builders.refuse_beside(
            options, "leave them out: of update streams, one row of each key is kept"
        )
        equal = oblivious_builders.best_times((left, right), pairs)
        if within is None and times is None and equal is None:
            update_builders.check_join(left, right, pairs, how, ordering is not None)
            return newest(left, right, pairs, where, suffix, origin)
    left_time, right_time = _join_times(left, right, pairs, within, times)
    domain = common_domain((left, right), (left_time, right_time))
    reach = _reach(domain, pairs, within, left_time, right_time)
    slowly = unmatched_flush(flush, how, domain, reach, ordering)
    match = Match(pairs, (left_time, right_time), reach, where, how, ordering, options, slowly)
    return paired(left, right, match, suffix, origin)


@dataclass(frozen=True)
class Match:
    """The conditions of a join: equal columns, times in reach, a residual on both rows."""

    on: tuple[tuple[str, str], ...]
    times: tuple[str, str]
    reach: Reach
    where: Formula | None = None
    how: How = "inner"
    ordering: Ordering | None = None
    options: Oblivious | None = None
    flush: Slow | None = None


def unmatched_flush(
    flush: Flush | None, how: How, domain: TimeDomain, reach: Reach, ordering: Ordering | None
) -> Slow | None:
    """Return the pace at which rows without a partner leave, checked; None if they leave at once.

    Rows of a tumbling-window join can be bounded in windows: the stretches of time it joins by.
    """
    windows = None
    if not isinstance(reach, SameBucket):
        windows = "this join has no windows to count in"
    slowly = slow_flush(flush, "rows without a partner", windows, UNMATCHED)
    if slowly is None:
        return None
    if not KINDS[how].alone:
        raise OptionError(
            UNMATCHED,
            f" is the pace of rows that have no partner, and {kind_words(how)} emits none of them;"
            " leave it out",
        )
    if ordering is not None:
        raise OptionError(
            UNMATCHED,
            " goes with results in any order; results in order leave when the mark reaches their"
            " time. Leave one of the two out",
        )
    slowly.bound(domain, reach.span)  # refuses a length finer than the time column
    return slowly


def paired(left: Node, right: Node, match: Match, suffix: str, origin: str) -> Node:
    """Return the node of a join whose conditions are known."""
    (left_time, right_time), how, kind = match.times, match.how, KINDS[match.how]
    updates = update_builders.both(left, right)
    if updates:
        update_builders.check_join(left, right, match.on, how, match.ordering is not None)
        if match.flush is not None:
            raise OptionError(
                UNMATCHED, " goes with joins that emit every row; update streams replace their rows"
            )
    names, merged, schema = _join_columns(left, right, match.on, suffix)
    time_right = next((o for o, i in merged.items() if i == names[right_time]), names[right_time])
    times = (left_time, time_right)
    if isinstance(match.reach, Band) and not updates:
        equal_pairs = how == "inner" and match.reach == Band(0, 0)
        measure = oblivious_builders.measuring_options(
            (left, right), match.times, match.options, through=equal_pairs
        )
        if measure is not None:
            oblivious_builders.refuse_order(match.ordering, left_time if equal_pairs else None)
            if match.flush is not None:
                raise OptionError(
                    UNMATCHED,
                    " is the pace of rows that have no partner, and this join, which measures its"
                    " inputs, emits them as it finds out; leave it out, or promise something",
                )
            return oblivious_builders.measuring_join(
                (left, right),
                keys=match.on,
                times=match.times,
                names=({name: name for name in left.schema}, names),
                merged={inside: out for out, inside in merged.items()},
                schema=schema,
                where=match.where,
                options=measure,
                origin=origin,
                windows=(match.reach.after, match.reach.before),
                how=how,
            )
    else:
        what = "a join of update streams" if updates else "a join of times in one stretch"
        remedy = "leave them out, or give within= as a length of time"
        oblivious_builders.refuse_beside(match.options, remedy)
        oblivious_builders.refuse_unpromised((left, right), match.times, what)
    carried: tuple[Carried, ...] = ()
    if 0 in kind.whole:
        carried += carried_columns(0, left, left_time, {name: name for name in left.schema}, times)
    if 1 in kind.whole:
        own = {name: out for name, out in names.items() if out not in merged.values()}
        carried += carried_columns(1, right, right_time, own, times)
    progress = _progress((left, right), match, times, carried)
    if kind.shown == (0,):
        schema = dict(left.schema)
        progress = {name: each for name, each in progress.items() if name in schema}
    usable = [name for name, attribute in progress.items() if not attribute.nullable]
    inside = _inside(left, right, names)
    residual = compile_predicate(match.where, inside) if match.where else None
    node = nodes.JoinNode(
        (left, right),
        schema,
        progress,
        usable[0] if usable else None,
        match.times,
        match.on,
        match.reach,
        names,
        merged,
        residual,
        how,
        carried=carried,
        ordering=match.ordering,
        newest=updates,
        flush=match.flush,
        origin=origin,
    )
    return node if match.ordering is None else in_order(node, match.ordering)


def newest(
    left: Node,
    right: Node,
    on: Sequence[tuple[str, str]],
    where: Formula | None,
    suffix: str,
    origin: str,
) -> Node:
    """Return the join of the newest rows of two update streams by key, whatever their times.

    Columns beside the keys that must be equal are a condition on both rows.
    """
    keys = update_builders.check_join(left, right, on, "inner", False)
    names, merged, schema = _join_columns(left, right, on, suffix)
    return nodes.NewestJoinNode(
        (left, right),
        schema,
        {},
        None,
        keys,
        tuple(pair for pair in on if pair not in keys),
        (update_builders.stamps(left), update_builders.stamps(right)),
        names,
        merged,
        compile_predicate(where, _inside(left, right, names)) if where else None,
        origin=origin,
    )


def results_in_order(node: Node, ordering: Ordering) -> Node | None:
    """Return a join with its results in order, under the filters above it; None if the rows do not
    come from a join."""
    if isinstance(node, nodes.AnyJoin):
        return in_order(node, ordering)
    if not isinstance(node, nodes.FilterNode):
        return None
    inner = results_in_order(node.inputs[0], ordering)
    if inner is None:
        return None
    return replace(node, inputs=(inner,), progress=inner.progress, time=inner.time)


def _progress(
    inputs: tuple[Node, Node], match: Match, times: tuple[str, str], carried: tuple[Carried, ...]
) -> dict[str, Progressing]:
    """Return the columns of a join that progress, with the most ticks that each can be behind the
    others."""
    whole, domain = KINDS[match.how].whole, inputs[0].progressing(match.times[0], "a join")
    both = frozenset() if whole else frozenset(times)
    progress = {
        time: Progressing(domain, side not in whole, both) for side, time in enumerate(times)
    }
    if times[0] == times[1]:
        progress = {times[0]: Progressing(domain)}
    progress |= {each.out: Progressing(domain) for each in carried}
    places = [(side, match.times[side], times[side]) for side in whole]
    places += [(each.side, each.name, each.out) for each in carried]
    for side, name, out in places:
        reach = match.reach.behind(side)
        behind = {
            other: lag
            for there, column, other in places
            if other != out
            and (lag := lag_between(inputs, match.times, reach, (side, name), (there, column)))
            is not None
        }
        progress[out] = replace(progress[out], behind={**progress[out].behind, **behind})
    return progress


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
        check_types((left, right), pair)
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
        equal = oblivious_builders.best_times((left, right), pairs)
        if equal is not None:
            return equal[0], equal[1]
        raise QueryError(
            "this join could never forget a row: nothing bounds how far apart matching rows may"
            " be. Give within=('2 minutes', '3 minutes'), within=lw.same('10 seconds'), or put a"
            " progressing attribute of both sides among the on= columns"
        )
    say = "times=({}, ...), one attribute of each side"
    found = [main_time(node, "a join", say, " on both sides") for node in (left, right)]
    return found[0], found[1]


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
    left: Node, right: Node, pairs: Sequence[tuple[str, str]], suffix: str
) -> tuple[dict[str, str], dict[str, str], dict[str, pl.DataType]]:
    """Return the names that right columns have inside the join, by column; the inside name of each
    key column that both sides share; and the columns of the output."""
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
