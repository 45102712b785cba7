"""Ordered output over asynchronous inputs: Ordered §3, §5.2.

Two Poisson streams, each in order, one behind the other by seconds, both faster for a while. The
three strategies and the same join with no order get the same arrivals. Results of an ordered join
must leave by time and be the same as without order; what each strategy keeps for that is the price.
While both are faster the work is nearly all the join can do. It piles up longer with Sync-Filter,
so Adaptive may hold more than Filter-Order when it goes over; with work that takes no time, it does
not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLACK, COLOURS, GREY, bars, tell
from lowwater.claims.measure import Collected, engine_of
from lowwater.claims.ordered_runs import ADAPTIVE, FILTER, NAMES, joined
from lowwater.engines.embedded.clock import PerComparison, VirtualClock
from lowwater.joins.ordered.strategy import ORDERS, Order
from lowwater.plan.physical.compile import compile_plan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RATES, WINDOW, KEYS = (2.0, 6.0), 5.0, 8
BURST = (3.0, 28.0, 3.0)
"""From, to, and how many times the rate."""
SECONDS, FURTHEST = 40.0, 6.0
"""One stream is behind the other by up to so many seconds."""
COST = 800_000
"""Nanoseconds a comparison: not worth holding results at the usual rate, worth it in the burst."""
TICKS = (1.0, 0.2, 0.0)
"""Seconds of arrivals handed over together, by turns: order must not depend on it."""
SEEDS, QUICK_SEEDS = 12, 2
UNORDERED = "unordered"


@dataclass(frozen=True)
class Run:
    """The results of a join in the order in which they left, and what it held."""

    results: pl.DataFrame
    about: dict[str, Any]
    left_over: int
    """Rows and bytes in its state after the end."""

    @property
    def times(self) -> pl.Series:
        """The time of each result: the later of its rows'."""
        return self.results.select(pl.max_horizontal("ts", "ts_right")).to_series()

    @property
    def behind(self) -> int:
        """Results that left after one with a later time."""
        times = self.times.to_physical().to_numpy()
        return int((times < np.maximum.accumulate(times)).sum())


def streams(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Two arrival logs, one of them behind."""
    behind = np.random.default_rng(seed).uniform(1, FURTHEST)
    skews = (behind, 0.0) if seed % 2 else (0.0, behind)
    slow, fast = (
        lw.Workload(
            rate, SECONDS, seed=2 * seed + side, phases=(BURST,), skew=skew, keys=KEYS
        ).table()
        for side, (rate, skew) in enumerate(zip(RATES, skews, strict=True))
    )
    return slow.drop("value"), fast.drop("value")


def run_join(order: Order | None, seed: int) -> Run:
    """Run one strategy, or the join with no order."""
    query = joined(*streams(seed), WINDOW, order)
    clock = VirtualClock(charge=PerComparison(COST))
    sink = Collected(clock)
    engine = engine_of(compile_plan(query._node), clock, sink, TICKS[seed % len(TICKS)])
    engine.run()
    stage = engine.stage("join")
    results = sink.table().drop("_out_at")
    return Run(results, stage.kernel.about(), stage.store.rows + stage.store.bytes)


def measured(seeds: int) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """All seeds, all strategies; and the times of the results of the first seed, as they left."""
    lines: list[dict[str, Any]] = []
    times: dict[str, pl.Series] = {}
    for seed in range(seeds):
        runs = {order or UNORDERED: run_join(order, seed) for order in (None, *ORDERS)}
        plain = runs[UNORDERED].results
        wanted = plain.sort(plain.columns)
        lines += [_line(name, seed, each, wanted) for name, each in runs.items()]
        if not times:
            times = {name: each.times for name, each in runs.items()}
    return pl.DataFrame(lines, infer_schema_length=None), times


def _line(name: str, seed: int, run: Run, wanted: pl.DataFrame) -> dict[str, Any]:
    held = {
        key: int(run.about.get(key, 0))
        for key in ("held_rows_peak", "held_bytes_peak", "waiting_rows_peak", "switches")
    }
    remaining = int(run.about.get("held_rows", 0)) + int(run.about.get("waiting_rows", 0))
    return {
        "strategy": name,
        "seed": seed,
        "tick_seconds": TICKS[seed % len(TICKS)],
        "results": run.results.height,
        "results_behind": run.behind,
        "same_results": run.results.sort(run.results.columns).equals(wanted),
        **held,
        "left_over": run.left_over + remaining,
    }


def judge(points: pl.DataFrame, times: Mapping[str, pl.Series]) -> Outcome:
    """Whether results are ordered and all there, and what that takes."""
    whole = points.group_by("strategy", maintain_order=True).agg(
        pl.col("results", "results_behind", "switches", "left_over").sum(),
        pl.col("same_results").all(),
        pl.col("held_rows_peak", "held_bytes_peak", "waiting_rows_peak").max(),
    )
    by = {line["strategy"]: line for line in whole.iter_rows(named=True)}
    plain, ordered = by[UNORDERED], [by[order] for order in ORDERS]
    faults = [
        text
        for failed, text in (
            (plain["results_behind"] == 0, "without order nothing is out of order either"),
            (by[ADAPTIVE]["switches"] == 0, "Adaptive never switches"),
            *(
                (each["results_behind"] > 0, f"{NAMES[each['strategy']]} goes back")
                for each in ordered
            ),
            *(
                (not each["same_results"], f"{NAMES[each['strategy']]} gives other results")
                for each in ordered
            ),
            (any(each["left_over"] for each in by.values()), "something is held after the end"),
        )
        if failed
    ]
    share = plain["results_behind"] / plain["results"]
    held = "; ".join(
        f"{NAMES[each['strategy']]} at most {each['waiting_rows_peak']} rows waiting and"
        f" {each['held_rows_peak']} results held ({each['held_bytes_peak'] / 1e3:.0f} kB)"
        for each in ordered
    )
    ours = (
        f"{points['seed'].n_unique()} seeds, {plain['results']:,} results: without order"
        f" {share:.0%} leave behind a later one, with each strategy"
        f" {max(each['results_behind'] for each in ordered)}, and the results are"
        f" {'the same' if all(each['same_results'] for each in ordered) else 'others'}; Adaptive"
        f" switches {by[ADAPTIVE]['switches']} times; {held}; after the end"
        f" {sum(each['left_over'] for each in by.values())} rows"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        left, right = figure.subplots(1, 2)
        _draw_order(left, times)
        _draw_held(right, by)
        behind = max(each["results_behind"] for each in ordered)
        tell(
            figure,
            f"Without order {share:.0%} of {plain['results']:,} results leave behind a later one,"
            f" in order {behind:,}, whatever the strategy",
            "output timestamps never decrease; holding results takes memory",
        )

    return Outcome(ours, not faults, points, plot)


def _draw_order(axes: Axes, times: Mapping[str, pl.Series]) -> None:
    """The times of the results of one run, as they leave."""
    for name, label in ((UNORDERED, "without order"), (FILTER, "in order (Filter-Order)")):
        shown = (times[name].to_physical() / 1e6).to_list()
        axes.plot(range(len(shown)), shown, ".", ms=2.5, color=COLOURS[name], label=label)
    axes.set(xlabel="place among the results that leave [number]", ylabel="time of the result [s]")
    axes.legend(markerscale=4)


def _draw_held(axes: Axes, by: dict[str, dict[str, Any]]) -> None:
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


def run(quick: bool) -> Outcome:
    """Order and completeness over asynchronous inputs."""
    return judge(*measured(QUICK_SEEDS if quick else SEEDS))


OUT = Claim(
    "ORD-OUT",
    "ordered output of joins over asynchronous inputs",
    "output timestamps never decrease; the set of results equals the unordered join's",
    "exactly that with each strategy over many seeds; nothing held after the end",
    run,
)
