"""These functions draw the claims of the ETS paper; the figures are measured elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from lowwater.claims.drawing import COLOURS, PAPER, caption, logarithmic

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

A, B, C, D = "A no timestamps", "B heartbeats", "C on demand", "D latent"
"""The scenarios, as they are named in tables and legends."""
LINES = {A: "--", C: "-", D: "-."}
NEAR_MS = 0.1
"""Milliseconds by which the paper has C above D, at most."""
BURST = "in a burst of 10 × the rate"
Levels = Mapping[str, float]
"""A figure of each scenario, by its letter."""
Rates = Mapping[float, float]
"""A figure of B, by the heartbeats a second."""


def spell(value: float) -> str:
    """Write a number of milliseconds for people."""
    return f"{value / 1e3:,.1f} s" if value >= 1_000 else f"{value:.3g} ms"


def rises(beating: Rates) -> bool:
    """Return true if the figure at the highest rate is more than 1.5 times the least."""
    return beating[max(beating)] > 1.5 * min(beating.values())


def latency(figure: Figure, by: Levels, beating: Rates) -> None:
    """Draw ETS-F7: mean latency in milliseconds."""
    axes = figure.subplots()
    best = min(beating, key=lambda rate: beating[rate])
    near = f"paper: C within {NEAR_MS:g} ms of D"
    axes.axhspan(by["D"], by["D"] + NEAR_MS, color=PAPER, alpha=0.15, label=near)
    _levels(axes, by, beating, spell)
    axes.set_ylabel("mean latency, arrival to output [ms]")
    caption(
        figure,
        f"Mean latency is {spell(by['A'])} without timestamps, {spell(by['C'])} on"
        f" demand, {spell(by['D'])} latent; the best heartbeat rate, {best:g}/s, has"
        f" {spell(beating[best])}",
        "C orders of magnitude below A, within about 0.1 ms of D; no B matches C",
    )


def idle(figure: Figure, by: Levels, beating: Rates) -> None:
    """Draw ETS-IDLE: shares of time."""
    axes = figure.subplots()
    often = {rate: share for rate, share in beating.items() if rate >= 100}
    levels = {name: 100 * by[name] for name in ("A", "C")}
    _levels(axes, levels, {r: 100 * s for r, s in beating.items()}, lambda v: f"{v:.3g} %", 1e-2)
    axes.hlines(15, 100, max(beating), color=PAPER, ls=":", label="paper: B at ≥ 100/s, 15 %")
    axes.axhline(0.1, color=PAPER, ls=(0, (1, 4)), label="paper: C below 0.1 %")
    axes.legend(loc="center left")
    axes.set_ylabel("time the union waits while it holds rows [%]")
    caption(
        figure,
        f"The union waits {by['A']:.1%} of the time without timestamps,"
        f" up to {max(often.values()):.1%} with {min(often):g} heartbeats a second or more and"
        f" {by['C']:.2%} on demand",
        "A 99 %, B at ≥ 100/s 15 %, C < 0.1 % (shares below 0.01 % are drawn at 0.01 %)",
    )


def queues(figure: Figure, by: Levels, beating: Rates, burst: tuple[float, Rates]) -> None:
    """Draw ETS-F8: peaks in rows and punctuation; ``burst``: those of C and of B in a burst."""
    axes = figure.subplots()
    burst_c, crowd = burst
    again = rises(beating)
    limit = "paper: C more than two orders below A"
    axes.axhline(by["A"] / 100, color=PAPER, ls=":", label=limit)
    rates, peaks = list(crowd), list(crowd.values())
    axes.plot(rates, peaks, "s:", color=COLOURS[B], label=f"B, {BURST}")
    axes.axhline(burst_c, color=COLOURS[C], ls=":", label=f"C, {BURST} ({burst_c:,.0f})")
    _levels(axes, {name: by[name] for name in ("A", "C")}, beating, lambda v: f"{v:,.0f}")
    axes.set_ylabel("peak of all queues [rows and punctuations]")
    caption(
        figure,
        f"Queues peak at {by['C']:,.0f} on demand and {by['A']:,.0f} without timestamps; with"
        f" heartbeats at {min(beating.values()):,.0f} or more, "
        + ("rising again at high rates" if again else "not rising again at high rates")
        + (" but in bursts" if rises(crowd) and not again else ""),
        "A thousands, C more than two orders of magnitude lower; B falls, then rises again",
    )


def _levels(
    axes: Axes,
    levels: Levels,
    beating: Rates,
    spelled: Callable[[float], str],
    floor: float = 0.0,
) -> None:
    """Draw B as a curve over its rate; A, C and D, which have no rate, as levels."""
    for scenario, line in LINES.items():
        if scenario[0] in levels:
            value = levels[scenario[0]]
            label = f"{scenario} ({spelled(value)})"
            axes.axhline(max(value, floor), color=COLOURS[scenario], ls=line, label=label)
    shown = [max(value, floor) for value in beating.values()]
    axes.plot(list(beating), shown, "o-", color=COLOURS[B], label=B)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.5, high)
    logarithmic(axes, "x")
    logarithmic(axes, "y")
    axes.set_xlabel("heartbeats on the slow stream [1/s]")
    axes.legend()
