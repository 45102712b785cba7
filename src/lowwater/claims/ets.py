"""These claims measure timestamps on demand: ETS Fig. 7 (latency), §6 (idling), Fig. 8 (queues).

A fast and a slow stream, 95 % of each let through by a selection, meet in an order-preserving
union. Four scenarios differ in the timestamps by which the union waits less: none (A), heartbeats
on the slow stream (B), timestamps on demand (C), and latent timestamps, with which no row waits
(D). Waiting is simulated; the work of each step takes the time it really took.

Departures: the slow stream's last row closes the run, so that the union has both streams to wait
for at any time; and B at high rates runs for a shorter time, because its figures settle soon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cache

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims import ets_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.ets_plots import A, B, C, D, spell
from lowwater.probe import Observer, Probe, Step
from lowwater.typing import Charge, Stamp

FAST, SLOW, PASS = 50.0, 0.05, 0.95
"""Rows a second of both streams; the share of rows that the selections let through."""
BURST_AT, BURST_SECONDS, BURST_FACTOR = 1.0, 0.5, 10.0
A_IDLE, B_IDLE, C_IDLE = 0.9, 0.25, 0.001
"""Bounds on the shares of time in which the union waits, in A, B and C.

In A the union works for the rest of the time, which is longer on a busy machine.
"""
THOUSANDS = 1_000
MANY_BEATS = 10_000
"""Number of heartbeats that is enough for one run."""


@dataclass(frozen=True)
class Lengths:
    """The lengths of the scenarios' runs, in simulated seconds, and their repetitions."""

    waiting: float
    """Seconds of A, which needs many gaps of the slow stream."""
    slow_beats: float
    """Seconds of B at up to one heartbeat a second."""
    fast_beats: float
    """Seconds of B above that, of C and of D; less where heartbeats are very many
    (:meth:`seconds`)."""
    burst: float
    """Seconds of the runs with a burst."""
    beats: tuple[float, ...]
    """Rates of heartbeats of B, a second."""
    burst_beats: tuple[float, ...]
    """The same in the runs with a burst."""
    seeds: tuple[int, ...]
    """Seeds: one run of each scenario for each."""

    def seconds(self, beats: float) -> float:
        """Return the seconds that B runs at so many heartbeats a second."""
        if beats <= 1:
            return self.slow_beats
        return min(self.fast_beats, max(3.0, MANY_BEATS / beats))


SCALE = Scale(
    full=Lengths(
        waiting=300,
        slow_beats=60,
        fast_beats=10,
        burst=2.5,
        beats=(0.1, 1, 10, 100, 500, 1_000, 5_000),
        burst_beats=(100, 1_000, 5_000),
        seeds=(1, 2, 3),
    ),
    quick=Lengths(
        waiting=100,
        slow_beats=10,
        fast_beats=4,
        burst=2,
        beats=(1, 100, 1_000),
        burst_beats=(100, 1_000, 5_000),
        seeds=(1, 2, 3),
    ),
)


@dataclass(frozen=True)
class Point:
    """The figures of one run of one scenario."""

    scenario: str
    burst: bool
    beats_per_second: float | None
    seed: int
    seconds: float
    latency_ms: float
    """The mean from the arrival of a row to its output."""
    latency_p50_ms: float
    idle_share: float
    """Share of the time in which the union held rows and waited."""
    queue_peak: int
    """The most rows and punctuations in all queues and in the union together."""
    unread_peak: int
    """The most rows that had arrived and were not read by the engine yet."""
    beats_due: int
    """Number of heartbeats that came due."""
    beats_made: int
    """Number of heartbeats that were made: one for all that were missed."""


class Unread(Observer):
    """Follows the number of rows that have arrived and are not read yet, after each step."""

    def __init__(self) -> None:
        self.peak = 0

    def on_charged(self, step: Step) -> None:
        """Count the rows that arrived during the step."""
        self.peak = max(self.peak, self.run.unread("fast") + self.run.unread("slow"))


def _arrivals(seconds: float, seed: int, burst: bool) -> list[pl.DataFrame]:
    """Return the arrival logs of the fast and the slow stream."""
    phases = ((BURST_AT, BURST_AT + BURST_SECONDS, BURST_FACTOR),) if burst else ()
    fast = lw.Workload(rate=FAST, seconds=seconds, seed=seed, phases=phases).table()["arrived"]
    slow = lw.Workload(rate=SLOW, seconds=seconds, seed=seed + 1_000).table()["arrived"]
    rng = np.random.default_rng(seed)
    closed = slow.append(pl.Series([seconds], dtype=slow.dtype))
    return [
        pl.DataFrame({"arrived": times, "luck": rng.random(len(times))}) for times in (fast, closed)
    ]


def simulate(
    scenario: str,
    seconds: float,
    seed: int = 1,
    beats: float | None = None,
    *,
    burst: bool = False,
    charge: Charge = "measured",
) -> Point:
    """Run one scenario tuple by tuple, for so many seconds, at ``beats`` heartbeats a second."""
    fast, slow = (lw.replay(log, "arrived") for log in _arrivals(seconds, seed, burst))
    on_demand = lw.on_demand() if scenario == C else None
    idle = lw.heartbeat(f"{round(1e9 / beats)} ns") if beats else on_demand
    stamp: Stamp = "latent" if scenario == D else "internal"
    left = lw.stream(fast, name="fast", time="ts", stamp=stamp, idle=on_demand)
    right = lw.stream(slow, name="slow", time="ts", stamp=stamp, idle=idle)
    both = left.where(f"luck < {PASS}").union(right.where(f"luck < {PASS}"))
    unread = Unread()
    run = Probe(
        both, observer=unread, plan="in-order", charge=charge, tick=0, chunk_rows=1, keep=False
    ).run()
    metrics = run.metrics()
    return Point(
        scenario=scenario,
        burst=burst,
        beats_per_second=beats and float(beats),
        seed=seed,
        seconds=float(seconds),
        latency_ms=metrics.latency.mean / 1e6,
        latency_p50_ms=metrics.latency.quantile(0.5) / 1e6,
        idle_share=metrics.operators[-1].idle_share or 0.0,
        queue_peak=metrics.queue_peak or 0,
        unread_peak=unread.peak,
        beats_due=int(metrics.elapsed_seconds * (beats or 0)),
        beats_made=metrics.stream("slow").heartbeats,
    )


def points(scale: Lengths, charge: Charge = "measured") -> pl.DataFrame:
    """Run all scenarios, seed by seed, so that a busy machine slows all of them alike."""

    def runs() -> Iterator[Point]:
        yield simulate(A, scale.waiting, charge=charge)
        for seed in scale.seeds:
            yield simulate(D, scale.fast_beats, seed, charge=charge)
            yield simulate(C, scale.fast_beats, seed, charge=charge)
            for beats in scale.beats:
                if beats > 1:
                    yield simulate(B, scale.seconds(beats), seed, beats, charge=charge)
        for beats in scale.beats:
            if beats <= 1:
                yield simulate(B, scale.seconds(beats), 1, beats, charge=charge)
        for seed in scale.seeds:
            yield simulate(C, scale.burst, seed, burst=True, charge=charge)
            for beats in scale.burst_beats:
                yield simulate(B, scale.burst, seed, beats, burst=True, charge=charge)

    return pl.DataFrame([asdict(each) for each in runs()])


@cache
def _measured(quick: bool) -> pl.DataFrame:
    """Run the one simulation that the three claims share."""
    return points(SCALE.of(quick))


def middle(table: pl.DataFrame, column: str, *, burst: bool = False) -> dict[str, float]:
    """Return the median over seeds of a column for A, C and D."""
    plain = table.filter(pl.col("burst") == burst, pl.col("beats_per_second").is_null())
    medians = plain.group_by("scenario").agg(pl.col(column).median())
    return {name[0]: float(value) for name, value in medians.iter_rows()}


def over_beats(table: pl.DataFrame, column: str, *, burst: bool = False) -> dict[float, float]:
    """Return the median over seeds of a column for B, by heartbeats a second."""
    beating = table.filter(pl.col("burst") == burst, pl.col("beats_per_second").is_not_null())
    medians = beating.group_by("beats_per_second").agg(pl.col(column).median())
    return {float(rate): float(value) for rate, value in medians.sort("beats_per_second").rows()}


# ---- ETS-F7 --------------------------------------------------------------------------------


def latency_outcome(table: pl.DataFrame) -> Outcome:
    """Judge latency: C beside D, below every B, far below A."""
    by, beating = middle(table, "latency_ms"), over_beats(table, "latency_ms")
    best = min(beating, key=lambda rate: beating[rate])
    limit = 1.2 * by["D"] + 0.2
    criteria = [
        Criterion(by["C"] <= limit, f"C is above 1.2 D + 0.2 ms = {limit:.2f} ms, {_WHY_C}"),
        Criterion(by["C"] <= beating[best], f"B at {best:g}/s is below C"),
        Criterion(by["C"] <= by["A"] / 1_000, "C is above A / 1,000"),
    ]
    sweep = ", ".join(f"{spell(value)} at {rate:g}/s" for rate, value in beating.items())
    ours = (
        f"A {spell(by['A'])} : B {sweep} : C {spell(by['C'])} : D {spell(by['D'])};"
        f" A/C = {by['A'] / by['C']:,.0f}, C - D = {by['C'] - by['D']:.2f} ms"
    )

    return judge(ours, criteria, table, lambda figure: plots.latency(figure, by, beating))


_WHY_C = "because each row is also stamped, judged, held, requested and released, one at a time"


def run_f7(quick: bool) -> Outcome:
    """Measure the mean output latency."""
    return latency_outcome(_measured(quick))


# ---- ETS-IDLE ------------------------------------------------------------------------------


def idle_outcome(table: pl.DataFrame) -> Outcome:
    """Judge the share of time in which the union waits while it holds rows."""
    by, beating = middle(table, "idle_share"), over_beats(table, "idle_share")
    often = {rate: share for rate, share in beating.items() if rate >= 100}
    criteria = [
        Criterion(by["A"] >= A_IDLE, f"A waits less than {A_IDLE:.0%}"),
        Criterion(max(often.values()) <= B_IDLE, f"B at ≥ 100/s waits more than {B_IDLE:.0%}"),
        Criterion(by["C"] < C_IDLE, f"C waits {C_IDLE:.1%} or more"),
    ]
    sweep = ", ".join(f"{share:.1%} at {rate:g}/s" for rate, share in beating.items())
    ours = f"A {by['A']:.1%}; B {sweep}; C {by['C']:.3%}"

    return judge(ours, criteria, table, lambda figure: plots.idle(figure, by, beating))


def run_idle(quick: bool) -> Outcome:
    """Measure the share of time in which the union waits idle."""
    return idle_outcome(_measured(quick))


# ---- ETS-F8 --------------------------------------------------------------------------------


def queues_outcome(table: pl.DataFrame) -> Outcome:
    """Judge the peak total queue length: A in the thousands, C a hundredth of it, B falling."""
    by, beating = middle(table, "queue_peak"), over_beats(table, "queue_peak")
    rates = list(beating)
    lowest = min(beating.values())
    criteria = [
        Criterion(by["A"] >= THOUSANDS, "A is below a thousand"),
        Criterion(by["C"] <= by["A"] / 100, "C is above A / 100"),
        Criterion(beating[rates[0]] > 2 * lowest, "B does not fall with the rate"),
    ]
    crowd = over_beats(table, "queue_peak", burst=True)
    burst_c = middle(table, "queue_peak", burst=True)["C"]
    rises, rises_in_burst = plots.rises(beating), plots.rises(crowd)
    in_burst = ", ".join(f"{value:,.0f} at {rate:g}/s" for rate, value in crowd.items())
    fastest = table.filter(pl.col("beats_per_second") == rates[-1], ~pl.col("burst"))
    made = float(fastest["beats_made"].sum()) / max(1.0, float(fastest["beats_due"].sum()))
    sweep = ", ".join(f"{value:,.0f} at {rate:g}/s" for rate, value in beating.items())
    ours = (
        f"A {by['A']:,.0f}; B {sweep}; C {by['C']:,.0f}, A/C = {by['A'] / by['C']:,.0f};"
        f" in a burst B {in_burst}, C {burst_c:,.0f}."
    )
    if rises or rises_in_burst:
        ours += (
            f" B rises again at high rates{'' if rises else ', in the burst only'}: making"
            " heartbeats takes time in which rows gather (heartbeats themselves never queue here,"
            " one is made for all that were missed)"
        )
    else:
        ours += (
            " B does not rise again: heartbeats never queue here, one is made for all that were"
            f" missed ({made:.0%} of those due at {rates[-1]:g}/s were made)"
        )

    return judge(
        ours, criteria, table, lambda figure: plots.queues(figure, by, beating, (burst_c, crowd))
    )


def run_f8(quick: bool) -> Outcome:
    """Measure the peak total queue length."""
    return queues_outcome(_measured(quick))


F7 = Claim(
    "ETS-F7",
    "average output latency of two selections and an order-preserving union",
    "C is orders of magnitude below A, within about 0.1 ms of D; no B rate matches C",
    "C ≤ 1.2 × D + 0.2 ms, C ≤ every B, C ≤ A / 1,000",
    run_f7,
)
IDLE = Claim(
    "ETS-IDLE",
    "share of time the union waits idle",
    "A 99 %; B at ≥ 100/s 15 %; C < 0.1 %",
    f"A ≥ {A_IDLE:.0%}; B at ≥ 100/s ≤ {B_IDLE:.0%}; C < {C_IDLE:.1%}",
    run_idle,
)
F8 = Claim(
    "ETS-F8",
    "peak total queue length",
    "A thousands; C more than two orders of magnitude lower; B falls, then rises again",
    "A in the thousands, C ≤ A / 100, B falls with the rate; ours states whether it rises again",
    run_f8,
)
CLAIMS: tuple[Claim, ...] = (F7, IDLE, F8)
