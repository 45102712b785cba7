"""What a join without a window says that it lost, beside what it lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

from lowwater.joins.oblivious.estimates import shortfall
from lowwater.joins.oblivious.lost_results import NEWEST, OLDER, LostResults, hashes
from tests.conftest import FULL
from tests.support.driven_join import Driven, scrambled
from tests.support.lossy_streams import FAMILIES, Family

SEEDS = range(4 if FULL else 1)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("batches", [False, True], ids=["rows", "batches"])
@pytest.mark.parametrize("backwards", [False, True], ids=["forth", "back"])
@pytest.mark.parametrize("family", FAMILIES, ids=str)
def test_the_accuracy_told_is_that_of_the_run(
    family: Family, backwards: bool, batches: bool, seed: int
) -> None:
    """To half a percent, whatever costs results; and a warning comes if it is too low."""
    run = family.run(seed, backwards, batches)
    accuracy = run.results / run.all_results
    assert run.about["accuracy"] == pytest.approx(accuracy, abs=0.005)
    assert run.about["results found"] == run.results
    lost = run.all_results - run.results
    if run.about["results lost margin"] == 0:
        assert run.about["results lost"] == pytest.approx(lost, rel=0.01)
    short = accuracy < family.accuracy and lost > 0
    if abs(accuracy - family.accuracy) > 0.005:
        assert run.notes or not short
    assert len(run.notes) <= (lost > 0)


@pytest.mark.parametrize("strategy", ["auto", "dbf", "hybrid"])
@pytest.mark.parametrize("lag", [(1_000, 0), (0, 1_000)], ids=["first", "second"])
def test_an_input_that_lags_costs_nothing_wherever_it_is_listed(lag: Any, strategy: str) -> None:
    """Though memory is short, and the strategy changes because of that."""
    family = Family("", disorder=(300, 300), lag=lag)
    options = {"memory": "16 kB", "strategy": strategy}
    for known in (False, True):
        run = family.run(1, False, False, known, **options)
        assert run.results >= (1 if known else 0.999) * run.all_results
        assert run.about["accuracy"] == run.results / run.all_results
        assert run.notes == []


def test_a_step_of_disorder_is_told_before_the_end() -> None:
    chance = np.random.default_rng(5)
    keys = [scrambled(6_000, np.repeat([20, 1_500], 3_000), chance) for _ in (0, 1)]
    frames = [pl.DataFrame({"epoch": each}) for each in keys]
    run = Driven(frames)
    for start in range(0, 5_000, 20):
        for port in (0, 1):
            run.push(port, frames[port][start : start + 20])
    assert len(run.notes) == 1
    assert "fewer than 99.9 % of the results were found" in run.notes[0]


# ---- the sample --------------------------------------------------------------------------------


def filled(keys: Any, copies: int = 1) -> LostResults:
    losses = LostResults(2, copies)
    for start in range(0, len(keys), 500):
        ticks = np.asarray(keys[start : start + 500])
        none = np.zeros(len(ticks), dtype=bool)
        losses.take(0, hashes(ticks), ticks, none, hashes(ticks[:0]))
    return losses


def test_the_sample_is_bounded_and_all_of_the_newest_are_in_it() -> None:
    losses = filled(range(200_000))
    assert NEWEST <= len(losses) <= 2 * NEWEST + 2 * OLDER * 12
    newest = np.arange(200_000 - NEWEST, 200_000)
    losses.take(1, hashes(newest), newest, newest < 0, hashes(newest[:0]))
    assert losses.lost == (pytest.approx(NEWEST), 0)
    assert len(filled(range(100_000), copies=8)) <= 2 * (NEWEST // 8 + OLDER // 8 * 14)


def test_what_is_lost_of_old_rows_is_estimated_and_the_margin_holds() -> None:
    chance = np.random.default_rng(1)
    inside, over = 0, 0.0
    for _ in range(20):
        losses = filled(range(60_000))
        late = np.sort(chance.choice(50_000, 3_000, replace=False))
        made = late[chance.uniform(size=3_000) < 0.5]
        losses.take(1, hashes(late), late, late >= 0, hashes(made))
        again = LostResults(2)
        again.restore(losses.snapshot())
        again.found = again.pairs  # all pairs are results
        lost, margin = again.lost
        inside += abs(lost - (3_000 - len(made))) <= margin
        over += (lost - (3_000 - len(made))) / 20
    assert inside >= 15
    assert abs(over) < 0.05 * 3_000


def test_a_warning_needs_some_results_lost_while_rows_still_come() -> None:
    assert shortfall(1_000, 9, 0.999, ended=False) is None
    assert shortfall(1_000, 9, 0.999, ended=True) is not None
    assert shortfall(1_000, 10, 0.999, ended=False) is not None
    assert shortfall(20_000, 10, 0.999, ended=True) is None
