"""Metrics on disk, for looking at a run that has ended: its last state, and the last hour.

``state.json`` is the last state, written anew each time; ``history.jsonl`` holds a line for each
point. A file of points that has grown to two hours is cut to the last one, so a run may go on for
ever. Files are complete at any moment, except perhaps the last line of the history.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lowwater.dashboard.history import POINTS, History, Point
from lowwater.errors import OptionError, SinkError

STATE, HISTORY = "state.json", "history.jsonl"
METRICS = "metrics"
"""The folder inside a checkpoint."""


class Saved:
    """Where the metrics of runs are kept."""

    def __init__(self, folder: Path, limit: int = POINTS):
        self._folder, self._limit = folder, limit
        self._lines: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._replace(HISTORY, "")
        except OSError as error:
            raise SinkError(f"cannot save metrics in {folder}: {error.strerror}") from None

    def add(self, at: float, point: Point) -> None:
        """Keep a point."""
        self._lines.append(json.dumps([at, point]) + "\n")
        if len(self._lines) >= 2 * self._limit:
            self._lines = self._lines[-self._limit :]
            self._replace(HISTORY, "".join(self._lines))
            return
        with (self._folder / HISTORY).open("a", encoding="utf-8") as file:
            file.write(self._lines[-1])

    def put(self, state: dict[str, Any]) -> None:
        """Keep a state in place of the one before."""
        self._replace(STATE, json.dumps(state))

    def _replace(self, name: str, text: str) -> None:
        unfinished = self._folder / f".{name}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self._folder / name)


def read_saved(folder: Path) -> tuple[dict[str, Any], History]:
    """What was saved in a folder, or in that of a checkpoint."""
    places = [folder, folder / METRICS]
    place = next((each for each in places if (each / STATE).is_file()), None)
    if place is None:
        raise OptionError(
            f"{folder} holds no saved metrics; a run saves them with --save-metrics {folder}, or"
            " with --dashboard and --checkpoint"
        )
    try:
        state = json.loads((place / STATE).read_text(encoding="utf-8"))
        history = History()
        for line in (place / HISTORY).read_text(encoding="utf-8").splitlines():
            if line.endswith("]"):  # the last may be cut off
                history.add(*json.loads(line))
    except (OSError, ValueError, TypeError) as error:
        raise OptionError(f"the metrics in {place} cannot be read: {error}") from None
    return state | {"live": False, "saved": str(place), "show_rows": False}, history
