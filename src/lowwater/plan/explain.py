"""Explain: the plan as a tree a person can read."""

from __future__ import annotations

from lowwater.plan.nodes import SourceNode
from lowwater.plan.physical import Operator, PhysicalPlan
from lowwater.stream.element import SEQUENCE


def explain(plan: PhysicalPlan) -> str:
    """Operators from the result down, with partitioning, state and progress rules."""
    lines = [f"{'in-order' if plan.in_order else 'out-of-order'} plan"]
    shown: set[int] = set()
    _walk(plan, plan.result, "", "", lines, shown)
    return "\n".join(lines)


def _walk(
    plan: PhysicalPlan, operator: Operator, lead: str, rest: str, lines: list[str], shown: set[int]
) -> None:
    again = " (shown above)" if operator.index in shown else ""
    lines.append(f"{lead}{operator.title}  {operator.detail}{again}".rstrip())
    if again:
        return
    shown.add(operator.index)
    inner = rest + ("│   " if operator.inputs else "    ")
    lines.append(f"{inner}progress: {operator.rule}")
    if isinstance(operator.node, SourceNode) and operator.build is None:
        lines.append(f"{inner}punctuates: {_punctuation(plan, operator)}")
    elif operator.stateful:
        spread = ", ".join(operator.partition) if operator.partition else "none (one partition)"
        lines.append(f"{inner}partitioned by: {spread}")
    for at, index in enumerate(operator.inputs):
        last = at == len(operator.inputs) - 1
        _walk(
            plan,
            plan.operators[index],
            rest + ("└── " if last else "├── "),
            rest + ("    " if last else "│   "),
            lines,
            shown,
        )


def _punctuation(plan: PhysicalPlan, operator: Operator) -> str:
    demands = plan.demands[operator.index]
    assert isinstance(operator.node, SourceNode)
    domains = operator.node.spec.domains
    words = []
    for attribute, demand in demands.items():
        if attribute == SEQUENCE:
            words.append("row numbers")
        elif any(step == 1 for step, _ in demand.grids):
            words.append(f"{attribute} at every step")
        else:
            steps = sorted({step for step, _ in demand.grids})
            grids = " and ".join(domains[attribute].spell(step) for step in steps)
            words.append(f"{attribute} every {grids}")
    return ", ".join(words) or "nothing: no operator waits for it"
