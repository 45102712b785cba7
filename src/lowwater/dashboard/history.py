"""The numbers of runs over the last hour, one point a second at most.

Invariant: every series is as long as the list of times; a series that began later has no value
before.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator
from typing import Any

POINTS = 3_600
"""How many points are kept; one a second, they are the last hour."""

Point = dict[str, dict[str, float | None]]
"""The numbers of each query by name, at one moment."""


def point_of(state: dict[str, Any]) -> Point:
    """The numbers of a state that are worth a line over time."""
    return {query["id"]: dict(_numbers(query)) for query in state["queries"]}


def _numbers(query: dict[str, Any]) -> Iterator[tuple[str, float | None]]:
    for name in ("rows_in", "rows_out", "late_rows", "state_rows", "state_bytes"):
        yield name, query[name]
    if query["latency"] is not None:
        yield "latency_p99", query["latency"]["p99"]
    for stream in query["streams"]:
        yield f"lag/{stream['name']}", stream["lag"]
        for name in ("timestamps", "heartbeats"):
            if stream[name]:
                yield f"{name}/{stream['name']}", stream[name]
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
    """Points of time with their numbers; may be read while it grows."""

    def __init__(self, limit: int = POINTS):
        self._points: deque[tuple[float, Point]] = deque(maxlen=limit)
        self._lock = threading.Lock()

    def add(self, at: float, point: Point) -> None:
        """Take a point, later than all before."""
        with self._lock:
            self._points.append((at, point))

    def since(self, start: float | None = None) -> dict[str, Any]:
        """The points after a time, as columns."""
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
