"""Keys of a queue of windows: which window of each waits, and which is worked on."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from enum import Enum, auto
from typing import Any

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.window import WindowSpec
from lowwater.updates.keys import KeyCell
from lowwater.updates.options import Key
from lowwater.updates.windows.open_windows import CompletionTimes, OpenWindows, Run


class KeyState(Enum):
    """Where a key is between the arrival of an update and its answer."""

    ENQ = auto()
    """A row came: where every update of a key starts."""
    WAIT = auto()
    """A window waits for the key's turn."""
    READY = auto()
    """A window is worked on, and there are rows of it."""
    IDLE = auto()
    """A window is worked on, and the next of its rows has not come."""
    DONE = auto()
    """The window is answered: where every update ends."""


TRANSITIONS: dict[tuple[KeyState, KeyState], str] = {
    (KeyState.ENQ, KeyState.WAIT): "isUpdate",
    (KeyState.WAIT, KeyState.READY): "commit",
    (KeyState.READY, KeyState.IDLE): "not isAvail",
    (KeyState.IDLE, KeyState.READY): "doPromote",
    (KeyState.READY, KeyState.DONE): "result",
}
"""What a key may do, and on which condition."""


class QueuedWindow:
    """A window that waits or is worked on."""

    __slots__ = ("alive", "ticks")

    def __init__(self, start: int):
        self.ticks = (start,)
        self.alive = True

    @property
    def start(self) -> int:
        """Where the window starts."""
        return self.ticks[0]


class WindowCell(KeyCell):
    """One key."""

    __slots__ = (
        *("begun", "committed", "due", "fresh", "latest", "mark", "progress", "since", "states"),
        *("told", "waiting", "windows"),
    )

    def __init__(self, key: Key, weight: float, number: int, window: WindowSpec):
        super().__init__(key, weight, number)
        self.windows = OpenWindows(window)
        self.due = END_OF_TIME
        """When the first of these ends."""
        self.mark = BEGINNING
        """What is promised of this key alone."""
        self.progress: CompletionTimes | None = None
        """How far its own rows have come, where keys are promised each by itself."""
        self.begun: int | None = None
        """The newest start of which a row came; of one that works on windows as they begin."""
        self.latest = BEGINNING
        """The time of the newest row that came."""
        self.waiting: QueuedWindow | None = None
        self.committed: QueuedWindow | None = None
        """The window that is worked on, until it is answered."""
        self.fresh = 0
        """Rows of that window that came and have not left."""
        self.since = 0
        """When the first of these came."""
        self.states: set[KeyState] = set()
        self.told = BEGINNING
        """The start that windows of this key were last promised to have at least."""

    @property
    def busy(self) -> bool:
        """Whether a window has begun that is not over, waits or is worked on."""
        return bool(self.windows.runs) or self.waiting is not None or self.committed is not None

    @property
    def enqueue_buffer(self) -> int:
        """The number of the buffer of what may still be needed."""
        return 2 * self.number

    @property
    def dequeue_buffer(self) -> int:
        """The number of the buffer of rows of the window that is worked on."""
        return 2 * self.number + 1

    def saved(self) -> dict[str, Any]:
        """Return the snapshot."""
        return super().saved() | {
            "runs": tuple(self.windows.runs),
            "due": self.due,
            "mark": self.mark,
            "progress": self.progress and self.progress.saved(),
            "begun": self.begun,
            "latest": self.latest,
            "waiting": self.waiting and self.waiting.start,
            "committed": self.committed and self.committed.start,
            "work": (self.fresh, self.since, self.told),
            "states": sorted(each.name for each in self.states),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(saved)
        self.windows.runs = list(saved["runs"])
        self.due, self.mark, self.begun = saved["due"], saved["mark"], saved["begun"]
        self.latest = saved["latest"]
        if saved["progress"] is not None:
            self.progress = CompletionTimes()
            self.progress.restore(saved["progress"])
        waiting, committed = saved["waiting"], saved["committed"]
        self.waiting = None if waiting is None else QueuedWindow(waiting)
        self.committed = None if committed is None else QueuedWindow(committed)
        self.fresh, self.since, self.told = saved["work"]
        self.states = {KeyState[name] for name in saved["states"]}


class DueWindows:
    """Keys by the end of their first open window."""

    def __init__(self, window: WindowSpec):
        self._window = window
        self._ends: list[tuple[int, int, WindowCell]] = []

    def watch(self, cell: WindowCell) -> None:
        """The open windows of a key may be others now."""
        earliest = cell.windows.earliest
        due = END_OF_TIME if earliest is None else earliest + self._window.range
        if due != cell.due:
            cell.due = due
            self._push(cell)

    def _push(self, cell: WindowCell) -> None:
        if cell.due < END_OF_TIME:
            heapq.heappush(self._ends, (cell.due, cell.number, cell))

    @property
    def first(self) -> int | None:
        """When the first window ends that has rows and is not complete."""
        while self._ends and self._ends[0][0] != self._ends[0][2].due:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def complete(self, mark: int) -> Iterator[tuple[WindowCell, list[Run]]]:
        """The keys of which windows end by a mark, and these windows; they are open no more."""
        while (first := self.first) is not None and first <= mark:
            cell = heapq.heappop(self._ends)[2]
            yield cell, self.complete_of(cell, mark)

    def complete_of(self, cell: WindowCell, mark: int) -> list[Run]:
        """The same of one key."""
        runs = cell.windows.complete(self._window.first_open(mark))
        self.watch(cell)
        return runs

    def refill(self, cells: Iterable[WindowCell]) -> None:
        """Begin again with these keys, each as it was watched."""
        self._ends.clear()
        for cell in cells:
            self._push(cell)
