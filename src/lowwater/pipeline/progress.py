"""The progress of a pipeline has the metrics of its queries and the destinations of their rows."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from lowwater.joins.oblivious.estimates import ACCURACY, GIVEN_UP, LATE_ROWS
from lowwater.metrics import (
    CompletenessMetrics,
    OperatorMetrics,
    RunMetrics,
    StreamMetrics,
    plain,
)
from lowwater.metrics.lag import Mark, lag, reference, seconds
from lowwater.metrics.values import UpdateMetrics
from lowwater.pipeline.text import PlannedQuery
from lowwater.progress.spec import StreamSpec


@dataclass(frozen=True)
class StreamProgress:
    """The progress of a stream of a query."""

    metrics: StreamMetrics
    spec: StreamSpec
    late_to: str | None
    """Folder of its late rows; None if they are not kept."""
    lag_seconds: float | None = None
    """Seconds that the mark is behind the clock, or behind the newest stream; None if there is no
    mark."""

    @property
    def mark(self) -> Mark:
        """The mark of its time column."""
        return self.metrics.marks.get(self.spec.time)

    @property
    def at(self) -> float | None:
        """The mark in seconds since 1970; None if there is none."""
        return seconds(self.mark, self.spec.domains[self.spec.time])

    @property
    def completeness(self) -> CompletenessMetrics | None:
        """Share of its rows that are on time; None unless its slack is learned."""
        return self.metrics.completeness_of(self.spec.time)


@dataclass(frozen=True)
class QueryProgress:
    """The progress of a query."""

    number: int
    line: int
    """The line of the pipeline file in which it begins, from 1."""
    target: str
    active: bool
    metrics: RunMetrics
    streams: tuple[StreamProgress, ...]

    @property
    def rows_in(self) -> int:
        """Number of rows read, over all streams."""
        return sum(each.metrics.rows for each in self.streams)

    @property
    def rows_out(self) -> int:
        """Number of rows of the result that readers can see."""
        return self.metrics.rows_out

    @property
    def rows_waiting(self) -> int:
        """Number of rows of the result that are in no file yet; ``rows_out`` does not have them."""
        return self.metrics.rows_waiting

    @property
    def updates(self) -> tuple[UpdateMetrics, ...]:
        """Its update streams."""
        return tuple(filter(None, map(UpdateMetrics.of, self.metrics.operators)))


@dataclass(frozen=True)
class PipelineProgress:
    """The progress of all queries of a pipeline."""

    elapsed_seconds: float
    queries: tuple[QueryProgress, ...]

    @property
    def rows_in(self) -> int:
        """Number of rows read, over all queries."""
        return sum(each.rows_in for each in self.queries)

    @property
    def rows_out(self) -> int:
        """Number of rows of results that readers can see, over all queries."""
        return sum(each.rows_out for each in self.queries)

    @property
    def rows_waiting(self) -> int:
        """Number of rows of results that are in no file yet, over all queries."""
        return sum(each.rows_waiting for each in self.queries)

    @property
    def refused_rows(self) -> int:
        """Number of late rows and of rows without a usable time, over all queries."""
        return sum(each.metrics.refused_rows for each in self.queries)

    def as_json(self) -> dict[str, Any]:
        """Return the progress as an object of JSON."""
        return {
            "elapsed_seconds": round(self.elapsed_seconds, 3),
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
            "rows_waiting": self.rows_waiting,
            "late_rows": sum(each.metrics.late_rows for each in self.queries),
            "queries": [_query_json(each) for each in self.queries],
        }


def _query_json(query: QueryProgress) -> dict[str, Any]:
    metrics = query.metrics
    joins = [_join_json(each) for each in metrics.operators if ACCURACY in each.readings]
    return {
        "query": query.number,
        "target": query.target,
        "active": query.active,
        "rows_in": query.rows_in,
        "rows_out": query.rows_out,
        "rows_waiting": query.rows_waiting,
        "state_rows": metrics.state_rows,
        "state_bytes": metrics.state_bytes,
        "streams": [_stream_json(each) for each in query.streams],
        **({"joins": joins} if joins else {}),
        **({"updates": plain(query.updates)} if query.updates else {}),
        "metrics": metrics.all_readings.plain(),
        "operators": [
            {"operator": each.title, "metrics": each.all_readings.plain()}
            for each in metrics.operators
        ],
    }


def _join_json(operator: OperatorMetrics) -> dict[str, Any]:
    """Return the accuracy of a join without a window, and the rows that it gave up."""
    found = operator.readings
    return {
        "title": operator.title,
        "accuracy": found[ACCURACY],
        "late_rows": found[LATE_ROWS],
        "given_up_rows": found[GIVEN_UP],
    }


def _stream_json(stream: StreamProgress) -> dict[str, Any]:
    metrics = stream.metrics
    return {
        "name": metrics.name,
        "rows": metrics.rows,
        "mark": plain(stream.mark),
        "lag_seconds": stream.lag_seconds,
        "late_rows": metrics.late_rows,
        "refused_rows": metrics.refused_rows,
        "late_to": stream.late_to,
        **_completeness_json(stream.completeness),
        "metrics": metrics.all_readings(stream.spec.time).plain(),
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
    """Return the progress of one query; ``kept`` maps streams to the folders of their late rows."""
    specs = {each.spec.name: each.spec for each in query.plan.sources}
    streams = tuple(
        StreamProgress(each, specs[each.name], kept.get(each.name)) for each in metrics.streams
    )
    return QueryProgress(query.number, query.line, target, active, metrics, streams)


def with_lags(queries: Sequence[QueryProgress], live: bool) -> tuple[QueryProgress, ...]:
    """Return the queries with the lags of their streams, in seconds: behind the clock if ``live``
    and the newest stream is near it, else behind the newest stream."""
    marks = [stream.at for query in queries for stream in query.streams]
    ahead = reference(marks, time.time() if live else None)
    return tuple(
        replace(
            query,
            streams=tuple(replace(each, lag_seconds=lag(each.at, ahead)) for each in query.streams),
        )
        for query in queries
    )
