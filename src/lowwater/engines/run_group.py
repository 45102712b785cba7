"""Queries that run at the same time, each as a run of its own; runs are known by name."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace

from lowwater.engines.run import Run, RunOptions, prepare, prepare_shared
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.plan.physical.sharing import SharedPlan
from lowwater.sinks import make_sink

LOOK_SECONDS = 0.05
"""Seconds between two checks of the runs."""


class RunGroup:
    """The runs of several queries, which begin together and are waited for together."""

    def __init__(self, runs: Mapping[str, Run]):
        self.runs = dict(runs)

    @classmethod
    def prepare(
        cls,
        engine: str,
        queries: Mapping[str, tuple[PhysicalPlan, RunOptions]],
        shared: Sequence[SharedPlan] = (),
    ) -> RunGroup:
        """Set queries up on an engine; if one cannot be set up, the sinks of all are closed.

        Each query is a run of its own, but for those that are in one of the plans of ``shared``.
        """
        ready: dict[str, RunOptions] = {}
        together = {name for each in shared for name in each.names}
        with ExitStack() as opened:
            for name, (plan, options) in queries.items():
                about = options
                if engine == "embedded":
                    sink = opened.enter_context(closing(make_sink(options.sink, plan.schema)))
                    about = replace(options, sink=sink)
                    if options.late_sink is not None:
                        late = opened.enter_context(closing(make_sink(options.late_sink, {})))
                        about = replace(about, late_sink=late)
                ready[name] = about
            runs = {
                name: prepare(plan, engine, ready[name])
                for name, (plan, _) in queries.items()
                if name not in together
            }
            for each in shared:
                runs |= prepare_shared(each, {name: ready[name] for name in each.names})
            opened.pop_all()  # from here on the runs close them
        return cls({name: runs[name] for name in queries})

    def start(self) -> None:
        """Start all; if one cannot be started, those that were are stopped."""
        try:
            for run in self.runs.values():
                run.start()
        except BaseException:
            self.stop()
            raise

    @property
    def active(self) -> bool:
        """True while a query runs."""
        return any(run.active for run in self.runs.values())

    @property
    def failed(self) -> tuple[str, BaseException] | None:
        """The name of the first query that failed, and its error; None if none has."""
        for name, run in self.runs.items():
            if run.exception is not None:
                return name, run.exception
        return None

    def failing_with(self, name: str) -> list[str]:
        """Return the queries that the error of one ended: those that share a queue with it."""
        error = self.runs[name].exception
        return [each for each, run in self.runs.items() if run.exception is error]

    def wait(self, seconds: float | None, stop: Callable[[], bool] = lambda: False) -> bool:
        """Wait until all queries have ended, one has failed, ``stop()`` is true, or the seconds are
        over (None: for ever); return True if no query runs or one has failed."""
        until = None if seconds is None else time.monotonic() + seconds
        while self.active and self.failed is None and not stop():
            left = LOOK_SECONDS if until is None else until - time.monotonic()
            if left <= 0:
                break
            time.sleep(min(LOOK_SECONDS, left))
        return not self.active or self.failed is not None

    def stop(self) -> None:
        """End all queries and wait for them; an error of theirs is in :attr:`failed`."""
        for run in self.runs.values():
            with contextlib.suppress(Exception):  # the run keeps it
                run.stop()
