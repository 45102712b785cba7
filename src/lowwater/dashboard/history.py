"""A history has the numbers of runs over the last hour, at most one point a second.

Invariant: every series is as long as the list of times; before its first point its values are None.

It is in memory and, with a folder, on disk too. ``state.json`` is the last state, replaced each
time, and ``history.jsonl`` has a line for each point. When the file of points has grown to two
hours, it is cut to the last hour, so its size does not depend on the length of the run. Files are
complete at any moment, except perhaps the last line of the history.
"""

from __future__ import annotations

import json
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lowwater.errors import OptionError, SinkError

POINTS = 3_600
"""The number of points that are kept; one a second, they are the last hour."""
STATE, HISTORY = "state.json", "history.jsonl"
METRICS = "metrics"
"""The name of the folder of metrics inside a checkpoint."""
VERSION = 2
"""The version of the format of a state. Saved states of other versions are refused."""

Point = dict[str, dict[str, float | None]]
"""The numbers of each query by name, at one moment."""


def point_of(state: dict[str, Any]) -> Point:
    """Return the numbers of a state that charts show over time."""
    return {query["id"]: dict(_numbers(query)) for query in state["queries"]}


def _numbers(query: dict[str, Any]) -> Iterator[tuple[str, float | None]]:
    for name in ("rows_in", "rows_out", "late_rows", "state_rows", "state_bytes"):
        yield name, query[name]
    if query["latency"] is not None:
        yield "latency_p99", query["latency"]["p99"]
    for stream in query["streams"]:
        yield f"lag/{stream['name']}", stream["lag"]
        for name in ("timestamps", "heartbeats"):
            if made := stream["metrics"].get(f"stream_{name}"):
                yield f"{name}/{stream['name']}", made
    for each in query["idle"]:
        if each["share"]:
            yield f"idle/{each['operator']}", each["share"]
    for each in query["updates"]:
        yield f"staleness/{each['operator']}", each["staleness"]
        yield f"waiting/{each['operator']}", each["waiting"]
    for join in query["joins"]:
        for each in join["inputs"]:
            for name in ("predicted", "held"):
                yield f"{name}/{join['operator']}/{each['name']}", each[name]


class History:
    """Points of time with their numbers; one thread may add points while others read."""

    def __init__(self, limit: int = POINTS):
        self._points: deque[tuple[float, Point]] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def add(self, at: float, point: Point) -> None:
        """Add a point, later than all before."""
        with self._lock:
            self._points.append((at, point))

    def since(self, start: float | None = None) -> dict[str, Any]:
        """Return the points after a time, as columns; ``start`` is in seconds since 1970."""
        with self._lock:
            points = list(self._points)
        if start is not None:
            points = points[bisect_right(points, start, key=lambda each: each[0]) :]
        names: dict[str, dict[str, None]] = {}
        for _, point in points:
            for query, numbers in point.items():
                names.setdefault(query, {}).update(dict.fromkeys(numbers))
        return {
            "at": [at for at, _ in points],
            "queries": {
                query: {
                    name: [point.get(query, {}).get(name) for _, point in points] for name in series
                }
                for query, series in names.items()
            },
        }


class Saved:
    """A folder in which the metrics of runs are saved."""

    def __init__(self, folder: Path, limit: int = POINTS):
        self._folder, self._limit = folder, limit
        self._lines: list[str] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._replace(HISTORY, "")
        except OSError as error:
            raise SinkError(f"cannot save metrics in {folder}: {error.strerror}") from None

    def add(self, at: float, point: Point) -> None:
        """Save a point."""
        self._lines.append(json.dumps([at, point]) + "\n")
        if len(self._lines) >= 2 * self._limit:
            self._lines = self._lines[-self._limit :]
            self._replace(HISTORY, "".join(self._lines))
            return
        with (self._folder / HISTORY).open("a", encoding="utf-8") as file:
            file.write(self._lines[-1])

    def put(self, state: dict[str, Any]) -> None:
        """Save a state in place of the one before."""
        self._replace(STATE, json.dumps(state))

    def _replace(self, name: str, text: str) -> None:
        unfinished = self._folder / f".{name}"
        unfinished.write_text(text, encoding="utf-8")
        unfinished.replace(self._folder / name)


def read_saved(folder: Path) -> tuple[dict[str, Any], History]:
    """Return the state and history that were saved in a folder, or in that of a checkpoint."""
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
    if state.get("version", VERSION) != VERSION:
        raise OptionError(
            f"the metrics in {place} have format {state['version']}, and this version of lowwater"
            f" reads format {VERSION}. Show them with the version that saved them"
        )
    return state | {"live": False, "saved": str(place), "show_rows": False}, history
