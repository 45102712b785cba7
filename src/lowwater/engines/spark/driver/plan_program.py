"""The driver makes the program that workers run from a plan, once a query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lowwater.engines.admission import sharing_joins
from lowwater.engines.members import Part
from lowwater.engines.spark.wire.answer_files import AnswerFiles
from lowwater.engines.spark.wire.buckets import KeyColumns, bucket_ids
from lowwater.engines.spark.wire.late_files import LateFolder
from lowwater.engines.spark.wire.program import (
    Delivery,
    Exchange,
    Program,
    Route,
    SourceProgram,
    StageProgram,
)
from lowwater.operators.identity import Identity
from lowwater.plan.physical.answers import answer_shape
from lowwater.plan.physical.layout import Edge, Layout, Stage, lay_out
from lowwater.plan.physical.operator import KernelOperator, PhysicalPlan, SourceOperator
from lowwater.progress.options import Heartbeat, OnDemand, Timer
from lowwater.sources.replay import Replay
from lowwater.stream.element import SEQUENCE

STATE_FORMAT = 7
"""The form of the state in checkpoints. It is raised whenever the snapshot of a kernel, or the rows
that one keeps, change their form; a checkpoint of another form is then refused with the reason."""


def make_program(
    plan: PhysicalPlan,
    buckets: int,
    live: bool,
    late_folder: LateFolder | None = None,
    request_folder: str | None = None,
    memory: int | None = None,
    answer_folder: str | None = None,
) -> Program:
    """Return the program of a plan.

    ``buckets``: the number of buckets of a stage that is spread.
    ``live``: play replays by the clock and judge their rows like those of any other source.
    ``late_folder``: where late rows are written; None if they are not.
    ``request_folder``: where requests for timestamps on demand are written; None if none are made.
    ``memory``: the bytes that all joins without a window share. A stage has as much for each of its
    joins as any other, and its buckets have equal parts of that.
    ``answer_folder``: where the newest answers are written; None if they are not kept.
    """
    replayed = {each.index: isinstance(each.source, Replay) for each in plan.sources}
    ordered = {index: replay and not live for index, replay in replayed.items()}
    counted = [
        each.index
        for each in plan.sources
        if SEQUENCE in plan.demands[each.index] and not ordered[each.index]
    ]
    layout = lay_out(plan, counted)
    parts = _parts(plan, layout)
    ids = [bucket_ids(1 if stage.single else buckets) for stage in layout.stages]
    sources = tuple(
        _source(plan, layout, parts, ids, operator, ordered[operator.index])
        for operator in plan.sources
    )
    hurried = live or not all(replayed.values())
    joins = {each.index for each in sharing_joins(plan)}
    stages = []
    for stage in layout.stages:
        sharing = tuple(joins.intersection(stage.operators))
        part = len(sharing) / (len(joins) or 1) / len(ids[stage.number])
        stages.append(
            StageProgram(
                number=stage.number,
                parts=tuple(parts[index] for index in stage.operators),
                exports=stage.exports,
                ids=ids[stage.number],
                sources=tuple(
                    s for s in sources if any(s.index == e.producer for e in stage.edges)
                ),
                exchanges={
                    edge.producer: Exchange(
                        parts[edge.producer].where,
                        senders=ids[_producing_stage(layout, edge)],
                        owned=_one_bucket_a_group(plan, layout, sources, edge),
                    )
                    for edge in stage.edges
                    if edge.producer not in replayed
                },
                routes=_routes(plan, layout, ids, stage),
                fingerprint=_fingerprint(plan, stage, len(ids[stage.number])),
                own=_own(plan, stage),
                stamps=any(plan.operators[index].traits.clocked for index in stage.operators),
                late_folder=late_folder,
                request_folder=request_folder,
                answers=_answers(plan, stage, answer_folder),
                hurried=hurried,
                memory=int(memory * part) if memory is not None and sharing else None,
                budget=memory,
                sharing=sharing,
            )
        )
    combined = layout.stages[-1].combined
    return Program(
        sources,
        tuple(stages),
        None if combined is None else parts[combined],
        tuple(parts[index] for index in layout.tail),
        dict(plan.schema),
    )


def _parts(plan: PhysicalPlan, layout: Layout) -> dict[int, Part]:
    combined = {stage.combined for stage in layout.stages}
    seen: Counter[str] = Counter()
    parts = {}
    for operator in plan.kernels:
        traits = operator.traits
        kind = operator.name if traits.stateful else f"{operator.name}~"
        slot = f"{kind}{seen[kind]}"
        seen[kind] += 1
        in_part = operator.index in combined and not traits.ordered
        parts[operator.index] = Part.of(operator, slot, plan.floors[operator.index], in_part)
    return parts


def _producing_stage(layout: Layout, edge: Edge) -> int:
    """Return the number of the stage whose operator gives the rows of an edge."""
    return next(stage.number for stage in layout.stages if edge.producer in stage.operators)


def _source(
    plan: PhysicalPlan,
    layout: Layout,
    parts: Mapping[int, Part],
    ids: list[tuple[int, ...]],
    operator: SourceOperator,
    ordered: bool,
) -> SourceProgram:
    spec = operator.spec
    deliveries = []
    for stage in layout.stages:
        for edge in stage.edges:
            if edge.producer == operator.index:
                prefix = _prefix(plan, stage, operator.index)
                end = prefix[-1] if prefix else operator.index
                deliveries.append(
                    Delivery(
                        stage=stage.number,
                        ids=ids[stage.number],
                        key=edge.key,
                        prefix=tuple(parts[index] for index in prefix),
                        end=end,
                        reducer=_reducer(plan, stage, parts, end),
                        owned=_owned(plan, stage, edge, operator),
                    )
                )
    return SourceProgram(
        index=operator.index,
        spec=spec,
        demands=plan.demands[operator.index],
        announced=operator.announced,
        ordered=ordered,
        deliveries=tuple(deliveries),
        clocked=any(each.traits.clocked for each in plan.operators)
        or plan.queues
        or spec.stamp != "external"
        or isinstance(spec.idle, OnDemand | Heartbeat)
        or isinstance(spec.punctuate, Timer)
        or spec.stale_after is not None,
        floor=plan.floors[operator.index],
        origin=operator.source.origin,
    )


def _owned(plan: PhysicalPlan, stage: Stage, edge: Edge, operator: SourceOperator) -> bool:
    """Return whether each group's rows are in one bucket, and its punctuation is of use there
    alone."""
    spec = operator.spec
    return (
        spec.stamp == "external"
        and stage.combined is None
        and bool(edge.key)
        and {name for name, _ in edge.key or ()} <= set(spec.groups)
        and not any(demand.linear for demand in plan.demands[edge.producer].values())
    )


def _one_bucket_a_group(
    plan: PhysicalPlan, layout: Layout, sources: tuple[SourceProgram, ...], edge: Edge
) -> bool:
    """Return whether an operator's punctuation on a group comes from one bucket: that of the
    group's rows."""
    stage = layout.stages[_producing_stage(layout, edge)]
    owned = {s.index for s in sources for d in s.deliveries if d.stage == stage.number and d.owned}
    waiting, entries = [edge.producer], set()
    while waiting:
        index = waiting.pop()
        inside = index in stage.operators
        waiting += plan.operators[index].inputs if inside else ()
        entries |= set() if inside else {index}
    return entries <= owned


def _only_reader(plan: PhysicalPlan, stage: Stage, index: int) -> KernelOperator | None:
    """Return the operator of a stage that reads another's rows, if there is exactly one."""
    inside = [at for at, _ in plan.consumers(index) if at in stage.operators]
    if len(inside) != 1 or index in stage.exports:
        return None
    return plan.kernel(inside[0])


def _prefix(plan: PhysicalPlan, stage: Stage, index: int) -> list[int]:
    """Return the row-wise operators that alone read a source's rows, one after another."""
    found: list[int] = []
    if SEQUENCE in plan.demands[index]:
        return found
    while (reader := _only_reader(plan, stage, index)) is not None:
        traits = reader.traits
        # Rows are checked against punctuation where the state is: there it is known.
        if not traits.rowwise or traits.checks & plan.demands[reader.index].keys():
            break
        index = reader.index
        found.append(index)
    return found


def _reducer(
    plan: PhysicalPlan, stage: Stage, parts: Mapping[int, Part], index: int
) -> Part | None:
    """Return the aggregate that reads some rows with nothing but unions in between, if rows can
    be reduced for it."""
    reader = _only_reader(plan, stage, index)
    while reader is not None and reader.traits.forwards:
        reader = _only_reader(plan, stage, reader.index)
    return parts[reader.index] if reader is not None and reader.traits.reduces else None


def _routes(
    plan: PhysicalPlan, layout: Layout, ids: list[tuple[int, ...]], stage: Stage
) -> tuple[Route, ...]:
    """Return the ways of the rows that leave a stage."""
    routes = [
        Route(edge.producer, later.number, ids[later.number], edge.key)
        for later in layout.stages
        for edge in later.edges
        if edge.producer in stage.exports
    ]
    if stage is layout.stages[-1]:
        groups: KeyColumns = ()
        if stage.combined is not None and not plan.operators[stage.combined].traits.ordered:
            operator = plan.kernel(stage.combined)
            groups = [(name, operator.node.schema[name]) for name in operator.partition]
        target = ids[-1] if groups else bucket_ids(1)
        routes.append(Route(stage.exports[-1], len(layout.stages), target, groups))
    return tuple(routes)


def _own(plan: PhysicalPlan, stage: Stage) -> tuple[tuple[str, Identity], ...]:
    """Return the users' aggregates of a stage, each with the operator it is in."""
    return tuple(
        (plan.operators[index].title, identity)
        for index in stage.operators
        for identity in plan.operators[index].traits.identities
    )


def _answers(plan: PhysicalPlan, stage: Stage, folder: str | None) -> AnswerFiles | None:
    """Return where a stage writes the newest answers; None if it has no part in them."""
    shape = answer_shape(plan) if folder is not None else None
    if shape is None or folder is None:
        return None
    result = plan.result.index if plan.result.index in stage.exports else None
    queues = tuple(each for each in shape.queues if each.operator in stage.operators)
    return None if result is None and not queues else AnswerFiles(folder, shape, result, queues)


def _fingerprint(plan: PhysicalPlan, stage: Stage, buckets: int) -> tuple[str, ...]:
    """Return lines that must stay the same for a stage to continue with its saved state."""
    lines = [f"state format {STATE_FORMAT}", f"{buckets} buckets"]
    for edge in stage.edges:
        operator = plan.operators[edge.producer]
        by = ", ".join(f"{name} as {dtype}" for name, dtype in edge.key or ()) or "nothing"
        if isinstance(operator, SourceOperator):
            spec = operator.spec
            promises = ", ".join(
                f"{name} {type(each).__name__.lower()}" for name, each in spec.contracts.items()
            )
            per = f" per {', '.join(spec.key_columns)}" if spec.key_columns else ""
            lines.append(f"stream {spec.name}: {promises}{per}, spread by {by}")
        else:
            lines.append(f"{operator.name} of an earlier stage, spread by {by}")
    states = (plan.kernel(index).state for index in stage.operators)
    return (*lines, *(state for state in states if state is not None))
