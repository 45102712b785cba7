"""Rows dated far ahead: a leap is believed when the next row of its channel confirms it.

A channel asks before it takes times in. What it gets back are the times it may believe: a leap
nobody has confirmed yet stands at the newest time believed before it, so that it moves no mark. The
first row of a channel is a suspect too: it is believed when the second one is not further back than
a leap, and then at once, so that the second is judged by it.

Invariant: how the rows are cut into runs changes neither what is believed nor what is a leap.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from lowwater.stream.element import BEGINNING

Ticks = NDArray[np.int64]


@dataclass(slots=True)
class Believed:
    """What may be believed of a run of rows."""

    times: Ticks
    """For each row, the time it may move the mark by."""
    leaps: list[int] = field(default_factory=list)
    """Positions of rows dated too far ahead, confirmed later or not."""
    strays: int = 0
    """How many leaps were contradicted by the rows after them."""
    in_doubt: int | None = None
    """Position of a channel's first row, which made no mark by itself."""
    earlier: int | None = None
    """The time of a first row that ended the run before, now that it may be believed."""


class Leaps:
    """Tells honest gaps from stray rows, for one channel.

    A row more than ``over`` ahead is a leap. A row up there that is no more than ``reach`` below
    it confirms it; with ``patience`` any row up there does, and so many rows may come in between.
    """

    __slots__ = ("_over", "_patience", "_reach", "_waits", "suspect")

    def __init__(self, over: int, reach: int, patience: int = 0):
        self._over, self._reach, self._patience = over, reach, patience
        self.suspect: int | None = None  # an unconfirmed leap, and for how many rows it may wait
        self._waits = 0

    def believe(self, times: Ticks, newest: int) -> Believed:
        """The times to believe, in arrival order, after the ``newest`` believed so far."""
        fine = newest > BEGINNING and self.suspect is None
        if fine and int(times.max(initial=BEGINNING)) - newest <= self._over:
            return Believed(times)
        return self._confirm(times, newest)

    def _confirm(self, times: Ticks, newest: int) -> Believed:
        found = Believed(times.copy())
        believed = found.times
        for at, time in enumerate(times.tolist()):
            if newest == BEGINNING:
                if self.suspect is None:
                    self.suspect, believed[at] = time, BEGINNING
                    continue
                if time < self.suspect - self._over:
                    found.strays += 1
                else:
                    newest = self.suspect
                    if at:
                        believed[at - 1] = newest
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
                believed[at] = newest
                self.suspect = None
            else:
                found.strays += suspect is not None
                self.suspect, self._waits = time, self._patience
                found.leaps.append(at)
                believed[at] = newest
        return found

    def snapshot(self) -> dict[str, int | None]:
        """Everything needed to go on elsewhere."""
        return {"suspect": self.suspect, "patience": self._waits}

    def restore(self, suspect: int | None, patience: int) -> None:
        """Go on from a snapshot."""
        self.suspect, self._waits = suspect, patience
