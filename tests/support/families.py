"""Families of disordered streams: some to develop with, others to judge by.

The two sets share no family and no seed. Constants of learned promises were chosen with the
families of ``DEVELOPMENT``; those of ``JUDGING`` only judge the result.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ticks = NDArray[np.int64]
Chance = np.random.Generator
SECOND = 1_000
"""Ticks in a second."""


@dataclass(frozen=True)
class Arrivals:
    """The times of rows in order of arrival, in milliseconds."""

    times: Ticks
    channels: Ticks
    """The log each row comes from; all zeros where there is one."""


@dataclass(frozen=True)
class Family:
    """Streams made alike, one for each seed."""

    name: str
    make: Callable[[Chance, int], Arrivals]

    def arrivals(self, seed: int, rows: int) -> Arrivals:
        """The stream of one seed."""
        return self.make(np.random.default_rng(seed), rows)


def _arriving(times: Ticks, delays: NDArray[np.float64], logs: Ticks | None = None) -> Arrivals:
    order = np.argsort(times + delays.astype(np.int64), kind="stable")
    logs = np.zeros(len(times), np.int64) if logs is None else logs
    return Arrivals(times[order], logs[order])


def _paced(chance: Chance, rows: int, mean: float = 100.0) -> Ticks:
    """Times of events that come at a steady rate; ``mean`` is the time between two in ms."""
    times: Ticks = np.cumsum(chance.exponential(mean, rows)).astype(np.int64)
    return times


# ---- for development -----------------------------------------------------------------------


def _steady(chance: Chance, rows: int) -> Arrivals:
    return _arriving(_paced(chance, rows), chance.exponential(SECOND, rows))


def _two_logs(chance: Chance, rows: int) -> Arrivals:
    """One log is written at once; one row in twenty comes from another, thirteen minutes later."""
    slow = chance.random(rows) < 0.05
    lag = chance.normal(790 * SECOND, 5 * SECOND, rows)
    delays = np.where(slow, lag, chance.exponential(5.0, rows))
    return _arriving(_paced(chance, rows), delays, slow.astype(np.int64))


def _three_logs(chance: Chance, rows: int) -> Arrivals:
    """Three logs whose delays differ by a factor of a hundred each."""
    logs = chance.choice(3, rows, p=[0.6, 0.3, 0.1])
    scale = np.array([10.0, 1.0 * SECOND, 100.0 * SECOND])[logs]
    return _arriving(_paced(chance, rows), chance.exponential(scale), logs)


def _up_and_down(chance: Chance, rows: int) -> Arrivals:
    """Delays become thirty times as long for a third of the stream."""
    at = np.arange(rows) / rows
    scale = np.where((at > 0.3) & (at < 0.6), 3.0 * SECOND, 100.0)
    return _arriving(_paced(chance, rows), chance.exponential(scale))


def _lost_contact(chance: Chance, rows: int) -> Arrivals:
    """Every few minutes half of the rows are held back, and handed over at once."""
    times = _paced(chance, rows)
    delays = chance.exponential(50.0, rows)
    begin = 0
    while begin < times[-1]:
        begin += int(chance.exponential(600 * SECOND))
        end = begin + int(chance.integers(2 * SECOND, 30 * SECOND))
        held = (times >= begin) & (times < end) & (chance.random(rows) < 0.5)
        delays = np.where(held, end - times + delays, delays)
    return _arriving(times, delays)


def _long_tail(chance: Chance, rows: int) -> Arrivals:
    return _arriving(_paced(chance, rows), 50.0 * chance.pareto(1.3, rows))


def _growing(chance: Chance, rows: int) -> Arrivals:
    """The lateness of every fifth row grows, steadily, to twenty minutes."""
    grown = np.linspace(0, 1_200 * SECOND, rows)
    lag = np.where(chance.random(rows) < 0.2, grown, 0.0)
    return _arriving(_paced(chance, rows), lag + chance.exponential(300.0, rows))


DEVELOPMENT = (
    Family("steady", _steady),
    Family("two logs", _two_logs),
    Family("three logs", _three_logs),
    Family("up and down", _up_and_down),
    Family("lost contact", _lost_contact),
    Family("long tail", _long_tail),
    Family("growing", _growing),
)
DEVELOPMENT_SEEDS = (1, 2, 3)


# ---- for judging ---------------------------------------------------------------------------


def _many_logs(chance: Chance, rows: int) -> Arrivals:
    """Four to eight logs; the lag of each is anything from ten milliseconds to a quarter hour."""
    count = int(chance.integers(4, 9))
    lags = 10.0 ** chance.uniform(1, np.log10(900 * SECOND), count)
    logs = chance.choice(count, rows, p=chance.dirichlet(np.ones(count)))
    delays = lags[logs] * chance.lognormal(0.0, 0.5, rows)
    return _arriving(_paced(chance, rows), delays, logs)


def _falling_behind(chance: Chance, rows: int) -> Arrivals:
    """A third of the rows come from a clock that falls behind, steadily, by ten minutes."""
    behind = chance.random(rows) < 0.33
    lag = np.where(behind, np.linspace(SECOND, 600 * SECOND, rows), 0.0)
    return _arriving(
        _paced(chance, rows), lag + chance.exponential(200.0, rows), behind.astype(np.int64)
    )


def _uploads(chance: Chance, rows: int) -> Arrivals:
    """Three rows in a hundred are collected, and sent together every few minutes."""
    times = _paced(chance, rows)
    period = int(chance.integers(120 * SECOND, 300 * SECOND))
    collected = chance.random(rows) < 0.03
    delays = np.where(collected, period - times % period, 0) + chance.exponential(30.0, rows)
    return _arriving(times, delays, collected.astype(np.int64))


def _regimes(chance: Chance, rows: int) -> Arrivals:
    """The scale of delays changes six times, each time to anything within three decades."""
    edges = np.sort(chance.integers(0, rows, 6))
    scales = 10.0 ** chance.uniform(1, 4, 7)
    scale = scales[np.searchsorted(edges, np.arange(rows), "right")]
    return _arriving(_paced(chance, rows), chance.gamma(2.0, scale / 2))


def _lognormal_tail(chance: Chance, rows: int) -> Arrivals:
    return _arriving(_paced(chance, rows), 20.0 * chance.lognormal(0.0, 2.5, rows))


def _tides(chance: Chance, rows: int) -> Arrivals:
    """Delays grow and shrink by a factor of fifty, four times."""
    phase = np.sin(np.linspace(0, 8 * np.pi, rows) + chance.uniform(0, 2 * np.pi))
    return _arriving(_paced(chance, rows), chance.exponential(500.0 * 50 ** (phase / 2)))


def _joins_late(chance: Chance, rows: int) -> Arrivals:
    """After a third of the stream a log begins that is minutes behind."""
    share, lag = chance.uniform(0.05, 0.3), chance.uniform(60 * SECOND, 600 * SECOND)
    second = (np.arange(rows) > rows // 3) & (chance.random(rows) < share)
    delays = np.where(second, lag, 0.0) + chance.exponential(100.0, rows)
    return _arriving(_paced(chance, rows), delays, second.astype(np.int64))


def _congestion(chance: Chance, rows: int) -> Arrivals:
    """A queue that jams now and then: its rows are the later the longer the jam has lasted."""
    times = _paced(chance, rows)
    queue, jam, spare = np.zeros(rows), 0.0, 0.0
    for at, (begins, ends) in enumerate(chance.random((rows, 2))):
        jam = 1.0 if jam == 0.0 and begins < 0.0005 else 0.0 if ends < 0.01 else jam
        spare = max(0.0, spare + (80.0 if jam else -20.0))
        queue[at] = spare
    queued = chance.random(rows) < 0.4
    return _arriving(times, np.where(queued, queue, 0.0) + chance.exponential(40.0, rows))


def _clocks_are_set(chance: Chance, rows: int) -> Arrivals:
    """Three clocks fall behind, each at its pace; each is set right now and then."""
    times, logs = _paced(chance, rows), chance.integers(0, 4, rows)
    delays = chance.exponential(60.0, rows)
    for log in (1, 2, 3):
        set_at = np.sort(np.append(chance.integers(0, times[-1], 5), 0))
        since = times - set_at[np.searchsorted(set_at, times, "right") - 1]
        delays += np.where(logs == log, since * chance.uniform(0.002, 0.05), 0.0)
    return _arriving(times, delays, logs)


JUDGING = (
    Family("many logs", _many_logs),
    Family("falling behind", _falling_behind),
    Family("uploads", _uploads),
    Family("regimes", _regimes),
    Family("lognormal tail", _lognormal_tail),
    Family("tides", _tides),
    Family("joins late", _joins_late),
    Family("congestion", _congestion),
    Family("clocks are set", _clocks_are_set),
)
JUDGING_SEEDS = (101, 102, 103, 104, 105)
