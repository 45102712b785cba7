"""Window, session, sliding and group aggregates to operators."""

from __future__ import annotations

from lowwater.operators.flush import PIECES, Immediate, Slow
from lowwater.operators.group_aggregate import GroupAggregate
from lowwater.operators.low_table import LowTable
from lowwater.operators.session_aggregate import SessionAggregate
from lowwater.operators.sliding_aggregate import SlidingAggregate
from lowwater.operators.window_aggregate import END, HighAggregate, WindowAggregate
from lowwater.operators.window_state import PANE, START
from lowwater.plan import nodes
from lowwater.plan.physical.compiler import Compiler, asked, second, wish_of
from lowwater.plan.physical.operator import Demands
from lowwater.plan.physical.update_windows import compile_update_windows
from lowwater.progress.demand import Demand
from lowwater.stream.element import SEQUENCE


def compile_window(plan: Compiler, node: nodes.WindowAggregateNode, inputs: tuple[int, ...]) -> int:
    """An aggregate per window, in one operator or in two levels, or behind a queue of windows."""
    if node.by is not None:
        return compile_update_windows(plan, node, node.by, inputs)
    window, domain, attribute = node.window, node.domain, node.attribute
    groups, aggregates = node.groups, node.aggregates
    if attribute != SEQUENCE:
        inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    keys = plan.serves(inputs[0], attribute, groups)
    ends = Demand.grid(window.slide, window.range)
    label = "row" if attribute == SEQUENCE else attribute
    detail = f"range {domain.spell(window.range)}, slide {domain.spell(window.slide)} on {label}"
    if node.groups:
        detail += f", by {', '.join(node.groups)}"
    detail += f": {', '.join(node.texts)}"
    flush, keep = node.flush, node.keep
    if node.table is not None:
        return _two_levels(plan, node, inputs, detail, label)
    wish = ends
    if not isinstance(flush, Immediate):
        detail += f"; answers leave {flush.describe()}"
        if isinstance(flush, Slow):  # paced by the mark
            wish |= Demand.grid(max(1, flush.within_windows * window.slide // PIECES))
    detail += f"; keeps {keep}" if keep else ""
    index = plan.add(
        "window",
        detail,
        node,
        inputs,
        lambda store, _: WindowAggregate(
            store, attribute, domain, window, groups, aggregates, flush, keep, keys
        ),
        lambda demands: [{attribute: wish_of(wish, bool(keys), demands.values())}],
        WindowAggregate,
        node.groups,
        True,
    )
    if keys:
        plan.grouped[index] = {START: keys, END: keys}
    return index


def _two_levels(
    plan: Compiler,
    node: nodes.WindowAggregateNode,
    inputs: tuple[int, ...],
    detail: str,
    label: str,
) -> int:
    """Two-level aggregation: a table of fixed size, and the windows above it."""
    window, domain, attribute = node.window, node.domain, node.attribute
    groups, aggregates, flush = node.groups, node.aggregates, node.flush
    size, in_order = node.table, plan.in_order
    assert size is not None
    keys = plan.serves(inputs[0], attribute, groups)
    ends = Demand.grid(window.slide, window.range)
    if in_order:  # as eager as it can be: it has to be done when the next window closes
        flush = Slow(1, 1)
    low = plan.add(
        "low",
        f"table of {size} slots on {label}, by {', '.join(groups)}; old partials leave"
        f" {flush.describe()}{', in order' if in_order else ''}",
        node,
        inputs,
        lambda store, _: LowTable(
            store, attribute, domain, window, groups, aggregates, size, flush, in_order, keys
        ),
        lambda demands: [{attribute: wish_of(ends, bool(keys), demands.values())}],
        LowTable,
        groups,
        True,
    )
    high = plan.add(
        "window",
        f"{detail}; from partials",
        node,
        (low,),
        lambda store, _: HighAggregate(store, PANE, domain, window, groups, aggregates, by=keys),
        lambda demands: [{PANE: wish_of(ends, bool(keys), demands.values())}],
        HighAggregate,
        groups,
        True,
    )
    if keys:
        plan.grouped[low] = {PANE: keys}
        plan.grouped[high] = {START: keys, END: keys}
    return high


def compile_session(plan: Compiler, node: nodes.SessionNode, inputs: tuple[int, ...]) -> int:
    """An aggregate per session."""
    domain, attribute, gap = node.domain, node.attribute, node.gap
    groups, aggregates = node.groups, node.aggregates
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    keys = plan.serves(inputs[0], attribute, groups)
    detail = f"gap {domain.spell(gap)} on {attribute}"
    if groups:
        detail += f", by {', '.join(groups)}"

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        return [{attribute: wish_of(Demand.any_value(), bool(keys), demands.values())}]

    index = plan.add(
        "session",
        f"{detail}: {', '.join(node.texts)}",
        node,
        inputs,
        lambda store, _: SessionAggregate(store, attribute, domain, gap, groups, aggregates, keys),
        describe,
        SessionAggregate,
        groups,
        True,
    )
    if keys:
        plan.grouped[index] = {START: keys, END: keys}
    return index


def compile_sliding(plan: Compiler, node: nodes.SlidingNode, inputs: tuple[int, ...]) -> int:
    """An aggregate that answers whenever it changes."""
    domain, attribute, range_ = node.domain, node.attribute, node.range
    groups, calls = node.groups, node.calls
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    detail = f"range {domain.spell(range_)}, on change, on {attribute}"
    if groups:
        detail += f", by {', '.join(groups)}"
    return plan.add(
        "sliding",
        f"{detail}: {', '.join(node.texts)}",
        node,
        inputs,
        lambda store, _: SlidingAggregate(
            store, attribute, domain, range_, groups, calls, second(domain)
        ),
        lambda _: [{attribute: Demand.any_value()}],
        SlidingAggregate,
        groups,
        True,
    )


def compile_groups(plan: Compiler, node: nodes.GroupAggregateNode, inputs: tuple[int, ...]) -> int:
    """An aggregate per group, where groups end by progress."""
    domain = next(iter(node.progressing_keys.values()))
    groups, keys, aggregates = node.groups, dict(node.progressing_keys), node.aggregates
    served = {name: told for name in keys if (told := plan.serves(inputs[0], name, groups))}

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A group ends by any of its times, so one that is told per group is enough.
        return [
            {name: wish_of(Demand.any_value(), bool(served), asked(demands, name)) for name in keys}
        ]

    index = plan.add(
        "group",
        f"by {', '.join(node.groups)}: {', '.join(node.texts)}",
        node,
        inputs,
        lambda store, _: GroupAggregate(store, groups, keys, aggregates, second(domain), served),
        describe,
        GroupAggregate,
        node.groups,
        True,
    )
    plan.grouped[index] = served
    return index
