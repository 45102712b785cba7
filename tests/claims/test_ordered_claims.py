"""The claims of ordered joins: costs are imposed, so everything is repeatable."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import pairwise

import numpy as np
import polars as pl
import pytest

from lowwater.claims import ordered_model, ordered_output, ordered_response, registry
from lowwater.claims.ordered_response import QUICK
from lowwater.claims.ordered_runs import (
    ADAPTIVE,
    FILTER,
    ORDERS,
    SYNC,
    Experiment,
    JoinWatch,
    arrivals,
    joined,
    respond,
)
from lowwater.joins.ordered.model import BOUND, OrderCosts
from lowwater.probe import PerComparison, Probe
from lowwater.typing import Order
from tests.support.plots import readable

SMALL = replace(
    QUICK,
    costs=(0.002, 1.0),
    times_rates=(1, 2),
    slow_rates=(0.3, 1.0),
    slow_rows=17,
    rate_seconds=60,
)
SHORT = Experiment(slow_rate=2, fast_rate=10, window=3, seconds=12, warm=3)


# ---- the formulas --------------------------------------------------------------------------


@cache
def formulas() -> pl.DataFrame:
    return ordered_model.table()


def test_the_formulas_agree_and_the_figures_are_the_papers() -> None:
    outcome = ordered_model.model_outcome(formulas())
    assert outcome.holds, outcome.ours
    assert "from 10.25 s to 5.50 s" in outcome.ours
    readable("ORD-EQ", outcome)
    assert float(outcome.table["gain_eq7"].max()) < BOUND  # type: ignore[arg-type]


def test_response_times_are_added_one_by_one() -> None:
    setting = OrderCosts.of_two(0.01, 10, (1, 2))  # C_S = 0.1 s, two rows wait
    sync, later = ordered_model.one_by_one(setting, 2)
    assert sync == pytest.approx((1 + 0.1) + (0.5 + 0.2))
    assert later == pytest.approx(1 + 0.5)


def test_costs_of_figure_5_double_while_the_join_keeps_up() -> None:
    settings = ordered_model.figure_5()
    assert all(two.cost == 2 * one.cost for one, two in pairwise(settings))
    last = settings[-1]
    assert last.keeps_up
    assert not OrderCosts.of_two(2 * last.cost, last.windows[0], last.rates).keeps_up


@pytest.mark.parametrize("column", ["gain_eq6", "sync_filter_sum_eq2", "filter_order_sum_added"])
def test_formulas_that_disagree_do_not_hold(column: str) -> None:
    spoiled = formulas().with_columns(pl.col(column) * 1.001)
    outcome = ordered_model.model_outcome(spoiled)
    assert not outcome.holds
    assert "DOES NOT HOLD" in outcome.ours


# ---- response times ------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("tick", [0.0, 0.25])
def test_a_row_is_done_when_its_results_leave(order: Order, tick: float) -> None:
    """Where every row of a window has a partner, results say the same as the watch."""
    slow, fast = (arrivals(rate, SHORT.seconds, seed, keys=1) for seed, rate in ((1, 2), (2, 10)))
    watch = JoinWatch()
    query = joined(slow, fast, SHORT.window, order)
    run = Probe(query, observer=watch, charge=PerComparison(2_000_000), tick=tick).run()
    left = run.results.select(pl.max_horizontal("ts", "ts_right").alias("time"), "_out_at")
    assert left["time"].n_unique() > 100
    done = watch.done_at(left["time"].to_physical().to_numpy()) / 1e9
    assert np.allclose(done, left["_out_at"].to_numpy(), atol=1e-9)


def test_what_a_run_measures_can_be_repeated() -> None:
    runs = [respond(ADAPTIVE, PerComparison(2e6), SHORT) for _ in range(2)]
    assert runs[0] == runs[1]
    assert runs[0].cost_us == pytest.approx(2_000)
    assert runs[0].load == pytest.approx(SHORT.setting(0.002).load)


def test_arrivals_meet_their_rate_exactly_and_are_in_order() -> None:
    table = arrivals(10, 30, 1)
    assert table.height == 300
    assert table["arrived"].is_sorted()
    assert float(table["arrived"].max()) < 30  # type: ignore[arg-type]
    gaps = table["arrived"].diff().drop_nulls()
    assert float(gaps.std()) == pytest.approx(0.1, rel=0.3)  # type: ignore[arg-type]


@cache
def over_cost() -> pl.DataFrame:
    return ordered_response.over_cost(SMALL)


@cache
def over_rate() -> pl.DataFrame:
    return ordered_response.over_rate(SMALL)


def test_filter_order_saves_a_quarter_where_adaptive_switches() -> None:
    outcome = ordered_response.cost_outcome(over_cost())
    assert outcome.holds, outcome.ours
    gains = ordered_response.gains(over_cost(), FILTER, "imposed_cost_us")
    assert max(gains.values()) >= ordered_response.GAIN
    assert "Adaptive switches between" in readable("ORD-F7", outcome)


def test_the_real_cost_of_the_join_is_reported_beside_the_imposed() -> None:
    real = over_cost().filter(pl.col("imposed_cost_us").is_null())
    assert real["slow_rate"].to_list() == [1, 2]
    assert (real["cost_us"] > 0).all()
    loads = real.with_columns(pl.Series("load", [0.15, 0.6]))
    ours = ordered_response.cost_outcome(pl.concat([over_cost().head(6), loads])).ours
    assert "0.3 is reached near 1.4 and 14/s" in ours


@pytest.mark.parametrize(
    ("strategy", "factor", "why"),
    [
        (FILTER, 1.3, "the gain at the switch"),
        (SYNC, 0.5, "Sync-Filter is not the worst"),
        (ADAPTIVE, 1.2, "Adaptive differs from Sync-Filter below the switch"),
    ],
)
def test_response_over_cost_that_does_not_hold_says_why(
    strategy: str, factor: float, why: str
) -> None:
    spoiled = over_cost().with_columns(
        pl.when(pl.col("strategy") == strategy)
        .then(pl.col("response_seconds") * factor)
        .otherwise("response_seconds")
        .alias("response_seconds")
    )
    outcome = ordered_response.cost_outcome(spoiled)
    assert not outcome.holds
    assert f"DOES NOT HOLD: {why}" in outcome.ours or f"; {why}" in outcome.ours


def test_a_switch_elsewhere_does_not_hold() -> None:
    never = over_cost().with_columns(filter_order_share=pl.lit(0.0))
    outcome = ordered_response.cost_outcome(never)
    assert not outcome.holds
    assert "Adaptive switches elsewhere" in outcome.ours
    assert "never switches" in readable("ORD-F7", outcome)


def test_the_gain_grows_with_the_slow_streams_rate() -> None:
    outcome = ordered_response.rate_outcome(over_rate())
    assert outcome.holds, outcome.ours
    readable("ORD-F9", outcome)
    shares = ordered_response.shares(over_rate(), "slow_rate")
    assert shares[0.3] == 0 < shares[1.0]
    even = over_rate().with_columns(response_seconds=pl.lit(1.0))
    assert "the gain does not grow" in ordered_response.rate_outcome(even).ours


# ---- order ---------------------------------------------------------------------------------


@cache
def output() -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    return ordered_output.measured(1)


def test_results_leave_in_order_and_are_all_there() -> None:
    points, times = output()
    outcome = ordered_output.output_outcome(points, times)
    assert outcome.holds, outcome.ours
    assert "in order 0," in readable("ORD-OUT", outcome)
    assert times[SYNC].equals(times[FILTER])
    assert times[ADAPTIVE].equals(times[FILTER])
    assert times[FILTER].is_sorted()
    assert not times[ordered_output.UNORDERED].is_sorted()


@pytest.mark.parametrize(
    ("column", "value"), [("results_behind", 1), ("same_results", False), ("left_over", 3)]
)
def test_output_that_is_not_as_it_should_be_does_not_hold(column: str, value: object) -> None:
    points, times = output()
    spoiled = points.with_columns(
        pl.when(pl.col("strategy") == FILTER)
        .then(pl.lit(value))
        .otherwise(pl.col(column))
        .alias(column)
    )
    outcome = ordered_output.output_outcome(spoiled, times)
    assert not outcome.holds
    assert "DOES NOT HOLD" in outcome.ours


def test_the_claims_are_found_by_name() -> None:
    ids = ["ord-eq", "ORD-F7", "ORD-F9", "ord-out"]
    assert [claim.id for claim in registry.find(ids)] == [name.upper() for name in ids]
