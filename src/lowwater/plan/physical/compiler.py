"""The compiler that nodes are compiled with: the operators so far, their order and groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from lowwater.operators.kernel import Kernel
from lowwater.operators.rowwise import Derivation, Project
from lowwater.operators.sort import Sort
from lowwater.plan.nodes import Node, SourceNode
from lowwater.plan.physical.operator import (
    ROWWISE,
    Build,
    Computation,
    Demands,
    Describe,
    KernelOperator,
    Operator,
    PhysicalPlan,
    Remark,
    SourceOperator,
    Traits,
    unchanged,
)
from lowwater.progress.demand import Demand
from lowwater.stream.time_domain import TimeDomain

Grouped = Mapping[str, tuple[str, ...]]
"""Attributes on which an operator emits punctuation per group, with the columns that name one."""
Compile = Callable[["Compiler", Any, tuple[int, ...]], int]
"""Compile a node: from the indices of its inputs to the index of the last operator it adds."""
Narrow = Callable[[frozenset[str]], Build]
"""Build a kernel that emits punctuation on the given columns only."""
SLICES_PER_SPAN = 8
"""The number of slices per reach in which a join keeps its rows (a slice lasts a second at least),
so that purging drops whole slices and matching reads few."""


@dataclass
class Compiler:
    """Appends operators, node by node."""

    compilers: Mapping[type[Node], Compile]
    in_order: bool
    numbered: set[int]
    """The nodes whose rows carry their sequence number, by identity."""
    operators: list[Operator] = field(default_factory=list)
    _done: dict[int, int] = field(default_factory=dict)
    _ordered: dict[int, str | None] = field(default_factory=dict)
    _groups: dict[int, Grouped] = field(default_factory=dict)
    _narrow: dict[int, Narrow] = field(default_factory=dict)

    def plan(self, schema: Mapping[str, pl.DataType]) -> PhysicalPlan:
        """Return the plan. Each operator emits no punctuation that no consumer can use; the result
        emits all it can."""
        plan = PhysicalPlan(tuple(self.operators), dict(schema), self.in_order)
        return plan.with_operators([self._narrowed(plan, each) for each in plan.operators])

    def _narrowed(self, plan: PhysicalPlan, operator: Operator) -> Operator:
        awaited = plan.awaited(operator.index)
        if awaited is None or not isinstance(operator, KernelOperator):
            return operator
        if operator.computation is not None:
            expressions = [each.polars for each in operator.computation.expressions]
            return replace(operator, build=operator.computation.build(expressions, awaited))
        narrow = self._narrow.get(operator.index)
        return operator if narrow is None else replace(operator, build=narrow(awaited))

    def compile(self, node: Node) -> int:
        """Return the operator that gives a node's rows; a shared node is compiled once."""
        if id(node) not in self._done:
            inputs = tuple(self._without_numbers(each, node) for each in node.inputs)
            self._done[id(node)] = self.compilers[type(node)](self, node, inputs)
        return self._done[id(node)]

    def _without_numbers(self, source: Node, consumer: Node) -> int:
        """Return an input; its sequence numbers are taken off where the consumer needs none."""
        index = self.compile(source)
        needed = id(consumer) in self.numbered or consumer.counts_rows
        if id(source) not in self.numbered or needed:
            return index
        columns = [pl.col(name) for name in source.schema]
        derived = {name: Derivation(((name, 0),)) for name in source.progress}
        copied = {name: name for name in source.schema}
        return self.add(
            source,
            (index,),
            name="unnumber",
            kernel=Project,
            build=lambda store, _: Project(store, columns, derived, copied),
            describe=passing,
            traits=replace(ROWWISE, passes=unchanged(source.schema)),
            groups=self.groups(index),
        )

    def add_source(self, node: SourceNode, groups: Grouped, order: str | None) -> int:
        """Append a source. Arguments as for :meth:`add`."""
        index = len(self.operators)
        detail = f"{node.spec.name}: {node.spec.promise}"
        self.operators.append(SourceOperator(index=index, name="source", detail=detail, node=node))
        self._groups[index], self._ordered[index] = groups, order
        return index

    def add(
        self,
        node: Node,
        inputs: tuple[int, ...],
        *,
        name: str,
        detail: str = "",
        kernel: type[Kernel],
        build: Build,
        describe: Describe,
        traits: Traits | None = None,
        groups: Grouped | None = None,
        order: str | None = None,
        narrow: Narrow | None = None,
        computation: Computation | None = None,
        remarks: Sequence[Remark] = (),
    ) -> int:
        """Append an operator and return its index.

        ``node``: the logical node it gives the rows of, or is a part of.
        ``inputs``: the indices of the operators it reads.
        ``name``, ``detail``: the kind of operator and what it does here, for people.
        ``kernel``, ``build``: the class of its kernel, and a function that makes one.
        ``describe``: the demands on its inputs, given those on its output.
        ``traits``: what it declares; default: traits that are safe for any operator.
        ``groups``: attributes on which it emits punctuation per group; default none.
        ``order``: in the in-order shape, the attribute its rows leave ordered by; default none.
        ``narrow``: make a kernel that emits punctuation on some columns only; default: it cannot.
        ``computation``: its expressions, if an engine may compute them beforehand.
        ``remarks``: further lines of an explanation.
        """
        index = len(self.operators)
        self.operators.append(
            KernelOperator(
                index=index,
                name=name,
                detail=detail,
                node=node,
                inputs=inputs,
                traits=Traits() if traits is None else traits,
                kernel=kernel,
                build=build,
                demanded=describe,
                computation=computation,
                remarks=tuple(remarks),
            )
        )
        self._groups[index], self._ordered[index] = groups or {}, order
        if narrow is not None:
            self._narrow[index] = narrow
        return index

    def sort(self, node: Node, index: int, attribute: str, slice_ticks: int = 0) -> int:
        """Append a sort by ``attribute`` to an operator.

        ``slice_ticks``: the length of the slices it keeps rows in; 0 for a second.
        """
        domain = node.progress[attribute].domain
        slice_ticks = slice_ticks or second(domain)
        carried = carried_past(node, attribute)
        return self.add(
            node,
            (index,),
            name="sort",
            detail=f"by {attribute}",
            kernel=Sort,
            build=lambda store, _: Sort(store, attribute, domain, slice_ticks, carried),
            describe=lambda demands: [sorting(attribute, carried, demands)],
            traits=Traits(
                passes=unchanged(node.schema),
                alike=True,
                ordered=True,
                buffers=True,
                releases_alike=True,
                updates=node.updates is not None,
            ),
            order=attribute,
        )

    def in_order_by(self, node: Node, index: int, attribute: str) -> int:
        """Return an input; in the in-order shape, sorted by ``attribute`` if it is not already."""
        if not self.in_order or self.order(index) == attribute:
            return index
        sort = self.sort(node, index, attribute)
        held = replace(
            self.operators[sort].traits, identities=self.operators[index].traits.identities
        )
        self.operators[sort] = replace(self.operators[sort], traits=held)
        return sort

    def order(self, index: int) -> str | None:
        """Return the attribute an operator's rows leave ordered by in the in-order shape."""
        return self._ordered[index]

    def groups(self, index: int) -> Grouped:
        """Return the attributes on which an operator emits punctuation per group."""
        return self._groups[index]

    def usable_groups(self, index: int, attribute: str, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that name groups in an operator's punctuation on ``attribute``, if a
        consumer that keeps ``columns`` apart can use it; none otherwise."""
        keys = self.groups(index).get(attribute, ())
        return keys if set(keys) <= set(columns) else ()


def passing(demands: Demands) -> list[dict[str, Demand]]:
    """Return the demands of an operator that passes punctuation on: those on its output."""
    return [dict(demands)]


def carried_past(node: Node, time: str) -> dict[str, int]:
    """Return the columns that still progress when rows are held back by ``time``, each with the
    ticks by which it is behind at most."""
    lags = {name: each.behind.get(time) for name, each in node.progress.items()}
    return {name: lag for name, lag in lags.items() if lag is not None}


def sorting(time: str, carried: Mapping[str, int], demands: Demands) -> dict[str, Demand]:
    """Return the demands of a sort: every mark of ``time``, and those on columns carried past."""
    kept = {name: demand for name, demand in demands.items() if name in carried}
    return {time: Demand.any_value(), **kept}


def demand_of(demand: Demand, grouped: bool, consumers: Iterable[Demand]) -> Demand:
    """Return a demand on punctuation per group alone if that serves the operator (``grouped``) and
    all its consumers; on punctuation of the whole stream as well otherwise."""
    return demand.made(not grouped or any(each.linear for each in consumers))


def second(domain: TimeDomain) -> int:
    """Return a second in ticks, or one tick where there are no seconds."""
    return max(1, domain.ticks_per_second)


def demand_on(demands: Demands, attribute: str) -> list[Demand]:
    """Return the demand on an attribute, if there is one."""
    return [demands[attribute]] if attribute in demands else []
