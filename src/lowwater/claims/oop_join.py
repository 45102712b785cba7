"""Memory of joins over skewed or late inputs: OOP §5.3 (Fig. 5), §8.1 G3 and §8.2 N2."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import PAPER, memory_plot
from lowwater.claims.measure import row_width, sweep
from lowwater.claims.packets import REPLIES, Link

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

G3_LIMIT = 1.2
N2_LIMIT = 0.8


def _window_join(skew: float, rate: float) -> lw.Stream:
    """Q6: both inputs are unions of a stream on time and one that is late by ``skew``."""
    link = partial(Link, rate=rate, seconds=skew + 30, flows=round(rate * 20))
    left = link("A", seed=1).stream().union(link("B", seed=2, delay=skew).stream())
    right = (
        link("C", seed=3, reverse=True)
        .stream()
        .union(link("D", seed=4, delay=skew, reverse=True).stream())
    )
    joined = left.join(right, on=REPLIES, within=lw.same("10 seconds"))
    return joined.select("srcIP", "destIP", "ts")


def _arriving() -> int:
    return row_width(Link("A", 1, 1, 1, seed=1).stream().schema)


def run_g3(quick: bool) -> Outcome:
    """Memory of Q6 over the skew within each input."""
    rate, skews = (1_000, (0, 20, 40)) if quick else (10_000, (0, 5, 10, 20, 30, 40))
    return judge_g3(sweep("skew_seconds", skews, partial(_window_join, rate=rate)))


def judge_g3(table: pl.DataFrame) -> Outcome:
    """Whether both plans hold the same rows, and in how many bytes."""
    worst = float(table["ratio"].max())  # type: ignore[arg-type]
    rows = bool((table["iop_rows"] == table["oop_rows"]).all())
    in_join = table["oop_bytes"][-1] / table["oop_rows"][-1]
    ours = (
        f"{'the same number of rows' if rows else 'different numbers of rows'} held at every skew;"
        f" OOP/IOP bytes at most {worst:.2f} (a row is {_arriving()} bytes as it arrives and in a"
        f" merge, {in_join:.0f} in the join)"
    )
    holds = rows and worst <= G3_LIMIT

    def plot(figure: Figure) -> None:
        axes = memory_plot(
            figure,
            table,
            "skew_seconds",
            label="skew between the streams of each union [s]",
            finding=f"Out of order, a tumbling-window join holds {'the same' if rows else 'other'}"
            f" rows in up to {worst:.2f} × the bytes of in-order",
            paper=f"the same rows are held; OOP takes at most {G3_LIMIT} × the bytes of IOP",
        )
        most = (G3_LIMIT * table["iop_bytes"] / 1e6).to_list()
        skews = table["skew_seconds"].to_list()
        axes.plot(skews, most, "--", color=PAPER, label=f"paper: at most {G3_LIMIT} × IOP")
        axes.set_ylim(0, 1.05 * max(most))
        axes.legend()

    return Outcome(ours, holds, table, plot)


def _equality_join(delay: float, rate: float) -> lw.Stream:
    """Q8: times are equal; the right input is a link on time and a slow one that is late."""
    link = partial(Link, seconds=delay + 30, flows=round(rate * 10), whole_seconds=True)
    right = (
        link("M2", rate, seed=2, reverse=True)
        .stream()
        .union(link("C", rate / 100, seed=3, reverse=True, delay=delay).stream())
    )
    joined = link("M1", rate, seed=1).stream().join(right, on=["ts", *REPLIES])
    return joined.select("srcIP", "destIP", "ts")


def run_n2(quick: bool) -> Outcome:
    """Memory of Q8 over the delay of the late tuples."""
    rate, delays = (400, (0, 30, 60)) if quick else (4_000, (0, 30, 60, 120, 180, 240))
    table = sweep("delay_seconds", delays, partial(_equality_join, rate=rate))
    iop, oop = _slope(table, "iop_bytes"), _slope(table, "oop_bytes")
    ours = (
        f"a second of delay costs IOP {iop / 1e3:.1f} kB and OOP {oop / 1e3:.1f} kB:"
        f" OOP's slope is {oop / iop:.2f} of IOP's"
    )

    def plot(figure: Figure) -> None:
        memory_plot(
            figure,
            table,
            "delay_seconds",
            label="delay of the late tuples [s]",
            finding="With late tuples on one input, out-of-order memory grows"
            f" {oop / iop:.2f} × as fast as in-order memory",
            paper="OOP grows more slowly, because M1's progress purges M2's rows at once",
        )

    return Outcome(ours, oop <= N2_LIMIT * iop, table, plot)


def _slope(table: pl.DataFrame, column: str) -> float:
    """Bytes per second of delay, by least squares."""
    return float(np.polyfit(table["delay_seconds"].to_numpy(), table[column].to_numpy(), 1)[0])


G3 = Claim(
    "OOP-G3",
    "Q6: tumbling-window join of unions of skewed streams",
    "the same number of tuples held; OOP's structures cost at most 20 % more",
    f"OOP/IOP bytes ≤ {G3_LIMIT} at every skew",
    run_g3,
)
N2 = Claim(
    "OOP-N2",
    "Q8: equality join on time, late tuples on one input",
    "OOP memory grows more slowly with the lateness than IOP",
    f"slope of OOP ≤ {N2_LIMIT} × slope of IOP",
    run_n2,
)
