"""Update streams run on a virtual clock, and the staleness of the updates shown is measured.

A run has imposed costs: each row that leaves the queue takes the same time. Staleness (UpStream
§3.3) is computed here from two lists alone, the arrivals of updates and the times at which they
were shown, so the queue's own accounts are judged and not trusted. An update is reflected from the
moment at which it or a newer one of its key is shown, and a key is as stale as its oldest update
that is not reflected. The begin of a service is known, too, because it takes a fixed time; that
gives the staleness of the queue (§5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.probe import SECOND, Observer, PerRow, Probe, Step
from lowwater.typing import Schedule
from lowwater.updates.staleness import KeyStaleness, Staleness

Seconds = NDArray[np.float64]
Numbers = NDArray[np.int64]
NAMES: dict[Schedule, str] = {
    "append": "append queue",
    "shedding": "append, random shedding",
    "fifo": "FIFO update queue",
    "in-place": "IN-PLACE",
    "linecutting": "LINECUTTING",
    "rare-first": "rare-first",
    "auto": "auto",
}
Way = Literal["append", "shedding", "lazy", "eager"]
"""The name of a queue of windows that is compared."""
WINDOW_NAMES: dict[Way, str] = {
    "append": "append",
    "shedding": "append, random window shedding",
    "lazy": "LAZY",
    "eager": "EAGER",
}
"""The names of queues of windows."""


# ---- arrivals ------------------------------------------------------------------------------


def updates(at: Seconds, keys: Numbers) -> pl.DataFrame:
    """Return updates in the order of their arrival."""
    return pl.DataFrame({"arrived": at, "n": np.arange(len(at)), "key": keys})


def at_random(rates: Sequence[float], seconds: float, seed: int) -> pl.DataFrame:
    """Return updates at equal distances, each of a key drawn by how often keys update (§5.2)."""
    total = sum(rates)
    count = round(total * seconds)
    keys = np.random.default_rng(seed).choice(len(rates), count, p=np.array(rates) / total)
    return updates(np.arange(count) / total, keys)


def in_turn(slow: int, fast: int, slower: int, rate: float, seconds: float) -> pl.DataFrame:
    """Return updates at equal distances, in rounds of all fast keys.

    A slow key, which updates ``slower`` times less often, is in one of so many rounds, the next
    slow key in the next round.
    """
    quick, rare = range(slow, slow + fast), range(slow)
    cycle = [key for turn in range(slower) for key in (*quick, *rare[turn::slower])]
    total = rate * (fast + slow / slower)
    count = round(total * seconds)
    return updates(np.arange(count) / total, np.resize(cycle, count))


# ---- runs ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unreflected:
    """The oldest updates of a key that were not reflected, one after the other."""

    came: Seconds
    """The arrival of each."""
    begin: Seconds
    """The time from which it was the oldest."""
    end: Seconds
    """The time until which it was the oldest."""

    @classmethod
    def of(cls, came: Seconds, reflected: Numbers, at: Seconds, end: float) -> Unreflected:
        """Return those of a key; ``reflected``: how many updates were, from the times ``at`` on."""
        next_one = np.concatenate([[0], reflected])
        begin, until = np.concatenate([came[:1], at]), np.concatenate([at, [end]])
        late = next_one < len(came)
        oldest = came[next_one[late]]
        begin, until = np.maximum(begin[late], oldest), np.minimum(until[late], end)
        lasts = until > begin
        return cls(oldest[lasts], begin[lasts], until[lasts])

    @property
    def area(self) -> float:
        """The integral of staleness, in seconds squared."""
        last, first = self.end - self.came, self.begin - self.came
        return float((last * last - first * first).sum() / 2)


@dataclass(frozen=True)
class QueueRun:
    """A run: the updates that came, and those that were shown."""

    came: pl.DataFrame
    shown: pl.DataFrame
    """The updates shown, each with ``_out_at``, in seconds."""
    cost: float
    """Seconds of work for a row."""
    own: Staleness
    """The queue's own account, at the end of the run."""

    @property
    def ended(self) -> float:
        """The time at which the last update was shown, in seconds."""
        return float(self.shown["_out_at"][-1])

    def application(self, end: float | None = None) -> list[Unreflected]:
        """Return the updates that the application did not see, key by key."""
        return self._unreflected(0.0, end)

    def queue(self, end: float | None = None) -> list[Unreflected]:
        """Return the updates that waited in the queue, key by key."""
        return self._unreflected(self.cost, end)

    def averages(self, end: float | None = None) -> tuple[float, float]:
        """Return application and queue staleness, the means over time and keys, in seconds."""
        length = (self.ended if end is None else end) - float(self.came["arrived"][0])
        each = self.application(end), self.queue(end)
        application, queue = (sum(key.area for key in keys) / length / len(keys) for keys in each)
        return application, queue

    def _unreflected(self, before: float, end: float | None) -> list[Unreflected]:
        found = []
        by_key = self.shown.partition_by("key", as_dict=True)
        nothing = self.shown.head(0)
        for key, own in self.came.group_by("key", maintain_order=True):
            shown = by_key.get(key, nothing)
            reflected = np.searchsorted(own["n"].to_numpy(), shown["n"].to_numpy(), "right")
            at = shown["_out_at"].to_numpy() - before
            came = own["arrived"].to_numpy()
            found.append(Unreflected.of(came, reflected, at, self.ended if end is None else end))
        return found


class Until(Observer):
    """Ends the run when results leave at or after a time, in seconds; never if it is None."""

    def __init__(self, end: float | None = None):
        self._end = end

    def on_results(self, rows: pl.DataFrame) -> None:
        """End the run if the time has come."""
        if self._end is not None and self.run.now >= round(self._end * SECOND):
            self.run.stop()


class Services(Until):
    """Reads the rows that leave a queue, and its staleness when each service begins and ends."""

    def __init__(self, end: float | None = None) -> None:
        super().__init__(end)
        self.left: list[pl.DataFrame] = []
        """The rows that left for each service."""
        self.begun: list[tuple[int, Staleness]] = []
        """The begin of each service, in nanoseconds, and the staleness at that time; it counts the
        updates that came during the service before."""
        self.ended: list[tuple[int, Staleness]] = []
        """The end of each service, likewise, right before its result is shown."""

    def on_done(self, step: Step) -> None:
        """Read the begin of a service."""
        if step.left_queue:
            self.left += step.results
            self.begun.append((self.run.now, step.operator.staleness))

    def on_charged(self, step: Step) -> None:
        """Read the end of a service."""
        if step.left_queue:
            self.ended.append((self.run.now, step.operator.staleness))


def only_key(staleness: Staleness) -> KeyStaleness:
    """Return the staleness of the only key of a queue."""
    (only,) = staleness.by_key.values()
    return only


def update_stream(came: pl.DataFrame, schedule: Schedule) -> lw.Stream:
    """Return the update stream of an arrival log."""
    return lw.stream(
        lw.replay(came, arrival="arrived"),
        name="updates",
        time="n",
        update_key="key",
        schedule=schedule,
    )


def run_queue(
    came: pl.DataFrame, schedule: Schedule, cost: float, end: float | None = None
) -> QueueRun:
    """Run updates through a queue, to their end or until a time; a row costs ``cost`` seconds."""
    charge = PerRow(cost * SECOND)
    run = Probe(update_stream(came, schedule), observer=Until(end), charge=charge, tick=0).run()
    own = run.metrics().operator("update").staleness
    assert own is not None
    return QueueRun(came, run.results, cost, own)
