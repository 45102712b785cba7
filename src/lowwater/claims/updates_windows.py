"""Windows of update streams: LAZY and EAGER against append, and against each other (UpStream §6.3).

A row comes every second and takes a second of work for each window it leaves for. With one key,
windows of more and more ticks: tumbling ones, which there is just time for, and ones that slide by
a tick, where an append queue has as many windows open as a window has ticks (Fig. 13).

With ten keys it depends on who says that a window is over (Fig. 14). In the paper a key's own rows
do: a row at or after the end. A tick is then the time in which ten rows come, one of each key if
they come in turn. Drawn at random, keys leave gaps: EAGER has to wait for the row that ends the
window it has begun to work on, and finds newer ones over with it, while LAZY takes the newest of
these. The longer windows are, the less gaps matter, in the paper as well; here the two are about as
good from six ticks on. Where time goes on for all keys together, as it does here unless a stream is
declared with ``groups=``, gaps hold nobody up, and EAGER is better in any order; that is measured
beside it.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import (
    BLUE,
    COLOURS,
    GREY,
    ORANGE,
    PAPER,
    RED,
    brief,
    logarithmic,
    tell,
)
from lowwater.claims.updates_windows_runs import LINES, NAMES, Rows, Way, seen

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COST = 1.0
"""Seconds a row, one of which comes every second."""
TUMBLING: tuple[Way, ...] = ("lazy", "eager")
SLIDING: tuple[Way, ...] = ("append", "shedding", "lazy", "eager")
LINEAR = 0.99
"""How much of what LAZY takes is linear in the size, at least (R²)."""


@dataclass(frozen=True)
class Scale:
    """What is run."""

    sizes: tuple[int, ...]
    rows: int
    """Of one key."""
    rounds_sizes: tuple[int, ...]
    rounds: int
    """Ten rows each, of ten keys."""
    seeds: tuple[int, ...]


FULL = Scale((2, 3, 4, 6, 8, 10, 15, 20), 600, (2, 3, 4, 6, 8), 150, (1, 2))
QUICK = Scale((2, 5, 10), 150, (2, 4), 100, (1,))


# ---- one key -------------------------------------------------------------------------------


def over_size(scale: Scale) -> pl.DataFrame:
    """One key, windows of all sizes, tumbling and sliding by a tick."""
    ticks = np.arange(1, scale.rows + 1)
    rows = Rows(ticks, np.zeros(scale.rows, np.int64), strict=True)
    found = []
    for size in scale.sizes:
        for kind, slide, ways in (("tumbling", size, TUMBLING), ("slide 1", 1, SLIDING)):
            for way in ways:
                run = seen(rows, way, size, slide, COST)
                found.append(
                    {
                        "windows": kind,
                        "size_ticks": size,
                        "queue": way,
                        "application_seconds": run.staleness,
                        "shown": run.windows,
                    }
                )
    return pl.DataFrame(found)


def by_size(points: pl.DataFrame, kind: str, way: Way) -> dict[int, float]:
    """Staleness by the size of windows."""
    own = points.filter(pl.col("windows") == kind, pl.col("queue") == way)
    return dict(own.select("size_ticks", "application_seconds").iter_rows())


def judge_size(points: pl.DataFrame) -> Outcome:
    """How staleness goes with the size of windows, and the order of the queues."""
    lazy, eager = (by_size(points, "tumbling", way) for way in TUMBLING)
    linear = float(np.corrcoef(list(lazy), list(lazy.values()))[0, 1] ** 2)
    faults = []
    if linear < LINEAR or any(later <= before for before, later in pairwise(lazy.values())):
        faults.append(f"LAZY does not grow linearly on tumbling windows (R² {linear:.3f})")
    if any(later >= before for before, later in pairwise(eager.values())):
        faults.append("EAGER does not fall on tumbling windows")
    sliding = {way: by_size(points, "slide 1", way) for way in SLIDING}
    for size in lazy:
        at = {way: sliding[way][size] for way in SLIDING}
        if max(at["lazy"], at["eager"]) >= at["shedding"] or at["shedding"] >= at["append"]:
            faults.append(f"another order at size {size}")
    largest = max(lazy)
    values = ", ".join(f"{NAMES[way]} {sliding[way][largest]:,.1f}" for way in SLIDING)
    ours = (
        f"tumbling: LAZY {lazy[min(lazy)]:.2f} to {lazy[largest]:.2f} s (R² {linear:.4f}), EAGER"
        f" {eager[min(eager)]:.3f} to {eager[largest]:.3f} s; slide 1, size {largest}: {values} s"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours, not faults, points, lambda figure: _plot_size(figure, points))


def _plot_size(figure: Figure, points: pl.DataFrame) -> None:
    sides = figure.subplots(1, 2)
    for axes, kind, ways in zip(sides, ("tumbling", "slide 1"), (TUMBLING, SLIDING), strict=True):
        for way in ways:
            line = by_size(points, kind, way)
            sizes, values = list(line), list(line.values())
            axes.plot(sizes, values, LINES[way], color=COLOURS[way], label=NAMES[way])
        axes.set_title(f"windows: {kind}")
        axes.set(xlabel="window size [ticks]", ylabel="application staleness [s]", xticks=sizes)
    sides[1].set_yscale("log")
    sides[1].set_ylim(bottom=0.2)
    logarithmic(sides[1], "y")
    for axes in sides:
        axes.legend()
    size = max(points["size_ticks"])
    stale = {
        kind: ", ".join(
            f"{brief(by_size(points, kind, way)[size])} s ({NAMES[way]})" for way in ways
        )
        for kind, ways in (("tumbling", TUMBLING), ("slide 1", SLIDING))
    }
    tell(
        figure,
        f"Windows of {size} ticks are stale by {stale['tumbling']} if tumbling, by"
        f" {stale['slide 1']} if they slide",
        "tumbling, LAZY grows linearly with the size and EAGER falls; both below shedding, that"
        " below append",
    )


def run_size(quick: bool) -> Outcome:
    """One key."""
    return judge_size(over_size(QUICK if quick else FULL))


# ---- ten keys ------------------------------------------------------------------------------

KEYS = 10
TURNS = "in turn"
ORDERS: dict[str, float | None] = {TURNS: None, "Zipf 0": 0.0, "Zipf 0.5": 0.5, "Zipf 0.9": 0.9}
"""The orders in which keys come: in turn, or drawn with a skew."""
OWN, ALL = "its own rows", "all rows"
"""Who says that a window of a key is over."""
_IN_TURN = pl.col("order") == TURNS
GAPS = 4
"""Up to this size windows are judged: gaps are long for them."""


def drawn(skew: float | None, rounds: int, seed: int, alone: bool) -> Rows:
    """So many times ten rows; a tick is the time in which ten come."""
    count = rounds * KEYS
    if skew is None:
        keys = np.arange(count) % KEYS
    else:
        weights = 1 / np.arange(1, KEYS + 1) ** skew
        keys = np.random.default_rng(seed).choice(KEYS, count, p=weights / weights.sum())
    return Rows(np.arange(count) // KEYS, keys, alone=alone)


def over_orders(scale: Scale) -> pl.DataFrame:
    """EAGER and LAZY at every size, in every order of keys."""
    found = []
    for name, skew in ORDERS.items():
        for told, seeds in ((OWN, scale.seeds), (ALL, scale.seeds[:1])):
            for seed in seeds if skew is not None else seeds[:1]:
                rows = drawn(skew, scale.rounds, seed, told == OWN)
                for size in scale.rounds_sizes:
                    eager, lazy = (seen(rows, way, size, 1, COST) for way in ("eager", "lazy"))
                    found.append(
                        {
                            "order": name,
                            "over_by": told,
                            "size_ticks": size,
                            "eager_seconds": eager.staleness,
                            "lazy_seconds": lazy.staleness,
                        }
                    )
    means = pl.DataFrame(found).group_by("order", "over_by", "size_ticks", maintain_order=True)
    ratio = pl.col("eager_seconds") / pl.col("lazy_seconds")
    return means.mean().with_columns(ratio=ratio)


def ratios(points: pl.DataFrame, order: str, told: str) -> dict[int, float]:
    """EAGER / LAZY by the size of windows."""
    own = points.filter(pl.col("order") == order, pl.col("over_by") == told)
    return dict(own.select("size_ticks", "ratio").iter_rows())


def judge_orders(points: pl.DataFrame) -> Outcome:
    """On which side of 1 the ratio is."""
    faults, told = [], []
    for order in ORDERS:
        found = ratios(points, order, OWN)
        better = order == TURNS
        wrong = [size for size, ratio in found.items() if size <= GAPS and (ratio < 1) != better]
        if wrong:
            faults.append(f"{order}: EAGER is {'worse' if better else 'better'} at sizes {wrong}")
        told.append(f"{order} {_range([found[size] for size in found if size <= GAPS])}")
    longer = points.filter(
        pl.col("over_by") == OWN, pl.col("order") != TURNS, pl.col("size_ticks") > GAPS
    )
    ours = (
        f"EAGER / LAZY where a key's own rows end its windows, sizes up to {GAPS}:"
        f" {', '.join(told)}"
    )
    if longer.height:
        ours += f"; Zipf, longer windows: {_range(longer['ratio'].to_list())}"
    together = points.filter(pl.col("over_by") == ALL)["ratio"].to_list()
    ours += f"; where all rows do: {_range(together)} in any order"
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours, not faults, points, lambda figure: _plot_orders(figure, points))


def _range(values: list[float]) -> str:
    return f"{min(values):.2f}–{max(values):.2f}"


def _plot_orders(figure: Figure, points: pl.DataFrame) -> None:
    sides = figure.subplots(1, 2, sharey=True)
    for axes, told in zip(sides, (OWN, ALL), strict=True):
        _curves(axes, points, told)
        axes.set_title(f"a window of a key is over by {told}")
    sides[0].set_ylabel("application staleness, EAGER / LAZY [ratio]")
    sides[1].legend()
    own = points.filter(pl.col("over_by") == OWN, pl.col("size_ticks") <= GAPS)
    turns, others = (own.filter(each)["ratio"] for each in (_IN_TURN, ~_IN_TURN))
    tell(
        figure,
        f"Where a key's own rows end its windows, EAGER has {_range(turns.to_list())} × the"
        f" staleness of LAZY for keys in turn, {_range(others.to_list())} × for drawn ones (windows"
        f" of up to {GAPS} ticks)",
        "above 1 for Zipf, more so for small windows; below 1 for keys in turn",
    )


def _curves(axes: Axes, points: pl.DataFrame, told: str) -> None:
    looks = ((BLUE, "o-"), (GREY, "s-"), (ORANGE, "^-"), (RED, "v-"))
    for order, (colour, style) in zip(ORDERS, looks, strict=True):
        line = ratios(points, order, told)
        axes.plot(list(line), list(line.values()), style, color=colour, label=order)
        axes.set_xticks(list(line))
    axes.axhline(1, color=PAPER, ls="--", label="paper: in turn below, Zipf above")
    axes.set_xlabel("window size [ticks]")


def run_orders(quick: bool) -> Outcome:
    """Ten keys."""
    return judge_orders(over_orders(QUICK if quick else FULL))


F13 = Claim(
    "UP-F13",
    "windows of one key: append, random window shedding, LAZY, EAGER",
    "tumbling: LAZY grows linearly with the size, EAGER falls; both below shedding below append",
    f"tumbling: LAZY linear (R² ≥ {LINEAR}), EAGER falls; slide 1: LAZY, EAGER < shedding < append"
    " at every size",
    run_size,
)
F14 = Claim(
    "UP-F14",
    "EAGER against LAZY, ten keys that come in turn or at random",
    "EAGER worse under Zipf (gaps), better in turn",
    "EAGER / LAZY > 1 for Zipf 0, 0.5 and 0.9 and < 1 in turn, where a key's own rows end its"
    f" windows, for windows of up to {GAPS} ticks",
    run_orders,
)
