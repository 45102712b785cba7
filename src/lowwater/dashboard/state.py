"""The metrics of runs at one moment as one plain value: what the page, and programs, are told."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from lowwater.dashboard.holding import Holder, holder, name_of, words
from lowwater.dashboard.watched import Looked
from lowwater.errors import message_of
from lowwater.joins.oblivious.estimates import (
    ACCURACY,
    GIVEN_UP,
    HELD,
    LATE_ROWS,
    ON_DISK,
    PREDICTED,
    SCRAMBLING,
)
from lowwater.metrics import CHANNELS, OperatorMetrics, StreamMetrics
from lowwater.metrics.histogram import Histogram
from lowwater.metrics.lag import Mark
from lowwater.metrics.spelling import moment
from lowwater.metrics.telling import UpdateProgress
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES
from lowwater.plan.physical.operator import Operator, SourceOperator

KEYS = 200
"""Of how many keys of an update stream, the stalest, the page tells."""
RESULT = "result"

Plain = dict[str, Any]


def query_state(looked: Looked, show_rows: bool = False) -> Plain:
    """One query; values of rows are in it only if ``show_rows``."""
    watched, metrics = looked.watched, looked.metrics
    streams = [_stream(looked, each) for each in metrics.streams]
    error = watched.run.exception
    found = holder(looked) if watched.run.active else None
    return {
        "id": watched.id,
        "title": watched.title,
        "active": watched.run.active,
        "error": None if error is None else message_of(error, show_rows),
        "words": [{"level": each.level, "text": each.text} for each in words(looked, show_rows)],
        "rows_in": sum(each.rows for each in metrics.streams),
        "rows_out": metrics.rows_out,
        "rows_waiting": metrics.rows_waiting,
        "late_rows": metrics.late_rows,
        "refused_rows": sum(each.refused_rows for each in metrics.streams),
        "state_rows": metrics.state_rows,
        "state_bytes": metrics.state_bytes,
        "latency": _latency(metrics.latency),
        "nodes": [*(_node(looked, each, found) for each in watched.plan.operators), _end(looked)],
        "streams": streams,
        "late": _late(looked),
        "joins": [_join(looked, each) for each in metrics.operators if ACCURACY in each.readings],
        "strategies": [_strategy(each) for each in metrics.operators if SWITCHES in each.readings],
        "updates": [told for each in metrics.operators if (told := _updates(each))],
        "idle": [{"operator": o.title, "share": _number(o.idle_share)} for o in metrics.operators],
        "batches": [
            {
                "id": each.number,
                "at": each.started.timestamp(),
                "seconds": each.seconds,
                "rows": each.rows,
                "parts": dict(each.parts),
            }
            for each in metrics.batches
        ],
    }


def _mark(mark: Mark) -> str | None:
    return None if mark is None else moment(mark)


def _number(value: float | None) -> float | None:
    """A number that JSON has."""
    return None if value is None or not math.isfinite(value) else round(value, 6)


def _latency(found: Histogram) -> Plain | None:
    if not found.count:
        return None
    shares = {"p50": found.quantile(0.5), "p99": found.quantile(0.99), "longest": found.longest}
    return {name: length / 1e9 for name, length in (shares | {"mean": found.mean}).items()}


# ---- the graph ---------------------------------------------------------------------------------


def _node(looked: Looked, operator: Operator, found: Holder | None) -> Plain:
    watched = looked.watched
    name = watched.node(operator.index)
    held = looked.least(operator)
    source = isinstance(operator, SourceOperator)
    node = {
        "id": name,
        "kind": "stream" if source else "operator",
        "name": name if source else operator.name,
        "detail": operator.detail,
        "inputs": [watched.node(each) for each in operator.inputs],
        "mark": None if held is None else _mark(held[1]),
        "holds": found is not None and name in found.path,
        "waits": found is not None and found.waiting is operator,
    }
    if source:
        return node | {"lag": looked.lag_of(name)} | _source(looked.streams[name])
    elapsed = max(looked.clock - watched.started, 1e-3)
    # What an operator holds is no finer than its consumers can use: no measure of how far it is.
    return node | {"lag": None} | _operator(looked.operators[operator.title], elapsed)


def _source(stream: StreamMetrics) -> Plain:
    return {
        "rows_in": stream.rows,
        "rows_out": stream.rows - stream.refused_rows,
        "promises_in": 0,
        "promises_out": 0,
        "state_rows": 0,
        "state_bytes": 0,
        "queue": 0,
        "busy": 0.0,
        "idle": 0.0,
        "marks": {name: _mark(mark) for name, mark in stream.marks.items()},
        "about": {},
    }


def _operator(told: OperatorMetrics, elapsed: float = 1.0) -> Plain:
    return {
        "rows_in": told.rows_in,
        "rows_out": told.rows_out,
        "promises_in": told.promises_in,
        "promises_out": told.promises_out,
        "state_rows": told.state_rows,
        "state_bytes": told.state_bytes,
        "queue": told.queue,
        "busy": _number(min(1.0, told.busy_seconds / elapsed)),
        "idle": _number(told.idle_share),
        "marks": {name: _mark(mark) for name, mark in told.marks.items()},
        "about": {name: _told(value) for name, value in told.about.items()},
    }


def _told(value: str | int | float) -> str | float | None:
    return value if isinstance(value, str) else _number(value)


def _end(looked: Looked) -> Plain:
    """The result, as a node that others lead to."""
    nothing = _operator(OperatorMetrics(RESULT, "", 0, 0, 0, 0, {}, 0, 0, 0, 0, 0, 0, 0.0, 0.0))
    return nothing | {
        "id": RESULT,
        "kind": "result",
        "name": looked.watched.target,
        "detail": "",
        "inputs": [looked.watched.node(looked.watched.plan.result.index)],
        "mark": None,
        "lag": None,
        "holds": False,
        "waits": False,
        "rows_in": looked.metrics.rows_out + looked.metrics.rows_waiting,
        "rows_out": looked.metrics.rows_out,
    }


# ---- streams -----------------------------------------------------------------------------------


def _stream(looked: Looked, stream: StreamMetrics) -> Plain:
    late: dict[str, tuple[int, float]] = {}
    for line in stream.late:
        if line.reason == "late":
            rows, longest = late.get(name_of(line.channel), (0, 0.0))
            most = max(longest, line.longest_seconds)
            late[name_of(line.channel)] = rows + line.rows, most
    time = looked.watched.specs[stream.name].time
    whole = [c for c in stream.completeness if c.attribute == time and c.channel is None]
    return {
        "name": stream.name,
        "rows": stream.rows,
        "ended": stream.ended,
        "mark": _mark(looked.shown_mark(stream.name)),
        "lag": looked.lag_of(stream.name),
        "late_rows": sum(rows for rows, _ in late.values()),
        "refused_rows": stream.refused_rows,
        "longest_late": _number(max((longest for _, longest in late.values()), default=0.0)),
        "slowest": None if not stream.channels else name_of(stream.channels[0].channel),
        "timestamps": stream.enabling_timestamps,
        "heartbeats": stream.heartbeats,
        "strays": stream.stray_rows,
        "waiting_rows": stream.waiting_rows,
        "waiting_bytes": stream.waiting_bytes,
        "backward_marks": stream.backward_marks,
        "completeness": {
            "target": whole[0].target,
            "expected": _number(whole[0].expected),
            "achieved": _number(whole[0].achieved),
            "slack": whole[0].slack_seconds,
            "shortfall": whole[0].shortfall,
        }
        if whole
        else None,
        "channel_count": stream.channel_count,
        "channels": [
            {
                "name": name_of(each.channel),
                "mark": _mark(each.mark),
                "lag": looked.lag(looked.at(stream.name, each.mark)),
                "late_rows": late.get(name_of(each.channel), (0, 0.0))[0],
                "longest_late": _number(late.get(name_of(each.channel), (0, 0.0))[1]),
                "silent": _number(each.silent_seconds),
                "stale": each.stale,
            }
            for each in stream.channels
        ],
    }


def _late(looked: Looked) -> list[Plain]:
    lines = [line for stream in looked.metrics.streams for line in stream.late]
    return [
        {
            "stream": line.stream,
            "channel": None if line.channel is None else name_of(line.channel),
            "reason": line.reason,
            "rows": line.rows,
            "longest": _number(line.longest_seconds),
            "mean": _number(line.mean_seconds),
        }
        for line in sorted(lines, key=lambda line: -line.rows)[:CHANNELS]
    ]


# ---- what some operators tell ------------------------------------------------------------------


def _strategy(told: OperatorMetrics) -> Plain:
    found = told.readings
    return {
        "operator": told.title,
        "strategy": found[STRATEGY],
        "because": found[REASON],
        "switches": found[SWITCHES],
    }


def _join(looked: Looked, told: OperatorMetrics) -> Plain:
    plan = looked.watched.plan
    operator = next(each for each in plan.operators if each.title == told.title)
    names = _distinct([looked.watched.node(each) for each in operator.inputs])
    found = told.readings
    return {
        "operator": told.title,
        "strategy": found.get(STRATEGY),
        "because": found.get(REASON),
        "accuracy": _number(found[ACCURACY]),
        "late_rows": found[LATE_ROWS],
        "given_up": found[GIVEN_UP],
        "inputs": [
            {
                "name": name,
                "predicted": _number(found.get(PREDICTED.of(port))),
                "held": _number(found.get(HELD.of(port))),
                "on_disk": _number(found.get(ON_DISK.of(port))),
                "scrambling": _number(found.get(SCRAMBLING.of(port))),
            }
            for port, name in enumerate(names)
        ],
    }


def _distinct(names: Sequence[str]) -> list[str]:
    """Names of inputs; one that is read twice gets a number."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: at + 1].count(name)})"
        for at, name in enumerate(names)
    ]


def _updates(told: OperatorMetrics) -> Plain | None:
    progress = UpdateProgress.of(told)
    if progress is None or told.staleness is None:
        return None
    stale = told.staleness
    return {
        "operator": told.title,
        "keys": stale.keys,
        "staleness": _number(stale.application),
        "queue": _number(stale.queue),
        "weighted": _number(stale.weighted),
        "waiting": progress.waiting,
        "given_up": progress.given_up,
        "windows": progress.of_windows,
        "by_key": [
            {
                "key": name_of(key),
                "average": _number(each.application),
                "now": _number(each.now),
                "updates": each.updates,
                "shown": each.delivered,
            }
            for key, each in list(stale.by_key.items())[:KEYS]
        ],
    }
