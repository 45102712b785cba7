"""A state as Prometheus reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

CHANNELS = 100
"""Of how many channels of a stream, the furthest behind, the lag is told: each is a series."""

Line = tuple[tuple[str, ...], float | None]


def exposition(state: dict[str, Any]) -> bytes:
    """All numbers of a state, in the text format."""
    registry = CollectorRegistry()
    registry.register(_State(state))
    return generate_latest(registry)


class _State(Collector):
    """One state."""

    def __init__(self, state: dict[str, Any]):
        self._queries = state["queries"]

    def collect(self) -> Iterator[Metric]:
        """The families, one after the other."""
        yield self._gauge("query_active", "Whether the query runs.", [], self._of("active"))
        for name, words in (
            ("rows_out", "Rows answered, those in files that readers can see."),
            ("refused_rows", "Rows not let in, for any reason."),
        ):
            yield self._counter(name, words, [], self._of(name))
        for name, words in (
            ("rows_waiting", "Rows that wait in the sink for their file to be written."),
            ("state_rows", "Rows kept in state."),
            ("state_bytes", "Bytes of state."),
        ):
            yield self._gauge(name, words, [], self._of(name))
        yield from self._streams()
        yield from self._operators()
        yield from self._special()

    def _of(self, name: str) -> Iterator[Line]:
        for query in self._queries:
            yield (query["id"],), query.get(name)  # saved metrics may be older

    def _each(self, part: str, label: str, value: str) -> Iterator[Line]:
        for query in self._queries:
            for each in query[part]:
                yield (query["id"], each[label]), each.get(value)

    def _streams(self) -> Iterator[Metric]:
        for name, words in (
            ("rows", "Rows read."),
            ("late_rows", "Rows that were late."),
            ("timestamps", "Timestamps made on demand."),
            ("heartbeats", "Heartbeats made."),
        ):
            lines = self._each("streams", "name", name)
            yield self._counter(f"stream_{name}", words, ["stream"], lines)
        for name, words in (
            ("waiting_rows", "Rows that came and were not read yet."),
            ("waiting_bytes", "Bytes that they take."),
        ):
            lines = self._each("streams", "name", name)
            yield self._gauge(f"stream_{name}", words, ["stream"], lines)
        yield self._gauge(
            "stream_lag_seconds",
            "How far the mark of a stream is behind.",
            ["stream"],
            self._each("streams", "name", "lag"),
        )
        yield self._gauge(
            "channel_lag_seconds",
            f"The same of its channels, the {CHANNELS} furthest behind.",
            ["stream", "channel"],
            (
                ((query["id"], stream["name"], each["name"]), each["lag"])
                for query in self._queries
                for stream in query["streams"]
                for each in stream["channels"][:CHANNELS]
            ),
        )

    def _operators(self) -> Iterator[Metric]:
        for name, words in (
            ("rows_in", "Rows an operator took."),
            ("rows_out", "Rows it gave."),
        ):
            lines = self._each("nodes", "id", name)
            yield self._counter(f"operator_{name}", words, ["operator"], lines)
        for name, words in (
            ("state_rows", "Rows an operator keeps."),
            ("state_bytes", "Bytes it keeps."),
            ("idle", "Share of time in which it held something back and had no input."),
        ):
            lines = self._each("nodes", "id", name)
            yield self._gauge(f"operator_{name}", words, ["operator"], lines)

    def _special(self) -> Iterator[Metric]:
        for name, words in (
            ("staleness", "How long what is shown of a key is out of date, on average."),
            ("waiting", "Rows, or windows, that wait."),
        ):
            unit = "_seconds" if name == "staleness" else ""
            lines = self._each("updates", "operator", name)
            yield self._gauge(f"updates_{name}{unit}", words, ["operator"], lines)
        for name, words in (
            ("predicted", "Rows a join without a window should keep."),
            ("held", "Rows it keeps."),
        ):
            yield self._gauge(
                f"join_{name}_rows",
                words,
                ["operator", "input"],
                (
                    ((query["id"], join["operator"], each["name"]), each[name])
                    for query in self._queries
                    for join in query["joins"]
                    for each in join["inputs"]
                ),
            )
        last = ((q["id"], q["batches"][-1]) for q in self._queries if q["batches"])
        took = (((query,), batch["seconds"]) for query, batch in last)
        yield self._gauge("batch_seconds", "What the last batch took.", [], took)

    def _gauge(self, name: str, words: str, labels: list[str], lines: Iterable[Line]) -> Metric:
        family = GaugeMetricFamily(f"lowwater_{name}", words, labels=["query", *labels])
        return _filled(family, lines)

    def _counter(self, name: str, words: str, labels: list[str], lines: Iterable[Line]) -> Metric:
        family = CounterMetricFamily(f"lowwater_{name}", words, labels=["query", *labels])
        return _filled(family, lines)


def _filled(
    family: GaugeMetricFamily | CounterMetricFamily, lines: Iterable[Line]
) -> GaugeMetricFamily | CounterMetricFamily:
    for labels, value in lines:
        if value is not None:
            family.add_metric(list(labels), float(value))
    return family
