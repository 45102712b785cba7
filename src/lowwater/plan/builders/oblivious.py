"""Builders of joins of equal times without a window decide which joins measure their inputs.

A join of equal progressing attributes drops rows by promises, exactly, if all its inputs make
promises and no option lets it measure. Otherwise it estimates its marks from the disorder that it
measures (WO-Join). The promises that such a join makes about its results are true, so operators
after it use them like any others; only the decision *whether a join measures* depends on the
streams below it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from lowwater.errors import OptionError, QueryError
from lowwater.joins.oblivious.memory_model import InputTraits, joined
from lowwater.joins.oblivious.options import ACCURACY, Oblivious, Strategy
from lowwater.joins.oblivious.read_ahead import TERM, ReadAhead
from lowwater.joins.ordered.strategy import Ordering
from lowwater.joins.shape import KINDS, How
from lowwater.plan import nodes
from lowwater.plan.expressions import Formula, compile_predicate
from lowwater.plan.nodes import Node, Progressing
from lowwater.progress.contract import Unpromised
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.element import SEQUENCE
from lowwater.stream.size import Size, byte_count

OPTIONS = "memory=, strategy=, accuracy=, latency= and read_ahead="


def options_of(
    memory: Size | None = None,
    strategy: Strategy | None = None,
    accuracy: float | None = None,
    latency: Duration | None = None,
    read_ahead: int | str | None = None,
) -> Oblivious | None:
    """Return the checked options of a join that measures; None if none is given."""
    if all(each is None for each in (memory, strategy, accuracy, latency, read_ahead)):
        return None
    if accuracy is not None and (not isinstance(accuracy, int | float) or accuracy is True):
        raise OptionError(f"accuracy= is a share of results such as 0.999, not {accuracy!r}")
    wait = None if latency is None else nanoseconds(latency, "latency=")
    if wait is not None and wait <= 0:
        raise OptionError("latency= is how long a row may wait, a length of time above zero")
    found = Oblivious(
        None if memory is None else byte_count(memory),
        "auto" if strategy is None else strategy,
        ACCURACY if accuracy is None else float(accuracy),
        wait,
        ReadAhead.of(read_ahead),
    )
    if read_ahead is not None and found.strategy in ("plain", "msf"):
        raise OptionError(
            TERM,
            f" is about rows on disk, and strategy {found.strategy!r} puts none there; take 'dbf',"
            " 'hybrid' or 'auto', or leave it out",
        )
    return found


# ---- what is below -----------------------------------------------------------------------------


def unpromised(node: Node, column: str, through: bool = False) -> list[tuple[str, str]]:
    """Return the streams without promises that a progressing column depends on, with their columns.

    A join that measures makes promises of its own, so streams below it count only if ``through``.
    """
    return [
        (source.spec.name, name)
        for source, name in dict.fromkeys(_origins(node, column, through))
        if not source.spec.promises(name)
    ]


def _origins(node: Node, column: str, through: bool) -> Iterator[tuple[nodes.SourceNode, str]]:
    """Yield the attributes of sources that a progressing column depends on."""
    if isinstance(node, nodes.SourceNode):
        yield node, column
        return
    for below, name in _below(node, column, through):
        yield from _origins(below, name, through)


def _below(node: Node, column: str, through: bool) -> list[tuple[Node, str]]:
    """Return the columns of a node's inputs that one of its progressing columns depends on."""
    if isinstance(node, nodes.AnyJoin):  # the marks of all times decide when any row is dropped
        if node.oblivious is not None and not through:
            return []
        times = list(zip(node.inputs, node.times, strict=True))
        return times + [
            (node.inputs[each.side], each.name) for each in node.carried if each.out == column
        ]
    if isinstance(node, nodes.ProjectNode):
        return [(node.inputs[0], source) for source, _ in node.derived[column].sources]
    timed = nodes.WindowAggregateNode | nodes.SessionNode | nodes.SlidingNode | nodes.LastRowsNode
    if isinstance(node, timed):
        return [(node.inputs[0], node.attribute)] if node.attribute != SEQUENCE else []
    return [(each, column) for each in node.inputs if column in each.progress]


def rooted(node: Node, column: str) -> tuple[Node, str]:
    """Follow a progressing column down through what only drops rows or adds constants.

    Return the node and the column that are reached. A bound on the disorder there holds for the
    column too, because some of the rows are no more disordered than all of them.
    """
    while node.drops_rows or isinstance(node, nodes.ProjectNode):
        if isinstance(node, nodes.ProjectNode):
            derivation = node.derived[column]
            if derivation.only is None or derivation.bucket != 1:
                break
            column = derivation.only
        node = node.inputs[0]
    return node, column


def declared_facts(node: Node, column: str) -> Unpromised:
    """Return the facts declared about an attribute of a source; none for other columns."""
    contract = node.spec.contracts.get(column) if isinstance(node, nodes.SourceNode) else None
    return contract if isinstance(contract, Unpromised) else Unpromised()


def measures_equal_times(node: Node) -> bool:
    """Return true for an inner join of equal times that measures its inputs. Theorem 3.1 bounds the
    disorder of its results, and not that of results that wait for a partner."""
    if not isinstance(node, nodes.MultiJoinNode) or node.oblivious is None:
        return False
    return node.kind.pairs and not any(node.windows)


def disorder_of(node: Node, column: str) -> int | None:
    """Return the scrambling factor of an input of a join, in rows; None if it does not follow from
    declared facts."""
    found = _bounded(node, column)
    return None if found is None else found.disorder


def _bounded(node: Node, column: str) -> InputTraits | None:
    """Return the disorder and multiplicity of an input, in rows; None if declared facts do not give
    them. Those of a join's results follow by Theorem 3.1; the rates in the traits are not used."""
    node, column = rooted(node, column)
    if measures_equal_times(node):
        assert isinstance(node, nodes.AnyJoin)
        inputs = [_bounded(each, time) for each, time in zip(node.inputs, node.times, strict=True)]
        sure = [each for each in inputs if each is not None]
        return joined(sure) if len(sure) == len(inputs) else None
    known = declared_facts(node, column)
    if known.disorder is None:
        return None
    # Rows with the same time are at most the scrambling factor apart.
    most = known.disorder + 1 if known.multiplicity is None else known.multiplicity
    return InputTraits(1.0, known.disorder, most)


# ---- which joins measure -----------------------------------------------------------------------


def measuring_options(
    inputs: Sequence[Node], times: Sequence[str], given: Oblivious | None, through: bool = True
) -> Oblivious | None:
    """Return the options of a join that measures its inputs; None if the join drops rows by
    promises alone.

    A join over the results of another one that measures does the same, if ``through``.
    """
    below = (unpromised(node, time, through) for node, time in zip(inputs, times, strict=True))
    if given is None and not any(below):
        return None
    known = tuple(disorder_of(node, time) for node, time in zip(inputs, times, strict=True))
    return replace(given or Oblivious(), disorder=known)


def measuring_join(
    inputs: Sequence[Node],
    *,
    keys: tuple[tuple[str, ...], ...],
    times: tuple[str, ...],
    names: Sequence[Mapping[str, str]],
    merged: Mapping[str, str],
    schema: Mapping[str, pl.DataType],
    where: Formula | None,
    options: Oblivious,
    origin: str,
    windows: Sequence[int] = (),
    how: How = "inner",
) -> Node:
    """Return a join that measures its inputs; of its columns only the times progress.

    Without ``windows`` the times are equal.
    """
    inside = [each[time] for each, time in zip(names, times, strict=True)]
    outs = [merged.get(name, name) for name in inside]
    domain, kind = inputs[0].progressing(times[0], "a join"), KINDS[how]
    windows = tuple(windows) or (0,) * len(inputs)
    progress: dict[str, Progressing] = {}
    for port, out in enumerate(outs):
        if kind.pairs:
            behind = {other: windows[port] for other in outs if other != out}
            progress.setdefault(out, Progressing(domain, behind=behind))
        elif port in kind.shown:
            nullable = port not in kind.whole and len(set(outs)) > 1
            partners = frozenset() if kind.whole else frozenset(outs)
            progress.setdefault(out, Progressing(domain, nullable, partners))
    usable = [out for out, each in progress.items() if not each.nullable]
    if not any(windows) and times not in keys:
        keys = (times, *keys)
    return nodes.MultiJoinNode(
        tuple(inputs),
        {name: schema[name] for name in inputs[0].schema} if kind.shown == (0,) else schema,
        progress,
        usable[0] if usable else None,
        times,
        keys,
        windows,
        tuple(names),
        merged,
        compile_predicate(where, schema) if where else None,
        oblivious=options,
        how=how,
        origin=origin,
    )


def best_times(inputs: Sequence[Node], keys: Sequence[tuple[str, ...]]) -> tuple[str, ...] | None:
    """Return the equal columns that progress in all inputs, those with promises first; None for
    none."""
    found = [
        names
        for names in keys
        if all(name in node.progress for name, node in zip(names, inputs, strict=True))
    ]
    sure = [
        names
        for names in found
        if not any(unpromised(node, name) for name, node in zip(names, inputs, strict=True))
    ]
    return next(iter([*sure, *found]), None)


def refuse_unpromised(inputs: Sequence[Node], times: Sequence[str], what: str) -> None:
    """Refuse a join that waits for promises over an input that makes none."""
    for node, time in zip(inputs, times, strict=True):
        for stream, column in unpromised(node, time):
            raise QueryError(
                f"{what} could never forget a row: nothing is promised about {column!r} of stream"
                f" {stream!r}. Promise something, progress=lw.within('5 seconds') or"
                " lw.learned(0.999) for example; or join two streams at a time, by equal times or"
                " by times at most so far apart"
            )


def refuse_beside(given: Oblivious | None, remedy: str) -> None:
    """Refuse options of joins that measure disorder on a join that cannot; ``remedy`` ends the
    message."""
    if given is not None:
        raise OptionError(
            f"{OPTIONS} are options of joins that measure how far out of order rows come: of equal"
            f" times, or of two inputs whose times are near each other; {remedy}"
        )


def refuse_order(ordering: Ordering | None, time: str | None) -> None:
    """Refuse an order of results for a join that measures its inputs: it needs promises.

    ``time`` is the column that is equal in all rows of a result; None if there is none.
    """
    if ordering is not None:
        hint = (
            f". Strategy 'msf' gives them in order of {time!r}, and so does an order by that column"
        )
        raise OptionError(
            "results in order of their times need promises, and this join measures its inputs:"
            f" leave order= and greatest(...) out{f'{hint} alone' if time is not None else ''}"
        )
