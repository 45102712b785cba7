"""The claims of update queues: costs are imposed, so everything is repeatable."""

from __future__ import annotations

from functools import cache
from random import Random

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.claims import (
    registry,
    updates_example,
    updates_load,
    updates_rates,
)
from lowwater.claims.updates_rates import DRAWN, IN_TURN
from lowwater.claims.updates_runs import Unreflected, at_random, in_turn, run_queue
from lowwater.updates.options import SCHEDULES, Schedule
from tests.support.plots import readable


def spoiled(points: pl.DataFrame, column: str, factor: float, **where: object) -> pl.DataFrame:
    """The same points, some of them off."""
    here = pl.all_horizontal(pl.lit(True), *(pl.col(name) == each for name, each in where.items()))
    off = pl.when(here).then(pl.col(column) * factor).otherwise(pl.col(column))
    return points.with_columns(off.alias(column))


# ---- staleness, from what came and what was shown ------------------------------------------


@given(st.integers(0, 10_000))
def test_areas_are_those_of_many_small_steps(seed: int) -> None:
    chance = Random(seed)
    came = np.sort(np.array([chance.uniform(0, 8) for _ in range(6)]))
    reflected = np.sort(np.array([chance.randint(1, 6) for _ in range(3)]))
    at = np.sort(np.array([chance.uniform(8, 12) for _ in range(3)]))
    steps = np.linspace(0, 10, 20_001)
    seen = np.concatenate([[0], reflected])[np.searchsorted(at, steps, "right")]
    oldest = np.concatenate([came, [np.inf]])[seen]
    stale = np.where(oldest <= steps, steps - oldest, 0.0)
    found = Unreflected.of(came, reflected, at, 10.0)
    assert found.area == pytest.approx(float(stale.mean() * 10), rel=2e-3)


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_queues_report_staleness_as_it_is(schedule: Schedule) -> None:
    """The queue counts while it runs; the logs of the run give the same staleness."""
    run = run_queue(at_random([0.5, 0.3, 0.1, 0.1], 100, 3), schedule, 2.5)
    application, queue = run.averages()
    assert run.own.application == pytest.approx(application, rel=1e-9)
    assert run.own.queue == pytest.approx(queue, rel=1e-9)
    by_key = [
        run.own.by_key[key,].application for key in run.came["key"].unique(maintain_order=True)
    ]
    length = run.ended - float(run.came["arrived"][0])
    assert [key.area / length for key in run.application()] == pytest.approx(by_key)


def test_keys_in_turn_update_as_often_as_they_should() -> None:
    counts = dict(in_turn(3, 2, 10, 0.5, 4_600)["key"].value_counts().iter_rows())
    assert counts == {0: 230, 1: 230, 2: 230, 3: 2_300, 4: 2_300}
    only_slow = in_turn(10, 0, 10, 0.5, 40)
    assert only_slow["key"].to_list() == [*range(10), *range(10)]
    assert float(only_slow["arrived"][-1]) == 38


# ---- UP-F2 ---------------------------------------------------------------------------------


def test_the_worked_example_is_exact() -> None:
    outcome = updates_example.run(True)
    assert outcome.holds, outcome.ours
    assert "27 deliveries, 27 reported exactly" in outcome.ours
    assert "5 s in the update queue" in readable("UP-F2", outcome)
    assert "3 → 1, 4 → 2, 5 → 1, 4 → 2, 5 → 1" in outcome.ours
    for column, why in (
        ("staleness_after", "the definition gives other values"),
        ("integral", "the area of a period is not 18"),
    ):
        off = spoiled(outcome.table, column, 2.0, queue="in-place")
        other = updates_example.example_outcome(off)
        assert not other.holds
        assert why in other.ours
    wrong = outcome.table.with_columns(exact=pl.col("update") != "d")
    assert (
        "IN-PLACE: the queue reports other values at d"
        in updates_example.example_outcome(wrong).ours
    )


# ---- UP-F5 ---------------------------------------------------------------------------------


@cache
def both_kinds() -> pl.DataFrame:
    return updates_load.staleness(updates_load.F5_SCALE.quick)


def test_what_a_service_adds_to_queue_staleness_is_within_its_bounds() -> None:
    outcome = updates_load.staleness_outcome(both_kinds())
    assert outcome.holds, outcome.ours
    assert "the bounds hold at 6 of 6 points" in outcome.ours
    readable("UP-F5", outcome)


@pytest.mark.parametrize(
    ("column", "factor", "why"),
    [
        ("delta_a_service", 0.9, "at load 3 with 10 keys a service adds"),
        ("delta_a_service", 1.1, "at load 3 with 10 keys a service adds"),
        ("queue_updates", 2.0, "ten keys make queue staleness"),
        ("difference_updates", 2.0, "ten keys make the difference"),
        ("reported_application_updates", 1.001, "the application staleness that the queue reports"),
    ],
)
def test_staleness_that_is_not_as_it_should_be_does_not_hold(
    column: str, factor: float, why: str
) -> None:
    outcome = updates_load.staleness_outcome(
        spoiled(both_kinds(), column, factor, load=3.0, keys=10)
    )
    assert not outcome.holds
    assert why in outcome.ours


# ---- UP-F7 ---------------------------------------------------------------------------------


@cache
def queues() -> pl.DataFrame:
    return updates_load.queues(updates_load.F7_SCALE.quick)


def test_update_queues_are_far_below_append_queues() -> None:
    outcome = updates_load.queues_outcome(queues())
    assert outcome.holds, outcome.ours
    readable("UP-F7", outcome)
    one = queues().filter(pl.col("keys") == 1, pl.col("queue").is_in(["fifo", "in-place"]))
    assert one["application_updates"].to_list()[::2] == one["application_updates"].to_list()[1::2]


@pytest.mark.parametrize(
    ("queue", "factor", "why"),
    [
        ("append", 0.01, "shedding is not below append"),
        ("fifo", 10.0, "update queues are not below append queues"),
        ("shedding", 0.5, "IN-PLACE is not far below shedding"),
        ("in-place", 1.5, "IN-PLACE is not the lowest at load 5 with 10 keys"),
        ("fifo", 1.01, "FIFO differs at load 2 with 1 key"),
    ],
)
def test_queues_in_another_order_do_not_hold(queue: str, factor: float, why: str) -> None:
    outcome = updates_load.queues_outcome(
        spoiled(queues(), "application_updates", factor, queue=queue)
    )
    assert not outcome.holds
    assert why in outcome.ours


# ---- UP-F9 ---------------------------------------------------------------------------------


@cache
def rates() -> pl.DataFrame:
    return updates_rates.measured(updates_rates.SCALE.quick)


def test_line_cutting_pays_where_some_keys_are_slow() -> None:
    outcome = updates_rates.rates_outcome(rates())
    assert outcome.holds, outcome.ours
    readable("UP-F9", outcome)
    for rule in ("linecutting", "rare-first"):
        found = updates_rates.ratios(rates(), IN_TURN, rule)
        assert found[0] == found[10] == 1
        assert found[7] < found[4] < 0.9


@pytest.mark.parametrize("queue", ["linecutting", "rare-first"])
@pytest.mark.parametrize(
    ("slow", "factor", "why"),
    [
        (0, 1.02, "1.02 with no slow keys"),
        (4, 2.0, "between"),
        (4, 0.1, "best with 4 slow keys"),
    ],
)
def test_line_cutting_that_does_not_pay_does_not_hold(
    slow: int, factor: float, why: str, queue: str
) -> None:
    where = {"slow": slow, "queue": queue}
    outcome = updates_rates.rates_outcome(spoiled(rates(), "queue_seconds", factor, **where))
    assert not outcome.holds
    assert why in outcome.ours


def test_where_line_cutting_is_best_is_not_judged_of_drawn_keys() -> None:
    drawn = rates().with_columns(arrivals=pl.lit(DRAWN))
    both = pl.concat([rates(), spoiled(drawn, "queue_seconds", 0.5, slow=4, queue="rare-first")])
    assert updates_rates.rates_outcome(both).holds
    worse = pl.concat([rates(), spoiled(drawn, "queue_seconds", 2.0, slow=4, queue="rare-first")])
    assert "between (drawn)" in updates_rates.rates_outcome(worse).ours


def test_the_claims_are_found_by_name() -> None:
    ids = ["up-f2", "UP-F5", "up-f7", "UP-F9"]
    assert [claim.id for claim in registry.find(ids)] == [name.upper() for name in ids]
