"""A run as a page knows it: the plan it follows, the handle on it, and how far its marks are."""

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
class Watched:
    """One query that is watched."""

    id: str
    title: str
    target: str
    """Where its answers go."""
    plan: PhysicalPlan
    run: Run = field(repr=False)
    live: bool
    """Whether its streams go by the clock."""
    started: float = field(default_factory=time.time)
    """The time of day when it began."""

    @cached_property
    def specs(self) -> dict[str, StreamSpec]:
        """What is known of each stream, by name."""
        return {each.spec.name: each.spec for each in self.plan.sources}

    def node(self, index: int) -> str:
        """The name of an operator on the page: streams go by their own."""
        operator = self.plan.operators[index]
        return operator.spec.name if isinstance(operator, SourceOperator) else operator.title

    def streams_of(self, index: int) -> frozenset[str]:
        """The streams an operator's rows come from."""
        return self._upstream[index]

    @cached_property
    def _upstream(self) -> list[frozenset[str]]:
        found: list[frozenset[str]] = []
        for each in self.plan.operators:
            source = isinstance(each, SourceOperator)
            mine = frozenset({self.node(each.index)}) if source else frozenset()
            found.append(mine.union(*(found[source] for source in each.inputs)))
        return found


@dataclass(frozen=True)
class Looked:
    """The metrics of a run at one moment, with everything counted in seconds."""

    watched: Watched
    metrics: RunMetrics
    clock: float
    """The time of day."""

    @cached_property
    def streams(self) -> dict[str, StreamMetrics]:
        """By name."""
        return {each.name: each for each in self.metrics.streams}

    @cached_property
    def operators(self) -> dict[str, OperatorMetrics]:
        """By title."""
        return {each.title: each for each in self.metrics.operators}

    @cached_property
    def ahead(self) -> float | None:
        """What lags count from."""
        return reference(self._marks(), self.clock if self.watched.live else None)

    def _marks(self) -> Iterator[float | None]:
        for stream in self.metrics.streams:
            yield self.at(stream.name, stream.ahead)
            yield self.mark_of(stream.name)

    def at(self, stream: str, mark: Mark) -> float | None:
        """A mark of a stream or its channels, in seconds."""
        spec = self.watched.specs[stream]
        return seconds(mark, spec.domains[spec.time]) if spec.time in spec.domains else None

    def shown_mark(self, stream: str) -> Mark:
        """The mark of a stream, as people read it."""
        return self.streams[stream].marks.get(self.watched.specs[stream].time)

    def mark_of(self, stream: str) -> float | None:
        """The same in seconds."""
        return self.at(stream, self.shown_mark(stream))

    def lag_of(self, stream: str) -> float | None:
        """How far a stream is behind; nothing when it has ended."""
        return None if self.streams[stream].ended else self.lag(self.mark_of(stream))

    def lag(self, mark: float | None) -> float | None:
        """How far something is behind."""
        return lag(mark, self.ahead)

    def least(self, operator: Operator) -> tuple[float, Mark] | None:
        """The least promise an operator holds, in seconds and as people read it; of operators
        that hold none, that of what they read."""
        if isinstance(operator, SourceOperator):
            name = self.watched.node(operator.index)
            at = self.mark_of(name)
            return None if at is None or self.streams[name].ended else (at, self.shown_mark(name))
        told = self.operators.get(operator.title)
        held = [
            (at, mark)
            for name, mark in (told.marks.items() if told else ())
            if (at := self._held(operator, name, mark)) is not None
        ]
        if not held:
            before = (self.least(self.watched.plan.operators[each]) for each in operator.inputs)
            held = [each for each in before if each is not None]
        return min(held, key=lambda each: each[0], default=None)

    def _held(self, operator: Operator, name: str, mark: Mark) -> float | None:
        """A promise in seconds; ``ts[1]`` is that on ``ts`` of input 1."""
        attribute = name.partition("[")[0]
        for node in (*operator.node.inputs, operator.node):
            if attribute in node.progress:
                return seconds(mark, node.progress[attribute].domain)
        return None
