"""How far a pipeline has come, as values: what displays and programs show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import Any

from lowwater.metrics import CompletenessMetrics, OperatorMetrics, RunMetrics, StreamMetrics
from lowwater.pipeline.load import PlannedQuery

NEAR_SECONDS = 86_400
"""A stream whose time is this far from the clock's does not go by the clock."""

Mark = datetime | int | None


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


@dataclass(frozen=True)
class JoinProgress:
    """A join without a window, and what it gave up."""

    title: str
    accuracy: float
    """The share of results that was found, estimated."""
    late_rows: int
    given_up_rows: int

    @property
    def words(self) -> str:
        """In words."""
        lost = [f"{self.late_rows:,} rows came too late for it"] if self.late_rows else []
        if self.given_up_rows:
            lost.append(f"{self.given_up_rows:,} had no place in memory")
        if not lost:
            return f"{self.title}: all results found"
        share = f"about {self.accuracy * 100:.5g} % of results found"
        return f"{self.title}: {share}; {', '.join(lost)}"


@dataclass(frozen=True)
class UpdateProgress:
    """The queue of an update stream: how fresh what it shows is, and what that took."""

    title: str
    keys: int
    staleness_seconds: float
    """How long what is shown of a key has been out of date, on average over keys and time."""
    stalest_key: tuple[object, ...]
    stalest_seconds: float
    """The same of the key of which it is most."""
    waiting: int
    given_up: int
    """Rows, or windows, that newer ones took the place of."""
    of_windows: bool

    @classmethod
    def of(cls, operator: OperatorMetrics) -> UpdateProgress | None:
        """That of an operator, if it is such a queue and something waited in it."""
        told = operator.staleness
        if told is None or not told.keys:
            return None
        key, worst = next(iter(told.by_key.items()), ((), None))
        return cls(
            operator.title,
            told.keys,
            told.application,
            key,
            0.0 if worst is None else worst.application,
            int(operator.about["waiting"]),
            int(operator.about["given up for newer ones"]),
            "windows shown" in operator.about,
        )

    @property
    def words(self) -> str:
        """In words."""
        worst = ", ".join(map(str, self.stalest_key))
        stale = f"{self.staleness_seconds:.3g} s out of date on average"
        if self.keys > 1:
            stale += f" (most: {worst}, {self.stalest_seconds:.3g} s)"
        things = "windows" if self.of_windows else "rows"
        gone = f"{self.given_up:,} {things} given up for newer ones"
        return f"{self.title}: {self.keys:,} keys, {stale}; {gone}, {self.waiting:,} wait"


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
    def refused_rows(self) -> int:
        """Rows not let in, over all queries."""
        return sum(stream.refused_rows for each in self.queries for stream in each.streams)

    def as_json(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "elapsed_seconds": round(self.elapsed_seconds, 3),
            "rows_in": self.rows_in,
            "rows_out": self.rows_out,
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
    return {"completeness": {**rounded, "slack_seconds": found.slack_seconds}}


def query_progress(
    query: PlannedQuery, target: str, metrics: RunMetrics, active: bool, kept: Mapping[str, str]
) -> QueryProgress:
    """How far one query has come; ``kept`` says where late rows of streams go."""
    times = {each.node.spec.name: each.node.spec.time for each in query.plan.sources}  # type: ignore[attr-defined]
    streams = tuple(
        _stream(each, times[each.name], kept.get(each.name)) for each in metrics.streams
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
        tuple(
            f"{each.title}: {each.about['strategy']}, {each.about['because']}"
            for each in metrics.operators
            if "switches" in each.about
        ),
        tuple(
            JoinProgress(
                each.title,
                float(each.about["accuracy"]),
                int(each.about["late rows"]),
                int(each.about["rows given up"]),
            )
            for each in metrics.operators
            if "accuracy" in each.about
        ),
        tuple(found for each in metrics.operators if (found := UpdateProgress.of(each))),
    )


def _stream(metrics: StreamMetrics, time: str, late_to: str | None) -> StreamProgress:
    late = [line for line in metrics.late if line.reason == "late"]
    return StreamProgress(
        metrics.name,
        metrics.rows,
        metrics.marks.get(time),
        None,
        sum(line.rows for line in late),
        metrics.refused_rows,
        max((line.longest_seconds for line in late), default=0.0),
        late_to,
        next((each for each in metrics.completeness if each.attribute == time), None),
    )


def lags(queries: Sequence[QueryProgress], live: bool) -> tuple[QueryProgress, ...]:
    """The same with lags: behind the clock if streams go by it, else behind the newest stream."""
    seconds = [_seconds(stream.mark) for query in queries for stream in query.streams]
    newest = max((each for each in seconds if each is not None), default=None)
    if newest is None:
        return tuple(queries)
    now = datetime.now(UTC).timestamp()
    ahead = now if live and abs(now - newest) < NEAR_SECONDS else newest
    return tuple(
        replace(query, streams=tuple(_lagging(each, ahead) for each in query.streams))
        for query in queries
    )


def _lagging(stream: StreamProgress, ahead: float) -> StreamProgress:
    at = _seconds(stream.mark)
    return replace(stream, lag_seconds=None if at is None else round(max(0.0, ahead - at), 6))


def _seconds(mark: Mark) -> float | None:
    if isinstance(mark, datetime):
        return (mark if mark.tzinfo else mark.replace(tzinfo=UTC)).timestamp()
    return None if mark is None else float(mark)
