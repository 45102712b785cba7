"""Options that say when promises are made hold for latent time, too: it is the clock."""

from __future__ import annotations

import inspect
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.clock import VirtualClock
from lowwater.sources.files import Files
from tests.support.local_spark import LocalSpark, Unordered
from tests.unit.engine.scenes import SECOND

STAMPS = ["external", "internal", "latent"]
ROWS = [0, 1, 11, 21, 100]
"""Seconds at which rows arrive, and their times where they have some."""


def stream(stamp: str, name: str = "s", arrivals: list[int] | None = None, **options: Any) -> Any:
    arrived = ROWS if arrivals is None else arrivals
    columns = {"at": arrived, "k": [0] * len(arrived)}
    if stamp == "external":
        columns["ts"] = arrived
    log = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.Int64))
    source = lw.replay(log, arrival="at")
    return lw.stream(source, name=name, time="ts", stamp=stamp, jump=None, **options)  # type: ignore[arg-type]


def answered_at(query: lw.Stream) -> list[int]:
    """The second at which each window is answered."""
    clock, times = VirtualClock(), []

    def sink(table: Any) -> None:
        times.extend([clock.now() // SECOND] * table.num_rows)

    query.run(tick=0, clock=clock, sink=sink).await_termination()
    return times


@pytest.mark.parametrize("stamp", STAMPS)
@pytest.mark.parametrize(
    ("options", "times"),
    [
        ({}, [11, 21, 100, 100]),
        ({"idle": lw.on_demand()}, [10, 20, 30, 100]),
        ({"idle": lw.heartbeat("4 s")}, [11, 20, 32, 100]),
        ({"punctuate": lw.every("20 s")}, [21, 21, 100, 100]),
        ({"punctuate": lw.timer("7 s")}, [14, 28, 100, 100]),
        ({"punctuate": lw.timer("7 s"), "idle": lw.heartbeat("9 s")}, [14, 27, 36, 100]),
    ],
)
def test_windows_are_answered_when_the_options_say(
    stamp: str, options: dict[str, Any], times: list[int]
) -> None:
    counted = stream(stamp, **options).window("10 s").agg(n="count(*)")
    assert answered_at(counted) == times


@pytest.mark.parametrize("stamp", ["internal", "latent"])
def test_a_silent_stream_is_answered_by_the_clock_through_what_stands_between(stamp: str) -> None:
    one, two = (
        stream(stamp, name, arrivals, idle=lw.on_demand())
        for name, arrivals in (("one", [0, 50]), ("two", [1, 50]))
    )
    both = one.select("k").union(two.select("k")) if stamp == "latent" else one.union(two)
    assert answered_at(both.where("k = 0").window("10 s").agg(n="count(*)")) == [10, 50]


def test_a_joined_latent_stream_forgets_by_the_clock() -> None:
    one, two = (
        stream("latent", name, arrivals, idle=lw.on_demand())
        for name, arrivals in (("one", [0, 50]), ("two", [1, 50]))
    )
    unmatched = one.join(two, on="k", within="0 s", how="anti")
    assert answered_at(unmatched)[0] <= 1


def test_latent_streams_that_are_stamped_together_are_promised_together() -> None:
    one = stream("latent", "one", punctuate=lw.every("10 s"))
    two = stream("latent", "two", punctuate=lw.timer("10 s"))
    query = one.union(two).window("10 s").agg(n="count(*)")
    with pytest.raises(lw.QueryError, match=r"'one'.*give all of them the same punctuate="):
        query.explain()


@pytest.mark.parametrize(
    ("options", "answered"),
    [
        ({}, [0, 0, 0, 1, 1]),
        ({"idle": lw.on_demand()}, [0, 1, 0, 0, 1]),
        ({"idle": lw.heartbeat("1 s")}, [0, 1, 0, 0, 1]),
    ],
)
@pytest.mark.parametrize("stamp", ["internal", "latent"])
def test_in_batches_a_silent_stream_is_answered_by_the_clock(
    stamp: Any, options: dict[str, Any], answered: list[int]
) -> None:
    rows = pl.DataFrame({"k": [0, 1, 2]})
    source = Unordered(rows, [2, 0, 0, 1])  # batches are 1000 s apart
    silent = lw.stream(source, name="s", time="ts", stamp=stamp, **options)
    for buckets in (1, 3):
        counted = silent.window("1000 s").group_by("k").agg(n="count(*)")
        local = LocalSpark(counted, 1, buckets)
        local._schedule.random = lambda: 0.0  # type: ignore[method-assign]  # a tick in every batch
        local.results()
        assert [min(1, batch.height) for batch in local.answers] == answered


# ---- every option, for every kind of stream ------------------------------------------------------

TIMED = pl.DataFrame({"ts": [1, 2], "sent": [1, 2], "k": [1, 1], "gone": [False, False]})
OPTIONS: dict[str, list[dict[str, Any]]] = {
    "progress": [
        {"progress": each}
        for each in (lw.within("1 s"), lw.within_rows(3), lw.learned(0.9), lw.unpromised())
    ]
    + [{"progress": {"ts": lw.ordered(), "sent": lw.ordered()}}],
    "unit": [{"unit": "ms"}],
    "channel": [{"channel": "k"}],
    "channels": [{"channel": "k", "channels": [1]}, {"channels": [1]}],
    "groups": [{"groups": "k"}],
    "ended": [{"groups": "k", "ended": "gone"}, {"channel": "k", "ended": "gone"}],
    "stale_after": [{"channel": "k", "stale_after": "1 minute"}],
}
"""What says how times in rows progress: nothing where the clock makes them."""
HONOURED = {"name", "time", "stamp", "idle", "punctuate"}
UPDATES = {
    "update_key",
    "expire",
    "delete_when",
    "schedule",
    "weights",
    "budget",
    "complete_within",
    "windows",
    "fresh_within",
}
NOTHING_TO_DO = {"late", "jump"}
"""A clock neither goes back nor leaps, so nothing is late and nothing is dated far ahead."""


def test_every_option_is_placed() -> None:
    options = set(inspect.signature(lw.stream).parameters) - {"source"}
    assert options == HONOURED | UPDATES | NOTHING_TO_DO | set(OPTIONS)


def sources(tmp_path: Any) -> list[Any]:
    TIMED.drop("ts").write_parquet(tmp_path / "rows.parquet")
    rows = TIMED.drop("ts")
    return [
        rows,
        lw.replay(rows.with_columns(at=pl.Series([0, 1])), arrival="at"),
        lw.push(dict(rows.schema)),
        Files("parquet", tmp_path / "rows.parquet"),
        Unordered(rows, [2]),
    ]


@pytest.mark.parametrize("option", list(OPTIONS))
@pytest.mark.parametrize("stamp", ["internal", "latent"])
def test_what_cannot_hold_of_stamped_rows_is_refused(
    stamp: Any, option: str, tmp_path: Any
) -> None:
    for source in sources(tmp_path):
        for given in OPTIONS[option]:
            with pytest.raises(lw.OptionError, match=r"leave .*out"):
                lw.stream(source, time="ts", stamp=stamp, **given)


@pytest.mark.parametrize("stamp", ["internal", "latent"])
@pytest.mark.parametrize("late", ["side", "drop", "fail"])
def test_no_stamped_row_is_late(stamp: Any, late: Any) -> None:
    run = stream(stamp, late=late).window("10 s").agg(n="count(*)").run(tick=0)
    run.await_termination()
    assert run.metrics().late_rows == 0
    assert sum(row["n"] for row in run.results().to_pylist()) == len(ROWS)


@pytest.mark.parametrize("stamp", ["internal", "latent"])
def test_stamped_rows_replace_each_other(stamp: Any) -> None:
    newest = stream(stamp, update_key="k", schedule="fifo")
    assert [row["k"] for row in newest.collect(tick=0).to_pylist()] == [0] * len(ROWS)
    assert newest.node.updates is not None
