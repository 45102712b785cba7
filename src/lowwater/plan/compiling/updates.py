"""Queues of update streams, and joins of such, to operators."""

from __future__ import annotations

from functools import reduce
from operator import and_

import polars as pl

from lowwater.joins.shape import key_of
from lowwater.plan import nodes
from lowwater.plan.compiling.compiler import Compiler, passing
from lowwater.updates.newest import Newest, NewestJoin, NewestShape
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


def compile_newest_join(plan: Compiler, node: nodes.NewestJoinNode, inputs: tuple[int, ...]) -> int:
    """A join of the newest rows of two update streams."""
    names = dict(node.right_names)
    shape = NewestShape(
        (tuple(one for one, _ in node.on), tuple(names[two] for _, two in node.on)),
        (node.sides[0], tuple(names[name] for name in node.sides[1])),
        names,
        tuple(node.schema),
        _check(node),
    )
    detail = f"the newest of each {_equal(node.on)}" if node.on else "the newest of all"
    detail += f", {_equal(node.same)}" if node.same else ""
    detail += f", {node.residual.text}" if node.residual else ""
    return plan.add(
        "newestjoin",
        detail,
        node,
        inputs,
        lambda store, _: NewestJoin(store, shape),
        lambda _: [{}, {}],
        NewestJoin,
        tuple(one for one, _ in node.on),
        True,
    )


def _equal(pairs: tuple[tuple[str, str], ...]) -> str:
    return " and ".join(one if one == two else f"{one} = {two}" for one, two in pairs)


def _check(node: nodes.NewestJoinNode) -> pl.Expr | None:
    """What must hold of two rows beside their keys."""
    parts = []
    for one, two in node.same:
        dtype = node.inputs[0].schema[one]
        parts.append(key_of(one, dtype) == key_of(node.right_names[two], dtype))
    parts += [node.residual.polars] if node.residual else []
    return reduce(and_, parts) if parts else None


def add_newest(plan: Compiler, node: nodes.JoinNode, index: int) -> int:
    """Of the results of a join of update streams, those newer than what left of their key."""
    updates = node.updates
    assert updates is not None
    key, stamps = updates.key, node.stamps
    grouped = plan.grouped.get(index, {})
    index = plan.add(
        "newest",
        f"of each {', '.join(key)}" if key else "of all",
        node,
        (index,),
        lambda store, _: Newest(store, key, stamps),
        passing,
        Newest,
        key,
        True,
    )
    plan.grouped[index] = grouped
    return index
