"""The choice between joining rows in order and ordering results (Ordered §4-§6).

*Sync-Filter* lets rows wait until no earlier one can come, then joins them. *Filter-Order* joins
rows as they come and holds the results back. *Adaptive* begins with the first and switches to the
second when ``c·|w|·λ1·λ2 >= alpha``: then at least the share ``alpha / (1 + alpha)`` of the
response time is saved. It switches back when the load is clearly below alpha, so that noise does
not cause switches.

The choice follows from the arrivals and times given to it; it reads no clock. It changes when work
is done and what is held, never the results.
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
"""Default load at which Filter-Order is taken."""
BACK = 0.75
"""Sync-Filter is taken again when the load is below this share of alpha."""
ARRIVALS = 256
"""Number of last arrivals that a rate is measured from."""
ENOUGH = 16
"""Number of rows on each input before a decision."""
STEPS = 128
"""Number of last pieces of work that the cost of a comparison is averaged over, about."""
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
    """The rows a second of an input, from its last arrivals.

    It is measured by the engine's clock, or by the rows' own times if that clock stands still.
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
        """Return the rows a second up to now; None if too few came, or no time has passed."""
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
        """Continue from a snapshot."""
        arrivals, self._rows = saved
        self._arrivals = deque(map(tuple, arrivals))


class ComparisonCost:
    """The seconds a comparison takes, averaged over the last pieces of work with decay."""

    def __init__(self) -> None:
        self._nanoseconds = self._comparisons = 0.0

    def took(self, nanoseconds: int, comparisons: int) -> None:
        """Add a piece of work."""
        keep = 1 - 1 / STEPS
        self._nanoseconds = self._nanoseconds * keep + nanoseconds
        self._comparisons = self._comparisons * keep + comparisons

    @property
    def value(self) -> float | None:
        """Seconds a comparison; None before the first."""
        return self._nanoseconds / self._comparisons / SECOND if self._comparisons else None

    def snapshot(self) -> Any:
        """Return both sums."""
        return self._nanoseconds, self._comparisons

    def restore(self, saved: Any) -> None:
        """Continue from a snapshot."""
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
        """Add the time that comparisons took."""
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
        """Return the strategy in force, the reason, and how often it changed if it can."""
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
        """Continue from a snapshot."""
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
