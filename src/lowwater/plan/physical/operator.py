"""The physical plan: one operator per kernel, in an order in which inputs come first.

An operator says how to build its kernel, how it would be spread over machines, and which promises
it can use from each input given what its consumers can use. The last is *describe* (OOP A.1.1): it
runs from the result back to the sources, which then tell nothing finer and nothing twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import polars as pl

from lowwater.operators.kernel import Kernel
from lowwater.plan.nodes import Node
from lowwater.progress.demand import Demand
from lowwater.state.store import ChunkStore

PlanShape = Literal["out-of-order", "in-order"]
Demands = Mapping[str, Demand]
Clock = Callable[[], int]
Build = Callable[[ChunkStore, Clock], Kernel]
Describe = Callable[[Demands], list[dict[str, Demand]]]


@dataclass(frozen=True)
class Operator:
    """One kernel in the plan."""

    index: int
    name: str
    detail: str
    inputs: tuple[int, ...]
    build: Build | None
    """None for a source. Holds values only, never a node, so that it can be sent to another
    process without the sources the query reads."""
    describe: Describe
    rule: str
    partition: tuple[str, ...] | None
    """Columns rows may be spread by without changing answers; None if rows may go anywhere."""
    stateful: bool
    node: Node
    ordered: bool = False
    """Whether its rows leave in order."""
    queues: bool = False
    """Whether rows wait in it until there is time for them."""

    @property
    def title(self) -> str:
        """Name and number, as shown to people."""
        return f"{self.name}#{self.index}"


@dataclass(frozen=True)
class PhysicalPlan:
    """All operators of a query; the last one feeds the sink."""

    operators: tuple[Operator, ...]
    schema: Mapping[str, pl.DataType]
    in_order: bool
    demands: tuple[Mapping[str, Demand], ...] = field(init=False)
    """What the consumers of each operator can use of its promises."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "demands", _describe(self.operators))

    @property
    def result(self) -> Operator:
        """The operator whose output is the query's."""
        return self.operators[-1]

    @property
    def queues(self) -> bool:
        """Whether rows may wait until there is time for them."""
        return any(each.queues for each in self.operators)

    @property
    def sources(self) -> tuple[Operator, ...]:
        """The operators that read sources."""
        return tuple(each for each in self.operators if each.build is None)

    @property
    def order(self) -> Operator | None:
        """The operator that puts the result in order; None if none does, or more than row-wise
        operators follow it."""
        last = self.result
        while not (last.ordered or last.stateful or last.name == "stamp" or len(last.inputs) != 1):
            last = self.operators[last.inputs[0]]
        return last if last.ordered else None

    def consumers(self, index: int) -> list[tuple[int, int]]:
        """Who reads an operator's output: (operator, port)."""
        return [
            (each.index, port)
            for each in self.operators
            for port, source in enumerate(each.inputs)
            if source == index
        ]


def _describe(operators: Sequence[Operator]) -> tuple[dict[str, Demand], ...]:
    wanted: list[dict[str, Demand]] = [{} for _ in operators]
    for operator in reversed(operators):
        for source, demands in zip(
            operator.inputs, operator.describe(wanted[operator.index]), strict=True
        ):
            for attribute, demand in demands.items():
                held = wanted[source].get(attribute)
                wanted[source][attribute] = demand if held is None else held | demand
    return tuple(wanted)
