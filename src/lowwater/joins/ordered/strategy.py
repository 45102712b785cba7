"""The choice between joining rows in order and ordering results (Ordered §4-§6).

*Sync-Filter* holds rows until no earlier one can come, then joins them. *Filter-Order* joins rows
as they come and holds the results. *Adaptive* begins with Sync-Filter and switches to Filter-Order
when the load ``c·|w|·λ1·λ2`` reaches ``alpha``: then at least the share ``alpha / (1 + alpha)`` of
the response time is saved. It switches back when the load is clearly below ``alpha``, so that noise
causes no switches.

The choice follows from the arrivals and times given to it; no clock is read. It changes the time of
the work and the rows held, and never the results.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from lowwater.joins.ordered.model import OrderCosts
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Readings

OrderMode = Literal["sync-filter", "filter-order"]
Order = Literal["sync-filter", "filter-order", "adaptive"]
ORDERS: tuple[Order, ...] = ("sync-filter", "filter-order", "adaptive")
ALPHA = 0.3
"""Default of ``alpha``, the load from which Filter-Order is used."""
BACK = 0.75
"""Sync-Filter is used again when the load is below this share of ``alpha``."""
ARRIVALS = 256
"""Number of last arrivals by which a rate is measured."""
ENOUGH = 16
"""Number of rows of an input before it has a rate."""
STEPS = 128
"""Approximate number of last pieces of work over which the cost of a comparison is averaged."""
SECOND = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Ordering:
    """The options of the order of a join's results."""

    order: Order
    alpha: float = ALPHA

    def describe(self) -> str:
        """Return the options as text for explain."""
        alpha = f", alpha {self.alpha:g}" if self.order == "adaptive" else ""
        return f"in order by {self.order}{alpha}"


class ArrivalRate:
    """The rate of an input in rows a second, by its last arrivals.

    It is measured by the engine's clock, or by the times of the rows if that clock stands still.
    """

    def __init__(self, ticks_per_second: int):
        self._per_second = max(1, ticks_per_second)
        self._arrivals: deque[tuple[int, int, int]] = deque()
        self._rows = 0  # of all arrivals but the first, from which time is counted

    def arrived(self, rows: int, now: int, ticks: int) -> None:
        """Count rows that arrived at ``now``; ``ticks`` is their latest time."""
        if self._arrivals:
            self._rows += rows
            ticks = max(ticks, self._arrivals[-1][2])
        self._arrivals.append((rows, now, ticks))
        if len(self._arrivals) > ARRIVALS:
            self._arrivals.popleft()
            self._rows -= self._arrivals[0][0]

    def value(self, now: int, ticks: int) -> float | None:
        """Return the rate up to ``now``; None if too few rows have come, or no time has passed.

        ``now`` is in clock nanoseconds, ``ticks`` the greatest time of a row so far.
        """
        rows = self._rows
        if rows < ENOUGH:
            return None
        _, since, first = self._arrivals[0]
        if now > since:
            return rows * SECOND / (now - since)
        passed = max(ticks, self._arrivals[-1][2]) - first
        return rows * self._per_second / passed if passed > 0 else None

    def snapshot(self) -> Any:
        """Return the last arrivals."""
        return list(self._arrivals), self._rows

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        arrivals, self._rows = saved
        self._arrivals = deque(map(tuple, arrivals))


class ComparisonCost:
    """The seconds that a comparison takes: an average in which older work weighs less."""

    def __init__(self) -> None:
        self._nanoseconds = self._comparisons = 0.0

    def took(self, nanoseconds: int, comparisons: int) -> None:
        """Add a piece of work: its time in nanoseconds, and the pairs of rows compared in it."""
        keep = 1 - 1 / STEPS
        self._nanoseconds = self._nanoseconds * keep + nanoseconds
        self._comparisons = self._comparisons * keep + comparisons

    @property
    def value(self) -> float | None:
        """Seconds that a comparison takes; None before the first."""
        return self._nanoseconds / self._comparisons / SECOND if self._comparisons else None

    def snapshot(self) -> Any:
        """Return both sums."""
        return self._nanoseconds, self._comparisons

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self._nanoseconds, self._comparisons = saved


class ModeChooser:
    """Chooses the mode of an ordered join."""

    def __init__(self, ordering: Ordering, windows: Sequence[float], ticks_per_second: int):
        self._ordering = ordering
        self._windows = tuple(windows)
        self._rates = [ArrivalRate(ticks_per_second) for _ in windows]
        self._cost = ComparisonCost()
        self.mode: OrderMode = "filter-order" if ordering.order == "filter-order" else "sync-filter"
        self.switches = 0
        self.reason = "as asked" if ordering.order != "adaptive" else "too little seen to decide"

    def arrived(self, port: int, rows: int, now: int, ticks: int) -> None:
        """Count rows that arrived at ``now``, and choose again if the order is adaptive."""
        if self._ordering.order != "adaptive":
            return
        self._rates[port].arrived(rows, now, ticks)
        self._decide(now, ticks)

    def took(self, nanoseconds: int, comparisons: int) -> None:
        """Add the time that some comparisons took, in nanoseconds."""
        if comparisons:
            self._cost.took(nanoseconds, comparisons)

    def _decide(self, now: int, ticks: int) -> None:
        rates = [rate.value(now, ticks) for rate in self._rates]
        cost = self._cost.value
        if cost is None or not all(rates):
            return
        setting = OrderCosts(cost, self._windows, tuple(rate or 0.0 for rate in rates))
        load, alpha = setting.load, self._ordering.alpha
        stay = self.mode == "filter-order" and load >= BACK * alpha
        mode: OrderMode = "filter-order" if load >= alpha or stay else "sync-filter"
        self.switches += mode != self.mode
        self.mode, self.reason = mode, _because(setting, alpha, mode)

    def metrics(self) -> Readings:
        """Return the strategy in force, the reason, and the number of changes if it can change."""
        switches = self.switches if self._ordering.order == "adaptive" else None
        return Readings({STRATEGY: self.mode, REASON: self.reason, SWITCHES: switches})

    def snapshot(self) -> Any:
        """Return the measurements and the choice."""
        return {
            "mode": self.mode,
            "reason": self.reason,
            "switches": self.switches,
            "rates": [rate.snapshot() for rate in self._rates],
            "cost": self._cost.snapshot(),
        }

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self.mode, self.reason = saved["mode"], saved["reason"]
        self.switches = saved["switches"]
        for rate, each in zip(self._rates, saved["rates"], strict=True):
            rate.restore(each)
        self._cost.restore(saved["cost"])


def _because(setting: OrderCosts, alpha: float, mode: OrderMode) -> str:
    rates = ", ".join(f"{rate:.3g}" for rate in setting.rates)
    sign = ">=" if setting.load >= alpha else "<"
    kept = "; kept until it is clearly below" if mode == "filter-order" and sign == "<" else ""
    return (
        f"c·|w|·λ1·λ2 = {setting.load:.3g} {sign} {alpha:g}"
        f" (c {setting.cost * 1e6:.3g} µs, λ {rates} rows/s){kept}"
    )
