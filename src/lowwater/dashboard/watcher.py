"""The watcher reads the metrics of runs once a second, and once more after all have ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lowwater.dashboard.history import VERSION, History, Saved, point_of
from lowwater.dashboard.observation import Observation, WatchedQuery
from lowwater.dashboard.state import declarations, query_state
from lowwater.errors import message_of

EVERY = 1.0
"""Seconds between two readings of the metrics."""
STATES_EVERY = 5.0
"""Seconds between two savings of the state."""
POLL = 0.1
"""Seconds between two checks for the end of the runs."""


class Watcher:
    """Keeps the last state of runs and their history, and saves both if there is a folder."""

    def __init__(
        self,
        title: str,
        engine: str,
        watched: Sequence[WatchedQuery],
        show_rows: bool = False,
        save: Path | None = None,
    ):
        self.watched, self.history = tuple(watched), History()
        self._about = {"version": VERSION, "title": title, "engine": engine, "saved": None}
        self._about["show_rows"] = self._show_rows = show_rows
        self._begun = time.time()
        self._saved = Saved(save) if save is not None else None
        self._saved_at = 0.0
        self._over = threading.Event()
        self._reading = threading.Lock()
        self._state: dict[str, Any] = self._state_of(self._begun, True, [])
        self._try_to_read()
        self._thread = threading.Thread(target=self._watch, name="lowwater-dashboard", daemon=True)
        self._thread.start()

    @property
    def state(self) -> dict[str, Any]:
        """The state of the last reading."""
        return self._state

    @property
    def _active(self) -> bool:
        return any(each.run.active for each in self.watched)

    def _watch(self) -> None:
        last = time.monotonic()
        while self._active and not self._over.wait(POLL):
            if time.monotonic() - last >= EVERY:
                last = time.monotonic()
                self._try_to_read()
        if not self._over.is_set():
            self._try_to_read()

    def _try_to_read(self) -> None:
        """Read the metrics. If reading or saving fails, keep the last state and add the error."""
        try:
            self.read()
        except Exception as error:
            text = f"the metrics could not be read or saved: {message_of(error, self._show_rows)}"
            self._state = self._state | {"error": text}

    def read(self) -> None:
        """Read the metrics now, add them to the history and save both."""
        with self._reading:
            active, now = self._active, time.time()
            queries = [
                query_state(Observation(each, each.run.metrics(), now), self._show_rows)
                for each in self.watched
            ]
            self._state = self._state_of(now, active, queries)
            point = point_of(self._state)
            self.history.add(now, point)
            if self._saved is not None:
                self._saved.add(now, point)
                if not active or now - self._saved_at >= STATES_EVERY:
                    self._saved_at = now
                    self._saved.put(self._state)

    def _state_of(self, now: float, active: bool, queries: list[dict[str, Any]]) -> dict[str, Any]:
        return self._about | {
            "live": active,
            "outcome": self._outcome(active),
            "error": next((each["error"] for each in queries if each["error"]), None),
            "started": self._begun,
            "at": now,
            "elapsed": round(now - self._begun, 3),
            "declared": declarations(queries),
            "queries": queries,
        }

    def _outcome(self, active: bool) -> str:
        if any(each.run.exception is not None for each in self.watched):
            return "failed"
        if active:
            return "running"
        return "stopped" if any(each.run.stopped for each in self.watched) else "done"

    def settle(self) -> None:
        """Read the metrics for the last time and stop."""
        if not self._over.is_set():
            self._over.set()
            self._thread.join()
            self._try_to_read()
