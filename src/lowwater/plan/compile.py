"""Logical nodes to physical operators, in the out-of-order shape or the in-order one.

The in-order shape (IOP) is the same kernels with order put in: disordered sources are sorted,
unions merge, joins sort their output. It is the baseline the out-of-order shape is measured by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.joins.band_join import BandJoin
from lowwater.joins.half_join import HalfJoin
from lowwater.joins.reach import Band
from lowwater.joins.shape import JoinShape
from lowwater.operators.distinct import Distinct
from lowwater.operators.flush import PIECES, Immediate, Slow
from lowwater.operators.group_aggregate import GroupAggregate
from lowwater.operators.kernel import Kernel
from lowwater.operators.low_table import LowTable
from lowwater.operators.rowwise import Apply, Derivation, Project, Select
from lowwater.operators.session_aggregate import SessionAggregate
from lowwater.operators.sort import Merge, Sort
from lowwater.operators.stamp import Stamp
from lowwater.operators.union import Union
from lowwater.operators.window_aggregate import END, HighAggregate, WindowAggregate
from lowwater.operators.window_state import PANE, START
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical import Build, Demands, Describe, Operator, PhysicalPlan
from lowwater.progress.contract import Ordered, Within
from lowwater.progress.describe import Demand
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import TimeDomain

PlanShape = Literal["out-of-order", "in-order"]
Grouped = dict[str, tuple[str, ...]]
SLICES_PER_SPAN = 8
"""A join keeps its rows in this many slices a reach (of a second at least), so that purging
drops whole slices and meeting reads few."""


def compile_plan(root: Node, shape: PlanShape = "out-of-order") -> PhysicalPlan:
    """Turn a query into operators."""
    if shape not in ("out-of-order", "in-order"):
        raise OptionError(f"plan= is 'out-of-order' or 'in-order', not {shape!r}")
    _refuse_same_names(root)
    compiler = _Compiler(shape == "in-order", _numbered_nodes(root))
    last = compiler.compile(root)
    if compiler.in_order and isinstance(root, nodes.JoinNode) and root.time is not None:
        compiler.sort(root, last, root.time)
    plan = PhysicalPlan(tuple(compiler.operators), dict(root.schema), compiler.in_order)
    return replace(plan, operators=tuple(compiler.quiet(plan, each) for each in plan.operators))


def _refuse_same_names(root: Node) -> None:
    """Streams are told apart by name, in errors, metrics and the side output."""
    seen: dict[str, Node] = {}

    def walk(node: Node) -> None:
        if isinstance(node, nodes.SourceNode) and seen.setdefault(node.spec.name, node) is not node:
            raise QueryError(f"two streams are named {node.spec.name!r}; give each its own name=")
        for each in node.inputs:
            walk(each)

    walk(root)


def _numbered_nodes(root: Node) -> set[int]:
    """The nodes whose rows must carry their sequence number, by identity."""
    carried: set[int] = set()

    def carry(node: Node) -> None:
        carried.add(id(node))
        for each in node.inputs:
            carry(each)

    def walk(node: Node) -> None:
        if isinstance(node, nodes.WindowAggregateNode) and node.attribute == SEQUENCE:
            carry(node.inputs[0])
        for each in node.inputs:
            walk(each)

    walk(root)
    return carried


@dataclass
class _Compiler:
    in_order: bool
    numbered: set[int]
    operators: list[Operator] = field(default_factory=list)
    done: dict[int, int] = field(default_factory=dict)
    ordered: dict[int, str | None] = field(default_factory=dict)
    """In the in-order shape: the attribute an operator's rows leave ordered by."""
    grouped: dict[int, Grouped] = field(default_factory=dict)
    """The attributes on which an operator tells promises per group, with the key columns."""
    telling: dict[int, Callable[[frozenset[str]], Build]] = field(default_factory=dict)
    """Operators that need not tell all they could: how to build them to tell of some attributes."""

    def quiet(self, plan: PhysicalPlan, operator: Operator) -> Operator:
        """An operator that tells only what some consumer can use; the result tells everything."""
        if operator.index not in self.telling or operator is plan.result:
            return operator
        build = self.telling[operator.index](frozenset(plan.demands[operator.index]))
        return replace(operator, build=build)

    def compile(self, node: Node) -> int:
        """The index of the operator that gives a node's rows; a shared node is compiled once."""
        if id(node) not in self.done:
            inputs = tuple(self._without_numbers(each, node) for each in node.inputs)
            self.done[id(node)] = _COMPILERS[type(node)](self, node, inputs)
            self._inherit_order(node, inputs)
        return self.done[id(node)]

    def _inherit_order(self, node: Node, inputs: tuple[int, ...]) -> None:
        """Row-wise operators leave the order of their input as it is."""
        index = self.done[id(node)]
        if isinstance(node, nodes.FilterNode | nodes.ApplyNode | nodes.DistinctNode):
            self.ordered[index] = self.ordered.get(inputs[0])
        if isinstance(node, nodes.ProjectNode):
            before = self.ordered.get(inputs[0])
            same = [n for n, d in node.derived.items() if [s for s, _ in d.sources] == [before]]
            self.ordered[index] = same[0] if same else None

    def _without_numbers(self, source: Node, consumer: Node) -> int:
        """An input; its sequence numbers are taken off where the consumer does not need them."""
        index = self.compile(source)
        needs = id(consumer) in self.numbered or (
            isinstance(consumer, nodes.WindowAggregateNode) and consumer.attribute == SEQUENCE
        )
        if id(source) not in self.numbered or needs:
            return index
        columns = [pl.col(name) for name in source.schema]
        derived = {name: Derivation(((name, 0),)) for name in source.progress}
        copied = {name: name for name in source.schema}
        told = self.grouped.get(index, {})
        index = self.add(
            "unnumber",
            "",
            source,
            (index,),
            lambda store, _: Project(store, columns, derived, copied),
            _pass,
            Project,
        )
        self.grouped[index] = told
        return index

    def add(
        self,
        name: str,
        detail: str,
        node: Node,
        inputs: tuple[int, ...],
        build: Build | None,
        describe: Describe,
        kernel: type[Kernel] | None,
        partition: tuple[str, ...] | None = None,
        stateful: bool = False,
    ) -> int:
        """Append an operator and give its index."""
        index = len(self.operators)
        rule = kernel.rule if kernel else "promises follow from the contract"
        self.operators.append(
            Operator(index, name, detail, inputs, build, describe, rule, partition, stateful, node)
        )
        return index

    def sort(self, node: Node, index: int, attribute: str, slice_ticks: int = 0) -> int:
        """Put order on an operator's output."""
        domain = node.progress[attribute].domain
        slice_ticks = slice_ticks or _second(domain)
        carried = _carried(node, attribute)
        index = self.add(
            "sort",
            f"by {attribute}",
            node,
            (index,),
            lambda store, _: Sort(store, attribute, domain, slice_ticks, carried),
            lambda demands: [_sorting(attribute, carried, demands)],
            Sort,
            (),
            True,
        )
        self.ordered[index] = attribute
        return index

    def in_order_by(self, node: Node, index: int, attribute: str) -> int:
        """In the in-order shape, an input ordered by what its consumer goes by."""
        if not self.in_order or self.ordered.get(index) == attribute:
            return index
        return self.sort(node, index, attribute)

    def serves(self, index: int, attribute: str, columns: Sequence[str]) -> tuple[str, ...]:
        """The keys of an operator's promises per group, if who keeps ``columns`` apart can use
        them; none otherwise."""
        keys = self.grouped.get(index, {}).get(attribute, ())
        return keys if set(keys) <= set(columns) else ()


def _pass(demands: Demands) -> list[dict[str, Demand]]:
    return [dict(demands)]


def _carried(node: Node, time: str) -> dict[str, int]:
    """The columns that still progress when rows are held back by their time: how far behind."""
    lags = {name: each.behind.get(time) for name, each in node.progress.items()}
    return {name: lag for name, lag in lags.items() if lag is not None}


def _sorting(time: str, carried: Mapping[str, int], demands: Demands) -> dict[str, Demand]:
    """What a sort can use: every mark of the time, and what is wanted of other columns."""
    wanted = {name: demand for name, demand in demands.items() if name in carried}
    return {time: Demand.any_value(), **wanted}


def _wish(demand: Demand, served: bool, following: Iterable[Demand]) -> Demand:
    """What an operator wants: groups alone if that serves it and everybody after it."""
    return demand.made(not served or any(each.linear for each in following))


def _second(domain: TimeDomain) -> int:
    return max(1, domain.ticks_per_second)


def _source(plan: _Compiler, node: nodes.SourceNode, _: tuple[int, ...]) -> int:
    spec = node.spec
    index = plan.add("source", f"{spec.name}: {spec.promise}", node, (), None, lambda _: [], None)
    contract = spec.contracts.get(spec.time)
    if node.time is None:
        return index
    if spec.groups and spec.stamp == "external":
        plan.grouped[index] = dict.fromkeys(spec.contracts, spec.groups)
    if isinstance(contract, Ordered) and not spec.key_columns:
        plan.ordered[index] = node.time
    elif plan.in_order and id(node) not in plan.numbered:
        domain = spec.domains[spec.time]
        slack = domain.ticks(contract.bound) if isinstance(contract, Within) else 0
        index = plan.sort(node, index, node.time, max(slack // SLICES_PER_SPAN, _second(domain)))
    return index


def _stamp(plan: _Compiler, node: nodes.StampNode, inputs: tuple[int, ...]) -> int:
    column = node.column
    return plan.add(
        "stamp",
        column,
        node,
        inputs,
        lambda store, now: Stamp(store, column, now),
        lambda _: [{}],
        Stamp,
    )


def _filter(plan: _Compiler, node: nodes.FilterNode, inputs: tuple[int, ...]) -> int:
    predicate = node.predicate.polars
    index = plan.add(
        "filter",
        node.predicate.text,
        node,
        inputs,
        lambda store, _: Select(store, predicate),
        _pass,
        Select,
    )
    plan.grouped[index] = plan.grouped.get(inputs[0], {})
    return index


def _project(plan: _Compiler, node: nodes.ProjectNode, inputs: tuple[int, ...]) -> int:
    expressions = [item.polars.alias(name) for name, item in node.items]
    derived, copied = dict(node.derived), dict(node.copied)
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


def _apply(plan: _Compiler, node: nodes.ApplyNode, inputs: tuple[int, ...]) -> int:
    name = getattr(node.function, "__name__", "function")
    kept = frozenset(node.progress)
    function, schema = node.function, dict(node.schema)
    return plan.add(
        "apply",
        name,
        node,
        inputs,
        lambda store, _: Apply(store, function, schema, kept),
        lambda demands: [{a: d for a, d in demands.items() if a in kept}],
        Apply,
    )


def _union(plan: _Compiler, node: nodes.UnionNode, inputs: tuple[int, ...]) -> int:
    ports = len(inputs)
    if not plan.in_order or node.time is None:
        index = plan.add(
            "union",
            f"{ports} inputs",
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
    carried = _carried(node, time)
    index = plan.add(
        "merge",
        f"{ports} inputs by {time}",
        node,
        inputs,
        lambda store, _: Merge(store, ports, time, domain, _second(domain), carried),
        lambda demands: [_sorting(time, carried, demands) for _ in range(ports)],
        Merge,
        (),
        True,
    )
    plan.ordered[index] = time
    return index


def _window(plan: _Compiler, node: nodes.WindowAggregateNode, inputs: tuple[int, ...]) -> int:
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
            store, attribute, domain, window, groups, aggregates, flush, keep
        ),
        lambda demands: [{attribute: _wish(wish, bool(keys), demands.values())}],
        WindowAggregate,
        node.groups,
        True,
    )
    if keys:
        plan.grouped[index] = {START: keys, END: keys}
    return index


def _two_levels(
    plan: _Compiler,
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
            store, attribute, domain, window, groups, aggregates, size, flush, in_order
        ),
        lambda demands: [{attribute: _wish(ends, bool(keys), demands.values())}],
        LowTable,
        groups,
        True,
    )
    high = plan.add(
        "window",
        f"{detail}; from partials",
        node,
        (low,),
        lambda store, _: HighAggregate(store, PANE, domain, window, groups, aggregates),
        lambda demands: [{PANE: _wish(ends, bool(keys), demands.values())}],
        HighAggregate,
        groups,
        True,
    )
    if keys:
        plan.grouped[low] = {PANE: keys}
        plan.grouped[high] = {START: keys, END: keys}
    return high


def _session(plan: _Compiler, node: nodes.SessionNode, inputs: tuple[int, ...]) -> int:
    domain, attribute, gap = node.domain, node.attribute, node.gap
    groups, aggregates = node.groups, node.aggregates
    inputs = (plan.in_order_by(node.inputs[0], inputs[0], attribute),)
    keys = plan.serves(inputs[0], attribute, groups)
    detail = f"gap {domain.spell(gap)} on {attribute}"
    if groups:
        detail += f", by {', '.join(groups)}"

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        return [{attribute: _wish(Demand.any_value(), bool(keys), demands.values())}]

    index = plan.add(
        "session",
        f"{detail}: {', '.join(node.texts)}",
        node,
        inputs,
        lambda store, _: SessionAggregate(store, attribute, domain, gap, groups, aggregates),
        describe,
        SessionAggregate,
        groups,
        True,
    )
    if keys:
        plan.grouped[index] = {START: keys, END: keys}
    return index


def _groups(plan: _Compiler, node: nodes.GroupAggregateNode, inputs: tuple[int, ...]) -> int:
    domain = next(iter(node.progressing_keys.values()))
    groups, keys, aggregates = node.groups, dict(node.progressing_keys), node.aggregates
    served = {name: told for name in keys if (told := plan.serves(inputs[0], name, groups))}

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A group ends by any of its times, so one that is told per group is enough.
        return [
            {name: _wish(Demand.any_value(), bool(served), _of(demands, name)) for name in keys}
        ]

    index = plan.add(
        "group",
        f"by {', '.join(node.groups)}: {', '.join(node.texts)}",
        node,
        inputs,
        lambda store, _: GroupAggregate(store, groups, keys, aggregates, _second(domain)),
        describe,
        GroupAggregate,
        node.groups,
        True,
    )
    plan.grouped[index] = served
    return index


def _of(demands: Demands, attribute: str) -> list[Demand]:
    return [demands[attribute]] if attribute in demands else []


def _join(plan: _Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]) -> int:
    residual = node.residual.polars if node.residual else None
    shape = JoinShape(
        node.reach,
        node.domain,
        node.times,
        node.on,
        node.right_names,
        dict(node.schema),
        dict(node.merged),
        residual,
        node.how,
        node.carried,
    )
    slice_ticks = max(_second(node.domain), node.reach.span // SLICES_PER_SPAN)
    kernel = HalfJoin if node.how in ("semi", "anti") else BandJoin
    places = [(side, node.times[side], shape.out_times[side], 0) for side in (0, 1)]
    places += [(each.side, each.name, each.out, each.behind) for each in node.carried]
    waited = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}.get(node.how, ())

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A mark purges the other side: by slices, or at once if what is purged comes out. A group
        # one side speaks of may be unknown to the other, so both promises on the whole are wanted,
        # too.
        wanted = [
            {time: Demand.any_value() if side in waited else Demand.grid(slice_ticks)}
            for side, time in enumerate(node.times)
        ]
        for side, name, out, behind in places:
            if out in demands and out in node.progress:
                other = node.times[1 - side]
                wanted[side][name] = wanted[side].get(name, Demand()) | demands[out]
                wanted[1 - side][other] |= _reached(node, side, demands[out].shifted(-behind))
        return wanted

    def telling(awaited: frozenset[str]) -> Build:
        return lambda store, _: kernel(store, shape, slice_ticks, by, awaited)

    detail = " and ".join(f"{a} = {b}" for a, b in node.on)
    detail = f"{node.how}, {_spell_reach(node)}" + (f", {detail}" if detail else "")
    if node.residual:
        detail += f", {node.residual.text}"
    inputs = tuple(
        plan.in_order_by(each, index, time)
        for each, index, time in zip(node.inputs, inputs, node.times, strict=True)
    )
    by = _joined_groups(plan, node, inputs)
    index = plan.add(
        "join",
        detail,
        node,
        inputs,
        lambda store, _: kernel(store, shape, slice_ticks, by),
        describe,
        kernel,
        tuple(name for name, _ in node.on),
        True,
    )
    plan.telling[index] = telling
    if by and all(shape.shows(key) for key in by):
        left, right = shape.out_times
        plan.grouped[index] = dict.fromkeys(
            [left] if node.how in ("semi", "anti") else [left, right], by
        )
    return index


def _joined_groups(
    plan: _Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]
) -> tuple[str, ...]:
    """The columns of the left by which a join takes promises per group; none if it does not.

    Both sides must name the same groups, or one of them none, and by columns that must be equal.
    """
    names = {}
    for left, right in reversed(node.on):
        if node.inputs[0].schema[left] == node.inputs[1].schema[right]:
            names[0, left] = names[1, right] = left
    found = set()
    for side in (0, 1):
        keys = plan.grouped.get(inputs[side], {}).get(node.times[side], ())
        if any((side, key) not in names for key in keys):
            return ()
        if keys:
            found.add(tuple(names[side, key] for key in keys))
    return found.pop() if len(found) == 1 else ()


def _reached(node: nodes.JoinNode, side: int, demand: Demand) -> Demand:
    """What the other side must promise so that this side's demand can be met."""
    if isinstance(node.reach, Band):
        return demand.shifted(-(node.reach.after if side == 0 else node.reach.before))
    return demand.unrounded(node.reach.span)


def _spell_reach(node: nodes.JoinNode) -> str:
    domain, (left, right) = node.domain, node.times
    if not isinstance(node.reach, Band):
        return f"{left} and {right} in the same {domain.spell(node.reach.span)}"
    if node.reach.before == node.reach.after == 0:
        return f"{left} = {right}"
    before, after = domain.spell(node.reach.before), domain.spell(node.reach.after)
    return f"{right} from {before} before to {after} after {left}"


def _distinct(plan: _Compiler, node: nodes.DistinctNode, inputs: tuple[int, ...]) -> int:
    domain = node.inputs[0].progress[node.attribute].domain
    slice_ticks = _second(domain)
    key, attribute = node.key, node.attribute
    progress = node.inputs[0].progress
    progressing = {n: progress[n].domain for n in key if n in progress and not progress[n].nullable}
    served = bool(plan.serves(inputs[0], attribute, key))

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        wanted = dict(demands)
        for name, kind in progressing.items():
            own = _wish(Demand.grid(_second(kind)), served, _of(demands, name))
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


def _order(plan: _Compiler, node: nodes.OrderNode, inputs: tuple[int, ...]) -> int:
    return plan.sort(node, inputs[0], node.attribute)


_COMPILERS: Mapping[type[Node], Callable[..., int]] = {
    nodes.SourceNode: _source,
    nodes.StampNode: _stamp,
    nodes.FilterNode: _filter,
    nodes.ProjectNode: _project,
    nodes.ApplyNode: _apply,
    nodes.UnionNode: _union,
    nodes.WindowAggregateNode: _window,
    nodes.SessionNode: _session,
    nodes.GroupAggregateNode: _groups,
    nodes.JoinNode: _join,
    nodes.DistinctNode: _distinct,
    nodes.OrderNode: _order,
}
