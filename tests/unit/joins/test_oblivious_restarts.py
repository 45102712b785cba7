"""Counters that begin again, and late rows that are no restart."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from tests.support.driven_join import Driven, scrambled
from tests.support.lossy_streams import FAMILIES, Family

EPOCH = 2_000


def epochs(seed: int, number: int, disorder: int, port: int) -> Any:
    """Values that begin again at 0, scrambled also where one epoch follows another."""
    order = scrambled(number * EPOCH, disorder, np.random.default_rng((seed, port)))
    return pl.DataFrame({"epoch": order % EPOCH, "run": order // EPOCH})


def driven(frames: list[Any], lag: int, batches: bool, size: int, **options: Any) -> Driven:
    """Both inputs to the end, the second so many rows behind; pieces restart from snapshots."""
    run = Driven(frames, batches=batches, options=options)
    steps = sorted(
        (start + lag * at, at, start)
        for at, frame in enumerate(frames)
        for start in range(0, frame.height, size)
    )
    for number, (_, at, start) in enumerate(steps):
        run.push(at, frames[at][start : start + size])
        if batches and at:
            run.settle()
        if number % 16 == 0 and not run.kernel.has_work:
            run.restart()
    run.end()
    return run


@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@pytest.mark.parametrize("strategy", ["plain", "hybrid"])
@pytest.mark.parametrize(("disorder", "lag"), [(0, 0), (20, 0), (20, 700), (300, 300)])
def test_several_epochs_are_joined_as_one_is(
    disorder: int, lag: int, strategy: str, batches: bool
) -> None:
    frames = [epochs(3, 3, disorder, port) for port in (0, 1)]
    run = driven(frames, lag, batches, 100 if batches else 40, strategy=strategy)
    assert run.about["restarts"] == 2
    on = [each.select(epoch=pl.col("epoch") + EPOCH * pl.col("run")) for each in frames]
    without = driven(on, lag, batches, 100 if batches else 40, strategy=strategy)
    assert without.about["restarts"] == 0
    assert run.results >= without.results - 0.002 * 3 * EPOCH
    assert without.results >= 0.998 * 3 * EPOCH
    assert sum("began again" in note for note in run.notes) == 1


def test_a_bucket_with_few_rows_follows_as_well() -> None:
    """A fifth of all values, as one of five buckets has them."""
    frames = [epochs(4, 3, 20, port).filter(pl.col("epoch") % 5 == 1) for port in (0, 1)]
    run = driven(frames, 30, True, 24)
    assert run.results >= 0.99 * 3 * EPOCH / 5


@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_one_epoch_is_never_taken_for_several(family: Family, batches: bool) -> None:
    if family.options.get("strategy", "auto") != "auto":
        return
    run = family.run(2, True, batches)
    assert run.about["restarts"] == 0


@pytest.mark.parametrize("burst", [1, 20, 400])
@pytest.mark.parametrize("both", [False, True], ids=["one", "both"])
def test_rows_of_the_far_past_are_late_and_no_restart(burst: int, both: bool) -> None:
    """Alone or many at once; in both inputs other rows come between them."""
    frames = []
    for port in (0, 1):
        keys = np.arange(6_000)
        if both or port:
            past = np.arange(100, 100 + burst)
            places = np.arange(3_000, 3_000 + burst) if both else np.full(burst, 3_000)
            keys = np.insert(keys, places, past)
        frames.append(pl.DataFrame({"epoch": keys}))
    run = driven(frames, 0, False, 20)
    assert run.about["restarts"] == 0
    assert run.results >= 6_000
    assert run.about["results lost"] == pytest.approx(run.all_results - run.results, rel=0.02)


def test_an_input_that_begins_again_alone_is_no_restart_and_keeps_no_rows() -> None:
    keys = np.arange(6_000)
    frames = [pl.DataFrame({"epoch": each}) for each in (keys, keys % 2_000)]
    run = Driven(frames)
    held = []
    for start in range(0, 6_000, 20):
        for port in (0, 1):
            run.push(port, frames[port][start : start + 20])
        held.append(run.store.rows_in("restart1", 0))
    run.end()
    assert run.about["restarts"] == 0
    assert 300 < max(held) < 1_000
    assert held[-1] == 0
    assert run.results >= 2_000
