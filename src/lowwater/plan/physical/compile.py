"""Logical nodes to physical operators, in the out-of-order shape or the in-order one.

The in-order shape (IOP) is the same kernels with order put in: disordered sources are sorted,
unions merge, joins sort their output. It is the baseline the out-of-order shape is measured by.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from lowwater.errors import OptionError, QueryError
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical.aggregates import (
    compile_groups,
    compile_session,
    compile_sliding,
    compile_window,
)
from lowwater.plan.physical.apply import compile_apply
from lowwater.plan.physical.compiler import Compile, Compiler
from lowwater.plan.physical.joins import compile_join
from lowwater.plan.physical.multi_joins import compile_multi_join
from lowwater.plan.physical.operator import PhysicalPlan, PlanShape
from lowwater.plan.physical.rows import (
    compile_distinct,
    compile_filter,
    compile_order,
    compile_project,
    compile_source,
    compile_stamp,
    compile_union,
)
from lowwater.plan.physical.updates import compile_newest_join, compile_update
from lowwater.stream.element import SEQUENCE


def compile_plan(root: Node, shape: PlanShape = "out-of-order") -> PhysicalPlan:
    """Turn a query into operators."""
    if shape not in ("out-of-order", "in-order"):
        raise OptionError(f"plan= is 'out-of-order' or 'in-order', not {shape!r}")
    _refuse_same_names(root)
    compiler = Compiler(_COMPILERS, shape == "in-order", _numbered_nodes(root))
    last = compiler.compile(root)
    unordered = isinstance(root, nodes.AnyJoin) and root.ordering is None and root.updates is None
    if compiler.in_order and unordered and root.time is not None:
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


_COMPILERS: Mapping[type[Node], Compile] = {
    nodes.SourceNode: compile_source,
    nodes.StampNode: compile_stamp,
    nodes.UpdateNode: compile_update,
    nodes.FilterNode: compile_filter,
    nodes.ProjectNode: compile_project,
    nodes.ApplyNode: compile_apply,
    nodes.UnionNode: compile_union,
    nodes.WindowAggregateNode: compile_window,
    nodes.SessionNode: compile_session,
    nodes.SlidingNode: compile_sliding,
    nodes.GroupAggregateNode: compile_groups,
    nodes.JoinNode: compile_join,
    nodes.NewestJoinNode: compile_newest_join,
    nodes.MultiJoinNode: compile_multi_join,
    nodes.DistinctNode: compile_distinct,
    nodes.OrderNode: compile_order,
}
