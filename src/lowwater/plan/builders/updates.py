"""Builders of update streams place their queues, and refuse operators that cannot follow them.

A queue stands right behind the source, so that the operators after it work on the newest rows only
(UpStream §3.2). Where a window or a union follows, the queue stands there instead, because windows
or the rows of several inputs replace each other then. Row-wise operators on the way run before it.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import replace

import polars as pl

from lowwater.errors import QueryError, Term
from lowwater.joins.shape import How, kind_words
from lowwater.plan import nodes
from lowwater.plan.expressions import Formula, compile_predicate
from lowwater.plan.main_time import undecided
from lowwater.plan.nodes import Node
from lowwater.plan.text_places import under
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.options import DELETE_WHEN, EXPIRE, FRESH_WITHIN, WEIGHTS, Deletion, Updates


def updated(node: Node, by: Updates, deletes: Formula | None, origin: str) -> Node:
    """Return the rows of a node as updates by key; ``deletes`` is the condition of ``by``."""
    if node.updates is not None:
        raise QueryError(
            f"this is an update stream already, by ({', '.join(node.updates.key)}); say so once"
        )
    for name in by.key:
        dtype = node.need(name, "update key column")
        if dtype.is_nested() or dtype.is_float():
            raise QueryError(
                f"update key column {name!r} has type {dtype}, whose values cannot identify a key;"
                " cast it to a string or an integer"
            )
    for source in sources(node):
        if source.spec.ended is not None:
            raise QueryError(
                f"stream {source.spec.name!r}: ended= says that a channel or group has ended; a key"
                " of an update stream is deleted by ",
                DELETE_WHEN,
                f": write the condition {source.spec.ended!r} there, and leave ended= out",
            )
    _check_weights(node, by)
    if node.time is None:
        reason = undecided(node)
        raise QueryError(
            "an update stream needs a time by which one row is newer than another, and"
            f" {'these rows have none' if reason is None else reason[1]}"
        )
    return nodes.UpdateNode(
        (node,),
        node.schema,
        node.progress,
        node.time,
        _forgetting(node, node.time, by, deletes),
        arrival=arrival(node),
        origin=origin,
    )


def _forgetting(node: Node, time: str, by: Updates, deletes: Formula | None) -> Updates:
    """Return the options with the checked condition that deletes keys; refuse options that forget
    keys over a time about which nothing is promised."""
    if not by.forgets:
        return by
    said = EXPIRE if by.expire is not None else DELETE_WHEN
    domain = node.progressing(time, str(said))
    for source in sources(node):
        if source.time is not None and not source.spec.promises(source.time):
            raise QueryError(
                said,
                " needs promises about times, and nothing is promised about"
                f" {source.time} of {source.spec.name}; declare progress=lw.within(...) or"
                " lw.learned(...)",
            )
    expire_of(by, domain)
    if by.delete_when is None or deletes is None:
        return by
    with under(DELETE_WHEN):
        condition = compile_predicate(deletes, node.schema)
    names = sorted(set(condition.polars.meta.root_names()))
    if not names:
        raise QueryError(
            DELETE_WHEN.given(by.delete_when),
            " reads no column; it is a condition on a row that deletes its key",
            about=DELETE_WHEN,
        )
    columns = tuple((name, name) for name in names)
    return replace(by, deletion=Deletion(by.delete_when, condition.polars, columns))


def expire_of(by: Updates, domain: TimeDomain) -> int | None:
    """Return the ticks after which a key expires; None for never."""
    return None if by.expire is None else domain.ticks(f"{by.expire} ns", EXPIRE)


def check_deletion(by: Updates, where: str) -> None:
    """Refuse a queue behind a select that leaves out a column of the condition that deletes
    keys."""
    lost = by.deletion.lost if by.deletion is not None else []
    if lost:
        raise QueryError(
            f"{where}: the queue stands here, and ",
            DELETE_WHEN.given(by.delete_when),
            f" needs {lost[0]} of its rows; keep that column where columns are selected",
            about=DELETE_WHEN,
        )


def _check_weights(node: Node, by: Updates) -> None:
    """Refuse weights and targets of keys that the key columns cannot have."""
    said = [(WEIGHTS, key) for key, _ in by.weights] + [
        (FRESH_WITHIN, key) for key, _ in by.targets
    ]
    for at, name in enumerate(by.key):
        dtype = node.schema[name]
        for option, key in said:
            if not _is_value(key[at], dtype):
                raise QueryError(
                    option,
                    f": {key[at]!r} is no value of update key column {name!r}, which has type"
                    f" {dtype}",
                )


def _is_value(value: object, dtype: pl.DataType) -> bool:
    try:
        return bool(pl.Series([value], dtype=dtype, strict=True)[0] == value)
    except (TypeError, pl.exceptions.PolarsError):
        return False


def arrival(node: Node) -> str | None:
    """Return the column of arrival times that all sources of a node have; None if they differ."""
    names = {getattr(each.source, "arrival", None) for each in sources(node)}
    if len(names) != 1:
        return None
    name = names.pop()
    return name if name in node.schema else None


def sources(node: Node) -> list[nodes.SourceNode]:
    """Return the sources of a node's rows."""
    if isinstance(node, nodes.SourceNode):
        return [node]
    return [source for each in node.inputs for source in sources(each)]


def before_queue(node: Node) -> list[Node]:
    """Return the rows of an update stream before its queue, for each input of the queue."""
    if isinstance(node, nodes.UpdateNode):
        return list(node.inputs)
    if isinstance(node, nodes.FilterNode | nodes.ProjectNode | nodes.ApplyNode):
        return [replace(node, inputs=(each,)) for each in before_queue(node.inputs[0])]
    raise QueryError(
        "windows and unions of update streams read rows that are filtered or computed; here they"
        " would read answers"
    )


def without_queue(node: Node) -> Node:
    """Return the rows of an update stream before its queue, for a queue that stands later.

    If several inputs have a row of one key and time, the first of these rows is kept.
    """
    found = before_queue(node)
    if len(found) == 1:
        return found[0]
    by, time = node.updates, node.time
    assert by is not None
    united = nodes.UnionNode(tuple(found), node.schema, node.progress, time, origin=node.origin)
    if time is None:
        return united
    return nodes.DistinctNode(
        (united,), node.schema, node.progress, time, (*by.key, time), time, origin=node.origin
    )


# ---- unions ------------------------------------------------------------------------------------


def parts_of_union(inputs: Sequence[Node]) -> list[list[Node]]:
    """Return the rows that come to the one queue of a union, for each of its streams."""
    by = inputs[0].updates
    for each in inputs:
        if each.updates is None or by is None:
            raise QueryError(
                "union: some of these are update streams and some are not; give the others their"
                " update key, updates('k') for example"
            )
        if each.updates != by:
            raise QueryError(
                "union needs update streams with one key and the same options:"
                f" {_spelled(by)} against {_spelled(each.updates)}"
            )
    return [before_queue(each) for each in inputs]


def _spelled(by: Updates) -> str:
    return f"({', '.join(by.key)}), {by.describe()}"


def united(rows: Node, by: Updates, prefer: int | None) -> Node:
    """Return the queue of several inputs, from the union of their rows."""
    if rows.time is None:
        reason = undecided(rows)
        raise QueryError(
            "a union of update streams needs the time by which one row is newer than another;"
            f" {'keep it where columns are selected' if reason is None else reason[1]}"
        )
    check_deletion(by, "union")
    arrivals = {arrival(each) for each in rows.inputs}
    return nodes.UpdateNode(
        rows.inputs,
        rows.schema,
        rows.progress,
        rows.time,
        by,
        prefer=prefer,
        arrival=arrivals.pop() if len(arrivals) == 1 else None,
        origin=rows.origin,
    )


def preferred(
    inputs: Sequence[Node], parts: Sequence[Sequence[Node]], prefer: Node | str | None
) -> int | None:
    """Return the preferred input of a union's queue, given by its stream or the name of its source;
    None for none."""
    rows = [each for own in parts for each in own]
    before = _preferred_before(inputs, parts)
    if prefer is None:
        return before
    if before is not None:
        raise QueryError("union: prefer= is given for streams united before; give it once")
    if isinstance(prefer, str):
        found = [at for at, each in enumerate(rows) if prefer in _stream_names([each])]
    else:
        owners = [node for node, own in zip(inputs, parts, strict=True) for _ in own]
        found = [at for at, owner in enumerate(owners) if owner is prefer]
    if len(found) == 1:
        return found[0]
    known = ", ".join(dict.fromkeys(_stream_names(rows)))
    raise QueryError(f"union: prefer= is one of the streams that are united ({known})")


def _preferred_before(inputs: Sequence[Node], parts: Sequence[Sequence[Node]]) -> int | None:
    """Return the input that one of the streams, itself a union, prefers, by its number among the
    inputs of the whole union; None if none does."""
    found, first = [], 0
    for node, own in zip(inputs, parts, strict=True):
        prefer = _queue(node).prefer
        found += [first + prefer] if prefer is not None else []
        first += len(own)
    if len(found) > 1:
        raise QueryError("union: several of these streams prefer one already; say prefer= once")
    return found[0] if found else None


def _queue(node: Node) -> nodes.UpdateNode:
    """Return the queue whose rows a node filters and computes from."""
    while not isinstance(node, nodes.UpdateNode):
        (node,) = node.inputs
    return node


def _stream_names(rows: Sequence[Node]) -> list[str]:
    return [source.spec.name for each in rows for source in sources(each)]


# ---- joins -------------------------------------------------------------------------------------


def both(left: Node, right: Node) -> bool:
    """Return True if two inputs are update streams; their join is then an update stream too."""
    return left.updates is not None and right.updates is not None


def check_join(
    left: Node, right: Node, pairs: Sequence[tuple[str, str]], how: How, ordered: bool
) -> tuple[tuple[str, str], ...]:
    """Return the columns of both update keys, which must be among those that are equal in a
    join."""
    assert left.updates is not None
    assert right.updates is not None
    if how != "inner":
        raise QueryError(
            f"{kind_words(how)} of update streams is refused: the next update may change whether a"
            " row has a partner, and a result that was shown is not taken back; use an inner join"
        )
    if ordered:
        refuse_order(left)
    found = key_pairs(left, right, pairs)
    if found is None:
        one, two = left.updates.key, right.updates.key
        raise QueryError(
            "a join of update streams has both update keys among the columns that must be equal:"
            f" ({', '.join(one)}) of the left and ({', '.join(two)}) of the right"
        )
    return found


def refuse_order(node: Node) -> None:
    """Refuse to put the results of a join of update streams in order."""
    refuse([node], "the order of a join", "the results of each key leave in order")


def key_pairs(
    left: Node, right: Node, pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[str, str], ...] | None:
    """Return the update keys of two inputs as pairs of equal columns; None if pairs do not connect
    them."""
    assert left.updates is not None
    assert right.updates is not None
    ones, twos = _same_as_key(left), _same_as_key(right)
    meant = [(ones[one], twos[two]) for one, two in pairs if one in ones and two in twos]
    found: list[tuple[str, str]] = []
    for name in left.updates.key:
        free = set(right.updates.key) - {two for _, two in found}
        found += [pair for pair in meant if pair[0] == name and pair[1] in free][:1]
    whole = len(found) == len(left.updates.key) == len(right.updates.key)
    return tuple(found) if whole else None


def _same_as_key(node: Node) -> dict[str, str]:
    """Return the columns that always equal a column of the update key, with that column.

    Results of joins have the keys of both sides.
    """
    assert node.updates is not None
    same = {name: name for name in node.updates.key}
    if isinstance(node, nodes.FilterNode):
        return _same_as_key(node.inputs[0])
    if isinstance(node, nodes.ProjectNode):
        below = _same_as_key(node.inputs[0])
        return {out: node.copied[below[name]] for name, out in node.copied.items() if name in below}
    if isinstance(node, nodes.JoinNode | nodes.NewestJoinNode):
        left, right = node.inputs
        keys = key_pairs(left, right, node.on) or ()
        ones = {two: one for one, two in keys}
        others = {node.right_names[name]: ones[two] for name, two in _same_as_key(right).items()}
        return _same_as_key(left) | {
            name: one for name, one in others.items() if name in node.schema
        }
    return same


def stamps(node: Node) -> tuple[str, ...]:
    """Return the time columns by which rows of an update stream are newer than others."""
    found = _stamps(node)
    if not found or len({node.schema[name] for name in found}) > 1:
        raise QueryError(
            "a join of update streams needs the times of their rows, by which one is newer than"
            " another, and of one type; keep them where columns are selected"
        )
    return found


def _stamps(node: Node) -> tuple[str, ...]:
    if not isinstance(node, nodes.FilterNode | nodes.ProjectNode | nodes.ApplyNode):
        return node.stamps
    below = _stamps(node.inputs[0])
    if isinstance(node, nodes.ProjectNode):
        copied = tuple(node.copied.get(name, "") for name in below)
        return copied if all(copied) else ()
    return below if all(name in node.schema for name in below) else ()


def lifetimes(node: Node, names: Sequence[str]) -> tuple[int | None, ...]:
    """Return the ticks after which rows of an update stream expire, for each of some time columns;
    None for never."""
    known = _lifetimes(node)
    others = [life for life in known.values() if life is not None]
    return tuple(known.get(name, min(others, default=None)) for name in names)


def may_delete(node: Node) -> bool:
    """Return True if keys of a node's input may be deleted."""
    return any(
        (each.updates is not None and each.updates.delete_when is not None) or may_delete(each)
        for each in node.inputs
    )


def _lifetimes(node: Node) -> dict[str, int | None]:
    """Return the time columns of an update stream, each with its lifetime in ticks."""
    if isinstance(node, nodes.UpdateNode | nodes.WindowAggregateNode):
        assert node.updates is not None
        assert node.time is not None
        return {node.time: expire_of(node.updates, node.progress[node.time].domain)}
    below = [_lifetimes(each) for each in node.inputs]
    if isinstance(node, nodes.ProjectNode):
        return {node.copied[name]: life for name, life in below[0].items() if name in node.copied}
    if not isinstance(node, nodes.JoinNode | nodes.NewestJoinNode):
        return below[0]
    outside = {inside: out for out, inside in node.merged.items()}
    found = dict(below[0])
    for name, life in below[1].items():
        inside = node.right_names[name]
        out = outside.get(inside, inside)
        both = [each for each in (life, found.get(out)) if each is not None]
        found[out] = min(both, default=None)
    return found


# ---- refusals ----------------------------------------------------------------------------------


def refuse_lost_key(node: Node, kept: Container[str], how: str) -> None:
    """Refuse to leave out columns of an update key, or to compute them anew."""
    key = node.updates.key if node.updates is not None else ()
    lost = [name for name in key if name not in kept]
    if lost:
        raise QueryError(
            f"the update key ({', '.join(key)}) must stay with its rows, because a row replaces the"
            f" one with the same key; {how.format(lost[0])}"
        )


def refuse(inputs: Sequence[Node], what: str, *instead: str | Term) -> None:
    """Refuse an operator over update streams, whose rows are given up under load; ``instead`` is
    the remedy."""
    for each in inputs:
        if each.updates is not None:
            raise QueryError(
                f"{what} over an update stream would depend on which rows are given up under"
                " load; ",
                *instead,
            )
