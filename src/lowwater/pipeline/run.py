"""A pipeline runs all its queries at the same time, until they end, fail or are stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from lowwater.dashboard.history import METRICS
from lowwater.dashboard.observation import WatchedQuery
from lowwater.dashboard.options import LAST, Dashboard
from lowwater.dashboard.page import Page
from lowwater.dashboard.watcher import Watcher
from lowwater.engines.admission import divided_budget
from lowwater.engines.run import Run, RunOptions
from lowwater.engines.run_group import RunGroup
from lowwater.errors import OptionError, SinkError
from lowwater.pipeline.progress import PipelineProgress, QueryProgress, query_progress, with_lags
from lowwater.pipeline.targets import PLAIN, Target, Writing, late_folders, targets
from lowwater.pipeline.text import Pipeline, PlannedQuery
from lowwater.plan.physical.costs import Rates
from lowwater.sinks import Folder, Sink

AVAILABLE_NOW = "available-now"


@dataclass(frozen=True)
class RunSettings:
    """The options of the run of a pipeline; None is the default of each."""

    checkpoint: Path | None = None
    output: Path | None = None
    trigger: str | None = None
    real_time: bool = False
    """True to read rows of generated streams at the times at which they arrive; False to read them
    as fast as possible."""
    dashboard: Dashboard | None = None
    """The page that shows the run; None for none."""
    save_metrics: Path | None = None
    rates: Rates | None = None
    """Rows a second of streams, by which a memory budget is judged before the run."""
    writing: Writing = PLAIN
    """The way in which folders of results are written."""


Console = Callable[[PlannedQuery], Sink]
"""A function that makes the sink of a query whose answers go to the console."""


@dataclass(frozen=True)
class _Started:
    """A query that was started, with its run and the folders of its rows."""

    query: PlannedQuery
    target: Target
    late: dict[str, Folder]
    run: Run


class PipelineRun:
    """A pipeline that was started, with its queries' runs."""

    def __init__(self, pipeline: Pipeline, options: RunSettings, console: Console):
        self.pipeline = pipeline
        self._options = options
        _check(pipeline, options)
        writing = options.writing
        goals = targets(pipeline, options.output, writing)
        late = late_folders(pipeline, options.output, writing)
        if options.checkpoint is None:
            _refuse_used(goals, late)
        session = pipeline.session() if pipeline.engine == "spark" else None
        plans = [each.plan for each in pipeline.queries]
        self._budgets = divided_budget(pipeline.memory, pipeline.engine, plans)
        about = {
            str(query.number): (
                query.plan,
                self._run_options(
                    query,
                    goals[query.number].folder or console(query),
                    late[query.number],
                    session,
                ),
            )
            for query in pipeline.queries
        }
        self._runs = RunGroup.prepare(pipeline.engine, about, pipeline.shared)
        self._started = [
            _Started(each, goals[each.number], late[each.number], self._runs.runs[str(each.number)])
            for each in pipeline.queries
        ]
        self._begun = time.monotonic()
        self._watching: Page | Watcher | None = None
        self._runs.start()
        try:
            self._watching = self._watch()
        except BaseException:
            self.stop()
            raise

    def _watch(self) -> Page | Watcher | None:
        """Return the page or the watcher that the options ask for; None if they ask for none."""
        options, page = self._options, self._options.dashboard
        save = options.save_metrics
        if save is None and page is not None and options.checkpoint is not None:
            save = options.checkpoint / METRICS
        if page is None and save is None:
            return None
        many = len(self._started) > 1
        watched = [
            WatchedQuery(
                str(each.query.number),
                f"query {each.query.number}, line {each.query.line}" if many else "query",
                str(each.target),
                each.query.plan,
                each.run,
                self._live,
            )
            for each in self._started
        ]
        about = self.pipeline.name, self.pipeline.engine, watched
        if page is None:
            return Watcher(*about, save=save)
        return Page(*about, replace(page, save=save))

    @property
    def url(self) -> str | None:
        """Address of the page; None without one."""
        return self._watching.url if isinstance(self._watching, Page) else None

    @property
    def _live(self) -> bool:
        return self._options.real_time or any(each.query.live for each in self._started)

    def settle(self) -> None:
        """Read the metrics a last time; a page goes on showing them."""
        if self._watching is not None:
            self._watching.settle()

    def _run_options(
        self, query: PlannedQuery, sink: object, side: object, session: object
    ) -> RunOptions:
        options, spark = self._options, self.pipeline.engine == "spark"
        timed = options.real_time and (query.generated or not spark)
        clock: Literal["wall"] | None = "wall" if timed else None
        keep = LAST if options.dashboard is not None and options.dashboard.show_rows else 0
        many = len(self.pipeline.queries) > 1
        memory, ledger = self._budgets[query.number - 1]
        shared = RunOptions(
            sink=sink,
            late_sink=side,
            clock=clock,
            keep_last=keep,
            memory=memory,
            ledger=ledger,
            rates=None if options.rates is None else options.rates.among(query.streams),
            label=f"query {query.number}, line {query.line}" if many else "",
        )
        if not spark:
            return shared
        finite = not query.live
        checkpoint = self._checkpoint(query)
        trigger = options.trigger
        if finite and checkpoint is not None and clock is None:
            trigger = AVAILABLE_NOW
        return replace(
            shared,
            checkpoint=checkpoint,
            trigger=trigger,
            session=session,
            to_end=finite and checkpoint is None and clock is None,
        )

    def _checkpoint(self, query: PlannedQuery) -> Path | None:
        """Return the folder of a query's checkpoint: its own if there are several queries."""
        given = self._options.checkpoint
        if given is None or len(self.pipeline.queries) == 1:
            return given
        return given / f"query{query.number}"

    # ---- watching --------------------------------------------------------------------------

    @property
    def active(self) -> bool:
        """True while a query runs."""
        return self._runs.active

    @property
    def failed(self) -> tuple[PlannedQuery, BaseException] | None:
        """The first query that failed, and its error; None if none has."""
        found = self._runs.failed
        if found is None:
            return None
        name, error = found
        return self.pipeline.queries[list(self._runs.runs).index(name)], error

    def wait(self, seconds: float, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until all queries have ended, one has failed, ``stop()`` is true, or the seconds are
        over; return True if no query runs or one has failed."""
        return self._runs.wait(seconds, stop)

    def stop(self) -> None:
        """End all queries and wait for them; an error of theirs is in :attr:`failed`."""
        self._runs.stop()

    def progress(self) -> PipelineProgress:
        """Return the progress of all queries so far."""
        queries: list[QueryProgress] = []
        for each in self._started:
            checkpoint = self._checkpoint(each.query)
            others = (
                dict.fromkeys(each.query.streams, str(checkpoint / "late")) if checkpoint else {}
            )
            kept = others | {name: str(folder.path) for name, folder in each.late.items()}
            queries.append(
                query_progress(
                    each.query, str(each.target), each.run.metrics(), each.run.active, kept
                )
            )
        return PipelineProgress(
            time.monotonic() - self._begun,
            with_lags(queries, self._live),
        )


def _check(pipeline: Pipeline, options: RunSettings) -> None:
    if options.rates is not None:
        if pipeline.memory is None:
            raise OptionError("--rate goes with --memory, or with SET MEMORY in the pipeline")
        options.rates.check(list(pipeline.streams))
    if pipeline.engine != "spark":
        for name in ("checkpoint", "trigger"):
            if getattr(options, name) is not None:
                raise OptionError(f"--{name} is for --engine spark; the embedded engine has none")
        return
    timed = options.trigger is not None and options.trigger != AVAILABLE_NOW
    if timed and not options.real_time and not all(query.live for query in pipeline.queries):
        raise OptionError(
            f"--trigger {options.trigger!r}: this pipeline ends by itself, after the rows that are"
            " there now; a trigger is for live streams, such as a folder with FOLLOW"
        )


def _refuse_used(goals: dict[int, Target], late: dict[int, dict[str, Folder]]) -> None:
    folders = [each.folder for each in goals.values() if each.folder]
    folders += [folder for each in late.values() for folder in each.values()]
    for folder in folders:
        if folder.path.exists() and not folder.path.is_dir():
            raise SinkError(f"cannot write results to {folder.path}: it is a file")
        if folder.mode == "fail":
            folder.refuse_if_used()
