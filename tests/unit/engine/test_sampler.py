"""Metrics are read by other threads while a run works: between its steps, and never at its cost."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.embedded import sampler
from lowwater.engines.embedded.sampler import Sampler
from lowwater.progress import lateness
from tests.unit.running import LONG


def in_background(function: Callable[[], Any]) -> tuple[threading.Thread, list[Any]]:
    """A thread that calls a function, and the list that gets its value, or its error."""
    found: list[Any] = []

    def call() -> None:
        try:
            found.append(function())
        except Exception as error:
            found.append(error)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    return thread, found


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")  # most of its rows are late
def test_metrics_asked_for_in_the_middle_of_a_step_are_those_of_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The histogram of a learned promise has grown in one column and not yet in the other."""
    source = lw.push({"ts": pl.Int64})
    run = lw.stream(source, name="s", time="ts", progress=lw.learned(0.9)).run(chunk_rows=100)
    looking: list[tuple[threading.Thread, list[Any]]] = []
    whole = lateness.longest_in

    def interrupted(bins: Any) -> Any:
        thread, found = in_background(run.metrics)
        thread.join(0.05)
        looking.append((thread, found))
        return whole(bins)

    monkeypatch.setattr(lateness, "longest_in", interrupted)
    source.send(pl.DataFrame({"ts": [at - (at % 7) * 40 for at in range(2_000)]}))
    source.close()
    assert run.await_termination(LONG)
    assert looking
    for thread, found in looking:
        thread.join(LONG)
        (metrics,) = found
        assert not isinstance(metrics, Exception), metrics
        assert metrics.stream("s").completeness[0].rows % 100 == 0


def test_a_run_that_sleeps_is_woken_to_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "PATIENCE", LONG)
    source = lw.push({"ts": pl.Int64})
    run = lw.stream(source, name="s", time="ts").run()
    thread, found = in_background(run.metrics)
    thread.join(LONG / 2)
    source.close()
    run.await_termination(LONG)
    assert [each.rows_out for each in found] == [0]


def test_a_step_that_takes_long_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampler, "PATIENCE", 0.01)
    blocked, go_on = threading.Event(), threading.Event()

    def sink(table: Any) -> None:
        blocked.set()
        assert go_on.wait(LONG)

    run = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts").run(sink=sink)
    assert blocked.wait(LONG)
    before = run.metrics()
    with monkeypatch.context() as broken:
        broken.setattr(run._engine, "vertices", None)  # reading in the middle of the step fails
        last = run.metrics()
    go_on.set()
    assert run.await_termination(LONG)
    assert [(each.stream("s").rows, each.rows_out) for each in (before, last, run.metrics())] == [
        (2, 0),
        (0, 0),
        (2, 2),
    ]


def test_a_sink_may_read_the_metrics_of_its_own_run() -> None:
    seen: list[int] = []
    source = lw.push({"ts": pl.Int64})
    run = lw.stream(source, name="s", time="ts").run(
        sink=lambda table: seen.append(run.metrics().stream("s").rows)
    )
    source.send([{"ts": 1}])
    source.close()
    assert run.await_termination(LONG)
    assert seen == [1]


def test_a_reading_that_fails_fails_for_the_reader_alone() -> None:
    wrong = [True]

    def take() -> int:
        if wrong[0]:
            raise IndexError("half a step")
        return 7

    taken: Sampler[int] = Sampler(take)
    taken.begin()
    thread, found = in_background(lambda: taken.read(lambda: None))
    while not found:
        taken.serve()
        thread.join(0.001)
    assert isinstance(found[0], IndexError)
    wrong.clear()
    wrong.append(False)
    taken.end()
    assert taken.read(lambda: None) == 7
