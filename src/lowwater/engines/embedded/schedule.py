"""The schedule runs operators depth first (ETS §3), from the source that was read last.

An execution step runs the current operator on one element; then the next operator is chosen:
*Forward* to a successor that has input, else *Encore* on the same operator, else *Backtrack* to its
predecessor. Work that operators defer is done when no input is left, and queues of updates are
worked on, one portion at a time, when no source has anything to read.

Invariant: between two readings of sources every arc is empty; rows that wait are in kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from lowwater.engines.clock import Clock, stopwatch
from lowwater.engines.embedded.graph import Arc, Vertex
from lowwater.updates.shared.shared_queue import SharedUpdateQueue

READ_AT_ONCE = 20_000_000
"""Nanoseconds for which sources that always have rows are read before queues are worked on."""


class Schedule:
    """Runs the operators of a plan until no arc holds an element."""

    def __init__(self, vertices: Iterable[Vertex], clock: Clock, between_steps: Callable[[], None]):
        vertices = list(vertices)
        self._clock, self._between_steps = clock, between_steps
        self.queues = [each for each in vertices if each.kernel.queues]
        self._deferring = [each for each in vertices if each.kernel.defers]
        self._readings = self._reading_since = 0

    def run_from(self, arcs: Iterable[Arc]) -> None:
        """Run operators until the elements on these arcs have left or are in kernels."""
        self._follow(arcs)
        for vertex in self._deferring:
            while vertex.kernel.has_work:
                vertex.execute()
                self._follow(vertex.outputs)

    def _follow(self, arcs: Iterable[Arc]) -> None:
        for arc in arcs:
            if arc:
                self._descend(arc.target)

    def _descend(self, vertex: Vertex) -> None:
        path = [vertex]
        while path:
            current = path[-1]
            self._between_steps()
            if current.has_input:
                current.execute()
            forward = next((arc.target for arc in current.outputs if arc), None)
            if forward is not None:
                path.append(forward)
            elif not current.has_input:
                path.pop()

    def may_read(self, sources: int) -> bool:
        """Return whether to read sources before queues are worked on.

        Sources that always have rows must not keep queues from being worked on: on a real clock
        each of ``sources`` is read once, then all for 20 ms. On a virtual clock no row arrives
        while sources are read.
        """
        if not self._clock.real or not self.queues:
            return True
        self._readings += 1
        if self._readings == 1:
            self._reading_since = stopwatch()
        return self._readings <= sources or stopwatch() - self._reading_since < READ_AT_ONCE

    def next_queue(self) -> Vertex | None:
        """Return the queue whose oldest row has waited longest; None if no row waits."""
        self._readings = 0
        ready = [each for each in self.queues if each.kernel.has_work]
        return min(ready, key=lambda each: each.kernel.waiting_since or 0) if ready else None

    def work_on(self, queue: Vertex) -> None:
        """Let one portion out of a queue and follow it to the results."""
        begun, started = self._clock.now(), stopwatch()
        queue.execute()
        self.run_from(queue.outputs)
        now = self._clock.now()
        took = stopwatch() - started if self._clock.real else now - begun
        if queue.split is not None:
            spent = queue.split.end()
            if isinstance(queue.kernel, SharedUpdateQueue):
                queue.call(queue.kernel.record_costs, spent, took)
        queue.call(queue.kernel.end_portion, took, now)
