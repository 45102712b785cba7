"""Metrics are declared once; every view shows those that are there, on both engines."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

import lowwater as lw
from lowwater.dashboard.history import STATE, VERSION, Saved, read_saved
from lowwater.dashboard.observation import Observation, WatchedQuery
from lowwater.dashboard.server import exposition
from lowwater.dashboard.state import declarations, query_state
from lowwater.errors import OptionError
from lowwater.joins.oblivious.estimates import ACCURACY, FOUND, LOST
from lowwater.metrics import CATALOGUE, RunMetrics, plain, restored
from lowwater.metrics.codec import DECLARING
from lowwater.metrics.streams import CHANNEL_LAG, LAG, StreamMetrics
from lowwater.metrics.values import ACTIVE, OperatorMetrics
from lowwater.operators.kernel import Host, Kernel
from lowwater.operators.metric import Max, Mean, Metric, Ratio, Readings, Sum, Texts, combined
from lowwater.pipeline.progress import PipelineProgress, QueryProgress, StreamProgress
from lowwater.plan.physical.planner import compile_plan
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Punctuation
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.running import finished

CLOCK = 1_700_000_000.0
ROWS = pl.DataFrame({"ts": list(range(60)), "k": [n % 5 for n in range(60)]})


def stream(name: str, rows: pl.DataFrame = ROWS, **options: Any) -> lw.Stream:
    return lw.stream(lw.replay(rows), name=name, time="ts", **options)


def ordered(order: str) -> lw.Stream:
    return stream("a").join(stream("b"), on=["k"], within="5 seconds", order=order)


def unpromised(**options: Any) -> lw.Stream:
    a, b = (stream(name, progress=lw.unpromised()) for name in "ab")
    return a.join(b, on="ts", **options)


def updates(**options: Any) -> lw.Stream:
    return stream("u", update_key="k", **options)


def windows(**options: Any) -> lw.Stream:
    return updates(**options).window("5 seconds").group_by("k").agg(n="count(*)")


QUERIES: Mapping[str, Callable[[], lw.Stream]] = {
    "sync-filter": lambda: ordered("sync-filter"),
    "filter-order": lambda: ordered("filter-order"),
    "adaptive": lambda: ordered("adaptive"),
    "oblivious": unpromised,
    "oblivious with a cap": lambda: unpromised(memory=64_000),
    "oblivious, with unmatched rows": lambda: unpromised(how="left"),
    "update queue": updates,
    "update queue that completes": lambda: updates(complete_within="1 second"),
    "update queue that expires": lambda: updates(expire="10 seconds"),
    "update queue with targets": lambda: updates(fresh_within="1 hour"),
    "update windows": windows,
    "appended windows": lambda: windows(schedule="append"),
    "learned": lambda: stream("s", progress=lw.learned(0.9)).window("5 seconds").agg(n="count(*)"),
    "channels": lambda: stream("s", channel="k").window("5 seconds").agg(n="count(*)"),
}
REPORTING = [name for name in QUERIES if name not in ("learned", "channels")]


# ---- declarations ------------------------------------------------------------------------------


def test_every_metric_has_a_name_of_its_own_and_says_what_it_is() -> None:
    declared = [
        each for module in DECLARING for each in vars(module).values() if isinstance(each, Metric)
    ]
    by_name: dict[str, set[int]] = {}
    for each in declared:
        by_name.setdefault(each.name, set()).add(id(each))
    assert {name: len(each) for name, each in by_name.items() if len(each) > 1} == {}
    for each in CATALOGUE.values():
        assert re.fullmatch("[a-z][a-z0-9_]*", each.name)
        assert each.words
        assert each.help.endswith(".")
        assert (
            (each.kind is str) == (each.unit in ("state", "text")) == isinstance(each.rule, Texts)
        )


def test_every_metric_that_a_kernel_reports_is_in_the_catalogue() -> None:
    for name in REPORTING:
        for operator in compile_plan(QUERIES[name]().node).kernels:
            for metric in operator.build(MemoryStore(), Host()).metrics():
                assert metric.name in CATALOGUE, f"DECLARING has not the module of {metric.name}"
                assert CATALOGUE[metric.name] == metric.of()


# ---- combining ---------------------------------------------------------------------------------


def reporting(query: lw.Stream) -> tuple[Kernel, Callable[[], Kernel]]:
    """The kernel of a query that reports metrics, and how to make another one."""
    builds = (each.build for each in compile_plan(query.node).kernels)
    build = next(each for each in builds if each(MemoryStore(), Host()).metrics())
    return build(MemoryStore(), Host()), lambda: build(MemoryStore(), Host())


@pytest.mark.parametrize("name", REPORTING)
@given(seed=st.integers(0, 10_000), buckets=st.integers(1, 4), half=st.booleans())
def test_buckets_combine_to_what_one_kernel_with_all_rows_reports(
    name: str, seed: int, buckets: int, half: bool
) -> None:
    """Rows are spread by key; what is declared as exact is the same for any number of buckets."""
    chance = random.Random(seed)
    whole, another = reporting(QUERIES[name]())
    parts = [another() for _ in range(buckets)]
    key = "ts" if "oblivious" in name else "k"
    rows = ROWS[: chance.randint(1, ROWS.height)]
    for at in range(0, rows.height, 7):
        chunk = rows[at : at + 7]
        for port in range(whole.ports):
            whole.on_chunk(port, chunk)
            for number, part in enumerate(parts):
                mine = chunk.filter(pl.col(key) % buckets == number)
                if mine.height:
                    part.on_chunk(port, mine)
        if half:
            for port in range(whole.ports):
                for kernel in (whole, *parts):
                    kernel.on_punctuation(port, Punctuation.linear("ts", at))
    together, alone = combined([part.metrics() for part in parts]), whole.metrics()
    for metric, value in alone.items():
        if metric.rule.exact and metric in together:
            assert together[metric] == pytest.approx(value), metric
    greatest = [each for each in together if isinstance(each.rule, Max)]
    for metric in greatest:
        assert together[metric] == max(p.metrics()[metric] for p in parts if metric in p.metrics())


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=6))
def test_a_ratio_is_that_of_the_sums_and_no_mean_of_ratios(counts: list[tuple[int, int]]) -> None:
    def readings(found: int, lost: int) -> Readings:
        share = found / (found + lost) if found + lost else 1.0
        return Readings({FOUND: found, LOST: float(lost), ACCURACY: share})

    found, lost = (sum(each[at] for each in counts) for at in (0, 1))
    assert combined([readings(*each) for each in counts]) == readings(found, lost)


def values_of(metric: Metric[Any]) -> st.SearchStrategy[Any]:
    if metric.kind is str:
        return st.sampled_from("abc")
    return st.integers(0, 10**9) if metric.kind is int else st.floats(0, 1e9)


@pytest.mark.parametrize("metric", CATALOGUE.values(), ids=lambda each: each.name)
@given(data=st.data())
def test_the_rule_of_a_metric_gives_what_it_says(metric: Metric[Any], data: Any) -> None:
    values = data.draw(st.lists(values_of(metric), min_size=1, max_size=5))
    match metric.rule:
        case Ratio():
            return  # needs both sums: tested above
        case Sum():
            expected: Any = sum(values)
        case Max():
            expected = max(values)
        case Mean():
            expected = sum(values) / len(values)
        case Texts():
            same = len(set(values)) == 1
            found = combined([Readings({metric: each}) for each in values])[metric]
            assert found == values[0] if same else all(f"{v} (" in found for v in values)
            return
    found = combined([Readings({metric: each}) for each in values])[metric]
    assert found == pytest.approx(expected)
    assert type(found) is metric.kind


# ---- as JSON -----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", CATALOGUE.values(), ids=lambda each: each.name)
@given(data=st.data())
def test_a_value_survives_json_with_its_type(metric: Metric[Any], data: Any) -> None:
    inputs = data.draw(st.lists(st.integers(0, 12), max_size=2))
    readings = Readings({metric.of(*inputs): data.draw(values_of(metric))})
    again = restored(Readings, json.loads(json.dumps(plain(readings))))
    assert again == readings
    assert {m: type(value) for m, value in again.items()} == {metric.of(*inputs): metric.kind}


@pytest.mark.parametrize("name", QUERIES)
def test_metrics_of_a_run_survive_json(name: str) -> None:
    metrics = finished(QUERIES[name]()).metrics()
    for kind, values in ((OperatorMetrics, metrics.operators), (StreamMetrics, metrics.streams)):
        for each in values:
            assert restored(kind, json.loads(json.dumps(plain(each)))) == each


def test_a_channel_that_is_named_by_bytes_keeps_its_name_in_batches() -> None:
    rows = ROWS.with_columns(k=pl.col("k").cast(pl.String).cast(pl.Binary))
    source = Unordered(rows.head(8), [5, 3])
    local = LocalSpark(lw.stream(source, name="s", time="ts", channel="k").order_by(), seed=1)
    local.results()
    names = {each.channel for each in local.metrics().stream("s").channels}
    assert names == {"b'0'", "b'1'", "b'2'", "b'3'", "b'4'"}


def test_a_name_of_another_version_is_left_out() -> None:
    assert restored(Readings, {"join_accuracy": 0.5, "join_unheard_of[0]": 3}) == {ACCURACY: 0.5}


# ---- in every view -----------------------------------------------------------------------------


def embedded(query: lw.Stream) -> RunMetrics:
    return finished(query).metrics()


def spark(query: lw.Stream) -> RunMetrics:
    run = LocalSpark(query, 3, 2)
    run.results()
    return run.metrics()


ENGINES = {"embedded": embedded, "spark": spark}


class Over:
    """The handle of a run that has ended."""

    active, exception = False, None


def present(metrics: RunMetrics, specs: Mapping[str, Any]) -> Iterator[tuple[str, Metric[Any]]]:
    """Everything that was measured, with the place it is of."""
    for metric in metrics.all_readings:
        yield "", metric
    for stream_ in metrics.streams:
        for metric in stream_.all_readings(specs[stream_.name].time):
            yield stream_.name, metric
    for operator in metrics.operators:
        for metric in operator.all_readings:
            yield operator.title, metric


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", QUERIES)
def test_every_view_shows_each_metric_that_is_there_and_no_other(name: str, engine: str) -> None:
    query = QUERIES[name]()
    metrics = ENGINES[engine](query)
    plan, over = compile_plan(query.node), Over()
    seen = Observation(WatchedQuery("1", "q", "kept", plan, over, False), metrics, CLOCK)  # type: ignore[arg-type]
    specs = seen.query.specs
    expected = {(place, metric.id) for place, metric in present(metrics, specs)}
    assert len(expected) > 20

    state = query_state(seen)
    page = {("", id_) for id_ in state["metrics"]} - {("", ACTIVE.id)}
    page |= {(each["name"], id_) for each in state["streams"] for id_ in each["metrics"]}
    operators = [each for each in state["nodes"] if each["kind"] == "operator"]
    page |= {(each["id"], id_) for each in operators for id_ in each["metrics"]}
    assert {each for each in page if each[1] != LAG.id} == expected
    declared = declarations([state])
    assert {id_.partition("[")[0] for _, id_ in page} <= set(declared)

    text = exposition({"queries": [state], "declared": declared}).decode()
    families = {each.name for each in text_string_to_metric_families(text)}
    told = {each.removeprefix("lowwater_").removesuffix("_info") for each in families}
    names = {id_.partition("[")[0] for _, id_ in page} | {ACTIVE.name}
    prose = {each for each in names if CATALOGUE[each].unit == "text"}
    assert told - {CHANNEL_LAG.name} == names - prose

    streams = tuple(StreamProgress(each, specs[each.name], None) for each in metrics.streams)
    progress = QueryProgress(1, 1, "console", False, metrics, streams)
    (line,) = json.loads(json.dumps(PipelineProgress(1.0, (progress,)).as_json()))["queries"]
    command = {("", id_) for id_ in line["metrics"]}
    command |= {(each["name"], id_) for each in line["streams"] for id_ in each["metrics"]}
    command |= {(each["operator"], id_) for each in line["operators"] for id_ in each["metrics"]}
    assert command == expected


def test_what_an_engine_does_not_measure_is_absent() -> None:
    query = QUERIES["channels"]()
    here, there = embedded(query), spark(query)
    assert (there.queue_peak, there.memory_peak) == (None, None)
    for operator in there.operators:
        assert (operator.queue, operator.queue_peak, operator.busy_seconds) == (None,) * 3
    assert [each.idle_share for each in there.operators] == [None] * len(there.operators)
    assert all(each.waiting_rows is None for each in (*here.streams, *there.streams))
    assert all(each.busy_seconds is not None for each in here.operators)


# ---- saved metrics -----------------------------------------------------------------------------


def test_metrics_of_another_form_are_refused_and_those_of_ours_read(tmp_path: Path) -> None:
    Saved(tmp_path).put({"version": VERSION, "queries": []})
    assert read_saved(tmp_path)[0]["version"] == VERSION
    (tmp_path / STATE).write_text(json.dumps({"version": 1, "queries": []}))
    with pytest.raises(
        OptionError, match="have format 1, and this version of lowwater reads format 2"
    ):
        read_saved(tmp_path)


def test_prometheus_gets_no_metric_that_is_not_finite() -> None:
    query = stream("s", update_key="k", weights={0: 1e308, 1: 1e308})
    run = finished(query, charge=lw.per_row("10 ms"))
    watched = WatchedQuery("1", "query", "console", compile_plan(query.node), run, False)
    state = query_state(Observation(watched, run.metrics(), CLOCK))
    (queue,) = (each for each in state["nodes"] if each["kind"] == "operator")
    assert queue["metrics"]["updates_weight"] is None
    text = exposition({"queries": [state], "declared": declarations([state])}).decode()
    assert "updates_keys" in text
    assert "updates_weight{" not in text
