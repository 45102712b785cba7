"""The costs of ordered joins, as formulas (Ordered §4.1, §5.1, Eq. 1-8).

Rows of the fast input wait for the next row of the slow one. With Sync-Filter they are joined when
it has come, one after the other; with Filter-Order they are joined while they wait. So both have
the same waiting time and differ by the work that follows it.

For two inputs the formulas are the paper's. More inputs are treated as one slow input and all
others together; a row is compared with the rows in the windows of the other inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

BOUND = 0.5
"""Upper bound on the gain of Filter-Order while the join keeps up (Eq. 8)."""


@dataclass(frozen=True, slots=True)
class OrderCosts:
    """The quantities that the costs depend on."""

    cost: float
    """Seconds to compare two rows: *c*."""
    windows: tuple[float, ...]
    r"""Seconds that rows of each input are kept: \|w\|."""
    rates: tuple[float, ...]
    """Rows a second of each input: λ."""

    @classmethod
    def of_two(cls, cost: float, window: float, rates: Sequence[float]) -> OrderCosts:
        """Return the costs of two inputs with one window, as in the paper."""
        return cls(cost, (window, window), tuple(rates))

    @property
    def slow(self) -> int:
        """The number of the input with the fewest rows a second."""
        return min(range(len(self.rates)), key=self.rates.__getitem__)

    @property
    def slow_rate(self) -> float:
        """Rows a second of the slow input: λ1."""
        return self.rates[self.slow]

    @property
    def fast_rate(self) -> float:
        """Rows a second of all other inputs: λ2."""
        return sum(self.rates) - self.slow_rate

    @property
    def waiting(self) -> float:
        """Rows that come between two rows of the slow input: n."""
        return self.fast_rate / self.slow_rate

    @property
    def mean_waiting(self) -> float:
        """Rows that wait for a row of the slow input, on average over time: by Little's law, the
        fast rows a second times the time that each waits."""
        return self.fast_rate * self.filter_order

    @property
    def load(self) -> float:
        """Share of time that joining the rows of the fast inputs takes: ``c·|w|·λ1·λ2``."""
        kept = [window * rate for window, rate in zip(self.windows, self.rates, strict=True)]
        everything = sum(kept)
        return self.cost * sum(
            rate * (everything - own)
            for at, (rate, own) in enumerate(zip(self.rates, kept, strict=True))
            if at != self.slow
        )

    @property
    def work(self) -> float:
        """Seconds to join one waiting row: C_S."""
        return self.load / self.fast_rate

    @property
    def keeps_up(self) -> bool:
        """True if the join is faster than rows come (Eq. 1)."""
        return self.load < 1

    @property
    def sync_filter_total(self) -> float:
        """Sum of the response times, in seconds, of the rows that wait together, with Sync-Filter
        (Eq. 2)."""
        n = self.waiting
        return self.filter_order_total + n * (n + 1) / 2 * self.work

    @property
    def sync_filter(self) -> float:
        """Mean seconds from a row's arrival to its results, with Sync-Filter (Eq. 3)."""
        return self.filter_order + (self.waiting + 1) / 2 * self.work

    @property
    def filter_order_total(self) -> float:
        """Sum of the response times, in seconds, of these rows with Filter-Order (Eq. 4)."""
        n = self.waiting
        return n / self.slow_rate - (n * n - n) / (2 * self.fast_rate)

    @property
    def filter_order(self) -> float:
        """Mean seconds from a row's arrival to its results, with Filter-Order (Eq. 5)."""
        return 1 / self.slow_rate - (self.waiting - 1) / (2 * self.fast_rate)

    @property
    def measured_gain(self) -> float:
        """The share by which Filter-Order shortens the mean response time (Eq. 6)."""
        return (self.sync_filter - self.filter_order) / self.sync_filter

    @property
    def gain(self) -> float:
        """The share by which Filter-Order shortens the mean response time, by the load (Eq. 7)."""
        return self.load / (1 + self.load)


def switching_cost(alpha: float, windows: Sequence[float], rates: Sequence[float]) -> float:
    """Return the seconds that a comparison takes when the load is ``alpha``.

    If a comparison takes longer, Filter-Order is faster by enough. The result is infinite if no row
    is kept for others.
    """
    load = OrderCosts(1.0, tuple(windows), tuple(rates)).load
    return alpha / load if load else inf
