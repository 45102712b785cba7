"""Update streams in a query: where their queue stands, and what may follow it (UpStream §3.2).

A queue stands right behind the source, so that all work that follows is on rows that are newest.
Where a window or a union follows, it stands there instead: what is replaced then is a window, or
the row of either input, and rows have to come to it first. Row-wise operators on the way run before
it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lowwater.errors import QueryError
from lowwater.plan import nodes
from lowwater.plan.nodes import Node
from lowwater.updates.options import Updates


def updated(node: Node, by: Updates, origin: str) -> Node:
    """The rows of a node as updates by key."""
    if node.updates is not None:
        raise QueryError(
            f"this is an update stream already, by ({', '.join(node.updates.key)}); say so once"
        )
    for name in by.key:
        dtype = node.need(name, "update key column")
        if dtype.is_nested() or dtype.is_float():
            raise QueryError(
                f"update key column {name!r} has type {dtype}, whose values are no names; cast it"
                " to a string or an integer"
            )
    if node.time is None:
        raise QueryError(
            "an update stream needs a time by which one row is newer than another, and these rows"
            " have none"
        )
    return nodes.UpdateNode(
        (node,), node.schema, node.progress, node.time, by, arrival=arrival(node), origin=origin
    )


def arrival(node: Node) -> str | None:
    """The column that says when rows of a node arrived, if all its sources have the same."""
    names = {getattr(each.source, "arrival", None) for each in sources(node)}
    if len(names) != 1:
        return None
    name = names.pop()
    return name if name in node.schema else None


def sources(node: Node) -> list[nodes.SourceNode]:
    """The sources a node's rows come from."""
    if isinstance(node, nodes.SourceNode):
        return [node]
    return [source for each in node.inputs for source in sources(each)]


def without_queue(node: Node) -> Node:
    """The rows of an update stream before its queue: what comes to a queue that stands later."""
    if isinstance(node, nodes.UpdateNode):
        if len(node.inputs) == 1:
            return node.inputs[0]
        return nodes.UnionNode(
            node.inputs, node.schema, node.progress, node.time, origin=node.origin
        )
    if isinstance(node, nodes.FilterNode | nodes.ProjectNode | nodes.ApplyNode):
        return replace(node, inputs=(without_queue(node.inputs[0]),))
    raise QueryError(
        "windows and unions of update streams go over their rows, filtered and computed; here"
        " they would go over answers"
    )


def refuse(inputs: Sequence[Node], what: str, instead: str) -> None:
    """Refuse what has no meaning for rows that are given up under load."""
    for each in inputs:
        if each.updates is not None:
            raise QueryError(
                f"{what} over an update stream would be of whatever rows are left of it under"
                f" load; {instead}"
            )
