"""What queues of update streams do under load, in words."""

from __future__ import annotations

from lowwater.plan import nodes
from lowwater.plan.builders.updates import lives, may_delete, sources
from lowwater.plan.nodes import Node
from lowwater.plan.physical.operator import Operator
from lowwater.stream.duration import spell
from lowwater.updates.options import Schedule, Updates

_NEXT: dict[Schedule, str] = {
    "in-place": "the key that has waited longest",
    "fifo": "the key whose newest update has waited longest",
    "linecutting": "a key that is rarely updated, or else the one that has waited longest",
    "auto": "the key whose service is worth most",
}


def under_load(operator: Operator) -> list[str]:
    """What an operator that is a queue, or joins what leaves queues, does and keeps."""
    node = operator.node
    if isinstance(node, nodes.NewestJoinNode):
        return [
            f"keeps: the newest row {_of_each(node.updates)} of both inputs{_how_long(node)}",
            f"shows: the newest pair {_of_each(node.updates)}; which older ones are shown before it"
            " depends on which rows are read together",
        ]
    if operator.name == "update" and isinstance(node, nodes.UpdateNode):
        lines = [*_given_up(node.by, "row"), *_of_several(node), _budget(node.by)]
        return [*lines, _kept(node.by), *_spared(node, "union")]
    if operator.name == "update windows" and node.updates is not None:
        kind = "complete window" if node.updates.windows == "lazy" else "window that began"
        lines = [*_given_up(node.updates, kind), _budget(node.updates)]
        return [*lines, _kept(node.updates), *_spared(node, "window")]
    return []


def _kept(by: Updates) -> str:
    """How long keys are kept."""
    if not by.forgets:
        return "keys are kept for ever; expire= or delete_when= bounds that"
    ends = []
    if by.expire is not None:
        ends.append(f"{spell(by.expire)} after their newest row, by the mark")
    if by.delete_when is not None:
        ends.append(f"when a row says {by.delete_when}")
    return f"keys are forgotten {', or '.join(ends)}; what waits is worked on first"


def _how_long(node: nodes.NewestJoinNode) -> str:
    """How long a join of newest rows keeps them."""
    both = zip(node.inputs, node.sides, strict=True)
    ends = [any(life is not None for life in lives(each, side)) for each, side in both]
    if all(ends):
        return ", until they expire"
    if any(ends):
        left = "left" if not ends[0] else "right"
        return f", until they expire, but those of the {left} for ever; expire= bounds that"
    if may_delete(node):
        return ", until their key is deleted"
    return ", for ever; expire= bounds that"


def _spared(node: Node, kind: str) -> list[str]:
    """Functions that run on every row because they stand before the queue."""
    names = [getattr(each.function, "__name__", "function") for each in _applied(node)]
    if not names:
        return []
    behind = (
        f"apply it behind the {kind}"
        if len(node.inputs) > 1 or kind == "window"
        else ("apply it behind updates()")
    )
    return [
        f"before the queue, on every row: {', '.join(names)}; to run it on what is shown alone,"
        f" {behind}"
    ]


def _applied(node: Node) -> list[nodes.ApplyNode]:
    below = [found for each in node.inputs for found in _applied(each)]
    return [*below, node] if isinstance(node, nodes.ApplyNode) else below


def _of_each(by: Updates | None) -> str:
    return f"of each {' and '.join(by.key)}" if by is not None and by.key else "of all"


def _given_up(by: Updates, kind: str) -> list[str]:
    if by.schedule == "append":
        return ["under load: everything waits its turn"]
    if by.schedule == "shedding":
        return ["under load: a share is dropped at random"]
    following = "next is the one whose waiting, times its weight, is greatest"
    if not by.weights:
        following = f"next is {_NEXT[by.schedule]}"
    lines = [f"under load: the newest {kind} {_of_each(by)} waits, older ones are given up"]
    if by.complete_within is not None:
        lines[0] += f", but none as long as none has to wait {spell(by.complete_within)}"
    return [*lines, following] if by.key else lines


def _of_several(node: nodes.UpdateNode) -> list[str]:
    if len(node.inputs) == 1:
        return []
    line = f"of a key and {node.time} one row is shown, the first"
    if node.prefer is not None:
        line += f", or that of {_names(node.inputs[node.prefer])} if it comes while the other waits"
    return [line]


def _names(node: Node) -> str:
    return " and ".join(source.spec.name for source in sources(node))


def _budget(by: Updates) -> str:
    if by.budget is None:
        return "a batch on Spark: as much as keeps answers freshest"
    return f"a batch on Spark: {spell(by.budget)} of work"
