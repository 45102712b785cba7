"""A state has the metrics of runs at one moment as one plain value, for the page and programs.

Every number in ``metrics`` has the name of its :class:`~lowwater.operators.metric.Metric`;
``declared`` has the unit and words of all metrics in the state. So a new metric needs no change
here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from lowwater.dashboard.findings import Holder, findings, holder, name_of
from lowwater.dashboard.observation import Observation
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
from lowwater.metrics import CATALOGUE, CHANNELS, OperatorMetrics, StreamMetrics, finite, plain
from lowwater.metrics.histogram import Histogram
from lowwater.metrics.lag import Mark
from lowwater.metrics.streams import LAG
from lowwater.metrics.values import ACTIVE, UpdateMetrics
from lowwater.metrics.words import moment
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Metric, Readings, parts_of_id
from lowwater.plan.physical.operator import Operator, SourceOperator
from lowwater.progress.late import LATE
from lowwater.stream.duration import SECOND
from lowwater.updates.freshness import Freshness

KEYS = 200
"""The number of keys of an update stream, the stalest, in a state."""
RESULT = "result"
"""The id of the node of the result."""

Plain = dict[str, Any]


def query_state(seen: Observation, show_rows: bool = False) -> Plain:
    """Return the state of one query; it has values of rows only with ``show_rows``."""
    query, metrics = seen.query, seen.metrics
    error = query.run.exception
    held_by = holder(seen) if query.run.active else None
    operators = metrics.operators
    state = {
        "id": query.id,
        "title": query.title,
        "active": query.run.active,
        "error": None if error is None else message_of(error, show_rows),
        "words": plain(findings(seen, show_rows)),
        "rows_in": sum(each.rows for each in metrics.streams),
        "rows_out": metrics.rows_out,
        "rows_waiting": metrics.rows_waiting,
        "late_rows": metrics.late_rows,
        "refused_rows": metrics.refused_rows,
        "state_rows": metrics.state_rows,
        "state_bytes": metrics.state_bytes,
        "latency": _latency(metrics.latency),
        "metrics": (metrics.all_readings | {ACTIVE: query.run.active}).plain(),
        "nodes": [
            *(_node(seen, each, held_by) for each in query.plan.operators),
            _result(seen),
        ],
        "streams": [_stream(seen, each) for each in metrics.streams],
        "late": _late(seen),
        "joins": [_join(seen, each) for each in operators if ACCURACY in each.readings],
        "strategies": [_strategy(each) for each in operators if SWITCHES in each.readings],
        "updates": [_updates(o, u) for o in operators if (u := UpdateMetrics.of(o))],
        "idle": [
            {"operator": each.title, "share": each.idle_share}
            for each in operators
            if each.idle_share is not None
        ],
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
    finished: Plain = finite(state)
    return finished


def declarations(queries: Sequence[Plain]) -> dict[str, Plain]:
    """Return the unit, words, help and kind of all metrics in the states of queries, by name."""
    names = dict.fromkeys(parts_of_id(id_)[0] for query in queries for id_ in _ids(query))
    known = (CATALOGUE[name] for name in names)
    return {
        each.name: {
            "unit": each.unit,
            "words": each.words,
            "help": each.help,
            "total": each.total,
        }
        for each in known
    }


def _ids(query: Plain) -> Iterator[str]:
    for part in (query, *query["nodes"], *query["streams"]):
        yield from part["metrics"]


def _mark(mark: Mark) -> str | None:
    return None if mark is None else moment(mark)


def _latency(found: Histogram) -> Plain | None:
    if not found.count:
        return None
    shares = {"p50": found.quantile(0.5), "p99": found.quantile(0.99), "longest": found.longest}
    return {name: length / SECOND for name, length in (shares | {"mean": found.mean}).items()}


# ---- the graph ---------------------------------------------------------------------------------


def _node(seen: Observation, operator: Operator, held_by: Holder | None) -> Plain:
    name = seen.query.node(operator.index)
    held = seen.least(operator)
    source = isinstance(operator, SourceOperator)
    node = {
        "id": name,
        "kind": "stream" if source else "operator",
        "name": name if source else operator.name,
        "detail": operator.detail,
        "inputs": [seen.query.node(each) for each in operator.inputs],
        "mark": None if held is None else _mark(held[1]),
        # The mark of an operator is rounded to what its consumers can use: it gives no lag.
        "lag": seen.lag_of(name) if source else None,
        "holds": held_by is not None and name in held_by.path,
        "waits": held_by is not None and held_by.waiting is operator,
    }
    if source:
        stream = seen.streams[name]
        passed = stream.rows - stream.refused_rows
        return node | _passed(stream.rows, passed) | {"marks": _marks(stream.marks)}
    found = seen.operators[operator.title]
    elapsed = max(seen.clock - seen.query.started, 1e-3)
    busy = {} if found.busy_seconds is None else {"busy": min(1.0, found.busy_seconds / elapsed)}
    rows = {"rows_in": found.rows_in, "rows_out": found.rows_out}
    return (
        node
        | rows
        | busy
        | {
            "metrics": found.all_readings.plain(),
            "marks": _marks(found.marks),
        }
    )


def _result(seen: Observation) -> Plain:
    """Return the node that all operators lead to."""
    rows_in = seen.metrics.rows_out + seen.metrics.rows_waiting
    return {
        "id": RESULT,
        "kind": "result",
        "name": seen.query.target,
        "detail": "",
        "inputs": [seen.query.node(seen.query.plan.result.index)],
        "mark": None,
        "lag": None,
        "holds": False,
        "waits": False,
        "marks": {},
    } | _passed(rows_in, seen.metrics.rows_out)


def _passed(rows_in: int, rows_out: int) -> Plain:
    """Return the fields of rows in and rows out, for a node that is not an operator."""
    metrics = {"operator_rows_in": rows_in, "operator_rows_out": rows_out}
    return {"rows_in": rows_in, "rows_out": rows_out, "metrics": metrics}


def _marks(marks: Mapping[str, Mark]) -> dict[str, str | None]:
    return {name: _mark(mark) for name, mark in marks.items()}


# ---- streams -----------------------------------------------------------------------------------


def _stream(seen: Observation, stream: StreamMetrics) -> Plain:
    late: dict[str, tuple[int, float]] = {}
    for line in stream.late:
        if line.reason == LATE:
            rows, longest = late.get(name_of(line.channel), (0, 0.0))
            most = max(longest, line.longest_seconds)
            late[name_of(line.channel)] = rows + line.rows, most
    time = seen.query.specs[stream.name].time
    complete = stream.completeness_of(time)
    lag = seen.lag_of(stream.name)
    readings: Readings = stream.all_readings(time) | {LAG: lag}
    return {
        "name": stream.name,
        "ended": stream.ended,
        "mark": _mark(seen.shown_mark(stream.name)),
        "lag": lag,
        "longest_late": stream.longest_late_seconds,
        "slowest": None if not stream.channels else name_of(stream.channels[0].channel),
        "metrics": readings.plain(),
        "completeness": None
        if complete is None
        else {
            "target": complete.target,
            "expected": complete.expected,
            "achieved": complete.achieved,
            "slack": complete.slack_seconds,
            "shortfall": complete.shortfall,
        },
        "channel_count": stream.channel_count,
        "channels": [
            {
                "name": name_of(each.channel),
                "mark": _mark(each.mark),
                "lag": seen.lag(seen.at(stream.name, each.mark)),
                "late_rows": late.get(name_of(each.channel), (0, 0.0))[0],
                "longest_late": late.get(name_of(each.channel), (0, 0.0))[1],
                "silent": each.silent_seconds,
                "stale": each.stale,
            }
            for each in stream.channels
        ],
    }


def _late(seen: Observation) -> list[Plain]:
    lines = [line for stream in seen.metrics.streams for line in stream.late]
    return [
        {
            "stream": line.stream,
            "channel": None if line.channel is None else name_of(line.channel),
            "reason": line.reason,
            "rows": line.rows,
            "longest": line.longest_seconds,
            "mean": line.mean_seconds,
        }
        for line in sorted(lines, key=lambda line: -line.rows)[:CHANNELS]
    ]


# ---- operators of some kinds -------------------------------------------------------------------


def _strategy(metrics: OperatorMetrics) -> Plain:
    found = metrics.readings
    return {
        "operator": metrics.title,
        "strategy": found[STRATEGY],
        "because": found[REASON],
        "switches": found[SWITCHES],
    }


def _join(seen: Observation, metrics: OperatorMetrics) -> Plain:
    plan = seen.query.plan
    operator = next(each for each in plan.operators if each.title == metrics.title)
    names = distinct([seen.query.node(each) for each in operator.inputs])
    found = metrics.readings
    by_input: dict[str, Metric[Any]] = {
        "predicted": PREDICTED,
        "held": HELD,
        "on_disk": ON_DISK,
        "scrambling": SCRAMBLING,
    }
    return {
        "operator": metrics.title,
        "accuracy": found[ACCURACY],
        "late_rows": found[LATE_ROWS],
        "given_up": found[GIVEN_UP],
        "inputs": [
            {"name": name} | {key: found.get(each.of(port)) for key, each in by_input.items()}
            for port, name in enumerate(names)
        ],
    }


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names of inputs; one that is read twice gets a number."""
    return [
        name if names.count(name) == 1 else f"{name} ({names[: at + 1].count(name)})"
        for at, name in enumerate(names)
    ]


def _missed(found: Freshness | None) -> list[Plain]:
    """Return the keys that were staler than their targets, the worst first."""
    return [
        {"key": name_of(key), "longest": each.longest, "now": each.now, "target": each.target}
        for key, each in (found.worst.items() if found is not None else ())
    ]


def _updates(metrics: OperatorMetrics, found: UpdateMetrics) -> Plain:
    stale = metrics.staleness
    assert stale is not None
    return {
        "operator": found.title,
        "keys": stale.keys,
        "staleness": stale.application,
        "queue": stale.queue,
        "weighted": stale.weighted,
        "waiting": found.waiting,
        "given_up": found.given_up,
        "windows": found.of_windows,
        "missed": _missed(stale.freshness),
        "by_key": [
            {
                "key": name_of(key),
                "average": each.application,
                "now": each.now,
                "updates": each.updates,
                "shown": each.delivered,
            }
            for key, each in list(stale.by_key.items())[:KEYS]
        ],
    }
