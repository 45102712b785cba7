"""These functions compile window, session, sliding and group aggregates to operators."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from lowwater.operators.aggregates import Aggregate
from lowwater.operators.flush import PIECES, Immediate, Slow
from lowwater.operators.group_aggregate import GroupAggregate
from lowwater.operators.identity import Identity
from lowwater.operators.last_rows import LastRowsAggregate
from lowwater.operators.low_table import LowTable
from lowwater.operators.session_aggregate import SessionAggregate
from lowwater.operators.sliding_aggregate import SlidingAggregate
from lowwater.operators.window_aggregate import END, HighAggregate, WindowAggregate
from lowwater.operators.window_state import PANE, START, WindowGrouping
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical.compiler import (
    Compile,
    Compiler,
    demand_of,
    demand_on,
    fixed_demands,
    second,
)
from lowwater.plan.physical.operator import Demands, KernelOperator, Traits, keyed, unchanged
from lowwater.plan.physical.rows import alone_or_jointly
from lowwater.plan.physical.updates import add_window_queue
from lowwater.progress.demand import Demand
from lowwater.updates.windows.update_windows import UpdateWindows


def compile_window(plan: Compiler, node: nodes.WindowAggregateNode, inputs: tuple[int, ...]) -> int:
    """Compile an aggregate per window: in one operator, in two levels, or behind a queue."""
    if node.by is not None:
        return _behind_a_queue(plan, node, inputs)
    window, domain, attribute = node.window, node.domain, node.attribute
    groups, aggregates = node.groups, node.aggregates
    if not node.counts_rows:
        inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    keys = plan.usable_groups(inputs[0], attribute, groups)
    grouping = WindowGrouping(attribute, domain, window, groups, aggregates, keys)
    label = "row" if node.counts_rows else attribute
    detail = f"range {domain.spell(window.range)}, slide {domain.spell(window.slide)} on {label}"
    detail += _calls(groups, node.texts)
    flush, keep = node.flush, node.keep
    if node.table is not None:
        return _two_levels(plan, node, inputs, detail, label)
    demand = Demand.grid(window.slide, window.range)
    if not isinstance(flush, Immediate):
        detail += f"; answers leave {flush.describe()}"
        if isinstance(flush, Slow):  # paced by the mark
            demand |= Demand.grid(max(1, flush.bound(domain, window.slide) // PIECES))
    detail += f"; keeps {keep}" if keep else ""
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="window",
            detail=detail,
            kernel=WindowAggregate,
            build=lambda store, host: WindowAggregate(store, grouping, flush, keep, host),
            describe=fixed_demands([attribute], demand, bool(keys)),
            traits=_traits(
                groups,
                aggregates,
                [attribute],
                alike=isinstance(flush, Immediate) or not groups,
                combines=not node.counts_rows,
                reduces=not node.counts_rows and keep != "rows",
            ),
            groups={START: keys, END: keys} if keys else {},
        )
    )


def _traits(
    groups: Sequence[str],
    aggregates: Sequence[Aggregate],
    times: Iterable[str],
    *,
    alike: bool,
    combines: bool = False,
    reduces: bool = False,
) -> Traits:
    """Return the traits of an aggregate: it passes the group columns on, and the rows of a group
    must meet."""
    parts = [part for each in aggregates for part in each.lift]
    return Traits(
        passes=unchanged(groups),
        together=keyed(groups),
        alike=alike,
        combines=combines,
        reduces=reduces,
        reads=frozenset(groups).union(times, *(part.meta.root_names() for part in parts)),
        identities=identities(aggregates),
    )


def identities(aggregates: Iterable[object]) -> tuple[Identity, ...]:
    """Return the identities of those aggregates that users have written."""
    return tuple(
        Identity.of(each.name, each.own)
        for each in aggregates
        if isinstance(each, Aggregate) and each.own is not None
    )


def _calls(groups: Sequence[str], texts: Sequence[str]) -> str:
    """Return the groups and aggregates of an operator, in words."""
    by = f", by {', '.join(groups)}" if groups else ""
    return f"{by}: {', '.join(texts)}"


def _two_levels(
    plan: Compiler,
    node: nodes.WindowAggregateNode,
    inputs: tuple[int, ...],
    detail: str,
    label: str,
) -> int:
    """Add two-level aggregation: a table of fixed size, and windows over its partials."""
    window, domain, attribute = node.window, node.domain, node.attribute
    groups, aggregates, flush = node.groups, node.aggregates, node.flush
    size, in_order = node.table, plan.in_order
    assert size is not None
    keys = plan.usable_groups(inputs[0], attribute, groups)
    grouping = WindowGrouping(attribute, domain, window, groups, aggregates, keys)
    ends = Demand.grid(window.slide, window.range)
    if in_order:  # all partials have to leave before the next window closes
        flush = Slow(within_windows=1, every=1)
    low = plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="low",
            detail=f"table of {size} slots on {label}, by {', '.join(groups)}; old partials leave"
            f" {flush.describe()}{', in order' if in_order else ''}",
            kernel=LowTable,
            build=lambda store, _: LowTable(store, grouping, size, flush, in_order),
            describe=fixed_demands([attribute], ends, bool(keys)),
            traits=_traits(groups, aggregates, [attribute], alike=False),
            groups={PANE: keys} if keys else {},
        )
    )
    return plan.add(
        KernelOperator(
            node=node,
            inputs=(low,),
            name="window",
            detail=f"{detail}; from partials",
            kernel=HighAggregate,
            build=lambda store, host: HighAggregate(store, replace(grouping, time=PANE), host=host),
            describe=fixed_demands([PANE], ends, bool(keys)),
            traits=Traits(
                passes=unchanged(groups),
                together=keyed(groups),
                alike=True,
                identities=identities(aggregates),
            ),
            groups={START: keys, END: keys} if keys else {},
        )
    )


def _behind_a_queue(
    plan: Compiler, node: nodes.WindowAggregateNode, inputs: tuple[int, ...]
) -> int:
    """Add a queue from which the newest window of each key leaves, and an aggregate over these
    windows."""
    by, domain = node.by, node.domain
    assert by is not None
    queue, keys, kernel = add_window_queue(plan, node, by, inputs, identities(node.aggregates))
    edges = {START: domain, END: domain}
    groups, aggregates = (START, END, *node.groups), node.aggregates
    grouped = {START: by.key, END: by.key} if keys else {}
    return plan.add(
        KernelOperator(
            node=node,
            inputs=(queue,),
            name="window",
            detail=f"by {', '.join(groups)}: {', '.join(node.texts)}",
            kernel=GroupAggregate,
            build=lambda store, host: GroupAggregate(
                store, groups, edges, aggregates, second(domain), grouped, host
            ),
            describe=fixed_demands(edges, Demand.any_value(), bool(keys)),
            traits=Traits(
                passes=unchanged(by.key),
                together=keyed(by.key),
                alike=True,
                updates=True,
                identities=identities(aggregates),
            ),
            groups={START: by.key, END: by.key} if by.key and kernel is UpdateWindows else {},
        )
    )


def compile_session(plan: Compiler, node: nodes.SessionNode, inputs: tuple[int, ...]) -> int:
    """Compile an aggregate per session."""
    attribute, gap = node.attribute, node.gap
    domain = node.inputs[0].progress[attribute].domain
    groups, aggregates, flush = node.groups, node.aggregates, node.flush
    pace = "" if flush is None else f"; answers leave {flush.describe()}"
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    keys = plan.usable_groups(inputs[0], attribute, groups)
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="session",
            detail=f"gap {domain.spell(gap)} on {attribute}{_calls(groups, node.texts)}{pace}",
            kernel=SessionAggregate,
            build=lambda store, _: SessionAggregate(
                store, attribute, domain, gap, groups, aggregates, keys, flush
            ),
            describe=fixed_demands([attribute], Demand.any_value(), bool(keys)),
            # A copy's punctuation on starts depends on the earliest session it has open.
            traits=_traits(groups, aggregates, [attribute], alike=False),
            groups={START: keys, END: keys} if keys else {},
        )
    )


def compile_sliding(plan: Compiler, node: nodes.SlidingNode, inputs: tuple[int, ...]) -> int:
    """Compile an aggregate that answers whenever it changes."""
    attribute, range_ = node.attribute, node.range
    domain = node.inputs[0].progress[attribute].domain
    groups, calls = node.groups, node.calls
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    arguments = [call.argument for call in calls if call.argument is not None]
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="sliding",
            detail=f"range {domain.spell(range_)}, on change, on {attribute}"
            + _calls(groups, node.texts),
            kernel=SlidingAggregate,
            build=lambda store, _: SlidingAggregate(
                store, attribute, domain, range_, groups, calls, second(domain)
            ),
            describe=lambda _: [{attribute: Demand.any_value()}],
            traits=Traits(
                passes=unchanged(groups),
                together=keyed(groups),
                alike=True,
                reads=frozenset({attribute, *groups}).union(
                    *(each.meta.root_names() for each in arguments)
                ),
            ),
        )
    )


def compile_last_rows(plan: Compiler, node: nodes.LastRowsNode, inputs: tuple[int, ...]) -> int:
    """Compile an aggregate over the last rows of each key."""
    attribute, window, aggregates, reads = node.attribute, node.window, node.aggregates, node.reads
    domain = node.inputs[0].progress[attribute].domain
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    length = f"{window.rows} rows" if window.rows is not None else domain.spell(window.range)
    detail = f"range {length}, slide {window.slide} rows in order of {attribute}"
    detail += _calls(window.keys, node.texts)
    if window.expire is not None:
        detail += f"; keys are forgotten after {domain.spell(window.expire)}"
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="last rows",
            detail=detail,
            kernel=LastRowsAggregate,
            build=lambda store, _: LastRowsAggregate(
                store, attribute, domain, window, aggregates, reads, second(domain)
            ),
            describe=lambda _: [{attribute: Demand.any_value()}],
            traits=Traits(
                passes=unchanged(window.keys),
                together=keyed(window.keys),
                alike=True,
                reads=frozenset({attribute, *window.keys, *reads}),
                identities=identities(aggregates),
            ),
            remarks=[lambda *_: _KEPT_FOR_EVER if window.keeps_keys else []],
        )
    )


_KEPT_FOR_EVER = [
    "warning: what is kept of a key is kept for ever, so the state grows with the number of keys;"
    " expire= forgets a key some time after its newest row"
]


def compile_groups(plan: Compiler, node: nodes.GroupAggregateNode, inputs: tuple[int, ...]) -> int:
    """Compile an aggregate per group, where groups end by progress."""
    domain = next(iter(node.progressing_keys.values()))
    groups, keys, aggregates = node.groups, dict(node.progressing_keys), node.aggregates
    usable = {name: by for name in keys if (by := plan.usable_groups(inputs[0], name, groups))}

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A group ends by any of its times, so punctuation per group on one of them is enough.
        return [
            {
                name: demand_of(Demand.any_value(), bool(usable), demand_on(demands, name))
                for name in keys
            }
        ]

    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="group",
            detail=f"by {', '.join(groups)}: {', '.join(node.texts)}",
            kernel=GroupAggregate,
            build=lambda store, host: GroupAggregate(
                store, groups, keys, aggregates, second(domain), usable, host
            ),
            describe=describe,
            traits=_traits(groups, aggregates, [], alike=True, combines=True, reduces=True),
            groups=usable,
            remarks=[lambda *_: [f"answers by promises on: {alone_or_jointly(keys)}"]],
        )
    )


COMPILERS: Mapping[type[Node], Compile] = {
    nodes.WindowAggregateNode: compile_window,
    nodes.SessionNode: compile_session,
    nodes.SlidingNode: compile_sliding,
    nodes.LastRowsNode: compile_last_rows,
    nodes.GroupAggregateNode: compile_groups,
}
