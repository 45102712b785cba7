"""These functions compile joins of two or many inputs, and the order of their results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import reduce
from operator import or_

import polars as pl

from lowwater.joins.band_join import BandJoin
from lowwater.joins.half_join import HalfJoin
from lowwater.joins.multi_join import MultiJoin
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.capped_join import CappedJoin
from lowwater.joins.oblivious.restarting_join import RestartingJoin
from lowwater.joins.ordered.ordered_join import OrderedJoin
from lowwater.joins.ordered.ordered_shape import OrderedShape, Ties, Timed, number_of
from lowwater.joins.reach import Band
from lowwater.joins.shape import How, JoinShape
from lowwater.operators.kernel import Kernel
from lowwater.plan import nodes
from lowwater.plan.nodes import AnyJoin, Node
from lowwater.plan.physical.compiler import SLICES_PER_SPAN, Compile, Compiler, second
from lowwater.plan.physical.costs import buffer_lines, input_names, latency_lines, waiting_lines
from lowwater.plan.physical.operator import (
    Build,
    Demands,
    KernelOperator,
    Remark,
    Traits,
    Way,
)
from lowwater.plan.physical.updates import add_newest
from lowwater.progress.demand import Demand
from lowwater.state.store import ChunkStore


def compile_join(plan: Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]) -> int:
    """Compile a join of two inputs."""
    kind = node.kind
    shape = JoinShape(
        reach=node.reach,
        domain=node.domain,
        times=node.times,
        on=node.on,
        right_names=node.right_names,
        output=dict(node.schema),
        merged=dict(node.merged),
        residual=node.residual.polars if node.residual else None,
        kind=kind,
        carried=node.carried,
    )
    slice_ticks = max(second(node.domain), node.reach.span // SLICES_PER_SPAN)
    kernel = _KERNELS.get(node.how, BandJoin)
    places = [(side, node.times[side], shape.out_times[side], 0) for side in (0, 1)]
    places += [(each.side, each.name, each.out, each.behind) for each in node.carried]
    releasing = [1 - side for side in kind.alone]
    flush, bound = node.flush, 0
    if flush is not None:
        bound = flush.bound(node.domain, node.reach.span)

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # A mark purges the other side: by slices, or at every step if unmatched rows are results. A
        # group in the punctuation of one side may be unknown to the other, so punctuation on both
        # whole streams is demanded, too.
        found = [
            {time: Demand.any_value() if side in releasing else Demand.grid(slice_ticks)}
            for side, time in enumerate(node.times)
        ]
        for side, name, out, behind in places:
            if out in demands and out in node.progress:
                other = node.times[1 - side]
                found[side][name] = found[side].get(name, Demand()) | demands[out]
                found[1 - side][other] |= _reached(node, side, demands[out].shifted(-behind))
        return found

    inputs = _in_order(plan, node, inputs)
    by = _joined_groups(plan, node, inputs)

    def narrow(awaited: frozenset[str]) -> Build:
        return lambda store, _: kernel(store, shape, slice_ticks, by, awaited, flush, bound)

    groups = {}
    if by and all(shape.shows(key) for key in by):
        groups = {shape.out_times[side]: by for side in kind.shown}
    operator = KernelOperator(
        name="join",
        detail=_pair_detail(node),
        node=node,
        inputs=inputs,
        kernel=kernel,
        build=lambda store, _: kernel(store, shape, slice_ticks, by, None, flush, bound),
        describe=describe,
        traits=Traits(
            passes=_pairs_pass(node),
            together=node.on,
            alike=flush is None,  # rows without a partner leave as rows come in
            updates=node.updates is not None,
        ),
        groups=groups,
        narrow=narrow,
        remarks=_join_remarks(node),
    )
    if node.ordering is not None:
        wide = replace(shape, output={**shape.output, **_numbers_of(node)})
        alone = None if kind.pairs else kind.alone or kind.shown
        operator = _ordered(
            operator, node, lambda store: kernel(store, wide, slice_ticks), slice_ticks, alone
        )
    index = plan.add(operator)
    return add_newest(plan, node, index) if node.newest else index


def compile_multi_join(plan: Compiler, node: nodes.MultiJoinNode, inputs: tuple[int, ...]) -> int:
    """Compile a join of many inputs."""
    shape = MultiShape(
        windows=node.windows,
        domain=node.domain,
        times=node.times,
        on=node.on,
        names=node.names,
        output=dict(node.schema),
        merged=dict(node.merged),
        residual=node.residual.polars if node.residual else None,
        carried=node.carried,
    )
    least = second(node.domain)
    slice_ticks = [max(least, window // SLICES_PER_SPAN) for window in node.windows]
    slack = shape.slack()
    outer = () if node.kind.pairs else node.kind.alone
    dropping = [
        Demand.any_value() if port in outer else Demand.grid(slice_ticks[port])
        for port in shape.ports
    ]

    def describe(demands: Demands) -> list[dict[str, Demand]]:
        # Marks drop rows of the other inputs, by slices. Punctuation per group is not used, so all
        # demands are on the whole stream.
        found = [
            {time: reduce(or_, (dropping[at] for at in shape.ports if at != port))}
            for port, time in enumerate(node.times)
        ]
        for port in shape.ports:
            for name, out in shape.progressing(port).items():
                if out not in demands:
                    continue
                demand = demands[out].with_linear(True)
                found[port][name] = found[port].get(name, Demand()) | demand
                for other in shape.ports:
                    if other != port:
                        found[other][node.times[other]] |= demand.shifted(-slack[out])
        return found

    def narrow(awaited: frozenset[str] | None) -> Build:
        if (options := node.oblivious) is None:
            return lambda store, _: MultiJoin(store, shape, slice_ticks, awaited)
        measured, kind, columns = _measured_shape(node, shape), node.kind, tuple(node.schema)
        return lambda store, host: RestartingJoin(
            store, measured, slice_ticks, options, host, awaited, kind, columns
        )

    inputs = _in_order(plan, node, inputs)
    passes = tuple(
        (out, way)
        for way in node.on
        for port, name in enumerate(way)
        if (out := node.out_name(port, name)) in node.schema
        and (
            not node.kind.outer or len({node.out_name(p, each) for p, each in enumerate(way)}) == 1
        )
    )
    measures = node.oblivious is not None
    operator = KernelOperator(
        name="obliviousjoin" if measures else "multijoin",
        detail=_detail(node),
        node=node,
        inputs=inputs,
        kernel=CappedJoin if measures else MultiJoin,
        build=narrow(None),
        describe=describe,
        # The punctuation of a join that measures its inputs depends on the rows of its bucket.
        traits=Traits(passes=passes, together=node.on, alike=not measures, measures=measures),
        narrow=narrow,
        remarks=[
            (lambda _, rates: buffer_lines(node, rates)) if measures else _joint_promises(node),
        ],
    )
    if node.ordering is not None:
        wide = _with_numbers(shape, node.shown)
        operator = _ordered(
            operator, node, lambda store: MultiJoin(store, wide, slice_ticks), max(slice_ticks)
        )
    return plan.add(operator)


def _with_numbers(shape: MultiShape, ports: Sequence[int]) -> MultiShape:
    """Return a shape whose results have the numbers of the rows of some inputs."""
    numbers = {port: number_of(port) for port in ports}
    names = tuple(
        {**each, numbers[port]: numbers[port]} if port in numbers else each
        for port, each in enumerate(shape.names)
    )
    return replace(
        shape, names=names, output={**shape.output, **dict.fromkeys(numbers.values(), pl.Int64())}
    )


def _measured_shape(node: nodes.MultiJoinNode, shape: MultiShape) -> MultiShape:
    """Return the shape of a join that measures: its matches have the columns of all inputs, and the
    numbers of the rows of which it matters whether they match."""
    types = {
        names[column]: dtype
        for each, names in zip(node.inputs, node.names, strict=True)
        for column, dtype in each.schema.items()
        if names[column] not in node.merged
    }
    return _with_numbers(replace(shape, output=types), node.kind.tracked)


_KERNELS: Mapping[How, type[BandJoin]] = {"semi": HalfJoin, "anti": HalfJoin}
"""The kernels of joins that are not the band join, by the value of ``how=``."""


def _in_order(plan: Compiler, node: AnyJoin, inputs: tuple[int, ...]) -> tuple[int, ...]:
    """Return the inputs of a join; in the in-order shape, each sorted by its time."""
    return tuple(
        plan.in_order_by(each, index, time)
        for each, index, time in zip(node.inputs, inputs, node.times, strict=True)
    )


def _pairs_pass(node: nodes.JoinNode) -> tuple[tuple[str, Way], ...]:
    """Return the ``passes`` of a join: the columns that must be equal in both rows.

    In an outer join, whose rows may lack a partner, only columns merged from both sides pass.
    """
    return tuple(
        (name, (left, right))
        for left, right in node.on
        for name in (left, node.right_names[right])
        if name in node.schema and (not node.kind.outer or name in node.merged)
    )


def _join_remarks(node: nodes.JoinNode) -> list[Remark]:
    """Return the remarks on a join of two inputs."""
    remarks = [_joint_promises(node)] if node.kind.pairs else []
    if (flush := node.flush) is not None:
        remarks.append(lambda *_: [f"rows without a partner leave {flush.describe()}"])
    return remarks


def _joint_promises(node: AnyJoin) -> Remark:
    """Return the remark on columns of which an inner join emits joint punctuation (OOP §7)."""

    def remark(demands: Demands, _: object) -> list[str]:
        names = [name for name in node.progress if name in demands]
        return [f"promises jointly: {' or '.join(names)}"] if len(names) > 1 else []

    return remark


# ---- order around joins ------------------------------------------------------------------------


def _numbers_of(node: AnyJoin) -> dict[str, pl.DataType]:
    """Return the columns that number the rows of a join's results, beside its own columns."""
    return {number_of(port): pl.Int64() for port in node.shown}


def _ordered(
    join: KernelOperator,
    node: AnyJoin,
    build: Callable[[ChunkStore], Kernel],
    slice_ticks: int,
    alone: tuple[int, ...] | None = None,
) -> KernelOperator:
    """Return an operator that puts the results of a join in order.

    ``build`` makes the kernel of the join inside, which numbers the rows of its results. ``alone``
    are the inputs whose rows are results without a partner; None for an inner join.
    """
    ordering, domain = node.ordering, node.domain
    assert ordering is not None
    ports = range(len(node.inputs))
    shape = OrderedShape(
        tuple(Timed(node.side_stamps(port), node.side_lags(port), domain) for port in ports),
        input_names(node),
        Timed(node.stamps, node.out_lags, domain),
        tuple(node.schema),
        Ties(len(ports), {port: node.out_stamps(port) for port in node.shown}, domain),
        {port: node.out_stamps(port) for port in alone or ()},
        alone is None,
        node.kept_seconds,
    )

    def demanded(demands: Demands) -> list[dict[str, Demand]]:
        # Every mark may release results.
        marks = [dict.fromkeys(each.stamps, Demand.any_value()) for each in shape.inputs]
        return [given | mark for given, mark in zip(join.describe(demands), marks, strict=True)]

    # If rows may wait in front of the join, its punctuation depends on which rows wait. Pairs are
    # released by the punctuation of the inputs alone.
    at_once = ordering.order == "filter-order"
    return replace(
        join,
        detail=f"{join.detail}; {ordering.describe()}",
        kernel=OrderedJoin,
        build=lambda store, host: OrderedJoin(store, build, shape, ordering, slice_ticks, host),
        describe=demanded,
        traits=replace(
            join.traits,
            alike=at_once,
            ordered=True,
            releases_alike=at_once or alone is None,
        ),
        groups={},
        narrow=None,
        remarks=[
            *join.remarks,
            lambda _, rates: waiting_lines(node, rates),
            lambda _, rates: [] if rates is None else latency_lines(node, rates),
        ],
    )


# ---- groups and words --------------------------------------------------------------------------


def _joined_groups(
    plan: Compiler, node: nodes.JoinNode, inputs: tuple[int, ...]
) -> tuple[str, ...]:
    """Return the columns of the left by which a join uses punctuation per group; none if it does
    not.

    The sides that have groups must name the same groups, by columns that must be equal.
    """
    names = {}
    for left, right in reversed(node.on):
        if node.inputs[0].schema[left] == node.inputs[1].schema[right]:
            names[0, left] = names[1, right] = left
    found = set()
    for side in (0, 1):
        keys = plan.operators[inputs[side]].groups.get(node.times[side], ())
        if any((side, key) not in names for key in keys):
            return ()
        if keys:
            found.add(tuple(names[side, key] for key in keys))
    return found.pop() if len(found) == 1 else ()


def _reached(node: nodes.JoinNode, side: int, demand: Demand) -> Demand:
    """Return the demand on the other side's time under which this side's demand can be met."""
    if isinstance(node.reach, Band):
        return demand.shifted(-(node.reach.after if side == 0 else node.reach.before))
    return demand.unrounded(node.reach.span)


def _spell_reach(node: nodes.JoinNode) -> str:
    domain, (left, right) = node.domain, node.times
    if not isinstance(node.reach, Band):
        return f"{left} and {right} in the same {domain.spell(node.reach.span)}"
    if node.reach.before == node.reach.after == 0:
        return f"{left} = {right}"
    return _spell_band(node, node.reach.before, node.reach.after)


def _spell_band(node: AnyJoin, before: int, after: int) -> str:
    left, right = node.times
    one, two = node.domain.spell(before), node.domain.spell(after)
    return f"{right} from {one} before to {two} after {left}"


def _pair_detail(node: nodes.JoinNode) -> str:
    equal = " and ".join(f"{a} = {b}" for a, b in node.on)
    detail = f"{node.how}, {_spell_reach(node)}" + (f", {equal}" if equal else "")
    return detail + (f", {node.residual.text}" if node.residual else "")


def _detail(node: nodes.MultiJoinNode) -> str:
    windows = [node.domain.spell(each) for each in node.windows]
    if len(set(windows)) == 1:
        windows = windows[:1]
    near = f"within {', '.join(windows)}"
    if node.oblivious is not None:
        near = (
            _spell_band(node, node.windows[1], node.windows[0])
            if any(node.windows)
            else "no window"
        )
    keys = [names[0] if len(set(names)) == 1 else " = ".join(names) for names in node.on]
    what = "join" if node.how == "inner" else f"{node.how} join"
    detail = f"{what} {len(node.inputs)} inputs, {near}"
    detail += f", on {' and '.join(keys)}" if keys else ""
    return detail + (f", {node.residual.text}" if node.residual else "")


COMPILERS: Mapping[type[Node], Compile] = {
    nodes.JoinNode: compile_join,
    nodes.MultiJoinNode: compile_multi_join,
}
