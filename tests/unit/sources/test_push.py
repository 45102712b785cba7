"""Live sources: rows pushed from the program, results while it runs."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from datetime import datetime
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from tests.unit.running import LONG

SCHEMA = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}


def eventually(true: Callable[[], bool]) -> None:
    """Wait until something is true; how long it takes does not matter."""
    end = time.monotonic() + LONG
    while not true():
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.002)


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of a run whose sink blocks are those taken last, at once."""
    monkeypatch.setattr("lowwater.engines.embedded.sampler.PATIENCE", 0.05)


@contextmanager
def running(query: lw.Stream, **options: Any) -> Iterator[lw.Run]:
    """A live run that is stopped whatever happens."""
    run = query.run(**options)
    try:
        yield run
    finally:
        run.stop()


def sums(source: Any, **options: Any) -> lw.Stream:
    stream = lw.stream(source, name="live", time="ts", **options)
    return stream.window("10 s").group_by("k").agg(total="sum(v)")


def test_results_appear_once_the_rows_pass_the_window_without_closing() -> None:
    source = lw.push(SCHEMA)
    with running(sums(source)) as run:
        source.send([{"ts": 1, "k": "a", "v": 2}, {"ts": 3, "k": "a", "v": 5}])
        source.send({"ts": 12, "k": "a", "v": 1})
        eventually(lambda: run.results().num_rows == 1)
        assert run.results()["total"].to_pylist() == [7]
        assert run.active


def test_a_promise_beside_the_rows_completes_a_window() -> None:
    source = lw.push(SCHEMA)
    with running(sums(source)) as run:
        source.send({"ts": 1, "k": "a", "v": 2})
        eventually(lambda: run.metrics().stream("live").rows == 1)
        assert run.results().num_rows == 0
        source.punctuate("ts", 10)
        eventually(lambda: run.results().num_rows == 1)
        assert run.metrics().stream("live").marks["ts"] == 10


def test_closing_answers_everything_and_ends_the_run() -> None:
    source = lw.push(SCHEMA)
    run = sums(source).run()
    source.send({"ts": 1, "k": "a", "v": 2})
    source.close()
    assert run.await_termination(LONG)
    assert not run.active
    assert run.results()["total"].to_pylist() == [2]


def test_stop_ends_a_run_that_waits() -> None:
    source = lw.push(SCHEMA)
    run = sums(source).run()
    assert not run.await_termination(0)
    run.stop()
    assert not run.active


def test_stop_ends_a_run_in_the_middle_and_keeps_what_it_has() -> None:
    source = lw.push(SCHEMA)
    run = lw.stream(source, time="ts").run()
    source.send({"ts": 1, "k": "a", "v": 2})
    eventually(lambda: run.results().num_rows == 1)
    run.stop()
    assert run.results()["v"].to_pylist() == [2]
    run.stop()  # once more is harmless


@pytest.mark.parametrize(
    "rows",
    [
        pl.DataFrame({"ts": [1], "k": ["a"], "v": [2]}),
        pa.table({"ts": [1], "k": ["a"], "v": [2]}),
        pa.table({"ts": [1], "k": ["a"], "v": [2]}).to_batches()[0],
        [{"ts": 1, "k": "a", "v": 2}],
        {"ts": 1, "k": "a", "v": 2},
    ],
)
def test_rows_come_as_frames_tables_or_dicts(rows: Any) -> None:
    source = lw.push(SCHEMA)
    run = lw.stream(source, time="ts").run()
    source.send(rows)
    source.close()
    assert run.await_termination(LONG)
    assert run.results().to_pylist() == [{"ts": 1, "k": "a", "v": 2}]


def test_rows_of_the_wrong_type_are_refused_by_send() -> None:
    with pytest.raises(lw.BadInput, match="column 'ts' is Int64, and this is String"):
        lw.push(SCHEMA).send({"ts": "noon", "k": "a", "v": 2})
    with pytest.raises(lw.BadInput, match="column 'v' is Int64, and this is Float64"):
        lw.push(SCHEMA).send({"ts": 1, "k": "a", "v": 2.5})


def test_an_unknown_column_is_refused_by_send() -> None:
    with pytest.raises(lw.BadInput, match=r"unknown column 'tss'\. Did you mean 'ts'"):
        lw.push(SCHEMA).send({"tss": 1, "k": "a", "v": 2})


def test_a_frame_that_lacks_a_column_is_refused_by_send() -> None:
    with pytest.raises(lw.BadInput, match="rows lack column 'k'"):
        lw.push(SCHEMA).send(pl.DataFrame({"ts": [1]}))


def test_nothing_can_be_sent_once_the_run_has_ended() -> None:
    source = lw.push(SCHEMA)
    lw.stream(source, name="live", time="ts").run().stop()
    with pytest.raises(lw.StreamError, match="the run that read this source has ended"):
        source.send({"ts": 1, "k": "a", "v": 2})


def test_nothing_can_be_sent_after_the_end() -> None:
    source = lw.push(SCHEMA)
    source.close()
    with pytest.raises(lw.StreamError, match="was closed; nothing can be sent any more"):
        source.send({"ts": 1, "k": "a", "v": 2})


def test_a_live_source_feeds_one_run_only() -> None:
    source = lw.push(SCHEMA)
    with running(sums(source)), pytest.raises(lw.StreamError, match="can feed one run only"):
        sums(source).run()


def test_a_live_source_needs_the_wall_clock() -> None:
    with pytest.raises(lw.StreamError, match="a live source needs the wall clock"):
        sums(lw.push(SCHEMA)).run(clock="virtual")


def test_large_pushes_are_cut_to_the_chunk_size_and_lose_nothing() -> None:
    source = lw.push({"ts": pl.Int64})
    sizes: list[int] = []
    run = lw.stream(source, time="ts").run(chunk_rows=10, sink=lambda t: sizes.append(t.num_rows))
    source.send(pl.DataFrame({"ts": range(25)}))
    source.close()
    assert run.await_termination(LONG)
    assert sizes == [10, 10, 5]


@pytest.mark.parametrize(
    ("attribute", "value"), [("tz", 5), ("ts", datetime(2024, 1, 1)), ("ts", None)]
)
def test_a_promise_that_makes_no_sense_is_refused(attribute: str, value: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"unknown column|a promise on 'ts' is of type Int64"):
        lw.push(SCHEMA).punctuate(attribute, value)


def test_a_promise_on_another_column_fails_the_run() -> None:
    source = lw.push(SCHEMA)
    source.punctuate("v", 5)
    run = sums(source).run()
    with pytest.raises(lw.OptionError, match="takes no promises on 'v'"):
        run.await_termination(LONG)


def test_a_promise_without_meaning_is_refused_where_it_is_made_and_the_run_goes_on() -> None:
    source = lw.push(SCHEMA)
    with running(sums(source)) as run:
        with pytest.raises(lw.OptionError, match="takes no promises on 'v'"):
            source.punctuate("v", 5)
        with pytest.raises(lw.OptionError, match=r"no channels, so nothing .* channel='device'"):
            source.punctuate("ts", 5, channel="a")
        with pytest.raises(lw.OptionError, match=r"no groups, so nothing .* groups='device'"):
            source.punctuate("ts", 5, group="a")
        source.send(row(1))
        source.close()
        assert run.await_termination(LONG)
        assert run.results().num_rows == 1


def test_late_rows_of_a_live_run_are_set_aside_while_it_runs() -> None:
    source = lw.push(SCHEMA)
    with running(lw.stream(source, name="live", time="ts")) as run:
        source.send({"ts": 9, "k": "a", "v": 1})
        source.send({"ts": 3, "k": "a", "v": 2})
        eventually(lambda: run.late_rows().num_rows == 1)
        assert run.late_rows()["ts"].to_pylist() == [3]


def test_an_idle_internal_input_is_unblocked_on_demand_by_the_wall_clock() -> None:
    busy, idle = lw.push({"v": pl.Int64}), lw.push({"v": pl.Int64})
    one = lw.stream(busy, name="busy", time="ts", stamp="internal", idle=lw.on_demand())
    two = lw.stream(idle, name="idle", time="ts", stamp="internal", idle=lw.on_demand())
    with running(one.union(two), plan="in-order") as run:
        busy.send({"v": 1})
        eventually(lambda: run.results().num_rows == 1)
        assert run.metrics().stream("idle").enabling_timestamps >= 1
        assert run.metrics().stream("idle").rows == 0


def test_rows_and_promises_are_judged_in_the_order_they_were_sent() -> None:
    source = lw.push(SCHEMA)
    source.send({"ts": 10, "k": "a", "v": 1})
    source.punctuate("ts", 20)
    source.send({"ts": 15, "k": "a", "v": 2})  # breaks the promise, whatever the timing
    source.send({"ts": 20, "k": "a", "v": 3})
    source.close()
    run = lw.stream(source, time="ts", progress=lw.within("1 day")).run()
    assert run.await_termination(LONG)
    assert run.results()["v"].to_pylist() == [1, 3]
    assert run.late_rows()["v"].to_pylist() == [2]


# ---- how much may wait ---------------------------------------------------------------------------


def row(at: int) -> dict[str, Any]:
    return {"ts": at, "k": "a", "v": 1}


def test_without_a_run_a_full_source_says_so_and_takes_nothing() -> None:
    source = lw.push(SCHEMA, limit=3)
    source.send([row(1), row(2), row(3)])
    with pytest.raises(lw.StreamError, match=r"3 rows wait .* limit of 3, and no run reads"):
        source.send(row(4))
    source.close()
    assert sums(source).collect().num_rows == 1


def test_a_push_above_the_limit_is_taken_alone() -> None:
    source = lw.push(SCHEMA, limit=2)
    source.send([row(at) for at in range(5)])
    assert source.waiting()[0] == 5
    with pytest.raises(lw.StreamError):
        source.send(row(5))


def test_a_full_source_may_fail_and_what_it_took_is_answered() -> None:
    source = lw.push(SCHEMA, limit=10, full="fail")
    taken = 0
    with running(sums(source)) as run:
        for at in range(2_000):
            with suppress(lw.StreamError):
                source.send(row(at))
                taken += 1
        source.close()
        run.await_termination()
        assert sum(run.results()["total"].to_pylist()) == taken


def test_a_sender_waits_for_the_run_and_no_row_is_lost() -> None:
    source = lw.push(SCHEMA, limit=4)
    with running(sums(source), sink=lambda table: None) as run:
        for at in range(300):
            source.send([row(at), row(at)])
            assert source.waiting()[0] <= 4
        source.close()
        run.await_termination()
        assert run.metrics().stream("live").rows == 600
        assert run.metrics().stream("live").waiting_rows == 0


@pytest.mark.parametrize("failing", [True, False])
def test_a_sender_that_waits_is_told_when_the_run_ends(failing: bool) -> None:
    source, go, errors = lw.push(SCHEMA, limit=2), threading.Event(), list[Exception]()

    def sink(table: pa.Table) -> None:
        go.wait(LONG)
        if failing:
            raise OSError("gone")

    def send() -> None:
        try:
            for at in range(0, 10_000, 10):
                source.send(row(at))
        except lw.StreamError as error:
            errors.append(error)

    run = sums(source).run(sink=sink)
    sender = threading.Thread(target=send)
    sender.start()
    blocked = run._engine.sink_call.blocked  # type: ignore[attr-defined]
    eventually(lambda: blocked(0.0) is not None and source.waiting()[0] == 2)
    metrics = run.metrics().stream("live")
    assert metrics.waiting_rows == 2
    assert metrics.waiting_bytes > 0
    if not failing:
        run._engine.stop()  # type: ignore[attr-defined]
    go.set()
    sender.join(LONG)
    assert "the run that read this source has ended" in str(errors[0])
    with pytest.raises(lw.SinkError) if failing else nullcontext():
        run.await_termination()


def test_a_run_that_feeds_itself_fails_instead_of_waiting_for_itself() -> None:
    source = lw.push(SCHEMA, limit=1)

    def sink(table: pa.Table) -> None:
        for at in range(100, 200):
            source.send(row(at))

    run = sums(source).run(sink=sink)
    source.send(row(1))
    source.punctuate("ts", 50)
    with pytest.raises(lw.StreamError, match="from within the run that reads them"):
        run.await_termination()


@pytest.mark.parametrize("options", [{"limit": 0}, {"limit": True}, {"full": "drop"}])
def test_a_limit_that_makes_no_sense_is_refused(options: Any) -> None:
    with pytest.raises(lw.OptionError):
        lw.push(SCHEMA, **options)


def test_stop_returns_and_says_which_sink_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowwater.engines.embedded.run.STOP_SECONDS", 0.05)
    source, go = lw.push(SCHEMA), threading.Event()

    def slow_sink(table: pa.Table) -> None:
        go.wait(LONG)

    run = sums(source).run(sink=slow_sink)
    source.send([row(1), row(20)])
    eventually(lambda: run._engine.sink_call.blocked(0.0) is not None)  # type: ignore[attr-defined]
    source.send(row(21))
    with pytest.warns(lw.StreamWarning, match=r"slow_sink took 1 rows .* has not returned"):
        assert not run.await_termination(0.0)
    with pytest.warns(lw.StreamWarning, match=r"slow_sink took 1 rows .*1 rows that came were not"):
        run.stop()
    assert run.active
    assert run.metrics().rows_out == 0
    with pytest.raises(lw.StreamError, match="has ended"):
        source.send(row(22))
    go.set()
    assert run.await_termination(LONG)
    assert run.metrics().rows_out == 1
    assert run.metrics().stream("live").waiting_rows == 1


@pytest.mark.parametrize(
    ("have", "want", "good", "bad"),
    [
        (pl.Int64, pl.Int8, [127, -128, None], [128]),
        (pl.Int64, pl.Float64, [2**53], [2**53 + 1]),
        (pl.Float64, pl.Float32, [0.1, 0.0, None], [1e300, 1e-300]),
        (pl.Datetime("ns"), pl.Datetime("us"), [datetime(2024, 1, 1, 0, 0, 0, 1)], []),
        (pl.String, pl.Enum(["a"]), ["a"], ["b"]),
    ],
)
def test_a_value_that_would_be_altered_is_refused_by_send(
    have: Any, want: Any, good: list[Any], bad: list[Any]
) -> None:
    source = lw.push({"v": want})
    source.send(pl.DataFrame({"v": pl.Series(good, dtype=have)}))
    taken = source.waiting()[0]
    assert taken == len(good)
    for value in bad:
        with pytest.raises(lw.BadInput, match=r"row 2 of those sent, column v: .* is no "):
            source.send(pl.DataFrame({"v": pl.Series([good[0], value], dtype=have)}))
    if have == pl.Datetime("ns"):
        with pytest.raises(lw.BadInput, match="is no TIMESTAMP"):
            source.send(pl.DataFrame({"v": pl.Series([1]).cast(have)}))
    assert source.waiting()[0] == taken
