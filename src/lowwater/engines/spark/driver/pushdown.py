"""Pushdown: the expressions over a source's columns that Spark computes ahead of our stages.

A filter or projection next to a source is split in two. Spark computes those of its expressions for
which it gives the very values we would, as further columns, and leaves out the columns that no
operator reads. The operator stays and uses the computed columns. Rows that a filter drops carry
progress as any row does, so Spark computes the filter's condition and drops no row.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from lowwater.engines.spark.worker.late import COMPUTED
from lowwater.plan.expressions import Expression
from lowwater.plan.nodes import SourceNode
from lowwater.plan.physical.operator import (
    KernelOperator,
    Operator,
    PhysicalPlan,
    SourceOperator,
)
from lowwater.progress.contract import Punctuated
from lowwater.progress.spec import StreamSpec
from lowwater.sources.frame import Frame
from lowwater.stream.element import SEQUENCE


@dataclass(frozen=True)
class Pushed:
    """A plan, and what Spark computes for it of each source: names and SQL, in order."""

    plan: PhysicalPlan
    columns: Mapping[int, tuple[tuple[str, str], ...]]


def push_down(plan: PhysicalPlan, whole_rows: bool) -> Pushed:
    """Let Spark compute what it can; ``whole_rows`` keeps columns that only the side output of
    late rows shows."""
    operators = list(plan.operators)
    columns = {}
    for source in plan.sources:
        if isinstance(source.source, Frame):
            columns[source.index] = _push_source(plan, operators, source, whole_rows)
    return Pushed(plan.with_operators(operators), columns)


def _push_source(
    plan: PhysicalPlan, operators: list[Operator], source: SourceOperator, whole_rows: bool
) -> tuple[tuple[str, str], ...]:
    node, spec = source.node, source.spec
    pushing = _Pushing(node)
    read = _push_readers(plan, operators, source.index, pushing)
    kept = (
        node.schema
        if read is None or (whole_rows and spec.late == "side")
        else {name: dtype for name, dtype in spec.schema.items() if name in read | _progress(spec)}
    )
    raw = [(name, f"`{name.replace('`', '``')}`") for name in spec.schema if name in kept]
    schema = {name: spec.schema[name] for name, _ in raw} | pushing.types
    narrowed = replace(node, spec=replace(spec, schema=schema))
    operators[source.index] = replace(source, node=narrowed)
    return (*raw, *pushing.columns)


def _push_readers(
    plan: PhysicalPlan, operators: list[Operator], index: int, pushing: _Pushing
) -> set[str] | None:
    """Push the expressions of the operators that alone read a source's rows, one after another.

    Return the columns of the source that are still read; None if any of them may be.
    """
    read: set[str] = set()
    if SEQUENCE in plan.demands[index]:
        return None
    while (reader := _only_reader(plan, index)) is not None:
        index, computation = reader.index, reader.computation
        if computation is None:
            return None if reader.traits.reads is None else read | reader.traits.reads
        expressions = []
        for each in computation.expressions:
            expression, roots = pushing.computed(each)
            expressions.append(expression)
            read |= roots
        build = computation.build(expressions, plan.awaited(index))
        operators[index] = replace(reader, build=build)
        if not computation.filters:
            return read
    return None


def _only_reader(plan: PhysicalPlan, index: int) -> KernelOperator | None:
    """Return the operator that reads another's rows, if there is exactly one."""
    consumers = plan.consumers(index)
    if len(consumers) != 1 or index == plan.result.index:
        return None
    return plan.kernel(consumers[0][0])


def _progress(spec: StreamSpec) -> set[str]:
    """Return the columns by which a source progresses."""
    marks = {each.column for each in spec.contracts.values() if isinstance(each, Punctuated)}
    return {*spec.contracts, *spec.key_columns, *marks}


class _Pushing:
    """The expressions of one source that Spark computes."""

    def __init__(self, node: SourceNode):
        self._schema = node.schema
        self._raw = dict(node.spec.schema)
        self.columns: list[tuple[str, str]] = []
        self.types: dict[str, pl.DataType] = {}

    def computed(self, expression: Expression) -> tuple[pl.Expr, set[str]]:
        """Return an expression as we use it from now on, and the source columns it still reads."""
        roots = set(expression.polars.meta.root_names())
        same = all(self._raw.get(name) == self._schema[name] for name in roots)
        text = expression.spark(self._schema) if same and roots else None
        if text is None or expression.polars.meta.is_column():
            return expression.polars, roots
        name = f"{COMPUTED}{len(self.columns)}"
        self.columns.append((name, text))
        self.types[name] = expression.dtype
        return pl.col(name), set()
