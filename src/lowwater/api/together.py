"""Several queries are run at the same time, and known by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from lowwater.api.query import Stream
from lowwater.api.runs import rates_of
from lowwater.dashboard.options import LAST, Dashboard, dashboard_of
from lowwater.dashboard.page import open_page, watched_query
from lowwater.engines.admission import (
    divided_budget,
    refuse_without_joins,
    shares_of,
    sharing_joins,
)
from lowwater.engines.clock import Charge
from lowwater.engines.memory import MemoryBudget
from lowwater.engines.run import Run, RunOptions, RunPage
from lowwater.engines.run_group import RunGroup
from lowwater.errors import OptionError, unknown_name
from lowwater.joins.oblivious.options import Admission
from lowwater.metrics import RunMetrics
from lowwater.plan.explain import explain, explain_shared
from lowwater.plan.physical.operator import PhysicalPlan, PlanShape
from lowwater.plan.physical.planner import compile_plan, compile_shared
from lowwater.plan.physical.sharing import SharedPlan, apart, sharing
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size

Given = TypeVar("Given")


class Runs(Mapping[str, Run]):
    """Queries that are running, or have run, at the same time: their runs by name.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
    >>> runs = lw.together({"all": s, "late": s.where("ts > 1")}).run()
    >>> runs.await_termination()
    True
    >>> runs.results("late")["ts"].to_pylist(), runs["all"].metrics().rows_out
    ([2], 2)
    """

    dashboard: RunPage | None = None
    """The page that shows them, if there is one."""

    def __init__(self, group: RunGroup):
        self._group = group

    def __getitem__(self, name: str) -> Run:
        if name not in self._group.runs:
            raise OptionError(unknown_name("query", name, list(self._group.runs)))
        return self._group.runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._group.runs)

    def __len__(self) -> int:
        return len(self._group.runs)

    def __contains__(self, name: object) -> bool:
        return name in self._group.runs

    @property
    def active(self) -> bool:
        """True while a query runs."""
        return self._group.active

    def metrics(self) -> dict[str, RunMetrics]:
        """Return the metrics so far, by query."""
        return {name: run.metrics() for name, run in self.items()}

    def results(self, name: str) -> pa.Table:
        """Return the results of a query so far, if they were kept (it was given no sink).

        ``name``
            Name of the query.
        """
        return self[name].results()

    def stop(self) -> None:
        """End all queries and wait for them; raise the error of one that failed."""
        self._group.stop()
        self._raise()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end of all queries; return True if they have ended.

        If a query fails, the others are stopped and its error is raised.

        ``timeout``
            Most seconds to wait. Default: None, until the end.
        """
        self._group.wait(timeout)
        if self._group.failed is not None:
            self.stop()
        return not self.active

    def _raise(self) -> None:
        failed = self._group.failed
        if failed is not None:
            name, error = failed
            note = f"in query {' or '.join(map(repr, self._group.failing_with(name)))}"
            if note not in getattr(error, "__notes__", ()):
                error.add_note(note)
            raise error


class Together:
    """Several queries that run at the same time; made by ``lw.together(...)``. It never changes.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
    >>> lw.together({"all": s, "late": s.where("ts > 1")})
    <lowwater queries 'all', 'late'>
    """

    def __init__(self, queries: Mapping[str, Stream], weights: Mapping[str, float]):
        self._queries = {name: each.node for name, each in queries.items()}
        self._weights = dict(weights)
        self._shared = [group for group in sharing(self._queries) if len(group) > 1]
        for name in weights:
            if not any(name in group for group in self._shared):
                raise OptionError(
                    f"weights=: {name!r} shares the queue of no update stream with another query,"
                    " so nothing is decided by its weight"
                )

    def __repr__(self) -> str:
        return f"<lowwater queries {', '.join(map(repr, self._queries))}>"

    def _plans(self, plan: PlanShape) -> dict[str, PhysicalPlan]:
        return {name: compile_plan(each, plan) for name, each in self._queries.items()}

    def _shared_plans(self, plan: PlanShape, memory: MemoryBudget | None) -> list[SharedPlan]:
        """Return the plans of queries that share queues; with a memory budget, queries with joins
        that it is divided over run apart."""
        plans = [
            compile_shared(
                {name: self._queries[name] for name in group},
                [self._weights.get(name, 1.0) for name in group],
                plan,
            )
            for group in self._shared
        ]
        return [each for each in plans if memory is None or not sharing_joins(each.plan)]

    def explain(self, plan: PlanShape = "out-of-order", *, memory: Size | None = None) -> str:
        """Return the plans as text, one after the other; queries that share a queue have one plan.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
        >>> "query 'late'" in lw.together({"all": s, "late": s.where("ts > 1")}).explain()
        True

        ``plan``
            "out-of-order" (default), or "in-order": the shape that puts rows in order first.
        ``memory``
            Most memory for the joins without a window of all queries together, as in :meth:`run`.
            With it, they show their needs and shares. Default: None, there is no budget.
        """
        budget = MemoryBudget.of(memory)
        shared = self._shared_plans(plan, budget)
        together = {name for each in shared for name in each.names}
        plans = self._plans(plan)
        remarks: Sequence[Mapping[int, list[str]]] = [{}] * len(plans)
        if budget is not None:
            refuse_without_joins(list(plans.values()))
            remarks = shares_of(list(plans.values()), budget.bytes, None)
        texts = [explain_shared(each) for each in shared]
        texts += [
            f"query {name!r}\n{explain(each, None, more)}"
            for (name, each), more in zip(plans.items(), remarks, strict=True)
            if name not in together
        ]
        lines = apart(self._queries)
        return "\n\n".join([*texts, "\n".join(lines)] if lines else texts)

    def run(
        self,
        engine: str = "embedded",
        *,
        sink: Mapping[str, object] | None = None,
        late_sink: Mapping[str, object] | None = None,
        checkpoint: str | Path | None = None,
        trigger: Duration | None = None,
        plan: PlanShape = "out-of-order",
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Literal["virtual", "wall"] | None = None,
        charge: Charge | Mapping[str, Charge] = "nothing",
        buckets: int | None = None,
        session: Any = None,
        dashboard: bool | Dashboard = False,
        memory: Size | None = None,
        admission: Admission | None = None,
        rates: Mapping[str, float] | None = None,
    ) -> Runs:
        """Run all queries in the background and return a handle.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
        >>> found = []
        >>> queries = lw.together({"all": s, "late": s.where("ts > 1")})
        >>> runs = queries.run(sink={"late": found.append})
        >>> runs.await_termination()
        True
        >>> runs.results("all").num_rows, found[0].num_rows
        (2, 1)

        ``engine``
            "embedded" (default), in this process, or "spark".
        ``sink``
            By name of a query: the destination of its results, as in
            :meth:`Stream.run <lowwater.Stream.run>`. Default: None; the handle keeps the results of
            queries that are not named.
        ``late_sink``
            By name of a query: the destination of late rows of its streams. Default: None; the
            handle keeps those of queries that are not named.
        ``checkpoint``
            On Spark: a folder from which runs that ended or were killed go on; each query has a
            folder of its name in it. Default: None.
        ``clock``
            "virtual" or "wall". Default: None, for each query virtual unless one of its sources is
            live.
        ``charge``
            Cost of work on a virtual clock, as in :meth:`Stream.run <lowwater.Stream.run>`, for all
            queries or by name of a query. Default: "nothing", also for queries that are not named.
        ``trigger``, ``plan``, ``chunk_rows``, ``tick``, ``buckets``, ``session``
            As in :meth:`Stream.run <lowwater.Stream.run>`, for all queries.
        ``dashboard``
            True, or ``lw.dashboard(...)``: show the runs on a page, at ``runs.dashboard.url``.
            Default: False.
        ``memory``
            Most memory for the rows of the joins without a window of all queries together,
            ``"1 GB"``. It is divided by need while they run; a query is judged by what those before
            it leave. Default: None, no limit.
        ``admission``, ``rates``
            As in :meth:`Stream.run <lowwater.Stream.run>`, for all queries. Default: None.
        """
        if clock is not None and not isinstance(clock, str):
            raise OptionError(
                "clock= is 'virtual' or 'wall' where several queries run: each has its own clock"
            )
        page = dashboard_of(dashboard)
        shared = RunOptions(
            clock=clock,
            chunk_rows=chunk_rows,
            tick=tick,
            trigger=trigger,
            buckets=buckets,
            session=session,
            keep_last=LAST if page is not None and page.show_rows else 0,
        )
        if engine == "spark" and self._weights:
            raise OptionError(
                "weights= are for engine='embedded': on Spark each query has a queue of its own"
            )
        charges = self._by_query(charge, "charge") if isinstance(charge, Mapping) else {}
        charged = "nothing" if isinstance(charge, Mapping) else charge
        sinks, late_sinks = self._by_query(sink, "sink"), self._by_query(late_sink, "late_sink")
        plans = self._plans(plan)
        budget_of_all = MemoryBudget.of(memory, admission)
        shared_plans = self._shared_plans(plan, budget_of_all) if engine == "embedded" else []
        for together in shared_plans:
            plans |= {name: together.part(query) for query, name in enumerate(together.names)}
        given_rates = rates_of(memory, rates)
        if given_rates is not None:
            given_rates.check([each.spec.name for one in plans.values() for each in one.sources])
        budgets = divided_budget(budget_of_all, engine, list(plans.values()))
        queries = {
            name: (
                each,
                replace(
                    shared,
                    sink=sinks.get(name),
                    late_sink=late_sinks.get(name),
                    checkpoint=self._checkpoint(checkpoint, name),
                    charge=charges.get(name, charged),
                    memory=budget,
                    ledger=ledger,
                    rates=None
                    if given_rates is None
                    else given_rates.among([one.spec.name for one in each.sources]),
                    label=f"query {name!r}",
                ),
            )
            for (name, each), (budget, ledger) in zip(plans.items(), budgets, strict=True)
        }
        group = RunGroup.prepare(engine, queries, shared_plans)
        group.start()
        runs = Runs(group)
        if page is not None:
            watched = [
                watched_query(str(number), name, group.runs[name], *queries[name])
                for number, name in enumerate(queries, 1)
            ]
            runs.dashboard = open_page(watched, engine, page, checkpoint, group.stop)
        return runs

    def _by_query(self, given: Mapping[str, Given] | None, option: str) -> Mapping[str, Given]:
        """Return the values of an option by query, checked."""
        if given is None:
            return {}
        if not isinstance(given, Mapping):
            first = next(iter(self._queries))
            raise OptionError(
                f"{option}= names a destination for each query,"
                f" {option}={{{first!r}: ...}}, where several queries run"
            )
        for name in given:
            if name not in self._queries:
                unknown = unknown_name("query", str(name), list(self._queries))
                raise OptionError(f"{option}=: {unknown}")
        return given

    def _checkpoint(self, folder: str | Path | None, name: str) -> Path | None:
        if folder is None:
            return None
        if Path(name).name != name or name.startswith("."):
            raise OptionError(
                f"checkpoint=: a query named {name!r} can have no folder of its name; give the"
                " query a name without / and without a point at its beginning"
            )
        return Path(folder) / name


def together(
    queries: Mapping[str, Stream], *, weights: Mapping[str, float] | None = None
) -> Together:
    """Return several queries as one value, which runs them at the same time.

    Each query is a run of its own, with its own progress and late rows. If one fails, waiting for
    them stops the others. In this process, queries over one update stream share its queue: they run
    as one, and the key and the queries served next are those that lower the staleness of all
    results most.

    >>> s = lw.stream(pl.DataFrame({"ts": [1, 61], "v": [1, 2]}), name="s", time="ts")
    >>> queries = lw.together(
    ...     {
    ...         "rows": s.where("v > 1"),
    ...         "minutes": s.window("1 minute").agg(n="count(*)"),
    ...     }
    ... )
    >>> runs = queries.run()
    >>> runs.await_termination()
    True
    >>> runs.results("minutes")["n"].to_pylist()
    [1, 1]

    ``queries``
        The queries by name, one at least.
    ``weights``
        Weights of the staleness of queries that share a queue: numbers above zero by name. Default:
        None, all have weight 1.
    """
    if not isinstance(queries, Mapping) or not queries:
        raise OptionError("together takes queries by name: lw.together({'name': query, ...})")
    for name, each in queries.items():
        if not isinstance(name, str) or not name:
            raise OptionError(f"together: a name of a query is a text, not {name!r}")
        if not isinstance(each, Stream):
            raise OptionError(
                f"together: {name!r} is a {type(each).__name__} and no query, such as"
                " lw.stream(...) or lw.sql(...)"
            )
    return Together(queries, _checked(weights, queries))


def _checked(
    weights: Mapping[str, float] | None, queries: Mapping[str, Stream]
) -> dict[str, float]:
    if weights is not None and not isinstance(weights, Mapping):
        raise OptionError(f"weights= maps queries to numbers, {{'name': 2}}, not {weights!r}")
    for name, weight in (weights or {}).items():
        if name not in queries:
            unknown = unknown_name("query", str(name), list(queries))
            raise OptionError(f"weights=: {unknown}")
        number = isinstance(weight, int | float) and not isinstance(weight, bool)
        if not number or not 0 < weight < float("inf"):
            raise OptionError(f"weights=: {name!r} has weight {weight!r}; weights are above zero")
    return {name: float(weight) for name, weight in (weights or {}).items()}
