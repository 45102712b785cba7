"""Policies for the answers of closed windows (OOP §6): at once, slowly, or lazily.

A window with many groups makes a burst of work when it closes. Its answers may also be spread over
the rows that follow, if none leaves later than a stated number of windows or length of time.
Meanwhile rows of newer windows are taken in as before; only the promise on the window is held back
until its last answer has left. Sessions, and rows of an outer join without a partner, leave slowly
in the order of their times: see :mod:`lowwater.operators.gradual`.

Answers leave by *slot*, the hash of their group. Of a closed window only the slots that have left
are kept here, whatever happens to its partials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError
from lowwater.stream.duration import Duration, nanoseconds, spell
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec

SLOTS = 65_536
"""Number of slots that groups are spread over. A slot leaves as a whole."""
PIECES = 64
"""Answers leave in pieces of at least one ``PIECES``-th of a window's slots, until its deadline."""
SEED = 20
"""Seed of the hash, so that slots do not depend on how rows are spread over buckets."""

Slots = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Immediate:
    """All answers of a window leave when it closes."""

    def bound(self, domain: TimeDomain, slide: int) -> int:
        """Return 0: no answer leaves later than its window closes."""
        return 0

    def describe(self) -> str:
        """Return the policy as a phrase for people."""
        return "at once"


@dataclass(frozen=True, slots=True)
class _Bounded:
    """A policy by which all answers have left after a number of windows, or a length of time."""

    within_windows: int | None = None
    within: Duration | None = None

    def __post_init__(self) -> None:
        if self.within_windows is not None and self.within is not None:
            raise OptionError(
                f"{self.name}: give within_windows= or within=, not both: each is the time after"
                " which the last answer has left"
            )
        if self.within is not None:
            if nanoseconds(self.within, f"{self.name}: within=") <= 0:
                raise OptionError(f"{self.name}: within= takes a length of time above zero")
        else:
            _check_whole(f"{self.name}: within_windows=", self.windows)

    @property
    def name(self) -> str:
        """The name of the policy."""
        return type(self).__name__.lower()

    @property
    def windows(self) -> int:
        """The bound in windows, where it is not a length of time."""
        return 2 if self.within_windows is None else self.within_windows

    def bound(self, domain: TimeDomain, slide: int) -> int:
        """Return the ticks of the mark after which all answers have left, if windows are ``slide``
        ticks apart."""
        if self.within is not None:
            return max(1, domain.ticks(self.within, f"{self.name}: within="))
        return self.windows * slide

    def describe_bound(self) -> str:
        """Return the bound as a phrase for people."""
        if self.within is not None:
            return f"within {spell(nanoseconds(self.within))}"
        return f"within {self.windows} window{'' if self.windows == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class Slow(_Bounded):
    """An answer leaves with every ``every`` rows; the last one when the bound is reached."""

    every: int = 160

    def __post_init__(self) -> None:
        _check_whole("slow: every=", self.every)
        _Bounded.__post_init__(self)

    def describe(self) -> str:
        """Return the policy as a phrase for people."""
        return f"slowly, one every {self.every} rows, {self.describe_bound()}"


@dataclass(frozen=True, slots=True)
class Lazy(_Bounded):
    """An answer leaves when a newer window needs its slot, or when the bound is reached."""

    def describe(self) -> str:
        """Return the policy as a phrase for people."""
        return f"lazily, {self.describe_bound()}"


Flush = Immediate | Slow | Lazy


def slow(
    every: int = 160, within_windows: int | None = None, within: Duration | None = None
) -> Slow:
    """Let the answers of a closed window leave slowly: one with every ``every`` rows.

    Sessions, and rows of an outer or anti join without a partner, can leave slowly, too.

    >>> log = pl.DataFrame({"ts": [1, 2, 61], "k": [1, 2, 3]})
    >>> windows = lw.stream(log, name="s", time="ts").window("1 minute", flush=lw.slow(every=10))
    >>> windows.group_by("k").agg(n="count(*)").collect().num_rows
    3

    ``every``
        Number of rows, above zero, that come between one answer and the next. Default: 160.
    ``within_windows``
        Number of windows, above zero, after which the last answer has left. Default: None, 2 unless
        ``within`` is given.
    ``within``
        The same as a length of the stream's time, above zero: how far the mark may be past the
        point at which an answer could have left. Default: None, ``within_windows`` holds.
    """
    return Slow(within_windows, within, every)


def lazy(within_windows: int | None = None, within: Duration | None = None) -> Lazy:
    """Let the answers of a closed window leave lazily: when newer rows need their slots.

    >>> log = pl.DataFrame({"ts": [1, 2, 61], "k": [1, 2, 3]})
    >>> windows = lw.stream(log, name="s", time="ts").window("1 minute", flush=lw.lazy())
    >>> windows.group_by("k").agg(n="count(*)").collect().num_rows
    3

    ``within_windows``, ``within``
        As in :func:`slow`: the last answer has left after so many windows (default: 2), or after
        this length of time (default: None).
    """
    return Lazy(within_windows, within)


def _check_whole(what: str, given: object) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise OptionError(f"{what} takes a whole number above zero, not {given!r}")


def slots_of(partials: Chunk, groups: Sequence[str]) -> NDArray[np.uint64]:
    """Return the slot of each partial, by its group."""
    return partials.select(pl.struct(groups).hash(SEED) % SLOTS).to_series().to_numpy()


class PendingAnswers:
    """The closed windows of which some answers have not left, with the slots that have left.

    Invariant: a slot of a window leaves once; all of them have left when the mark is ``bound``
    ticks past the window's end.
    """

    def __init__(self, window: WindowSpec, flush: Slow | Lazy, bound: int):
        self._window, self._flush, self._bound = window, flush, bound
        self._left: dict[int, Slots] = {}  # slots that have left, by start of window
        self._taken: dict[int, Slots] = {}  # slots that newer rows need
        self._rows = 0  # rows since the last answer that left for rows

    @property
    def windows(self) -> list[int]:
        """The starts of the pending windows in ticks, the oldest first."""
        return sorted(self._left)

    @property
    def needs_slots(self) -> bool:
        """True if :meth:`add_rows` needs the slots of the rows."""
        return bool(self._left) and isinstance(self._flush, Lazy)

    def close(self, starts: Sequence[int]) -> None:
        """Add windows that have closed."""
        for start in starts:
            self._left[start] = np.zeros(SLOTS, dtype=bool)
            self._taken[start] = np.zeros(SLOTS, dtype=bool)

    def add_rows(self, rows: int, slots: NDArray[np.uint64] | None = None) -> None:
        """Count rows of newer windows, and the slots they fall into."""
        if self._left:
            self._rows += rows
        for taken in self._taken.values() if slots is not None else ():
            taken[slots] = True

    def deadline(self, start: int) -> int:
        """Return the mark at which the last answer of a window must have left."""
        return start + self._window.range + self._bound

    def take_due(self, start: int, mark: int, answers: int, by_rows: bool) -> Slots | None:
        """Return the slots of a window that leave now, and count them as left; None if none.

        ``answers`` is the number of answers of the window, roughly. Without ``by_rows`` only the
        mark decides, so that copies with the same mark return the same slots.
        """
        left = self._left[start]
        if mark >= self.deadline(start):
            now = ~left
        elif isinstance(self._flush, Slow):
            now = self._next(left, start, mark, answers if by_rows else 0)
        else:
            now = self._taken[start] & ~left
            if not by_rows or int(now.sum()) * PIECES < SLOTS:
                return None
        if not now.any():
            return None
        left |= now
        return now

    def _next(self, left: Slots, start: int, mark: int, answers: int) -> Slots:
        """Return the next slots in turn: as many as the rows, or the time passed, allow."""
        assert isinstance(self._flush, Slow)
        gone = int(left.sum())  # they leave in order
        end = start + self._window.range
        passed = max(0, mark - end) * SLOTS // (self.deadline(start) - end)
        paid = gone
        if answers:
            paid += self._rows // self._flush.every * SLOTS // answers
        until = min(SLOTS, max(paid, passed))
        now = np.zeros(SLOTS, dtype=bool)
        if (until - gone) * PIECES >= SLOTS or until == SLOTS:
            now[gone:until] = True
            self._rows = 0
        return now

    def waiting(self, starts: NDArray[np.int64], slots: NDArray[np.uint64]) -> Slots:
        """Return, for each pair of a window's start and a slot, True if the window is pending and
        the slot has not left."""
        waits = np.zeros(len(starts), dtype=bool)
        for start, left in self._left.items():
            waits |= (starts == start) & ~left[slots]
        return waits

    def drop_finished(self) -> list[int]:
        """Drop the windows whose answers have all left, and return their starts."""
        done = [start for start, left in self._left.items() if left.all()]
        for start in done:
            del self._left[start], self._taken[start]
        if not self._left:
            self._rows = 0
        return done

    def snapshot(self) -> dict[str, Any]:
        """Return the slots that have left, and those that newer rows need."""
        return {
            "left": {start: _packed(slots) for start, slots in self._left.items()},
            "taken": {start: _packed(slots) for start, slots in self._taken.items()},
            "rows": self._rows,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._left = {start: _unpacked(body) for start, body in saved["left"].items()}
        self._taken = {start: _unpacked(body) for start, body in saved["taken"].items()}
        self._rows = saved["rows"]


def _packed(slots: Slots) -> bytes:
    return np.packbits(slots).tobytes()


def _unpacked(body: bytes) -> Slots:
    return np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=SLOTS).astype(bool)
