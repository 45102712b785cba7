"""These claims compare LAZY and EAGER windows of update streams with append (UpStream §6.3).

A row comes every second and takes a second of work for each window in which it leaves. With one
key, windows have more and more ticks (Fig. 13): there is just time for tumbling windows; of those
that slide by a tick, an append queue has as many open as a window has ticks.

With ten keys the result depends on which rows end a window (Fig. 14). In the paper a key's own rows
end it: a row at or after the end. A tick is then the time in which ten rows come, one of each key
if they come in turn. Keys drawn at random leave gaps: EAGER waits for the row that ends the window
it has begun to work on, and newer windows end with the same row, of which LAZY takes the newest.
The longer windows are, the less gaps matter, in the paper as well; here the two are about as good
from six ticks on. If one mark ends the windows of all keys, as it does here unless a stream is
declared with ``groups=``, gaps delay no key, and EAGER is better in any order; this is measured
beside it.

The result shown of a key is stale from the arrival of the row that completed a newer window
(§6.1.2) until that window or a newer one is shown. Staleness is computed from the rows that came
and the windows that were shown; the queue's own accounts are not used.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.updates_runs import WINDOW_NAMES, Numbers, Seconds, Unreflected, Until, Way
from lowwater.probe import SECOND, PerRow, Probe
from lowwater.typing import Schedule, Windows

WAYS: dict[Way, tuple[Schedule, Windows]] = {
    "append": ("append", "lazy"),
    "shedding": ("shedding", "lazy"),
    "lazy": ("in-place", "lazy"),
    "eager": ("in-place", "eager"),
}


@dataclass(frozen=True)
class Rows:
    """Rows with times in ticks, one a second, and the punctuation that follows from them."""

    ticks: Numbers
    keys: Numbers
    strict: bool = False
    """True if no two rows have the same time, so that a tick ends with its row."""
    alone: bool = False
    """True if each key has punctuation of its own, by its own rows only."""

    @property
    def arrived(self) -> Seconds:
        """The arrival of each row, in seconds: one a second."""
        return np.arange(1, len(self.ticks) + 1, dtype=np.float64)

    def stream(self, way: Way) -> lw.Stream:
        """Return the update stream of these rows."""
        schedule, windows = WAYS[way]
        table = pl.DataFrame(
            {
                "tick": self.ticks,
                "next": self.ticks + 1,
                "arrived": self.arrived,
                "key": self.keys,
            }
        )
        options: dict[str, Any] = {"groups": "key"} if self.alone else {}
        return lw.stream(
            lw.replay(table, arrival="arrived"),
            name="rows",
            time="tick",
            progress=lw.punctuated("next") if self.strict else lw.ordered(),
            update_key="key",
            schedule=schedule,
            windows=windows,
            jump=None,
            **options,
        )

    def complete(self, key: int, size: int, slide: int) -> tuple[Numbers, Seconds]:
        """Return the starts of the windows of a key that are complete when the last row has come,
        and the time at which each was."""
        own = self.keys == key
        starts = [_starts(int(tick), size, slide) for tick in self.ticks[own]]
        found = np.unique(np.concatenate(starts))
        of = own if self.alone else np.ones(len(own), bool)
        at = np.searchsorted(self.ticks[of] + self.strict, found + size)
        reached = at < of.sum()
        return found[reached], self.arrived[of][at[reached]]


def _starts(tick: int, size: int, slide: int) -> Numbers:
    return np.arange(((tick - size) // slide + 1) * slide, tick + 1, slide)


def count_windows(rows: Rows, way: Way, size: int, slide: int) -> lw.Stream:
    """Return the counts of a window and key, of windows of ``size`` ticks."""
    return rows.stream(way).window(size, slide=slide).group_by("key").agg(rows="count(*)")


@dataclass(frozen=True)
class WindowFigures:
    """The figures of a run until its last row had come."""

    staleness: float
    """Application staleness, the mean over time and keys, in seconds."""
    windows: int


def run_windows(rows: Rows, way: Way, size: int, slide: int, cost: float) -> WindowFigures:
    """Run rows through a queue of windows until the last has come."""
    end = float(rows.arrived[-1])
    query, charge = count_windows(rows, way, size, slide), PerRow(cost * SECOND)
    shown = Probe(query, observer=Until(end), charge=charge, tick=0).run().results
    shown = shown.filter(pl.col("_out_at") <= end)
    area = 0.0
    keys = np.unique(rows.keys).tolist()
    for key in keys:
        starts, came = rows.complete(key, size, slide)
        own = shown.filter(pl.col("key") == key)
        reflected = np.searchsorted(starts, own["window_start"].to_numpy(), "right")
        area += Unreflected.of(came, reflected, own["_out_at"].to_numpy(), end).area
    return WindowFigures(area / len(keys) / (end - float(rows.arrived[0])), shown.height)


# ---- one key -------------------------------------------------------------------------------

COST = 1.0
"""Seconds of work for a row; a row comes every second."""
TUMBLING: tuple[Way, ...] = ("lazy", "eager")
SLIDING: tuple[Way, ...] = ("append", "shedding", "lazy", "eager")
LINEAR = 0.99
"""The least share of LAZY's variation that is linear in the size (R²)."""


@dataclass(frozen=True)
class WindowRuns:
    """The sizes of windows in ticks, and the rows that are run."""

    sizes: tuple[int, ...]
    """Sizes of windows for one key."""
    rows: int
    """Number of rows of one key."""
    rounds_sizes: tuple[int, ...]
    """Sizes of windows for ten keys."""
    rounds: int
    """Number of rounds of ten rows, of ten keys."""
    seeds: tuple[int, ...]


FULL = WindowRuns((2, 3, 4, 6, 8, 10, 15, 20), 600, (2, 3, 4, 6, 8), 150, (1, 2))
QUICK = WindowRuns((2, 5, 10), 150, (2, 4), 100, (1,))
SCALE = Scale(FULL, QUICK)


def over_size(scale: WindowRuns) -> pl.DataFrame:
    """Measure one key, windows of all sizes, tumbling and sliding by a tick."""
    ticks = np.arange(1, scale.rows + 1)
    rows = Rows(ticks, np.zeros(scale.rows, np.int64), strict=True)
    found = []
    for size in scale.sizes:
        for kind, slide, ways in (("tumbling", size, TUMBLING), ("slide 1", 1, SLIDING)):
            for way in ways:
                run = run_windows(rows, way, size, slide, COST)
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
    """Return staleness in seconds by the size of windows."""
    own = points.filter(pl.col("windows") == kind, pl.col("queue") == way)
    return dict(own.select("size_ticks", "application_seconds").iter_rows())


def size_outcome(points: pl.DataFrame) -> Outcome:
    """Judge how staleness changes with the size of windows, and the order of the queues."""
    lazy, eager = (by_size(points, "tumbling", way) for way in TUMBLING)
    linear = float(np.corrcoef(list(lazy), list(lazy.values()))[0, 1] ** 2)
    grows = all(before < later for before, later in pairwise(lazy.values()))
    criteria = [
        Criterion(
            linear >= LINEAR and grows,
            f"LAZY does not grow linearly on tumbling windows (R² {linear:.3f})",
        ),
        Criterion(
            all(later < before for before, later in pairwise(eager.values())),
            "EAGER does not fall on tumbling windows",
        ),
    ]
    sliding = {way: by_size(points, "slide 1", way) for way in SLIDING}
    for size in lazy:
        at = {way: sliding[way][size] for way in SLIDING}
        ordered = max(at["lazy"], at["eager"]) < at["shedding"] < at["append"]
        criteria.append(Criterion(ordered, f"another order at size {size}"))
    largest = max(lazy)
    values = ", ".join(f"{WINDOW_NAMES[way]} {sliding[way][largest]:,.1f}" for way in SLIDING)
    ours = (
        f"tumbling: LAZY {lazy[min(lazy)]:.2f} to {lazy[largest]:.2f} s (R² {linear:.4f}), EAGER"
        f" {eager[min(eager)]:.3f} to {eager[largest]:.3f} s; slide 1, size {largest}: {values} s"
    )
    lines: dict[str, dict[Way, dict[int, float]]] = {
        "tumbling": {"lazy": lazy, "eager": eager},
        "slide 1": sliding,
    }
    return judge(ours, criteria, points, lambda figure: plots.window_sizes(figure, lines))


def run_size(quick: bool) -> Outcome:
    """Measure windows of one key."""
    return size_outcome(over_size(SCALE.of(quick)))


# ---- ten keys ------------------------------------------------------------------------------

KEYS = 10
TURNS = "in turn"
ORDERS: dict[str, float | None] = {TURNS: None, "Zipf 0": 0.0, "Zipf 0.5": 0.5, "Zipf 0.9": 0.9}
"""The orders in which keys come: in turn, or drawn with a skew."""
OWN, ALL = "its own rows", "all rows"
"""The rows that end a window of a key."""
GAPS = 4
"""The greatest size of windows that are judged, in ticks: gaps matter for those."""


def drawn(skew: float | None, rounds: int, seed: int, alone: bool) -> Rows:
    """Return ``rounds`` times ten rows; a tick is the time in which ten come."""
    count = rounds * KEYS
    if skew is None:
        keys = np.arange(count) % KEYS
    else:
        weights = 1 / np.arange(1, KEYS + 1) ** skew
        keys = np.random.default_rng(seed).choice(KEYS, count, p=weights / weights.sum())
    return Rows(np.arange(count) // KEYS, keys, alone=alone)


def over_orders(scale: WindowRuns) -> pl.DataFrame:
    """Measure EAGER and LAZY at every size, in every order of keys."""
    found = []
    for name, skew in ORDERS.items():
        for ended_by, seeds in ((OWN, scale.seeds), (ALL, scale.seeds[:1])):
            for seed in seeds if skew is not None else seeds[:1]:
                rows = drawn(skew, scale.rounds, seed, ended_by == OWN)
                for size in scale.rounds_sizes:
                    eager, lazy = (
                        run_windows(rows, way, size, 1, COST) for way in ("eager", "lazy")
                    )
                    found.append(
                        {
                            "order": name,
                            "over_by": ended_by,
                            "size_ticks": size,
                            "eager_seconds": eager.staleness,
                            "lazy_seconds": lazy.staleness,
                        }
                    )
    means = pl.DataFrame(found).group_by("order", "over_by", "size_ticks", maintain_order=True)
    ratio = pl.col("eager_seconds") / pl.col("lazy_seconds")
    return means.mean().with_columns(ratio=ratio)


def ratios(points: pl.DataFrame, order: str, ended_by: str) -> dict[int, float]:
    """Return EAGER / LAZY by the size of windows; ``ended_by``: the rows that end a window."""
    own = points.filter(pl.col("order") == order, pl.col("over_by") == ended_by)
    return dict(own.select("size_ticks", "ratio").iter_rows())


def orders_outcome(points: pl.DataFrame) -> Outcome:
    """Judge on which side of 1 the ratio is."""
    criteria, figures = [], []
    for order in ORDERS:
        found = ratios(points, order, OWN)
        better = order == TURNS
        wrong = [size for size, ratio in found.items() if size <= GAPS and (ratio < 1) != better]
        text = f"{order}: EAGER is {'worse' if better else 'better'} at sizes {wrong}"
        criteria.append(Criterion(not wrong, text))
        near = [found[size] for size in found if size <= GAPS]
        figures.append(f"{order} {plots.spell_range(near)}")
    longer = points.filter(
        pl.col("over_by") == OWN, pl.col("order") != TURNS, pl.col("size_ticks") > GAPS
    )
    ours = (
        f"EAGER / LAZY where a key's own rows end its windows, sizes up to {GAPS}:"
        f" {', '.join(figures)}"
    )
    if longer.height:
        ours += f"; Zipf, longer windows: {plots.spell_range(longer['ratio'].to_list())}"
    together = points.filter(pl.col("over_by") == ALL)["ratio"].to_list()
    ours += f"; where all rows do: {plots.spell_range(together)} in any order"
    lines = {
        ended_by: {order: ratios(points, order, ended_by) for order in ORDERS}
        for ended_by in (OWN, ALL)
    }
    return judge(ours, criteria, points, lambda figure: plots.window_orders(figure, lines, GAPS))


def run_orders(quick: bool) -> Outcome:
    """Measure windows of ten keys."""
    return orders_outcome(over_orders(SCALE.of(quick)))


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
