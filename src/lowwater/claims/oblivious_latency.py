"""How long results of joins without windows take: WO-Join §5.1, Fig. 11.

A result's latency is counted from the arrival of the last of its rows. Rows arrive one by one on a
virtual clock, and work takes on it what it really takes, disk included. The joins differ in what
they wait for: fixed buffers and plain for nothing, DBF for the disk now and then, MSF and Hybrid
until rows can be put in order, which takes as many rows as the streams are scrambled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, bars, logarithmic, tell
from lowwater.claims.oblivious_memory import NAMES
from lowwater.claims.oblivious_runs import Run, query_1, run
from lowwater.claims.oblivious_streams import Setting
from lowwater.engines.embedded.clock import Charge
from lowwater.joins.oblivious.options import ACCURACY, RELIEF_MODES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIXED = "fixed"
NEAR = 1.5
"""Plain takes as long as fixed buffers, up to this factor either way."""
DISK = (1.0, 3.0)
"""DBF takes about one and a half times as long as plain: between these."""
SORTED = 10**1.5
"""MSF and Hybrid take about two orders of magnitude longer: at least this many times."""
LABELS = {FIXED: "W-Join", **NAMES, "plain": "WO-Join"}
THEIRS = {FIXED: 1.0, "dbf": 1.5, "msf": 100.0, "hybrid": 100.0}
"""About how many times as long as WO-Join each takes in the paper."""
FULL, QUICK = (Setting(1), 3), (Setting(1, faster=8, warm=6), 1)
"""Streams, and how often they are run by turns; the least disturbed run of each join counts."""


def measured(setting: Setting, turns: int = 1, charge: Charge = "measured") -> pl.DataFrame:
    """The latency of every join over the same streams, W-Join's buffers as large as it needs."""
    query = query_1(setting)
    sizes = query.fixed_sizes(ACCURACY)
    runs: dict[str, Run] = {}
    for _ in range(turns):
        turn = {FIXED: run(query, sizes=sizes, charge=charge)}
        turn |= {mode: run(query, mode, charge=charge) for mode in RELIEF_MODES}
        for name, again in turn.items():
            best = runs.setdefault(name, again)
            if again.latency.mean() < best.latency.mean():
                runs[name] = again
    return pl.DataFrame(
        [
            {
                "strategy": name,
                "mean_seconds": float(each.latency.mean()),
                "median_seconds": float(np.median(each.latency)),
                "p99_seconds": float(np.quantile(each.latency, 0.99)),
                "results": each.results.height,
                "accuracy": each.accuracy,
            }
            for name, each in runs.items()
        ]
    )


def judge(table: pl.DataFrame) -> Outcome:
    """The order and the ratios."""
    mean = dict(table.select("strategy", "mean_seconds").iter_rows())
    times = {name: value / mean["plain"] for name, value in mean.items()}
    low, high = DISK
    faults = [
        text
        for failed, text in (
            (
                not 1 / NEAR <= times[FIXED] <= NEAR,
                f"W-Join takes {times[FIXED]:.2f} × as long as plain WO-Join",
            ),
            (
                not low <= times["dbf"] <= high,
                f"DBF takes {times['dbf']:.2f} × as long as plain"
                + (" (less work a row, with fewer rows in memory)" if times["dbf"] < low else ""),
            ),
            (times["msf"] < SORTED, f"MSF takes only {times['msf']:.0f} × as long"),
            (times["hybrid"] < SORTED, f"Hybrid takes only {times['hybrid']:.0f} × as long"),
        )
        if failed
    ]
    ours = ", ".join(
        f"{LABELS[name]} {_spelled(value)}"
        + ("" if name == "plain" else f" ({_times(times[name])} WO-Join)")
        for name, value in mean.items()
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        places, names = range(len(mean)), list(mean)
        values = [1e3 * each for each in mean.values()]
        colours = [COLOURS[name] for name in names]
        bars(axes, places, values, colours, lambda v: _spelled(v / 1e3))
        theirs = [1e3 * mean["plain"] * THEIRS.get(name, np.nan) for name in names]
        left, right = ([at + side for at in places] for side in (-0.42, 0.42))
        axes.hlines(theirs, left, right, color=PAPER, ls="--", label="paper, in times WO-Join")
        axes.set_ylim(min(values) / 3, float(np.nanmax(values + theirs)) * 3)
        logarithmic(axes, "y")
        axes.set_xticks(places, [f"{LABELS[name]}\n{_times(times[name])}" for name in names])
        axes.set(xlabel="join, in times WO-Join", ylabel="mean latency of a result [ms]")
        axes.legend(loc="upper left")
        tell(
            figure,
            f"Results take {_spelled(mean['plain'])} with WO-Join; {_times(times[FIXED])} that with"
            f" fixed buffers, {_times(times['dbf'])} with DBF, {_times(times['msf'])} with MSF,"
            f" {_times(times['hybrid'])} with Hybrid",
            "WO ≈ W-Join; DBF about 1.5 ×; MSF and Hybrid about two orders of magnitude higher",
        )

    return Outcome(ours, not faults, table, plot)


def _spelled(seconds: float) -> str:
    return f"{1e3 * seconds:.3g} ms" if seconds < 1 else f"{seconds:.3g} s"


def _times(value: float) -> str:
    return f"{value:.2f} ×" if value < 10 else f"{value:,.0f} ×"


def run_f11(quick: bool) -> Outcome:
    """All joins on Query 1."""
    return judge(measured(*(QUICK if quick else FULL)))


F11 = Claim(
    "WO-F11",
    "latency of results: fixed buffers, no window, and the strategies that relieve memory",
    "WO ≈ W-Join; DBF about 1.5 ×; MSF and Hybrid about two orders of magnitude higher",
    f"WO within {NEAR} × of W-Join either way; DBF {DISK[0]:g} … {DISK[1]:g} × WO; MSF and Hybrid ≥"
    f" {SORTED:.0f} × WO",
    run_f11,
)
