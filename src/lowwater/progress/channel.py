"""The promise of one channel: which rows keep it, and the mark that follows from them.

A row is late when it breaks the *contract*, judged row by row against the rows before it in its
channel, never against the punctuation that happened to be sent. So how a stream is cut into
chunks cannot change which rows are late.

Invariant: the mark of a channel never decreases, and no row judged on time is below the mark that
held when it arrived.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from lowwater.progress.leaps import Leaps, Ticks
from lowwater.stream.element import BEGINNING, END_OF_TIME

__all__ = ["Channel", "MeasuredChannel", "ProducerChannel", "Ticks", "Verdict"]


@dataclass(slots=True)
class Verdict:
    """What a channel says of a run of its rows."""

    met: Ticks
    """For each row, the channel's mark when the row arrived; a row below it is late."""
    after: Ticks
    """For each row, the channel's mark once the row was taken in."""
    leaps: list[int] = field(default_factory=list)
    """Positions of rows dated too far ahead, confirmed later or not."""
    strays: int = 0
    """How many leaps were contradicted by the rows after them."""
    backward: int = 0
    """How many of the producer's own marks went backwards (they are ignored)."""


class Channel(Protocol):
    """One independently progressing sub-stream."""

    floor: int
    """A mark promised by other means: an enabling timestamp, or joining the stream late."""

    @property
    def mark(self) -> int:
        """No honest row still to come is below this."""

    @property
    def own(self) -> int:
        """The mark that follows from its rows alone."""

    @property
    def newest(self) -> int:
        """The newest time believed."""

    @property
    def settled(self) -> int:
        """What the contract alone promises, or the newest time if it promises nothing yet."""

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order and move the mark."""

    def absorb(self, times: Ticks, marks: Ticks) -> Verdict:
        """Move the mark by the digest of a batch without order, its times ascending."""

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""


class MeasuredChannel:
    """A channel whose rows tell its mark, under a bound on time (``slack``) or on ``rows``."""

    __slots__ = ("_leaps", "_recent", "_rows", "_slack", "_top", "floor")

    def __init__(self, slack: int, rows: int, jump: int | None):
        self._slack, self._rows = slack, rows
        self._top = BEGINNING  # the newest time that may not be overtaken any more
        self._recent: Ticks = np.empty(0, dtype=np.int64)  # the last rows, which still may be
        self._leaps = None if jump is None else Leaps(jump, slack, rows)
        self.floor = BEGINNING

    @property
    def mark(self) -> int:
        """No honest row still to come is below this."""
        return max(self.floor, self.own)

    @property
    def own(self) -> int:
        """The mark that follows from its rows alone."""
        return self._top - self._slack if self._top > BEGINNING else BEGINNING

    @property
    def newest(self) -> int:
        """The newest time believed; of a channel that has sent one row, that row's."""
        believed = self._believed()
        suspect = self._leaps.suspect if self._leaps is not None else None
        return suspect if believed == BEGINNING and suspect is not None else believed

    @property
    def settled(self) -> int:
        """What the contract alone promises, or the newest time if it promises nothing yet."""
        top = self._top if self._rows and self._top > BEGINNING else self.newest
        return top - self._slack

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order and move the mark; the rows themselves tell it."""
        if self._leaps is not None and len(times) > 2 and self._believed() == BEGINNING:
            # Only the first rows need a careful look; the others then have a reference.
            first, rest = self._observe(times[:2]), self._observe(times[2:])
            return Verdict(
                np.concatenate([first.met, rest.met]),
                np.concatenate([first.after, rest.after]),
                [*first.leaps, *(at + 2 for at in rest.leaps)],
                first.strays + rest.strays,
            )
        return self._observe(times)

    def absorb(self, times: Ticks, marks: Ticks) -> Verdict:
        """Move the mark by a batch, as if its times had come in ascending order."""
        return self.observe(times, marks)

    def _observe(self, times: Ticks) -> Verdict:
        if self._leaps is None:
            return Verdict(*self._marks_met(times))
        found = self._leaps.believe(times, self._believed())
        if found.earlier is not None:
            self._believe_first(found.earlier)
        met, after = self._marks_met(found.times)
        if found.in_doubt is not None:
            after[found.in_doubt] = self.floor
        return Verdict(met, after, found.leaps, found.strays)

    def _believed(self) -> int:
        return int(max(self._top, self._recent.max(initial=BEGINNING)))

    def _believe_first(self, time: int) -> None:
        """Put the first row's time back where the run before held it back."""
        if self._rows:
            self._recent[-1] = time
        else:
            self._top = time

    def _marks_met(self, times: Ticks) -> tuple[Ticks, Ticks]:
        held = np.concatenate([self._recent, times]) if self._rows else times
        tops = np.empty(len(held) + 1, np.int64)
        tops[0], tops[1:] = self._top, held
        np.maximum.accumulate(tops, out=tops)
        marks = tops
        if self._rows:
            # Row i is bounded by the rows more than `rows` before it; tops[k] covers k rows held.
            counts = np.arange(len(times) + 1) + len(self._recent) - self._rows
            marks = tops[np.clip(counts, 0, None)]
            settled = max(0, len(held) - self._rows)
            self._recent = held[settled:]
            self._top = int(tops[settled])
        else:
            self._top = int(tops[-1])
        if self._slack:
            marks = np.where(marks > BEGINNING, marks - self._slack, BEGINNING)
        if self.floor > BEGINNING:
            marks = np.maximum(marks, self.floor)
        return marks[:-1], marks[1:].copy()

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {
            "top": self._top,
            "recent": self._recent.tolist(),
            "floor": self.floor,
            **({} if self._leaps is None else self._leaps.snapshot()),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._top, self.floor = saved["top"], saved["floor"]
        if self._leaps is not None:
            self._leaps.restore(saved["suspect"], saved["patience"])
        self._recent = np.array(saved["recent"], dtype=np.int64)


class ProducerChannel:
    """A channel whose producer sends the marks (``punctuated``)."""

    __slots__ = ("_mark", "_newest", "floor")

    def __init__(self) -> None:
        self._mark = BEGINNING
        self._newest = BEGINNING
        self.floor = BEGINNING

    @property
    def mark(self) -> int:
        """No honest row still to come is below this."""
        return max(self.floor, self._mark)

    @property
    def own(self) -> int:
        """The greatest mark the producer has sent."""
        return self._mark

    @property
    def newest(self) -> int:
        """The newest time seen."""
        return self._newest

    @property
    def settled(self) -> int:
        """The newest time: between its marks, a producer promises nothing."""
        return self._newest

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows by the marks the producer sent before them."""
        tops = np.maximum.accumulate(np.concatenate([np.array([self._mark], np.int64), marks]))
        backward = int(((marks > BEGINNING) & (marks < tops[:-1])).sum())
        self._mark = int(tops[-1])
        seen = times[times < END_OF_TIME]  # a pure punctuation has no time of its own
        self._newest = int(max(self._newest, seen.max(initial=BEGINNING)))
        tops = np.maximum(tops, self.floor)
        return Verdict(tops[:-1], tops[1:], backward=backward)

    def absorb(self, times: Ticks, marks: Ticks) -> Verdict:
        """Move the mark by the marks of a batch."""
        return self.observe(times, marks)

    def snapshot(self) -> dict[str, Any]:
        """Everything needed to go on elsewhere."""
        return {"mark": self._mark, "newest": self._newest, "floor": self.floor}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._mark, self._newest, self.floor = saved["mark"], saved["newest"], saved["floor"]
