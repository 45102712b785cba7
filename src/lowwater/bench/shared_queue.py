"""Several queries over one update stream: one shared queue beside a queue for each query.

Runs are on a virtual clock, on which a row costs a query a fixed time, so every figure is counted
and not timed. The peers have one queue for each query, with the same schedule, on the same
processor: in *fair shares* the queue that has had the least processor time of those with work is
next (one that had no work starts with the least share of the others), in *turns* every queue with
work lets one row out before any lets out another. What is compared is the application staleness
(UpStream §3.3), averaged over time and keys and summed over queries by their weights. Arrivals are
random; each seed gives one ratio, and the figure is their geometric mean with its 95 % interval.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp, log, sqrt
from statistics import fmean, stdev
from typing import Any

import numpy as np
import polars as pl

from lowwater.bench.report import Row, figure
from lowwater.operators.kernel import Host
from lowwater.state.store import MemoryStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain
from lowwater.updates.options import Schedule, Updates
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.shared.readers import Reader
from lowwater.updates.shared.shared_queue import SharedUpdateQueue
from lowwater.updates.update_queue import UpdateQueue

SEEDS = range(1, 13)
T_95 = 2.201
"""The 97.5 % quantile of Student's t with one degree of freedom less than there are seeds."""
SERVICES = 600
"""Approximate number of services of a run, over all queries."""
KEYS = 10
SCHEMA = {"ts": pl.Int64(), "key": pl.Int64(), "arrived": pl.Float64()}
ROWS = QueuedRows(SCHEMA, {"ts": TimeDomain(pl.Int64(), 1)}, arrival="arrived")
FAIR, TURNS = "fair shares", "turns"
PEERS = (FAIR, TURNS)


@dataclass(frozen=True)
class Setting:
    """Queries over one stream: what a row costs each, in seconds, and how they are weighted.

    ``load`` is the work that arrives, if every query worked on every row, as a multiple of what can
    be done. Work of ``common`` seconds a row is done before the queries part: once for all that are
    given a row together, and by each for itself where queues are apart.
    """

    name: str
    costs: tuple[float, ...]
    weights: tuple[float, ...] = ()
    load: float = 5.0
    common: float = 0.0
    skew: float = 0.0
    """Exponent of the Zipf distribution of the rates of keys; 0 for equal rates."""
    schedule: Schedule = "auto"

    @property
    def weight(self) -> tuple[float, ...]:
        """The weights of the queries, 1 if none are given."""
        return self.weights or (1.0,) * len(self.costs)

    def updates(self, seed: int, services: int = SERVICES) -> Chunk:
        """Return the updates of a run, in the order of arrival; they come as a Poisson process."""
        chance = np.random.default_rng(seed)
        a_row = sum(self.costs) + self.common * len(self.costs)
        seconds = services * a_row / len(self.costs)
        count = int(seconds * self.load / a_row)
        at = np.cumsum(chance.exponential(a_row / self.load, count))
        rates = 1 / np.arange(1, KEYS + 1) ** self.skew
        keys = chance.choice(KEYS, count, p=rates / rates.sum())
        return pl.DataFrame({"ts": np.arange(count), "key": keys, "arrived": at}, SCHEMA)


SETTINGS = (
    Setting("equal queries", (1.0, 1.0, 1.0)),
    Setting("costs 1, 3, 9", (1.0, 3.0, 9.0)),
    Setting("weights 1, 4, 16", (1.0, 1.0, 1.0), (1.0, 4.0, 16.0)),
    Setting("costs 1, 3, 9, weights 9, 3, 1", (1.0, 3.0, 9.0), (9.0, 3.0, 1.0)),
    Setting("costs 1, 3, 9, keys by Zipf 0.9", (1.0, 3.0, 9.0), skew=0.9),
    Setting("costs 1, 3, 9, in-place", (1.0, 3.0, 9.0), schedule="in-place"),
    Setting("costs 1, 3, 9, load 1.2", (1.0, 3.0, 9.0), load=1.2),
    Setting("costs 1, 3, 9, load 0.5", (1.0, 3.0, 9.0), load=0.5),
    Setting("half of the work in common", (1.0, 1.0, 1.0), common=1.0),
)


class Processor:
    """A virtual clock, the queues that are worked on, and the rows that arrive."""

    def __init__(self, setting: Setting, came: Chunk):
        self.setting, self._came = setting, came
        self._arrivals = (came["arrived"].to_numpy() * SECOND).astype(np.int64)
        self._read = 0
        self.now = int(self._arrivals[0])
        self.host = Host(lambda: self.now, singly=True)
        self.by = Updates(("key",), setting.schedule)

    def read(self, queues: Sequence[UpdateQueue]) -> None:
        """Let in the rows that have arrived; wait for some if there is no work."""
        if not any(each.has_work for each in queues) and self._read < len(self._arrivals):
            self.now = max(self.now, int(self._arrivals[self._read]))
        until = int(np.searchsorted(self._arrivals, self.now, "right"))
        if until > self._read:
            rows = self._came[self._read : until]
            for each in queues:
                each.on_chunk(0, rows)
            self._read = until

    @property
    def done(self) -> bool:
        """True if the last row has come; the run ends then, whatever waits."""
        return self._read >= len(self._arrivals)

    def nanoseconds(self, queries: Sequence[int]) -> int:
        """Return what a row costs that some queries are given together."""
        seconds = self.setting.common + sum(self.setting.costs[query] for query in queries)
        return round(seconds * SECOND)


def shared(setting: Setting, came: Chunk, *, to_end: bool = False) -> float:
    """Return the weighted staleness of queries that share a queue, in seconds, when the last row
    has come or, with ``to_end``, when no row waits any more."""
    run = Processor(setting, came)
    readers = [Reader(frozenset([at]), each) for at, each in enumerate(setting.weight)]
    queue = SharedUpdateQueue(MemoryStore(), run.by, ROWS, run.host, readers)
    while not run.done or (to_end and queue.has_work):
        run.read([queue])
        if queue.has_work:
            queue.work_on()
            queries = sorted(queue.queries)
            took = run.nanoseconds(queries)
            run.now += took
            spent = {query: setting.costs[query] * SECOND for query in queries}
            queue.record_costs(spent, took)
            queue.end_portion(took, run.now)
    weights = enumerate(setting.weight)
    return sum(queue.staleness_of(query).application * weight for query, weight in weights)


def apart(setting: Setting, came: Chunk, peer: str) -> float:
    """Return the weighted staleness of queries with a queue each, in seconds."""
    run = Processor(setting, came)
    queues = [UpdateQueue(MemoryStore(), run.by, ROWS, run.host) for _ in setting.costs]
    used = [0.0] * len(queues)
    idle = [True] * len(queues)
    while not run.done:
        run.read(queues)
        ready = [at for at, each in enumerate(queues) if each.has_work]
        busy = [used[at] for at in ready if not idle[at]]
        for at in ready:
            used[at] = max(used[at], min(busy, default=0.0)) if idle[at] else used[at]
        idle = [not each.has_work for each in queues]
        if ready:
            at = min(ready, key=lambda each: (used[each], each))
            queues[at].work_on()
            took = run.nanoseconds([at])
            run.now += took
            used[at] += took if peer == FAIR else 1
            queues[at].end_portion(took, run.now)
    pairs = zip(queues, setting.weight, strict=True)
    return sum(each.staleness().application * weight for each, weight in pairs)


def compare(
    setting: Setting, seeds: Sequence[int] = SEEDS, services: int = SERVICES
) -> dict[str, dict[str, Any]]:
    """Return, by peer, the staleness of both sides and their ratio with its interval, which is for
    :data:`SEEDS`."""
    logs: list[Chunk] = [setting.updates(seed, services) for seed in seeds]
    ours = [shared(setting, came) for came in logs]
    found: dict[str, dict[str, Any]] = {}
    for peer in PEERS:
        theirs = [apart(setting, came, peer) for came in logs]
        ratios = [log(one / other) for one, other in zip(ours, theirs, strict=True)]
        middle, half = fmean(ratios), T_95 * stdev(ratios) / sqrt(len(ratios))
        found[peer] = {
            "ours": fmean(ours),
            "theirs": fmean(theirs),
            "ratio": exp(middle),
            "interval": (exp(middle - half), exp(middle + half)),
            "rows": sum(each.height for each in logs),
        }
    return found


def run_shared() -> Iterator[Row]:
    """Compare a shared queue with a queue for each query, in all settings."""
    for setting in SETTINGS:
        for peer, each in compare(setting).items():
            low, high = each["interval"]
            name = f"{setting.name} ({low:.2f} … {high:.2f})"
            row = figure(
                name, "staleness", "s", each["ours"], f"a queue each, {peer}", each["theirs"],
                each["rows"],
            )  # fmt: skip
            yield row | {"ratio": each["ratio"], "interval": [low, high], "seeds": len(SEEDS)}
