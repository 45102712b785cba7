"""The ETS claims with a fixed cost a step: everything repeatable, the orders must come out."""

from functools import cache

import polars as pl
import pytest

from lowwater.claims import ets
from lowwater.claims.claim import Outcome
from lowwater.claims.ets import A, B, C, D, Lengths, simulate
from tests.support.plots import readable

STEP = 10_000
"""Nanoseconds a step of work takes."""
SMALL = Lengths(
    waiting=30,
    slow_beats=4,
    fast_beats=2,
    burst=2,
    beats=(1.0, 100.0, 1_000.0),
    burst_beats=(100.0, 1_000.0),
    seeds=(1,),
)


@cache
def table() -> pl.DataFrame:
    return ets.points(SMALL, charge=STEP)


def test_latency_on_demand_is_near_latent_and_below_every_heartbeat_rate() -> None:
    outcome = ets.latency_outcome(table())
    by, beating = ets.middle(table(), "latency_ms"), ets.over_beats(table(), "latency_ms")
    assert outcome.holds, outcome.ours
    assert by["D"] <= by["C"] <= min(beating.values())
    assert max(beating.values()) < by["A"]
    assert list(beating.values()) == sorted(beating.values(), reverse=True)


def test_union_waits_almost_always_without_timestamps_and_never_with_them_on_demand() -> None:
    outcome = ets.idle_outcome(table())
    by, beating = ets.middle(table(), "idle_share"), ets.over_beats(table(), "idle_share")
    assert outcome.holds, outcome.ours
    assert by["A"] > 0.99
    assert by["C"] == 0
    assert list(beating.values()) == sorted(beating.values(), reverse=True)


def test_queues_are_a_hundredth_on_demand_and_fall_with_the_heartbeat_rate() -> None:
    by, beating = ets.middle(table(), "queue_peak"), ets.over_beats(table(), "queue_peak")
    assert by["A"] > beating[1.0]
    assert by["C"] <= by["A"] / 100
    assert list(beating.values()) == sorted(beating.values(), reverse=True)


def test_heartbeats_that_were_missed_are_not_made_up_for() -> None:
    overloaded = simulate(B, 0.1, beats=100_000.0, charge=STEP)
    assert overloaded.beats_made < overloaded.beats_due
    assert overloaded.queue_peak < 10


def test_a_fixed_cost_a_step_makes_runs_repeatable() -> None:
    assert simulate(C, 2, charge=STEP) == simulate(C, 2, charge=STEP)


def test_latent_rows_cost_a_few_steps_each_and_wait_for_nothing() -> None:
    point = simulate(D, 2, charge=STEP)
    assert STEP <= point.latency_p50_ms * 1e6 <= 4 * STEP
    assert point.idle_share == 0


def test_each_is_drawn_whether_it_holds_or_not() -> None:
    by = ets.middle(table(), "latency_ms")
    assert f"{by['C']:.3g} ms on demand" in readable("ETS-F7", ets.latency_outcome(table()))
    assert "0.00% on demand" in readable("ETS-IDLE", ets.idle_outcome(table()))
    assert "not rising again" in readable("ETS-F8", ets.queues_outcome(table()))
    fast = (pl.col("beats_per_second") == 1_000) & ~pl.col("burst")
    off = pl.when(fast).then(500).otherwise("queue_peak").alias("queue_peak")
    rising = ets.queues_outcome(table().with_columns(off))
    assert ", rising again" in readable("ETS-F8", rising)


@pytest.mark.parametrize("judge", [ets.latency_outcome, ets.idle_outcome, ets.queues_outcome])
def test_a_claim_that_does_not_hold_says_why(judge: object) -> None:
    spoiled = table().with_columns(
        pl.when(pl.col("scenario") == C).then(1e9).otherwise(pl.col(name)).alias(name)
        for name in ("latency_ms", "idle_share", "queue_peak")
    )
    assert callable(judge)
    outcome = judge(spoiled)
    assert isinstance(outcome, Outcome)
    assert not outcome.holds
    assert "DOES NOT HOLD" in outcome.ours


def test_every_scenario_is_measured() -> None:
    assert set(table()["scenario"]) == {A, B, C, D}
