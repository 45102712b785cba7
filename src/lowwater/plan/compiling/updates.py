"""Queues of update streams to operators."""

from __future__ import annotations

from lowwater.plan import nodes
from lowwater.plan.compiling.compiler import Compiler
from lowwater.updates.update_queue import UpdateQueue


def compile_update(plan: Compiler, node: nodes.UpdateNode, inputs: tuple[int, ...]) -> int:
    """The queue of the rows of one or several inputs."""
    by, schema, ports = node.by, dict(node.schema), len(inputs)
    assert node.time is not None
    names = [node.time, *(name for name in node.progress if name != node.time)]
    domains = {name: node.progress[name].domain for name in names}
    prefer, arrival = node.prefer, node.arrival
    detail = f"by {', '.join(by.key) or 'nothing: the newest row of all'}, {by.describe()}"
    return plan.add(
        "update",
        detail,
        node,
        inputs,
        lambda store, now: UpdateQueue(
            store, by, schema, domains, now, ports=ports, prefer=prefer, arrival=arrival
        ),
        lambda demands: [{a: d.made(True) for a, d in demands.items()} for _ in inputs],
        UpdateQueue,
        by.key,
        True,
    )
