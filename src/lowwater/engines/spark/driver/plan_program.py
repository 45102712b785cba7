"""From a plan to the program that workers run. Done once, on the driver."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from lowwater.engines.members import Part
from lowwater.engines.spark.wire.buckets import KeyColumns, bucket_ids
from lowwater.engines.spark.wire.program import (
    Delivery,
    Program,
    Route,
    SourceProgram,
    StageProgram,
)
from lowwater.engines.spark.worker.late import LateFolder
from lowwater.engines.step import Where
from lowwater.operators.aggregates import Aggregate
from lowwater.operators.identity import Identity
from lowwater.plan import nodes
from lowwater.plan.physical.layout import Edge, Layout, Stage, lay_out
from lowwater.plan.physical.operator import Operator, PhysicalPlan
from lowwater.progress.contract import Heartbeat, OnDemand, Timer
from lowwater.sources.replay import Replay
from lowwater.stream.element import SEQUENCE

STATE_FORMAT = 4


def make_program(
    plan: PhysicalPlan,
    buckets: int,
    live: bool,
    late_folder: LateFolder | None = None,
    ask_folder: str | None = None,
) -> Program:
    """Prepare a plan; ``live`` replays are played by the clock and judged like any other source."""
    ordered = {
        each.index: isinstance(each.node.source, Replay) and not live  # type: ignore[attr-defined]
        for each in plan.sources
    }
    counted = [
        each.index
        for each in plan.sources
        if SEQUENCE in plan.demands[each.index] and not ordered[each.index]
    ]
    hurried = live or not all(isinstance(s.node.source, Replay) for s in plan.sources)  # type: ignore[attr-defined]
    layout = lay_out(plan, counted)
    parts = _parts(plan, layout)
    ids = [bucket_ids(1 if stage.single else buckets) for stage in layout.stages]
    sources = tuple(
        _source(plan, layout, parts, ids, operator, ordered[operator.index])
        for operator in plan.sources
    )
    stages = tuple(
        StageProgram(
            stage.number,
            tuple(parts[index] for index in stage.operators),
            stage.exports,
            ids[stage.number],
            tuple(s for s in sources if any(s.index == e.producer for e in stage.edges)),
            {
                edge.producer: ids[_maker(layout, edge)]
                for edge in stage.edges
                if plan.operators[edge.producer].build is not None
            },
            frozenset(
                edge.producer
                for edge in stage.edges
                if plan.operators[edge.producer].build is not None
                and _speaks_alone(plan, layout, sources, edge)
            ),
            _routes(plan, layout, ids, stage),
            _fingerprint(plan, stage, len(ids[stage.number])),
            _own(plan, stage),
            late_folder=late_folder,
            ask_folder=ask_folder,
            hurried=hurried,
        )
        for stage in layout.stages
    )
    combined = layout.stages[-1].combined
    return Program(
        sources,
        stages,
        None if combined is None else parts[combined],
        tuple(parts[index] for index in layout.tail),
        dict(plan.schema),
    )


def _parts(plan: PhysicalPlan, layout: Layout) -> dict[int, Part]:
    combined = {stage.combined for stage in layout.stages}
    seen: Counter[str] = Counter()
    parts = {}
    for operator in plan.operators:
        if operator.build is None:
            continue
        kind = operator.name if operator.stateful else f"{operator.name}~"
        slot = f"{kind}{seen[kind]}"
        seen[kind] += 1
        parts[operator.index] = Part(
            operator.index,
            operator.name,
            slot,
            Where.of(operator),
            operator.inputs,
            operator.build,
            operator.index in combined and not operator.ordered,
            {
                name: attribute.domain
                for node in (operator.node, *operator.node.inputs)
                for name, attribute in node.progress.items()
            },
        )
    return parts


def _maker(layout: Layout, edge: Edge) -> int:
    return next(stage.number for stage in layout.stages if edge.producer in stage.operators)


def _source(
    plan: PhysicalPlan,
    layout: Layout,
    parts: Mapping[int, Part],
    ids: list[tuple[int, ...]],
    operator: Operator,
    ordered: bool,
) -> SourceProgram:
    node = operator.node
    assert isinstance(node, nodes.SourceNode)
    announced = node.spec.channels
    if not announced and node.spec.key_columns:
        announced = node.source.channels(node.spec.key_columns)
    deliveries = []
    for stage in layout.stages:
        for edge in stage.edges:
            if edge.producer == operator.index:
                prefix = _prefix(plan, stage, operator.index)
                end = prefix[-1] if prefix else operator.index
                reducer = _reducer(plan, stage, parts, end)
                deliveries.append(
                    Delivery(
                        stage.number,
                        ids[stage.number],
                        edge.key,
                        tuple(parts[index] for index in prefix),
                        end,
                        reducer,
                        _owned(plan, stage, edge),
                    )
                )
    latent = any(each.name == "stamp" for each in plan.operators)
    return SourceProgram(
        operator.index,
        node.spec,
        plan.demands[operator.index],
        tuple(announced),
        ordered,
        tuple(deliveries),
        latent
        or plan.queues
        or node.spec.stamp != "external"
        or isinstance(node.spec.idle, OnDemand | Heartbeat)
        or isinstance(node.spec.punctuate, Timer)
        or node.spec.stale_after is not None,
    )


def _owned(plan: PhysicalPlan, stage: Stage, edge: Edge) -> bool:
    """Whether rows of a group are in one bucket, and nobody needs to know of them elsewhere."""
    node, demands = plan.operators[edge.producer].node, plan.demands[edge.producer]
    assert isinstance(node, nodes.SourceNode)
    spec = node.spec
    return (
        spec.stamp == "external"
        and stage.combined is None
        and bool(edge.key)
        and {name for name, _ in edge.key or ()} <= set(spec.groups)
        and not any(demand.linear for demand in demands.values())
    )


def _speaks_alone(
    plan: PhysicalPlan, layout: Layout, sources: tuple[SourceProgram, ...], edge: Edge
) -> bool:
    """Whether what an operator tells of a group comes from one bucket: that of its rows."""
    stage = layout.stages[_maker(layout, edge)]
    owned = {s.index for s in sources for d in s.deliveries if d.stage == stage.number and d.owned}
    waiting, entries = [edge.producer], set()
    while waiting:
        index = waiting.pop()
        inside = index in stage.operators
        waiting += plan.operators[index].inputs if inside else ()
        entries |= set() if inside else {index}
    return entries <= owned


def _only_reader(plan: PhysicalPlan, stage: Stage, index: int) -> Operator | None:
    """The one operator of a stage that reads another's rows, if there is exactly one."""
    inside = [at for at, _ in plan.consumers(index) if at in stage.operators]
    if len(inside) != 1 or index in stage.exports:
        return None
    return plan.operators[inside[0]]


def _prefix(plan: PhysicalPlan, stage: Stage, index: int) -> list[int]:
    """The row-wise operators that alone read a source's rows, one after another."""
    found: list[int] = []
    if SEQUENCE in plan.demands[index]:
        return found
    while (reader := _only_reader(plan, stage, index)) is not None:
        if reader.name not in ("filter", "project", "apply"):
            break
        if reader.name == "apply" and set(plan.demands[reader.index]) & set(reader.node.progress):
            break  # its rows are held to promises, which are known where the state is
        index = reader.index
        found.append(index)
    return found


def _reducer(
    plan: PhysicalPlan, stage: Stage, parts: Mapping[int, Part], index: int
) -> Part | None:
    """The aggregate rows are on their way to with nothing but unions in between."""
    while (reader := _only_reader(plan, stage, index)) is not None:
        if reader.name in ("window", "group"):
            numbered = getattr(reader.node, "attribute", None) == SEQUENCE
            as_rows = getattr(reader.node, "keep", None) == "rows"
            return None if numbered or as_rows else parts[reader.index]
        if reader.name != "union":
            return None
        index = reader.index
    return None


def _routes(
    plan: PhysicalPlan, layout: Layout, ids: list[tuple[int, ...]], stage: Stage
) -> tuple[Route, ...]:
    routes = [
        Route(edge.producer, later.number, ids[later.number], edge.key)
        for later in layout.stages
        for edge in later.edges
        if edge.producer in stage.exports
    ]
    if stage is layout.stages[-1]:
        groups: KeyColumns = ()
        if stage.combined is not None:
            operator = plan.operators[stage.combined]
            node = operator.node
            names = () if operator.ordered else getattr(node, "groups", ())
            groups = [(name, node.schema[name]) for name in names]
        target = ids[-1] if groups else bucket_ids(1)
        routes.append(Route(stage.exports[-1], len(layout.stages), target, groups))
    return tuple(routes)


def _own(plan: PhysicalPlan, stage: Stage) -> tuple[tuple[str, Identity], ...]:
    """The users' aggregates of a stage, each with the operator it is in."""
    return tuple(
        (plan.operators[index].title, Identity.of(each.name, each.own))
        for index in stage.operators
        for each in getattr(plan.operators[index].node, "aggregates", ())
        if isinstance(each, Aggregate) and each.own is not None
    )


def _fingerprint(plan: PhysicalPlan, stage: Stage, buckets: int) -> tuple[str, ...]:
    """What must not change if a stage is to go on with its state."""
    lines = [f"state format {STATE_FORMAT}", f"{buckets} buckets"]
    for edge in stage.edges:
        operator = plan.operators[edge.producer]
        by = ", ".join(f"{name} as {dtype}" for name, dtype in edge.key or ())
        if isinstance(operator.node, nodes.SourceNode) and operator.build is None:
            spec = operator.node.spec
            promises = ", ".join(
                f"{name} {type(each).__name__.lower()}" for name, each in spec.contracts.items()
            )
            per = f" per {', '.join(spec.key_columns)}" if spec.key_columns else ""
            lines.append(f"stream {spec.name}: {promises}{per}, spread by {by or 'nothing'}")
        else:
            lines.append(f"{operator.name} of an earlier stage, spread by {by or 'nothing'}")
    for index in stage.operators:
        operator = plan.operators[index]
        if operator.stateful:
            rows = [
                ", ".join(f"{name} {dtype}" for name, dtype in each.schema.items())
                for each in operator.node.inputs
            ]
            lines.append(f"{operator.name} {operator.detail} over {' and '.join(rows)}")
    return tuple(lines)
