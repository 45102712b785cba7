"""An observation has the metrics of a run at one moment, with its plan, and marks in seconds."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from lowwater.engines.run import Run
from lowwater.metrics import OperatorMetrics, RunMetrics, StreamMetrics
from lowwater.metrics.lag import Mark, lag, reference, seconds
from lowwater.plan.physical.operator import Operator, PhysicalPlan, SourceOperator
from lowwater.progress.spec import StreamSpec


@dataclass(frozen=True)
class WatchedQuery:
    """A query that a page shows, with the handle on its run."""

    id: str
    title: str
    target: str
    """The destination of its results, as the page shows it."""
    plan: PhysicalPlan
    run: Run = field(repr=False)
    live: bool
    """True if the times of its streams follow the clock."""
    started: float = field(default_factory=time.time)
    """The time of day when it began, in seconds since 1970."""

    @cached_property
    def specs(self) -> dict[str, StreamSpec]:
        """The declaration of each stream, by name."""
        return {each.spec.name: each.spec for each in self.plan.sources}

    def node(self, index: int) -> str:
        """Return the name of an operator on the page; a source has the name of its stream."""
        operator = self.plan.operators[index]
        return operator.spec.name if isinstance(operator, SourceOperator) else operator.title


@dataclass(frozen=True)
class Observation:
    """The metrics of a run at one moment, with marks and lags in seconds."""

    query: WatchedQuery
    metrics: RunMetrics
    clock: float
    """The time of day, in seconds since 1970."""

    @cached_property
    def streams(self) -> dict[str, StreamMetrics]:
        """The metrics of streams, by name."""
        return {each.name: each for each in self.metrics.streams}

    @cached_property
    def operators(self) -> dict[str, OperatorMetrics]:
        """The metrics of operators, by title."""
        return {each.title: each for each in self.metrics.operators}

    @cached_property
    def ahead(self) -> float | None:
        """The time from which lags are measured, in seconds; None before the first mark."""
        return reference(self._marks(), self.clock if self.query.live else None)

    def _marks(self) -> Iterator[float | None]:
        for stream in self.metrics.streams:
            yield self.at(stream.name, stream.ahead)
            yield self.mark_of(stream.name)

    def at(self, stream: str, mark: Mark) -> float | None:
        """Return a mark of a stream or of its channels, in seconds."""
        spec = self.query.specs[stream]
        return seconds(mark, spec.domains[spec.time]) if spec.time in spec.domains else None

    def shown_mark(self, stream: str) -> Mark:
        """Return the mark of a stream, as people read it."""
        return self.streams[stream].marks.get(self.query.specs[stream].time)

    def mark_of(self, stream: str) -> float | None:
        """Return the mark of a stream in seconds."""
        return self.at(stream, self.shown_mark(stream))

    def lag_of(self, stream: str) -> float | None:
        """Return how many seconds a stream is behind; None when it has ended."""
        return None if self.streams[stream].ended else self.lag(self.mark_of(stream))

    def lag(self, mark: float | None) -> float | None:
        """Return how many seconds a mark is behind."""
        return lag(mark, self.ahead)

    def least(self, operator: Operator) -> tuple[float, Mark] | None:
        """Return the least mark that an operator holds, in seconds and as people read it; if it
        holds none, that of its inputs."""
        if isinstance(operator, SourceOperator):
            name = self.query.node(operator.index)
            at = self.mark_of(name)
            return None if at is None or self.streams[name].ended else (at, self.shown_mark(name))
        found = self.operators.get(operator.title)
        held = [
            (at, mark)
            for name, mark in (found.marks.items() if found else ())
            if (at := self._held(operator, name, mark)) is not None
        ]
        if not held:
            before = (self.least(self.query.plan.operators[each]) for each in operator.inputs)
            held = [each for each in before if each is not None]
        return min(held, key=lambda each: each[0], default=None)

    def _held(self, operator: Operator, name: str, mark: Mark) -> float | None:
        """Return a mark in seconds; ``ts[1]`` is that of ``ts`` on input 1."""
        attribute = name.partition("[")[0]
        for node in (*operator.node.inputs, operator.node):
            if attribute in node.progress:
                return seconds(mark, node.progress[attribute].domain)
        return None
