"""Application staleness and queue staleness over the load (UpStream §5.1, Fig. 5).

An update comes every second, of one key or of one of ten drawn at random; a service takes as many
seconds as the load says, so a second is also the paper's unit, an update. IN-PLACE serves.

With a service the area under application staleness exceeds the one under queue staleness by
``wait * cost + cost² / 2`` without what overlaps with the next service, at most ``cost² / 2``. As
this is linear in the wait, the bounds hold for the means of all services, and that is what is
checked, on sums over whole runs, in which nothing is cut off: *wait* is the mean age of the oldest
update of a key when the key is served.

What ten keys do not change is the difference of the *averages over time*, of a key: a service has
ten times the wait, and a key has a tenth of the services. What does not come from waiting,
``cost² / 2`` less the overlap, is spread over ten times as long, so the difference is a little less
with ten keys.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLUE, GREEN, GREY, PAPER, PINK, RED, tell
from lowwater.claims.updates_runs import Watched, at_random, watched

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KEYS = (1, 10)
LOADED = 3.0
"""From this load on the line of ten keys is long enough to compare averages with one key's."""
INFLATED = (8.0, 12.0)
"""Queue staleness of ten keys, in times that of one."""
SAME = (0.7, 1.1)
"""The difference between both kinds of staleness, of ten keys, in times that of one."""
TOLERANCE = 1e-9


@dataclass(frozen=True)
class Scale:
    """What is run."""

    loads: tuple[float, ...]
    services: int
    """A run has about so many."""
    seeds: tuple[int, ...]


FULL = Scale(tuple(map(float, range(1, 11))), 600, (1, 2))
QUICK = Scale((1.0, 3.0, 10.0), 200, (1,))


def point(load: float, keys: int, run: Watched) -> dict[str, float]:
    """A run in numbers."""
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
        "told_application_updates": run.told.application,
        "told_queue_updates": run.told.queue,
    }


def measured(scale: Scale) -> pl.DataFrame:
    """Both numbers of keys at every load; the mean of several runs where keys are drawn."""
    rows = []
    for load in scale.loads:
        for keys in KEYS:
            for seed in scale.seeds if keys > 1 else scale.seeds[:1]:
                came = at_random([1 / keys] * keys, load * scale.services, seed)
                rows.append(point(load, keys, watched(came, "in-place", load)))
    return pl.DataFrame(rows).group_by("load", "keys", maintain_order=True).mean()


def outside(points: pl.DataFrame) -> Sequence[str]:
    """Where the bounds do not hold."""
    slack = 1 + TOLERANCE
    delta = pl.col("delta_a_service")
    low, high = delta * slack < pl.col("least_delta"), delta > pl.col("greatest_delta") * slack
    found = points.filter(low | high).select("load", "keys", "delta_a_service")
    return [
        f"at load {load:g} with {keys:g} keys a service adds {area:.4g}"
        for load, keys, area in found.iter_rows()
    ]


def misjudged(points: pl.DataFrame) -> Sequence[str]:
    """What the queue's own accounts say otherwise."""
    return [
        f"the queue's own account of {kind} staleness is another"
        for kind in ("application", "queue")
        if not np.allclose(points[f"told_{kind}_updates"], points[f"{kind}_updates"], TOLERANCE)
    ]


def judge(points: pl.DataFrame) -> Outcome:
    """The bounds at every load, and ten keys against one."""
    beyond = outside(points)
    faults = [*beyond, *misjudged(points)]
    one, ten = (points.filter(pl.col("keys") == keys).sort("load") for keys in KEYS)
    both = one.join(ten, on="load", suffix="_ten").filter(pl.col("load") >= LOADED)
    inflated = (both["queue_updates_ten"] / both["queue_updates"]).to_list()
    differs = (both["difference_updates_ten"] / both["difference_updates"]).to_list()
    for values, (low, high), what in (
        (inflated, INFLATED, "queue staleness"),
        (differs, SAME, "the difference"),
    ):
        if not low <= min(values) <= max(values) <= high:
            faults.append(f"ten keys make {what} {min(values):.2f} to {max(values):.2f} ×")
    ours = (
        f"the bounds hold at {points.height - len(beyond)} of {points.height} points; from load"
        f" {LOADED:g} on ten keys make queue staleness {min(inflated):.1f} to"
        f" {max(inflated):.1f} ×, the difference {min(differs):.2f} to {max(differs):.2f} ×"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        left, middle, right = figure.subplots(1, 3)
        _lines(left, one, "1 key")
        _lines(middle, ten, "10 keys")
        _bounds(right, one, ten)
        tell(
            figure,
            f"Ten keys make queue staleness {min(inflated):.1f} to {max(inflated):.1f} × one key's,"
            f" its difference to application staleness {min(differs):.2f} to {max(differs):.2f} ×;"
            f" Δ is in its bounds at {points.height - len(beyond)} of {points.height} points",
            "wait·cost ≤ Δ ≤ wait·cost + cost²/2; ten keys inflate queue staleness about 10 ×, not"
            " the difference",
        )

    return Outcome(ours, not faults, points, plot)


def _lines(axes: Axes, own: pl.DataFrame, title: str) -> None:
    for column, label, colour, style in (
        ("application_updates", "application", BLUE, "o-"),
        ("queue_updates", "queue", RED, "s-"),
        ("difference_updates", "difference", GREY, "--"),
    ):
        axes.plot(own["load"].to_list(), own[column].to_list(), style, color=colour, label=label)
    axes.set_title(title)
    axes.set(xlabel="load [updates a service]", ylabel="staleness [updates]")
    axes.set_ylim(bottom=0)
    axes.legend(loc="upper left")


def _bounds(axes: Axes, *sides: pl.DataFrame) -> None:
    """Where in its bounds a service's area is: 0 at the least, 1 at the greatest."""
    for own, colour, style in zip(sides, (GREEN, PINK), ("o-", "s-"), strict=True):
        share = (pl.col("delta_a_service") - pl.col("least_delta")) / (
            pl.col("greatest_delta") - pl.col("least_delta")
        )
        values = (100 * own.select(share).to_series()).to_list()
        label = f"{own['keys'][0]:g} key" + ("s" if own["keys"][0] > 1 else "")
        axes.plot(own["load"].to_list(), values, style, color=colour, label=label)
    for edge, label in ((0, "paper: the bounds"), (100, "")):
        axes.axhline(edge, color=PAPER, ls=":", label=label)
    axes.set_ylim(-10, 145)
    axes.set_yticks(range(0, 101, 25))
    axes.set_title("Δ of a service")
    axes.set(xlabel="load [updates a service]", ylabel="from the least to the greatest Δ [%]")
    axes.legend(loc="upper right")


def run(quick: bool) -> Outcome:
    """One key and ten."""
    return judge(measured(QUICK if quick else FULL))


F5 = Claim(
    "UP-F5",
    "application staleness against queue staleness",
    "wait·cost ≤ Δ ≤ wait·cost + cost²/2; 10 keys inflate queue staleness about 10 ×, not the"
    " difference",
    f"the bounds at every load; from load {LOADED:g} on queue staleness {INFLATED[0]:g} …"
    f" {INFLATED[1]:g} ×, the difference {SAME[0]:g} … {SAME[1]:g} ×",
    run,
)
