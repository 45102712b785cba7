"""This claim repeats the worked example of staleness: UpStream §3.3, Fig. 2.

One key, an update every 2 units of time, 3 units of work for each. The figure is lost; the text has
its rule: staleness grows from an update's arrival on and drops when a result is delivered, to zero
or to the age of the oldest update that came since. Here a unit is a second, and every value is
exact: worked out by hand for the first deliveries, in fractions for all of them by a few lines
that use nothing of the queue, and read off the queue itself right before and after it delivers.

An update that comes in the moment at which the queue is served is there already (d at 6 is, so c is
never shown); the text does not say. The append queue beside it shows all, and falls behind by one
unit with each delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

import numpy as np
import polars as pl

from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, judge
from lowwater.claims.updates_runs import NAMES, Services, only_key, update_stream, updates
from lowwater.probe import SECOND, PerRow, Probe
from lowwater.typing import Schedule

GAP, COST = 2, 3
LETTERS = "abcdefghijklmnop"
BY_HAND: dict[Schedule, tuple[tuple[str, int, int, int], ...]] = {
    "in-place": (("a", 3, 3, 1), ("b", 6, 4, 2), ("d", 9, 5, 1), ("e", 12, 4, 2), ("g", 15, 5, 1)),
    "append": (("a", 3, 3, 1), ("b", 6, 4, 2), ("c", 9, 5, 3), ("d", 12, 6, 4), ("e", 15, 7, 5)),
}
"""Each update that is delivered, the time, and staleness right before and right after."""
PERIOD, PERIOD_AREA = 6, 18
"""The sawtooth of the update queue repeats after so long and has this area: 3 on average."""


@dataclass(frozen=True)
class ShownUpdate:
    """A result: its update, its time, and staleness right before and right after it."""

    update: str
    at: Fraction
    before: Fraction
    after: Fraction
    area: Fraction
    """The integral of staleness from the first update on."""
    queue_area: Fraction
    """The integral of the staleness of the queue from the first update on."""


# ---- by the definition ---------------------------------------------------------------------


def defined(schedule: Schedule) -> list[ShownUpdate]:
    """Return all deliveries: the queue's newest update, or its oldest, is next."""
    arrivals = [Fraction(GAP * at) for at in range(len(LETTERS))]
    shown: list[tuple[int, Fraction]] = []
    now, last = Fraction(0), -1
    while last + 1 < len(arrivals):
        now = max(now, arrivals[last + 1])
        there = [at for at, came in enumerate(arrivals) if last < at and came <= now]
        last = there[0] if schedule == "append" else there[-1]
        now += COST
        shown.append((last, now))
    taken = [(at, when - COST) for at, when in shown]
    return [
        ShownUpdate(
            LETTERS[at],
            when,
            _stale(arrivals, shown[:number], when),
            _stale(arrivals, shown[: number + 1], when),
            _area(arrivals, shown, when),
            _area(arrivals, taken, when),
        )
        for number, (at, when) in enumerate(shown)
    ]


def _stale(arrivals: list[Fraction], shown: list[tuple[int, Fraction]], now: Fraction) -> Fraction:
    """Return the age of the oldest update that came and is not reflected."""
    last = max((at for at, _ in shown), default=-1)
    return max((now - came for came in arrivals[last + 1 :] if came <= now), default=Fraction(0))


def _area(arrivals: list[Fraction], shown: list[tuple[int, Fraction]], end: Fraction) -> Fraction:
    """Integrate staleness, by trapezoids between the moments at which updates come or are shown."""
    turns = sorted({each for each in [*arrivals, *(when for _, when in shown), end] if each <= end})
    area = Fraction(0)
    for begin, until in pairwise(turns):
        middle = (begin + until) / 2
        visible = [(at, when) for at, when in shown if when <= begin]
        area += _stale(arrivals, visible, middle) * (until - begin)
    return area


# ---- as the queue reports it -----------------------------------------------------------------


def table(schedule: Schedule) -> pl.DataFrame:
    """Return every delivery, as defined and as the queue reports it."""
    services = Services()
    came = updates(GAP * np.arange(len(LETTERS), dtype=np.float64), np.zeros(len(LETTERS), int))
    charge = PerRow(COST * SECOND)
    run = Probe(update_stream(came, schedule), observer=services, charge=charge, tick=0).run()
    # What came during a service is known when the next one begins, or the run has ended.
    left = [each for _, each in services.begun[1:]] + [run.operator("update").staleness]
    letters = [LETTERS[at] for at in run.results["n"]]
    ours = zip(letters, services.ended, left, strict=True)
    rows = []
    for each, (update, (now, before), after) in zip(defined(schedule), ours, strict=True):
        reported = (
            update,
            Fraction(now, SECOND),
            *(Fraction(only_key(staleness).now) for staleness in (before, after)),
        )
        averages = float(each.area / each.at), float(each.queue_area / each.at)
        rows.append(
            {
                "queue": schedule,
                "update": each.update,
                "shown_at": float(each.at),
                "staleness_before": float(each.before),
                "staleness_after": float(each.after),
                "integral": float(each.area),
                "average": averages[0],
                "queue_average": averages[1],
                "reported_average": after.application,
                "reported_queue_average": after.queue,
                "exact": reported == (each.update, each.at, each.before, each.after)
                and (after.application, after.queue) == averages,
            }
        )
    return pl.DataFrame(rows)


# ---- the judgement -------------------------------------------------------------------------


def example_outcome(points: pl.DataFrame) -> Outcome:
    """Judge whether all values are those of the definition, and the first those found by hand."""
    columns = ("update", "shown_at", "staleness_before", "staleness_after")
    criteria = []
    for schedule, expected in BY_HAND.items():
        own, name = points.filter(pl.col("queue") == schedule), NAMES[schedule]
        first = tuple(own.select(columns).head(len(expected)).rows())
        wrong = own.filter(~pl.col("exact"))["update"].to_list()
        criteria += [
            Criterion(
                first == expected, f"{name}: the definition gives other values than ours by hand"
            ),
            Criterion(not wrong, f"{name}: the queue reports other values at {', '.join(wrong)}"),
        ]
    update = points.filter(pl.col("queue") == "in-place")
    later = update.join(
        update.select(pl.col("shown_at") + PERIOD, before=pl.col("integral")), on="shown_at"
    ).filter(pl.col("shown_at") > 2 * PERIOD, pl.col("staleness_after") > 0)
    same = later.height > 0 and bool((later["integral"] - later["before"] == PERIOD_AREA).all())
    criteria.append(Criterion(same, f"the area of a period is not {PERIOD_AREA}"))
    drops = ", ".join(f"{b:g} → {a:g}" for _, _, b, a in BY_HAND["in-place"])
    ours = (
        f"{points.height} deliveries, {int(points['exact'].sum())} reported exactly; update queue"
        f" {drops}, then again; {PERIOD_AREA / PERIOD:g} on average"
    )
    theirs = [(at, stale) for _, at, *both in BY_HAND["in-place"] for stale in both]
    return judge(
        ours,
        criteria,
        points,
        lambda figure: plots.example(figure, points, (GAP, COST), LETTERS, theirs),
    )


def run(_: bool) -> Outcome:
    """Work out both queues; the quick variant is the same."""
    return example_outcome(pl.concat([table(schedule) for schedule in BY_HAND]))


F2 = Claim(
    "UP-F2",
    "staleness of one key, the worked example",
    "an update every 2 units, cost 3: staleness drops to the age of the oldest newer update",
    "staleness before and after every delivery, its integral and average, exactly",
    run,
)
