"""The clock as the source of latent time: it is promised on demand, at heartbeats and at timers."""

from __future__ import annotations

from collections.abc import Sequence

from lowwater.engines.embedded.feed import Feed
from lowwater.engines.embedded.graph import Arc, Stage
from lowwater.operators.stamp import TICK, Stamp


class Stamping:
    """A stage that stamps rows, asked for progress as a source is."""

    def __init__(self, stage: Stage, feeds: Sequence[Feed]):
        assert isinstance(stage.kernel, Stamp)
        self._stage, self._kernel, self._feeds = stage, stage.kernel, feeds
        self.on_demand = self._kernel.how.on_demand
        for feed in feeds:
            feed.timers.append(self.tell)
            feed.heartbeats.append(self.beat)

    @property
    def outputs(self) -> list[Arc]:
        """Where its promises go."""
        return self._stage.outputs

    @property
    def ended(self) -> bool:
        """Whether no row will be stamped any more."""
        return all(feed.ended for feed in self._feeds)

    def due(self) -> int | None:
        """When a row to be stamped is there to be read."""
        return min((due for each in self._feeds if (due := each.due()) is not None), default=None)

    def when(self, attribute: str, mark: int, now: int) -> int | None:
        """The clock time at which a mark can be promised."""
        return mark * TICK

    def enable(self, attribute: str, mark: int, now: int) -> bool:
        """Promise the clock, if it has come up to a mark."""
        if now // TICK < mark or not self.beat(now):
            return False
        for feed in self._feeds:
            feed.stamps += feed.on_demand
        return True

    def beat(self, now: int) -> bool:
        """Promise the clock."""
        promises = self._stage.call(self._kernel.enable, now)
        self._stage.say(promises)
        return bool(promises)

    def tell(self) -> None:
        """Promise the time of the last rows."""
        self._stage.say(self._stage.call(self._kernel.promise_last))


def stampings(stages: Sequence[Stage], feeds: Sequence[Feed]) -> dict[int, Stamping]:
    """All stages that stamp, by the operator's index, each with the latent sources before it."""
    found: dict[int, list[Feed]] = {}
    for feed in feeds:
        if feed.spec.stamp == "latent":
            waiting = [arc.target for arc in feed.outputs]
            while waiting:
                stage = waiting.pop()
                if isinstance(stage.kernel, Stamp):
                    found.setdefault(stage.operator.index, []).append(feed)
                else:
                    waiting += [arc.target for arc in stage.outputs]
    return {
        stage.operator.index: Stamping(stage, found[stage.operator.index])
        for stage in stages
        if stage.operator.index in found
    }
