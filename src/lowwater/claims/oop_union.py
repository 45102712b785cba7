"""Aggregates over unions of skewed streams: OOP Fig. 1 (§8.1, G2) and §8.2, N3."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import PAPER, memory_plot
from lowwater.claims.measure import sweep
from lowwater.claims.packets import Link

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

F1_LIMIT, F1_PAPER = 0.35, 0.30
N3_LIMIT = 1.25


def _skewed_counts(delay: float, rate: float, groups: int) -> lw.Stream:
    """Q5 with windows of 10 s: one stream on time, one late, two windows after the skew."""
    seconds = delay + 20
    columns = ("ts", "srcIP", "destIP")
    on_time = Link("M1", rate, seconds, groups, seed=1).stream(*columns)
    late = Link("M2", rate, seconds, groups, seed=2, delay=delay).stream(*columns)
    counted = on_time.union(late).window("10 seconds").group_by("srcIP", "destIP")
    return counted.agg(n="count(*)")


def run_f1(quick: bool) -> Outcome:
    """Memory of Q5 over the delay of the late stream.

    The quick variant divides rates and groups alike by eight, which leaves the rows per group and
    window, and so every ratio, as they are.
    """
    share = 8 if quick else 1
    delays = (1, 10, 40) if quick else (1, 10, 20, 30, 40)
    query = partial(_skewed_counts, rate=110_000 / share, groups=65_536 // share)
    return judge_f1(sweep("delay_seconds", delays, query))


def judge_f1(table: pl.DataFrame) -> Outcome:
    """How far below in-order memory is, at the largest delay above all."""
    first, last = table.row(0, named=True), table.row(-1, named=True)
    holds = last["ratio"] <= F1_LIMIT and bool((table["ratio"] < 1).all())
    delay = last["delay_seconds"]
    ours = (
        f"IOP {_mb(first['iop_bytes'])} → {_mb(last['iop_bytes'])},"
        f" OOP {_mb(first['oop_bytes'])} → {_mb(last['oop_bytes'])};"
        f" OOP/IOP {first['ratio']:.2f} at {first['delay_seconds']:g} s,"
        f" {last['ratio']:.2f} at {delay:g} s"
    )

    def plot(figure: Figure) -> None:
        axes = memory_plot(
            figure,
            table,
            "delay_seconds",
            label="delay of the late stream [s]",
            finding=f"Counting per address pair out of order takes {last['ratio']:.0%} of the"
            f" memory of in-order when a stream is {delay:g} s late",
            paper="IOP grows with the delay; OOP grows slowly, to about 30 % of IOP at 40 s",
        )
        expected = F1_PAPER * last["iop_bytes"] / 1e6
        axes.plot(delay, expected, "D", color=PAPER, mfc="none", label="paper: 30 % of IOP")
        axes.legend()

    return Outcome(ours, holds, table, plot)


def _sliding_count(delay: float, rate: float) -> lw.Stream:
    """Q9: two fast links on time and a slow one late; six minutes after the skew."""
    seconds = delay + 360
    links = (
        Link("M1", rate, seconds, 1_000, seed=1),
        Link("M2", rate, seconds, 1_000, seed=2),
        Link("C", rate / 100, seconds, 1_000, seed=3, delay=delay),
    )
    first, *others = (link.stream("ts") for link in links)
    return first.union(*others).window("5 minutes", "1 minute").agg(n="count(*)")


def run_n3(quick: bool) -> Outcome:
    """Memory of Q9 over the delay of the slow link."""
    rate, delays = (2_000, (0, 60, 180)) if quick else (4_000, (0, 30, 60, 120, 180, 240, 300))
    table = sweep("delay_seconds", delays, partial(_sliding_count, rate=rate), tick=2.0)
    oop, iop = _growth(table, "oop_bytes"), _growth(table, "iop_bytes")
    last = table.row(-1, named=True)
    holds = oop <= N3_LIMIT
    first = table.row(0, named=True)
    ours = (
        f"from no delay to {delays[-1]} s: IOP × {iop:.1f} (to {last['iop_bytes'] / 1e3:,.0f} kB),"
        f" OOP × {oop:.2f} (to {last['oop_bytes'] / 1e3:.1f} kB, {last['ratio']:.2%} of IOP);"
        f" OOP's state alone {first['oop_state_bytes'] / 1e3:.1f} →"
        f" {last['oop_state_bytes'] / 1e3:.1f} kB, one more pane a minute of delay"
    )

    def plot(figure: Figure) -> None:
        memory_plot(
            figure,
            table,
            "delay_seconds",
            label="delay of the slow link C [s]",
            finding=f"A link that is {last['delay_seconds']:g} s late multiplies in-order memory by"
            f" {iop:.1f} and out-of-order memory by {oop:.2f}, to {last['ratio']:.1%} of in-order",
            paper="IOP grows with the delay of C, OOP is about flat",
        )

    return Outcome(ours, holds, table, plot)


def _growth(table: pl.DataFrame, column: str) -> float:
    return float(table[column][-1] / table[column][0])


def _mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


F1 = Claim(
    "OOP-F1",
    "Q5: count per address pair over a union, one stream late",
    "IOP memory grows with the delay, OOP grows slowly: about 30 % of IOP at 40 s",
    f"OOP below IOP throughout, OOP/IOP ≤ {F1_LIMIT} at 40 s",
    run_f1,
)
N3 = Claim(
    "OOP-N3",
    "Q9: sliding count over a union, the slow stream late",
    "IOP memory grows with the delay of C, OOP is about flat",
    f"OOP's peak at the largest delay ≤ {N3_LIMIT} × its peak at none",
    run_n3,
)
