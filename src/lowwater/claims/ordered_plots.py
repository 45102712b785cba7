"""These functions draw the claims of the Ordered paper; the figures are measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import polars as pl

from lowwater.claims.drawing import BLACK, COLOURS, GREY, PAPER, bars, caption, logarithmic
from lowwater.claims.ordered_runs import (
    ADAPTIVE,
    FILTER,
    NAMES,
    ORDERS,
    SYNC,
    UNORDERED,
    curve,
    gains,
    microseconds,
)
from lowwater.joins.ordered.model import BOUND, OrderCosts

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LINES = {SYNC: "^-", FILTER: "o-", ADAPTIVE: "s--"}
SLOW, FAST = 1.0, 10.0
"""Rows a second of both streams, in the paper."""

# ---- formulas ------------------------------------------------------------------------------


def model(
    figure: Figure, five: pl.DataFrame, six: pl.DataFrame, window: float, rates: Sequence[float]
) -> None:
    """Draw ORD-EQ: Figures 5 and 6; ``window`` (seconds) and ``rates`` are those of Figure 5."""
    axes = figure.subplots(2, 2)
    _draw_model(axes[0][0], axes[1][0], five, "cost_us")
    _draw_model(axes[0][1], axes[1][1], six, "slow_rate")
    limit = 1e6 / OrderCosts.of_two(1.0, window, rates).load
    for each in axes[:, 0]:
        each.axvline(limit, color=PAPER, ls=":", label="overloaded from here on")
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
    caption(
        figure,
        f"By the formulas Filter-Order takes up to {most[0]:.0%} off the response time over c"
        f" (Fig. 5) and up to {most[1]:.0%} over λ1 (Fig. 6); the bound is {BOUND:.0%}",
        "I_rel = c·|w|·λ1·λ2 / (1 + c·|w|·λ1·λ2) < 0.5 (Eq. 7, 8); Fig. 6: from 10 s to 5 s",
    )


def _draw_model(response: Axes, gain: Axes, points: pl.DataFrame, x: str) -> None:
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


# ---- response times ------------------------------------------------------------------------


def over_cost(
    figure: Figure,
    imposed: pl.DataFrame,
    setting: tuple[float, float, float],
    at: float,
    found: tuple[float, float] | None,
) -> None:
    """Draw ORD-F7, costs in microseconds.

    ``setting``: the window in seconds, the cost at which Adaptive should switch, and the cost from
    which the join is overloaded. ``at``: the cost of the gain in the title. ``found``: the costs
    between which Adaptive switches.
    """
    x = "imposed_cost_us"
    window, switch, limit = setting
    sync, gain = curve(imposed, SYNC, x), gains(imposed, FILTER, x)
    spelled = f"between {microseconds(found[0])} and {microseconds(found[1])}" if found else ""
    left, right = figure.subplots(1, 2)
    scaled = imposed.with_columns(pl.col(x) / 1e3)
    _draw_response(left, scaled, x)
    loads = [each / 1e3 for each in sync]
    _draw_gain(right, scaled, x, [OrderCosts.of_two(c / 1e3, window, (SLOW, FAST)) for c in loads])
    logarithmic(left, "y")
    right.set_ylim(-3, 80)
    for each in (left, right):
        each.axvline(switch / 1e3, color=PAPER, ls=":", label="paper: the switch")
        if max(sync) > limit:
            beyond = (limit / 1e3, 1.03 * max(sync) / 1e3)
            each.axvspan(*beyond, color=PAPER, alpha=0.12, label="overloaded")
        each.set_xlabel("cost of a comparison, c [ms]")
        each.set_title(f"λ 1/s and 10/s, window {window:g} s")
    right.plot(switch / 1e3, 45, "D", color=PAPER, mfc="none", label="paper: about 45 %")
    left.legend()
    right.legend(ncols=2, loc="upper left")
    caption(
        figure,
        f"Filter-Order takes {gain[at]:.0%} off the response time of Sync-Filter at c ="
        f" {microseconds(at)}; Adaptive " + (f"switches {spelled}" if found else "never switches"),
        "Filter-Order flat, Adaptive switches at c·|w|·λ1·λ2 = α (0.5 ms, window 60 s), about"
        " 45 % better there",
    )


def over_rate(figure: Figure, points: pl.DataFrame, settings: Sequence[OrderCosts]) -> None:
    """Draw ORD-F9; ``settings``: the model's, one for each rate of the slow stream."""
    x = "slow_rate"
    window, cost = float(points["window_seconds"][0]), float(points["imposed_cost_us"][0])
    gain, own = gains(points, FILTER, x), gains(points, ADAPTIVE, x)
    top = max(gain)
    left, right = figure.subplots(1, 2)
    _draw_response(left, points, x)
    _draw_gain(right, points, x, settings)
    logarithmic(left, "y")
    right.set_ylim(-2, 60)
    for each in (left, right):
        logarithmic(each, "x")
        each.axvline(SLOW, color=PAPER, ls=":", label="paper: Adaptive switches")
        each.set_xlabel("rate of the slow stream, λ1 [1/s]")
        each.set_title(f"λ2 {FAST:g}/s, window {window:g} s, c {microseconds(cost)}")
    left.legend()
    right.legend(loc="upper left")
    caption(
        figure,
        f"Filter-Order takes {gain[min(gain)]:.1%} off the response time of Sync-Filter at λ1 ="
        f" {min(gain):g}/s and {gain[top]:.0%} at {top:g}/s, Adaptive {own[top]:.0%} there",
        "the gain grows with λ1; Adaptive switches when λ1 is 1/s",
    )


def _draw_response(axes: Axes, points: pl.DataFrame, x: str) -> None:
    for order in ORDERS:
        own = curve(points, order, x)
        shown = list(own.values())
        axes.plot(list(own), shown, LINES[order], color=COLOURS[order], label=NAMES[order], ms=5)
    axes.set_ylabel("mean response time per input row [s]")


def _draw_gain(axes: Axes, points: pl.DataFrame, x: str, settings: Sequence[OrderCosts]) -> None:
    for order in (FILTER, ADAPTIVE):
        own = gains(points, order, x)
        shown = [100 * value for value in own.values()]
        axes.plot(list(own), shown, LINES[order], color=COLOURS[order], label=NAMES[order], ms=5)
    places = list(curve(points, SYNC, x))
    modelled = [100 * each.gain for each in settings]
    axes.plot(places, modelled, "--", color=PAPER, label="paper: by Eq. 7")
    axes.set_ylabel("taken off the response time of Sync-Filter [%]")


# ---- output --------------------------------------------------------------------------------


def output(
    figure: Figure, times: Mapping[str, pl.Series], by: Mapping[str, dict[str, Any]]
) -> None:
    """Draw ORD-OUT; ``times``: of the results as they left, ``by``: sums and peaks, by strategy."""
    plain, ordered = by[UNORDERED], [by[order] for order in ORDERS]
    share = plain["results_behind"] / plain["results"]
    left, right = figure.subplots(1, 2)
    _draw_order(left, times)
    _draw_held(right, by)
    behind = max(each["results_behind"] for each in ordered)
    caption(
        figure,
        f"Without order {share:.0%} of {plain['results']:,} results leave after a later one,"
        f" in order {behind:,}, whatever the strategy",
        "output timestamps never decrease; holding results takes memory",
    )


def _draw_order(axes: Axes, times: Mapping[str, pl.Series]) -> None:
    """Draw the times of the results of one run, as they leave."""
    for name, label in ((UNORDERED, "without order"), (FILTER, "in order (Filter-Order)")):
        shown = (times[name].to_physical() / 1e6).to_list()
        axes.plot(range(len(shown)), shown, ".", ms=2.5, color=COLOURS[name], label=label)
    axes.set(xlabel="place among the results that leave [number]", ylabel="time of the result [s]")
    axes.legend(markerscale=4)


def _draw_held(axes: Axes, by: Mapping[str, dict[str, Any]]) -> None:
    """Draw the peaks of both buffers."""
    for shift, key, colour, label in (
        (-0.2, "waiting_rows_peak", GREY, "rows that wait to be joined"),
        (0.2, "held_rows_peak", BLACK, "results that are held"),
    ):
        places = [at + shift for at in range(len(ORDERS))]
        peaks = [by[order][key] for order in ORDERS]
        bars(axes, places, peaks, colour, lambda v: f"{v:,}", width=0.36, label=label)
    axes.set_xticks(range(len(ORDERS)), [NAMES[order] for order in ORDERS])
    axes.set(xlabel="strategy", ylabel="most that were held at once [rows]")
    axes.margins(y=0.2)
    axes.legend(loc="upper left")
