"""Order around joins, to operators."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from lowwater.joins.ordered.ordered_join import OrderedJoin, OrderedShape, Timed
from lowwater.joins.ordered.ties import Ties, number_of
from lowwater.operators.kernel import Kernel
from lowwater.plan.nodes import AnyJoin
from lowwater.plan.physical.compiler import Compiler
from lowwater.plan.physical.operator import Demands, Describe
from lowwater.progress.demand import Demand
from lowwater.state.store import ChunkStore


def numbers_of(node: AnyJoin) -> dict[str, pl.DataType]:
    """The columns that number the rows of results: the join puts them out beside its own."""
    return {number_of(port): pl.Int64() for port in node.shown}


def put_in_order(
    plan: Compiler,
    name: str,
    detail: str,
    node: AnyJoin,
    inputs: tuple[int, ...],
    join: Callable[[ChunkStore], Kernel],
    describe: Describe,
    slice_ticks: int,
    alone: tuple[int, ...] | None = None,
) -> int:
    """A join whose results leave in order; ``alone``: the inputs whose rows may come out so."""
    ordering, domain = node.ordering, node.domain
    assert ordering is not None
    ports = range(len(node.inputs))
    shape = OrderedShape(
        tuple(Timed(node.side_stamps(port), node.side_lags(port), domain) for port in ports),
        Timed(node.stamps, node.out_lags, domain),
        tuple(node.schema),
        Ties(len(ports), {port: node.out_stamps(port) for port in node.shown}, domain),
        {port: node.out_stamps(port) for port in alone or ()},
        alone is None,
        node.kept_seconds,
    )

    def wanted(demands: Demands) -> list[dict[str, Demand]]:
        # Every mark lets results out.
        marks = [dict.fromkeys(each.stamps, Demand.any_value()) for each in shape.inputs]
        return [given | mark for given, mark in zip(describe(demands), marks, strict=True)]

    return plan.add(
        name,
        f"{detail}; {ordering.describe()}",
        node,
        inputs,
        lambda store, now: OrderedJoin(store, join, shape, ordering, slice_ticks, now),
        wanted,
        OrderedJoin,
        tuple(names[0] for names in node.on),
        True,
        True,
    )
