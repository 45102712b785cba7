"""Append queues against update queues over the load (UpStream §5.2, Fig. 7).

An update comes every second, of one key or of one of ten drawn at random; a service takes as many
seconds as the load says. Application staleness, averaged over keys and over the time in which
updates come, is in updates, as the paper has it: one comes a second.

An append queue falls behind for ever, so its average grows with the length of a run. So, more
slowly, does that of the queue that drops at random as many updates as it has no time for: what is
left just fits, and the queue's length goes up and down at random. Update queues have no memory of a
run's length. How far below they are is therefore a matter of the run, the order is not.

At loads little above 1 the line of keys is short and FIFO and IN-PLACE hardly differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, logarithmic, tell
from lowwater.claims.updates_runs import NAMES, at_random, watched
from lowwater.updates.options import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = (1, 10)
QUEUES: tuple[Schedule, ...] = ("append", "shedding", "fifo", "in-place")
LINES = {"append": "^-", "shedding": "v-", "fifo": "s--", "in-place": "o-"}
FAR_BELOW = 0.6
"""IN-PLACE has at most this share of the staleness of the append queue that sheds."""
CLOSE = 1.02
"""FIFO and IN-PLACE are told apart beyond this."""
APART = 2.0
"""The load from which IN-PLACE is clearly lower with ten keys."""


@dataclass(frozen=True)
class Scale:
    """What is run."""

    loads: tuple[float, ...]
    services: int
    """A run has about so many."""
    seeds: tuple[int, ...]


FULL = Scale((1.0, 1.5, 2.0, 3.0, 5.0, 7.0, 10.0), 400, (1, 2, 3))
QUICK = Scale((2.0, 5.0), 120, (1,))


def measured(scale: Scale) -> pl.DataFrame:
    """All queues at every load; the mean of several runs where keys are drawn."""
    rows = []
    for load in scale.loads:
        for keys in KEYS:
            for seed in scale.seeds if keys > 1 else scale.seeds[:1]:
                came = at_random([1 / keys] * keys, load * scale.services, seed)
                end = float(came["arrived"][-1])
                for queue in QUEUES:
                    run = watched(came, queue, load, end)
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
    return pl.DataFrame(rows).group_by("load", "keys", "queue", maintain_order=True).mean()


def faults_at(load: float, keys: int, stale: dict[str, float]) -> list[str]:
    """What is not as it should be at a load above 1."""
    where = f"at load {load:g} with {keys} key" + ("s" if keys > 1 else "")
    fifo, in_place = stale["fifo"], stale["in-place"]
    if keys == 1:
        apart = fifo != in_place
    else:
        apart = in_place > CLOSE * fifo if load < APART else in_place >= fifo
    checks = (
        (stale["shedding"] >= stale["append"], "shedding is not below append"),
        (max(fifo, in_place) >= stale["shedding"], "update queues are not below append queues"),
        (in_place > FAR_BELOW * stale["shedding"], "IN-PLACE is not far below shedding"),
        (apart, "FIFO differs" if keys == 1 else "IN-PLACE is not the lowest"),
    )
    return [f"{text} {where}" for failed, text in checks if failed]


def judge(points: pl.DataFrame) -> Outcome:
    """The order of the queues at every load above 1."""
    faults, told = [], []
    most = float(points["load"].max())  # type: ignore[arg-type]
    loaded = points.filter(pl.col("load") > 1)
    for load, keys in loaded.select("load", "keys").unique(maintain_order=True).iter_rows():
        own = loaded.filter(pl.col("load") == load, pl.col("keys") == keys)
        stale = dict(own.select("queue", "application_updates").iter_rows())
        faults += faults_at(load, keys, stale)
        if load == most:
            values = ", ".join(f"{NAMES[queue]} {stale[queue]:,.0f}" for queue in QUEUES)
            told.append(f"{keys} key{'s' if keys > 1 else ''}: {values}")
    ours = f"at load {most:g}, staleness in updates, {'; '.join(told)}"
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        sides = figure.subplots(1, 2, sharey=True)
        for axes, keys in zip(sides, KEYS, strict=True):
            _curves(axes, points.filter(pl.col("keys") == keys))
            axes.set_title(f"{keys} key" + ("s" if keys > 1 else ""))
        sides[0].set_ylabel("application staleness [updates]")
        sides[1].legend(loc="lower right")
        ten = points.filter(pl.col("load") == most, pl.col("keys") == KEYS[-1])
        stale = dict(ten.select("queue", "application_updates").iter_rows())
        spelled = ", ".join(f"{stale[queue]:,.0f} ({NAMES[queue]})" for queue in reversed(QUEUES))
        tell(
            figure,
            f"At load {most:g}, {KEYS[-1]} keys are stale by {spelled} updates on average",
            "update queues far below append queues; IN-PLACE the lowest for uniform keys",
        )

    return Outcome(ours, not faults, points, plot)


def _curves(axes: Axes, own: pl.DataFrame) -> None:
    for queue in QUEUES:
        line = own.filter(pl.col("queue") == queue)
        values = line["load"].to_list(), line["application_updates"].to_list()
        axes.plot(*values, LINES[queue], color=COLOURS[queue], label=NAMES[queue])
    logarithmic(axes, "y")
    axes.set_xlabel("load [updates a service]")


def run(quick: bool) -> Outcome:
    """All queues."""
    return judge(measured(QUICK if quick else FULL))


F7 = Claim(
    "UP-F7",
    "append queues against update queues",
    "update queues far below append queues; IN-PLACE lowest for uniform keys",
    "at every load > 1: update queues < shedding < append, IN-PLACE at most"
    f" {FAR_BELOW:g} × shedding; FIFO = IN-PLACE with 1 key, > with 10 (from load {APART:g} on)",
    run,
)
