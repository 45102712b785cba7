"""Ordered joins over two streams on a virtual clock: how long each input row takes.

A row's response time is counted from its arrival until everything up to its time has been joined
and has left the join: from then on the results of that row are out, and none before them is still
to come. It is read off the join after every step of work, so rows without a partner count, too.

Arrivals have exponential gaps; their number is fixed, so that the rates of a short run are the ones
asked for. Rows come when their time says. The first rows are not counted: until a window is full,
the join compares with fewer. Nor are rows after the slow stream's last, which ends it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims.measure import Nowhere
from lowwater.engines.embedded.clock import Charge, PerComparison, VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, Pace
from lowwater.joins.ordered.model import OrderCosts
from lowwater.joins.ordered.ordered_join import OrderedJoin
from lowwater.joins.ordered.strategy import Order
from lowwater.plan.physical.compile import compile_plan
from lowwater.sources.replay import Replay
from lowwater.stream.duration import SECOND

SYNC: Order = "sync-filter"
FILTER: Order = "filter-order"
ADAPTIVE: Order = "adaptive"
NAMES: dict[str, str] = {SYNC: "Sync-Filter", FILTER: "Filter-Order", ADAPTIVE: "Adaptive"}
ALPHA = 0.3
KEYS = 300
"""Few rows of a window have the same key: results are few, the work is in comparing."""


@dataclass(frozen=True)
class Experiment:
    """Two streams and the window of their join."""

    slow_rate: float
    fast_rate: float
    window: float
    """Seconds."""
    seconds: float
    warm: float
    """Rows that arrive in the first so many seconds are not counted."""
    seed: int = 1
    tick: float = 0.0
    """Seconds of arrivals handed over together; 0 hands over each row as it arrives."""
    chunk_rows: int = 1
    """Rows that have queued are read so many at once. More than one is less work for our join, but
    how many pairs it compares is then an estimate, and a bad one if they are minutes apart."""

    def setting(self, cost: float) -> OrderCosts:
        """The same in the model, at a cost of so many seconds a comparison."""
        return OrderCosts.of_two(cost, self.window, (self.slow_rate, self.fast_rate))


@dataclass(frozen=True)
class Response:
    """What one run measured."""

    strategy: str
    imposed_cost_us: float | None
    """Microseconds a comparison takes on the clock; None if work takes what it really takes."""
    cost_us: float
    """The same as it came out, over the rows that count."""
    slow_rate: float
    fast_rate: float
    window_seconds: float
    seconds: float
    load: float
    """c·|w|·λ1·λ2; all the work is twice that."""
    rows: int
    """Rows that count."""
    response_seconds: float
    slow_response_seconds: float
    fast_response_seconds: float
    filter_order_share: float
    """Share of the time in which rows were joined as they came."""
    switches: int
    held_rows_peak: int
    waiting_rows_peak: int


class WatchingClock(VirtualClock):
    """A virtual clock that looks at an ordered join after each step of work."""

    def __init__(self, charge: Charge):
        super().__init__(charge=charge)
        self._join: OrderedJoin | None = None
        self._at: list[int] = []
        self._upto: list[int] = []
        self._modes: list[tuple[int, str]] = []
        self._work: list[tuple[int, int, int]] = []

    def watch(self, engine: EmbeddedEngine) -> OrderedJoin:
        """Look at the join of an engine that has not run yet."""
        join = engine.stage("join").kernel
        assert isinstance(join, OrderedJoin)
        self._join = join
        return join

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Let work take time, then note how far the join is."""
        counted = super().worked(nanoseconds, comparisons)
        assert self._join is not None
        now, upto, mode = self.now(), done_upto(self._join), str(self._join.about()["strategy"])
        if not self._upto or upto > self._upto[-1]:
            self._at.append(now)
            self._upto.append(upto)
        if not self._modes or mode != self._modes[-1][1]:
            self._modes.append((now, mode))
        if comparisons:
            self._work.append((now, counted, comparisons))
        return counted

    def done_at(self, ticks: NDArray[np.int64]) -> NDArray[np.int64]:
        """When everything up to these times was done, in nanoseconds."""
        done: NDArray[np.int64] = np.array(self._at)[np.searchsorted(self._upto, ticks)]
        return done

    def share_of(self, mode: str, start: int) -> float:
        """The share of the time since ``start`` in which rows were joined in this way."""
        ends = [at for at, _ in self._modes[1:]] + [self.now()]
        spent = (
            max(0, end - max(begun, start))
            for (begun, each), end in zip(self._modes, ends, strict=True)
            if each == mode
        )
        return sum(spent) / max(1, self.now() - start)

    def cost(self, start: int) -> float:
        """Nanoseconds a comparison took since ``start``."""
        since = [(took, compared) for at, took, compared in self._work if at > start]
        return sum(took for took, _ in since) / max(1, sum(compared for _, compared in since))


def done_upto(join: OrderedJoin) -> int:
    """The time up to which all rows that came are joined and their results have left.

    The frontier does not tell whether the row at that very time has been joined; its queue does.
    """
    upto = join.frontier[0]
    return upto - 1 if join.unjoined[0] <= upto else upto


def arrivals(rate: float, seconds: float, seed: int, keys: int = KEYS) -> pl.DataFrame:
    """Rows with exponential gaps, so many that the rate is met."""
    random = np.random.default_rng(seed)
    number = round(rate * seconds)
    gaps = random.exponential(size=number + 1).cumsum()
    times = gaps[:-1] / gaps[-1] * seconds
    stamps = pl.Series("ts", (times * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
    return pl.DataFrame({"arrived": times, "ts": stamps, "key": random.integers(0, keys, number)})


def joined(slow: pl.DataFrame, fast: pl.DataFrame, window: float, order: Order | None) -> lw.Stream:
    """The join of two arrival logs, in order or not."""
    left = lw.stream(Replay(slow, "arrived"), name="slow", time="ts")
    right = lw.stream(Replay(fast, "arrived"), name="fast", time="ts")
    alpha = ALPHA if order == ADAPTIVE else None
    return left.join(right, on="key", within=f"{window:g} seconds", order=order, alpha=alpha)


def respond(order: Order, charge: Charge, experiment: Experiment) -> Response:
    """Run one strategy; the same experiment has the same arrivals."""
    each = experiment
    slow = arrivals(each.slow_rate, each.seconds, each.seed)
    fast = arrivals(each.fast_rate, each.seconds, each.seed + 1_000)
    clock = WatchingClock(charge)
    plan = compile_plan(joined(slow, fast, each.window, order)._node)
    pace = Pace(each.chunk_rows, round(each.tick * SECOND))
    engine = EmbeddedEngine(plan, Nowhere(), clock, pace, None)
    join = clock.watch(engine)
    engine.run()
    counted = pl.col("arrived").is_between(each.warm, float(slow["arrived"][-1]), closed="left")
    one, two = (_waited(clock, stream.filter(counted)) for stream in (slow, fast))
    imposed = charge.nanoseconds / 1e3 if isinstance(charge, PerComparison) else None
    start = round(each.warm * SECOND)
    cost = clock.cost(start)
    about = join.about()
    return Response(
        order,
        imposed,
        cost / 1e3,
        each.slow_rate,
        each.fast_rate,
        each.window,
        each.seconds,
        each.setting(cost / SECOND).load,
        len(one) + len(two),
        float(np.concatenate((one, two)).mean()),
        float(one.mean()),
        float(two.mean()),
        clock.share_of(FILTER, start),
        int(about.get("switches", 0)),
        int(about["held_rows_peak"]),
        int(about["waiting_rows_peak"]),
    )


def _waited(clock: WatchingClock, rows: pl.DataFrame) -> NDArray[np.float64]:
    """Seconds from the arrival of each row until it is done."""
    done = clock.done_at(rows["ts"].to_physical().to_numpy())
    waited: NDArray[np.float64] = done / SECOND - rows["arrived"].to_numpy()
    return waited
