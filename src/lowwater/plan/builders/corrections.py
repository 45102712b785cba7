"""Corrections are made to answers by the rows that came too late for them.

The query runs once more over the late rows alone, under a contract by which none of them is late.
Its answers are merged with the earlier ones: counts and sums are added, the less of two minima and
the greater of two maxima is kept, and a group without an answer gets one.

Invariant: answers corrected by all late rows equal the answers over all rows. A query for which
this does not hold is refused; the error names the part of the query that prevents it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from lowwater.errors import OptionError, QueryError, unknown_name
from lowwater.operators.window_aggregate import END
from lowwater.operators.window_state import START
from lowwater.plan import nodes
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.nodes import Node
from lowwater.progress import late
from lowwater.progress.contract import WithinRows
from lowwater.progress.spec import REASON, StreamSpec
from lowwater.sources.replay import replay
from lowwater.stream.element import SEQUENCE

USABLE = (late.LATE, late.AHEAD)
"""Reasons of late rows that have a usable time."""

_ADVICE = "run the whole query again over kept rows and late rows together"
_ROWWISE = (nodes.FilterNode, nodes.ProjectNode, nodes.ApplyNode, nodes.UnionNode, nodes.OrderNode)
_AGGREGATES = (nodes.WindowAggregateNode, nodes.GroupAggregateNode)


@dataclass(frozen=True)
class Shape:
    """The columns of an answer: ``keys`` identify it, ``merged`` can be merged."""

    keys: tuple[str, ...]
    merged: Mapping[str, str]
    """The aggregate function of each merged column."""


def over_late_rows(node: Node, given: Mapping[str, pl.DataFrame]) -> Node:
    """Return the same query over the late rows of its streams, by stream name; a stream that is not
    given has none."""
    _check_rows(node)
    streams = {each.spec.name for each in update_builders.sources(node)}
    for name in given:
        if name not in streams:
            raise OptionError(unknown_name("stream", name, streams))
    return _over_late_sources(node, given)


def only_stream(node: Node) -> str:
    """Return the name of the stream a query reads; refuse a query over several."""
    names = list(dict.fromkeys(each.spec.name for each in update_builders.sources(node)))
    if len(names) > 1:
        known = ", ".join(names)
        raise OptionError(
            f"several streams have late rows ({known}): give a table for each, by name"
        )
    return names[0]


def _over_late_sources(node: Node, given: Mapping[str, pl.DataFrame]) -> Node:
    if isinstance(node, nodes.SourceNode):
        return _late_source(node, given.get(node.spec.name))
    inputs = tuple(_over_late_sources(each, given) for each in node.inputs)
    return dataclasses.replace(node, inputs=inputs)


def _late_source(node: nodes.SourceNode, rows: pl.DataFrame | None) -> Node:
    spec, schema = node.spec, node.spec.row_schema
    if rows is None:
        rows = pl.DataFrame(schema=schema)
    missing = [name for name in (*schema, REASON) if name not in rows.columns]
    if missing and rows.height:
        raise OptionError(
            f"these are not the late rows of stream {spec.name!r}: column {missing[0]!r} is"
            " missing; give what run.late_rows() gives"
        )
    some = rows.filter(pl.col(REASON).is_in(USABLE)) if rows.height else pl.DataFrame(schema=schema)
    rows = some.select(pl.col(name).cast(dtype) for name, dtype in schema.items())
    # Nothing is promised before the end, so nothing is late.
    promise = {name: WithinRows(rows.height) for name in spec.contracts}
    alone = StreamSpec(spec.name, schema, spec.time, promise, spec.unit, jump=None, late="fail")
    return nodes.SourceNode.of(alone, replay(rows), node.origin)


# ---- queries that can be corrected -------------------------------------------------------------


def _refuse(part: str, why: str, advice: str = _ADVICE) -> QueryError:
    return QueryError(f"answers of this query cannot be corrected: {part}, {why}; {advice}")


def _check_rows(node: Node, aggregated: bool = False) -> None:
    """Refuse a query that late rows alone cannot correct.

    ``aggregated`` is True if an aggregate reads the rows of the node.
    """
    if node.updates is not None:
        why = "and a row that is late is older than what its key shows"
        raise _refuse("it is over update streams", why, "there is nothing to correct")
    if isinstance(node, nodes.AnyJoin):
        raise _refuse("it joins", "and a late row may match rows that are gone")
    if isinstance(node, nodes.DistinctNode):
        raise _refuse("it keeps distinct rows", "and the rows that it has seen are no longer known")
    if isinstance(node, nodes.SessionNode):
        raise _refuse("it has sessions", "and a late row may make two of them one")
    if isinstance(node, nodes.SlidingNode):
        raise _refuse("its window slides on change", "and a late row may change every answer in it")
    if isinstance(node, nodes.LastRowsNode):
        raise _refuse("its window slides by rows", "and a late row would change their numbers")
    if isinstance(node, nodes.StampNode) or (
        isinstance(node, nodes.SourceNode) and node.spec.stamp != "external"
    ):
        why = "so that none is late"
        raise _refuse("its rows are stamped on arrival", why, "there is nothing to correct")
    if isinstance(node, nodes.WindowAggregateNode) and node.attribute == SEQUENCE:
        raise _refuse("its windows count rows", "and a late row would move all rows after it")
    aggregates = isinstance(node, _AGGREGATES)
    if aggregates and aggregated:
        raise _refuse("it aggregates aggregates", "and the inner ones were passed on uncorrected")
    if not (aggregates or isinstance(node, (*_ROWWISE, nodes.SourceNode))):
        raise _refuse(f"it has a {type(node).__name__}", "which has no rule for corrections")
    if isinstance(node, nodes.FilterNode | nodes.ApplyNode | nodes.UnionNode) and _aggregated(node):
        part = {
            nodes.FilterNode: "it chooses among answers (HAVING, or where after agg)",
            nodes.ApplyNode: "it applies a function to answers",
            nodes.UnionNode: "it unites answers",
        }[type(node)]
        advice = "leave that part out, correct, and apply it to the corrected answers"
        raise _refuse(part, "and the answers it reads are incomplete", advice)
    for each in node.inputs:
        _check_rows(each, aggregated or aggregates)


def _aggregated(node: Node) -> bool:
    return isinstance(node, _AGGREGATES) or any(_aggregated(each) for each in node.inputs)


def shape(node: Node) -> Shape | None:
    """Return the columns by which answers are merged; None if a late row only adds an answer."""
    _check_rows(node)
    return _shape(node) if _aggregated(node) else None


def _shape(node: Node) -> Shape:
    if isinstance(node, nodes.OrderNode):
        return _shape(node.inputs[0])
    if isinstance(node, nodes.ProjectNode):
        return _projected(node, _shape(node.inputs[0]))
    assert isinstance(node, nodes.WindowAggregateNode | nodes.GroupAggregateNode)
    merged = {}
    for each, call, text in zip(node.aggregates, node.calls, node.texts, strict=True):
        function = call.function if call is not None else "your own"
        if call is None or call.distinct or function not in ("count", "sum", "min", "max"):
            own = "your own" if call is None else text.removesuffix(f" AS {each.name}")
            advice = (
                "select sum and count, and divide them afterwards"
                if function == "avg"
                else "leave it out: count, sum, min and max can be corrected"
            )
            raise _refuse(f"{each.name} is {own}", "and two such values cannot be merged", advice)
        merged[each.name] = function
    edges = (START, END) if isinstance(node, nodes.WindowAggregateNode) else ()
    return Shape((*edges, *node.groups), merged)


def _projected(node: nodes.ProjectNode, below: Shape) -> Shape:
    """Return the shape under the columns' new names; refuse computed columns, and a projection that
    lacks a key column."""
    keys, merged, shown = [], {}, set()
    for name, item in node.items:
        if not item.polars.meta.is_column():
            raise _refuse(
                f"{name} is computed from answers ({item.text})",
                "and they are incomplete",
                "select what it is computed from, correct, and compute it afterwards",
            )
        column = item.polars.meta.output_name()
        shown.add(column)
        if column in below.merged:
            merged[name] = below.merged[column]
        else:
            keys.append(name)
    windows = {START, END} & set(below.keys)
    needed = set(below.keys) - windows
    lost = sorted(needed - shown) + ([START] if windows and not windows & shown else [])
    if lost:
        raise _refuse(
            f"it does not show {lost[0]}",
            "by which an answer and its correction are matched",
            f"select {lost[0]} too",
        )
    return Shape(tuple(keys), merged)


# ---- merged answers ----------------------------------------------------------------------------


def put_together(node: Node, answers: pl.DataFrame, corrections: pl.DataFrame) -> pl.DataFrame:
    """Return the answers merged with their corrections."""
    form = shape(node)
    if not answers.width:
        answers = pl.DataFrame(schema=dict(node.schema))
    if list(answers.columns) != list(node.schema):
        raise OptionError(
            f"these are not answers of this query: they have columns"
            f" {', '.join(answers.columns)}, not {', '.join(node.schema)}"
        )
    schema = dict(node.schema)
    both = pl.concat([answers.cast(schema), corrections.cast(schema)])  # type: ignore[arg-type]
    if form is not None:
        both = _merged(both, form).select(list(schema)).cast(schema)  # type: ignore[arg-type]
    order = node
    while isinstance(order, nodes.ProjectNode):
        order = order.inputs[0]
    if isinstance(order, nodes.OrderNode) and order.attribute in both.columns:
        both = both.sort(order.attribute, maintain_order=True)
    return both


def _merged(both: pl.DataFrame, form: Shape) -> pl.DataFrame:
    parts = [_part(name, function, both.schema[name]) for name, function in form.merged.items()]
    if not parts:
        return both.unique(form.keys, keep="first", maintain_order=True)
    return both.group_by(form.keys, maintain_order=True).agg(parts)


def _part(name: str, function: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name)
    if function == "min":
        return column.min()
    if function == "max":  # to SQL, NaN is the greatest number
        return column.nan_max() if dtype.is_float() else column.max()
    return pl.when(column.is_not_null().any()).then(column.sum())
