"""Sources, row-wise operators, unions, distinct and order to operators."""

from __future__ import annotations

import polars as pl

from lowwater.errors import QueryError
from lowwater.operators.distinct import Distinct
from lowwater.operators.rowwise import Derivation, Project, Select
from lowwater.operators.sort import Merge
from lowwater.operators.stamp import Stamp, Told
from lowwater.operators.union import Union
from lowwater.plan import nodes
from lowwater.plan.physical.compiler import (
    SLICES_PER_SPAN,
    Compiler,
    asked,
    carried_past,
    passing,
    second,
    sorting,
    wish_of,
)
from lowwater.plan.physical.operator import Build, Demands
from lowwater.progress.contract import Every, Heartbeat, OnDemand, Ordered, Timer, Within
from lowwater.progress.demand import Demand
from lowwater.progress.spec import StreamSpec
from lowwater.stream.element import SEQUENCE


def compile_source(plan: Compiler, node: nodes.SourceNode, _: tuple[int, ...]) -> int:
    """A source; in the in-order shape one that is not ordered is sorted."""
    spec = node.spec
    index = plan.add("source", f"{spec.name}: {spec.promise}", node, (), None, lambda _: [], None)
    contract = spec.contracts.get(spec.time)
    if node.time is None:
        return index
    if spec.groups and spec.stamp == "external":
        plan.grouped[index] = dict.fromkeys(filter(spec.promises, spec.contracts), spec.groups)
    if isinstance(contract, Ordered) and not spec.key_columns:
        plan.ordered[index] = node.time
    elif plan.in_order and id(node) not in plan.numbered:
        domain = spec.domains[spec.time]
        slack = domain.ticks(contract.bound) if isinstance(contract, Within) else 0
        index = plan.sort(node, index, node.time, max(slack // SLICES_PER_SPAN, second(domain)))
    return index


def compile_stamp(plan: Compiler, node: nodes.StampNode, inputs: tuple[int, ...]) -> int:
    """Times for latent rows."""
    column, how = node.column, _told(node)
    return plan.add(
        "stamp",
        column,
        node,
        inputs,
        lambda store, now: Stamp(store, column, now, how),
        lambda _: [{}],
        Stamp,
    )


def _told(node: nodes.StampNode) -> Told:
    """When the time given to rows is promised: as the latent streams before it say."""
    specs: list[StreamSpec] = []
    waiting = list(node.inputs)
    while waiting:
        each = waiting.pop()
        waiting += each.inputs
        if isinstance(each, nodes.SourceNode) and each.spec.stamp == "latent":
            specs.append(each.spec)
    (punctuate, *others) = dict.fromkeys(spec.punctuate for spec in specs) or (None,)
    if others:
        names = ", ".join(repr(spec.name) for spec in specs)
        raise QueryError(
            f"the latent streams {names} are stamped together, so their time is promised together:"
            " give all of them the same punctuate="
        )
    step = punctuate.step if isinstance(punctuate, Every) else None
    domain = node.progress[node.column].domain
    return Told(
        1 if step is None else domain.ticks(step, "every(...)"),
        isinstance(punctuate, Timer),
        any(isinstance(spec.idle, OnDemand) for spec in specs),
        any(isinstance(spec.idle, Heartbeat) for spec in specs),
    )


def compile_filter(plan: Compiler, node: nodes.FilterNode, inputs: tuple[int, ...]) -> int:
    """Rows that satisfy a predicate."""
    predicate = node.predicate.polars
    index = plan.add(
        "filter",
        node.predicate.text,
        node,
        inputs,
        lambda store, _: Select(store, predicate),
        passing,
        Select,
    )
    plan.grouped[index] = plan.grouped.get(inputs[0], {})
    return index


def compile_project(plan: Compiler, node: nodes.ProjectNode, inputs: tuple[int, ...]) -> int:
    """Columns computed from columns."""
    expressions = [item.polars.alias(name) for name, item in node.items]
    derived, copied = dict(node.derived), dict(node.copied)
    if node.updates is not None:  # a join of newest rows promises its times jointly alone
        times = [copied[name] for name in node.inputs[0].stamps if name in copied]
        names = {out: name for name, out in copied.items()}
        derived = {out: Derivation(((names[out], 0),)) for out in times} | derived
    if id(node) in plan.numbered:
        expressions.append(pl.col(SEQUENCE))
        derived[SEQUENCE] = Derivation(((SEQUENCE, 0),))
    detail = ", ".join(
        name if item.text == name else f"{item.text} AS {name}" for name, item in node.items
    )

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        wanted: dict[str, Demand] = {}
        for name, demand in demands.items():
            for source, shift in derived[name].sources if name in derived else ():
                bucket, numbered = derived[name].bucket, derived[name].numbered
                wish = demand.unrounded(bucket, numbered).shifted(shift)
                wanted[source] = wanted[source] | wish if source in wanted else wish
        return [wanted]

    def telling(awaited: frozenset[str]) -> Build:
        wanted = {name: each for name, each in derived.items() if name in awaited}
        return lambda store, _: Project(store, expressions, wanted, copied)

    index = plan.add(
        "project",
        detail,
        node,
        inputs,
        lambda store, _: Project(store, expressions, derived, copied),
        describe,
        Project,
    )
    plan.telling[index] = telling
    told = plan.grouped.get(inputs[0], {})
    plan.grouped[index] = {
        name: tuple(copied[key] for key in told[source])
        for name, each in derived.items()
        for source in [each.only]
        if source in told and set(told[source]) <= set(copied)
    }
    return index


def compile_union(plan: Compiler, node: nodes.UnionNode, inputs: tuple[int, ...]) -> int:
    """Rows of several inputs; in the in-order shape merged by time."""
    ports = len(inputs)
    if not plan.in_order or node.time is None:
        index = plan.add(
            "union",
            f"{ports} inputs, {_goes_by(node)}",
            node,
            inputs,
            lambda store, _: Union(store, ports),
            # A group one input speaks of may be unknown to another, whose promise on the whole
            # stream is then all that bounds it.
            lambda demands: [{a: d.made(True) for a, d in demands.items()} for _ in range(ports)],
            Union,
        )
        told = [plan.grouped.get(each, {}) for each in inputs]
        for attribute in dict.fromkeys(name for each in told for name in each):
            keys = {each[attribute] for each in told if attribute in each}
            if len(keys) == 1:
                plan.grouped.setdefault(index, {})[attribute] = keys.pop()
        return index
    time, domain = node.time, node.progress[node.time].domain
    inputs = tuple(
        plan.in_order_by(each, index, time) for each, index in zip(node.inputs, inputs, strict=True)
    )
    carried = carried_past(node, time)
    index = plan.add(
        "merge",
        f"{ports} inputs by {time}",
        node,
        inputs,
        lambda store, _: Merge(store, ports, time, domain, second(domain), carried),
        lambda demands: [sorting(time, carried, demands) for _ in range(ports)],
        Merge,
        (),
        True,
    )
    plan.ordered[index] = time
    return index


def _goes_by(node: nodes.UnionNode) -> str:
    """The time of a union, in words."""
    if node.time is not None:
        return f"time {node.time}"
    return f"no time of all (promised by all: {', '.join(node.progress) or 'none'})"


def compile_distinct(plan: Compiler, node: nodes.DistinctNode, inputs: tuple[int, ...]) -> int:
    """One row a key."""
    domain = node.inputs[0].progress[node.attribute].domain
    slice_ticks = second(domain)
    key, attribute = node.key, node.attribute
    progress = node.inputs[0].progress
    progressing = {n: progress[n].domain for n in key if n in progress and not progress[n].nullable}
    served = bool(plan.serves(inputs[0], attribute, key))

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        wanted = dict(demands)
        for name, kind in progressing.items():
            own = wish_of(Demand.grid(second(kind)), served, asked(demands, name))
            wanted[name] = demands[name] | own if name in demands else own
        return [wanted]

    index = plan.add(
        "distinct",
        ", ".join(node.key),
        node,
        inputs,
        lambda store, _: Distinct(store, key, attribute, domain, slice_ticks, progressing),
        describe,
        Distinct,
        node.key,
        True,
    )
    plan.grouped[index] = plan.grouped.get(inputs[0], {})
    return index


def compile_order(plan: Compiler, node: nodes.OrderNode, inputs: tuple[int, ...]) -> int:
    """Rows in order."""
    return plan.sort(node, inputs[0], node.attribute)
