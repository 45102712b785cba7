"""The worked example of staleness: UpStream §3.3, Fig. 2.

One key, an update every 2 units of time, 3 units of work for each. The figure is lost; the text has
its rule: staleness grows from an update's arrival on and drops when a result is delivered, to zero
or to the age of the oldest update that came since. Here a unit is a second, and every value is
exact: worked out by hand for the first deliveries, in fractions for all of them by a few lines that
know nothing of the queue, and read off the queue itself right before and right after it delivers.

An update that comes in the moment at which the queue is asked is there already (d at 6 is, so c is
never shown); the text does not say. The append queue beside it shows all, and falls behind by one
unit with each delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, tell
from lowwater.claims.updates_runs import NAMES, engine_of, updates
from lowwater.engines.embedded.clock import PerRow, VirtualClock
from lowwater.operators.kernel import Kernel
from lowwater.stream.duration import SECOND
from lowwater.updates.options import Schedule
from lowwater.updates.staleness import Shows, Staleness

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GAP, COST = 2, 3
LETTERS = "abcdefghijklmnop"
BY_HAND: dict[Schedule, tuple[tuple[str, int, int, int], ...]] = {
    "in-place": (("a", 3, 3, 1), ("b", 6, 4, 2), ("d", 9, 5, 1), ("e", 12, 4, 2), ("g", 15, 5, 1)),
    "append": (("a", 3, 3, 1), ("b", 6, 4, 2), ("c", 9, 5, 3), ("d", 12, 6, 4), ("e", 15, 7, 5)),
}
"""What is delivered, when, and how stale the result is right before and right after."""
PERIOD, PERIOD_AREA = 6, 18
"""The sawtooth of the update queue repeats after so long and has this area: 3 on average."""


@dataclass(frozen=True)
class Delivery:
    """A result: of which update, when, and staleness there."""

    update: str
    at: Fraction
    before: Fraction
    after: Fraction
    area: Fraction
    """The integral of staleness from the first update on."""
    queue_area: Fraction
    """The same of the queue's."""


# ---- by the definition ---------------------------------------------------------------------


def defined(schedule: Schedule) -> list[Delivery]:
    """All deliveries: the queue's newest update, or its oldest, is next."""
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
        Delivery(
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
    """The age of the oldest update that came and is not reflected."""
    last = max((at for at, _ in shown), default=-1)
    return max((now - came for came in arrivals[last + 1 :] if came <= now), default=Fraction(0))


def _area(arrivals: list[Fraction], shown: list[tuple[int, Fraction]], end: Fraction) -> Fraction:
    """Staleness changes its course only where something comes or is shown: trapezoids between."""
    turns = sorted({each for each in [*arrivals, *(when for _, when in shown), end] if each <= end})
    area = Fraction(0)
    for begin, until in pairwise(turns):
        middle = (begin + until) / 2
        visible = [(at, when) for at, when in shown if when <= begin]
        area += _stale(arrivals, visible, middle) * (until - begin)
    return area


# ---- as the queue tells it -----------------------------------------------------------------


class Looking(VirtualClock):
    """A virtual clock that asks a queue how stale what it shows is, around each service."""

    kernel: Kernel

    def __init__(self) -> None:
        super().__init__(charge=PerRow(COST * SECOND))
        self.at: list[Fraction] = []
        self.before: list[Fraction] = []
        self.after: list[Fraction] = []
        self.averages: list[tuple[float, float]] = []

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Let work take time. Right before it, all that came in the last service is known."""
        if rows and self.at:
            self.look()
        counted = super().worked(nanoseconds, comparisons, rows)
        if rows:
            self.at.append(Fraction(self.now(), SECOND))
            self.before.append(self._stale(self._told()))
        return counted

    def look(self) -> None:
        """Ask how the last service left it."""
        told = self._told()
        self.after.append(self._stale(told))
        self.averages.append((told.application, told.queue))

    def _told(self) -> Staleness:
        assert isinstance(self.kernel, Shows)
        return self.kernel.staleness()

    @staticmethod
    def _stale(told: Staleness) -> Fraction:
        (only,) = told.by_key.values()
        return Fraction(only.now)


def table(schedule: Schedule) -> pl.DataFrame:
    """Every delivery, as defined and as the queue tells it."""
    clock = Looking()
    came = updates(GAP * np.arange(len(LETTERS), dtype=np.float64), np.zeros(len(LETTERS), int))
    engine, sink = engine_of(came, schedule, clock)
    clock.kernel = engine.stage("update").kernel
    engine.run()
    clock.look()
    ours = zip(
        (LETTERS[at] for at in sink.table()["n"]),
        *(clock.at, clock.before, clock.after, clock.averages),
        strict=True,
    )
    rows = []
    for each, (update, at, before, after, averages) in zip(defined(schedule), ours, strict=True):
        rows.append(
            {
                "queue": schedule,
                "update": each.update,
                "shown_at": float(each.at),
                "staleness_before": float(each.before),
                "staleness_after": float(each.after),
                "integral": float(each.area),
                "average": float(each.area / each.at),
                "queue_average": float(each.queue_area / each.at),
                "told_average": averages[0],
                "told_queue_average": averages[1],
                "exact": (update, at, before, after)
                == (each.update, each.at, each.before, each.after)
                and averages == (float(each.area / each.at), float(each.queue_area / each.at)),
            }
        )
    return pl.DataFrame(rows)


# ---- the judgement -------------------------------------------------------------------------


def judge(points: pl.DataFrame) -> Outcome:
    """Whether all values are those of the definition, and the first those found by hand."""
    columns = ("update", "shown_at", "staleness_before", "staleness_after")
    faults = []
    for schedule, expected in BY_HAND.items():
        own = points.filter(pl.col("queue") == schedule)
        if tuple(own.select(columns).head(len(expected)).rows()) != expected:
            faults.append(f"{NAMES[schedule]}: the definition gives other values than ours by hand")
        wrong = own.filter(~pl.col("exact"))["update"].to_list()
        if wrong:
            faults.append(f"{NAMES[schedule]}: the queue tells other values at {', '.join(wrong)}")
    update = points.filter(pl.col("queue") == "in-place")
    later = update.join(
        update.select(pl.col("shown_at") + PERIOD, before=pl.col("integral")), on="shown_at"
    ).filter(pl.col("shown_at") > 2 * PERIOD, pl.col("staleness_after") > 0)
    if not later.height or (later["integral"] - later["before"] != PERIOD_AREA).any():
        faults.append(f"the area of a period is not {PERIOD_AREA}")
    told = ", ".join(f"{b:g} → {a:g}" for _, _, b, a in BY_HAND["in-place"])
    ours = (
        f"{points.height} deliveries, {int(points['exact'].sum())} told exactly; update queue"
        f" {told}, then again; {PERIOD_AREA / PERIOD:g} on average"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours, not faults, points, lambda figure: _plot(figure, points))


def _plot(figure: Figure, points: pl.DataFrame) -> None:
    axes = figure.subplots()
    until = 18
    for schedule in reversed(BY_HAND):
        own = points.filter(pl.col("queue") == schedule, pl.col("shown_at") <= until)
        _sawtooth(axes, schedule, own)
    for at in range(0, until + 1, GAP):
        axes.text(at, -0.8, LETTERS[at // GAP], ha="center")
        axes.plot([at, at], [-0.35, 0], color=PAPER, lw=1)
    theirs = [(at, stale) for _, at, *both in BY_HAND["in-place"] for stale in both]
    axes.plot(*zip(*theirs, strict=True), "o", color=PAPER, mfc="none", label="by the paper's rule")
    axes.set_xticks(range(0, until + 1, COST))
    axes.set_ylim(-1.1, 9)
    axes.set_xlabel("time [s]; letters: updates that come, with ′: results of them")
    axes.set_ylabel("staleness [s]")
    axes.legend(loc="upper left")
    shown = points.filter(pl.col("shown_at") <= until)
    most = dict(shown.group_by("queue").agg(pl.col("staleness_before").max()).iter_rows())
    tell(
        figure,
        f"An update every {GAP} s, {COST} s of work each: within {until} s staleness comes to"
        f" {most['in-place']:g} s in the update queue, to {most['append']:g} s in the append queue",
        "when a′ is delivered, staleness drops to the age of b, and so on (circles)",
    )


def _sawtooth(axes: Axes, schedule: Schedule, own: pl.DataFrame) -> None:
    in_place = schedule == "in-place"
    colour, times, values = COLOURS[schedule], [0.0], [0.0]
    for update, at, before, after in own.select(
        "update", "shown_at", "staleness_before", "staleness_after"
    ).iter_rows():
        times += [at, at]
        values += [before, after]
        place = (4, -12) if in_place else (4, 3)
        axes.annotate(f"{update}′", (at, before), place, textcoords="offset points", color=colour)
    style = "-" if in_place else "--"
    axes.plot(times, values, style, color=colour, label=NAMES[schedule], lw=2)


def run(_: bool) -> Outcome:
    """The same either way: it takes no time."""
    return judge(pl.concat([table(schedule) for schedule in BY_HAND]))


F2 = Claim(
    "UP-F2",
    "staleness of one key, the worked example",
    "an update every 2 units, cost 3: staleness drops to the age of the oldest newer update",
    "staleness before and after every delivery, its integral and average, exactly",
    run,
)
