"""What ordered joins cost by the formulas: Ordered §4.1, §5.1, §5.2, Figures 5 and 6.

The formulas are those the Adaptive strategy decides by. They are checked three ways: the gain from
both means against the gain from the load, the sums against the response times added one by one, and
the bound against loads that come near to what the join can do. Then both figures are drawn again.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, logarithmic, tell
from lowwater.claims.ordered_runs import FILTER, NAMES, SYNC
from lowwater.joins.ordered.model import BOUND, OrderCosts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DAY = 86_400.0
FIRST_COST, RATES = 1e-8, (1.0, 10.0)
"""Figure 5: c doubles from here, for as long as the join keeps up."""
SLOW_COST, SLOW_RATES, SLOW_FAST = 1e-4, (0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03, 0.1), 1.0
"""Figure 6: the rates of the slow stream, and that of the fast one."""
LOADS = (0.001, 0.01, 0.1, 0.3, 0.5, 0.9, 0.99, 0.999, 0.999999)
"""Loads at which the join keeps up; the last is nearly what it can do."""
WAITING = (1, 2, 3, 10, 100, 1_000)
"""Rows that come between two of the slow stream."""
EXACT = 1e-9
"""By how much two ways to one number may differ: what rounding does."""
NEAR = 1e-6


def one_by_one(setting: OrderCosts, n: int) -> tuple[float, float]:
    """The response times of the n rows that wait together, added: Sync-Filter, Filter-Order."""
    waits = [1 / setting.slow_rate - k / setting.fast_rate for k in range(n)]
    joined = sum(wait + (k + 1) * setting.work for k, wait in enumerate(waits))
    return joined, sum(waits)


def grid() -> list[OrderCosts]:
    """Settings at all loads, windows and rates."""
    settings = []
    for load, n, slow, window in product(LOADS, WAITING, (0.001, 0.1, 1.0), (1.0, 60.0, DAY)):
        rates = (slow, n * slow)
        cost = load / OrderCosts.of_two(1.0, window, rates).load
        settings.append(OrderCosts.of_two(cost, window, rates))
    return settings


def figure_5() -> list[OrderCosts]:
    """The cost of a comparison doubles while the join keeps up."""
    settings = [OrderCosts.of_two(FIRST_COST, DAY, RATES)]
    while settings[-1].keeps_up:
        settings.append(OrderCosts.of_two(2 * settings[-1].cost, DAY, RATES))
    return settings[:-1]


def figure_6() -> list[OrderCosts]:
    """The slow stream gets faster."""
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
    """The grid and the points of both figures."""
    parts = (("", grid()), ("5", figure_5()), ("6", figure_6()))
    lines = [_line(figure, setting) for figure, settings in parts for setting in settings]
    return pl.DataFrame(lines, infer_schema_length=None)


def _apart(points: pl.DataFrame, one: str, two: str) -> float:
    """By how much two columns differ at most, as a share."""
    compared = points.filter(pl.col(two).is_not_null())
    most = compared.select(((pl.col(one) - pl.col(two)).abs() / pl.col(two)).max()).item()
    return float(most)


def judge(points: pl.DataFrame) -> Outcome:
    """Whether the formulas agree with one another, and what the figures say."""
    gains = _apart(points, "gain_eq6", "gain_eq7")
    sums = max(
        _apart(points, "sync_filter_sum_eq2", "sync_filter_sum_added"),
        _apart(points, "filter_order_sum_eq4", "filter_order_sum_added"),
    )
    most = float(points["gain_eq7"].max())  # type: ignore[arg-type]
    five, six = (points.filter(pl.col("figure") == name) for name in ("5", "6"))
    last = five.row(-1, named=True)
    fastest = six.row(-1, named=True)
    faults = [
        text
        for failed, text in (
            (gains > EXACT, f"Eq. 6 and Eq. 7 differ by {gains:.1e}"),
            (sums > EXACT, f"Eq. 2 or Eq. 4 differ from the rows added by {sums:.1e}"),
            (not BOUND - NEAR < most < BOUND, f"the gain comes to {most}, not just below {BOUND}"),
        )
        if failed
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
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours, not faults, points, lambda figure: _plot(figure, five, six))


def _plot(figure: Figure, five: pl.DataFrame, six: pl.DataFrame) -> None:
    axes = figure.subplots(2, 2)
    _draw(axes[0][0], axes[1][0], five, "cost_us")
    _draw(axes[0][1], axes[1][1], six, "slow_rate")
    limit = 1e6 / OrderCosts.of_two(1.0, DAY, RATES).load
    for each in axes[:, 0]:
        each.axvline(limit, color=PAPER, ls=":", label="the join can do no more")
        each.set_xlabel("cost of a comparison, c [µs]")
        logarithmic(each, "x")
    for each in axes[:, 1]:
        each.set_xlabel("rate of the slow stream, λ1 [1/s]")
        logarithmic(each, "x")
    axes[0][0].set_title("Fig. 5: λ 1/s and 10/s, window 1 day")
    axes[0][1].set_title("Fig. 6: λ2 1/s, window 1 day, c 0.1 ms")
    axes[0][0].set_ylim(0, 1.1 * max(five["sync_filter_seconds"]))
    logarithmic(axes[0][1], "y")
    for each in (axes[0][0], axes[0][1], axes[1][0]):
        each.legend()
    most = [max(points["gain_eq7"]) for points in (five, six)]
    tell(
        figure,
        f"By the formulas Filter-Order takes up to {most[0]:.0%} off the response time over c"
        f" (Fig. 5) and up to {most[1]:.0%} over λ1 (Fig. 6); the bound is {BOUND:.0%}",
        "I_rel = c·|w|·λ1·λ2 / (1 + c·|w|·λ1·λ2) < 0.5 (Eq. 7, 8); Fig. 6: from 10 s to 5 s",
    )


def _draw(response: Axes, gain: Axes, points: pl.DataFrame, x: str) -> None:
    places = points[x].to_list()
    for strategy, column, line in (
        (SYNC, "sync_filter_seconds", "o-"),
        (FILTER, "filter_order_seconds", "s-"),
    ):
        values = points[column].to_list()
        response.plot(places, values, line, color=COLOURS[strategy], label=NAMES[strategy], ms=5)
    shown = (100 * points["gain_eq7"]).to_list()
    gain.plot(places, shown, "s-", color=COLOURS[FILTER], ms=5, label=NAMES[FILTER])
    gain.axhline(100 * BOUND, color=PAPER, ls="--", label="paper: below the bound of Eq. 8")
    gain.set_ylim(0, 60)
    response.set_ylabel("mean response time [s]")
    gain.set_ylabel("gain on Sync-Filter [%]")


def run(quick: bool) -> Outcome:
    """Check and draw the formulas; there is nothing to make quicker."""
    return judge(table())


EQ = Claim(
    "ORD-EQ",
    "the response time of ordered joins, in formulas",
    "I_rel = c·|w|·λ1·λ2 / (1 + c·|w|·λ1·λ2) < 0.5; Fig. 6: from 10 s to 5 s",
    "Eq. 6 = Eq. 7, the sums (2) and (4) = their terms added, the gain just below 0.5 at full load",
    run,
)
