"""What Spark computes itself, ahead of our stages: expressions over a source's columns.

A filter or projection next to a source is split in two. Spark computes its expressions, those for
which it gives the very values we would, as further columns and leaves out the columns nobody reads.
The operator stays, and uses what was computed. Rows a filter drops must still be seen: they tell
progress as any row does, so only their column, not the row, is Spark's business.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import polars as pl

from lowwater.engines.spark.worker.late import COMPUTED
from lowwater.operators.rowwise import Derivation, Project, Select
from lowwater.plan import nodes
from lowwater.plan.expressions import Expression
from lowwater.plan.physical.operator import Build, Operator, PhysicalPlan
from lowwater.plan.spark_sql import spark_text
from lowwater.progress.contract import Punctuated
from lowwater.sources.frame import Frame
from lowwater.stream.element import SEQUENCE


@dataclass(frozen=True)
class Pushed:
    """What Spark is asked for, per source: names and SQL, in order."""

    plan: PhysicalPlan
    columns: Mapping[int, tuple[tuple[str, str], ...]]


def push_down(plan: PhysicalPlan, whole_rows: bool) -> Pushed:
    """Let Spark compute what it can; ``whole_rows`` keeps what only a side output would show."""
    operators = list(plan.operators)
    columns = {}
    for source in plan.sources:
        if isinstance(source.node, nodes.SourceNode) and isinstance(source.node.source, Frame):
            columns[source.index] = _push_source(plan, operators, source, whole_rows)
    return Pushed(replace(plan, operators=tuple(operators)), columns)


def _push_source(
    plan: PhysicalPlan, operators: list[Operator], source: Operator, whole_rows: bool
) -> tuple[tuple[str, str], ...]:
    node = source.node
    assert isinstance(node, nodes.SourceNode)
    pushing = _Pushing(node)
    read: set[str] | None = set()
    index = source.index
    while SEQUENCE not in plan.demands[source.index]:
        consumers = plan.consumers(index)
        operator = plan.operators[consumers[0][0]] if len(consumers) == 1 else None
        if operator is None or index == plan.result.index:
            read = None
        elif isinstance(operator.node, nodes.FilterNode) and operator.name == "filter":
            predicate, roots = pushing.computed(operator.node.predicate)
            operators[operator.index] = replace(operator, build=_selecting(predicate))
            assert read is not None
            read |= roots
            index = operator.index
            continue
        elif isinstance(operator.node, nodes.ProjectNode) and operator.name == "project":
            expressions, roots = pushing.projected(operator.node)
            operators[operator.index] = replace(
                operator, build=_projecting(operator.node, expressions)
            )
            assert read is not None
            read |= roots
        elif operator.name in ("window", "session", "sliding", "group"):
            assert read is not None
            read |= _aggregated(operator.node)
        else:
            read = None
        break
    else:
        read = None
    kept = (
        node.schema
        if read is None or (whole_rows and node.spec.late == "side")
        else {name: dtype for name, dtype in node.spec.schema.items() if name in read | _told(node)}
    )
    raw = [(name, f"`{name.replace('`', '``')}`") for name in node.spec.schema if name in kept]
    schema = {name: node.spec.schema[name] for name, _ in raw} | pushing.types
    narrowed = replace(node, spec=replace(node.spec, schema=schema))
    operators[source.index] = replace(source, node=narrowed)
    return (*raw, *pushing.columns)


def _told(node: nodes.SourceNode) -> set[str]:
    """The columns by which a source progresses."""
    spec = node.spec
    marks = {each.column for each in spec.contracts.values() if isinstance(each, Punctuated)}
    return {*spec.contracts, *spec.key_columns, *marks}


def _aggregated(node: nodes.Node) -> set[str]:
    """The columns an aggregate reads."""
    if isinstance(node, nodes.SlidingNode):
        parts = [call.argument for call in node.calls if call.argument is not None]
        return {node.attribute, *node.groups}.union(*(each.meta.root_names() for each in parts))
    timed = nodes.WindowAggregateNode | nodes.SessionNode
    assert isinstance(node, timed | nodes.GroupAggregateNode)
    read = set(node.groups)
    if isinstance(node, timed):
        read.add(node.attribute)
    for aggregate in node.aggregates:
        for part in aggregate.lift:
            read |= set(part.meta.root_names())
    return read


class _Pushing:
    """The expressions of one source that Spark computes."""

    def __init__(self, node: nodes.SourceNode):
        self._schema = node.schema
        self._raw = dict(node.spec.schema)
        self.columns: list[tuple[str, str]] = []
        self.types: dict[str, pl.DataType] = {}

    def computed(self, expression: Expression) -> tuple[pl.Expr, set[str]]:
        """An expression as we use it from now on, and the source columns it still reads."""
        roots = set(expression.polars.meta.root_names())
        same = all(self._raw.get(name) == self._schema[name] for name in roots)
        text = spark_text(expression, self._schema) if same and roots else None
        if text is None or expression.polars.meta.is_column():
            return expression.polars, roots
        name = f"{COMPUTED}{len(self.columns)}"
        self.columns.append((name, text))
        self.types[name] = expression.dtype
        return pl.col(name), set()

    def projected(self, node: nodes.ProjectNode) -> tuple[list[pl.Expr], set[str]]:
        """The items of a projection, likewise."""
        expressions, read = [], set()
        for name, item in node.items:
            expression, roots = self.computed(item)
            expressions.append(expression.alias(name))
            read |= roots
        return expressions, read


def _selecting(predicate: pl.Expr) -> Build:
    return lambda store, _: Select(store, predicate)


def _projecting(node: nodes.ProjectNode, expressions: list[pl.Expr]) -> Build:
    derived: dict[str, Derivation] = dict(node.derived)
    copied = dict(node.copied)
    return lambda store, _: Project(store, expressions, derived, copied)
