"""How far a pipeline has come, as values: what displays and programs show."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime
from typing import Any

from lowwater.metrics import CompletenessMetrics, RunMetrics, StreamMetrics
from lowwater.metrics.lag import Mark, lag, reference, seconds
from lowwater.metrics.telling import JoinProgress, UpdateProgress, choice
from lowwater.pipeline.load import PlannedQuery
from lowwater.progress.spec import StreamSpec


@dataclass(frozen=True)
class StreamProgress:
    """A stream of a query."""

    name: str
    rows: int
    mark: Mark
    lag_seconds: float | None
    """How far the mark is behind the clock, or behind the newest stream."""
    late_rows: int
    refused_rows: int
    """Rows not let in for any reason, being late among them."""
    latest_seconds: float
    """The most that a row was late by."""
    late_to: str | None
    completeness: CompletenessMetrics | None = None
    """Of a stream whose promise is learned."""
    at: float | None = None
    """The mark in seconds."""
    holding: str = ""
    """Which channel holds it back, and what to write."""
    stale_channels: int = 0
    """How many channels are set aside."""


@dataclass(frozen=True)
class QueryProgress:
    """A query."""

    number: int
    line: int
    target: str
    active: bool
    rows_in: int
    rows_out: int
    state_rows: int
    state_bytes: int
    streams: tuple[StreamProgress, ...]
    choices: tuple[str, ...] = ()
    """Which strategies operators chose, and why."""
    joins: tuple[JoinProgress, ...] = ()
    """What joins without a window found."""
    updates: tuple[UpdateProgress, ...] = ()
    """How fresh what update streams show is."""
    rows_waiting: int = 0
    """Rows that wait in the sink for their file to be written; not in ``rows_out``."""


@dataclass(frozen=True)
class PipelineProgress:
    """All queries."""

    elapsed_seconds: float
    queries: tuple[QueryProgress, ...]

    @property
    def rows_in(self) -> int:
        """Rows read, over all queries."""
        return sum(each.rows_in for each in self.queries)

    @property
    def rows_out(self) -> int:
        """Rows answered, over all queries."""
        return sum(each.rows_out for each in self.queries)

    @property
    def rows_waiting(self) -> int:
        """Rows answered that wait in sinks, over all queries."""
        return sum(each.rows_waiting for each in self.queries)

    @property
    def refused_rows(self) -> int:
        """Rows not let in, over all queries."""
        return sum(stream.refused_rows for each in self.queries for stream in each.streams)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "elapsed_seconds": round(self.elapsed_seconds, 3),
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_waiting": self.rows_waiting,
            "late_rows": sum(s.late_rows for each in self.queries for s in each.streams),
            "queries": [_query_json(each) for each in self.queries],
        }


def _query_json(query: QueryProgress) -> dict[str, Any]:
    return {
        "query": query.number,
        "target": query.target,
        "active": query.active,
        "rows_in": query.rows_in,
        "rows_out": query.rows_out,
        "rows_waiting": query.rows_waiting,
        "state_rows": query.state_rows,
        "state_bytes": query.state_bytes,
        "streams": [
            {
                "name": each.name,
                "rows": each.rows,
                "mark": each.mark.isoformat() if isinstance(each.mark, datetime) else each.mark,
                "lag_seconds": each.lag_seconds,
                "late_rows": each.late_rows,
                "refused_rows": each.refused_rows,
                "late_to": each.late_to,
                **_completeness_json(each.completeness),
            }
            for each in query.streams
        ],
        **({"joins": [asdict(each) for each in query.joins]} if query.joins else {}),
        **({"updates": [asdict(each) for each in query.updates]} if query.updates else {}),
    }


def _completeness_json(found: CompletenessMetrics | None) -> dict[str, Any]:
    if found is None:
        return {}
    shares = {"target": found.target, "expected": found.expected, "achieved": found.achieved}
    rounded = {name: round(value, 6) for name, value in shares.items()}
    short = {} if found.shortfall is None else {"shortfall": found.shortfall}
    return {"completeness": {**rounded, "slack_seconds": found.slack_seconds, **short}}


def query_progress(
    query: PlannedQuery, target: str, metrics: RunMetrics, active: bool, kept: Mapping[str, str]
) -> QueryProgress:
    """How far one query has come; ``kept`` says where late rows of streams go."""
    specs = {each.spec.name: each.spec for each in query.plan.sources}
    streams = tuple(
        _stream(each, specs[each.name], kept.get(each.name)) for each in metrics.streams
    )
    return QueryProgress(
        query.number,
        query.line,
        target,
        active,
        sum(each.rows for each in streams),
        metrics.rows_out,
        metrics.state_rows,
        metrics.state_bytes,
        streams,
        tuple(found for each in metrics.operators if (found := choice(each))),
        tuple(join for each in metrics.operators if (join := JoinProgress.of(each))),
        tuple(queue for each in metrics.operators if (queue := UpdateProgress.of(each))),
        metrics.rows_waiting,
    )


def _stream(metrics: StreamMetrics, spec: StreamSpec, late_to: str | None) -> StreamProgress:
    mark = metrics.marks.get(spec.time)
    late = [line for line in metrics.late if line.reason == "late"]
    return StreamProgress(
        metrics.name,
        metrics.rows,
        mark,
        None,
        sum(line.rows for line in late),
        metrics.refused_rows,
        max((line.longest_seconds for line in late), default=0.0),
        late_to,
        next((each for each in metrics.completeness if each.attribute == spec.time), None),
        seconds(mark, spec.domains[spec.time]),
        metrics.holding,
        metrics.stale_channels,
    )


def lags(queries: Sequence[QueryProgress], live: bool) -> tuple[QueryProgress, ...]:
    """The same with lags: behind the clock if streams go by it, else behind the newest stream."""
    marks = [stream.at for query in queries for stream in query.streams]
    ahead = reference(marks, time.time() if live else None)
    return tuple(
        replace(
            query,
            streams=tuple(replace(each, lag_seconds=lag(each.at, ahead)) for each in query.streams),
        )
        for query in queries
    )
