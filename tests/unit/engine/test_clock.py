"""Clocks: where they start, and that silence goes by time that passes, not by the time of day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.clock import VirtualClock, WallClock
from lowwater.stream.duration import SECOND
from tests.unit.running import finished, rows

EPOCH = datetime(1970, 1, 1)


def stamped(name: str, arrivals: list[float]) -> lw.Stream:
    log = pl.DataFrame({"at": arrivals}, schema={"at": pl.Float64})
    return lw.stream(lw.replay(log, "at"), name=name, time="ts", stamp="internal")


def counted(first: list[float], second: list[float], **options: object) -> dict[float, int]:
    """Rows of each one-minute window of two internally stamped streams, by its start in seconds."""
    windows = stamped("a", first).union(stamped("b", second)).window("1 minute").agg(n="count(*)")
    found = rows(windows, **options)
    return {(row["window_start"] - EPOCH).total_seconds(): row["n"] for row in found}


@pytest.mark.parametrize("shift", [0.0, -3.0, -60.0, -86_400.0, 1.0, 1_700_000_040.0])
@pytest.mark.parametrize("swapped", [False, True])
@pytest.mark.parametrize("tick", [None, 0, "7 s"])
def test_the_clock_starts_at_the_first_arrival_whatever_it_is(
    shift: float, swapped: bool, tick: str | int | None
) -> None:
    inputs = [[shift + second for second in (0, 1, 2, 3)], [shift + 60]]
    expected: dict[float, int] = {}
    for arrival in inputs[0] + inputs[1]:
        start = arrival // 60 * 60
        expected[start] = expected.get(start, 0) + 1
    if swapped:
        inputs.reverse()
    assert counted(*inputs, tick=tick) == expected


def test_arrivals_before_1970_take_the_time_that_lies_between_them() -> None:
    run = finished(stamped("a", [-100.0, -40.0]), tick=0)
    assert run.metrics().elapsed_seconds == 60


def test_a_virtual_clock_that_was_set_starts_no_earlier() -> None:
    clock = VirtualClock(start=10 * SECOND)
    clock.begin(3 * SECOND)
    assert clock.now() == 10 * SECOND
    clock.begin(30 * SECOND)
    assert clock.now() == 30 * SECOND


class Machine:
    """A machine's two clocks; the time of day can be set."""

    def __init__(self) -> None:
        self.time_of_day = int(datetime(2026, 1, 1, tzinfo=UTC).timestamp()) * SECOND
        self.passed = 5 * SECOND

    def run(self, length: timedelta) -> None:
        """Let time pass."""
        nanoseconds = int(length.total_seconds()) * SECOND
        self.time_of_day += nanoseconds
        self.passed += nanoseconds


@pytest.fixture
def machine() -> Machine:
    return Machine()


@pytest.mark.parametrize("jump", [timedelta(days=30), timedelta(days=-30), timedelta(seconds=-1)])
def test_a_time_of_day_that_is_set_during_a_run_moves_no_clock(
    machine: Machine, jump: timedelta
) -> None:
    clock = WallClock(lambda: machine.time_of_day, lambda: machine.passed)
    begun = clock.now()
    assert begun == machine.time_of_day
    readings = [begun]
    for moved in (jump, timedelta(), -jump, timedelta()):  # set wrongly, corrected later
        machine.time_of_day += int(moved.total_seconds()) * SECOND
        machine.run(timedelta(seconds=10))
        readings.append(clock.now())
    assert [later - begun for later in readings] == [n * 10 * SECOND for n in range(5)]
