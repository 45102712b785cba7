"""The keys of a queue of windows: the window of each that waits, and the one that is worked on."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum, auto
from typing import Any

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.window import WindowSpec
from lowwater.updates.keys import DICT_ENTRY, NUMBER, Entry, KeyCell, bytes_of_slots
from lowwater.updates.memory.blocks import WindowBuffer
from lowwater.updates.options import Key
from lowwater.updates.staleness import ACCOUNT
from lowwater.updates.windows.open_windows import CompletionTimes, OpenWindows, Run


class KeyState(Enum):
    """The state of a key between the arrival of an update and its answer."""

    ENQ = auto()
    """A row arrived: every update starts here."""
    WAIT = auto()
    """A window waits until the key is served."""
    READY = auto()
    """A window is worked on and has rows."""
    IDLE = auto()
    """A window is worked on, and its next row has not arrived."""
    DONE = auto()
    """The window is answered: every update ends here."""


TRANSITIONS: dict[tuple[KeyState, KeyState], str] = {
    (KeyState.ENQ, KeyState.WAIT): "isUpdate",
    (KeyState.WAIT, KeyState.READY): "commit",
    (KeyState.READY, KeyState.IDLE): "not isAvail",
    (KeyState.IDLE, KeyState.READY): "doPromote",
    (KeyState.READY, KeyState.DONE): "result",
}
"""The changes of state that a key may make, each with its condition in the paper."""


class QueuedWindow(Entry):
    """A window that waits or is worked on."""

    __slots__ = ()

    @property
    def start(self) -> int:
        """Start of the window, in ticks."""
        return self.ticks[0]


class WindowCell(KeyCell):
    """A key: its open windows, the one that waits and the one that is worked on."""

    __slots__ = (
        *("begun", "committed", "due", "fresh", "latest", "mark", "progress", "since", "start"),
        *("states", "waiting", "windows"),
    )

    def __init__(self, window: WindowSpec, key: Key, weight: float, number: int):
        super().__init__(key, weight, number)
        self.windows = OpenWindows(window)
        self.due = END_OF_TIME
        """End of the first open window, in ticks."""
        self.mark = BEGINNING
        """The mark of this key alone, in ticks."""
        self.progress: CompletionTimes | None = None
        """The completion of its windows, where keys have marks of their own."""
        self.begun: int | None = None
        """Start of the newest window that began, in an eager queue; None before the first."""
        self.latest = BEGINNING
        """Time of the newest row that arrived, in ticks."""
        self.waiting: QueuedWindow | None = None
        self.committed: QueuedWindow | None = None
        """The window that is worked on, until it is closed."""
        self.fresh = 0
        """Number of rows of that window that arrived and have not left."""
        self.since = 0
        """Arrival of the first of these, in clock nanoseconds."""
        self.states: set[KeyState] = set()
        self.start = BEGINNING
        """The last punctuation on the starts of windows of this key, in ticks."""

    @property
    def busy(self) -> bool:
        """True if a window of the key is open, waits or is worked on."""
        return bool(self.windows.runs) or self.waiting is not None or self.committed is not None

    @property
    def enqueue_buffer(self) -> int:
        """Number of the buffer of rows that windows to come may need."""
        return 2 * self.number

    @property
    def dequeue_buffer(self) -> int:
        """Number of the buffer of rows of the window that is worked on."""
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
            "work": (self.fresh, self.since, self.start),
            "states": sorted(each.name for each in self.states),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self.windows.runs = list(saved["runs"])
        self.due, self.mark, self.begun = saved["due"], saved["mark"], saved["begun"]
        self.latest = saved["latest"]
        if saved["progress"] is not None:
            self.progress = CompletionTimes()
            self.progress.restore(saved["progress"])
        waiting, committed = saved["waiting"], saved["committed"]
        self.waiting = None if waiting is None else QueuedWindow((waiting,))
        self.committed = None if committed is None else QueuedWindow((committed,))
        self.fresh, self.since, self.start = saved["work"]
        self.states = {KeyState[name] for name in saved["states"]}


CELL_BYTES = (
    bytes_of_slots(WindowCell, OpenWindows, list, list, list, set, WindowBuffer, *ACCOUNT)
    + 4 * DICT_ENTRY
    + 10 * NUMBER
)
"""Approximate bytes of a key and its cell, without the values of the key and its rows."""


class KeyMarks:
    """Marks of single keys, each named by the values of some of the key columns."""

    def __init__(self, columns: Sequence[str]):
        self._columns = tuple(columns)
        self.saved: dict[tuple[str, ...], dict[Key, int]] = {}
        """The marks in ticks, by the names of the columns and by their values."""

    def __bool__(self) -> bool:
        return bool(self.saved)

    def part(self, key: Key, names: tuple[str, ...]) -> Key:
        """Return the values that a key has in some of the columns."""
        return tuple(key[self._columns.index(name)] for name in names)

    def update(self, names: tuple[str, ...], marks: Mapping[Key, int]) -> None:
        """Set the marks of keys named by some of the columns."""
        self.saved.setdefault(names, {}).update(marks)

    def of(self, key: Key) -> int:
        """Return the greatest mark that holds for a key."""
        found = (marks.get(self.part(key, names)) for names, marks in self.saved.items())
        return max((mark for mark in found if mark is not None), default=BEGINNING)

    def forget(self, key: Key) -> None:
        """Drop the mark of a key named by all columns."""
        self.saved.get(self._columns, {}).pop(key, None)


class DueWindows:
    """The keys with open windows, ordered by the end of the first one."""

    def __init__(self, window: WindowSpec):
        self._window = window
        self._ends: list[tuple[int, int, WindowCell]] = []

    def watch(self, cell: WindowCell) -> None:
        """Update the end by which a key is ordered, after its open windows may have changed."""
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
        """End of the first open window of all keys, in ticks; None if none is open."""
        while self._ends and self._ends[0][0] != self._ends[0][2].due:
            heapq.heappop(self._ends)
        return self._ends[0][0] if self._ends else None

    def complete(self, mark: int) -> Iterator[tuple[WindowCell, list[Run]]]:
        """Remove the open windows that end by a mark, and yield them by key."""
        while (first := self.first) is not None and first <= mark:
            cell = heapq.heappop(self._ends)[2]
            yield cell, self.complete_of(cell, mark)

    def complete_of(self, cell: WindowCell, mark: int) -> list[Run]:
        """Remove and return the open windows of a key that end by a mark."""
        runs = cell.windows.complete(self._window.first_open(mark))
        self.watch(cell)
        return runs

    def refill(self, cells: Iterable[WindowCell]) -> None:
        """Replace all keys."""
        self._ends.clear()
        for cell in cells:
            self._push(cell)
