"""Ordered joins of two streams run on a virtual clock, which measures each row's response time.

A row's response time is counted from its arrival until everything up to its time has been joined
and has left the join: from then on the results of that row are out, and none before them is still
to come. It is read off the join after every step of work, so rows without a partner count, too.

Arrivals have exponential gaps; their number is fixed, so that the rates of a short run are the ones
asked for. A row arrives at its time. The first rows are not counted: until a window is full,
the join compares with fewer. Nor are rows after the slow stream's last, which ends it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.joins.ordered.model import OrderCosts
from lowwater.probe import SECOND, Observer, PerComparison, Probe, Step
from lowwater.typing import Charge, Order

SYNC: Order = "sync-filter"
FILTER: Order = "filter-order"
ADAPTIVE: Order = "adaptive"
ORDERS = (SYNC, FILTER, ADAPTIVE)
UNORDERED = "unordered"
"""The join with no order, in tables and legends."""
NAMES: dict[str, str] = {SYNC: "Sync-Filter", FILTER: "Filter-Order", ADAPTIVE: "Adaptive"}
ALPHA = 0.3
"""The load from which Adaptive holds results."""
KEYS = 300
"""Number of keys: so many that few rows of a window match, and the work is in comparing."""


@dataclass(frozen=True)
class Experiment:
    """Two streams and the window of their join; rates are rows a second."""

    slow_rate: float
    fast_rate: float
    window: float
    """Length of the window, in seconds."""
    seconds: float
    """Length of the streams, in seconds."""
    warm: float
    """Seconds at the beginning; rows that arrive in them are not counted."""
    seed: int = 1
    tick: float = 0.0
    """Seconds of arrivals handed over together; 0 hands over each row as it arrives."""
    chunk_rows: int = 1
    """Number of queued rows that are read at once. More than one is less work for our join, but the
    number of pairs it compares is then an estimate, and a bad one if they are minutes apart."""

    def setting(self, cost: float) -> OrderCosts:
        """Return the setting of the model, for a ``cost`` of a comparison in seconds."""
        return OrderCosts.of_two(cost, self.window, (self.slow_rate, self.fast_rate))


@dataclass(frozen=True)
class Response:
    """The figures of one run."""

    strategy: str
    imposed_cost_us: float | None
    """Microseconds a comparison takes on the clock; None if work takes its real time."""
    cost_us: float
    """Microseconds a comparison took, over the rows that count."""
    slow_rate: float
    fast_rate: float
    window_seconds: float
    seconds: float
    load: float
    """c·|w|·λ1·λ2; all the work is twice that."""
    rows: int
    """Number of rows that count."""
    response_seconds: float
    slow_response_seconds: float
    fast_response_seconds: float
    filter_order_share: float
    """Share of the time in which rows were joined as they came."""
    switches: int
    held_rows_peak: int
    waiting_rows_peak: int


class JoinWatch(Observer):
    """Follows the progress of an ordered join, its strategy and its work, after each step."""

    def __init__(self) -> None:
        self._at: list[int] = []
        self._upto: list[int] = []
        self._modes: list[tuple[int, str]] = []
        self._work: list[tuple[int, int, int]] = []

    def on_charged(self, step: Step) -> None:
        """Note the time up to which the join is done, its strategy and its work."""
        now, upto = self.run.now, step.operator.done_to
        mode = str(step.operator.details["strategy"])
        if not self._upto or upto > self._upto[-1]:
            self._at.append(now)
            self._upto.append(upto)
        if not self._modes or mode != self._modes[-1][1]:
            self._modes.append((now, mode))
        if step.comparisons:
            self._work.append((now, step.nanoseconds, step.comparisons))

    def done_at(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the times, in nanoseconds, at which everything up to these ticks was done."""
        done: NDArray[np.int64] = np.array(self._at)[np.searchsorted(self._upto, ticks)]
        return done

    def share_of(self, mode: str, start: int) -> float:
        """Return the share of the time since ``start`` (nanoseconds) in which rows were joined by
        a strategy."""
        ends = [at for at, _ in self._modes[1:]] + [self.run.now]
        spent = (
            max(0, end - max(begun, start))
            for (begun, each), end in zip(self._modes, ends, strict=True)
            if each == mode
        )
        return sum(spent) / max(1, self.run.now - start)

    def cost(self, start: int) -> float:
        """Return the nanoseconds a comparison took since ``start`` (nanoseconds)."""
        since = [(took, compared) for at, took, compared in self._work if at > start]
        return sum(took for took, _ in since) / max(1, sum(compared for _, compared in since))


def arrivals(rate: float, seconds: float, seed: int, keys: int = KEYS) -> pl.DataFrame:
    """Return ``rate * seconds`` rows with exponential gaps; ``rate`` is rows a second."""
    random = np.random.default_rng(seed)
    number = round(rate * seconds)
    gaps = random.exponential(size=number + 1).cumsum()
    times = gaps[:-1] / gaps[-1] * seconds
    stamps = pl.Series("ts", (times * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
    return pl.DataFrame({"arrived": times, "ts": stamps, "key": random.integers(0, keys, number)})


def joined(slow: pl.DataFrame, fast: pl.DataFrame, window: float, order: Order | None) -> lw.Stream:
    """Return the join of two arrival logs, by a strategy or, with None, in no order."""
    left = lw.stream(lw.replay(slow, "arrived"), name="slow", time="ts")
    right = lw.stream(lw.replay(fast, "arrived"), name="fast", time="ts")
    alpha = ALPHA if order == ADAPTIVE else None
    return left.join(right, on="key", within=f"{window:g} seconds", order=order, alpha=alpha)


def respond(order: Order, charge: Charge, experiment: Experiment) -> Response:
    """Run one strategy; the same experiment has the same arrivals."""
    each, watch = experiment, JoinWatch()
    slow = arrivals(each.slow_rate, each.seconds, each.seed)
    fast = arrivals(each.fast_rate, each.seconds, each.seed + 1_000)
    run = Probe(
        joined(slow, fast, each.window, order),
        observer=watch,
        charge=charge,
        tick=each.tick,
        chunk_rows=each.chunk_rows,
        keep=False,
    ).run()
    counted = pl.col("arrived").is_between(each.warm, float(slow["arrived"][-1]), closed="left")
    one, two = (_waited(watch, stream.filter(counted)) for stream in (slow, fast))
    start = round(each.warm * SECOND)
    cost = watch.cost(start)
    details = run.operator("join").details
    return Response(
        strategy=order,
        imposed_cost_us=charge.nanoseconds / 1e3 if isinstance(charge, PerComparison) else None,
        cost_us=cost / 1e3,
        slow_rate=each.slow_rate,
        fast_rate=each.fast_rate,
        window_seconds=each.window,
        seconds=each.seconds,
        load=each.setting(cost / SECOND).load,
        rows=len(one) + len(two),
        response_seconds=float(np.concatenate((one, two)).mean()),
        slow_response_seconds=float(one.mean()),
        fast_response_seconds=float(two.mean()),
        filter_order_share=watch.share_of(FILTER, start),
        switches=int(details.get("switches", 0)),
        held_rows_peak=int(details["held_rows_peak"]),
        waiting_rows_peak=int(details["waiting_rows_peak"]),
    )


def _waited(watch: JoinWatch, rows: pl.DataFrame) -> NDArray[np.float64]:
    """Return the seconds from the arrival of each row until it is done."""
    done = watch.done_at(rows["ts"].to_physical().to_numpy())
    waited: NDArray[np.float64] = done / SECOND - rows["arrived"].to_numpy()
    return waited


# ---- tables of responses -------------------------------------------------------------------


def table(runs: Sequence[Response]) -> pl.DataFrame:
    """Return runs as rows."""
    return pl.DataFrame([asdict(each) for each in runs], infer_schema_length=None)


def curve(points: pl.DataFrame, strategy: str, x: str) -> dict[float, float]:
    """Return the mean response time of a strategy in seconds, by the column ``x``."""
    own = points.filter(pl.col("strategy") == strategy).sort(x)
    return dict(zip(own[x].to_list(), own["response_seconds"].to_list(), strict=True))


def gains(points: pl.DataFrame, strategy: str, x: str) -> dict[float, float]:
    """Return the share by which a strategy shortens the response time of Sync-Filter, by ``x``."""
    sync, own = curve(points, SYNC, x), curve(points, strategy, x)
    return {at: 1 - own[at] / sync[at] for at in sync if at in own}


def shares(points: pl.DataFrame, x: str) -> dict[float, float]:
    """Return the share of the time in which Adaptive joined rows as they came, by ``x``."""
    own = points.filter(pl.col("strategy") == ADAPTIVE).sort(x)
    return dict(zip(own[x].to_list(), own["filter_order_share"].to_list(), strict=True))


def microseconds(value: float) -> str:
    """Write a number of microseconds for people."""
    return f"{value / 1e3:.3g} ms" if value >= 100 else f"{value:.3g} µs"
