"""These functions compile queues and joins of update streams, with remarks on load."""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import and_, or_

import polars as pl

from lowwater.joins.shape import key_of
from lowwater.operators.identity import Identity
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.nodes import Node
from lowwater.plan.physical.compiler import Compile, Compiler, fixed_demands, second
from lowwater.plan.physical.operator import (
    Demands,
    KernelOperator,
    Traits,
    keyed,
    unchanged,
    united,
)
from lowwater.progress.demand import Demand
from lowwater.stream.duration import spell
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.newest_join import NewestFilter, NewestJoin, NewestShape
from lowwater.updates.options import PLAIN, Schedule, Updates
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.update_queue import UpdateQueue
from lowwater.updates.windows.append_windows import AppendWindows
from lowwater.updates.windows.update_windows import UpdateWindows
from lowwater.updates.windows.window_kernel import WindowedRows

PIECES = 16
"""The parts into which marks cut ``expire=``: a key is forgotten at most ``expire= / PIECES`` after
it has expired."""


# ---- queues ------------------------------------------------------------------------------------


def queued_rows(node: nodes.UpdateNode) -> QueuedRows:
    """Return the rows that arrive at a queue."""
    assert node.time is not None
    names = [node.time, *(name for name in node.progress if name != node.time)]
    domains = {name: node.progress[name].domain for name in names}
    expire = update_builders.expire_of(node.by, domains[node.time])
    return QueuedRows(
        dict(node.schema), domains, len(node.inputs), node.prefer, node.arrival, expire
    )


def compile_update(plan: Compiler, node: nodes.UpdateNode, inputs: tuple[int, ...]) -> int:
    """Compile the queue of the rows of one or several inputs."""
    by, schema, ports = node.by, dict(node.schema), len(inputs)
    assert node.time is not None
    time = node.time
    rows = queued_rows(node)
    own = _forgetting(by, rows.domains[time])
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="update",
            detail=f"by {', '.join(by.key) or 'nothing: the newest row of all'}, {by.describe()}",
            kernel=UpdateQueue,
            build=lambda store, host: UpdateQueue(store, by, rows, host),
            describe=lambda demands: [_with(demands, time, own) for _ in inputs],
            traits=Traits(
                passes=unchanged(schema, ports),
                together=keyed(by.key, ports),
                updates=True,
            ),
            remarks=[lambda *_: queue_remarks(node)],
        )
    )


def add_window_queue(
    plan: Compiler,
    node: nodes.WindowAggregateNode,
    by: Updates,
    inputs: tuple[int, ...],
    identities: tuple[Identity, ...],
) -> tuple[int, tuple[str, ...], type[AppendWindows | UpdateWindows]]:
    """Append a queue from which the newest window of each key leaves.

    Return its index, the columns that name the groups of the punctuation it uses, and its kernel.
    """
    window, domain, time = node.window, node.domain, node.attribute
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], time),)
    keys = plan.usable_groups(inputs[0], time, by.key) if by.schedule not in PLAIN else ()
    schema = dict(node.inputs[0].schema)
    expire = update_builders.expire_of(by, domain)
    rows = WindowedRows(schema, time, domain, window, node.arrival, keys, expire)
    kernel = AppendWindows if by.schedule in PLAIN else UpdateWindows
    detail = f"range {domain.spell(window.range)}, slide {domain.spell(window.slide)} on {time},"
    detail += f" by {', '.join(by.key) or 'nothing: the newest window of all'}, {by.describe()}"
    detail += f", {by.windows}" if kernel is UpdateWindows else ""
    queue = plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="update windows",
            detail=detail,
            kernel=kernel,
            build=lambda store, host: kernel(store, by, rows, host),
            describe=fixed_demands([time], Demand.any_value(), bool(keys)),
            traits=Traits(
                passes=unchanged(schema),
                together=keyed(by.key),
                updates=True,
                identities=identities,
            ),
            remarks=[lambda *_: _window_queue_remarks(node, by)],
        )
    )
    return queue, keys, kernel


def _forgetting(by: Updates, domain: TimeDomain) -> Demand | None:
    """Return the demand on the marks by which a queue forgets keys; None if it keeps all keys."""
    if not by.forgets:
        return None
    expire = update_builders.expire_of(by, domain)
    steps = [] if expire is None else [max(1, expire // PIECES)]
    return Demand.grid(min([*steps, *([second(domain)] if by.delete_when else [])]))


def _with(demands: Demands, time: str, own: Demand | None) -> dict[str, Demand]:
    """Return the demands on an input of a queue: those on its output, and ``own`` on ``time``."""
    found = {name: demand.with_linear(True) for name, demand in demands.items()}
    return united(found, {} if own is None else {time: own})


# ---- joins -------------------------------------------------------------------------------------


def compile_newest_join(plan: Compiler, node: nodes.NewestJoinNode, inputs: tuple[int, ...]) -> int:
    """Compile a join of the newest rows of two update streams."""
    names = dict(node.right_names)
    left, right = node.inputs
    shape = NewestShape(
        (tuple(one for one, _ in node.on), tuple(names[two] for _, two in node.on)),
        (node.sides[0], tuple(names[name] for name in node.sides[1])),
        names,
        tuple(node.schema),
        _check(node),
        (
            update_builders.lifetimes(left, node.sides[0]),
            update_builders.lifetimes(right, node.sides[1]),
        ),
        {inside: out for out, inside in node.merged.items()},
        update_builders.may_delete(node),
    )
    detail = f"the newest of each {_equal(node.on)}" if node.on else "the newest of all"
    detail += f", {_equal(node.same)}" if node.same else ""
    detail += f", {node.residual.text}" if node.residual else ""
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="newestjoin",
            detail=detail,
            kernel=NewestJoin,
            build=lambda store, _: NewestJoin(store, shape),
            describe=lambda demands: _join_demands(node, shape, demands),
            traits=Traits(
                passes=tuple(
                    (name, (one, two))
                    for one, two in node.on
                    for name in (one, names[two])
                    if name in node.schema
                ),
                together=node.on,
                updates=True,
            ),
            remarks=[lambda *_: _newest_join_remarks(node)],
        )
    )


def _join_demands(
    node: nodes.NewestJoinNode, shape: NewestShape, demands: Demands
) -> list[dict[str, Demand]]:
    """Return the demands on the times of both sides, by whose marks rows of the other side
    expire."""
    found = [demands[name] for name in node.stamps if name in demands]
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
        found.append(Demand.grid(min(steps)))
    if not found:
        return [{}, {}]
    demand = reduce(or_, found).with_linear(True)
    return [dict.fromkeys(side, demand) for side in node.sides]


def _equal(pairs: tuple[tuple[str, str], ...]) -> str:
    return " and ".join(one if one == two else f"{one} = {two}" for one, two in pairs)


def _check(node: nodes.NewestJoinNode) -> pl.Expr | None:
    """Return the condition on two rows beside their keys."""
    parts = []
    for one, two in node.same:
        dtype = node.inputs[0].schema[one]
        parts.append(key_of(one, dtype) == key_of(node.right_names[two], dtype))
    parts += [node.residual.polars] if node.residual else []
    return reduce(and_, parts) if parts else None


def add_newest(plan: Compiler, node: nodes.JoinNode, index: int) -> int:
    """Append a filter of a join's results: it keeps each that is newer than the last of its key."""
    updates = node.updates
    assert updates is not None
    key, stamps = updates.key, node.stamps
    return plan.add(
        KernelOperator(
            node=node,
            inputs=(index,),
            name="newest",
            detail=f"of each {', '.join(key)}" if key else "of all",
            kernel=NewestFilter,
            build=lambda store, _: NewestFilter(store, key, stamps),
            describe=lambda demands: [_by_times(demands, node)],
            traits=Traits(
                passes=unchanged(node.schema),
                together=keyed(key),
                updates=True,
            ),
            groups=plan.operators[index].groups,
        )
    )


def _by_times(demands: Demands, node: nodes.JoinNode) -> dict[str, Demand]:
    """Return the demands on results of a join: those on its output, and the marks by which it
    forgets keys."""
    times = [name for name in node.stamps if name in node.progress]
    own = {name: Demand.grid(second(node.progress[name].domain)) for name in times}
    return united(demands, own)


COMPILERS: Mapping[type[Node], Compile] = {
    nodes.UpdateNode: compile_update,
    nodes.NewestJoinNode: compile_newest_join,
}


# ---- remarks -----------------------------------------------------------------------------------


def queue_remarks(node: nodes.UpdateNode, following: str | None = None) -> list[str]:
    """Return lines on what a queue of rows does under load; ``following`` is the line on what it
    serves next, if not that of its schedule."""
    lines = [*_given_up(node.by, "row", following), *_of_several(node), _budget(node.by)]
    return [*lines, _kept(node.by), *_run_on_every_row(node, "union")]


def _window_queue_remarks(node: nodes.WindowAggregateNode, by: Updates) -> list[str]:
    kind = "complete window" if by.windows == "lazy" else "window that began"
    return [*_given_up(by, kind), _budget(by), _kept(by), *_run_on_every_row(node, "window")]


def _newest_join_remarks(node: nodes.NewestJoinNode) -> list[str]:
    return [
        f"keeps: the newest row {_of_each(node.updates)} of both inputs{_how_long(node)}",
        f"shows: the newest pair {_of_each(node.updates)}; which older ones are shown before it"
        " depends on which rows are read together",
    ]


_NEXT: dict[Schedule, str] = {
    "in-place": "the key that has waited longest",
    "fifo": "the key whose newest update has waited longest",
    "linecutting": "a key whose rate is below 1 / (cost * waiting keys), or else the one that has"
    " waited longest",
    "rare-first": "a key that is rarely updated, or else the one that has waited longest",
    "auto": "the key whose service is worth most",
}


def _kept(by: Updates) -> str:
    """Return the line that says how long keys are kept."""
    if not by.forgets:
        return "keys are kept for ever; expire= or delete_when= bounds that"
    ends = []
    if by.expire is not None:
        ends.append(f"{spell(by.expire)} after their newest row, by the mark")
    if by.delete_when is not None:
        ends.append(f"when a row says {by.delete_when}")
    return f"keys are forgotten {', or '.join(ends)}; their waiting rows are worked on first"


def _how_long(node: nodes.NewestJoinNode) -> str:
    """Return how long a join of newest rows keeps them."""
    both = zip(node.inputs, node.sides, strict=True)
    ends = [
        any(life is not None for life in update_builders.lifetimes(each, side))
        for each, side in both
    ]
    if all(ends):
        return ", until they expire"
    if any(ends):
        left = "left" if not ends[0] else "right"
        return f", until they expire, but those of the {left} for ever; expire= bounds that"
    if update_builders.may_delete(node):
        return ", until their key is deleted"
    return ", for ever; expire= bounds that"


def _run_on_every_row(node: Node, kind: str) -> list[str]:
    """Return a line on the functions that run on every row because they stand before the queue."""
    names = [getattr(each.function, "__name__", "function") for each in _applied(node)]
    if not names:
        return []
    behind = (
        f"apply it behind the {kind}"
        if len(node.inputs) > 1 or kind == "window"
        else "apply it behind updates()"
    )
    return [
        f"before the queue, on every row: {', '.join(names)}; to run it on rows that leave the"
        f" queue alone, {behind}"
    ]


def _applied(node: Node) -> list[nodes.ApplyNode]:
    below = [found for each in node.inputs for found in _applied(each)]
    return [*below, node] if isinstance(node, nodes.ApplyNode) else below


def _of_each(by: Updates | None) -> str:
    return f"of each {' and '.join(by.key)}" if by is not None and by.key else "of all"


def _given_up(by: Updates, kind: str, next_is: str | None = None) -> list[str]:
    if by.schedule == "append":
        return ["under load: all rows wait for their turn"]
    if by.schedule == "shedding":
        return ["under load: a share is dropped at random"]
    following = "next is the one whose waiting, times its weight, is greatest"
    if not by.weights:
        following = f"next is {_NEXT[by.schedule]}"
    following = next_is or following
    lines = [f"under load: the newest {kind} {_of_each(by)} waits, older ones are given up"]
    if by.complete_within is not None:
        lines[0] += f", but only while a row would have to wait {spell(by.complete_within)}"
    return [*lines, following] if by.key or next_is else lines


def _of_several(node: nodes.UpdateNode) -> list[str]:
    if len(node.inputs) == 1:
        return []
    line = f"of rows with one key and {node.time} the first is shown"
    if node.prefer is not None:
        line += f", or that of {_names(node.inputs[node.prefer])} if it comes while the first waits"
    return [line]


def _names(node: Node) -> str:
    return " and ".join(source.spec.name for source in update_builders.sources(node))


def _budget(by: Updates) -> str:
    if by.budget is None:
        return "a batch on Spark: as much as keeps answers freshest"
    return f"a batch on Spark: {spell(by.budget)} of work"
