"""These claims measure the response time of ordered joins, over cost and rate (Ordered §7.2).

A slow and a fast stream meet in a join; comparing two rows takes *c* on a virtual clock. The three
strategies get the same arrivals (Figures 7 and 8 over c, 9 and 10 over the slow stream's rate). The
relative gain is the share by which a strategy shortens the response time of Sync-Filter.

A run has two effects that the formulas leave out:

- Arrivals are Poisson. A row waits for the slow stream's next one, on average a whole mean gap and
  not half of one.
- Rows of the slow stream are joined, too, by the same one server. All the work is twice
  c·|w|·λ1·λ2; the join keeps up while that is below 1, and near to it rows queue whatever the
  strategy. Points beyond are drawn but not judged.

Departures: a run takes seven minutes of virtual time, not twenty, and rows that come before the
first window is full are not counted. The quick variant has a window of a sixth and comparisons that
take six times as long, so that rows take as long as in the full one. Over the slow stream's rate,
arrivals are handed over in ticks of a fiftieth of its mean gap.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from math import exp, log

import polars as pl

from lowwater.claims import ordered_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.ordered_runs import (
    ADAPTIVE,
    ALPHA,
    FILTER,
    NAMES,
    ORDERS,
    SYNC,
    Experiment,
    curve,
    gains,
    microseconds,
    respond,
    shares,
    table,
)
from lowwater.joins.ordered.model import OrderCosts, switching_cost
from lowwater.probe import CHUNK_ROWS, PerComparison

SLOW, FAST, WINDOW = 1.0, 10.0, 60.0
SWITCH = switching_cost(ALPHA, (WINDOW, WINDOW), (SLOW, FAST))
"""Seconds of a comparison at which Adaptive should switch: 0.0005."""
GAIN = 0.25
"""The share Filter-Order should save at the switch, about alpha / (1 + alpha)."""
LEVEL = 0.15
"""The share by which Filter-Order may rise from the least cost to the switch."""
CLOSE = 0.03
"""The share by which Adaptive may differ from the strategy it has chosen, clear of the switch."""
CLEAR = 1.3
"""Loads by this factor above or below alpha are clear of it."""
TICK = 0.02
"""Length of a tick, in mean gaps of the slow stream."""


@dataclass(frozen=True)
class ResponseRuns:
    """The runs over the cost of a comparison, and over the slow stream's rate."""

    shorter: float
    """The factor by which the window is shorter and comparisons take longer."""
    seconds: float
    """Seconds of virtual time of a run over the cost."""
    warm: float
    """Seconds at the beginning that are not counted: a window fills, and Adaptive decides."""
    costs: tuple[float, ...]
    """Costs at which all strategies run, in units of the cost at which Adaptive should switch."""
    between: tuple[float, ...]
    """Costs at which only Adaptive runs, to find its switch."""
    times_rates: tuple[float, ...]
    """Rates, in units of those above, of the runs in which work takes its real time."""
    slow_rates: tuple[float, ...]
    """Rates of the slow stream, in rows a second."""
    slow_rows: int
    """The least number of rows of the slow stream in a run over its rate."""
    rate_seconds: float
    """The least seconds of virtual time of a run over the rate."""

    @property
    def window(self) -> float:
        """Length of the window, in seconds."""
        return WINDOW / self.shorter

    @property
    def switch(self) -> float:
        """Seconds of a comparison at which Adaptive should switch."""
        return SWITCH * self.shorter

    def over_cost(self) -> Experiment:
        """Return the streams of Figure 7."""
        return Experiment(SLOW, FAST, self.window, self.seconds, self.warm)

    def over_rate(self, slow: float) -> Experiment:
        """Return the streams of Figure 9."""
        seconds = max(self.rate_seconds, self.warm + self.slow_rows / slow)
        return Experiment(
            slow, FAST, self.window, seconds, self.warm, tick=TICK / slow, chunk_rows=CHUNK_ROWS
        )


FULL = ResponseRuns(
    shorter=1,
    seconds=420,
    warm=60,
    costs=(0.002, 0.2, 0.6, 1.0, 1.4, 2.0),
    between=(0.8, 0.9, 1.1),
    times_rates=(1, 8, 64),
    slow_rates=(0.01, 0.03, 0.1, 0.3, 1.0),
    slow_rows=60,
    rate_seconds=360,
)
QUICK = ResponseRuns(
    shorter=6,
    seconds=75,
    warm=25,
    costs=(0.002, 0.6, 1.0, 1.4),
    between=(),
    times_rates=(1,),
    slow_rates=(0.1, 0.3, 1.0),
    slow_rows=20,
    rate_seconds=80,
)
SCALE = Scale(FULL, QUICK)


# ---- ORD-F7 --------------------------------------------------------------------------------


def over_cost(scale: ResponseRuns) -> pl.DataFrame:
    """Run all strategies at all costs, then Adaptive with work that takes its real time."""
    runs = []
    for times in sorted({*scale.costs, *scale.between}):
        charge = PerComparison(times * scale.switch * 1e9)
        for order in ORDERS if times in scale.costs else (ADAPTIVE,):
            runs.append(respond(order, charge, scale.over_cost()))
    for times in scale.times_rates:
        seconds = scale.warm + max(30 / times, 2)
        faster = Experiment(
            times * SLOW, times * FAST, scale.window, seconds, scale.warm, chunk_rows=CHUNK_ROWS
        )
        runs.append(respond(ADAPTIVE, "measured", faster))
    return table(runs)


def cost_outcome(points: pl.DataFrame) -> Outcome:
    """Judge the response time over the cost of a comparison."""
    x = "imposed_cost_us"
    imposed = points.filter(pl.col(x).is_not_null())
    window = float(imposed["window_seconds"][0])
    switch = 1e6 * switching_cost(ALPHA, (window, window), (SLOW, FAST))
    limit = switch / ALPHA / 2
    sync, later, adaptive = (curve(imposed, order, x) for order in ORDERS)
    kept_up = [cost for cost in sync if cost < limit]
    upto = [cost for cost in kept_up if cost <= switch * 1.001]
    at = upto[-1]
    gain = gains(imposed, FILTER, x)
    found = _crossing(shares(imposed, x))
    rise = later[at] / later[upto[0]] - 1
    below = {cost: sync[cost] for cost in kept_up if cost < switch / CLEAR}
    above = {cost: later[cost] for cost in kept_up if cost > switch * CLEAR}
    criteria = [
        Criterion(
            not any(sync[each] < later[each] for each in kept_up), "Sync-Filter is not the worst"
        ),
        Criterion(not _falls(sync), "Sync-Filter does not rise with c"),
        Criterion(rise <= LEVEL, f"Filter-Order rises by {rise:.0%} up to the switch"),
        Criterion(not _off(adaptive, below), "Adaptive differs from Sync-Filter below the switch"),
        Criterion(not _off(adaptive, above), "Adaptive differs from Filter-Order above the switch"),
        Criterion(not (found is None or not _near(found, switch)), "Adaptive switches elsewhere"),
        Criterion(gain[at] >= GAIN, f"the gain at the switch is {gain[at]:.0%}"),
    ]
    spelled = (
        "no switch"
        if found is None
        else f"between {microseconds(found[0])} and {microseconds(found[1])}"
    )
    ours = (
        f"c {microseconds(upto[0])} … {microseconds(at)}: Sync-Filter {sync[upto[0]]:.2f} →"
        f" {sync[at]:.2f} s,"
        f" Filter-Order {later[upto[0]]:.2f} → {later[at]:.2f} s (+{rise:.0%}: one server joins the"
        f" slow stream's rows, too); Adaptive switches {spelled} (c·|w|·λ1·λ2 = {ALPHA:g} at"
        f" {microseconds(switch)}); gain there {gain[at]:.0%}, by Eq. 7"
        f" {OrderCosts.of_two(at / 1e6, window, (SLOW, FAST)).gain:.0%}."
        f" {_overload(sync, later, adaptive, limit)}{_measured(points, x)}"
    )

    return judge(
        ours,
        criteria,
        points,
        lambda figure: plots.over_cost(figure, imposed, (window, switch, limit), at, found),
    )


def _falls(response: dict[float, float]) -> bool:
    values = list(response.values())
    return any(two <= one for one, two in pairwise(values))


def _off(own: dict[float, float], other: dict[float, float]) -> bool:
    return any(abs(own[at] / value - 1) > CLOSE for at, value in other.items())


def _crossing(share: dict[float, float]) -> tuple[float, float] | None:
    """Return the places between which Adaptive begins to join rows as they come for most of the
    time; None if it never does."""
    places = list(share)
    for one, two in pairwise(places):
        if share[one] < 0.5 <= share[two]:
            return one, two
    return None


def _near(found: tuple[float, float], switch: float) -> bool:
    return found[0] <= switch * CLEAR and found[1] >= switch / CLEAR


def _overload(
    sync: dict[float, float], later: dict[float, float], adaptive: dict[float, float], limit: float
) -> str:
    beyond = [
        f"{microseconds(at)}: {sync[at]:.1f}, {later[at]:.1f}, {adaptive[at]:.1f} s"
        for at in sync
        if at > limit
    ]
    if not beyond:
        return ""
    return (
        f"Overloaded from {microseconds(limit)} on, where all work is 100 % ({'; '.join(beyond)}). "
    )


def _measured(points: pl.DataFrame, x: str) -> str:
    """Write the cost of our own join, and the rates at which it would be worth a switch."""
    real = points.filter(pl.col(x).is_null()).sort("slow_rate")
    parts = [
        f"{each['slow_rate']:g} and {each['fast_rate']:g}/s {microseconds(each['cost_us'])}, load"
        f" {each['load']:.2g}, {NAMES[_mostly(each['filter_order_share'])]}"
        for each in real.iter_rows(named=True)
    ]
    return f"With the real cost of our join: {'; '.join(parts)}{_reached(real)}"


def _reached(real: pl.DataFrame) -> str:
    """Write the rates at which the load is alpha, on a line between those that were run."""
    points = list(zip(real["slow_rate"].log(), real["load"].log(), strict=True))
    for (rate, load), (faster, more) in pairwise(points):
        if load < log(ALPHA) <= more:
            times = exp(rate + (faster - rate) * (log(ALPHA) - load) / (more - load)) / SLOW
            return f"; {ALPHA:g} is reached near {_rate(times * SLOW)} and {_rate(times * FAST)}/s"
    return ""


def _rate(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _mostly(share: float) -> str:
    return FILTER if share >= 0.5 else SYNC


def run_f7(quick: bool) -> Outcome:
    """Measure the response time over the cost of a comparison."""
    return cost_outcome(over_cost(SCALE.of(quick)))


# ---- ORD-F9 --------------------------------------------------------------------------------


def over_rate(scale: ResponseRuns) -> pl.DataFrame:
    """Run all strategies at all rates of the slow stream."""
    charge = PerComparison(scale.switch * 1e9)
    return table(
        [
            respond(order, charge, scale.over_rate(slow))
            for slow in scale.slow_rates
            for order in ORDERS
        ]
    )


def rate_outcome(points: pl.DataFrame) -> Outcome:
    """Judge the response time over the slow stream's rate."""
    x = "slow_rate"
    window, cost = float(points["window_seconds"][0]), float(points["imposed_cost_us"][0])
    sync, later, _ = (curve(points, order, x) for order in ORDERS)
    gain, own = gains(points, FILTER, x), gains(points, ADAPTIVE, x)
    share = shares(points, x)
    settings = [OrderCosts.of_two(cost / 1e6, window, (rate, FAST)) for rate in sync]
    low = [rate for rate, each in zip(sync, settings, strict=True) if each.load < ALPHA / CLEAR]
    top = max(sync)
    criteria = [
        Criterion(
            not any(sync[each] < later[each] for each in sync), "Sync-Filter is not the worst"
        ),
        Criterion(not _falls(gain), "the gain does not grow with the slow stream's rate"),
        Criterion(not any(share[each] > 0 for each in low), "Adaptive switches at a low rate"),
        Criterion(share[top] != 0, f"Adaptive does not switch at {top:g}/s"),
    ]
    spelled = ", ".join(
        f"{rate:g}/s {sync[rate]:.3g} → {later[rate]:.3g} s ({gain[rate]:.1%}, Eq. 7"
        f" {each.gain:.1%})"
        for rate, each in zip(sync, settings, strict=True)
    )
    ours = (
        f"Sync-Filter → Filter-Order: {spelled}; Adaptive holds results"
        f" {share[top]:.0%} of the time at {top:g}/s (gain {own[top]:.0%}) and never up to"
        f" {max(low):g}/s"
    )

    return judge(ours, criteria, points, lambda figure: plots.over_rate(figure, points, settings))


def run_f9(quick: bool) -> Outcome:
    """Measure the response time over the slow stream's rate."""
    return rate_outcome(over_rate(SCALE.of(quick)))


F7 = Claim(
    "ORD-F7",
    "response time of ordered joins over the cost of a comparison",
    "Sync-Filter worst and rising with c; Filter-Order flat; Adaptive follows the better and"
    " switches at c·|w|·λ1·λ2 = α (c = 0.5 ms); about 45 % better there",
    f"the same shape where the join keeps up (2·c·|w|·λ1·λ2 < 1); Filter-Order within {LEVEL:.0%}"
    f" up to the switch, Adaptive within {CLOSE:.0%} of its choice clear of it; it switches"
    f" within {CLEAR - 1:.0%} of c·|w|·λ1·λ2 = α; gain there ≥ {GAIN:.0%}",
    run_f7,
)
F9 = Claim(
    "ORD-F9",
    "response time of ordered joins over the slow stream's rate",
    "the relative gain of Filter-Order grows with λ1; Adaptive switches at λ1 = 1/s",
    "Sync-Filter worst, the gain growing with λ1, Adaptive switching at 1/s and not well below",
    run_f9,
)
