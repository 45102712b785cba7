"""A physical plan is made of operators, each of which declares traits.

An operator is compiled from a logical node. Its traits say how it can be spread over machines;
layout, explain and the engines read the traits and never the operator's name or node. Its
``describe`` says which punctuation it can use from each input, given what its consumers can use
(OOP A.1.1).

Invariant: in a plan, inputs come before their consumers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Literal

import polars as pl

from lowwater.operators.identity import Identity
from lowwater.operators.kernel import Host, Kernel
from lowwater.plan.expressions import Expression
from lowwater.plan.nodes import Node, SourceNode
from lowwater.plan.physical.costs import Rates
from lowwater.plan.physical.floors import floors_of
from lowwater.progress.demand import Demand
from lowwater.progress.spec import StreamSpec
from lowwater.sources.source import Source
from lowwater.state.store import ChunkStore
from lowwater.stream.floor import Floor

PlanShape = Literal["out-of-order", "in-order"]
Demands = Mapping[str, Demand]
Build = Callable[[ChunkStore, Host], Kernel]
Describe = Callable[[Demands], list[dict[str, Demand]]]
"""Returns the demands on each input that follow from the demands on the output."""
Narrow = Callable[[frozenset[str]], Build]
"""Builds a kernel that emits punctuation on the given output columns only."""
Way = tuple[str, ...]
"""One column of each input, in the order of the inputs."""
GroupColumns = Mapping[str, tuple[str, ...]]
"""Attributes on which an operator emits punctuation per group, with the columns that name one."""
Remark = Callable[[Demands, Rates | None], list[str]]
"""Returns lines of an explanation, from the demands on the output and the rates the user gave."""


@dataclass(frozen=True, kw_only=True)
class Traits:
    """The facts that an operator declares about itself.

    The defaults are safe for an operator of which nothing is known: all rows meet in one bucket,
    no key passes, and copies emit different punctuation.
    """

    stateful: bool = True
    """True if its output for a row may depend on rows that came before."""
    rowwise: bool = False
    """True if each output row is computed from one input row alone, without state or clock, so
    that it can run before a shuffle or after the last stage."""
    forwards: bool = False
    """True if the rows of all inputs leave unchanged."""
    passes: tuple[tuple[str, Way], ...] = ()
    """Output columns, each with a way: the value of the column equals that of the way's columns in
    every input row the output row was made from."""
    together: tuple[Way, ...] = ()
    """The ways in which rows can be spread: rows that must meet have equal values in each of these
    ways. Empty: all rows must be in one bucket."""
    alike: bool = False
    """True if every bucket's copy of this operator emits the same punctuation, given the same
    punctuation, whatever rows it holds."""
    ordered: bool = False
    """True if it puts rows in order."""
    buffers: bool = False
    """True if the rows it holds are rows of its inputs that wait for their turn; metrics count them
    as queued."""
    releases_alike: bool = False
    """Of an operator that puts rows in order: true if all copies, given the same punctuation, have
    released their rows up to the same mark."""
    combines: bool = False
    """True if copies in all buckets can each answer from some of the rows, and their partial
    answers be put together without state."""
    reduces: bool = False
    """True if rows can be reduced to partial aggregates before they are sent to it."""
    updates: bool = False
    """True if its output rows replace each other by key."""
    clocked: bool = False
    """True if it stamps rows by the clock."""
    measures: bool = False
    """True if it drops rows by the disorder that it measures, and waits for no punctuation."""
    reads: frozenset[str] | None = None
    """The columns of its one input that it reads; None if it may read all."""
    checks: frozenset[str] = frozenset()
    """Columns whose rows are checked against the punctuation of the input if a consumer demands
    progress on them; it cannot run before that punctuation is known."""
    identities: tuple[Identity, ...] = ()
    """The users' aggregates whose state it keeps."""


ROWWISE = Traits(stateful=False, rowwise=True, alike=True)
"""Traits of a row-wise operator that passes no column on."""


def unchanged(columns: Iterable[str], ports: int = 1) -> tuple[tuple[str, Way], ...]:
    """Return the ``passes`` of an operator that passes some columns on unchanged."""
    return tuple((name, (name,) * ports) for name in columns)


def keyed(columns: Iterable[str], ports: int = 1) -> tuple[Way, ...]:
    """Return the ``together`` of an operator that brings together rows with equal values in some
    columns, which have the same names in all inputs."""
    return tuple((name,) * ports for name in columns)


@dataclass(frozen=True)
class Computation:
    """Expressions over the input's columns, of which an engine may compute some beforehand."""

    expressions: tuple[Expression, ...]
    build: Callable[[Sequence[pl.Expr], frozenset[str] | None], Build]
    """Build the kernel from other expressions of the same values; it emits punctuation on the
    given output columns only, or on all of them for None."""
    filters: bool = False
    """True if the input's columns leave as they are."""


@dataclass(frozen=True, kw_only=True)
class Operator:
    """Base of the two kinds of operators: those that read a source and those that run a kernel."""

    index: int = -1
    """Its position in the plan, from 0; -1 until the compiler has added it."""
    name: str
    """The kind of operator, such as "window"; only people read it."""
    detail: str = ""
    """Its work in this query, such as its columns; only people read it."""
    node: Node
    """The logical node whose rows it computes, alone or as one of several operators."""
    inputs: tuple[int, ...] = ()
    """The positions of the operators it reads."""
    describe: Describe
    """Gives the demands on each input that follow from the demands on the output."""
    traits: Traits = Traits()
    groups: GroupColumns = field(default_factory=dict)
    order: str | None = None
    """In the in-order shape, the attribute by which its rows leave in order; None if there is
    none."""
    floor: Floor = field(default_factory=dict)
    """The floor that it states of its own rows: of a filter, below which no row satisfies it."""

    @property
    def title(self) -> str:
        """The name and number that people are shown."""
        return f"{self.name}#{self.index}"

    @property
    def rule(self) -> str:
        """The rule by which it emits punctuation, in words."""
        raise NotImplementedError


@dataclass(frozen=True, kw_only=True)
class SourceOperator(Operator):
    """Reads a stream and emits the punctuation its contract allows."""

    name: str = "source"
    node: SourceNode
    describe: Describe = lambda _: []
    traits: Traits = Traits(stateful=False, alike=True)

    @property
    def spec(self) -> StreamSpec:
        """The declared stream."""
        return self.node.spec

    @property
    def announced(self) -> tuple[Hashable, ...]:
        """The channels or groups known before the run: those declared, else those that the source
        can list."""
        spec = self.spec
        if spec.channels or not spec.key_columns:
            return spec.channels
        return tuple(self.source.channels(spec.key_columns))

    @property
    def source(self) -> Source:
        """The source of the rows."""
        return self.node.source

    @property
    def rule(self) -> str:
        """The rule of all sources, in words."""
        return "promises follow from the contract"


@dataclass(frozen=True, kw_only=True)
class KernelOperator(Operator):
    """Runs a kernel.

    ``build`` holds values only, never a node, so that it can be sent to another process without the
    sources that the query reads.
    """

    kernel: type[Kernel]
    build: Build
    narrow: Narrow | None = None
    """Builds a kernel that emits punctuation on given columns only; None if the kernel cannot."""
    computation: Computation | None = None
    """Of a filter or projection: its expressions."""
    remarks: Sequence[Remark] = ()
    """Further lines of an explanation."""

    @property
    def rule(self) -> str:
        """The rule of its kernel, in words."""
        return self.kernel.rule

    def narrowed(self, columns: frozenset[str]) -> KernelOperator:
        """Return the same operator, emitting punctuation on some output columns only if it can."""
        if self.computation is not None:
            expressions = [each.polars for each in self.computation.expressions]
            return replace(self, build=self.computation.build(expressions, columns))
        return self if self.narrow is None else replace(self, build=self.narrow(columns))

    @property
    def queues(self) -> bool:
        """True if it is a queue, in which rows wait until there is time for them."""
        return self.kernel.queues

    @property
    def partition(self) -> tuple[str, ...]:
        """The columns of the first input by which its rows can be spread."""
        return tuple(way[0] for way in self.traits.together)

    @property
    def state(self) -> str | None:
        """A text that is the same for all operators that can continue from its saved state; None if
        it keeps no state."""
        if not self.traits.stateful:
            return None
        rows = [
            ", ".join(f"{name} {dtype}" for name, dtype in each.schema.items())
            for each in self.node.inputs
        ]
        return f"{self.name} {self.detail} over {' and '.join(rows)}"


@dataclass(frozen=True)
class PhysicalPlan:
    """All operators of a query; the last one feeds the sink."""

    operators: tuple[Operator, ...]
    schema: Mapping[str, pl.DataType]
    in_order: bool
    demands: tuple[Demands, ...] = field(init=False)
    """For each operator, the demands of its consumers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "demands", _describe(self.operators))

    @cached_property
    def floors(self) -> tuple[Floor, ...]:
        """For each operator, the floor below which no consumer needs its rows."""
        return floors_of(self.operators, [self.result.index])

    @property
    def result(self) -> Operator:
        """The operator whose output is the query's."""
        return self.operators[-1]

    @property
    def sources(self) -> tuple[SourceOperator, ...]:
        """The operators that read sources."""
        return tuple(each for each in self.operators if isinstance(each, SourceOperator))

    @property
    def kernels(self) -> tuple[KernelOperator, ...]:
        """The operators that run kernels."""
        return tuple(each for each in self.operators if isinstance(each, KernelOperator))

    def kernel(self, index: int) -> KernelOperator:
        """Return an operator that runs a kernel."""
        operator = self.operators[index]
        assert isinstance(operator, KernelOperator)
        return operator

    @property
    def queues(self) -> bool:
        """True if some operator is a queue, in which rows wait until there is time for them."""
        return any(each.queues for each in self.kernels)

    @property
    def order(self) -> Operator | None:
        """The operator that puts the result in order; None if there is none, or if more than
        row-wise operators follow it."""
        last = self.result
        while last.traits.rowwise and not last.traits.ordered:
            last = self.operators[last.inputs[0]]
        return last if last.traits.ordered else None

    def consumers(self, index: int) -> list[tuple[int, int]]:
        """Return the operators that read another's output, each with the port it comes in by."""
        return [
            (each.index, port)
            for each in self.operators
            for port, source in enumerate(each.inputs)
            if source == index
        ]

    def awaited(self, index: int) -> frozenset[str] | None:
        """Return the columns on which an operator's punctuation is of use; None for all of them,
        as for the result."""
        return None if index == self.result.index else frozenset(self.demands[index])

    def with_operators(self, operators: Sequence[Operator]) -> PhysicalPlan:
        """Return the same plan with other operators of the same shape."""
        return replace(self, operators=tuple(operators))


def _describe(operators: Sequence[Operator]) -> tuple[Demands, ...]:
    found: list[dict[str, Demand]] = [{} for _ in operators]
    for operator in reversed(operators):
        demands = operator.describe(found[operator.index])
        for source, own in zip(operator.inputs, demands, strict=True):
            found[source] = united(found[source], own)
    return tuple(found)


def united(*several: Demands) -> dict[str, Demand]:
    """Return several demands on the same columns as one."""
    found: dict[str, Demand] = {}
    for demands in several:
        for name, demand in demands.items():
            found[name] = found[name] | demand if name in found else demand
    return found
