"""The main time of a query is the attribute that operators use where the query names none.

A union has the main time of its first stream, if every stream promises it. If one does not, no
other attribute takes its place, because windows by it would mean something else; the query has to
name the attribute.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import polars as pl

from lowwater.errors import QueryError, Term
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
    other = f"; or {named}" if named else ""
    raise QueryError(f"{use} needs a time, and {reason[1]}. ", *_cure(node, reason[0]), other)


def _cure(node: Node, time: str) -> Sequence[str | Term]:
    """Return what to write where not all inputs of a union promise the time in one unit."""
    while not isinstance(node, UnionNode):
        node = node.inputs[0]
    if all(time in each.progress for each in node.inputs):
        return common_time(time, [time] * len(node.inputs), node.inputs)
    return [f"Promise it there too, progress={{{time!r}: ..., ...}}"]


COMMON_TIME = "time= names the columns that become a common time, {'t': ('ts', 'sent')}"


def common_time(name: str, columns: Sequence[str], inputs: Sequence[Node]) -> list[str | Term]:
    """Return what to write so that a column of each input becomes one time of their union."""
    fluent = f"union(..., time={{{name!r}: {tuple(columns)!r}}})"
    domains = [node.progress[column].domain for node, column in zip(inputs, columns, strict=True)]
    finest = max(each.ticks_per_second for each in domains)
    clause = "time columns of one type where the streams are declared"
    if len(set(domains)) == 1:
        other = next(each for each in columns if each != name)
        clause = f"SELECT ..., {other} AS {name}"
    elif all(each.dtype.is_integer() for each in domains):
        coarse = next(i for i, each in enumerate(domains) if each.ticks_per_second < finest)
        factor = finest // max(1, domains[coarse].ticks_per_second)
        clause = f"SELECT ..., {columns[coarse]} * {factor} AS {name}"
        clause += f" FROM {stream_names(inputs[coarse])}"
    elif {each.dtype for each in domains} == {pl.Datetime("ms"), pl.Datetime("us")}:
        coarse = next(i for i, each in enumerate(domains) if each.ticks_per_second < finest)
        clause = f"SELECT ..., CAST({columns[coarse]} AS TIMESTAMP) AS {name}"
        clause += f" FROM {stream_names(inputs[coarse])}"
    return ["Bring them together: ", Term(fluent, clause)]


def lost_progress(node: UnionNode) -> Iterator[str]:
    """Yield a sentence for each column on which an input of a union progresses and it does not."""
    names = dict.fromkeys(name for each in node.inputs for name in each.progress)
    for name in names:
        if name not in node.progress and name in node.schema:
            yield f"does not progress beyond the union: {name}, {_why_not(node, name)}"


def _why_not(node: UnionNode, name: str) -> str:
    promising = [each for each in node.inputs if name in each.progress]
    for each in node.inputs:
        if each not in promising:
            return f"on which {stream_names(each)} makes no promise"
    first = promising[0].progress[name].domain
    other = next(each for each in promising if each.progress[name].domain != first)
    return f"which {stream_names(other)} counts in another unit than {stream_names(promising[0])}"


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
            why = f"which {stream_names(other)} does not promise (it promises {there})"
        elif attribute.domain != first.progress[first.time].domain:
            why = f"which {stream_names(other)} counts in another unit"
        else:
            continue
        return first.time, f"the time of this union is {first.time} of {stream_names(first)}, {why}"
    return None


def stream_names(node: Node) -> str:
    """Return the names of the streams whose rows a node has."""
    if isinstance(node, SourceNode):
        return f"stream {node.spec.name!r}"
    return " and ".join(dict.fromkeys(stream_names(each) for each in node.inputs))
