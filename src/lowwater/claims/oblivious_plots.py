"""These functions draw the claims of the WO-Join paper; the figures are measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.drawing import (
    BLACK,
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    PAPER,
    RED,
    SKY,
    bars,
    brief,
    caption,
    logarithmic,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FIXED = "fixed"
NAMES = {"plain": "plain", "msf": "MSF", "dbf": "DBF", "hybrid": "Hybrid"}
LABELS = {FIXED: "W-Join", **NAMES, "plain": "WO-Join"}
THEIRS = {FIXED: 1.0, "dbf": 1.5, "msf": 100.0, "hybrid": 100.0}
"""The latency of each join in the paper, roughly, in times WO-Join's."""

# ---- the worked example --------------------------------------------------------------------


def example(figure: Figure, shown: pl.DataFrame, finding: str, expected: Mapping[str, int]) -> None:
    """Draw WO-F1: the rows of a filling, and the lags the paper has by moment (``expected``)."""
    axes = figure.subplots()
    first = {"S1": "p", "S2": "q"}
    for at, row in enumerate(shown.iter_rows(named=True)):
        left, colour = (0.3, BLUE) if row["stream"] == "S1" else (0.58, RED)
        name = first[row["stream"]]
        virtual = {row["least_virtual_from_p"], row["greatest_virtual_from_p"]}
        text = (
            f"⟨{row['key']}⟩  [{_place(name, row['place_from_p'])}]"
            f"  {{{', '.join(_place(name, each) for each in sorted(virtual))}}}"
        )
        axes.text(left, at, text, color=colour, va="center", ha="center", fontsize=12)
        axes.text(0.06, at, row["at"], va="center", fontsize=11)
        known = row["at"] in expected
        axes.text(
            0.86,
            at,
            f"{row['lag']}" + (f"   paper: {expected[row['at']]}" if known else ""),
            va="center",
            fontsize=11,
            weight="bold" if known else "normal",
            color=BLACK if known else GREY,
        )
        if known:
            axes.axhspan(at - 0.45, at + 0.45, color=PAPER, alpha=0.12, lw=0)
    for left, head in ((0.06, "time"), (0.3, "S1"), (0.58, "S2"), (0.86, "lag")):
        axes.text(left, -1, head, weight="bold", ha="left" if left in (0.06, 0.86) else "center")
    axes.set_xlim(0, 1)
    axes.set_ylim(len(shown), -1.6)
    axes.axis("off")
    axes.set_title("⟨key⟩ [place of arrival] {places in order}", loc="left")
    caption(
        figure,
        finding,
        "L(t5) = 0, L(t10) = 3; its figure is lost, this is one of those that agree with its text",
    )


def _place(name: str, offset: int) -> str:
    return f"{name}+{offset}" if offset else name


# ---- buffers -------------------------------------------------------------------------------


def one_join(figure: Figure, shown: pl.DataFrame, found: float, least: float) -> None:
    """Draw WO-F5: buffers by second. ``found``: the least share of results of a run, ``least``:
    the least correlation of predicted and optimal buffers."""
    names = shown["name"].unique(maintain_order=True).to_list()
    for axes, name in zip(figure.subplots(len(names), 1, sharex=True), names, strict=True):
        _buffers(axes, shown.filter(pl.col("name") == name), name)
    axes.set_xlabel("time [s]")
    figure.axes[1].legend(ncols=2, loc="upper right")
    caption(
        figure,
        f"A join without a window finds {found:.2%} of results; the buffers it predicts"
        f" correlate with the optimal ones by {least:.3f} or more (S1, S3)",
        "predicted buffers follow the optimal ones; 100 % of results with known parameters,"
        " 99.6 % with measured ones",
    )


def _buffers(axes: Axes, own: pl.DataFrame, name: str) -> None:
    """Draw the buffers of one input."""
    seconds = own["second"].to_list()
    for column, line, colour, label in (
        ("predicted_known_rows", "-", SKY, "predicted, all known"),
        ("predicted_measured_rows", "--", ORANGE, "predicted, all measured"),
        ("held_measured_rows", ":", COLOURS["plain"], "held, all measured"),
    ):
        axes.plot(seconds, own[column].to_list(), line, color=colour, label=label)
    best = own.filter(pl.col("optimal_rows") > 0)
    optimal = best["second"].to_list(), best["optimal_rows"].to_list()
    axes.plot(*optimal, color=BLACK, lw=1.2, label="optimal")
    axes.set_ylabel(f"buffer of {name} [rows]")
    axes.set_ylim(bottom=0)


def joined(figure: Figure, shown: pl.DataFrame, loose: str, points: tuple[int, int]) -> None:
    """Draw WO-F6: buffers by second. ``loose``: in times the optimum, the bound of each input;
    ``points``: how many are below the optimum, of how many."""
    names = shown["name"].unique(maintain_order=True).to_list()
    for axes, name in zip(figure.subplots(len(names), 1, sharex=True), names, strict=True):
        own = shown.filter(pl.col("name") == name)
        sure = own.filter(pl.col("optimal_rows") > 0)
        axes.plot(
            sure["second"].to_list(),
            sure["bound_rows"].to_list(),
            "--",
            color=PAPER,
            label="paper: bound by Theorem 3.1",
        )
        _buffers(axes, own, name)
    axes.set_xlabel("time [s]")
    figure.axes[0].legend(ncols=2, loc="upper right")
    caption(
        figure,
        f"In times the optimal buffer, the bound is {loose}; it is below the optimum at"
        f" {points[0]} of {points[1]} points",
        "the bound holds, but the margin between predicted and optimal is much wider than for"
        " Query 1",
    )


# ---- memory --------------------------------------------------------------------------------


def against_fixed(figure: Figure, table: pl.DataFrame, limit: float) -> None:
    """Draw WO-F8; ``limit``: the share of results that fixed buffers should stay below."""
    left, right = figure.subplots(1, 2)
    names = [f"Query {each}" for each in table["query"]]
    sides: tuple[tuple[Axes, tuple[str, ...], float, str], ...] = (
        (
            left,
            ("accuracy", "fixed_accuracy_at_equal_rows", "one_size_accuracy_at_equal_rows"),
            100.0,
            "results found [%]",
        ),
        (
            right,
            ("held_rows", "fixed_rows_at_equal_accuracy", "one_size_rows_at_equal_accuracy"),
            1e-3,
            "buffers of all inputs [thousand rows]",
        ),
    )
    for axes, columns, unit, label in sides:
        _groups(axes, names, [(table[each] * unit).to_list() for each in columns])
        axes.set(xlabel="query of the paper", ylabel=label)
    left.set_title("with equal memory")
    right.set_title("for equal accuracy")
    label = f"paper: fixed below {limit:.0%}"
    left.axhline(100 * limit, color=PAPER, ls=":", label=label)
    left.legend(ncols=2, loc="upper center")
    left.set_ylim(0, 135)
    left.set_yticks(range(0, 101, 20))
    shares = table.select(pl.max_horizontal(pl.col("^.*_accuracy_at_equal_rows$")))
    worst = float(shares.to_series().max())  # type: ignore[arg-type]
    low, high = float(table["times"].min()), float(table["one_size_times"].max())  # type: ignore[arg-type]
    caption(
        figure,
        f"With the memory of WO-Join fixed buffers find {worst:.0%} of results at most; to find"
        f" as many they take {low:.1f} to {high:.1f} × as much",
        "less than 40 % with equal memory; far more memory for equal accuracy",
    )


def _groups(axes: Axes, names: list[str], sides: list[list[float]]) -> None:
    """Draw the bars of each query, a colour for each kind of buffer."""
    looks = {"plain": "WO-Join", "fixed": "fixed, a size each", "one size": "fixed, one size"}
    for number, (values, (way, label)) in enumerate(zip(sides, looks.items(), strict=True)):
        places = [at + 0.28 * (number - 1) for at in range(len(names))]
        colour = COLOURS[way]
        bars(axes, places, values, colour, brief, width=0.26, label=label)
    axes.set_xticks(range(len(names)), names)
    axes.margins(y=0.12)


def reliefs(figure: Figure, table: pl.DataFrame, held: Mapping[int, Mapping[str, float]]) -> None:
    """Draw WO-F9; ``held``: rows held on average, by query and strategy."""
    one, two = held[1], held[2]
    for axes, number in zip(figure.subplots(1, 2), held, strict=True):
        own = table.filter(pl.col("query") == number)
        _strategies(axes, own)
        axes.set_title(f"Query {number}")
        axes.set(xlabel="strategy", ylabel="held on average [rows]")
    figure.axes[1].legend(loc="upper right")
    caption(
        figure,
        f"Hybrid holds {one['hybrid'] / one['plain']:.0%} (Query 1) and"
        f" {two['hybrid'] / two['plain']:.0%} (Query 2) of the rows of plain; MSF holds"
        f" {one['msf'] / one['dbf']:.2f} × (Query 1) and {two['msf'] / two['dbf']:.2f} ×"
        " (Query 2) the rows of DBF",
        "Query 1: MSF ≈ plain, DBF less, Hybrid least; Query 2: MSF below DBF",
    )


def _strategies(axes: Axes, own: pl.DataFrame) -> None:
    """Draw the bars of one query, and the model's rows beside them."""
    modes, rows, disk = (own[name].to_list() for name in ("strategy", "held_rows", "disk_rows"))
    names = [NAMES[mode] for mode in modes]
    at = range(len(modes))
    axes.bar(at, disk, 0.6, rows, fill=False, ec=GREY, hatch="//", label="on disk, besides")
    bars(axes, at, rows, [COLOURS[mode] for mode in modes], lambda v: f"{v:,.0f}", inside=True)
    model = own["model_rows"].to_list()
    axes.plot(at, model, "D", color="white", mec=PAPER, label="paper: by its model", ms=7)
    axes.set_xticks(at, names)


# ---- latency -------------------------------------------------------------------------------


def latency(figure: Figure, mean: Mapping[str, float]) -> None:
    """Draw WO-F11: the mean latency in seconds, by join."""
    times = {name: value / mean["plain"] for name, value in mean.items()}
    axes = figure.subplots()
    places, names = range(len(mean)), list(mean)
    values = [1e3 * each for each in mean.values()]
    colours = [COLOURS[name] for name in names]
    bars(axes, places, values, colours, lambda v: spell_seconds(v / 1e3))
    theirs = [1e3 * mean["plain"] * THEIRS.get(name, np.nan) for name in names]
    left, right = ([at + side for at in places] for side in (-0.42, 0.42))
    axes.hlines(theirs, left, right, color=PAPER, ls="--", label="paper, in times WO-Join")
    axes.set_ylim(min(values) / 3, float(np.nanmax(values + theirs)) * 3)
    logarithmic(axes, "y")
    axes.set_xticks(places, [f"{LABELS[name]}\n{spell_times(times[name])}" for name in names])
    axes.set(xlabel="join, in times WO-Join", ylabel="mean latency of a result [ms]")
    axes.legend(loc="upper left")
    caption(
        figure,
        f"Results take {spell_seconds(mean['plain'])} with WO-Join; {spell_times(times[FIXED])}"
        f" that with fixed buffers, {spell_times(times['dbf'])} with DBF,"
        f" {spell_times(times['msf'])} with MSF, {spell_times(times['hybrid'])} with Hybrid",
        "WO ≈ W-Join; DBF about 1.5 ×; MSF and Hybrid about two orders of magnitude higher",
    )


def spell_seconds(seconds: float) -> str:
    """Write a number of seconds for people."""
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def spell_times(value: float) -> str:
    """Write a factor for people."""
    return f"{value:.2f} ×" if value < 10 else f"{value:,.0f} ×"
