"""These claims measure staleness over the load: that of the application against that of the queue
(UpStream §5.1, Fig. 5), and that of append queues against update queues (§5.2, Fig. 7).

An update comes every second, of one key or of one of ten drawn at random; a service takes as many
seconds as the load says, so a second is also the paper's unit, an update. Application staleness is
averaged over keys and over the time in which updates come.

With each service the area under application staleness exceeds the one under queue staleness by
``wait * cost + cost² / 2``, less the overlap with the next service, at most ``cost² / 2``. As
this is linear in the wait, the bounds hold for the means of all services. UP-F5 checks that on sums
over whole runs of IN-PLACE, in which nothing is cut off: *wait* is the mean age of the oldest
update of a key when the key is served.

Ten keys do not change the difference of the *averages over time*, of a key: a service has ten times
the wait, and a key has a tenth of the services. The part that does not come from waiting, ``cost² /
2`` less the overlap, is spread over ten times as long, so the difference is a little less with ten
keys.

An append queue falls behind for ever, so its average grows with the length of a run. The average of
the queue that drops at random as many updates as it has no time for grows, too, more slowly: the
updates left just fit, and the queue's length goes up and down at random. The average of an update
queue does not depend on the length of a run. So the order of the queues is the same in any run, but
not the distances between them. At loads little above 1 the line of keys is short and FIFO and
IN-PLACE hardly differ.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np
import polars as pl

from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.updates_runs import NAMES, QueueRun, at_random, run_queue
from lowwater.typing import Schedule

KEYS = (1, 10)
LOADED = 3.0
"""The load from which averages of ten keys are compared with those of one: below, few wait."""
INFLATED = (8.0, 12.0)
"""The least and the greatest queue staleness of ten keys, in times that of one."""
SAME = (0.7, 1.1)
"""The same of the difference between both kinds of staleness."""
TOLERANCE = 1e-9
FAR_BELOW = 0.6
"""The greatest staleness of IN-PLACE, as a share of that of the append queue that sheds."""
CLOSE = 1.02
"""The ratio up to which FIFO and IN-PLACE count as alike at small loads."""
APART = 2.0
"""The load from which IN-PLACE is clearly lower with ten keys."""


@dataclass(frozen=True)
class Loads:
    """The loads of some runs, and the length and the seeds of the runs at each load."""

    loads: tuple[float, ...]
    services: int
    """Number of services of a run, roughly."""
    seeds: tuple[int, ...]
    """Seeds: one run for each with ten keys, which are drawn; a single run with one key."""

    def points(
        self, measure: Callable[[float, int, pl.DataFrame], list[dict[str, object]]]
    ) -> pl.DataFrame:
        """Measure the arrivals of all runs: rows by load, number of keys, and arrivals."""
        rows = []
        for load, keys in product(self.loads, KEYS):
            for seed in self.seeds if keys > 1 else self.seeds[:1]:
                came = at_random([1 / keys] * keys, load * self.services, seed)
                rows += measure(load, keys, came)
        return pl.DataFrame(rows)


F5_SCALE = Scale(
    Loads(tuple(map(float, range(1, 11))), 600, (1, 2)), Loads((1.0, 3.0, 10.0), 200, (1,))
)
F7_SCALE = Scale(
    Loads((1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0), 400, (1, 2, 3)), Loads((2.0, 5.0), 120, (1,))
)


# ---- UP-F5 ---------------------------------------------------------------------------------


def point(load: float, keys: int, run: QueueRun) -> dict[str, float]:
    """Return the figures of a run."""
    application, queue = run.averages()
    waits = sum(float((key.end - key.came).sum()) for key in run.queue())
    services = run.shown.height
    area = sum(key.area for key in run.application()) - sum(key.area for key in run.queue())
    wait = waits / services
    return {
        "load": load,
        "keys": keys,
        "services": services,
        "application_updates": application,
        "queue_updates": queue,
        "difference_updates": application - queue,
        "wait_updates": wait,
        "delta_a_service": area / services,
        "least_delta": wait * run.cost,
        "greatest_delta": wait * run.cost + run.cost**2 / 2,
        "reported_application_updates": run.own.application,
        "reported_queue_updates": run.own.queue,
    }


def staleness(loads: Loads) -> pl.DataFrame:
    """Measure both numbers of keys at every load; the means of runs where keys are drawn."""
    found = loads.points(
        lambda load, keys, came: [{**point(load, keys, run_queue(came, "in-place", load))}]
    )
    return found.group_by("load", "keys", maintain_order=True).mean()


def outside(points: pl.DataFrame) -> Sequence[str]:
    """Return the points at which the bounds do not hold, in words."""
    slack = 1 + TOLERANCE
    delta = pl.col("delta_a_service")
    low, high = delta * slack < pl.col("least_delta"), delta > pl.col("greatest_delta") * slack
    found = points.filter(low | high).select("load", "keys", "delta_a_service")
    return [
        f"at load {load:g} with {keys:g} keys a service adds {area:.4g}, outside the bounds"
        for load, keys, area in found.iter_rows()
    ]


def staleness_outcome(points: pl.DataFrame) -> Outcome:
    """Judge the bounds at every load, and ten keys against one."""
    beyond = outside(points)
    one, ten = (points.filter(pl.col("keys") == keys).sort("load") for keys in KEYS)
    both = one.join(ten, on="load", suffix="_ten").filter(pl.col("load") >= LOADED)
    inflated = (both["queue_updates_ten"] / both["queue_updates"]).to_list()
    differs = (both["difference_updates_ten"] / both["difference_updates"]).to_list()
    within = f"{points.height - len(beyond)} of {points.height} points"
    ours = (
        f"the bounds hold at {within}; from load"
        f" {LOADED:g} on ten keys make queue staleness {min(inflated):.1f} to"
        f" {max(inflated):.1f} ×, the difference {min(differs):.2f} to {max(differs):.2f} ×"
    )
    criteria = [Criterion(False, text) for text in beyond]
    criteria += [
        Criterion(
            np.allclose(points[f"reported_{kind}_updates"], points[f"{kind}_updates"], TOLERANCE),
            f"the {kind} staleness that the queue reports is another",
        )
        for kind in ("application", "queue")
    ]
    criteria += [
        Criterion(
            low <= min(values) <= max(values) <= high,
            f"ten keys make {what} {min(values):.2f} to {max(values):.2f} ×",
        )
        for values, (low, high), what in (
            (inflated, INFLATED, "queue staleness"),
            (differs, SAME, "the difference"),
        )
    ]
    ranges = inflated, differs
    return judge(
        ours, criteria, points, lambda figure: plots.staleness(figure, one, ten, ranges, within)
    )


def run_f5(quick: bool) -> Outcome:
    """Measure one key and ten."""
    return staleness_outcome(staleness(F5_SCALE.of(quick)))


# ---- UP-F7 ---------------------------------------------------------------------------------

QUEUES: tuple[Schedule, ...] = ("append", "shedding", "fifo", "in-place")


def queues(loads: Loads) -> pl.DataFrame:
    """Measure all queues at every load; the means of runs where keys are drawn."""

    def measure(load: float, keys: int, came: pl.DataFrame) -> list[dict[str, object]]:
        end, rows = float(came["arrived"][-1]), list[dict[str, object]]()
        for queue in QUEUES:
            run = run_queue(came, queue, load, end)
            application, waiting = run.averages(end)
            rows.append(
                {
                    "load": load,
                    "keys": keys,
                    "queue": queue,
                    "application_updates": application,
                    "queue_updates": waiting,
                    "shown": run.shown.height,
                }
            )
        return rows

    found = loads.points(measure)
    return found.group_by("load", "keys", "queue", maintain_order=True).mean()


def criteria_at(load: float, keys: int, stale: dict[str, float]) -> list[Criterion]:
    """Return the criteria at a load above 1; ``stale``: staleness in updates by queue."""
    where = f"at load {load:g} with {keys} key" + ("s" if keys > 1 else "")
    fifo, in_place = stale["fifo"], stale["in-place"]
    if keys == 1:
        ordered = fifo == in_place
    else:
        ordered = in_place <= CLOSE * fifo if load < APART else in_place < fifo
    checks = (
        (stale["shedding"] < stale["append"], "shedding is not below append"),
        (max(fifo, in_place) < stale["shedding"], "update queues are not below append queues"),
        (in_place <= FAR_BELOW * stale["shedding"], "IN-PLACE is not far below shedding"),
        (ordered, "FIFO differs" if keys == 1 else "IN-PLACE is not the lowest"),
    )
    return [Criterion(check, f"{text} {where}") for check, text in checks]


def queues_outcome(points: pl.DataFrame) -> Outcome:
    """Judge the order of the queues at every load above 1."""
    criteria, figures = list[Criterion](), list[str]()
    most = float(points["load"].max())  # type: ignore[arg-type]
    loaded = points.filter(pl.col("load") > 1)
    for load, keys in loaded.select("load", "keys").unique(maintain_order=True).iter_rows():
        own = loaded.filter(pl.col("load") == load, pl.col("keys") == keys)
        stale = dict(own.select("queue", "application_updates").iter_rows())
        criteria += criteria_at(load, keys, stale)
        if load == most:
            values = ", ".join(f"{NAMES[queue]} {stale[queue]:,.0f}" for queue in QUEUES)
            figures.append(f"{keys} key{'s' if keys > 1 else ''}: {values}")
    ours = f"at load {most:g}, staleness in updates, {'; '.join(figures)}"
    return judge(ours, criteria, points, lambda figure: plots.queues(figure, points, KEYS, QUEUES))


def run_f7(quick: bool) -> Outcome:
    """Measure all queues."""
    return queues_outcome(queues(F7_SCALE.of(quick)))


F5 = Claim(
    "UP-F5",
    "application staleness against queue staleness",
    "wait·cost ≤ Δ ≤ wait·cost + cost²/2; 10 keys inflate queue staleness about 10 ×, not the"
    " difference",
    f"the bounds at every load; from load {LOADED:g} on queue staleness {INFLATED[0]:g} …"
    f" {INFLATED[1]:g} ×, the difference {SAME[0]:g} … {SAME[1]:g} ×",
    run_f5,
)
F7 = Claim(
    "UP-F7",
    "append queues against update queues",
    "update queues far below append queues; IN-PLACE lowest for uniform keys",
    "at every load > 1: update queues < shedding < append, IN-PLACE at most"
    f" {FAR_BELOW:g} × shedding; FIFO = IN-PLACE with 1 key, > with 10 (from load {APART:g} on)",
    run_f7,
)
