"""Joins to operators."""

from __future__ import annotations

from dataclasses import replace

from lowwater.joins.band_join import BandJoin
from lowwater.joins.half_join import HalfJoin
from lowwater.joins.reach import Band
from lowwater.joins.shape import JoinShape
from lowwater.plan import nodes
from lowwater.plan.physical.compiler import SLICES_PER_SPAN, Compiler, second
from lowwater.plan.physical.operator import Build, Demands
from lowwater.plan.physical.order import numbers_of, put_in_order
from lowwater.plan.physical.updates import add_newest
from lowwater.progress.demand import Demand


def compile_join(plan: Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]) -> int:
    """A join of two inputs."""
    residual = node.residual.polars if node.residual else None
    shape = JoinShape(
        node.reach,
        node.domain,
        node.times,
        node.on,
        node.right_names,
        dict(node.schema),
        dict(node.merged),
        residual,
        node.how,
        node.carried,
    )
    slice_ticks = max(second(node.domain), node.reach.span // SLICES_PER_SPAN)
    kernel = _kernel(node)
    places = [(side, node.times[side], shape.out_times[side], 0) for side in (0, 1)]
    places += [(each.side, each.name, each.out, each.behind) for each in node.carried]
    waited = {"left": (1,), "right": (0,), "full": (0, 1), "anti": (1,)}.get(node.how, ())

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A mark purges the other side: by slices, or at once if what is purged comes out. A group
        # one side speaks of may be unknown to the other, so both promises on the whole are wanted,
        # too.
        wanted = [
            {time: Demand.any_value() if side in waited else Demand.grid(slice_ticks)}
            for side, time in enumerate(node.times)
        ]
        for side, name, out, behind in places:
            if out in demands and out in node.progress:
                other = node.times[1 - side]
                wanted[side][name] = wanted[side].get(name, Demand()) | demands[out]
                wanted[1 - side][other] |= _reached(node, side, demands[out].shifted(-behind))
        return wanted

    detail = " and ".join(f"{a} = {b}" for a, b in node.on)
    detail = f"{node.how}, {_spell_reach(node)}" + (f", {detail}" if detail else "")
    if node.residual:
        detail += f", {node.residual.text}"
    inputs = tuple(
        plan.in_order_by(each, index, time)
        for each, index, time in zip(node.inputs, inputs, node.times, strict=True)
    )
    if node.ordering is not None:
        wide = replace(shape, output={**shape.output, **numbers_of(node)})
        alone = {"right": (1,), "full": (0, 1)}.get(node.how, (0,))
        return put_in_order(
            plan,
            "join",
            detail,
            node,
            inputs,
            lambda store: kernel(store, wide, slice_ticks),
            describe,
            slice_ticks,
            None if node.how == "inner" else alone,
        )
    by = _joined_groups(plan, node, inputs)

    def telling(awaited: frozenset[str]) -> Build:
        return lambda store, _: kernel(store, shape, slice_ticks, by, awaited)

    index = plan.add(
        "join",
        detail,
        node,
        inputs,
        lambda store, _: kernel(store, shape, slice_ticks, by),
        describe,
        kernel,
        tuple(name for name, _ in node.on),
        True,
    )
    plan.telling[index] = telling
    if by and all(shape.shows(key) for key in by):
        left, right = shape.out_times
        plan.grouped[index] = dict.fromkeys(
            [left] if node.how in ("semi", "anti") else [left, right], by
        )
    return add_newest(plan, node, index) if node.newest else index


def _kernel(node: nodes.JoinNode) -> type[BandJoin]:
    return HalfJoin if node.how in ("semi", "anti") else BandJoin


def _joined_groups(
    plan: Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]
) -> tuple[str, ...]:
    """The columns of the left by which a join takes promises per group; none if it does not.

    Both sides must name the same groups, or one of them none, and by columns that must be equal.
    """
    names = {}
    for left, right in reversed(node.on):
        if node.inputs[0].schema[left] == node.inputs[1].schema[right]:
            names[0, left] = names[1, right] = left
    found = set()
    for side in (0, 1):
        keys = plan.grouped.get(inputs[side], {}).get(node.times[side], ())
        if any((side, key) not in names for key in keys):
            return ()
        if keys:
            found.add(tuple(names[side, key] for key in keys))
    return found.pop() if len(found) == 1 else ()


def _reached(node: nodes.JoinNode, side: int, demand: Demand) -> Demand:
    """What the other side must promise so that this side's demand can be met."""
    if isinstance(node.reach, Band):
        return demand.shifted(-(node.reach.after if side == 0 else node.reach.before))
    return demand.unrounded(node.reach.span)


def _spell_reach(node: nodes.JoinNode) -> str:
    domain, (left, right) = node.domain, node.times
    if not isinstance(node.reach, Band):
        return f"{left} and {right} in the same {domain.spell(node.reach.span)}"
    if node.reach.before == node.reach.after == 0:
        return f"{left} = {right}"
    before, after = domain.spell(node.reach.before), domain.spell(node.reach.after)
    return f"{right} from {before} before to {after} after {left}"
