"""An explanation shows a plan as a tree of operators, in text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowwater.plan.builders.oblivious import unpromised
from lowwater.plan.nodes import Node, SourceNode
from lowwater.plan.physical.costs import Rates
from lowwater.plan.physical.floors import input_floors
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.operator import (
    KernelOperator,
    Operator,
    PhysicalPlan,
    SourceOperator,
)
from lowwater.plan.physical.sharing import SharedPlan
from lowwater.progress.options import Every, Heartbeat, Idle, OnDemand, Timer
from lowwater.stream.duration import Duration, nanoseconds, spell
from lowwater.stream.element import SEQUENCE
from lowwater.stream.floor import Floor

LONGEST_DETAIL = 120
"""The greatest length of an operator's detail, in characters."""


def explain(
    plan: PhysicalPlan,
    rates: Rates | None = None,
    remarks: Mapping[int, Sequence[str]] | None = None,
) -> str:
    """Return the operators from the result down, with partitioning, state and progress rules.

    With ``rates``, the text has the expected latency of ordered joins and the expected state of
    joins without a window. ``remarks`` are further lines about operators, by index.
    """
    if rates is not None:
        rates.check([each.spec.name for each in plan.sources])
    lines = [f"{'in-order' if plan.in_order else 'out-of-order'} plan"]
    return "\n".join(
        [*lines, *_tree(plan, plan.result, set(), rates, remarks or {}), *_stages(plan)]
    )


def explain_shared(shared: SharedPlan) -> str:
    """Return the operators of queries that share queues, those of each from its result down;
    operators that were shown for an earlier query are named alone."""
    queries = " and ".join(map(repr, shared.names))
    lines = [
        f"queries {queries} share the queues of update streams and run as one; on Spark each query"
        " has queues of its own"
    ]
    shown: set[int] = set()
    for name, result in zip(shared.names, shared.results, strict=True):
        lines += ["", f"query {name!r}"]
        lines += _tree(shared.plan, shared.plan.operators[result], shown, None, {})
    return "\n".join(lines)


def _stages(plan: PhysicalPlan) -> list[str]:
    """Return the stages of the plan when it is spread over machines, and the routes of rows."""
    layout = lay_out(plan)
    lines = ["spread over machines"]
    for stage in layout.stages:
        titles = [plan.operators[index].title for index in stage.operators]
        lines.append(f"    stage {stage.number}: {', '.join(titles) or 'rows are judged'}")
        lines.append(f"        rows go to buckets: {layout.spelled(stage)}")
        if stage.combined is not None:
            combined = plan.operators[stage.combined]
            ordered = combined.traits.ordered
            then = "rows are put in order" if ordered else "the parts are put together"
            lines.append(f"        {combined.title} answers in part; {then} after it")
    if layout.tail:
        lines.append(f"    then: {', '.join(plan.operators[index].title for index in layout.tail)}")
    return lines


def _tree(
    plan: PhysicalPlan,
    operator: Operator,
    shown: set[int],
    rates: Rates | None,
    remarks: Mapping[int, Sequence[str]],
) -> list[str]:
    """Return an operator and those it reads, as a tree; those in ``shown`` by their title alone."""
    head = f"{operator.title}  {_short(operator.detail)}"
    if operator.index in shown:
        return [f"{head} (shown above)"]
    shown.add(operator.index)
    about = _source(plan, operator) if isinstance(operator, SourceOperator) else []
    if isinstance(operator, KernelOperator):
        about = [*_kernel(plan, operator, rates), *remarks.get(operator.index, ())]
    about = [*about, *_needed(plan, operator)]
    bar = "│   " if operator.inputs else "    "
    lines = [head.rstrip(), *(f"{bar}{line}" for line in (f"progress: {operator.rule}", *about))]
    for port, index in enumerate(operator.inputs):
        last = port == len(operator.inputs) - 1
        first, *others = _tree(plan, plan.operators[index], shown, rates, remarks)
        lines.append(f"{'└── ' if last else '├── '}{first}")
        lines += [f"{'    ' if last else '│   '}{line}" for line in others]
    return lines


def _needed(plan: PhysicalPlan, operator: Operator) -> list[str]:
    """Return lines on the rows that a source's consumers, or an operator's inputs, need."""
    if isinstance(operator, SourceOperator):
        floors = {"": plan.floors[operator.index]}
        nodes: list[Node] = [operator.node]
    else:
        found = input_floors(operator, plan.floors[operator.index])
        alike = len(operator.inputs) == 1 or all(each == found[0] for each in found)
        floors = {"": found[0]} if alike else {f" of input {i}": f for i, f in enumerate(found)}
        nodes = [plan.operators[index].node for index in operator.inputs]
    return [
        f"needs no rows{which} below: {' or '.join(_bounds(node, floor))}"
        for (which, floor), node in zip(floors.items(), nodes, strict=False)
        if floor
    ]


def _bounds(node: Node, floor: Floor) -> list[str]:
    known = node.progress
    return [
        f"{name} = {known[name].domain.show(ticks) if name in known else ticks}"
        for name, ticks in floor.items()
    ]


def _source(plan: PhysicalPlan, operator: SourceOperator) -> list[str]:
    where = getattr(operator.source, "where", None)
    lines = [f"reads: {where}"] if where else []
    return [*lines, f"punctuates: {_punctuation(plan, operator)}", *_options(operator.node)]


def _kernel(plan: PhysicalPlan, operator: KernelOperator, rates: Rates | None) -> list[str]:
    lines = []
    if operator.traits.stateful:
        spread = ", ".join(operator.partition) or "none (one partition)"
        lines.append(f"partitioned by: {spread}")
    for remark in operator.remarks:
        lines += remark(plan.demands[operator.index], rates)
    return [*lines, *_at_the_end(plan, operator)]


def _at_the_end(plan: PhysicalPlan, operator: KernelOperator) -> list[str]:
    """Return a remark on an operator that waits for punctuation that no source emits."""
    if operator.traits.measures or not operator.traits.stateful:
        return []
    demands = operator.describe(plan.demands[operator.index])
    for index, attributes in zip(operator.inputs, demands, strict=True):
        node = plan.operators[index].node
        waits = [name for name in attributes if name in node.progress]
        missing = [unpromised(node, name) for name in waits]
        if waits and all(missing):
            stream, column = missing[0][0]
            return [f"answers: at the end only, for nothing is promised about {column} of {stream}"]
    return []


def _short(detail: str) -> str:
    """Return a detail, cut to at most :data:`LONGEST_DETAIL` characters."""
    if len(detail) <= LONGEST_DETAIL:
        return detail
    cut = detail.rfind(", ", 0, LONGEST_DETAIL)
    if cut < 0:
        return f"{detail[:LONGEST_DETAIL]}..."
    return f"{detail[:cut]}, ... ({detail.count(', ') + 1} in all)"


def contract_lines(node: SourceNode) -> list[str]:
    """Return lines on the contract of a stream and its options."""
    return [f"progress: {node.spec.promise}", *_options(node)]


def _options(node: SourceNode) -> list[str]:
    """Return lines on the options a user gave beyond the contract."""
    spec = node.spec
    lines = [f"late rows: {spec.late}"] if spec.late != "side" else []
    if isinstance(spec.idle, OnDemand):
        lines.append(f"when idle: timestamps on demand, {_idle_lengths(spec.idle)}")
    elif isinstance(spec.idle, Heartbeat):
        period = _length(spec.idle.period)
        lines.append(f"when idle: a heartbeat every {period}, {_idle_lengths(spec.idle)}")
    return lines


def _idle_lengths(idle: Idle) -> str:
    skew, behind = f"skew {_length(idle.skew)}", idle.behind_clock
    return skew if behind is None else f"{skew}, rows at most {_length(behind)} behind the clock"


def _length(duration: Duration) -> str:
    return spell(nanoseconds(duration))


def _punctuation(plan: PhysicalPlan, operator: SourceOperator) -> str:
    """Return on which attributes a source emits punctuation and how often, in words."""
    demands = plan.demands[operator.index]
    domains = operator.spec.domains
    generation = operator.spec.punctuate
    if isinstance(generation, Timer):
        return f"every change, each {_length(generation.period)} of the clock"
    if isinstance(generation, Every):
        return f"every {_length(generation.step)}"
    words = []
    for attribute, demand in demands.items():
        if attribute != SEQUENCE and not operator.spec.promises(attribute):
            words.append(f"nothing about {attribute}, which is not promised")
            continue
        if attribute == SEQUENCE:
            words.append("row numbers")
        elif any(step == 1 for step, _ in demand.grids):
            words.append(f"{attribute} at every step")
        else:
            steps = sorted({step for step, _ in demand.grids})
            grids = " and ".join(domains[attribute].spell(step) for step in steps)
            words.append(f"{attribute} every {grids}")
        keys = operator.spec.groups
        if keys and attribute != SEQUENCE:
            words[-1] += f", for each {' and '.join(keys)}"
            words[-1] += " and for all" if demand.linear else " alone"
    return ", ".join(words) or "nothing: no operator waits for it"
