"""Metrics on Spark are those of the embedded engine wherever a batch can show the same."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import polars as pl
import pytest

import lowwater as lw
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.running import finished

DAY = 86_400
STRAY = [0, 1, 2, 400 * DAY, 3, 4, 5]


def strays(source: object) -> lw.Stream:
    return lw.stream(source, name="s", time="ts", progress=lw.within("1 minute"))


def told(source: object) -> lw.Stream:
    return lw.stream(source, name="s", time="ts", progress=lw.punctuated("p"))


BACK = pl.DataFrame([(1, 5), (6, 3), (4, None), (9, 8), (9, 2)], ["ts", "p"], orient="row")
BACK = BACK.cast(pl.Int64)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize(
    ("declare", "rows"),
    [(strays, pl.DataFrame({"ts": STRAY})), (told, BACK)],
    ids=["stray", "back"],
)
def test_a_log_has_as_many_stray_rows_and_backward_marks_as_in_one_process(
    declare: Callable[[object], lw.Stream], rows: pl.DataFrame, seed: int, buckets: int
) -> None:
    query = declare(lw.replay(rows)).window("1 minute").agg(n="count(*)")
    run = LocalSpark(query, seed, buckets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run.results()
        one, many = (each.metrics().stream("s") for each in (finished(query), run))
    assert (many.stray_rows, many.backward_marks) == (one.stray_rows, one.backward_marks)
    assert one.stray_rows or one.backward_marks


@pytest.mark.parametrize("buckets", [1, 2, 4])
def test_rows_without_order_are_counted_once_whatever_the_number_of_buckets(buckets: int) -> None:
    """Batch by batch: 10, then a mark of 5 that went back, then one that is no time."""
    rows = pl.DataFrame([(1, 10), (11, 5), (12, 2**62)], ["ts", "p"], orient="row").cast(pl.Int64)
    query = told(Unordered(rows, [1, 1, 1])).window("1 minute").agg(n="count(*)")
    run = LocalSpark(query, 5, buckets)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run.results()
    assert run.metrics().stream("s").backward_marks == 2


def test_the_peak_of_an_operator_is_the_most_that_all_buckets_held_after_a_batch() -> None:
    rows = pl.DataFrame({"ts": [n // 2 for n in range(100)], "k": [n % 7 for n in range(100)]})
    query = lw.stream(lw.replay(rows), name="s", time="ts").window("1 minute").group_by("k").agg(
        n="count(*)"
    )  # fmt: skip
    run = LocalSpark(query, 4, 3)
    run.results()
    (operator,) = run.metrics().operators
    assert operator.state_rows == 0 < operator.state_rows_peak
    assert run.metrics().state_rows_peak == operator.state_rows_peak


@pytest.mark.parametrize("seed", range(4))
def test_a_heartbeat_counts_once_however_many_columns_progress(seed: int) -> None:
    """The same streams and ticks, where promises are made on one column and on two."""
    busy = pl.DataFrame({"ts": range(0, 900, 10), "other": range(0, 900, 10)})
    quiet = pl.DataFrame({"ts": [0], "other": [0]})

    def beats(*columns: str) -> int:
        progress = {name: lw.ordered() for name in columns}
        first, second = (
            lw.stream(source, name=name, time="ts", progress=progress, idle=idle)
            for name, source, idle in (
                ("busy", Unordered(busy, [30] * 3), None),
                ("quiet", Unordered(quiet, [1, 0, 0]), lw.heartbeat("1 second")),
            )
        )
        run = LocalSpark(first.union(second).distinct(), seed, 1)
        run.results()
        found = run.metrics().stream("quiet").heartbeats
        assert found is not None
        return found

    assert beats("ts", "other") == beats("ts") > 0
