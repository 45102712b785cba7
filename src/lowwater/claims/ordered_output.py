"""This claim checks ordered output over asynchronous inputs: Ordered §3, §5.2.

Two Poisson streams, each in order, one behind the other by seconds, both faster for a while. The
three strategies and the same join with no order get the same arrivals. Results of an ordered join
must leave by time and be the same as without order; the price is the rows that a strategy keeps.
While both streams are faster, the join is nearly overloaded. More rows queue with Sync-Filter then,
so Adaptive may hold more rows than Filter-Order when it switches, because work takes time.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims import ordered_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.oop_memory import ALL_ROWS
from lowwater.claims.ordered_runs import ADAPTIVE, NAMES, ORDERS, UNORDERED, joined
from lowwater.probe import PerComparison, Probe
from lowwater.typing import Order

RATES, WINDOW, KEYS = (2.0, 6.0), 5.0, 8
BURST = (3.0, 28.0, 3.0)
"""The start and the end of the burst in seconds, and the factor on the rate."""
SECONDS, FURTHEST = 40.0, 6.0
"""Length of the streams, and the most by which one is behind the other, in seconds."""
COST = 800_000
"""Nanoseconds a comparison: not worth holding results at the usual rate, worth it in the burst."""
TICKS = (1.0, 0.2, 0.0)
"""Seconds of arrivals handed over together, by turns: order must not depend on it."""
SEEDS = Scale(12, 2)


@dataclass(frozen=True)
class JoinOutput:
    """The results of a join in the order in which they left, and the rows it held."""

    rows: pl.DataFrame
    details: dict[str, Any]
    """The details that the join adds to its metrics."""
    left_over: int
    """Rows plus bytes in the state of the join after the end."""

    @property
    def times(self) -> pl.Series:
        """The time of each result: the later of its rows' times."""
        return self.rows.select(pl.max_horizontal("ts", "ts_right")).to_series()

    @property
    def behind(self) -> int:
        """Number of results that left after one with a later time."""
        times = self.times.to_physical().to_numpy()
        return int((times < np.maximum.accumulate(times)).sum())


def streams(seed: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return two arrival logs, one of them behind."""
    behind = np.random.default_rng(seed).uniform(1, FURTHEST)
    skews = (behind, 0.0) if seed % 2 else (0.0, behind)
    slow, fast = (
        lw.Workload(
            rate, SECONDS, seed=2 * seed + side, phases=(BURST,), skew=skew, keys=KEYS
        ).table()
        for side, (rate, skew) in enumerate(zip(RATES, skews, strict=True))
    )
    return slow.drop("value"), fast.drop("value")


def run_join(order: Order | None, seed: int) -> JoinOutput:
    """Run one strategy, or the join with no order."""
    query = joined(*streams(seed), WINDOW, order)
    tick = TICKS[seed % len(TICKS)]
    run = Probe(query, charge=PerComparison(COST), tick=tick, chunk_rows=ALL_ROWS).run()
    join = run.operator("join")
    return JoinOutput(run.results.drop("_out_at"), join.details, join.rows + join.bytes)


def measured(seeds: int) -> tuple[pl.DataFrame, dict[str, pl.Series]]:
    """Run all seeds and strategies; return a table, and the times of the first seed's results as
    they left, by strategy."""
    lines: list[dict[str, Any]] = []
    times: dict[str, pl.Series] = {}
    for seed in range(seeds):
        runs = {order or UNORDERED: run_join(order, seed) for order in (None, *ORDERS)}
        plain = runs[UNORDERED].rows
        expected = plain.sort(plain.columns)
        lines += [_line(name, seed, each, expected) for name, each in runs.items()]
        if not times:
            times = {name: each.times for name, each in runs.items()}
    return pl.DataFrame(lines, infer_schema_length=None), times


def _line(name: str, seed: int, run: JoinOutput, expected: pl.DataFrame) -> dict[str, Any]:
    held = {
        key: int(run.details.get(key, 0))
        for key in ("held_rows_peak", "held_bytes_peak", "waiting_rows_peak", "switches")
    }
    remaining = int(run.details.get("held_rows", 0)) + int(run.details.get("waiting_rows", 0))
    return {
        "strategy": name,
        "seed": seed,
        "tick_seconds": TICKS[seed % len(TICKS)],
        "results": run.rows.height,
        "results_behind": run.behind,
        "same_results": run.rows.sort(run.rows.columns).equals(expected),
        **held,
        "left_over": run.left_over + remaining,
    }


def output_outcome(points: pl.DataFrame, times: Mapping[str, pl.Series]) -> Outcome:
    """Judge whether results are ordered and all there."""
    whole = points.group_by("strategy", maintain_order=True).agg(
        pl.col("results", "results_behind", "switches", "left_over").sum(),
        pl.col("same_results").all(),
        pl.col("held_rows_peak", "held_bytes_peak", "waiting_rows_peak").max(),
    )
    by = {line["strategy"]: line for line in whole.iter_rows(named=True)}
    plain, ordered = by[UNORDERED], [by[order] for order in ORDERS]
    criteria = [
        Criterion(plain["results_behind"] != 0, "without order nothing is out of order either"),
        Criterion(by[ADAPTIVE]["switches"] != 0, "Adaptive never switches"),
        *(
            Criterion(each["results_behind"] <= 0, f"{NAMES[each['strategy']]} goes back")
            for each in ordered
        ),
        *(
            Criterion(each["same_results"], f"{NAMES[each['strategy']]} gives other results")
            for each in ordered
        ),
        Criterion(
            not any(each["left_over"] for each in by.values()), "something is held after the end"
        ),
    ]
    share = plain["results_behind"] / plain["results"]
    held = "; ".join(
        f"{NAMES[each['strategy']]} at most {each['waiting_rows_peak']} rows waiting and"
        f" {each['held_rows_peak']} results held ({each['held_bytes_peak'] / 1e3:.0f} kB)"
        for each in ordered
    )
    ours = (
        f"{points['seed'].n_unique()} seeds, {plain['results']:,} results: without order"
        f" {share:.0%} leave after a later one, with each strategy"
        f" {max(each['results_behind'] for each in ordered)}, and the results are"
        f" {'the same' if all(each['same_results'] for each in ordered) else 'different'}; Adaptive"
        f" switches {by[ADAPTIVE]['switches']} times; {held}; after the end"
        f" {sum(each['left_over'] for each in by.values())} rows"
    )

    return judge(ours, criteria, points, lambda figure: plots.output(figure, times, by))


def run(quick: bool) -> Outcome:
    """Measure order and completeness over asynchronous inputs."""
    return output_outcome(*measured(SEEDS.of(quick)))


OUT = Claim(
    "ORD-OUT",
    "ordered output of joins over asynchronous inputs",
    "output timestamps never decrease; the set of results equals the unordered join's",
    "exactly that with each strategy over many seeds; nothing held after the end",
    run,
)
