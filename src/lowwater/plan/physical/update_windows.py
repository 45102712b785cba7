"""Windows of update streams to operators: a queue of windows, and the aggregate behind it."""

from __future__ import annotations

from lowwater.operators.group_aggregate import GroupAggregate
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.physical.compiler import Compiler, second, wish_of
from lowwater.plan.physical.operator import Demands
from lowwater.progress.demand import Demand
from lowwater.updates.options import PLAIN, Updates
from lowwater.updates.windows.append_windows import AppendWindows
from lowwater.updates.windows.update_windows import UpdateWindows


def compile_update_windows(
    plan: Compiler, node: nodes.WindowAggregateNode, by: Updates, inputs: tuple[int, ...]
) -> int:
    """A queue of which the newest window of each key leaves, and an aggregate of what leaves."""
    window, domain, time = node.window, node.domain, node.attribute
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], time),)
    keys = plan.serves(inputs[0], time, by.key) if by.schedule not in PLAIN else ()
    schema, arrival = dict(node.inputs[0].schema), node.arrival
    kernel = AppendWindows if by.schedule in PLAIN else UpdateWindows
    more = {"expire": update_builders.expire_of(by, domain)} if by.forgets else {}
    newest = f", {by.windows}" if kernel is UpdateWindows else ""
    queue = plan.add(
        "update windows",
        f"range {domain.spell(window.range)}, slide {domain.spell(window.slide)} on {time},"
        f" by {', '.join(by.key) or 'nothing: the newest window of all'}, {by.describe()}{newest}",
        node,
        inputs,
        lambda store, now: kernel(
            store, by, schema, time, domain, window, now, arrival, keys, **more
        ),
        lambda demands: [{time: wish_of(Demand.any_value(), bool(keys), demands.values())}],
        kernel,
        by.key,
        True,
    )
    edges = {START: domain, END: domain}
    groups, aggregates = (START, END, *node.groups), node.aggregates

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        wish = wish_of(Demand.any_value(), bool(keys), demands.values())
        return [{START: wish, END: wish}]

    told = {START: by.key, END: by.key} if keys else {}
    index = plan.add(
        "window",
        f"by {', '.join(groups)}: {', '.join(node.texts)}",
        node,
        (queue,),
        lambda store, _: GroupAggregate(store, groups, edges, aggregates, second(domain), told),
        describe,
        GroupAggregate,
        by.key,
        True,
    )
    if by.key and kernel is UpdateWindows:
        plan.grouped[index] = {START: by.key, END: by.key}
    return index
