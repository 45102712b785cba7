"""This claim repeats the execution traces of LAZY and EAGER windows: UpStream §6.2, Fig. 12.

One key, windows of three ticks that slide by one, two ticks of work a row, and a row every tick
from 1 on. The figure is lost; the text has its rules, and of EAGER some values: the first window
that is worked on starts at 1, the key waits from 2 on, and the window that closes at 4 invalidates
the result given at 7. All else follows from the rules. It is worked out below, row by row, by a few
lines that use nothing of the queue, and compared with the rows that leave the queue, the windows
that are shown, and the staleness that the queue reports, all exactly. A tick is a second here.

Windows lie on a grid, so two of them end after the first row and began before it: [-1, 2) and
[0, 3). LAZY shows the first of these at 3, before the window that the paper has as the first one.
EAGER's staleness before its first result, at 7, counts from the end of this window. A row that
comes in the moment at which the queue is served is there already; the text does not say.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt

import numpy as np
import polars as pl

from lowwater.claims import updates_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, judge
from lowwater.claims.updates_runs import WINDOW_NAMES, Services, Way, only_key
from lowwater.claims.updates_windows import Rows, count_windows
from lowwater.probe import SECOND, PerRow, Probe

SIZE, SLIDE, COST = 3, 1, 2
ROWS = 60
FIRST = 1 - SIZE + SLIDE
"""The start of the first window that the first row is in."""
BY_HAND: dict[Way, tuple[tuple[int, int, int, int, int, int], ...]] = {
    "eager": ((1, 1, 1, 7, 6, 3), (7, 2, 7, 13, 9, 3), (13, 8, 13, 19, 9, 3)),
    "lazy": (
        (-1, 1, 1, 3, 2, 1),
        (1, 2, 3, 9, 7, 5),
        (7, 4, 9, 15, 11, 5),
        (13, 10, 15, 21, 11, 5),
    ),
}
"""By queue, for each window: its start, the times from which its key waited, at which work on it
began and at which it was shown, and staleness right before and right after."""


@dataclass(frozen=True)
class TracedWindow:
    """A window that was worked on, from waiting to the result."""

    window: int
    """Its start."""
    since: int
    """The time from which its key waited."""
    rows: tuple[tuple[int, int], ...]
    """Its rows: the time of each, and the time at which work on it began."""
    shown: int
    """The time of its result."""
    before: int
    """Staleness right before the result."""
    after: int
    """Staleness right after the result."""

    @property
    def line(self) -> tuple[int, int, int, int, int, int]:
        """The figures that :data:`BY_HAND` has."""
        return self.window, self.since, self.rows[0][1], self.shown, self.before, self.after


# ---- by the rules --------------------------------------------------------------------------


def derive(way: Way) -> list[TracedWindow]:
    """Return all windows that are shown while rows come; row ``t`` comes at ``t``."""
    found: list[TracedWindow] = []
    now, last = 1, FIRST - SLIDE
    while True:
        update = last + SLIDE + (SIZE - 1 if way == "lazy" else 0)
        update = max(update, 1)  # the row with which the next window ends, or begins
        now = max(now, update)
        window = now - (SIZE - 1) if way == "lazy" else now
        rows = []
        for tick in range(max(window, 1), window + SIZE):
            begun = max(now, tick)
            rows.append((tick, begun))
            now = begun + COST
        if now > ROWS:
            return found
        ages = _stale(found[-1].window if found else None, now), _stale(window, now)
        found.append(TracedWindow(window, update, tuple(rows), now, *ages))
        last = window


def _stale(shown: int | None, now: int) -> int:
    """Return the ticks since the first window closed that is newer than the one shown."""
    first = FIRST if shown is None else shown + SLIDE
    return max(now - (first + SIZE - 1), 0)


# ---- as the queue does it ------------------------------------------------------------------


def observe(way: Way) -> list[TracedWindow]:
    """Return all windows that a run shows, from the rows that leave its queue, its results, and the
    staleness that the queue reports."""
    services = Services(ROWS)
    rows = Rows(np.arange(1, ROWS + 1), np.zeros(ROWS, np.int64), strict=True)
    query, charge = count_windows(rows, way, SIZE, SLIDE), PerRow(COST * SECOND)
    results = Probe(query, observer=services, charge=charge, tick=0).run().results
    shown = dict(results.select("window_start", pl.col("_out_at").round().cast(int)).iter_rows())
    return _put_together(services, shown)


def _put_together(services: Services, shown: dict[int, int]) -> list[TracedWindow]:
    """Put windows together from portions of their rows."""
    begins: dict[int, list[tuple[int, int]]] = {}
    since: dict[int, int] = {}
    waited = Fraction(0)
    before, after = (
        {now // SECOND: only_key(staleness) for now, staleness in readings}
        for readings in (services.ended, services.begun)
    )
    for (at, staleness), rows in zip(after.items(), services.left, strict=True):
        (window,) = rows["window_start"].unique()
        if window not in since:  # the queue's integral has grown by half of a square
            area = _area(staleness.queue, at)
            since[window] = at - isqrt(int(2 * (area - waited)))
            waited = area
        works = [(tick, at + number * COST) for number, tick in enumerate(rows["tick"])]
        begins.setdefault(window, []).extend(works)
    return [
        TracedWindow(
            window,
            since[window],
            tuple(begins[window]),
            at,
            round(before[at].now),
            round(after[at].now),
        )
        for window, at in shown.items()
        if at <= ROWS and at in after
    ]


def _area(average: float, now: int) -> Fraction:
    """Return the integral of an average since the first row; it is a multiple of a half."""
    return Fraction(round(2 * average * (now - 1)), 2)


# ---- the judgement -------------------------------------------------------------------------


def table(way: Way) -> pl.DataFrame:
    """Return every window, by the rules and as the queue did it."""
    rules, ours = derive(way), {each.window: each for each in observe(way)}
    return pl.DataFrame(
        [
            {
                "queue": way,
                "window": each.window,
                "waits_since": each.since,
                "rows_begun_at": " ".join(f"{tick}@{at}" for tick, at in each.rows),
                "begun_at": each.rows[0][1],
                "shown_at": each.shown,
                "staleness_before": each.before,
                "staleness_after": each.after,
                "exact": ours.get(each.window) == each,
            }
            for each in rules[:-1]  # staleness after the last one is known only later
        ]
    )


def traces_outcome(points: pl.DataFrame) -> Outcome:
    """Judge whether the traces are those of the rules, and begin as by hand."""
    columns = ("window", "waits_since", "begun_at", "shown_at", "staleness_before")
    criteria = []
    for way, expected in BY_HAND.items():
        own, name = points.filter(pl.col("queue") == way), WINDOW_NAMES[way]
        first = tuple(own.select(*columns, "staleness_after").head(len(expected)).rows())
        wrong = own.filter(~pl.col("exact"))["window"].to_list()
        criteria += [
            Criterion(first == expected, f"{name}: the rules give another trace than ours by hand"),
            Criterion(not wrong, f"{name}: the queue treats windows {wrong} differently"),
        ]
    lines = "; ".join(_line(points.filter(pl.col("queue") == way), way) for way in BY_HAND)
    ours = f"{points.height} windows, {int(points['exact'].sum())} exactly as by the rules; {lines}"
    theirs = {
        way: [(line[3], stale) for line in by_hand for stale in line[4:]]
        for way, by_hand in BY_HAND.items()
    }
    return judge(
        ours, criteria, points, lambda figure: plots.traces(figure, points, theirs, (SIZE, COST))
    )


def _line(own: pl.DataFrame, way: Way) -> str:
    """Write the figures of the window that starts at 1, and of the one after it, which repeat."""
    one = own.filter(pl.col("window") == 1).row(0, named=True)
    next_one = own.filter(pl.col("window") > 1).row(0, named=True)
    return (
        f"{WINDOW_NAMES[way]}: window 1 at {one['begun_at']}, the key waits from"
        f" {next_one['waits_since']}, shown at {one['shown_at']}, staleness drops to"
        f" {one['staleness_after']}, then {next_one['staleness_before']} →"
        f" {next_one['staleness_after']} every {next_one['shown_at'] - one['shown_at']}"
    )


def run(_: bool) -> Outcome:
    """Work out both queues; the quick variant is the same."""
    return traces_outcome(pl.concat([table(way) for way in BY_HAND]))


F12 = Claim(
    "UP-F12",
    "execution traces of LAZY and EAGER windows, size 3, slide 1, 2 ticks a row",
    "EAGER: window 1 first, the key waits from 2, the window that closes at 4 invalidates the"
    " result at 7; LAZY: staleness from window ends",
    "windows, rows, waits, results and staleness as derived from the rules, exactly",
    run,
)
