"""Pushdown makes Spark leave out the columns of a source that no worker needs.

Spark leaves out the columns that no operator reads. A text column that only conditions of filters
read is left out too, if Spark can compute those conditions: each becomes a column of truth values,
which the filter reads. A row that a filter drops moves the mark as any row does, so Spark drops no
row (docs/decisions/050-conditions-that-spark-computes.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import polars as pl

from lowwater.engines.spark.driver.text_conditions import Condition, conditions, replaced
from lowwater.engines.spark.wire.late_files import COMPUTED
from lowwater.engines.spark.wire.types import quoted
from lowwater.plan.expressions import Expression, Formula, compile_expression
from lowwater.plan.physical.operator import (
    KernelOperator,
    Operator,
    PhysicalPlan,
    SourceOperator,
)
from lowwater.progress.spec import StreamSpec
from lowwater.sources.spark import SparkFrame
from lowwater.stream.element import SEQUENCE


@dataclass(frozen=True)
class Pushed:
    """A plan and, for each source by index, the columns that Spark gives: names and SQL."""

    plan: PhysicalPlan
    columns: Mapping[int, tuple[tuple[str, str], ...]]


def push_down(plan: PhysicalPlan, whole_rows: bool) -> Pushed:
    """Return the plan with the columns that Spark gives of each source; ``whole_rows`` keeps those
    that only the side output of late rows shows."""
    operators = list(plan.operators)
    columns = {}
    for source in plan.sources:
        if isinstance(source.source, SparkFrame):
            columns[source.index] = _push_source(plan, operators, source, whole_rows)
    return Pushed(plan.with_operators(operators), columns)


def _push_source(
    plan: PhysicalPlan, operators: list[Operator], source: SourceOperator, whole_rows: bool
) -> tuple[tuple[str, str], ...]:
    node, spec = source.node, source.spec
    filters, read = _readers(plan, source.index)
    whole = read is None or (whole_rows and spec.late == "side")
    pushing = _Pushing(spec.schema if dict(spec.schema) == dict(node.schema) else {})
    if read is None or whole:
        kept = set(node.schema)
    else:
        kept = pushing.push(filters, read | _progress(spec))
    for each in filters if pushing.columns else []:
        computation = each.computation
        assert computation is not None
        expressions = [pushing.used(expression) for expression in computation.expressions]
        build = computation.build(expressions, plan.awaited(each.index))
        operators[each.index] = replace(each, build=build)
    raw = [(name, quoted(name)) for name in spec.schema if name in kept]
    schema = {name: spec.schema[name] for name, _ in raw}
    schema |= {name: pl.Boolean() for name, _ in pushing.columns}
    narrowed = replace(node, spec=replace(spec, schema=schema))
    operators[source.index] = replace(source, node=narrowed)
    return (*raw, *pushing.columns)


def _readers(plan: PhysicalPlan, index: int) -> tuple[tuple[KernelOperator, ...], set[str] | None]:
    """Return the filters that alone read a source's rows, one after another, and the columns that
    the operator behind them reads; None if any column may be read."""
    filters: tuple[KernelOperator, ...] = ()
    if SEQUENCE in plan.demands[index]:
        return filters, None
    while (reader := _only_reader(plan, index)) is not None:
        computation = reader.computation
        if computation is None:
            return filters, None if reader.traits.reads is None else set(reader.traits.reads)
        if not computation.filters:
            return filters, set().union(*map(_roots, computation.expressions))
        filters, index = (*filters, reader), reader.index
    return filters, None


def _only_reader(plan: PhysicalPlan, index: int) -> KernelOperator | None:
    """Return the operator that reads another's rows, if there is exactly one."""
    consumers = plan.consumers(index)
    if len(consumers) != 1 or index == plan.result.index:
        return None
    return plan.kernel(consumers[0][0])


def _progress(spec: StreamSpec) -> set[str]:
    """Return the columns by which a source progresses."""
    contracts = spec.contracts.values()
    marks = {column for each in contracts for column in (each.mark_column, each.alone_column)}
    return {*spec.contracts, *spec.key_columns, *(each for each in marks if each is not None)}


def _roots(expression: Expression) -> set[str]:
    return set(expression.polars.meta.root_names())


@dataclass
class _Pushing:
    """The conditions on one source's columns that Spark computes."""

    schema: Mapping[str, pl.DataType]
    columns: list[tuple[str, str]] = field(default_factory=list)
    """The computed columns: names and SQL."""
    _names: dict[int, str] = field(default_factory=dict)
    """The computed column of each condition, by the ``id`` of its tree."""

    def push(self, filters: tuple[KernelOperator, ...], needed: set[str]) -> set[str]:
        """Choose the conditions that let a text be left out; return the columns that stay."""
        found: list[Condition] = []
        for each in filters:
            assert each.computation is not None
            for expression in each.computation.expressions:
                if expression.tree is None:
                    needed |= _roots(expression)
                else:
                    found += conditions(expression.tree, self.schema)
        needed = needed.union(*(each.columns for each in found if each.text is None))
        for condition in found:
            if condition.text is not None and not condition.columns <= needed:
                name = f"{COMPUTED}{len(self.columns)}"
                self._names[id(condition.tree)] = name
                self.columns.append((name, condition.text))
        return needed

    def used(self, expression: Expression) -> pl.Expr:
        """Return a filter's condition over the computed columns."""
        if expression.tree is None:
            return expression.polars
        tree = replaced(expression.tree, self._names)
        schema = {**self.schema, **{name: pl.Boolean() for name, _ in self.columns}}
        return compile_expression(Formula.of(tree, expression.text), schema).polars
