"""The mark of one channel, and the verdict on its rows.

A row is late if it breaks the *contract* with regard to the rows before it in its channel; the
punctuation emitted so far does not matter. So the same rows are late however a stream is cut into
chunks.

Rows may be dated far ahead by mistake. Such a *leap* moves no mark until a later row of its channel
confirms it. The first row of a channel is in doubt as well, until the second confirms it, or a row
of another stream (:mod:`~lowwater.progress.first_rows`).

Invariant: the mark of a channel never decreases, and no row judged on time is below the mark that
held when it arrived. The cut of rows into runs (chunks) changes neither marks nor leaps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING, END_OF_TIME

if TYPE_CHECKING:
    from lowwater.progress.completeness import Completeness, Shortfall

Ticks = NDArray[np.int64]
Times = TypeVar("Times", int, Ticks)
"""One time or many, in ticks."""


@dataclass(slots=True)
class Verdict:
    """The marks and leaps that a channel found along a run of its rows."""

    before: Ticks
    """The channel's mark when each row arrived; a row below it is late."""
    after: Ticks
    """The channel's mark once each row was taken in."""
    leaps: list[int] = field(default_factory=list)
    """Positions of rows dated too far ahead, confirmed later or not."""
    strays: int = 0
    """Number of leaps that later rows contradicted."""
    backward: int = 0
    """Number of the producer's marks that went backwards; they are ignored."""


class Channel(ABC):
    """A part of a stream with a mark of its own. All marks and times are ticks."""

    __slots__ = ("floor",)

    floor: int
    """A lower bound on the mark that does not follow from rows, such as an enabling timestamp."""

    @property
    def mark(self) -> int:
        """The greatest bound known: no row still to come is below this."""
        return max(self.floor, self.row_mark)

    @property
    @abstractmethod
    def row_mark(self) -> int:
        """The mark that follows from the rows alone."""

    @property
    @abstractmethod
    def newest(self) -> int:
        """The newest confirmed time; of a channel that has sent one row, that row's time."""

    @property
    @abstractmethod
    def contract_mark(self) -> int:
        """The mark by the contract alone; if it has none yet, the newest time less the slack."""

    @property
    def doubted(self) -> int | None:
        """The time of a first row that is not confirmed and would move the mark if it were; None
        if there is none."""
        return None

    @property
    def completeness(self) -> Completeness | None:
        """The completeness of a channel with a learned mark; None for every other channel."""
        return None

    @property
    def shortfall(self) -> Shortfall | None:
        """The present episode below the target completeness; None if there is none."""
        return None

    @property
    def latest_shortfall(self) -> Shortfall | None:
        """The latest episode below the target, ended or not; None if there was none."""
        return None

    @abstractmethod
    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order and move the mark. ``marks`` are the producer's, if any."""

    @abstractmethod
    def absorb(self, times: Ticks, marks: Ticks) -> Verdict:
        """Move the mark by the digest of a batch without order; times are ascending."""

    @abstractmethod
    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""

    @abstractmethod
    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""


class MeasuredChannel(Channel):
    """A channel whose mark follows from its newest time, now or some rows ago: that time less a
    slack, unless a subclass defines another :meth:`_bound`.

    ``slack`` is the most ticks by which a row may be below an earlier one; ``rows`` is the number
    of rows by which a row may come after a newer one; ``jump`` is the least distance of a leap in
    ticks, or None if leaps are not looked for.
    """

    __slots__ = ("_leaps", "_recent", "_rows", "_slack", "_top")

    def __init__(self, slack: int, rows: int, jump: int | None):
        self._slack, self._rows = slack, rows
        self._top = BEGINNING  # the newest time more than `rows` rows back
        self._recent: Ticks = np.empty(0, dtype=np.int64)  # the last `rows` times
        self._leaps = None if jump is None else LeapFilter(jump, slack, rows)
        self.floor = BEGINNING

    def _bound(self, newest: Times) -> Times:
        """Return the bounds on later rows that follow from newest times, at most a slack below."""
        return newest - self._slack

    @property
    def row_mark(self) -> int:
        """The mark that follows from the rows alone."""
        return self._bound(self._top) if self._top > BEGINNING else BEGINNING

    @property
    def newest(self) -> int:
        """The newest confirmed time; of a channel that has sent one row, that row's time."""
        confirmed = self._confirmed()
        suspect = self._leaps.suspect if self._leaps is not None else None
        return suspect if confirmed == BEGINNING and suspect is not None else confirmed

    @property
    def doubted(self) -> int | None:
        """The time of a first row that is not confirmed; None if it would not move the mark."""
        if self._leaps is None or self._rows or self._top > BEGINNING:
            return None
        return self._leaps.suspect

    @property
    def contract_mark(self) -> int:
        """The mark by the contract alone; if it has none yet, the newest time less the slack."""
        top = self._top if self._rows and self._top > BEGINNING else self.newest
        return self._bound(top)

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows in arrival order and move the mark; ``marks`` is not used."""
        if self._leaps is not None and len(times) > 2 and self._confirmed() == BEGINNING:
            # The first two rows are judged apart; the others then have a confirmed newest time.
            first, rest = self._observe(times[:2]), self._observe(times[2:])
            return Verdict(
                np.concatenate([first.before, rest.before]),
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
            return Verdict(*self._marks_along(times))
        found = self._leaps.confirm(times, self._confirmed())
        if found.earlier is not None:
            self._confirm_first(found.earlier)
        before, after = self._marks_along(found.times)
        if found.in_doubt is not None:
            after[found.in_doubt] = self.floor
        return Verdict(before, after, found.leaps, found.strays)

    def _confirmed(self) -> int:
        return int(max(self._top, self._recent.max(initial=BEGINNING)))

    def _confirm_first(self, time: int) -> None:
        """Take the time of a first row, which an earlier run left in doubt, as confirmed."""
        if self._rows:
            self._recent[-1] = time
        else:
            self._top = time

    def _marks_along(self, times: Ticks) -> tuple[Ticks, Ticks]:
        """Return the marks before and after each row, and move the mark."""
        held = np.concatenate([self._recent, times]) if self._rows else times
        tops = np.empty(len(held) + 1, np.int64)
        tops[0], tops[1:] = self._top, held
        np.maximum.accumulate(tops, out=tops)
        marks = tops
        if self._rows:
            # Row i is bounded by the rows more than `rows` before it; tops[k] covers k rows held.
            counts = np.arange(len(times) + 1) + len(self._recent) - self._rows
            marks = tops[np.clip(counts, 0, None)]
            beyond = max(0, len(held) - self._rows)
            self._recent = held[beyond:]
            self._top = int(tops[beyond])
        else:
            self._top = int(tops[-1])
        bounds = self._bound(marks)
        if marks[0] == BEGINNING:  # nothing bounds the first rows
            bounds = np.where(marks > BEGINNING, bounds, BEGINNING)
        if self.floor > BEGINNING:
            bounds = np.maximum(bounds, self.floor)
        return bounds[:-1], bounds[1:].copy()

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {
            "top": self._top,
            "recent": self._recent.tolist(),
            "floor": self.floor,
            **({} if self._leaps is None else self._leaps.snapshot()),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._top, self.floor = saved["top"], saved["floor"]
        if self._leaps is not None:
            self._leaps.restore(saved["suspect"], saved["patience"])
        self._recent = np.array(saved["recent"], dtype=np.int64)


class ProducerChannel(Channel):
    """A channel whose producer sends the marks (``punctuated``)."""

    __slots__ = ("_mark", "_newest")

    def __init__(self) -> None:
        self._mark = BEGINNING
        self._newest = BEGINNING
        self.floor = BEGINNING

    @property
    def row_mark(self) -> int:
        """The greatest mark that the producer has sent."""
        return self._mark

    @property
    def newest(self) -> int:
        """The newest time of a row."""
        return self._newest

    @property
    def contract_mark(self) -> int:
        """The newest time: between two marks the contract gives no bound of its own."""
        return self._newest

    def observe(self, times: Ticks, marks: Ticks) -> Verdict:
        """Judge rows by the marks that the producer sent before them, and move the mark."""
        tops = np.maximum.accumulate(np.concatenate([np.array([self._mark], np.int64), marks]))
        backward = int(((marks > BEGINNING) & (marks < tops[:-1])).sum())
        self._mark = int(tops[-1])
        timed = times[times < END_OF_TIME]  # a pure punctuation has no time of its own
        self._newest = int(max(self._newest, timed.max(initial=BEGINNING)))
        tops = np.maximum(tops, self.floor)
        return Verdict(tops[:-1], tops[1:], backward=backward)

    def absorb(self, times: Ticks, marks: Ticks) -> Verdict:
        """Move the mark by the marks of a batch."""
        return self.observe(times, marks)

    def snapshot(self) -> dict[str, Any]:
        """Return the state that :meth:`restore` needs."""
        return {"mark": self._mark, "newest": self._newest, "floor": self.floor}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._mark, self._newest, self.floor = saved["mark"], saved["newest"], saved["floor"]


# ---- rows dated far ahead ----------------------------------------------------------------------


@dataclass(slots=True)
class ConfirmedTimes:
    """The times of a run of rows by which a mark may move."""

    times: Ticks
    """The time that each row may move the mark by; for a leap, the newest time before it."""
    leaps: list[int] = field(default_factory=list)
    """Positions of rows dated too far ahead, confirmed later or not."""
    strays: int = 0
    """Number of leaps that later rows contradicted."""
    in_doubt: int | None = None
    """Position of a channel's first row, which moved no mark by itself."""
    earlier: int | None = None
    """Time of a first row that ended the run before, now confirmed."""


class LeapFilter:
    """Separates gaps in the times of a channel from single rows dated far ahead.

    A row more than ``over`` ticks ahead of the newest time is a leap. A later row that is at most
    ``reach`` ticks below a leap confirms it. With ``patience`` every later leap confirms it, and
    ``patience`` other rows may come in between.
    """

    __slots__ = ("_over", "_patience", "_reach", "_waits", "suspect")

    def __init__(self, over: int, reach: int, patience: int = 0):
        self._over, self._reach, self._patience = over, reach, patience
        self.suspect: int | None = None
        """Time of the unconfirmed leap, or of a first row, in ticks; None if there is none."""
        self._waits = 0  # rows that may still come before the suspect counts as contradicted

    def confirm(self, times: Ticks, newest: int) -> ConfirmedTimes:
        """Return the times by which the mark may move; ``newest`` is the newest confirmed so far.

        ``times`` are in arrival order and not empty.
        """
        fine = newest > BEGINNING and self.suspect is None
        if fine and int(times.max(initial=BEGINNING)) - newest <= self._over:
            return ConfirmedTimes(times)
        return self._confirm_each(times, newest)

    def _confirm_each(self, times: Ticks, newest: int) -> ConfirmedTimes:
        found = ConfirmedTimes(times.copy())
        confirmed = found.times
        for at, time in enumerate(times.tolist()):
            if newest == BEGINNING:
                if self.suspect is None:
                    self.suspect, confirmed[at] = time, BEGINNING
                    continue
                if time < self.suspect - self._over:
                    found.strays += 1
                else:
                    newest = self.suspect
                    if at:
                        confirmed[at - 1] = newest
                        found.in_doubt = at - 1
                    else:
                        found.earlier = newest
                self.suspect = None
            suspect = self.suspect
            if newest == BEGINNING or time - newest <= self._over:
                newest = max(newest, time)
                if suspect is not None:
                    self._waits -= 1
                    if self._waits < 0:
                        found.strays += 1
                        self.suspect = None
            elif suspect is not None and (self._patience or time >= suspect - self._reach):
                newest = max(suspect, time)
                confirmed[at] = newest
                self.suspect = None
            else:
                found.strays += suspect is not None
                self.suspect, self._waits = time, self._patience
                found.leaps.append(at)
                confirmed[at] = newest
        return found

    def snapshot(self) -> dict[str, int | None]:
        """Return the state that :meth:`restore` needs."""
        return {"suspect": self.suspect, "patience": self._waits}

    def restore(self, suspect: int | None, patience: int) -> None:
        """Set the state to that of a snapshot."""
        self.suspect, self._waits = suspect, patience
