"""Progress that is learned, against the best slack that could have been stated beforehand.

Both are judged by the same channels as in every run. At the completeness that was achieved, the
smallest fixed slack that reaches it too is looked up *afterwards*: nobody could have known it. What
is compared is how long answers wait, and how many rows are held for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLUE, PAPER, SKY, bars, tell
from lowwater.claims.learned_streams import Series, Ticks, made_up, real
from lowwater.progress.contract import Contract, Learned, Within
from lowwater.stream.element import BEGINNING
from lowwater.stream.time_domain import TimeDomain

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TARGETS = (0.99, 0.999)
NEAR = 0.003
"""How near to the target the share of rows on time must be."""
PHASES = 50
"""Windows begin at so many places: how a stream beats against one grid must not decide."""


@dataclass(frozen=True)
class Trace:
    """What a contract did to a stream."""

    met: Ticks
    """For each row, the mark it met."""
    complete: float
    delay: float
    """Mean ticks by which the newest time had passed a window's end when it was answered."""
    waited: float | None
    """Mean ticks of arrival time between a window's end being passed and its answer."""
    held: float
    """Mean rows in windows that were open."""


def trace(series: Series, contract: Contract) -> Trace:
    """Judge a stream row by row, and follow its windows."""
    times = series.times
    tops = np.maximum.accumulate(times)
    met, marks = _judged(series, contract)
    kept = times >= met
    step = max(1, series.window // PHASES)
    offsets = np.arange(1, series.window // step + 1)
    ends = np.unique(np.unique(times[kept] // step)[:, None] + offsets) * step
    answered = np.searchsorted(marks, ends)
    told = answered < len(times)  # the others are answered by the stream's end
    ends, answered = ends[told], answered[told]
    waited = None
    if series.arrived is not None:
        passed = np.searchsorted(tops, ends)
        waited = float((series.arrived[answered] - series.arrived[passed]).mean())
    closed = np.searchsorted(marks, (times[kept] // series.window + 1) * series.window)
    held = float((closed - np.flatnonzero(kept)).sum() / len(times))
    delay = float((tops[answered] - ends).mean())
    return Trace(met, float(kept.mean()), delay, waited, held)


def _judged(series: Series, contract: Contract) -> tuple[Ticks, Ticks]:
    """For each row, the mark it met, and the stream's mark after it."""
    domain = TimeDomain(pl.Int64(), series.per_second)
    times = series.times
    if series.channels is None:
        verdict = contract.channel(domain, None).observe(times, times)
        return verdict.before, verdict.after
    met = np.empty(len(times), dtype=np.int64)
    least = np.full(len(times), np.iinfo(np.int64).max)
    for each in np.unique(series.channels):
        rows = np.flatnonzero(series.channels == each)
        verdict = contract.channel(domain, None).observe(times[rows], times[rows])
        met[rows] = verdict.before
        before = np.searchsorted(rows, np.arange(len(times)), "right")
        after = np.concatenate([np.array([BEGINNING]), verdict.after])
        least = np.minimum(least, after[before])
    return met, least


def smallest_slack(series: Series, met: Ticks) -> int:
    """The least bound under which no channel is less complete than it was with these marks.

    A promise holds for each channel by itself, so completeness does, too.
    """
    parts = series.channels if series.channels is not None else np.zeros(len(series.times))
    least = 0
    for each in np.unique(parts):
        times = series.times[parts == each]
        lateness = np.sort(np.maximum.accumulate(times) - times)
        kept = int((times >= met[parts == each]).sum())
        least = max(least, int(lateness[max(0, kept - 1)]))
    return least


def compare(series: Series, target: float) -> dict[str, Any]:
    """One line of the table."""
    learned = trace(series, Learned(target))
    slack = smallest_slack(series, learned.met)
    fixed = trace(series, Within(slack / series.per_second))
    second = series.per_second
    return {
        "stream": series.name,
        "part": series.part,
        "rows": len(series.times),
        "target": target,
        "complete": learned.complete,
        "fixed_complete": fixed.complete,
        "fixed_slack_seconds": slack / second,
        "delay_seconds": learned.delay / second,
        "fixed_delay_seconds": fixed.delay / second,
        "arrival_delay_seconds": None if learned.waited is None else learned.waited / second,
        "fixed_arrival_delay_seconds": None if fixed.waited is None else fixed.waited / second,
        "held_rows": learned.held,
        "fixed_held_rows": fixed.held,
    }


def measured(streams: Iterable[Series]) -> pl.DataFrame:
    """All streams at all targets."""
    lines = [compare(series, target) for series in streams for target in TARGETS]
    return pl.DataFrame(lines, infer_schema_length=None)


def judged(table: pl.DataFrame) -> pl.DataFrame:
    """Streams with their parts together: the mean of what was measured, and whether it is well."""
    figures = [
        name for name in table.columns if name.endswith(("complete", "seconds", "held_rows"))
    ]
    whole = table.group_by("stream", "target", maintain_order=True).agg(
        pl.len().alias("parts"), pl.col("rows").sum(), *(pl.col(name).mean() for name in figures)
    )
    near = (pl.col("complete") - pl.col("target")).abs() <= NEAR
    sooner = pl.col("delay_seconds") < pl.col("fixed_delay_seconds")
    return whole.with_columns(
        (pl.col("delay_seconds") / pl.col("fixed_delay_seconds")).alias("ratio"),
        (near & sooner).alias("holds"),
    )


def run_learned(quick: bool) -> Outcome:
    """Completeness and delay of learned progress, over streams that change."""
    table = measured([*made_up(quick), *real()])
    whole = judged(table)
    ours = "; ".join(_line(part) for part in whole.partition_by("stream", maintain_order=True))

    return Outcome(ours, bool(whole["holds"].all()), table, lambda figure: _plot(figure, whole))


def _plot(figure: Figure, whole: pl.DataFrame) -> None:
    axes = figure.subplots()
    names = whole["stream"].unique(maintain_order=True).to_list()
    for shift, target, colour in zip((-0.2, 0.2), TARGETS, (SKY, BLUE), strict=True):
        ratios = whole.filter(pl.col("target") == target)["ratio"].to_list()
        places = [at + shift for at in range(len(names))]
        label = f"{target:.1%} of rows on time"
        bars(axes, places, ratios, colour, lambda v: f"{v:.2f}", width=0.36, label=label)
    axes.axhline(1.0, color=PAPER, ls="--", label="the least fixed slack, known afterwards")
    axes.set_xticks(range(len(names)), [fill(name, 14) for name in names])
    axes.set(xlabel="stream", ylabel="mean delay of answers, learned / fixed [ratio]")
    axes.set_ylim(0, 1.3 * max(1.0, *whole["ratio"]))
    axes.legend(loc="upper right", ncols=3)
    low, high = min(whole["ratio"]), max(whole["ratio"])
    tell(
        figure,
        f"At equal completeness, learned progress answers after {low:.0%} to {high:.0%} of the"
        " delay of the least fixed slack",
        "the slack of a stream is stated beforehand, by who knows it (dashed: at its best)",
    )


def _line(part: pl.DataFrame) -> str:
    shares = [
        f"{each['complete']:.2%} of {each['target']:.1%} at {each['ratio']:.0%} of the delay"
        for each in part.iter_rows(named=True)
    ]
    return f"{part['stream'][0]}: {', '.join(shares)}"


LEARNED = Claim(
    "OOP-LEARNED",
    "Progress learned from lateness, against the best fixed slack",
    "slack is stated beforehand, by who knows the stream",
    f"rows on time within {NEAR:.1%} of 99 % and 99.9 %; answers sooner than with the least fixed"
    " slack that is as complete",
    run_learned,
)
