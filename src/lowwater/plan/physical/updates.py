"""Queues of update streams, and joins of such, to operators."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_

import polars as pl

from lowwater.joins.shape import key_of
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.physical.compiler import Compiler, second
from lowwater.plan.physical.operator import Demands
from lowwater.progress.demand import Demand
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.newest_join import Newest, NewestJoin, NewestShape
from lowwater.updates.options import Updates
from lowwater.updates.update_queue import UpdateQueue


def compile_update(plan: Compiler, node: nodes.UpdateNode, inputs: tuple[int, ...]) -> int:
    """The queue of the rows of one or several inputs."""
    by, schema, ports = node.by, dict(node.schema), len(inputs)
    assert node.time is not None
    names = [node.time, *(name for name in node.progress if name != node.time)]
    domains = {name: node.progress[name].domain for name in names}
    prefer, arrival, time = node.prefer, node.arrival, node.time
    own = forgetting(by, domains[time])
    expire = update_builders.expire_of(by, domains[time])
    detail = f"by {', '.join(by.key) or 'nothing: the newest row of all'}, {by.describe()}"
    return plan.add(
        "update",
        detail,
        node,
        inputs,
        lambda store, now: UpdateQueue(
            store,
            by,
            schema,
            domains,
            now,
            ports=ports,
            prefer=prefer,
            arrival=arrival,
            expire=expire,
        ),
        lambda demands: [_with(demands, time, own) for _ in inputs],
        UpdateQueue,
        by.key,
        True,
    )


PIECES = 16
"""A key is forgotten at most this part of ``expire=`` after it has expired."""


def forgetting(by: Updates, domain: TimeDomain) -> Demand | None:
    """The marks by which a queue forgets keys, if it does."""
    if not by.forgets:
        return None
    expire = update_builders.expire_of(by, domain)
    steps = [] if expire is None else [max(1, expire // PIECES)]
    return Demand.grid(min([*steps, *([second(domain)] if by.delete_when else [])]))


def _with(demands: Demands, time: str, own: Demand | None) -> dict[str, Demand]:
    """What is wanted of an input: what is wanted of a queue, and what it needs itself."""
    found = {name: demand.made(True) for name, demand in demands.items()}
    if own is not None:
        found[time] = found[time] | own if time in found else own
    return found


def compile_newest_join(plan: Compiler, node: nodes.NewestJoinNode, inputs: tuple[int, ...]) -> int:
    """A join of the newest rows of two update streams."""
    names = dict(node.right_names)
    left, right = node.inputs
    shape = NewestShape(
        (tuple(one for one, _ in node.on), tuple(names[two] for _, two in node.on)),
        (node.sides[0], tuple(names[name] for name in node.sides[1])),
        names,
        tuple(node.schema),
        _check(node),
        (update_builders.lives(left, node.sides[0]), update_builders.lives(right, node.sides[1])),
        {inside: out for out, inside in node.merged.items()},
        update_builders.may_delete(node),
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
        lambda demands: _marks_of(node, shape, demands),
        NewestJoin,
        tuple(one for one, _ in node.on),
        True,
    )


def _marks_of(
    node: nodes.NewestJoinNode, shape: NewestShape, demands: Demands
) -> list[dict[str, Demand]]:
    """The marks by which rows of the other side end, if rows do here or behind."""
    wanted = [demands[name] for name in node.stamps if name in demands]
    steps = [max(1, life // PIECES) for side in shape.lives for life in side if life is not None]
    domains = [
        each.progress[name].domain
        for each, side in zip(node.inputs, node.sides, strict=True)
        for name in side
        if name in each.progress
    ]
    if shape.deletes:
        steps += map(second, domains)
    if steps:
        wanted.append(Demand.grid(min(steps)))
    if not wanted:
        return [{}, {}]
    wish = reduce(or_, wanted).made(True)
    return [dict.fromkeys(side, wish) for side in node.sides]


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


def _by_times(demands: Demands, node: nodes.JoinNode) -> dict[str, Demand]:
    """What is wanted of the results of a join, and the marks by which is forgotten what left."""
    wanted = dict(demands)
    for name in node.stamps:
        if name in node.progress:
            own = Demand.grid(second(node.progress[name].domain))
            wanted[name] = wanted[name] | own if name in wanted else own
    return wanted


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
        lambda demands: [_by_times(demands, node)],
        Newest,
        key,
        True,
    )
    plan.grouped[index] = grouped
    return index
