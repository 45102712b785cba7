"""How the answers of a closed window leave (OOP §6): at once, slowly, or lazily.

A window that closes with many groups is a burst of work. The answers may leave later instead,
spread over the rows that follow, as long as none is later than a stated number of windows. Without
order nothing else has to wait for them: rows of newer windows are taken in as before, and only the
promise about the window is held back until its last answer is out.

Answers leave by *slot*, the hash of their group. Which slots have left is all that has to be known
about a window, whatever was done with its partials in between.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.errors import OptionError
from lowwater.stream.element import Chunk
from lowwater.stream.window import WindowSpec

SLOTS = 65_536
"""Into so many slots groups are spread. A slot leaves as a whole."""
PIECES = 64
"""Answers wait until so small a share of a window's slots may leave, unless its time is up."""
SEED = 20
"""Makes slots independent of how rows are spread over buckets."""

Slots = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Immediate:
    """All answers of a window leave when it closes."""

    within_windows: int = 0

    def describe(self) -> str:
        """This policy in words."""
        return "at once"


@dataclass(frozen=True, slots=True)
class Slow:
    """An answer leaves with every ``every`` rows; the last ``within_windows`` windows later."""

    every: int
    within_windows: int

    def __post_init__(self) -> None:
        _check_whole("slow: every=", self.every)
        _check_whole("slow: within_windows=", self.within_windows)

    def describe(self) -> str:
        """This policy in words."""
        return f"slowly, one every {self.every} rows, within {_windows(self.within_windows)}"


@dataclass(frozen=True, slots=True)
class Lazy:
    """An answer leaves when a newer window needs its slot, or ``within_windows`` windows later."""

    within_windows: int

    def __post_init__(self) -> None:
        _check_whole("lazy: within_windows=", self.within_windows)

    def describe(self) -> str:
        """This policy in words."""
        return f"lazily, within {_windows(self.within_windows)}"


Flush = Immediate | Slow | Lazy


def slow(every: int = 160, within_windows: int = 2) -> Slow:
    """Answers of a closed window leave one with every ``every`` rows, within so many windows."""
    return Slow(every, within_windows)


def lazy(within_windows: int = 2) -> Lazy:
    """Answers of a closed window leave as newer ones need their place, within so many windows."""
    return Lazy(within_windows)


def _check_whole(what: str, given: object) -> None:
    if not isinstance(given, int) or isinstance(given, bool) or given < 1:
        raise OptionError(f"{what} takes a whole number above zero, not {given!r}")


def _windows(count: int) -> str:
    return "1 window" if count == 1 else f"{count} windows"


def slots_of(partials: Chunk, groups: Sequence[str]) -> NDArray[np.uint64]:
    """The slot of each partial, by its group."""
    return partials.select(pl.struct(groups).hash(SEED) % SLOTS).to_series().to_numpy()


class Leaving:
    """Closed windows whose answers have not all left, and which of them may leave now.

    Invariant: a slot of a window leaves once; all of them have left when the mark is
    ``within_windows`` slides past the window's end.
    """

    def __init__(self, window: WindowSpec, flush: Slow | Lazy):
        self._window, self._flush = window, flush
        self._left: dict[int, Slots] = {}  # by start of window: the slots that have left
        self._taken: dict[int, Slots] = {}  # and those that newer rows have taken since it closed
        self._rows = 0  # rows that have come since an answer left for them

    @property
    def windows(self) -> list[int]:
        """The starts of the windows that are waiting, oldest first."""
        return sorted(self._left)

    @property
    def wants_slots(self) -> bool:
        """Whether to tell which slots new rows fall into."""
        return bool(self._left) and isinstance(self._flush, Lazy)

    def close(self, starts: Sequence[int]) -> None:
        """Windows have closed."""
        for start in starts:
            self._left[start] = np.zeros(SLOTS, dtype=bool)
            self._taken[start] = np.zeros(SLOTS, dtype=bool)

    def came(self, rows: int, slots: NDArray[np.uint64] | None = None) -> None:
        """Rows of newer windows have come, into these slots."""
        if self._left:
            self._rows += rows
        for taken in self._taken.values() if slots is not None else ():
            taken[slots] = True

    def deadline(self, start: int) -> int:
        """The mark at which the last answer of a window has to leave."""
        window = self._window
        return start + window.range + self._flush.within_windows * window.slide

    def due(self, start: int, mark: int, answers: int, by_rows: bool) -> Slots | None:
        """The slots of a window that leave now, noted as gone; None if none do.

        ``answers`` is about how many the window has. Without ``by_rows`` only the mark decides, so
        that copies which hold the same mark let the same slots go.
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
        """The slots in turn: as many as rows have paid for, or as the time that has passed asks."""
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

    def finished(self) -> list[int]:
        """The windows that are all out, which are forgotten."""
        done = [start for start, left in self._left.items() if left.all()]
        for start in done:
            del self._left[start], self._taken[start]
        if not self._left:
            self._rows = 0
        return done

    def snapshot(self) -> dict[str, Any]:
        """What has left and what has come."""
        return {
            "left": {start: _packed(slots) for start, slots in self._left.items()},
            "taken": {start: _packed(slots) for start, slots in self._taken.items()},
            "rows": self._rows,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._left = {start: _unpacked(body) for start, body in saved["left"].items()}
        self._taken = {start: _unpacked(body) for start, body in saved["taken"].items()}
        self._rows = saved["rows"]


def _packed(slots: Slots) -> bytes:
    return np.packbits(slots).tobytes()


def _unpacked(body: bytes) -> Slots:
    return np.unpackbits(np.frombuffer(body, dtype=np.uint8), count=SLOTS).astype(bool)
