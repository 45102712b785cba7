"""The compiler appends the operators of logical nodes to a plan; functions here make the demands
that several kinds of operators share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from lowwater.operators.identity import Identity
from lowwater.operators.rowwise import Derivation, Project
from lowwater.operators.sort import Sort
from lowwater.plan.nodes import Node
from lowwater.plan.physical.operator import (
    ROWWISE,
    Demands,
    Describe,
    KernelOperator,
    Operator,
    PhysicalPlan,
    Traits,
    unchanged,
)
from lowwater.progress.demand import Demand
from lowwater.stream.time_domain import TimeDomain

Compile = Callable[["Compiler", Any, tuple[int, ...]], int]
"""Compiles a node: it takes the indices of the operators that give the node's inputs, and returns
the index of the last operator it adds."""
SLICES_PER_SPAN = 8
"""The number of slices per reach in which a join keeps its rows (a slice lasts a second at least),
so that purging drops whole slices and matching reads few."""


@dataclass
class Compiler:
    """The operators compiled so far; :meth:`compile` appends those of a node."""

    compilers: Mapping[type[Node], Compile]
    in_order: bool
    numbered: set[int]
    """The nodes whose rows carry their sequence number, by identity."""
    operators: list[Operator] = field(default_factory=list)
    _done: dict[int, int] = field(default_factory=dict)

    def plan(self, schema: Mapping[str, pl.DataType]) -> PhysicalPlan:
        """Return the plan. Each operator emits no punctuation that no consumer can use; the result
        emits all it can."""
        plan = PhysicalPlan(tuple(self.operators), dict(schema), self.in_order)
        return plan.with_operators([self._narrowed(plan, each) for each in plan.operators])

    def _narrowed(self, plan: PhysicalPlan, operator: Operator) -> Operator:
        awaited = plan.awaited(operator.index)
        if awaited is None or not isinstance(operator, KernelOperator):
            return operator
        return operator.narrowed(awaited)

    def compile(self, node: Node) -> int:
        """Return the operator that gives a node's rows; a shared node is compiled once."""
        if id(node) not in self._done:
            inputs = tuple(self._without_numbers(each, node) for each in node.inputs)
            self._done[id(node)] = self.compilers[type(node)](self, node, inputs)
        return self._done[id(node)]

    def _without_numbers(self, source: Node, consumer: Node) -> int:
        """Return the index of an input; its sequence numbers are dropped if the consumer needs
        none."""
        index = self.compile(source)
        needed = id(consumer) in self.numbered or consumer.counts_rows
        if id(source) not in self.numbered or needed:
            return index
        columns = [pl.col(name) for name in source.schema]
        derived = {name: Derivation(((name, 0),)) for name in source.progress}
        copied = {name: name for name in source.schema}
        return self.add(
            KernelOperator(
                name="unnumber",
                node=source,
                inputs=(index,),
                kernel=Project,
                build=lambda store, _: Project(store, columns, derived, copied),
                describe=same_demands,
                traits=replace(ROWWISE, passes=unchanged(source.schema)),
                groups=self.operators[index].groups,
            )
        )

    def add(self, operator: Operator) -> int:
        """Append an operator and return its index; its inputs have been added before."""
        self.operators.append(replace(operator, index=len(self.operators)))
        return len(self.operators) - 1

    def sort(
        self,
        node: Node,
        index: int,
        attribute: str,
        slice_ticks: int | None = None,
        identities: tuple[Identity, ...] = (),
    ) -> int:
        """Append a sort by ``attribute`` to the operator at ``index``, which gives a node's rows.

        The sort keeps rows in slices of ``slice_ticks``, a second by default. ``identities`` are
        the users' aggregates that its state depends on.
        """
        domain = node.progress[attribute].domain
        width = second(domain) if slice_ticks is None else slice_ticks
        carried = carried_past(node, attribute)
        return self.add(
            KernelOperator(
                name="sort",
                detail=f"by {attribute}",
                node=node,
                inputs=(index,),
                kernel=Sort,
                build=lambda store, _: Sort(store, attribute, domain, width, carried),
                describe=lambda demands: [sort_demands(attribute, carried, demands)],
                traits=Traits(
                    passes=unchanged(node.schema),
                    alike=True,
                    ordered=True,
                    buffers=True,
                    releases_alike=True,
                    updates=node.updates is not None,
                    identities=identities,
                ),
                order=attribute,
            )
        )

    def in_order_by(self, node: Node, index: int, attribute: str) -> int:
        """Return the index of an input; in the in-order shape, of its sort by ``attribute``, which
        is added unless the input has this order."""
        before = self.operators[index]
        if not self.in_order or before.order == attribute:
            return index
        return self.sort(node, index, attribute, identities=before.traits.identities)

    def usable_groups(self, index: int, attribute: str, columns: Sequence[str]) -> tuple[str, ...]:
        """Return the columns that name groups in an operator's punctuation on ``attribute``, if a
        consumer that keeps ``columns`` apart can use it; none otherwise."""
        keys = self.operators[index].groups.get(attribute, ())
        return keys if set(keys) <= set(columns) else ()


def same_demands(demands: Demands) -> list[dict[str, Demand]]:
    """Return the demands of an operator that passes punctuation on: those on its output."""
    return [dict(demands)]


def carried_past(node: Node, time: str) -> dict[str, int]:
    """Return the columns that still progress when rows are held back by ``time``, each with the
    most ticks by which it is below ``time``."""
    lags = {name: each.behind.get(time) for name, each in node.progress.items()}
    return {name: lag for name, lag in lags.items() if lag is not None}


def sort_demands(time: str, carried: Mapping[str, int], demands: Demands) -> dict[str, Demand]:
    """Return the demands of a sort: every mark of ``time``, and those on columns carried past."""
    kept = {name: demand for name, demand in demands.items() if name in carried}
    return {time: Demand.any_value(), **kept}


def demand_of(demand: Demand, grouped: bool, consumers: Iterable[Demand]) -> Demand:
    """Return ``demand`` for punctuation per group. It is for punctuation on the whole stream too,
    unless the operator (``grouped``) and all ``consumers`` can use punctuation per group alone."""
    return demand.with_linear(not grouped or any(each.linear for each in consumers))


def fixed_demands(attributes: Iterable[str], demand: Demand, grouped: bool) -> Describe:
    """Return the ``describe`` of an operator of one input: ``demand`` on each attribute, whatever
    its consumers demand; see :func:`demand_of` for ``grouped``."""
    names = tuple(attributes)
    return lambda demands: [dict.fromkeys(names, demand_of(demand, grouped, demands.values()))]


def second(domain: TimeDomain) -> int:
    """Return a second in ticks, or one tick where there are no seconds."""
    return max(1, domain.ticks_per_second)


def demand_on(demands: Demands, attribute: str) -> list[Demand]:
    """Return the demand on an attribute, if there is one."""
    return [demands[attribute]] if attribute in demands else []
