"""Keys of a queue of windows: which window of each waits, and which is worked on."""

from __future__ import annotations

from typing import Any

from lowwater.stream.element import BEGINNING, END_OF_TIME
from lowwater.stream.window import WindowSpec
from lowwater.updates.cells import Cell
from lowwater.updates.options import Key
from lowwater.updates.windows.open_windows import OpenWindows
from lowwater.updates.windows.progress import Progress
from lowwater.updates.windows.states import KeyState


class Update:
    """A window that waits or is worked on."""

    __slots__ = ("alive", "ticks")

    def __init__(self, start: int):
        self.ticks = (start,)
        self.alive = True

    @property
    def start(self) -> int:
        """Where the window starts."""
        return self.ticks[0]


class WindowCell(Cell):
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
        self.progress: Progress | None = None
        """How far its own rows have come, where keys are promised each by itself."""
        self.begun: int | None = None
        """The newest start of which a row came; of one that works on windows as they begin."""
        self.latest = BEGINNING
        """The time of the newest row that came."""
        self.waiting: Update | None = None
        self.committed: Update | None = None
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
        """What it takes to go on."""
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
        """Go on from what :meth:`saved` gave."""
        super().restore(saved)
        self.windows.runs = list(saved["runs"])
        self.due, self.mark, self.begun = saved["due"], saved["mark"], saved["begun"]
        self.latest = saved["latest"]
        if saved["progress"] is not None:
            self.progress = Progress()
            self.progress.restore(saved["progress"])
        waiting, committed = saved["waiting"], saved["committed"]
        self.waiting = None if waiting is None else Update(waiting)
        self.committed = None if committed is None else Update(committed)
        self.fresh, self.since, self.told = saved["work"]
        self.states = {KeyState[name] for name in saved["states"]}
