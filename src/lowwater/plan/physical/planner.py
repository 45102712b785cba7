"""The planner compiles logical nodes to operators, in the out-of-order or the in-order shape.

The in-order shape (IOP) uses the same kernels and adds order: it sorts disordered sources, merges
unions and sorts the output of joins. The out-of-order shape is measured against it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from lowwater.errors import OptionError, QueryError
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical import aggregates, joins, rows, updates
from lowwater.plan.physical.compiler import Compile, Compiler
from lowwater.plan.physical.operator import PhysicalPlan, PlanShape


def compile_plan(root: Node, shape: PlanShape = "out-of-order") -> PhysicalPlan:
    """Return the operators of a query; in the in-order shape, with sorts and merges."""
    if shape not in ("out-of-order", "in-order"):
        raise OptionError(f"plan= is 'out-of-order' or 'in-order', not {shape!r}")
    _refuse_same_names(root)
    compiler = Compiler(_COMPILERS, shape == "in-order", _numbered_nodes(root))
    last = compiler.compile(root)
    unordered = isinstance(root, nodes.AnyJoin) and root.ordering is None and root.updates is None
    if compiler.in_order and unordered and root.time is not None:
        compiler.sort(root, last, root.time)
    return compiler.plan(root.schema)


def _refuse_same_names(root: Node) -> None:
    """Refuse two streams of one name: errors, metrics and the side output name streams."""
    seen: dict[str, Node] = {}
    for node in _all(root):
        if isinstance(node, nodes.SourceNode) and seen.setdefault(node.spec.name, node) is not node:
            raise QueryError(f"two streams are named {node.spec.name!r}; give each its own name=")


def _numbered_nodes(root: Node) -> set[int]:
    """Return the nodes whose rows must carry their sequence number, by identity."""
    counting = (node for node in _all(root) if node.counts_rows)
    return {id(each) for node in counting for each in _all(node.inputs[0])}


def _all(root: Node) -> Iterator[Node]:
    """Yield a node and all nodes below it."""
    yield root
    for each in root.inputs:
        yield from _all(each)


_COMPILERS: Mapping[type[Node], Compile] = {
    **rows.COMPILERS,
    **aggregates.COMPILERS,
    **joins.COMPILERS,
    **updates.COMPILERS,
}
