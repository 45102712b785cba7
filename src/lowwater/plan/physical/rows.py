"""These functions compile sources, row-wise operators, unions, distinct and order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import polars as pl

from lowwater.errors import QueryError
from lowwater.operators.apply import Apply, ResultPromises
from lowwater.operators.distinct import Distinct
from lowwater.operators.rowwise import Derivation, Project, Select
from lowwater.operators.sort import Merge
from lowwater.operators.stamp import Stamp, StampPromises
from lowwater.operators.union import Union
from lowwater.plan import nodes
from lowwater.plan.builders.updates import sources
from lowwater.plan.main_time import lost_progress
from lowwater.plan.nodes import Node
from lowwater.plan.physical.compiler import (
    SLICES_PER_SPAN,
    Compile,
    Compiler,
    carried_past,
    demand_of,
    demand_on,
    same_demands,
    second,
    sort_demands,
)
from lowwater.plan.physical.operator import (
    ROWWISE,
    Build,
    Computation,
    Demands,
    GroupColumns,
    KernelOperator,
    SourceOperator,
    Traits,
    keyed,
    unchanged,
    united,
)
from lowwater.progress.contract import Ordered
from lowwater.progress.demand import Demand
from lowwater.progress.options import Every, Heartbeat, OnDemand, Timer
from lowwater.progress.spec import LatePolicy, StreamSpec
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import UNITS


def compile_source(plan: Compiler, node: nodes.SourceNode, _: tuple[int, ...]) -> int:
    """Compile a source; in the in-order shape a source that is not ordered is sorted."""
    spec = node.spec
    detail = f"{spec.name}: {spec.promise}"
    if node.time is None:
        return plan.add(SourceOperator(detail=detail, node=node))
    groups: GroupColumns = {}
    if spec.groups and spec.stamp == "external":
        groups = dict.fromkeys(filter(spec.promises, spec.contracts), spec.groups)
    contract, domain = spec.contracts[spec.time], spec.domains[spec.time]
    order = node.time if contract.in_order and not spec.key_columns else None
    index = plan.add(SourceOperator(detail=detail, node=node, groups=groups, order=order))
    if order is not None or not plan.in_order or id(node) in plan.numbered:
        return index
    slack = contract.top_slack(domain) or 0
    return plan.sort(node, index, node.time, max(slack // SLICES_PER_SPAN, second(domain)))


def compile_stamp(plan: Compiler, node: nodes.StampNode, inputs: tuple[int, ...]) -> int:
    """Compile the stamping of latent rows."""
    column, how = node.column, _stamping(node)
    before = {name: dtype for name, dtype in node.inputs[0].schema.items() if name != column}
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="stamp",
            detail=column,
            kernel=Stamp,
            build=lambda store, host: Stamp(store, column, host.now, how),
            describe=lambda _: [{}],
            traits=Traits(stateful=False, clocked=True, passes=unchanged(before)),
        )
    )


def _stamping(node: nodes.StampNode) -> StampPromises:
    """Return the promises about the time given to rows, as their latent streams declare them."""
    specs = [each.spec for each in sources(node) if each.spec.stamp == "latent"]
    (punctuate, *others) = dict.fromkeys(spec.punctuate for spec in specs) or (None,)
    if others:
        names = ", ".join(repr(spec.name) for spec in specs)
        raise QueryError(
            f"the latent streams {names} are stamped together, so their time is promised together:"
            " give all of them the same punctuate="
        )
    step = punctuate.step if isinstance(punctuate, Every) else None
    domain = node.progress[node.column].domain
    return StampPromises(
        1 if step is None else domain.ticks(step, "every(...)"),
        isinstance(punctuate, Timer),
        any(isinstance(spec.idle, OnDemand) for spec in specs),
        any(isinstance(spec.idle, Heartbeat) for spec in specs),
    )


def compile_filter(plan: Compiler, node: nodes.FilterNode, inputs: tuple[int, ...]) -> int:
    """Compile a filter."""

    def selecting(expressions: Sequence[pl.Expr], _: frozenset[str] | None) -> Build:
        (predicate,) = expressions
        return lambda store, _: Select(store, predicate)

    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="filter",
            detail=node.predicate.text,
            kernel=Select,
            build=selecting([node.predicate.polars], None),
            describe=same_demands,
            traits=replace(ROWWISE, passes=unchanged(node.schema)),
            groups=plan.operators[inputs[0]].groups,
            order=plan.operators[inputs[0]].order,
            computation=Computation((node.predicate,), selecting, filters=True),
            floor=node.floor,
        )
    )


def compile_project(plan: Compiler, node: nodes.ProjectNode, inputs: tuple[int, ...]) -> int:
    """Compile a projection."""
    names = [name for name, _ in node.items]
    derived, copied = dict(node.derived), dict(node.copied)
    if node.updates is not None:  # a join of newest rows promises its times jointly alone
        times = [copied[name] for name in node.inputs[0].stamps if name in copied]
        before = {out: name for name, out in copied.items()}
        derived = {out: Derivation(((before[out], 0),)) for out in times} | derived
    more = []
    if id(node) in plan.numbered:
        more.append(pl.col(SEQUENCE))
        derived[SEQUENCE] = Derivation(((SEQUENCE, 0),))

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        used = [(derived[name], demand) for name, demand in demands.items() if name in derived]
        own = (
            {
                source: demand.unrounded(each.bucket, each.numbered)
                .unscaled(each.scale)
                .shifted(shift)
            }
            for each, demand in used
            for source, shift in each.sources
        )
        return [united(*own)]

    def projecting(expressions: Sequence[pl.Expr], awaited: frozenset[str] | None) -> Build:
        columns = [each.alias(name) for name, each in zip(names, expressions, strict=True)] + more
        useful = {n: each for n, each in derived.items() if awaited is None or n in awaited}
        return lambda store, _: Project(store, columns, useful, copied, derived)

    items = tuple(item for _, item in node.items)
    groups = plan.operators[inputs[0]].groups
    order = plan.operators[inputs[0]].order
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="project",
            detail=", ".join(
                name if item.text == name else f"{item.text} AS {name}" for name, item in node.items
            ),
            kernel=Project,
            build=projecting([each.polars for each in items], None),
            describe=describe,
            traits=replace(ROWWISE, passes=tuple((out, (name,)) for name, out in copied.items())),
            groups={
                name: tuple(copied[key] for key in keys)
                for name, each in derived.items()
                if each.only and (keys := groups.get(each.only)) and set(keys) <= set(copied)
            },
            order=next(
                (n for n, each in node.derived.items() if [s for s, _ in each.sources] == [order]),
                None,
            ),
            computation=Computation(items, projecting),
        )
    )


def compile_apply(plan: Compiler, node: nodes.ApplyNode, inputs: tuple[int, ...]) -> int:
    """Compile a user's function, whose rows are checked against the punctuation of its input."""
    name = getattr(node.function, "__name__", "function")
    kept = frozenset(node.progress)
    function, schema = node.function, dict(node.schema)

    def narrow(awaited: frozenset[str]) -> Build:
        held = _held(node, awaited & kept)
        return lambda store, host: Apply(store, function, schema, kept, held, host)

    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="apply",
            detail=name,
            kernel=Apply,
            build=lambda store, host: Apply(store, function, schema, kept, host=host),
            describe=lambda demands: [{a: d for a, d in demands.items() if a in kept}],
            traits=replace(ROWWISE, checks=kept),
            order=plan.operators[inputs[0]].order,
            narrow=narrow,
        )
    )


def _held(node: nodes.ApplyNode, attributes: frozenset[str]) -> ResultPromises | None:
    """Return the promises that a function's rows must keep; None if no consumer uses any."""
    usable = frozenset(name for name in attributes if not node.progress[name].nullable)
    if not usable:
        return None
    specs = [each.spec for each in sources(node)]
    first, alone = specs[0], len(specs) == 1
    units = {rate: unit for unit, rate in UNITS.items()}
    rates = {node.progress[name].domain.ticks_per_second for name in usable}
    if len(rates & units.keys()) != 1 and any(node.schema[name].is_integer() for name in usable):
        return None
    main = node.time if node.time in usable else min(usable)
    names = (main, *sorted(usable))
    declared = first.contracts if alone else {}
    ticks = {n: declared[n].top_slack(first.domains[n]) for n in names if n in declared}
    plain = {n: Ordered() if ticks.get(n) is None else declared[n] for n in names}
    spec = StreamSpec(
        name=first.name,
        schema=dict(node.schema),
        time=main,
        contracts=plain,
        unit=units.get(next(iter(rates)), "s"),
        late=_policy(specs),
    )
    one_channel = first.stamp == "external" and not first.key_columns
    slack = {
        name: each
        for name, each in ticks.items()
        if one_channel and each is not None and _same(node.inputs[0], name)
    }
    given = first.row_schema
    shown = tuple(name for name, dtype in node.schema.items() if given.get(name, dtype) == dtype)
    return ResultPromises(spec, usable, slack, shown)


def _policy(specs: list[StreamSpec]) -> LatePolicy:
    """Return the strictest ``late=`` of some streams, for rows that a function made late."""
    policies = {spec.late for spec in specs}
    if "fail" in policies:
        return "fail"
    return "drop" if policies == {"drop"} else "side"


def _same(node: Node, column: str) -> bool:
    """Return True if a column has the values it has in the source."""
    if isinstance(node, nodes.SourceNode):
        return column in node.spec.contracts
    if isinstance(node, nodes.ProjectNode) and node.copied.get(column) != column:
        return False
    rowwise = isinstance(node, nodes.FilterNode | nodes.ProjectNode)
    return rowwise and _same(node.inputs[0], column)


def compile_union(plan: Compiler, node: nodes.UnionNode, inputs: tuple[int, ...]) -> int:
    """Compile a union; in the in-order shape a merge by time."""
    ports = len(inputs)
    if not plan.in_order or node.time is None:
        return plan.add(
            KernelOperator(
                node=node,
                inputs=inputs,
                name="union",
                detail=f"{ports} inputs, {_time_words(node)}",
                kernel=Union,
                build=lambda store, _: Union(store, ports),
                # A group in the punctuation of one input may be unknown to another, whose
                # punctuation on the whole stream is then its only bound.
                describe=lambda demands: (
                    [{a: d.with_linear(True) for a, d in demands.items()}] * ports
                ),
                traits=Traits(
                    stateful=False, forwards=True, alike=True, passes=unchanged(node.schema, ports)
                ),
                groups=_common_groups([plan.operators[each].groups for each in inputs]),
                remarks=[lambda *_: list(lost_progress(node))],
            )
        )
    time, domain = node.time, node.progress[node.time].domain
    inputs = tuple(
        plan.in_order_by(each, index, time) for each, index in zip(node.inputs, inputs, strict=True)
    )
    carried = carried_past(node, time)
    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="merge",
            detail=f"{ports} inputs by {time}",
            kernel=Merge,
            build=lambda store, _: Merge(store, ports, time, domain, second(domain), carried),
            describe=lambda demands: [sort_demands(time, carried, demands) for _ in range(ports)],
            traits=Traits(alike=True, buffers=True, passes=unchanged(node.schema, ports)),
            order=time,
            remarks=[lambda *_: list(lost_progress(node))],
        )
    )


def _common_groups(inputs: Sequence[GroupColumns]) -> GroupColumns:
    """Return the attributes on which inputs emit punctuation per group, if all name the groups by
    the same columns."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for each in inputs:
        for attribute, keys in each.items():
            found.setdefault(attribute, set()).add(keys)
    return {attribute: keys.pop() for attribute, keys in found.items() if len(keys) == 1}


def _time_words(node: nodes.UnionNode) -> str:
    """Return the main time of a union, in words."""
    if node.time is not None:
        return f"time {node.time}"
    return f"no main time (promised by all: {', '.join(node.progress) or 'none'})"


def compile_distinct(plan: Compiler, node: nodes.DistinctNode, inputs: tuple[int, ...]) -> int:
    """Compile the removal of duplicates."""
    domain = node.inputs[0].progress[node.attribute].domain
    slice_ticks = second(domain)
    key, attribute = node.key, node.attribute
    progress = node.inputs[0].progress
    progressing = {n: progress[n].domain for n in key if n in progress and not progress[n].nullable}
    grouped = bool(plan.usable_groups(inputs[0], attribute, key))

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        own = {
            name: demand_of(Demand.grid(second(kind)), grouped, demand_on(demands, name))
            for name, kind in progressing.items()
        }
        return [united(demands, own)]

    return plan.add(
        KernelOperator(
            node=node,
            inputs=inputs,
            name="distinct",
            detail=", ".join(node.key),
            kernel=Distinct,
            build=lambda store, _: Distinct(
                store, key, attribute, domain, slice_ticks, progressing
            ),
            describe=describe,
            traits=Traits(
                passes=unchanged(node.schema),
                together=keyed(key),
                alike=True,
            ),
            groups=plan.operators[inputs[0]].groups,
            order=plan.operators[inputs[0]].order,
            remarks=[lambda *_: [f"forgets by promises on: {alone_or_jointly(progressing)}"]],
        )
    )


def alone_or_jointly(names: Mapping[str, object]) -> str:
    """Return in words the attributes whose punctuation is used, and that it may be joint."""
    return next(iter(names)) if len(names) == 1 else f"{' or '.join(names)}, alone or jointly"


def compile_order(plan: Compiler, node: nodes.OrderNode, inputs: tuple[int, ...]) -> int:
    """Compile rows in order."""
    return plan.sort(node, inputs[0], node.attribute)


COMPILERS: Mapping[type[Node], Compile] = {
    nodes.SourceNode: compile_source,
    nodes.StampNode: compile_stamp,
    nodes.FilterNode: compile_filter,
    nodes.ProjectNode: compile_project,
    nodes.ApplyNode: compile_apply,
    nodes.UnionNode: compile_union,
    nodes.DistinctNode: compile_distinct,
    nodes.OrderNode: compile_order,
}
