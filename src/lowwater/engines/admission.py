"""Queries come under a memory budget here, and are judged by what is known before a run."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

from lowwater.engines.memory import MemoryBudget, MemoryLedger, QueryMemory
from lowwater.errors import AdmissionError, OptionError, StreamWarning, Term
from lowwater.plan.nodes import AnyJoin
from lowwater.plan.physical.costs import Rates, memory_need
from lowwater.plan.physical.operator import KernelOperator, PhysicalPlan
from lowwater.stream.size import spell_bytes


def sharing_joins(plan: PhysicalPlan) -> list[KernelOperator]:
    """Return the operators of a plan that share a memory budget: joins without a window."""
    return [each for each in plan.kernels if each.traits.measures]


def refuse_without_joins(plans: Sequence[PhysicalPlan]) -> None:
    """Refuse a memory budget if no query has a join that could share it."""
    if not any(map(sharing_joins, plans)):
        raise OptionError(
            Term("memory=", "SET MEMORY"),
            " is divided over joins of equal times without a window that measure how disordered"
            " their inputs are, and there is none here: leave it out, or let a join measure, over"
            " streams with progress=lw.unpromised() or with an option such as accuracy=0.999",
        )


def divided_budget(
    budget: MemoryBudget | None, engine: str, plans: Sequence[PhysicalPlan]
) -> list[tuple[MemoryBudget | None, MemoryLedger | None]]:
    """Return the budget and the ledger of each of several queries that run at the same time.

    In this process all share one ledger. On Spark each gets a part of the budget for each of its
    joins, which is none for a query without such joins.
    """
    if budget is None:
        return [(None, None)] * len(plans)
    refuse_without_joins(plans)
    if engine != "spark":
        return [(budget, MemoryLedger(budget.bytes))] * len(plans)
    joins = [len(sharing_joins(each)) for each in plans]
    parts = [max(1, budget.bytes * own // sum(joins)) if own else None for own in joins]
    return [(None if part is None else replace(budget, bytes=part), None) for part in parts]


def query_memory(
    plan: PhysicalPlan,
    budget: MemoryBudget,
    ledger: MemoryLedger | None = None,
    rates: Rates | None = None,
    label: str = "",
) -> QueryMemory:
    """Return the accounts of a query's joins under a budget.

    ``ledger`` is that of all queries of the process; None to make one for this query. ``rates`` are
    those of the streams, as far as they are known. If the query cannot be served by what is known,
    this warns, or raises the error.
    """
    if rates is not None:
        rates.check([each.spec.name for each in plan.sources])
    if ledger is None:
        refuse_without_joins([plan])
    found = QueryMemory(ledger or MemoryLedger(budget.bytes), budget.admission, label=label)
    for operator in sharing_joins(plan):
        assert isinstance(operator.node, AnyJoin)
        found.open(operator.title, memory_need(operator.node, rates))
    try:
        shortage = found.judge()
    except AdmissionError:
        found.close()
        raise
    if shortage is not None:
        warnings.warn(shortage, StreamWarning, stacklevel=2)
    return found


def shares_of(
    plans: Sequence[PhysicalPlan], budget: int, rates: Rates | None
) -> list[dict[int, list[str]]]:
    """Return, for each plan, lines about the share of the budget of each of its joins.

    Shares follow from what is declared; the need of other joins counts as an equal part of the
    budget.
    """
    ledger = MemoryLedger(budget)
    queries = []
    for plan in plans:
        query = QueryMemory(ledger, "warn")
        for operator in sharing_joins(plan):
            assert isinstance(operator.node, AnyJoin)
            query.open(operator.title, memory_need(operator.node, rates))
        ledger.judge(query)
        queries.append(query)
    found = []
    for plan, query in zip(plans, queries, strict=True):
        lines = {}
        for operator, account in zip(sharing_joins(plan), query.accounts, strict=True):
            need = account.need
            known = "measured at run time" if need is None else need.describe()
            share = f"{spell_bytes(account.target)} of the {spell_bytes(budget)} of all joins"
            lines[operator.index] = [f"memory: {share}, divided by need; needs {known}"]
            if need is not None and need.expected(account.target) < need.asked:
                part = need.expected(account.target) * 100
                lines[operator.index].append(f"expected with it: about {part:.3g} % of results")
        found.append(lines)
    return found
