"""Joins over many inputs to operators."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_

from lowwater.joins.multi_join import MultiJoin
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.joins.oblivious.restarting_join import RestartingJoin
from lowwater.joins.ordered.ties import number_of
from lowwater.plan import nodes
from lowwater.plan.physical.compiler import SLICES_PER_SPAN, Compiler, second
from lowwater.plan.physical.operator import Build, Demands
from lowwater.plan.physical.order import numbers_of, put_in_order
from lowwater.progress.demand import Demand


def compile_multi_join(plan: Compiler, node: nodes.MultiJoinNode, inputs: tuple[int, ...]) -> int:
    """A join of many inputs."""
    shape = MultiShape(
        node.windows,
        node.domain,
        node.times,
        node.on,
        node.names,
        dict(node.schema),
        dict(node.merged),
        node.residual.polars if node.residual else None,
        node.carried,
    )
    least = second(node.domain)
    slice_ticks = [max(least, window // SLICES_PER_SPAN) for window in node.windows]
    slack = shape.slack()

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # Marks drop rows of the other inputs, by slices. Promises per group are not used, so all
        # that is wanted is wanted of the whole stream.
        wanted = [
            {time: reduce(or_, (Demand.grid(slice_ticks[at]) for at in shape.ports if at != port))}
            for port, time in enumerate(node.times)
        ]
        for port in shape.ports:
            for name, out in shape.progressing(port).items():
                if out not in demands:
                    continue
                demand = demands[out].made(True)
                wanted[port][name] = wanted[port].get(name, Demand()) | demand
                for other in shape.ports:
                    if other != port:
                        wanted[other][node.times[other]] |= demand.shifted(-slack[out])
        return wanted

    def telling(awaited: frozenset[str] | None) -> Build:
        if (options := node.oblivious) is None:
            return lambda store, _: MultiJoin(store, shape, slice_ticks, awaited)
        return lambda store, now: RestartingJoin(store, shape, slice_ticks, options, now, awaited)

    inputs = tuple(
        plan.in_order_by(each, index, time)
        for each, index, time in zip(node.inputs, inputs, node.times, strict=True)
    )
    if node.ordering is not None:
        numbers = numbers_of(node)
        names = tuple(
            {**each, number_of(port): number_of(port)} for port, each in enumerate(shape.names)
        )
        wide = replace(shape, names=names, output={**shape.output, **numbers})
        return put_in_order(
            plan,
            "multijoin",
            _detail(node),
            node,
            inputs,
            lambda store: MultiJoin(store, wide, slice_ticks),
            describe,
            max(slice_ticks),
        )
    measures = node.oblivious is not None
    index = plan.add(
        "obliviousjoin" if measures else "multijoin",
        _detail(node),
        node,
        inputs,
        telling(None),
        describe,
        ObliviousJoin if measures else MultiJoin,
        tuple(names[0] for names in node.on),
        True,
    )
    plan.telling[index] = telling
    return index


def _detail(node: nodes.MultiJoinNode) -> str:
    windows = [node.domain.spell(each) for each in node.windows]
    if len(set(windows)) == 1:
        windows = windows[:1]
    near = "no window" if node.oblivious is not None else f"within {', '.join(windows)}"
    keys = [names[0] if len(set(names)) == 1 else " = ".join(names) for names in node.on]
    detail = f"join {len(node.inputs)} inputs, {near}"
    detail += f", on {' and '.join(keys)}" if keys else ""
    return detail + (f", {node.residual.text}" if node.residual else "")
