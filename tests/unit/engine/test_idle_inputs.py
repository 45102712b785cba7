"""Idle inputs of an order-preserving merge: none, heartbeats, on demand, latent.

::

    busy     0 1 2 3 ... 99 .
    sparse   0 . . . ... .  100
"""

from __future__ import annotations

import time
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.engine.scenes import SECOND, log, merged, stamped
from tests.unit.running import finished

BUSY, SPARSE = list(range(100)), [0, 100]


def test_without_idle_rule_rows_wait_for_the_slow_input() -> None:
    metrics = merged(BUSY, SPARSE).metrics()
    assert metrics.latency.longest == 99 * SECOND
    assert metrics.operator("merge").idle_share == 0.99
    assert metrics.queue_peak >= 99
    assert metrics.stream("sparse").enabling_timestamps == 0


def test_an_input_that_never_speaks_blocks_until_it_ends() -> None:
    metrics = merged(BUSY, []).metrics()
    assert metrics.rows_out == 100
    assert metrics.latency.longest == 0  # a log without rows ends at once
    metrics = merged(BUSY, [500]).metrics()
    assert metrics.latency.longest == 500 * SECOND


def test_an_input_that_never_speaks_is_bounded_by_the_clock() -> None:
    for idle in (lw.on_demand(behind_clock="3 s"), lw.heartbeat("1 s", behind_clock="3 s")):
        metrics = merged(BUSY, [500], idle=idle).metrics()
        assert metrics.latency.longest == 3 * SECOND
        assert metrics.late_rows == 0


def test_on_a_real_clock_a_log_is_bounded_by_its_own_arrival_times() -> None:
    # The log is of 1970, and the clock is not.
    times = [each / 20 for each in range(10)]
    busy, silent = (pl.DataFrame({"at": each, "ts": each}) for each in (times, [0.0, 3_000.0]))
    streams = [
        lw.stream(lw.replay(table, "at"), name=name, time="ts", idle=lw.on_demand(behind_clock=0))
        for name, table in (("busy", busy), ("silent", silent.tail(1)))
    ]
    run = streams[0].union(streams[1]).order_by().run(clock="wall", plan="in-order")
    while run.metrics().rows_out < len(times) - 1:
        time.sleep(0.01)
    run.stop()
    run.await_termination()
    assert run.metrics().late_rows == 0


def test_on_demand_external_stamps_are_last_time_plus_silence_minus_skew() -> None:
    # The row of second n can leave when 0 + τ - 2 >= n, that is at n + 2.
    metrics = merged(BUSY, SPARSE, idle=lw.on_demand("2 s")).metrics()
    assert metrics.latency.longest == 2 * SECOND
    assert metrics.latency.quantile(0.1) == metrics.latency.quantile(0.9)
    assert metrics.stream("sparse").enabling_timestamps > 0
    assert metrics.late_rows == 0


def test_without_skew_on_demand_stamps_unblock_at_once() -> None:
    metrics = merged(BUSY, SPARSE, idle=lw.on_demand()).metrics()
    assert metrics.latency.longest == 0
    assert metrics.operator("merge").idle_share == 0.0


def test_on_demand_internal_stamps_are_the_clock() -> None:
    run = stamped(BUSY, SPARSE, "internal", idle=lw.on_demand())
    metrics = run.metrics()
    assert metrics.latency.longest == 0
    assert 1 <= metrics.stream("sparse").enabling_timestamps <= len(BUSY)
    times = run.results()["ts"].to_pylist()
    assert times == sorted(times)


def test_stamps_are_made_only_when_something_waits() -> None:
    metrics = merged(BUSY, SPARSE, plan="out-of-order", idle=lw.on_demand()).metrics()
    assert [each.enabling_timestamps for each in metrics.streams] == [0, 0]
    together = merged(BUSY, BUSY, idle=lw.on_demand("5 s")).metrics()
    assert [each.enabling_timestamps for each in together.streams] == [0, 0]


def test_a_busy_input_is_never_asked() -> None:
    metrics = merged(BUSY, SPARSE, idle=lw.on_demand()).metrics()
    assert metrics.stream("busy").enabling_timestamps == 0


def test_heartbeats_come_at_their_period_whether_needed_or_not() -> None:
    metrics = merged(BUSY, SPARSE, idle=lw.heartbeat("10 s")).metrics()
    assert metrics.latency.longest == 9 * SECOND
    assert metrics.stream("sparse").heartbeats in (9, 10)
    assert metrics.stream("sparse").enabling_timestamps == 0
    useless = merged(BUSY, SPARSE, plan="out-of-order", idle=lw.heartbeat("10 s")).metrics()
    assert useless.stream("sparse").heartbeats in (9, 10)


def test_a_heartbeat_with_skew_promises_that_much_less() -> None:
    metrics = merged(BUSY, SPARSE, idle=lw.heartbeat("10 s", skew="3 s")).metrics()
    assert metrics.latency.longest == 12 * SECOND


def test_latent_rows_pass_at_once() -> None:
    metrics = stamped(BUSY, SPARSE, "latent").metrics()
    assert metrics.latency.longest == 0
    assert metrics.queue_peak <= 2
    assert [each.enabling_timestamps for each in metrics.streams] == [0, 0]


def test_on_demand_holds_fewer_rows_than_waiting() -> None:
    waiting = merged(BUSY, SPARSE).metrics()
    asking = merged(BUSY, SPARSE, idle=lw.on_demand("2 s")).metrics()
    assert asking.queue_peak < 10 < waiting.queue_peak
    assert asking.operator("merge").state_rows_peak < waiting.operator("merge").state_rows_peak


def test_rows_leave_in_order_whatever_the_idle_rule() -> None:
    for idle in (None, lw.on_demand("2 s"), lw.heartbeat("7 s", skew="1 s")):
        run = merged(BUSY, SPARSE, idle=idle)
        assert run.results()["ts"].to_pylist() == [0, *range(101)]


def test_simultaneous_rows_on_all_inputs_leave_at_once() -> None:
    metrics = merged(BUSY, BUSY).metrics()
    assert metrics.rows_out == 2 * len(BUSY)
    assert metrics.latency.longest == 0
    assert metrics.operator("merge").idle_share == 0.0


def test_a_window_over_an_idle_union_is_answered_on_demand() -> None:
    # The window [0, 10) of the busy input waits for the sparse one to pass 10.
    def answered(**options: Any) -> tuple[list[int], lw.Run]:
        one = lw.stream(log(BUSY), name="busy", time="ts", **options)
        two = lw.stream(log(SPARSE), name="sparse", time="ts", **options)
        out: list[int] = []
        query = one.union(two).window("10 s").agg(last="max(ts)")
        run = finished(query, tick=0, sink=lambda table: out.extend(table["last"].to_pylist()))
        return out, run

    waiting, _ = answered()
    asking, run = answered(idle=lw.on_demand())
    assert waiting == asking == [*range(9, 100, 10), 100]
    # Ten windows end before the sparse input speaks again; one stamp each is enough.
    assert 9 <= run.metrics().stream("sparse").enabling_timestamps <= 10


def test_a_group_of_three_times_asks_every_input_for_no_more_than_its_own_time() -> None:
    # Pairs of busy inputs meet the one row of the third; then that is silent for 500 seconds.
    def answered(**options: Any) -> tuple[list[tuple[int, int]], lw.Run]:
        streams = [
            lw.stream(log(rows), name=name, time="ts", jump=None, **options)
            for name, rows in (("one", BUSY), ("two", BUSY), ("silent", [0, 500]))
        ]
        one, two, three = (each.map(**{f"t{at}": "ts"}) for at, each in enumerate(streams))
        pairs = one.select("t0").join(two.select("t1"), within=20)
        triples = pairs.join(three.select("t2"), within=30, times=("t0", "t2"))
        query = triples.group_by("t0", "t1", "t2").agg(n="count(*)")
        run = finished(query, tick=0)
        return run.results().select(["t0", "t1"]).to_pylist(), run

    waiting, run = answered()
    longest = run.metrics().operator("group").state_rows_peak
    asking, run = answered(idle=lw.on_demand())
    assert sorted(map(repr, waiting)) == sorted(map(repr, asking))
    metrics = run.metrics()
    # A group of (t, u, 0) leaves when the busy inputs have passed t and u and the silent one 0: one
    # stamp is enough, and what is held are groups of times the busy inputs have not both passed.
    assert metrics.stream("silent").enabling_timestamps == 1
    assert metrics.operator("group").state_rows_peak < 100 < longest


# ---- groups that fall silent -----------------------------------------------------------------

# busy     0 1 2 3 ... 99 .
# silent   0 . . . ... .  100


def devices(name: str = "devices", **options: Any) -> lw.Stream:
    rows = [(0, "silent"), *((at, "busy") for at in BUSY), (100, "silent")]
    frame = pl.DataFrame([(at, at, g) for at, g in rows], ["arrived", "ts", "g"], orient="row")
    source = lw.replay(frame, "arrived")
    return lw.stream(source, name=name, time="ts", groups="g", jump=None, **options)


def answers(query: lw.Stream) -> tuple[list[tuple[Any, ...]], lw.Run]:
    out: list[tuple[Any, ...]] = []
    sink = lambda table: out.extend(tuple(row.values()) for row in table.to_pylist())  # noqa: E731
    return out, finished(query, tick=0, sink=sink)


@pytest.mark.parametrize("contract", [lw.ordered(), lw.within_rows(0)], ids=["columns", "channels"])
def test_windows_of_a_silent_group_are_answered_on_demand(contract: Any) -> None:
    counted = devices(progress=contract).window("10 s").group_by("g").agg(n="count(*)")
    waiting, _ = answers(counted)
    asked = devices(progress=contract, idle=lw.on_demand("2 s"))
    asking, run = answers(asked.window("10 s").group_by("g").agg(n="count(*)"))
    assert sorted(waiting) == sorted(asking)
    # The window [0, 10) of the silent group is answered at 12, before the busy one reaches 20.
    assert waiting.index((0, 10, "silent", 1)) >= 9
    assert asking.index((0, 10, "silent", 1)) == 1
    metrics = run.metrics()
    assert metrics.late_rows == 0
    assert metrics.stream("devices").enabling_timestamps == 1


def test_sessions_of_a_silent_group_are_answered_on_demand() -> None:
    asked = devices(idle=lw.on_demand())
    out, run = answers(asked.session("5 s").group_by("g").agg(n="count(*)"))
    assert out[0] == (0, 5, "silent", 1)
    assert run.metrics().late_rows == 0


def test_a_window_that_slides_on_change_empties_while_nothing_comes() -> None:
    rows = pl.DataFrame({"at": [0.0, 100.0], "ts": [0, 100]})
    stream = lw.stream(
        lw.replay(rows, arrival="at"), name="s", time="ts", jump=None, idle=lw.on_demand()
    )
    tables: list[list[tuple[Any, ...]]] = []
    counted = stream.window("10 s", slide="on change").agg(n="count(*)")
    run = finished(
        counted, tick=0, sink=lambda t: tables.append([tuple(r.values()) for r in t.to_pylist()])
    )
    assert tables[:2] == [[(-10, 0, 1)], [(0, 10, 0)]]  # by themselves, before the row at 100
    assert [row for table in tables[2:] for row in table] == [(90, 100, 1), (100, 110, 0)]
    assert run.metrics().stream("s").enabling_timestamps >= 2


def test_rows_of_a_silent_group_that_miss_their_partner_leave_on_demand() -> None:
    left, right = devices("left"), devices("right", idle=lw.on_demand())
    shifted = right.select(ts="ts + 50", g="g")
    out, run = answers(left.join(shifted, on="g", within="1 s", how="anti"))
    assert out[:2] == [(0, 0, "silent"), (0, 0, "busy")]
    assert run.metrics().late_rows == 0


def test_a_heartbeat_answers_for_silent_groups() -> None:
    beating = devices(idle=lw.heartbeat("3 s"))
    out, run = answers(beating.window("10 s").group_by("g").agg(n="count(*)"))
    assert out.index((0, 10, "silent", 1)) == 1
    assert run.metrics().stream("devices").heartbeats > 30


@pytest.mark.parametrize("order", ["sync-filter", "filter-order", "adaptive"])
@pytest.mark.parametrize("how", ["inner", "left"])
def test_a_silent_input_holds_no_ordered_results_back(order: Any, how: Any) -> None:
    """Each busy row meets the sparse one of second 0; nothing else would let them leave.

    They leave a tick after the skew of 2 s: of rows of one time the second input's come first.
    """

    def longest(**idle: Any) -> int:
        sparse = lw.stream(log(SPARSE), name="sparse", time="ts", **idle)
        busy = lw.stream(log(BUSY), name="busy", time="ts")
        pairs = busy.join(sparse, within=("200 s", "0 s"), how=how, order=order)
        return finished(pairs.select("arrived"), tick=0).metrics().latency.longest

    assert longest() >= 99 * SECOND
    asked = longest(idle=lw.on_demand("2 s"))
    assert asked <= 3 * SECOND


@pytest.mark.parametrize("kind", [{"channel": "k", "channels": [1, 2]}, {"groups": "k"}])
def test_in_batches_a_silent_channel_is_stamped_while_others_send(kind):
    rows = pl.DataFrame({"ts": [1, 2, 1, 1, 3, 4, 5, 6], "k": [1, 1, 2, 2, 1, 1, 1, 1]})
    source = Unordered(rows, [4, 2, 2])  # channel 2 is in the first batch alone
    idle = lw.on_demand(skew="0 seconds")
    stream = lw.stream(source, name="s", time="ts", idle=idle, **kind)
    local = LocalSpark(stream.window("1 second").agg(n="count(*)"), seed=1)
    local._schedule.random = lambda: 0.0  # rows and a tick in every batch
    local.results()
    first, *later, _ = [sorted(each["window_start"].to_list()) for each in local.answers]
    assert first == []
    assert later == [[1, 2, 3], [4, 5]]


@pytest.mark.parametrize("progress", [lw.within("1 s"), lw.learned(0.5)])
def test_groups_get_timestamps_on_demand_beside_a_timer(progress: Any) -> None:
    rows = pl.DataFrame(
        {
            "arrived": [0.0, 0.0, 1.0, 1.0, 40.0, 90.0],
            "ts": [0, 0, 1, 1, 40, 90],
            "k": ["a", "b", "c", "d", "a", "b"],
        }
    )
    stream = lw.stream(
        lw.replay(rows, "arrived"),
        name="s",
        time="ts",
        groups="k",
        progress=progress,
        idle=lw.on_demand("2 s"),
        punctuate=lw.timer("15 s"),
    )
    windows = stream.window("10 s").group_by("k").agg(n="count(*)")
    run = finished(windows)
    assert run.metrics().stream("s").enabling_timestamps > 0
    answers = pl.DataFrame(run.results()).sort("window_start", "k")
    assert answers["k"].to_list() == ["a", "b", "c", "d", "a", "b"]
    assert answers["n"].to_list() == [1] * 6
