"""The shape of the answers of a query that ends with an update key, for pull queries.

Which columns of a queue's key name an answer follows from the traits of the operators between the
queue and the result, which say under which names columns pass.
"""

from __future__ import annotations

from collections.abc import Iterator

from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.plan.physical.operator import KernelOperator, PhysicalPlan, unchanged
from lowwater.updates.answers import AnswerShape, QueueKeys


def answer_shape(plan: PhysicalPlan) -> AnswerShape | None:
    """Return the shape of a plan's answers; None if they do not replace each other by key."""
    node = plan.result.node
    if node.updates is None:
        return None
    schema, key = dict(plan.schema), node.updates.key
    return AnswerShape(
        schema,
        key,
        _row_key(node, key),
        tuple(name for name in _stamps(node) if name in schema),
        tuple(_queues(plan, plan.result.index, key)),
    )


def _row_key(node: Node, key: tuple[str, ...]) -> tuple[str, ...]:
    """Return the columns that name a row of the answer of a key: the groups of a window, as far as
    they are still there."""
    if isinstance(node, nodes.WindowAggregateNode):
        return node.groups
    if not isinstance(node, nodes.FilterNode | nodes.ProjectNode | nodes.ApplyNode):
        return key
    before = node.inputs[0].updates
    assert before is not None
    below = _row_key(node.inputs[0], before.key)
    if isinstance(node, nodes.ProjectNode):
        return tuple(node.copied[name] for name in below if name in node.copied)
    return tuple(name for name in below if name in node.schema)


def _stamps(node: Node) -> tuple[str, ...]:
    return _stamps(node.inputs[0]) if isinstance(node, nodes.ApplyNode) else node.stamps


def _queues(plan: PhysicalPlan, index: int, key: tuple[str, ...]) -> Iterator[QueueKeys]:
    """Yield the queues behind an operator, whose answers have some key columns."""
    operator = plan.operators[index]
    by = operator.node.updates
    if isinstance(operator, KernelOperator) and operator.kernel.queues and by is not None:
        yield QueueKeys(index, tuple(by.key.index(name) for name in key))
        return
    ways = dict(operator.traits.passes)
    if isinstance(operator.node, nodes.ApplyNode):  # a function does not change an update key
        ways = dict(unchanged(key))
    for port, before in enumerate(operator.inputs):
        names = [ways[name][port] for name in key if name in ways]
        if len(names) == len(key):
            yield from _queues(plan, before, tuple(names))
