"""On-demand timestamps: ETS Fig. 7 (latency), §6 (idle waiting) and Fig. 8 (queues).

A fast and a slow stream, 95 % of each let through by a selection, meet in an order-preserving
union. Four ways to keep it from waiting: none (A), heartbeats on the slow stream (B), timestamps
on demand (C), and latent timestamps, with which there is nothing to wait for (D). Waiting is
simulated; the work of each step takes the time it really took.

Departures: the slow stream's last row closes the run, so that no part of it is without a stream to
wait for; and B at high rates runs for a shorter time, because its figures settle soon.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, logarithmic, tell
from lowwater.claims.measure import Nowhere
from lowwater.engines.embedded.clock import Charge
from lowwater.progress.spec import Stamp
from lowwater.sources.replay import Replay, ReplayReader, clock_times
from lowwater.stream.element import Chunk

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAST, SLOW, PASS = 50.0, 0.05, 0.95
BURST_AT, BURST_SECONDS, BURST_FACTOR = 1.0, 0.5, 10.0
A, B, C, D = "A no timestamps", "B heartbeats", "C on demand", "D latent"
LINES = {A: "--", C: "-", D: "-."}
NEAR_MS = 0.1
"""How near to D the paper has C."""
A_IDLE, B_IDLE, C_IDLE = 0.9, 0.25, 0.001
"""What is missing to 100 % in A is time at work, not progress: it grows on a busy machine."""
THOUSANDS = 1_000
MANY_BEATS = 10_000
"""Heartbeats that are enough for one run."""


@dataclass(frozen=True)
class Scale:
    """How long each scenario runs, in simulated seconds, and how often it is repeated."""

    waiting: float
    """A, which needs many gaps of the slow stream."""
    slow_beats: float
    """B at up to one heartbeat a second."""
    fast_beats: float
    """B above that, C and D; less where heartbeats are very many (:meth:`seconds`)."""
    burst: float
    beats: tuple[float, ...]
    """Heartbeats a second."""
    burst_beats: tuple[float, ...]
    seeds: tuple[int, ...]

    def seconds(self, beats: float) -> float:
        """How long B runs at so many heartbeats a second."""
        if beats <= 1:
            return self.slow_beats
        return min(self.fast_beats, max(3.0, MANY_BEATS / beats))


FULL = Scale(
    waiting=300,
    slow_beats=60,
    fast_beats=10,
    burst=2.5,
    beats=(0.1, 1, 10, 100, 500, 1_000, 5_000),
    burst_beats=(100, 1_000, 5_000),
    seeds=(1, 2, 3),
)
QUICK = Scale(
    waiting=100,
    slow_beats=10,
    fast_beats=4,
    burst=2,
    beats=(1, 100, 1_000),
    burst_beats=(100, 1_000, 5_000),
    seeds=(1, 2, 3),
)


@dataclass(frozen=True)
class Point:
    """What one run of one scenario measured."""

    scenario: str
    burst: bool
    beats_per_second: float | None
    seed: int
    seconds: float
    latency_ms: float
    """The mean from arrival to output."""
    latency_p50_ms: float
    idle_share: float
    """Share of the time in which the union held rows and waited."""
    queue_peak: int
    """The most rows and promises in all queues and in the union together."""
    unread_peak: int
    """The most rows that had arrived and not been read by the engine yet."""
    beats_due: int
    beats_made: int
    """Heartbeats that came due, and those made: one stands for all that were missed."""


class _WatchedReader(ReplayReader):
    """Counts the rows it has handed out."""

    taken = 0

    def read(self, now: int, limit: int) -> Chunk | None:
        """The next rows that have arrived."""
        chunk = super().read(now, limit)
        self.taken += 0 if chunk is None else chunk.height
        return chunk


class _Watched(Replay):
    """A log that knows how many of its rows have arrived and are still unread."""

    def __init__(self, table: pl.DataFrame):
        super().__init__(table, "arrived")
        self._table = table
        self._arrivals = clock_times(table["arrived"])
        self._reader: _WatchedReader | None = None

    def open(self) -> ReplayReader:
        """Start from the first row."""
        self._reader = _WatchedReader(self._table, self._arrivals)
        return self._reader

    def unread(self, now: int) -> int:
        """Rows that have arrived and have not been read."""
        taken = self._reader.taken if self._reader else 0
        return int(np.searchsorted(self._arrivals, now, "right")) - taken


class _WatchingClock(lw.VirtualClock):
    """A virtual clock that looks at the sources after each step of work."""

    def __init__(self, charge: Charge, sources: tuple[_Watched, ...]):
        super().__init__(charge=charge)
        self._sources = sources
        self.unread_peak = 0

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Let work take time, then count what arrived meanwhile."""
        counted = super().worked(nanoseconds, comparisons)
        now = self.now()
        self.unread_peak = max(self.unread_peak, sum(each.unread(now) for each in self._sources))
        return counted


def _arrivals(seconds: float, seed: int, burst: bool) -> tuple[_Watched, _Watched]:
    """The fast and the slow stream."""
    phases = ((BURST_AT, BURST_AT + BURST_SECONDS, BURST_FACTOR),) if burst else ()
    fast = lw.Workload(rate=FAST, seconds=seconds, seed=seed, phases=phases).table()["arrived"]
    slow = lw.Workload(rate=SLOW, seconds=seconds, seed=seed + 1_000).table()["arrived"]
    rng = np.random.default_rng(seed)
    closed = slow.append(pl.Series([seconds], dtype=slow.dtype))
    first, second = (
        _Watched(pl.DataFrame({"arrived": times, "luck": rng.random(len(times))}))
        for times in (fast, closed)
    )
    return first, second


def simulate(
    scenario: str,
    seconds: float,
    seed: int = 1,
    beats: float | None = None,
    *,
    burst: bool = False,
    charge: Charge = "measured",
) -> Point:
    """Run one scenario tuple by tuple."""
    fast, slow = _arrivals(seconds, seed, burst)
    on_demand = lw.on_demand() if scenario == C else None
    idle = lw.heartbeat(f"{round(1e9 / beats)} ns") if beats else on_demand
    stamp: Stamp = "latent" if scenario == D else "internal"
    left = lw.stream(fast, name="fast", time="ts", stamp=stamp, idle=on_demand)
    right = lw.stream(slow, name="slow", time="ts", stamp=stamp, idle=idle)
    both = left.where(f"luck < {PASS}").union(right.where(f"luck < {PASS}"))
    clock = _WatchingClock(charge, (fast, slow))
    run = both.run(sink=Nowhere(), plan="in-order", chunk_rows=1, tick=0, clock=clock)
    run.await_termination()
    metrics = run.metrics()
    return Point(
        scenario,
        burst,
        beats and float(beats),
        seed,
        float(seconds),
        metrics.latency.mean / 1e6,
        metrics.latency.quantile(0.5) / 1e6,
        metrics.operators[-1].idle_share,
        metrics.queue_peak or 0,
        clock.unread_peak,
        int(metrics.elapsed_seconds * (beats or 0)),
        metrics.stream("slow").heartbeats,
    )


def points(scale: Scale, charge: Charge = "measured") -> pl.DataFrame:
    """All scenarios; seed by seed, so that a busy machine slows all of them alike."""

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
    """One simulation, which the three claims share."""
    return points(QUICK if quick else FULL)


def middle(table: pl.DataFrame, column: str, *, burst: bool = False) -> dict[str, float]:
    """The median over seeds of a column for A, C and D."""
    plain = table.filter(pl.col("burst") == burst, pl.col("beats_per_second").is_null())
    medians = plain.group_by("scenario").agg(pl.col(column).median())
    return {name[0]: float(value) for name, value in medians.iter_rows()}


def over_beats(table: pl.DataFrame, column: str, *, burst: bool = False) -> dict[float, float]:
    """The median over seeds of a column for B, by heartbeats a second."""
    beating = table.filter(pl.col("burst") == burst, pl.col("beats_per_second").is_not_null())
    medians = beating.group_by("beats_per_second").agg(pl.col(column).median())
    return {float(rate): float(value) for rate, value in medians.sort("beats_per_second").rows()}


# ---- ETS-F7 --------------------------------------------------------------------------------


def judge_latency(table: pl.DataFrame) -> Outcome:
    """Latency: C beside D, below every B, far below A."""
    by, beating = middle(table, "latency_ms"), over_beats(table, "latency_ms")
    best = min(beating, key=lambda rate: beating[rate])
    limit = 1.2 * by["D"] + 0.2
    faults = [
        text
        for failed, text in (
            (by["C"] > limit, f"C is above 1.2 D + 0.2 ms = {limit:.2f} ms, because {_WHY_C}"),
            (by["C"] > beating[best], f"B at {best:g}/s is below C"),
            (by["C"] > by["A"] / 1_000, "C is above A / 1,000"),
        )
        if failed
    ]
    sweep = ", ".join(f"{_ms(value)} at {rate:g}/s" for rate, value in beating.items())
    ours = (
        f"A {_ms(by['A'])} : B {sweep} : C {_ms(by['C'])} : D {_ms(by['D'])};"
        f" A/C = {by['A'] / by['C']:,.0f}, C - D = {by['C'] - by['D']:.2f} ms"
    )

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        near = f"paper: C within {NEAR_MS:g} ms of D"
        axes.axhspan(by["D"], by["D"] + NEAR_MS, color=PAPER, alpha=0.15, label=near)
        _levels(axes, by, beating, _ms)
        axes.set_ylabel("mean latency, arrival to output [ms]")
        tell(
            figure,
            f"Mean latency is {_ms(by['A'])} without timestamps, {_ms(by['C'])} on demand,"
            f" {_ms(by['D'])} latent; the best heartbeat rate, {best:g}/s, has"
            f" {_ms(beating[best])}",
            "C orders of magnitude below A, within about 0.1 ms of D; no B matches C",
        )

    return _outcome(ours, faults, table, plot)


_WHY_C = "each row is also stamped, judged, held, asked for and released, one at a time"


def run_f7(quick: bool) -> Outcome:
    """Mean output latency."""
    return judge_latency(_measured(quick))


# ---- ETS-IDLE ------------------------------------------------------------------------------


def judge_idle(table: pl.DataFrame) -> Outcome:
    """The share of time in which the union waits while it holds rows."""
    by, beating = middle(table, "idle_share"), over_beats(table, "idle_share")
    often = {rate: share for rate, share in beating.items() if rate >= 100}
    faults = [
        text
        for failed, text in (
            (by["A"] < A_IDLE, f"A waits less than {A_IDLE:.0%}"),
            (max(often.values()) > B_IDLE, f"B at ≥ 100/s waits more than {B_IDLE:.0%}"),
            (by["C"] >= C_IDLE, f"C waits {C_IDLE:.1%} or more"),
        )
        if failed
    ]
    sweep = ", ".join(f"{share:.1%} at {rate:g}/s" for rate, share in beating.items())
    ours = f"A {by['A']:.1%}; B {sweep}; C {by['C']:.3%}"

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        shown = {name: 100 * by[name] for name in ("A", "C")}
        _levels(axes, shown, {r: 100 * s for r, s in beating.items()}, lambda v: f"{v:.3g} %", 1e-2)
        axes.hlines(15, 100, max(beating), color=PAPER, ls=":", label="paper: B at ≥ 100/s, 15 %")
        axes.axhline(0.1, color=PAPER, ls=(0, (1, 4)), label="paper: C below 0.1 %")
        axes.legend(loc="center left")
        axes.set_ylabel("time the union waits while it holds rows [%]")
        tell(
            figure,
            f"The union waits {by['A']:.1%} of the time without timestamps,"
            f" up to {max(often.values()):.1%} with {min(often):g} heartbeats a second or more and"
            f" {by['C']:.2%} on demand",
            "A 99 %, B at ≥ 100/s 15 %, C < 0.1 % (shares below 0.01 % are drawn at 0.01 %)",
        )

    return _outcome(ours, faults, table, plot)


def run_idle(quick: bool) -> Outcome:
    """Share of time the union waits idle."""
    return judge_idle(_measured(quick))


# ---- ETS-F8 --------------------------------------------------------------------------------


def judge_queues(table: pl.DataFrame) -> Outcome:
    """Peak total queue length: A in the thousands, C a hundredth of it, B falling."""
    by, beating = middle(table, "queue_peak"), over_beats(table, "queue_peak")
    rates = list(beating)
    lowest = min(beating.values())
    faults = [
        text
        for failed, text in (
            (by["A"] < THOUSANDS, "A is below a thousand"),
            (by["C"] > by["A"] / 100, "C is above A / 100"),
            (beating[rates[0]] <= 2 * lowest, "B does not fall with the rate"),
        )
        if failed
    ]
    rises = beating[rates[-1]] > 1.5 * lowest
    crowd = over_beats(table, "queue_peak", burst=True)
    burst_c = middle(table, "queue_peak", burst=True)["C"]
    in_burst = ", ".join(f"{value:,.0f} at {rate:g}/s" for rate, value in crowd.items())
    rises_in_burst = crowd[max(crowd)] > 1.5 * min(crowd.values())
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
            " one stands for all that were missed)"
        )
    else:
        ours += (
            " B does not rise again: heartbeats never queue here, one stands for all that were"
            f" missed ({made:.0%} of those due at {rates[-1]:g}/s were made)"
        )

    def plot(figure: Figure) -> None:
        axes = figure.subplots()
        limit = "paper: C more than two orders below A"
        axes.axhline(by["A"] / 100, color=PAPER, ls=":", label=limit)
        burst = f"in a burst of {BURST_FACTOR:g} × the rate"
        axes.plot(list(crowd), list(crowd.values()), "s:", color=COLOURS[B], label=f"B, {burst}")
        axes.axhline(burst_c, color=COLOURS[C], ls=":", label=f"C, {burst} ({burst_c:,.0f})")
        _levels(axes, {name: by[name] for name in ("A", "C")}, beating, lambda v: f"{v:,.0f}")
        axes.set_ylabel("peak of all queues [rows and promises]")
        tell(
            figure,
            f"Queues peak at {by['C']:,.0f} on demand and {by['A']:,.0f} without timestamps; with"
            f" heartbeats at {lowest:,.0f} or more, "
            + ("rising again at high rates" if rises else "not rising again at high rates")
            + (" but in bursts" if rises_in_burst and not rises else ""),
            "A thousands, C more than two orders of magnitude lower; B falls, then rises again",
        )

    return _outcome(ours, faults, table, plot)


def run_f8(quick: bool) -> Outcome:
    """Peak total queue length."""
    return judge_queues(_measured(quick))


# ---- drawing and reporting -----------------------------------------------------------------


def _outcome(
    ours: str, faults: list[str], table: pl.DataFrame, plot: Callable[[Figure], None]
) -> Outcome:
    reason = f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours + reason, not faults, table, plot)


def _levels(
    axes: Axes,
    levels: Mapping[str, float],
    beating: Mapping[float, float],
    spell: Callable[[float], str],
    floor: float = 0.0,
) -> None:
    """B as a curve over its rate; A, C and D, which have no rate, as levels."""
    for scenario, line in LINES.items():
        if scenario[0] in levels:
            value = levels[scenario[0]]
            label = f"{scenario} ({spell(value)})"
            axes.axhline(max(value, floor), color=COLOURS[scenario], ls=line, label=label)
    shown = [max(value, floor) for value in beating.values()]
    axes.plot(list(beating), shown, "o-", color=COLOURS[B], label=B)
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    axes.set_ylim(low / 1.5, high)
    logarithmic(axes, "x")
    logarithmic(axes, "y")
    axes.set_xlabel("heartbeats on the slow stream [1/s]")
    axes.legend()


def _ms(value: float) -> str:
    return f"{value / 1e3:,.1f} s" if value >= 1_000 else f"{value:.3g} ms"


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
    "A in the thousands, C ≤ A / 100, B falls with the rate; whether it rises again is said",
    run_f8,
)
CLAIMS: tuple[Claim, ...] = (F7, IDLE, F8)
