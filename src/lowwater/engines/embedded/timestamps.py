"""Enabling timestamps (ETS §5) are promises that sources make on demand, by the clock.

A request of an operator is followed back to the sources it depends on. A source that has nothing to
read and is declared to make timestamps promises the requested mark if the clock has reached it.
Otherwise the engine keeps the clock time at which the source can promise the mark, and wakes then.
Latent time works the same way; its source is the operator that stamps rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.embedded.feed import Feed
from lowwater.engines.embedded.graph import Arc, Vertex
from lowwater.engines.members import backtrack
from lowwater.operators.stamp import TICK, Stamp


class LatentClock:
    """An operator that stamps rows, as a source of promises on the stamps."""

    def __init__(self, vertex: Vertex, feeds: Sequence[Feed]):
        assert isinstance(vertex.kernel, Stamp)
        self._vertex, self._kernel, self._feeds = vertex, vertex.kernel, feeds
        self.on_demand = self._kernel.how.on_demand
        for feed in feeds:
            feed.timers.append(self.promise_last)
            feed.heartbeats.append(self.promise_now)

    @property
    def outputs(self) -> list[Arc]:
        """The arcs its promises go to."""
        return self._vertex.outputs

    @property
    def ended(self) -> bool:
        """True if no row will be stamped any more."""
        return all(feed.ended for feed in self._feeds)

    def due(self) -> int | None:
        """Return the clock time at which a row to be stamped can be read; None if unknown."""
        return min((due for each in self._feeds if (due := each.due()) is not None), default=None)

    def when(self, attribute: str, mark: int, now: int) -> int | None:
        """Return the clock time at which a mark can be promised, in nanoseconds."""
        return mark * TICK

    def enable(self, attribute: str, mark: int, now: int) -> bool:
        """Promise the time of the clock if it has reached ``mark``; return whether it has."""
        if now // TICK < mark or not self.promise_now(now):
            return False
        for feed in self._feeds:
            feed.stamps += feed.on_demand
        return True

    def promise_now(self, now: int) -> bool:
        """Promise the time of the clock; return whether that is more than was promised before."""
        promises = self._vertex.call(self._kernel.enable, now)
        self._vertex.emit(promises)
        return bool(promises)

    def promise_last(self) -> None:
        """Promise the time of the rows that were stamped last."""
        self._vertex.emit(self._vertex.call(self._kernel.promise_last))


def latent_clocks(vertices: dict[int, Vertex], feeds: Mapping[int, Feed]) -> dict[int, LatentClock]:
    """Return the operators that stamp, by index, each with the latent sources before it."""
    found: dict[int, list[Feed]] = {}
    for feed in feeds.values():
        if feed.spec.stamp == "latent":
            waiting = [arc.target for arc in feed.outputs]
            while waiting:
                vertex = waiting.pop()
                if isinstance(vertex.kernel, Stamp):
                    found.setdefault(vertex.operator.index, []).append(feed)
                else:
                    waiting += [arc.target for arc in vertex.outputs]
    return {
        index: LatentClock(vertex, found[index])
        for index, vertex in vertices.items()
        if index in found
    }


class Timestamps:
    """Makes the enabling timestamps that release what operators hold back."""

    def __init__(self, vertices: dict[int, Vertex], feeds: Mapping[int, Feed]):
        self._vertices, self._feeds = vertices, feeds
        self._clocks = latent_clocks(vertices, feeds)
        self._awaiting = Awaiting(
            vertices,
            {index: feed.spec.groups for index, feed in feeds.items() if feed.spec.groups},
            frozenset(index for index, feed in feeds.items() if feed.on_demand),
        )
        self._possible = any(feed.on_demand for feed in feeds.values())
        self.wakes: list[int] = []
        """The clock times at which a source could meet a request, as of the last attempt."""

    @property
    def clocks(self) -> list[LatentClock]:
        """The operators that stamp rows."""
        return list(self._clocks.values())

    def make(self, now: int) -> list[Arc] | None:
        """Make a timestamp that some operator requests; return the arcs it was put on.

        None if no source can make one now; then ``wakes`` holds the times at which one can.
        """
        self.wakes = []
        if not self._possible:
            return None
        arcs = self._for_groups(now)
        return self._for_streams(now) if arcs is None else arcs

    def _for_groups(self, now: int) -> list[Arc] | None:
        """Make timestamps for single groups."""
        for each in self._awaiting.changes():
            intake = self._feeds[each.source].intake
            intake.request(each.attribute, each.origin, each.group, each.mark)
        for feed in self._feeds.values():
            if _reads_first(feed, now):
                continue
            if feed.enable_groups(now):
                return feed.outputs
            when = feed.intake.due_groups()
            if when is not None:
                self.wakes.append(when)
        return None

    def _for_streams(self, now: int) -> list[Arc] | None:
        """Make a timestamp for a whole stream, by the requests of the last operators first."""
        for vertex in reversed(self._vertices.values()):
            for request in vertex.requests:
                for index, attribute, mark in backtrack(self._vertices, vertex, request):
                    source = self._feeds.get(index) or self._clocks[index]
                    if _reads_first(source, now):
                        continue
                    when = source.when(attribute, mark, now)
                    if when is not None and when > now:
                        self.wakes.append(when)
                    elif when is not None and source.enable(attribute, mark, now):
                        return source.outputs
        return None


def _reads_first(source: Feed | LatentClock, now: int) -> bool:
    """Return whether a source makes no timestamps, has ended, or has rows to be read."""
    due = source.due()
    return not source.on_demand or source.ended or (due is not None and due <= now)
