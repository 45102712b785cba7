"""The plan being put together: operators so far, and what is known of their output."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import polars as pl

from lowwater.operators.kernel import Kernel
from lowwater.operators.rowwise import Derivation, Project
from lowwater.operators.sort import Sort
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical.operator import Build, Demands, Describe, Operator, PhysicalPlan
from lowwater.progress.demand import Demand
from lowwater.stream.element import SEQUENCE
from lowwater.stream.time_domain import TimeDomain

Grouped = dict[str, tuple[str, ...]]
Compile = Callable[["Compiler", Any, tuple[int, ...]], int]
"""How a node becomes operators: given its inputs' indices, it gives that of the last one."""
SLICES_PER_SPAN = 8
"""A join keeps its rows in this many slices a reach (of a second at least), so that purging
drops whole slices and meeting reads few."""


@dataclass
class Compiler:
    """Appends operators, node by node."""

    compilers: Mapping[type[Node], Compile]
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
            self.done[id(node)] = self.compilers[type(node)](self, node, inputs)
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
            passing,
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
        ordered: bool = False,
    ) -> int:
        """Append an operator and give its index; ``ordered`` if its kernel puts rows in order."""
        index = len(self.operators)
        rule = kernel.rule if kernel else "promises follow from the contract"
        self.operators.append(
            Operator(
                index,
                name,
                detail,
                inputs,
                build,
                describe,
                rule,
                partition,
                stateful,
                node,
                ordered,
                kernel is not None and kernel.queues,
            )
        )
        return index

    def sort(self, node: Node, index: int, attribute: str, slice_ticks: int = 0) -> int:
        """Put order on an operator's output."""
        domain = node.progress[attribute].domain
        slice_ticks = slice_ticks or second(domain)
        carried = carried_past(node, attribute)
        index = self.add(
            "sort",
            f"by {attribute}",
            node,
            (index,),
            lambda store, _: Sort(store, attribute, domain, slice_ticks, carried),
            lambda demands: [sorting(attribute, carried, demands)],
            Sort,
            (),
            True,
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


def passing(demands: Demands) -> list[dict[str, Demand]]:
    """What an operator wants that passes promises on: what is wanted of it."""
    return [dict(demands)]


def carried_past(node: Node, time: str) -> dict[str, int]:
    """The columns that still progress when rows are held back by their time: how far behind."""
    lags = {name: each.behind.get(time) for name, each in node.progress.items()}
    return {name: lag for name, lag in lags.items() if lag is not None}


def sorting(time: str, carried: Mapping[str, int], demands: Demands) -> dict[str, Demand]:
    """What a sort can use: every mark of the time, and what is wanted of other columns."""
    wanted = {name: demand for name, demand in demands.items() if name in carried}
    return {time: Demand.any_value(), **wanted}


def wish_of(demand: Demand, served: bool, following: Iterable[Demand]) -> Demand:
    """What an operator wants: groups alone if that serves it and everybody after it."""
    return demand.made(not served or any(each.linear for each in following))


def second(domain: TimeDomain) -> int:
    """A second in ticks, or one tick where there are no seconds."""
    return max(1, domain.ticks_per_second)


def asked(demands: Demands, attribute: str) -> list[Demand]:
    """What is wanted of an attribute, if anything is."""
    return [demands[attribute]] if attribute in demands else []
