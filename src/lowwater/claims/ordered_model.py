"""This claim checks the formulas for the cost of ordered joins: Ordered §4.1, §5, Figures 5 and 6.

The Adaptive strategy decides by the same formulas. They are checked three ways: the gain from
both means against the gain from the load, the sums against the response times added one by one, and
the bound against loads that come near to what the join can do. Then both figures are drawn again.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import polars as pl

from lowwater.claims import ordered_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, judge
from lowwater.joins.ordered.model import BOUND, OrderCosts

DAY = 86_400.0
FIRST_COST, RATES = 1e-8, (1.0, 10.0)
"""Figure 5: c doubles from here, for as long as the join keeps up."""
SLOW_COST, SLOW_RATES, SLOW_FAST = 1e-4, (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), 1.0
"""Figure 6: the rates of the slow stream, and that of the fast one."""
LOADS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.999, 0.999999)
"""Loads at which the join keeps up; at the last it nearly does not."""
WAITING = (1, 2, 3, 10, 100, 1_000)
"""Numbers of rows that come between two of the slow stream."""
EXACT = 1e-9
"""The share by which two computations of a number may differ, because of rounding."""
NEAR = 1e-6


def one_by_one(setting: OrderCosts, n: int) -> tuple[float, float]:
    """Add the response times of the n rows that wait together: Sync-Filter's, Filter-Order's."""
    waits = [1 / setting.slow_rate - k / setting.fast_rate for k in range(n)]
    joined = sum(wait + (k + 1) * setting.work for k, wait in enumerate(waits))
    return joined, sum(waits)


def grid() -> list[OrderCosts]:
    """Return settings at all loads, windows and rates."""
    settings = []
    for load, n, slow, window in product(LOADS, WAITING, (0.001, 0.1, 1.0), (1.0, 60.0, DAY)):
        rates = (slow, n * slow)
        cost = load / OrderCosts.of_two(1.0, window, rates).load
        settings.append(OrderCosts.of_two(cost, window, rates))
    return settings


def figure_5() -> list[OrderCosts]:
    """Return settings in which the cost of a comparison doubles while the join keeps up."""
    settings = [OrderCosts.of_two(FIRST_COST, DAY, RATES)]
    while settings[-1].keeps_up:
        settings.append(OrderCosts.of_two(2 * settings[-1].cost, DAY, RATES))
    return settings[:-1]


def figure_6() -> list[OrderCosts]:
    """Return settings in which the slow stream gets faster."""
    return [OrderCosts.of_two(SLOW_COST, DAY, (slow, SLOW_FAST)) for slow in SLOW_RATES]


def _line(figure: str, setting: OrderCosts) -> dict[str, Any]:
    n = round(setting.waiting)
    whole = abs(setting.waiting - n) < NEAR
    sync, later = one_by_one(setting, n) if whole else (None, None)
    return {
        "figure": figure,
        "cost_us": setting.cost * 1e6,
        "window_seconds": setting.windows[0],
        "slow_rate": setting.slow_rate,
        "fast_rate": setting.fast_rate,
        "load": setting.load,
        "sync_filter_seconds": setting.sync_filter,
        "filter_order_seconds": setting.filter_order,
        "gain_eq6": setting.measured_gain,
        "gain_eq7": setting.gain,
        "sync_filter_sum_eq2": setting.sync_filter_total,
        "sync_filter_sum_added": sync,
        "filter_order_sum_eq4": setting.filter_order_total,
        "filter_order_sum_added": later,
    }


def table() -> pl.DataFrame:
    """Return the grid and the points of both figures."""
    parts = (("", grid()), ("5", figure_5()), ("6", figure_6()))
    lines = [_line(figure, setting) for figure, settings in parts for setting in settings]
    return pl.DataFrame(lines, infer_schema_length=None)


def _apart(points: pl.DataFrame, one: str, two: str) -> float:
    """Return by how much two columns differ at most, as a share."""
    compared = points.filter(pl.col(two).is_not_null())
    most = compared.select(((pl.col(one) - pl.col(two)).abs() / pl.col(two)).max()).item()
    return float(most)


def model_outcome(points: pl.DataFrame) -> Outcome:
    """Judge whether the formulas agree with one another."""
    gains = _apart(points, "gain_eq6", "gain_eq7")
    sums = max(
        _apart(points, "sync_filter_sum_eq2", "sync_filter_sum_added"),
        _apart(points, "filter_order_sum_eq4", "filter_order_sum_added"),
    )
    most = float(points["gain_eq7"].max())  # type: ignore[arg-type]
    five, six = (points.filter(pl.col("figure") == name) for name in ("5", "6"))
    last = five.row(-1, named=True)
    fastest = six.row(-1, named=True)
    criteria = [
        Criterion(gains <= EXACT, f"Eq. 6 and Eq. 7 differ by {gains:.1e}"),
        Criterion(sums <= EXACT, f"Eq. 2 or Eq. 4 differ from the rows added by {sums:.1e}"),
        Criterion(BOUND - NEAR < most < BOUND, f"the gain comes to {most}, not just below {BOUND}"),
    ]
    ours = (
        f"over {points.height} settings Eq. 6 = Eq. 7 and the sums (2), (4) = the rows added, all"
        f" within {max(gains, sums):.0e}; the gain stays below {BOUND} and comes to {most:.7f} at a"
        f" load of {LOADS[-1]}. Fig. 5: Filter-Order {last['filter_order_seconds']:.2f} s at any c,"
        f" Sync-Filter up to {last['sync_filter_seconds']:.2f} s at {last['cost_us']:.2f} µs (gain"
        f" {last['gain_eq7']:.0%}). Fig. 6 at {fastest['slow_rate']:g}/s: from"
        f" {fastest['sync_filter_seconds']:.2f} s to {fastest['filter_order_seconds']:.2f} s, gain"
        f" {fastest['gain_eq7']:.0%} (the paper's text: from 10 s to 5 s)"
    )
    return judge(ours, criteria, points, lambda figure: plots.model(figure, five, six, DAY, RATES))


def run(quick: bool) -> Outcome:
    """Check and draw the formulas; there is nothing to make quicker."""
    return model_outcome(table())


EQ = Claim(
    "ORD-EQ",
    "the response time of ordered joins, in formulas",
    "I_rel = c·|w|·λ1·λ2 / (1 + c·|w|·λ1·λ2) < 0.5; Fig. 6: from 10 s to 5 s",
    "Eq. 6 = Eq. 7, the sums (2) and (4) = their terms added, the gain just below 0.5 at full load",
    run,
)
