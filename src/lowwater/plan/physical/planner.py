"""The planner compiles logical nodes to operators, in the out-of-order or the in-order shape.

The in-order shape (IOP) uses the same kernels and adds order: it sorts disordered sources, merges
unions and sorts the output of joins. The out-of-order shape is measured against it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from lowwater.errors import OptionError, QueryError
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical import aggregates, joins, rows, updates
from lowwater.plan.physical.compiler import Compile, Compiler
from lowwater.plan.physical.operator import PhysicalPlan, PlanShape
from lowwater.plan.physical.sharing import SharedPlan, with_shared_queues


def compile_plan(root: Node, shape: PlanShape = "out-of-order") -> PhysicalPlan:
    """Return the operators of a query; in the in-order shape, with sorts and merges."""
    compiler = _compiler([root], shape)
    _compile(compiler, root)
    return compiler.plan(root.schema)


def compile_shared(
    queries: Mapping[str, Node], weights: Sequence[float], shape: PlanShape = "out-of-order"
) -> SharedPlan:
    """Return one plan of several queries in which they share the queues of update streams;
    ``weights`` are those of their staleness."""
    roots = list(queries.values())
    compiler = _compiler(roots, shape)
    results = tuple(_compile(compiler, root) for root in roots)
    plan = SharedPlan(compiler.plan(roots[-1].schema), tuple(queries), results)
    return with_shared_queues(plan, weights)


def _compiler(roots: Sequence[Node], shape: PlanShape) -> Compiler:
    if shape not in ("out-of-order", "in-order"):
        raise OptionError(f"plan= is 'out-of-order' or 'in-order', not {shape!r}")
    _refuse_same_names(roots)
    numbered = set[int]().union(*map(_numbered_nodes, roots))
    return Compiler(_COMPILERS, shape == "in-order", numbered)


def _compile(compiler: Compiler, root: Node) -> int:
    """Append the operators of a query and return the index of its result."""
    last = compiler.compile(root)
    unordered = isinstance(root, nodes.AnyJoin) and root.ordering is None and root.updates is None
    if compiler.in_order and unordered and root.time is not None:
        return compiler.sort(root, last, root.time)
    return last


def _refuse_same_names(roots: Iterable[Node]) -> None:
    """Refuse two streams of one name: errors, metrics and the side output name streams."""
    seen: dict[str, Node] = {}
    for node in (each for root in roots for each in _all(root)):
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
