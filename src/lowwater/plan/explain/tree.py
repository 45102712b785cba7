"""Explain: the plan as a tree a person can read."""

from __future__ import annotations

from lowwater.plan.builders.oblivious import unpromised
from lowwater.plan.explain.join_memory import predicted
from lowwater.plan.explain.order_costs import Rates, expected
from lowwater.plan.explain.updates import under_load
from lowwater.plan.nodes import (
    DistinctNode,
    GroupAggregateNode,
    JoinNode,
    MultiJoinNode,
    SourceNode,
)
from lowwater.plan.physical.layout import lay_out
from lowwater.plan.physical.operator import Operator, PhysicalPlan
from lowwater.progress.contract import Every, Heartbeat, OnDemand, Timer
from lowwater.stream.duration import Duration, nanoseconds, spell
from lowwater.stream.element import SEQUENCE

LONGEST_DETAIL = 120
"""Characters of what is said of an operator beside its name."""


def explain(plan: PhysicalPlan, rates: Rates | None = None) -> str:
    """Operators from the result down, with partitioning, state and progress rules.

    With ``rates``, ordered joins say what they are expected to take, and joins without a window
    what to keep.
    """
    if rates is not None:
        rates.check(plan)
    lines = [f"{'in-order' if plan.in_order else 'out-of-order'} plan"]
    shown: set[int] = set()
    _walk(plan, plan.result, "", "", lines, shown, rates)
    return "\n".join([*lines, *_stages(plan)])


def _stages(plan: PhysicalPlan) -> list[str]:
    """Which operators run together when the plan is spread, and how rows get to them."""
    layout = lay_out(plan)
    lines = ["spread over machines"]
    for stage in layout.stages:
        titles = [plan.operators[index].title for index in stage.operators]
        lines.append(f"    stage {stage.number}: {', '.join(titles) or 'rows are judged'}")
        lines.append(f"        rows go to buckets: {layout.spelled(stage)}")
        if stage.combined is not None:
            combined = plan.operators[stage.combined]
            then = "the parts are put together" if not combined.ordered else "rows are put in order"
            lines.append(f"        {combined.title} answers in part; {then} after it")
    if layout.tail:
        lines.append(f"    then: {', '.join(plan.operators[index].title for index in layout.tail)}")
    return lines


def _walk(
    plan: PhysicalPlan,
    operator: Operator,
    lead: str,
    rest: str,
    lines: list[str],
    shown: set[int],
    rates: Rates | None,
) -> None:
    again = " (shown above)" if operator.index in shown else ""
    lines.append(f"{lead}{operator.title}  {_short(operator.detail)}{again}".rstrip())
    if again:
        return
    shown.add(operator.index)
    inner = rest + ("│   " if operator.inputs else "    ")
    lines.append(f"{inner}progress: {operator.rule}")
    if isinstance(operator.node, SourceNode) and operator.build is None:
        where = getattr(operator.node.source, "where", None)
        lines += [f"{inner}reads: {where}"] if where else []
        lines.append(f"{inner}punctuates: {_punctuation(plan, operator)}")
        lines += [f"{inner}{line}" for line in _options(operator.node)]
    elif operator.stateful:
        spread = ", ".join(operator.partition) if operator.partition else "none (one partition)"
        lines.append(f"{inner}partitioned by: {spread}")
    lines += [f"{inner}{line}" for line in (*_jointly(plan, operator), *under_load(operator))]
    if operator.name == "obliviousjoin":
        lines += [f"{inner}{line}" for line in predicted(operator.node, rates)]
    else:
        lines += [f"{inner}{line}" for line in _at_the_end(plan, operator)]
    if rates is not None and operator.stateful:
        lines += [f"{inner}{line}" for line in expected(operator.node, rates)]
    for at, index in enumerate(operator.inputs):
        last = at == len(operator.inputs) - 1
        _walk(
            plan,
            plan.operators[index],
            rest + ("└── " if last else "├── "),
            rest + ("    " if last else "│   "),
            lines,
            shown,
            rates,
        )


def _jointly(plan: PhysicalPlan, operator: Operator) -> list[str]:
    """Which promises of several attributes an operator tells or uses (OOP §7)."""
    node, awaited = operator.node, plan.demands[operator.index]
    inner = isinstance(node, MultiJoinNode) or (isinstance(node, JoinNode) and node.how == "inner")
    if operator.name in ("join", "multijoin") and inner:
        told = [name for name in node.progress if name in awaited]
        return [f"tells jointly: {' or '.join(told)}"] if len(told) > 1 else []
    if operator.name == "group" and isinstance(node, GroupAggregateNode):
        used = list(node.progressing_keys)
        return [f"answers by promises on: {_each_or_all(used)}"]
    if operator.name == "distinct" and isinstance(node, DistinctNode):
        progress = node.inputs[0].progress
        used = [name for name in node.key if name in progress and not progress[name].nullable]
        return [f"forgets by promises on: {_each_or_all(used)}"]
    return []


def _at_the_end(plan: PhysicalPlan, operator: Operator) -> list[str]:
    """Of an operator that waits for promises where none are made."""
    if not operator.stateful:
        return []
    wanted = operator.describe(plan.demands[operator.index])
    for index, attributes in zip(operator.inputs, wanted, strict=True):
        node = plan.operators[index].node
        waits = [name for name in attributes if name in node.progress]
        missing = [unpromised(node, name) for name in waits]
        if waits and all(missing):
            stream, column = missing[0][0]
            return [f"answers: at the end only, for nothing is promised about {column} of {stream}"]
    return []


def _each_or_all(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{' or '.join(names)}, alone or jointly"


def _short(detail: str) -> str:
    """A detail that would not fit on a line, as far as it does."""
    if len(detail) <= LONGEST_DETAIL:
        return detail
    cut = detail.rfind(", ", 0, LONGEST_DETAIL)
    if cut < 0:
        return f"{detail[:LONGEST_DETAIL]}..."
    return f"{detail[:cut]}, ... ({detail.count(', ') + 1} in all)"


def promise(node: SourceNode) -> list[str]:
    """What a stream promises, in words."""
    return [f"progress: {node.spec.promise}", *_options(node)]


def _options(node: SourceNode) -> list[str]:
    """What the user asked for beyond the contract."""
    spec = node.spec
    lines = [f"late rows: {spec.late}"] if spec.late != "side" else []
    if isinstance(spec.idle, OnDemand):
        lines.append(f"when idle: timestamps on demand, skew {_length(spec.idle.skew)}")
    elif isinstance(spec.idle, Heartbeat):
        period, skew = _length(spec.idle.period), _length(spec.idle.skew)
        lines.append(f"when idle: a heartbeat every {period}, skew {skew}")
    return lines


def _length(duration: Duration) -> str:
    return spell(nanoseconds(duration))


def _punctuation(plan: PhysicalPlan, operator: Operator) -> str:
    demands = plan.demands[operator.index]
    assert isinstance(operator.node, SourceNode)
    domains = operator.node.spec.domains
    generation = operator.node.spec.punctuate
    if isinstance(generation, Timer):
        return f"what has changed, every {_length(generation.period)} of the clock"
    if isinstance(generation, Every):
        return f"every {_length(generation.step)}"
    words = []
    for attribute, demand in demands.items():
        if attribute != SEQUENCE and not operator.node.spec.promises(attribute):
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
        keys = operator.node.spec.groups
        if keys and attribute != SEQUENCE:
            words[-1] += f", for each {' and '.join(keys)}"
            words[-1] += " and for all" if demand.linear else " alone"
    return ", ".join(words) or "nothing: no operator waits for it"
