"""These functions draw the claims of the OOP paper; the figures are measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.drawing import (
    BLUE,
    COLOURS,
    ORANGE,
    PAPER,
    RED,
    SKY,
    bars,
    brief,
    caption,
    curves,
    keys,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# ---- memory over a parameter ---------------------------------------------------------------


def _memory(
    figure: Figure, table: pl.DataFrame, x: str, *, label: str, finding: str, paper: str
) -> Axes:
    """Draw the peak memory of both plans over the column ``x``; ``label``: its name and unit."""
    axes: Axes = figure.subplots()
    curves(axes, table, x, "bytes", 1e6)
    axes.set(xlabel=label, ylabel="peak memory, state and queues [MB]")
    axes.legend()
    caption(figure, finding, paper)
    return axes


def f1(figure: Figure, table: pl.DataFrame, paper: float) -> None:
    """Draw OOP-F1; ``paper`` is the paper's ratio at the largest delay."""
    last = table.row(-1, named=True)
    axes = _memory(
        figure,
        table,
        "delay_seconds",
        label="delay of the late stream [s]",
        finding=f"Counting per address pair out of order takes {last['ratio']:.0%} of the"
        f" memory of in-order when a stream is {last['delay_seconds']:g} s late",
        paper="IOP grows with the delay; OOP grows slowly, to about 30 % of IOP at 40 s",
    )
    expected = paper * last["iop_bytes"] / 1e6
    label = "paper: 30 % of IOP"
    axes.plot(last["delay_seconds"], expected, "D", color=PAPER, mfc="none", label=label)
    axes.legend()


def n3(figure: Figure, table: pl.DataFrame, iop: float, oop: float) -> None:
    """Draw OOP-N3; ``iop`` and ``oop`` are the factors by which memory grows."""
    last = table.row(-1, named=True)
    _memory(
        figure,
        table,
        "delay_seconds",
        label="delay of the slow link C [s]",
        finding=f"A link that is {last['delay_seconds']:g} s late multiplies in-order memory by"
        f" {iop:.1f} and out-of-order memory by {oop:.2f}, to {last['ratio']:.1%} of in-order",
        paper="IOP grows with the delay of C, OOP is about flat",
    )


def g3(figure: Figure, table: pl.DataFrame, same: bool, limit: float) -> None:
    """Draw OOP-G3; ``same``: both plans hold the same rows; ``limit`` is the paper's ratio."""
    axes = _memory(
        figure,
        table,
        "skew_seconds",
        label="skew between the streams of each union [s]",
        finding=f"Out of order, a tumbling-window join holds {'the same' if same else 'other'}"
        f" rows in up to {max(table['ratio']):.2f} × the bytes of in-order",
        paper=f"the same rows are held; OOP takes at most {limit} × the bytes of IOP",
    )
    most = (limit * table["iop_bytes"] / 1e6).to_list()
    skews = table["skew_seconds"].to_list()
    axes.plot(skews, most, "--", color=PAPER, label=f"paper: at most {limit} × IOP")
    axes.set_ylim(0, 1.05 * max(most))
    axes.legend()


def n2(figure: Figure, table: pl.DataFrame, slope: float) -> None:
    """Draw OOP-N2; ``slope`` is OOP's in times IOP's."""
    _memory(
        figure,
        table,
        "delay_seconds",
        label="delay of the late tuples [s]",
        finding="With late tuples on one input, out-of-order memory grows"
        f" {slope:.2f} × as fast as in-order memory",
        paper="OOP grows more slowly, because M1's progress purges M2's rows at once",
    )


# ---- band joins ----------------------------------------------------------------------------

PLACES = {
    "iop_sort_s0": "in order: S0\nin the sort",
    "iop_join_s0": "in order: S0\nin the join",
    "iop_join_s1": "in order: S1\nin the join",
    "oop_join_s0": "out of order:\nS0 in the join",
    "oop_join_s1": "out of order:\nS1 in the join",
}
"""The names of the places where rows are held, by column."""


def s53(
    figure: Figure, held: Mapping[str, float], expected: Mapping[str, tuple[float, float]]
) -> None:
    """Draw OOP-S5.3: minutes held by place, and the least and most that the paper has there."""
    axes = figure.subplots()
    colours = [COLOURS[name[:3]] for name in PLACES]
    bars(axes, range(len(PLACES)), [held[name] for name in PLACES], colours, lambda v: f"{v:.1f}")
    for at, name in enumerate(PLACES):
        label = "" if at else "paper"
        axes.hlines(expected[name], at - 0.42, at + 0.42, color=PAPER, linestyles="--", label=label)
    axes.set_xticks(range(len(PLACES)), list(PLACES.values()))
    axes.set(xlabel="where rows are held", ylabel="length of the stream held, median [min]")
    axes.margins(y=0.1)
    keys(axes, {"in-order (IOP)": COLOURS["iop"], "out-of-order (OOP)": COLOURS["oop"]})
    in_order = held["iop_sort_s0"] + held["iop_join_s0"]
    caption(
        figure,
        f"A band join holds {held['oop_join_s0']:.1f} min of the input that may be late out of"
        f" order, {in_order:.1f} min in order",
        "(dashed) in order 5 min of S0 in the sort and 7 min of S1; out of order 2 min of S0 and 5"
        " to 7 min of S1",
    )


def n1(figure: Figure, table: pl.DataFrame, last: Mapping[str, Any]) -> None:
    """Draw OOP-N1; ``last`` is the row of the widest band."""
    panels = figure.subplots(1, 3)
    measures = (
        ("bytes", 1e6, "peak memory [MB]"),
        ("latency_ms", 1.0, "latency of an answer [ms]"),
        ("seconds", 1.0, "execution time [s]"),
    )
    for axes, (what, unit, label) in zip(panels, measures, strict=True):
        curves(axes, table, "band_seconds", what, unit)
        axes.set(xlabel="band ± n [s]", ylabel=label)
    panels[0].legend()
    caption(
        figure,
        f"With no sort after the band join, memory is {last['bytes_ratio']:.0%}, latency"
        f" {last['latency_ms_ratio']:.0%} and time {last['seconds_ratio']:.0%}"
        f" of in-order at ± {last['band_seconds']} s",
        "OOP far below IOP in memory and latency, below it in time; the gap widens with the band",
    )


# ---- punctuation ---------------------------------------------------------------------------


def s7(
    figure: Figure,
    delays: Mapping[str, NDArray[np.float64]],
    spread: Mapping[str, str],
    band: int,
) -> None:
    """Draw OOP-S7: the shares of groups by delay in ticks; ``spread``: least to most, in words."""
    axes = figure.subplots()
    looks = {
        "joint": (BLUE, "joint (S0.ts, S1.ts)"),
        "individual": (RED, "individual, on S1.ts"),
        "either": (ORANGE, "individual, whichever of S0.ts and S1.ts is first"),
    }
    for kind, (colour, label) in looks.items():
        ticks = np.sort(delays[kind])
        share = 100 * np.arange(1, len(ticks) + 1) / len(ticks)
        steps = np.concatenate(([ticks[0]], ticks)), np.concatenate(([0.0], share))
        axes.step(*steps, where="post", color=colour, label=label, linewidth=2.5)
    for place, said in ((0, " paper: joint"), (band, " paper: individual, the band")):
        axes.axvline(place, color=PAPER, linestyle=":")
        axes.text(place, 104, said, color=PAPER, fontsize=9)
    axes.set_xlim(-5, band + 40)
    axes.set_ylim(-3, 112)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlabel("delay of a group's answer after both inputs have passed it [ticks of 1 s]")
    axes.set_ylabel("groups answered [%]")
    axes.legend(loc="upper left", bbox_to_anchor=(0.08, 0.9))
    caption(
        figure,
        f"A pair of timestamps is answered {spread['joint']} ticks after both inputs passed it"
        f" with joint punctuation, {spread['individual']} with individual (the band is {band})",
        "joint punctuation is independent of the band, individual waits a band more",
    )


def groups(figure: Figure, table: pl.DataFrame) -> None:
    """Draw OOP-GROUPS."""
    left, right = figure.subplots(1, 2)
    own, least = table.rows(named=True)
    sides = (
        (left, table["prompt_mean_delay_s"] / 60, "mean wait of a prompt device's window [min]"),
        (right, table["state_rows"] / 1e3, "rows held at most [thousand]"),
    )
    for axes, heights, label in sides:
        bars(axes, (0, 1), heights.to_list(), [BLUE, RED], brief)
        axes.set_xticks((0, 1), table["progress"].to_list())
        axes.set(xlabel="whose progress ends a window", ylabel=label)
        axes.margins(y=0.1)
    caption(
        figure,
        f"A prompt device's window waits {own['prompt_delay_s']:.0f} s by its own progress,"
        f" {least['prompt_mean_delay_s'] / 60:.0f} min by the least of all; {own['state_rows']:,}"
        f" rows are held, not {least['state_rows']:,}",
        "a punctuation may be about part of a stream, so that this part waits for no other",
    )


# ---- flushing, learning --------------------------------------------------------------------


def g1(figure: Figure, table: pl.DataFrame, shown: Mapping[str, float]) -> None:
    """Draw OOP-G1; ``shown``: the rates, in thousand rows a second, that the title has."""
    sizes = table["table"].unique(maintain_order=True).to_list()
    axes = figure.subplots(1, len(sizes), sharey=True)
    looks = (
        ("iop", "in order", RED, "o-"),
        ("oop_lazy", "out of order, lazy", SKY, "s-"),
        ("oop_slow", "out of order, slow", BLUE, "^--"),
    )
    for each, size in zip(axes, sizes, strict=True):
        for name, label, colour, line in looks:
            curve = table.filter((pl.col("table") == size) & (pl.col("variant") == name))
            at, rates = curve["groups"] / 1e3, curve["highest_rate_k_per_s"]
            each.plot(at.to_list(), rates.to_list(), line, color=colour, label=label)
        each.set_title(f"table {size:g} × groups")
        each.set_xlabel("groups [thousand]")
    axes[0].set_ylim(0, 1.1 * float(table["highest_rate_k_per_s"].max()))  # type: ignore[arg-type]
    axes[0].set_ylabel("highest rate without loss [thousand rows/s]")
    axes[0].legend(loc="lower left")
    caption(
        figure,
        f"With {shown['groups']:,} groups and a table twice as large, {shown['oop_slow']:.0f}k"
        f" rows/s (slow) and {shown['oop_lazy']:.0f}k rows/s (lazy) are taken out of order,"
        f" {shown['iop']:.0f}k rows/s in order",
        "at 260k groups and a table of 540k in order 400k/s, lazy 760k/s (1.9 ×), slow 800k/s"
        " (2 ×); at 66k groups about equal",
    )


def learned(figure: Figure, whole: pl.DataFrame, targets: Sequence[float]) -> None:
    """Draw OOP-LEARNED: the ratio of delays by stream, at each target of completeness."""
    axes = figure.subplots()
    names = whole["stream"].unique(maintain_order=True).to_list()
    for shift, target, colour in zip((-0.2, 0.2), targets, (SKY, BLUE), strict=True):
        ratios = whole.filter(pl.col("target") == target)["ratio"].to_list()
        places = [at + shift for at in range(len(names))]
        label = f"{target:.1%} of rows on time"
        bars(axes, places, ratios, colour, lambda v: f"{v:.2f}", width=0.36, label=label)
    axes.axhline(1.0, color=PAPER, ls="--", label="the least fixed slack, known afterwards")
    axes.set_xticks(range(len(names)), [fill(name, 14) for name in names])
    axes.set(xlabel="stream", ylabel="mean delay of answers, learned / fixed [ratio]")
    axes.set_ylim(0, 1.3 * max(1.0, *whole["ratio"]))
    axes.legend(loc="upper right", ncols=3)
    low, high = min(whole["ratio"]), max(whole["ratio"])
    caption(
        figure,
        f"At equal completeness, learned progress answers after {low:.0%} to {high:.0%} of the"
        " delay of the least fixed slack",
        "the slack of a stream is stated beforehand, by who knows it (dashed: at its best)",
    )
