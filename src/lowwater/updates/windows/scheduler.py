"""The order in which windows are served: keys that wait, are worked on, or are idle (UpStream
§6.2).

A key whose window is worked on is served before keys that wait, while there are rows of the window.
A key may wait with a newer window while an older one is worked on. If it comes to the front of the
line then, it leaves the line, and its turn is kept until the older window is answered.

Invariants: a key is in the line or has kept its turn exactly while it waits; at most one window of
a key is worked on; keys change their state only along ``TRANSITIONS``.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from lowwater.updates.key_lines import KeyLine
from lowwater.updates.options import Key
from lowwater.updates.windows.window_keys import TRANSITIONS, KeyState, WindowCell

WORKED_ON = frozenset({KeyState.READY, KeyState.IDLE})


class KeyScheduler:
    """The keys that wait (``wq``), those whose window is worked on (``upq``) and the idle ones
    (``il``)."""

    def __init__(self, wq: KeyLine[WindowCell]):
        self.wq = wq
        self.upq: deque[WindowCell] = deque()
        self.il: dict[WindowCell, None] = {}
        self._turns: dict[WindowCell, int] = {}  # kept turns, by number
        self._kept: list[tuple[int, WindowCell]] = []  # heap of kept turns that can be served now
        self._turn = 0  # number of the last turn
        self._free = 0  # number of waiting keys of which no window is worked on

    def _move(self, cell: WindowCell, before: KeyState, after: KeyState) -> None:
        assert (before, after) in TRANSITIONS, f"a key went from {before} to {after}"
        cell.states.discard(before)
        if after is not KeyState.DONE:
            cell.states.add(after)

    @property
    def waits(self) -> bool:
        """True if a key waits that can be served now."""
        return self._free > 0

    @property
    def waiting(self) -> int:
        """Number of keys that wait."""
        return len(self.wq) + len(self._turns)

    @property
    def worked_on(self) -> int:
        """Number of keys whose window is worked on, idle ones included."""
        return len(self.upq) + len(self.il)

    @property
    def oldest(self) -> int | None:
        """Arrival of the update served next, in clock nanoseconds; None if none can be."""
        if self.upq:
            return self.upq[0].since
        if not self._free:
            return None
        return (self._kept[0][1] if self._kept else self.wq.head()).first

    def update(self, cell: WindowCell) -> None:
        """Let the key of a window that became an update wait (isUpdate)."""
        if KeyState.WAIT not in cell.states:
            self._free += not cell.states & WORKED_ON
            self._move(cell, KeyState.ENQ, KeyState.WAIT)
        if cell not in self._turns:
            self.wq.arrived(cell)

    def commit(self) -> WindowCell:
        """Begin the window of the key served next, and return the key."""
        if self._kept:
            cell = heapq.heappop(self._kept)[1]
            del self._turns[cell]
        else:
            cell = self._head()
            self.wq.leave(cell)
        self._move(cell, KeyState.WAIT, KeyState.READY)
        self._free -= 1
        self.upq.append(cell)
        return cell

    def _head(self) -> WindowCell:
        """Return the first key in line without a window worked on; others before it keep their
        turn."""
        while (cell := self.wq.head()).states & WORKED_ON:
            self.wq.leave(cell)
            self._turn += 1
            self._turns[cell] = self._turn
        return cell

    def rest(self, cell: WindowCell) -> None:
        """Make the first key worked on idle: it has no rows now (not isAvail)."""
        assert self.upq.popleft() is cell
        self._move(cell, KeyState.READY, KeyState.IDLE)
        self.il[cell] = None

    def promote(self, cell: WindowCell) -> None:
        """Work on an idle key again: rows of its window arrived (doPromote)."""
        del self.il[cell]
        self._move(cell, KeyState.IDLE, KeyState.READY)
        self.upq.append(cell)

    def done(self, cell: WindowCell) -> None:
        """End the window of the first key worked on, or of an idle key: it is answered."""
        if cell in self.il:
            del self.il[cell]
            self._move(cell, KeyState.IDLE, KeyState.READY)
        else:
            assert self.upq.popleft() is cell
        self._move(cell, KeyState.READY, KeyState.DONE)
        if KeyState.WAIT in cell.states:
            self._free += 1
        if cell in self._turns:
            heapq.heappush(self._kept, (self._turns[cell], cell))

    def __iter__(self) -> Iterator[WindowCell]:
        yield from self.wq
        yield from self._turns

    # ---- state -----------------------------------------------------------------------------

    def saved(self) -> dict[str, Any]:
        """Return the snapshot."""
        return {
            "wq": self.wq.saved(),
            "upq": [cell.key for cell in self.upq],
            "il": [cell.key for cell in self.il],
            "turns": [(cell.key, turn) for cell, turn in self._turns.items()],
            "turn": self._turn,
        }

    def restore(self, saved: dict[str, Any], cells: Mapping[Key, WindowCell]) -> None:
        """Set the state to that of a snapshot, with the keys it names."""
        self.wq.restore(saved["wq"], cells)
        self.upq = deque(cells[key] for key in saved["upq"])
        self.il = dict.fromkeys(cells[key] for key in saved["il"])
        self._turns = {cells[key]: turn for key, turn in saved["turns"]}
        self._turn = saved["turn"]
        free = [cell for cell in self if not cell.states & WORKED_ON]
        self._free = len(free)
        self._kept = sorted((self._turns[cell], cell) for cell in free if cell in self._turns)
