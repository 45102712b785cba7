"""Queries over one update stream share its queue: they are compiled to one plan.

The rows of a portion are for some of the queries. Rows that one query was given may be given to
another later, so operators that queries have in common behind a queue must do the same with a row
whenever it comes. Row-wise operators do. Queries that have other operators in common are one
*reader*: they are given rows together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.nodes import Node
from lowwater.plan.physical.operator import KernelOperator, PhysicalPlan
from lowwater.plan.physical.updates import queue_remarks, queued_rows
from lowwater.updates.options import Updates
from lowwater.updates.shared.readers import Reader
from lowwater.updates.shared.shared_queue import SharedUpdateQueue


@dataclass(frozen=True)
class SharedPlan:
    """A plan with the results of several queries, which share queues."""

    plan: PhysicalPlan
    names: tuple[str, ...]
    """The queries; the number of a query is its position."""
    results: tuple[int, ...]
    """The operator whose output is the result, for each query."""

    def schema(self, query: int) -> Mapping[str, pl.DataType]:
        """Return the columns of the results of a query."""
        return self.plan.operators[self.results[query]].node.schema

    def queries_of(self, index: int) -> frozenset[int]:
        """Return the queries whose results an operator takes part in, by number."""
        found = {at for at, result in enumerate(self.results) if result == index}
        return frozenset(found).union(
            *(self.queries_of(consumer) for consumer, _ in self.plan.consumers(index))
        )

    def operators_of(self, query: int) -> list[int]:
        """Return the operators that work for a query, in the order of its part."""
        every = range(len(self.plan.operators))
        return [index for index in every if query in self.queries_of(index)]

    def part(self, query: int) -> PhysicalPlan:
        """Return the operators that work for a query as a plan of its own, for people."""
        plan = self.plan
        kept = [plan.operators[index] for index in self.operators_of(query)]
        place = {each.index: at for at, each in enumerate(kept)}
        moved = tuple(
            replace(each, index=at, inputs=tuple(place[index] for index in each.inputs))
            for at, each in enumerate(kept)
        )
        return PhysicalPlan(moved, dict(self.schema(query)), plan.in_order)


def why_not_shared(by: Updates) -> str | None:
    """Return the reason why queries cannot share a queue with these options; None if they can."""
    if by.schedule not in ("in-place", "auto"):
        return f"schedule={by.schedule!r} has no order over several queries"
    if by.forgets:
        return "expire= and delete_when= tell each query by itself which keys have ended"
    if by.has_targets:
        return "targets of staleness are for the results of one query"
    if by.complete_within is not None:
        return "complete_within= counts the rows that one query has not seen"
    return None


def apart(queries: Mapping[str, Node]) -> list[str]:
    """Return a line for each update stream that several queries read with a queue each, with the
    reason."""
    lines = []
    for node, names in readers_of(queries).values():
        why = why_not_shared(node.by)
        if len(names) > 1 and why is not None:
            lines.append(_apart(names, node, why))
    windows: dict[int, tuple[nodes.SourceNode, list[str]]] = {}
    for name, root in queries.items():
        for each in _all(root):
            if isinstance(each, nodes.WindowAggregateNode) and each.by is not None:
                for source in update_builders.sources(each):
                    windows.setdefault(id(source), (source, []))[1].append(name)
    for source, names in windows.values():
        if len(set(names)) > 1:
            lines.append(_apart(dict.fromkeys(names), source, "their queues are of windows"))
    return lines


def _apart(names: Iterable[str], node: Node, why: str) -> str:
    streams = " and ".join(each.spec.name for each in update_builders.sources(node))
    queries = " and ".join(map(repr, names))
    return f"{queries} have a queue of {streams} each: {why}"


def queues(root: Node) -> dict[int, nodes.UpdateNode]:
    """Return the queues of rows of a query, by identity."""
    return {id(each): each for each in _all(root) if isinstance(each, nodes.UpdateNode)}


def _all(node: Node) -> Iterator[Node]:
    yield node
    for each in node.inputs:
        yield from _all(each)


def sharing(queries: Mapping[str, Node]) -> list[tuple[str, ...]]:
    """Return the groups of queries that share queues, directly or through others; each query is in
    one group."""
    groups: list[set[str]] = [{name} for name in queries]
    for reading in readers_of(queries).values():
        node, names = reading
        if len(names) > 1 and why_not_shared(node.by) is None:
            joined = [group for group in groups if group & set(names)]
            groups = [group for group in groups if group not in joined]
            groups.append(set().union(*joined))
    order = list(queries)
    found = [tuple(sorted(group, key=order.index)) for group in groups]
    return sorted(found, key=lambda group: order.index(group[0]))


def readers_of(queries: Mapping[str, Node]) -> dict[int, tuple[nodes.UpdateNode, list[str]]]:
    """Return each queue of rows with the names of the queries that read it, by identity."""
    found: dict[int, tuple[nodes.UpdateNode, list[str]]] = {}
    for name, root in queries.items():
        for at, node in queues(root).items():
            found.setdefault(at, (node, []))[1].append(name)
    return found


def with_shared_queues(shared: SharedPlan, weights: Sequence[float]) -> SharedPlan:
    """Return a plan in which queues that several queries read give rows to each apart; ``weights``
    are those of the queries' staleness."""
    operators = list(shared.plan.operators)
    for at, operator in enumerate(operators):
        if not isinstance(operator, KernelOperator) or not isinstance(
            operator.node, nodes.UpdateNode
        ):
            continue
        if operator.name != "update" or len(shared.queries_of(at)) < 2:
            continue
        readers = _readers(shared, at, weights)
        if why_not_shared(operator.node.by) is None:
            operators[at] = _sharing(operator, operator.node, readers, shared.names)
    return replace(shared, plan=shared.plan.with_operators(operators))


def _readers(shared: SharedPlan, queue: int, weights: Sequence[float]) -> tuple[Reader, ...]:
    """Return the readers of a queue: its queries, those as one that have operators with state in
    common behind it."""
    groups = [{query} for query in sorted(shared.queries_of(queue))]
    for index in _behind(shared.plan, queue):
        if not shared.plan.operators[index].traits.stateful:
            continue
        common = shared.queries_of(index)
        joined = [group for group in groups if group & common]
        groups = [group for group in groups if group not in joined]
        groups.append(set().union(*joined))
    return tuple(
        Reader(frozenset(group), sum(weights[query] for query in group))
        for group in sorted(groups, key=min)
    )


def _behind(plan: PhysicalPlan, index: int) -> set[int]:
    """Return the operators behind one."""
    direct = {consumer for consumer, _ in plan.consumers(index)}
    return direct.union(*(_behind(plan, each) for each in direct))


def _sharing(
    operator: KernelOperator,
    node: nodes.UpdateNode,
    readers: tuple[Reader, ...],
    names: Sequence[str],
) -> KernelOperator:
    """Return the queue as one that several readers share."""
    by, rows = node.by, queued_rows(node)
    return replace(
        operator,
        kernel=SharedUpdateQueue,
        build=lambda store, host: SharedUpdateQueue(store, by, rows, host, readers),
        remarks=[lambda *_: queue_remarks(node, _service(readers, names))],
    )


def _service(readers: Sequence[Reader], names: Sequence[str]) -> str:
    """Return the line that says what a shared queue serves next."""
    words = []
    for reader in readers:
        several = " with ".join(repr(names[query]) for query in sorted(reader.queries))
        words.append(several if reader.weight == 1 else f"{several} (weight {reader.weight:g})")
    return (
        f"shared by {', '.join(words)}: next are the key and the queries whose service is worth"
        " most, by its cost; on Spark each query has a queue of its own"
    )
