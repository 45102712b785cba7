"""The main time of a query is the attribute that operators use where the query names none.

A union has the main time of its first stream, if every stream promises it. If one does not, no
other attribute takes its place, because windows by it would mean something else; the query has to
name the attribute.
"""

from __future__ import annotations

from lowwater.errors import QueryError
from lowwater.plan.nodes import ApplyNode, FilterNode, Node, ProjectNode, SourceNode, UnionNode


def main_time(node: Node, use: str, option: str, of: str = "") -> str:
    """Return the main time of a node; refuse a node without one, with the reason and a remedy.

    The other arguments are parts of the message: ``use`` is the operation that needs the time,
    ``of`` an addition such as " of every input", and ``option`` the option that names an attribute
    instead, with ``{}`` for the name.
    """
    if node.time is not None:
        return node.time
    usable = [name for name, each in node.progress.items() if not each.nullable]
    named = f"name the attribute: {option.format(repr(usable[0]))}" if usable else ""
    reason = undecided(node)
    if reason is None:
        raise QueryError(
            f"{use} needs a progressing attribute{of}, and this stream has none"
            + (f"; {named}" if named else "")
        )
    cure = f"Promise it there too, progress={{{reason[0]!r}: ..., ...}}"
    other = f"; or {named}" if named else ""
    raise QueryError(f"{use} needs a time, and {reason[1]}. {cure}{other}")


def undecided(node: Node) -> tuple[str, str] | None:
    """Return the time that not all inputs of a union promise, and a clause that says so; None if a
    node has a main time, or has none for another reason."""
    if node.time is not None:
        return None
    if isinstance(node, FilterNode | ProjectNode | ApplyNode):
        return undecided(node.inputs[0])
    if not isinstance(node, UnionNode):
        return None
    first, *others = node.inputs
    if first.time is None:
        return undecided(first)
    for other in others:
        attribute = other.progress.get(first.time)
        if attribute is None or attribute.nullable:
            there = ", ".join(other.progress) or "nothing"
            why = f"which {_name(other)} does not promise (it promises {there})"
        elif attribute.domain != first.progress[first.time].domain:
            why = f"which {_name(other)} counts in another unit"
        else:
            continue
        return first.time, f"the time of this union is {first.time} of {_name(first)}, {why}"
    return None


def _name(node: Node) -> str:
    """Return the names of the streams whose rows a node has."""
    if isinstance(node, SourceNode):
        return f"stream {node.spec.name!r}"
    return " and ".join(dict.fromkeys(_name(each) for each in node.inputs))
