"""Execution traces of LAZY and EAGER windows: UpStream §6.2, Fig. 12.

One key, windows of three ticks that slide by one, two ticks of work a row, and a row every tick
from 1 on. The figure is lost; the text has its rules, and of EAGER some values: the first window
that is worked on starts at 1, the key waits from 2 on, and the window that closes at 4 invalidates
the result given at 7. All else follows from the rules. It is worked out below, row by row, by a few
lines that know nothing of the queue, and compared with what leaves the queue, what is shown, and
how stale the queue says it is, all exactly. A tick is a second here.

Windows lie on a grid, so two of them end after the first row and began before it: [-1, 2) and
[0, 3). LAZY shows the first of these at 3, in time for what the paper has as the first window, and
they are what EAGER's result is stale by before 7. A row that comes in the moment at which the queue
is asked is there already; the text does not say.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, tell
from lowwater.claims.updates_windows_runs import NAMES, Rows, Way, engine_of
from lowwater.engines.embedded.clock import PerRow, VirtualClock
from lowwater.operators.kernel import Kernel
from lowwater.operators.window_state import START
from lowwater.stream.duration import SECOND
from lowwater.stream.element import Element
from lowwater.updates.staleness import KeyStaleness, Shows

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIZE, SLIDE, COST = 3, 1, 2
ROWS = 60
FIRST = 1 - SIZE + SLIDE
"""The first window that the first row is in."""
BY_HAND: dict[Way, tuple[tuple[int, int, int, int, int, int], ...]] = {
    "eager": ((1, 1, 1, 7, 6, 3), (7, 2, 7, 13, 9, 3), (13, 8, 13, 19, 9, 3)),
    "lazy": (
        (-1, 1, 1, 3, 2, 1),
        (1, 2, 3, 9, 7, 5),
        (7, 4, 9, 15, 11, 5),
        (13, 10, 15, 21, 11, 5),
    ),
}
"""The window, since when the key waited, when the window was begun to be worked on, when it was
shown, and how stale the result was right before and right after."""


@dataclass(frozen=True)
class Worked:
    """A window that was worked on, from waiting to the result."""

    window: int
    """Where it starts."""
    since: int
    """Since when its key waited."""
    rows: tuple[tuple[int, int], ...]
    """Its rows, and when each was begun with."""
    shown: int
    before: int
    """How stale what was shown was right before,"""
    after: int
    """and right after."""

    @property
    def line(self) -> tuple[int, int, int, int, int, int]:
        """As it is written by hand."""
        return self.window, self.since, self.rows[0][1], self.shown, self.before, self.after


# ---- by the rules --------------------------------------------------------------------------


def derived(way: Way) -> list[Worked]:
    """All windows that are shown while rows come; row ``t`` comes at ``t``."""
    found: list[Worked] = []
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
        found.append(Worked(window, update, tuple(rows), now, *ages))
        last = window


def _stale(shown: int | None, now: int) -> int:
    """How long ago the first window closed that is newer than the one shown."""
    first = FIRST if shown is None else shown + SLIDE
    return max(now - (first + SIZE - 1), 0)


# ---- as the queue does it ------------------------------------------------------------------


class Looking(VirtualClock):
    """A virtual clock that asks a queue how stale what it shows is, when work begins and ends."""

    kernel: Kernel

    def __init__(self) -> None:
        super().__init__(charge=PerRow(COST * SECOND))
        self.begun: list[tuple[int, KeyStaleness]] = []
        self.ended: list[tuple[int, KeyStaleness]] = []

    def worked(self, nanoseconds: int, comparisons: int = 0, rows: int = 0) -> int:
        """Let work take time. Right before it, all that came in the last service is known."""
        if rows:
            self.begun.append((self.now() // SECOND, self._told()))
        counted = super().worked(nanoseconds, comparisons, rows)
        if rows:
            self.ended.append((self.now() // SECOND, self._told()))
        return counted

    def _told(self) -> KeyStaleness:
        assert isinstance(self.kernel, Shows)
        (only,) = self.kernel.staleness().by_key.values()
        return only


def observed(way: Way) -> list[Worked]:
    """The same, from a run: rows as they leave the queue, results, and what the queue says."""
    clock = Looking()
    rows = Rows(np.arange(1, ROWS + 1), np.zeros(ROWS, np.int64), strict=True)
    engine, sink = engine_of(rows, way, SIZE, SLIDE, clock, ROWS)
    queue = engine.stage("update windows")
    clock.kernel = queue.kernel
    left: list[pl.DataFrame] = []

    def tap(element: Element) -> None:
        if isinstance(element, pl.DataFrame):
            left.append(element)

    queue.deliver = tap
    engine.run()
    shown = {row[START]: round(row["_out_at"]) for row in sink.table().iter_rows(named=True)}
    return _put_together(clock, left, shown)


def _put_together(clock: Looking, left: list[pl.DataFrame], shown: dict[int, int]) -> list[Worked]:
    """Windows from portions of their rows."""
    begins: dict[int, list[tuple[int, int]]] = {}
    since: dict[int, int] = {}
    waited = Fraction(0)
    for (at, told), rows in zip(clock.begun, left, strict=True):
        (window,) = rows[START].unique()
        if window not in since:  # the queue's integral has grown by half of a square
            area = _area(told.queue, at)
            since[window] = at - isqrt(int(2 * (area - waited)))
            waited = area
        works = [(tick, at + number * COST) for number, tick in enumerate(rows["tick"])]
        begins.setdefault(window, []).extend(works)
    before, after = dict(clock.ended), dict(clock.begun)
    return [
        Worked(
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
    """The integral that an average since the first row is of; it is a multiple of a half."""
    return Fraction(round(2 * average * (now - 1)), 2)


# ---- the judgement -------------------------------------------------------------------------


def table(way: Way) -> pl.DataFrame:
    """Every window, by the rules and as the queue did it."""
    rules, ours = derived(way), {each.window: each for each in observed(way)}
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
            for each in rules[:-1]  # what the last left behind is known only later
        ]
    )


def judge(points: pl.DataFrame) -> Outcome:
    """Whether the traces are those of the rules, and begin as by hand."""
    columns = ("window", "waits_since", "begun_at", "shown_at", "staleness_before")
    faults = []
    for way, expected in BY_HAND.items():
        own = points.filter(pl.col("queue") == way)
        if tuple(own.select(*columns, "staleness_after").head(len(expected)).rows()) != expected:
            faults.append(f"{NAMES[way]}: the rules give another trace than ours by hand")
        wrong = own.filter(~pl.col("exact"))["window"].to_list()
        if wrong:
            faults.append(f"{NAMES[way]}: the queue does otherwise with windows {wrong}")
    told = "; ".join(_told(points.filter(pl.col("queue") == way), way) for way in BY_HAND)
    ours = f"{points.height} windows, {int(points['exact'].sum())} exactly as by the rules; {told}"
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""
    return Outcome(ours, not faults, points, lambda figure: _plot(figure, points))


def _told(own: pl.DataFrame, way: Way) -> str:
    """The window that starts at 1, and what comes again and again after it."""
    one = own.filter(pl.col("window") == 1).row(0, named=True)
    next_one = own.filter(pl.col("window") > 1).row(0, named=True)
    return (
        f"{NAMES[way]}: window 1 at {one['begun_at']}, the key waits from"
        f" {next_one['waits_since']}, shown at {one['shown_at']}, staleness drops to"
        f" {one['staleness_after']}, then {next_one['staleness_before']} →"
        f" {next_one['staleness_after']} every {next_one['shown_at'] - one['shown_at']}"
    )


def _plot(figure: Figure, points: pl.DataFrame) -> None:
    sides = figure.subplots(2, 1, sharex=True)
    for axes, way in zip(sides, BY_HAND, strict=True):
        _trace(axes, way, points.filter(pl.col("queue") == way, pl.col("shown_at") <= 24))
    sides[1].set_xlabel("time [ticks]; a row comes every tick")
    sides[0].legend(loc="upper left")
    again = points.filter(pl.col("window") > 1).unique("queue", keep="first")
    columns = ("queue", "staleness_before", "staleness_after")
    stale = {queue: f"{before} → {after}" for queue, before, after in again.select(columns).rows()}
    spelled = ", ".join(f"{stale[way]} ticks with {NAMES[way]}" for way in BY_HAND)
    tell(
        figure,
        f"Staleness goes {spelled}; {int(points['exact'].sum())} of {points.height} windows are"
        " exactly as by the rules",
        "EAGER's first window starts at 1 and is shown at 7; the one that closes at 4 invalidates"
        " it there; LAZY's staleness counts from window ends",
    )


def _trace(axes: Axes, way: Way, own: pl.DataFrame) -> None:
    times, values = [1.0], [0.0]
    for row in own.iter_rows(named=True):
        times += [row["shown_at"]] * 2
        values += [row["staleness_before"], row["staleness_after"]]
        axes.plot([row["begun_at"], row["shown_at"]], [-1, -1], color=COLOURS[way], lw=6, alpha=0.5)
        middle = (row["begun_at"] + row["shown_at"]) / 2
        window = f"[{row['window']}, {row['window'] + SIZE})"
        axes.text(middle, -2.9, window, ha="center", fontsize=9)
    axes.plot(times, values, color=COLOURS[way], lw=2, label="staleness")
    theirs = [(line[3], stale) for line in BY_HAND[way] for stale in line[4:]]
    label = "by the paper's rules"
    axes.plot(*zip(*theirs, strict=True), "o", color=PAPER, mfc="none", label=label)
    axes.set_title(f"{NAMES[way]}: what is shown, and the windows that are worked on")
    axes.set_ylabel("staleness [ticks]")
    axes.set_ylim(-4, 13)
    axes.set_xticks(range(1, 25, COST))
    axes.set_yticks(range(0, 13, 3))


def run(_: bool) -> Outcome:
    """The same either way: it takes no time."""
    return judge(pl.concat([table(way) for way in BY_HAND]))


F12 = Claim(
    "UP-F12",
    "execution traces of LAZY and EAGER windows, size 3, slide 1, 2 ticks a row",
    "EAGER: window 1 first, the key waits from 2, the window that closes at 4 invalidates the"
    " result at 7; LAZY: staleness from window ends",
    "windows, rows, waits, results and staleness as derived from the rules, exactly",
    run,
)
