"""A window-oblivious join of counters that restart, and the detection of restarts.

A row is *suspect* if it is below the middle between the first values of its input and the input's
mark, and below rows dropped of the other inputs. An input has *restarted* if nearly all of its last
rows are suspect. Their number is that of the positions of its disorder, and at least ``LAST``. Late
rows are no restart, because rows with old values come between or after them.

Suspect rows are held, on disk if the store has one, until their input has restarted or is found not
to have. When all inputs have restarted, the old *epoch* ends: all rows are joined and dropped as if
the inputs had ended, all estimates are reset, and the rows held are the first ones of the new
epoch. So no input loses rows by restarting before others. If there was no restart, the rows held
are late rows.

Output punctuation would have to be true of all epochs. So restarts are followed only in a join
whose punctuation no consumer uses.

Invariants: a held row is joined once, at the latest when the last input ends; the state of
detection is bounded. The cut of rows into chunks shifts the detection of a restart by at most one
chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from lowwater.joins.oblivious.capped_join import CappedJoin
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.lost_results import Flags
from lowwater.operators.metric import Max, Metric, Readings
from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element

FIRST = 16
"""Number of first rows. An input begins at their median, so that outliers do not matter."""
LAST = 32
"""Least number of last rows that a restart is detected from."""
OTHERS = 32
"""A restart is detected if at most one in ``OTHERS`` of the last rows is not suspect."""


class RestartDetector:
    """Detects the restart of one input."""

    def __init__(self) -> None:
        self._first: Ticks = np.empty(0, dtype=np.int64)
        self._recent: Flags = np.empty(0, dtype=np.bool_)
        self._top = BEGINNING  # greatest suspect value
        self.since = 0
        """Number of rows since the first suspect that is still held."""
        self.restarted = False
        self.old = BEGINNING
        """The mark before the restart."""

    def begin(self, ticks: Ticks) -> None:
        """Take the first rows of an epoch."""
        self._first = ticks[:FIRST]

    def suspects(self, ticks: Ticks, mark: int, gone: int) -> Flags:
        """Return the rows that are suspect.

        ``mark`` is that of the input; rows of other inputs below ``gone`` were dropped.
        """
        if len(self._first) < FIRST:
            self._first = np.concatenate([self._first, ticks])[:FIRST]
        if mark in (BEGINNING, END_OF_TIME) and not self.restarted:
            return np.zeros(len(ticks), dtype=np.bool_)
        if self.restarted:
            found: Flags = ticks < middle(self._top, self.old)
        else:
            begun = int(np.median(self._first))
            found = ticks < min(middle(begun, mark), gone)
            self.old = mark
        if found.any():
            self._top = max(self._top, int(ticks[found].max()))
        return found

    def take(self, suspects: Flags, disorder: int) -> None:
        """Add rows to the last ones; ``disorder`` is that of the input, in positions."""
        if self.since:
            self.since += len(suspects)
        elif suspects.any():  # the others of this chunk may have come first
            self.since = 1
        last = max(LAST, disorder)
        self._recent = np.concatenate([self._recent, suspects])[-last:]
        others = int((~self._recent).sum())
        if len(self._recent) == last and others <= last // OTHERS:
            self.restarted = True

    def were_late(self, disorder: int) -> bool:
        """Return true if the suspects were late rows: rows with old values have come since."""
        enough = self.since >= max(LAST, disorder)
        return enough and 2 * int(self._recent.sum()) < len(self._recent)

    @property
    def all_suspect(self) -> bool:
        """True if all of the last few rows are suspect."""
        return len(self._recent) > 0 and bool(self._recent[-LAST // 4 :].all())

    def reset(self) -> None:
        """Drop the suspects, which were late rows."""
        self.since, self.restarted, self._top = 0, False, BEGINNING
        self._recent = self._recent[:0]

    def is_passed_by(self, mark: int) -> bool:
        """Return true if ``mark``, of another input, is well above the mark before the restart.

        That input goes on with its old values.
        """
        begun = int(np.median(self._first))
        return mark != END_OF_TIME and mark > self.old + (self.old - begun) // 4

    def snapshot(self) -> Any:
        """Return the state of detection."""
        rows = self._first.tolist(), self._recent.tolist()
        return rows, self._top, self.since, self.restarted, self.old

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        (first, recent), self._top, self.since, self.restarted, self.old = saved
        self._first = np.array(first, dtype=np.int64)
        self._recent = np.array(recent, dtype=np.bool_)


def middle(low: int, high: int) -> int:
    """Return the middle between two values."""
    return low + (high - low) // 2


PIECE = 16
"""Number of rows judged together where some are suspect."""
PART = 4
"""A restart is detected from at most one in ``PART`` of an epoch's rows."""
NOTE = (
    "the values of all inputs began again, far below where they had been. Rows from then on are"
    " joined with each other only; the metric 'restarts' counts this"
)


RESTARTS = Metric(
    "join_restarts",
    int,
    "count",
    Max(exact=False),
    "restarts",
    "How often the counters of all inputs began again; every bucket notices each restart.",
)


class RestartingJoin(CappedJoin):
    """A window-oblivious join that follows restarts of its inputs' counters."""

    def __init__(self, store: ChunkStore, *args: Any, **kwargs: Any):
        super().__init__(store, *args, **kwargs)
        self._restarting = [RestartDetector() for _ in self._shape.ports]
        self._refused = [False] * self.ports  # it restarted alone: its suspects are late rows
        self._settling = [0] * self.ports  # rows during which old values are dropped
        self._levels = [BEGINNING] * self.ports  # the marks before the restart
        self._feeding = False  # True while held rows are joined
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
        suspects = self._restarting[port].suspects(
            ticks, self._bounds.marks[port], self._bounds.late_below(port)
        )
        if suspects.any() and chunk.height > PIECE and not self.host.in_batches:
            self._restarting[port].restore(before)
            pieces = chunk.iter_slices(PIECE)
            return [each for piece in pieces for each in self.on_chunk(port, piece)]
        return self._route(port, chunk, suspects)

    def _ticks(self, port: int, chunk: Chunk) -> Ticks:
        return self._shape.domain.array_of(chunk[self._shape.times[port]])

    @property
    def _follows(self) -> bool:
        unawaited = not self._out.awaited
        return unawaited and all(each == BEGINNING for each in self._bounds.promised)

    def _route(self, port: int, chunk: Chunk, suspects: Any) -> list[Element]:
        restart, results = self._restarting[port], list[Element]()
        disorder = self._disorder_of(port)
        restart.take(suspects, disorder)
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
        if restart.since and not restart.restarted and restart.were_late(disorder):
            results += self._give_back(port)
            restart.reset()
            self._refused[port] = False
        for each in self._shape.ports:
            if self._alone(each):
                results += self._give_back(each)
                self._refused[each] = True
        return results

    def _disorder_of(self, port: int) -> int:
        """Return the number of positions over which values from before and after a restart mix."""
        estimate = self._estimates.disorders[port]
        return min(estimate.factor or 0, estimate.rows // PART)

    def _alone(self, port: int) -> bool:
        """Return true if an input has restarted while another one goes on with its old values."""
        restart = self._restarting[port]
        if not restart.restarted or self._refused[port]:
            return False
        bounds = enumerate(self._bounds.marks)
        return any(
            restart.is_passed_by(mark)
            for other, mark in bounds
            if other != port and not self._restarting[other].since
        )

    @property
    def _all_restarted(self) -> bool:
        return all(each.restarted for each in self._restarting)

    def _without_old(self, port: int, chunk: Chunk) -> Chunk:
        """Count rows with old values that come soon after a restart as late, and give them up."""
        self._settling[port] = max(0, self._settling[port] - chunk.height)
        top = self._estimates.tops[port]
        if not chunk.height or top == BEGINNING:
            return chunk
        ticks = self._ticks(port, chunk)
        old = ticks >= middle(top, self._levels[port])
        self._estimates.add_late(port, int(old.sum()))
        rows = self._shape.prepare(port, self._unmatched.number(port, chunk.filter(old)))
        self._unmatched.leave(port, rows, END_OF_TIME)  # nothing is known about that epoch
        return chunk.filter(~old)

    def _give_back(self, port: int) -> list[Element]:
        """Join the rows held of an input."""
        rows = take(self.store, _held(port))
        if rows is None:
            return []
        results: list[Element] = []
        self._feeding = True
        for piece in rows.iter_slices(PIECE):  # so that disorder between them is measured
            results += super().on_chunk(port, piece)
            self._estimates.measure(self._step_time)
        self._feeding = False
        return results

    def _begin_again(self) -> list[Element]:
        """End the old epoch and begin the new one with the rows held."""
        results: list[Element] = list(self._close_epoch())
        self._restarts += 1
        self._to_note = self._restarts == 1
        for port in self._shape.ports:
            self._levels[port] = self._restarting[port].old
            self._restarting[port] = RestartDetector()
            first = read(self.store, _held(port))
            if first is not None:
                self._restarting[port].begin(self._ticks(port, first))
            self._refused[port], self._settling[port] = False, 4 * LAST
            results += self._give_back(port)
            if port not in self._open:
                self._estimates.disorders[port].end()
        return results

    def close_port(self, port: int) -> Sequence[Element]:
        """Join the rows still held when the last input ends: as a new epoch if most are suspect."""
        results: list[Element] = []
        last = not self._open
        if last and all(each.restarted or each.all_suspect for each in self._restarting):
            results += self._begin_again()
        for each in self._shape.ports:
            if last or (each == port and not self._restarting[port].all_suspect):
                results += self._give_back(each)
        return [*results, *super().close_port(port)]

    def metrics(self) -> Readings:
        """Return the metrics of the join, and the number of restarts."""
        return super().metrics() | {RESTARTS: self._restarts}

    def notes(self) -> Sequence[str]:
        """Return the warnings of the join, and one for the first restart."""
        found = [*super().notes(), *([NOTE] if self._to_note else [])]
        self._to_note = False
        return found

    def snapshot(self) -> dict[str, Any]:
        """Return the snapshot of the join and the state of detection."""
        return super().snapshot() | {
            "restarting": [each.snapshot() for each in self._restarting],
            "restarts": self._restarts,
            "to note": self._to_note,
            "refused": list(self._refused),
            "settling": list(self._settling),
            "levels": list(self._levels),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        for each, state in zip(self._restarting, saved["restarting"], strict=True):
            each.restore(state)
        self._restarts, self._to_note = saved["restarts"], saved["to note"]
        self._refused, self._settling = list(saved["refused"]), list(saved["settling"])
        self._levels = list(saved["levels"])


def _held(port: int) -> str:
    return f"restart{port}"
