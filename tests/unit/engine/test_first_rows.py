"""The first rows of independent inputs: simultaneous ones leave at once, one far ahead does not.

::

    a    5 . . .  105
    b    5 . . .  105
    out  5 5      105 105
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from lowwater.api import Stream
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.engine.scenes import SECOND, log
from tests.unit.running import finished

DAY = 86_400


def merged(a: list[int], b: list[int], at: list[int], **options: Any) -> lw.Run:
    """The union in order of two inputs, whose rows arrive at the same seconds."""
    one = lw.stream(log(at, a), name="a", time="ts", **options)
    two = lw.stream(log(at, b), name="b", time="ts")
    return finished(one.union(two), plan="in-order", tick=0)


def test_simultaneous_first_rows_leave_at_once() -> None:
    run = merged([5, 105], [5, 105], [0, 100])
    assert run.results()["ts"].to_pylist() == [5, 5, 105, 105]
    assert run.metrics().latency.longest == 0
    assert run.metrics().operator("merge").idle_share == 0.0


def test_first_rows_near_each_other_confirm_each_other() -> None:
    # The row of time 5 leaves at once; the other waits until no row of a is below it.
    assert merged([5, 105], [9, 105], [0, 100]).metrics().latency.quantile(0.1) == 0
    assert merged([5, 105], [5 + DAY + 1, 6 + DAY], [0, 100]).metrics().latency.longest > 0


def test_a_first_row_far_ahead_makes_no_row_late() -> None:
    with pytest.warns(lw.StreamWarning, match="went back"):
        run = merged([10**9, 6, 7], [5, 6, 7], [0, 1, 2])
    assert run.metrics().late_rows == 0
    assert run.metrics().stream("a").stray_rows == 1


def test_a_first_row_is_confirmed_by_an_input_that_has_long_sent_rows() -> None:
    clock, moments = lw.VirtualClock(), dict[int, float]()

    def sink(table: pa.Table) -> None:
        moments.update(dict.fromkeys(table["window_start"].to_pylist(), clock.now() / SECOND))

    one = lw.stream(log([55, 90]), name="a", time="ts")
    two = lw.stream(log(list(range(60))), name="b", time="ts")
    finished(one.union(two).window("10 s").agg(n="count(*)"), tick=0, clock=clock, sink=sink)
    assert moments == {**dict.fromkeys((0, 10, 20, 30, 40), 55), 50: 90, 90: 90}


def test_a_log_that_is_read_twice_does_not_confirm_itself() -> None:
    rows = pl.DataFrame({"ts": [10**9, 6, 7]})
    both = [lw.stream(rows, name=name, time="ts") for name in "ab"]
    with pytest.warns(lw.StreamWarning, match="went back"):
        run = finished(both[0].union(both[1]), tick=0, chunk_rows=1)
    assert run.metrics().late_rows == 0


@pytest.mark.parametrize(
    "options",
    [{"progress": lw.within_rows(3)}, {"progress": lw.learned()}],
)
def test_a_first_row_that_bounds_no_later_row_moves_no_mark(options: Any) -> None:
    run = merged([5, 4, 3], [5, 5, 5], [0, 1, 2], **options)
    assert run.metrics().late_rows == 0


def left_by(second: float, *streams: Stream) -> list[int]:
    """The times of the rows that the union of streams in order has let out by a second."""
    clock, left = lw.VirtualClock(), list[int]()

    def sink(table: pa.Table) -> None:
        left.extend(table["ts"].to_pylist() if clock.now() <= second * SECOND else [])

    union = reduce(lambda some, more: some.union(more), [each.select("ts") for each in streams])
    finished(union.order_by(), tick=0, clock=clock, sink=sink)
    return left


def test_channels_are_confirmed_by_another_stream_and_not_by_each_other() -> None:
    table = pl.DataFrame({"at": [0.0, 0.0, 9.0], "ts": [5, 6, 7], "c": ["x", "y", "x"]})
    channels = lw.stream(lw.replay(table, "at"), name="a", time="ts", channel="c")
    assert left_by(1, channels) == []
    assert left_by(1, channels, lw.stream(log([1, 9], [5, 9]), name="b", time="ts")) == [5, 5]


def test_groups_and_streams_without_jump_take_no_part() -> None:
    one, other = log([0, 9], [5, 9]), log([0, 9], [5, 9])
    table = pl.DataFrame({"at": [0.0, 9.0], "ts": [5, 9], "c": ["x", "x"]})
    streams = [
        lw.stream(lw.replay(table, "at"), name="a", time="ts", groups="c"),
        lw.stream(one, name="b", time="ts", jump=None),
        lw.stream(other, name="c", time="ts"),
    ]
    assert left_by(1, *streams) == left_by(1, *streams[1:]) == []


@pytest.mark.parametrize("buckets", [1, 3])
def test_on_spark_first_rows_of_two_inputs_confirm_each_other(buckets: int) -> None:
    def first_batch(b: int, **options: Any) -> list[int]:
        """The times of the rows that leave in the first batch."""
        streams = []
        for name, start in (("a", 25), ("b", b)):
            source: Any = Unordered(pl.DataFrame({"ts": [start, 10**8]}), [1, 1])
            streams.append(lw.stream(source, name=name, time="ts", **options))
        local = LocalSpark(streams[0].union(streams[1]).order_by(), 1, buckets)
        local._schedule.random = lambda: 0.0  # type: ignore[method-assign]
        local.results()
        return local.answers[0]["ts"].to_list()

    assert first_batch(31) == [25]
    assert first_batch(31 + 2 * DAY) == []
    assert first_batch(31, jump=None) == [25]
