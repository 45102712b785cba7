"""A window-oblivious join that follows counters which begin again.

Rows that are suspect of a restart (see ``restarts``) are held, on disk where the store has one,
until it is known what they are. When all inputs have restarted, the join of the old epoch is ended
as if its inputs had, all that was measured is forgotten, and the rows held are the first ones of
the new epoch. So no input loses rows by restarting before others. If it was no restart, rows held
are late ones.

The join's promises are about all epochs. So only a join whose promises nobody waits for follows.

Invariant: a row held is given to the join once, at the latest when the last input ends.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.joins.oblivious.records import Ticks
from lowwater.joins.oblivious.restarts import LAST, Restart, middle
from lowwater.operators.metric import Max, Metric, Readings
from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import BEGINNING, Chunk, Element

PIECE = 16
"""Rows that are looked at together where some are suspect."""
PART = 4
"""A restart is told by one in so many of an epoch's rows at most."""
NOTE = (
    "the values of all inputs began again, far below where they had been. Rows from then on are"
    " joined with each other only; metrics say how often that was ('restarts')"
)

RESTARTS = Metric(
    "join_restarts",
    int,
    "count",
    Max(),
    "restarts",
    "How often the counters of all inputs began again; every bucket notices each restart.",
)


class FollowingJoin(ObliviousJoin):
    """Joins many inputs without a window, through restarts of their counters."""

    def __init__(self, store: ChunkStore, *given: Any, **more: Any):
        super().__init__(store, *given, **more)
        self._restarting = [Restart() for _ in self._shape.ports]
        self._refused = [False] * self.ports  # restarted alone, and rows are late ones
        self._settling = [0] * self.ports  # rows until those of the old level are believed
        self._levels = [BEGINNING] * self.ports  # what inputs had reached before a restart
        self._feeding = False
        self._restarts = 0
        self._to_note = False
        for port in self._shape.ports:
            store.set_aside(_held(port))

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Hold suspect rows, and join the others."""
        if self._feeding or not self._follows:
            return super().on_chunk(port, chunk)
        ticks = self._ticks(port, chunk)
        before = self._restarting[port].snapshot()
        suspects = self._restarting[port].suspects(ticks, self._bounds[port], self._gone(port))
        if suspects.any() and chunk.height > PIECE and not self.in_batches:
            self._restarting[port].restore(before)
            pieces = chunk.iter_slices(PIECE)
            return [each for piece in pieces for each in self.on_chunk(port, piece)]
        return self._route(port, chunk, suspects)

    def _ticks(self, port: int, chunk: Chunk) -> Ticks:
        return self._shape.domain.array_of(chunk[self._shape.times[port]])

    @property
    def _follows(self) -> bool:
        awaited = self._awaited is None or not self._awaited
        return awaited and all(each == BEGINNING for each in self._pledged)

    def _route(self, port: int, chunk: Chunk, suspects: Any) -> list[Element]:
        restart, results = self._restarting[port], list[Element]()
        places = self._places_of(port)
        restart.take(suspects, places)
        if suspects.any() and not self._refused[port]:
            self.store.put(_held(port), 0, chunk.filter(suspects))
            chunk = chunk.filter(~suspects)
        if self._settling[port]:
            chunk = self._without_old(port, chunk)
        if chunk.height:
            results += super().on_chunk(port, chunk)
        if not any(each.since for each in self._restarting):
            return results
        if self._all_restarted:
            return [*results, *self._begin_again()]
        if restart.since and not restart.restarted and restart.over(places):
            results += self._give_back(port)
            restart.forget()
            self._refused[port] = False
        for each in self._shape.ports:
            if self._alone(each):
                results += self._give_back(each)
                self._refused[each] = True
        return results

    def _places_of(self, port: int) -> int:
        """Rows of the old level may come between others for so many rows."""
        gauge = self._measures.gauges[port]
        return min(gauge.factor or 0, gauge.rows // PART)

    def _alone(self, port: int) -> bool:
        """Whether an input has restarted, and another one goes on beyond where it did."""
        restart = self._restarting[port]
        if not restart.restarted or self._refused[port]:
            return False
        bounds = enumerate(self._bounds)
        return any(
            restart.passed(mark)
            for other, mark in bounds
            if other != port and not self._restarting[other].since
        )

    @property
    def _all_restarted(self) -> bool:
        return all(each.restarted for each in self._restarting)

    def _without_old(self, port: int, chunk: Chunk) -> Chunk:
        """Leave out rows of the old level that come after a restart; not more than so many."""
        self._settling[port] = max(0, self._settling[port] - chunk.height)
        top = self._measures.tops[port]
        if not chunk.height or top == BEGINNING:
            return chunk
        ticks = self._ticks(port, chunk)
        old = ticks >= middle(top, self._levels[port])
        self._measures.late[port] += int(old.sum())
        return chunk.filter(~old)

    def _give_back(self, port: int) -> list[Element]:
        """Join rows that were held."""
        rows = take(self.store, _held(port))
        if rows is None:
            return []
        results: list[Element] = []
        self._feeding = True
        for piece in rows.iter_slices(PIECE):  # disorder between pieces is measured
            results += super().on_chunk(port, piece)
            self._measures.measure(self._at)
        self._feeding = False
        return results

    def _begin_again(self) -> list[Element]:
        """End the old epoch and begin the new one with the rows held."""
        results: list[Element] = list(self._close_epoch())
        self._restarts += 1
        self._to_note = self._restarts == 1
        for port in self._shape.ports:
            self._levels[port] = self._restarting[port].old
            self._restarting[port] = Restart()
            first = read(self.store, _held(port))
            if first is not None:
                self._restarting[port].begin(self._ticks(port, first))
            self._refused[port], self._settling[port] = False, 4 * LAST
            results += self._give_back(port)
            if port not in self._open:
                self._measures.gauges[port].end()
        return results

    def close_port(self, port: int) -> Sequence[Element]:
        """Rows held until the last input has ended are what most of the evidence says."""
        results: list[Element] = []
        last = not self._open
        if last and all(each.restarted or each.at_new for each in self._restarting):
            results += self._begin_again()
        for each in self._shape.ports:
            if last or (each == port and not self._restarting[port].at_new):
                results += self._give_back(each)
        return [*results, *super().close_port(port)]

    def metrics(self) -> Readings:
        """Return the metrics of the join, and how often the counters began again."""
        return super().metrics() | {RESTARTS: self._restarts}

    def notes(self) -> Sequence[str]:
        """Once: that counters began again."""
        found = [*super().notes(), *([NOTE] if self._to_note else [])]
        self._to_note = False
        return found

    def snapshot(self) -> dict[str, Any]:
        """What is known of restarts as well."""
        return super().snapshot() | {
            "restarting": [each.snapshot() for each in self._restarting],
            "restarts": self._restarts,
            "to note": self._to_note,
            "refused": list(self._refused),
            "settling": list(self._settling),
            "levels": list(self._levels),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        for each, state in zip(self._restarting, saved["restarting"], strict=True):
            each.restore(state)
        self._restarts, self._to_note = saved["restarts"], saved["to note"]
        self._refused, self._settling = list(saved["refused"]), list(saved["settling"])
        self._levels = list(saved["levels"])


def _held(port: int) -> str:
    return f"restart{port}"
