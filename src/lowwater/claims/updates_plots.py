"""These functions draw the claims of the UpStream paper; the figures are measured elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from lowwater.claims.drawing import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    ORANGE,
    PAPER,
    PINK,
    RED,
    brief,
    caption,
    logarithmic,
)
from lowwater.claims.updates_runs import NAMES, WINDOW_NAMES, Way
from lowwater.typing import Schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Ratios = dict[int, float]
"""Ratios by number of slow keys."""
KEPT = "drawn, load kept"
"""The pattern of arrivals in which the load stays the same."""
QUEUE_LINES = {
    "append": "^-",
    "shedding": "v-",
    "fifo": "s--",
    "in-place": "o-",
    "lazy": "s-",
    "eager": "o-",
}
MEASURES = ("effective_usage", "effective_bytes", "usage_locations", "page_locations", "bytes")
"""The columns that the plot of memory shows."""


def spell_range(values: Sequence[float]) -> str:
    """Write the least and the greatest of some ratios."""
    return f"{min(values):.2f}–{max(values):.2f}"


# ---- the worked example --------------------------------------------------------------------


def example(
    figure: Figure,
    points: pl.DataFrame,
    times: tuple[int, int],
    letters: str,
    theirs: Sequence[tuple[float, float]],
) -> None:
    """Draw UP-F2; ``times``: seconds between updates, and of work; ``letters``: names of updates;
    ``theirs``: time and staleness by the paper's rule."""
    gap, cost = times
    axes = figure.subplots()
    until = 18
    queues: tuple[Schedule, ...] = ("append", "in-place")
    for schedule in queues:
        own = points.filter(pl.col("queue") == schedule, pl.col("shown_at") <= until)
        _sawtooth(axes, schedule, own)
    for at in range(0, until + 1, gap):
        axes.text(at, -0.8, letters[at // gap], ha="center")
        axes.plot([at, at], [-0.35, 0], color=PAPER, lw=1)
    axes.plot(*zip(*theirs, strict=True), "o", color=PAPER, mfc="none", label="by the paper's rule")
    axes.set_xticks(range(0, until + 1, cost))
    axes.set_ylim(-1.1, 9)
    axes.set_xlabel("time [s]; letters: updates that come, with ′: results of them")
    axes.set_ylabel("staleness [s]")
    axes.legend(loc="upper left")
    shown = points.filter(pl.col("shown_at") <= until)
    most = dict(shown.group_by("queue").agg(pl.col("staleness_before").max()).iter_rows())
    caption(
        figure,
        f"An update every {gap} s, {cost} s of work each: within {until} s staleness comes to"
        f" {most['in-place']:g} s in the update queue, to {most['append']:g} s in the append queue",
        "when a′ is delivered, staleness drops to the age of b, and so on (circles)",
    )


def _sawtooth(axes: Axes, schedule: Schedule, own: pl.DataFrame) -> None:
    """Draw the staleness of one queue, with its results."""
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


# ---- over the load -------------------------------------------------------------------------


def staleness(
    figure: Figure,
    one: pl.DataFrame,
    ten: pl.DataFrame,
    ranges: tuple[Sequence[float], Sequence[float]],
    within: str,
) -> None:
    """Draw UP-F5: one key and ten. ``ranges``: queue staleness of ten keys in times that of one,
    and the difference likewise; ``within``: at how many points the bounds hold, in words."""
    inflated, differs = ranges
    left, middle, right = figure.subplots(1, 3)
    _lines(left, one, "1 key")
    _lines(middle, ten, "10 keys")
    _bounds(right, one, ten)
    caption(
        figure,
        f"Ten keys make queue staleness {min(inflated):.1f} to {max(inflated):.1f} × one key's,"
        f" its difference to application staleness {min(differs):.2f} to {max(differs):.2f} ×;"
        f" Δ is in its bounds at {within}",
        "wait·cost ≤ Δ ≤ wait·cost + cost²/2; ten keys inflate queue staleness about 10 ×, not"
        " the difference",
    )


def _lines(axes: Axes, own: pl.DataFrame, title: str) -> None:
    """Draw both kinds of staleness and their difference."""
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
    """Draw where in its bounds a service's area is: 0 % at the least, 100 % at the greatest."""
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


def queues(
    figure: Figure, points: pl.DataFrame, numbers: Sequence[int], order: Sequence[Schedule]
) -> None:
    """Draw UP-F7: the staleness of queues over the load, by number of keys."""
    most = float(points["load"].max())  # type: ignore[arg-type]
    sides = figure.subplots(1, 2, sharey=True)
    for axes, keys in zip(sides, numbers, strict=True):
        _queues(axes, points.filter(pl.col("keys") == keys), order)
        axes.set_title(f"{keys} key" + ("s" if keys > 1 else ""))
    sides[0].set_ylabel("application staleness [updates]")
    sides[1].legend(loc="lower right")
    ten = points.filter(pl.col("load") == most, pl.col("keys") == numbers[-1])
    stale = dict(ten.select("queue", "application_updates").iter_rows())
    spelled = ", ".join(f"{stale[queue]:,.0f} ({NAMES[queue]})" for queue in reversed(order))
    caption(
        figure,
        f"At load {most:g}, {numbers[-1]} keys are stale by {spelled} updates on average",
        "update queues far below append queues; IN-PLACE the lowest for uniform keys",
    )


def _queues(axes: Axes, own: pl.DataFrame, order: Sequence[Schedule]) -> None:
    """Draw the curve of each queue."""
    for queue in order:
        line = own.filter(pl.col("queue") == queue)
        values = line["load"].to_list(), line["application_updates"].to_list()
        axes.plot(*values, QUEUE_LINES[queue], color=COLOURS[queue], label=NAMES[queue])
    logarithmic(axes, "y")
    axes.set_xlabel("load [updates a service]")


# ---- line cutting --------------------------------------------------------------------------


def rates(
    figure: Figure,
    curves: Mapping[str, Mapping[Schedule, Ratios]],
    best: Ratios,
    near: int,
) -> None:
    """Draw UP-F9: ratios by pattern of arrivals and by rule (``curves``).

    ``best``: the curve the title is about; ``near``: where the paper has its least.
    """
    keys = max(best)
    sides = figure.subplots(1, len(curves), sharey=True, squeeze=False)[0]
    for axes, pattern in zip(sides, curves, strict=True):
        _rates(axes, curves[pattern], near)
        axes.set_title(f"keys {pattern}")
    sides[0].set_ylabel("queue staleness, to that of IN-PLACE [ratio]")
    sides[-1].legend()
    worst = max(max(found.values()) for each in curves.values() for found in each.values())
    sides[0].set_ylim(0.4, worst + 0.1)
    least = min(best, key=lambda slow: best[slow])
    kept_at = [max(each["linecutting"].values()) for name, each in curves.items() if name == KEPT]
    tail = "".join(f"; up to {most:.2f} × if the load is kept" for most in kept_at)
    caption(
        figure,
        f"LINECUTTING has down to {best[least]:.2f} × the queue staleness of IN-PLACE, at"
        f" {least} slow keys of {keys} that come in turn{tail}",
        "1 at x = 0 and x = 10 slow keys, better between, best near x = 8 (load 5)",
    )


def _rates(axes: Axes, curves: Mapping[Schedule, Ratios], near: int) -> None:
    """Draw the curves of one pattern."""
    for queue, found in curves.items():
        style = "o-" if queue == "linecutting" else "s--"
        axes.plot(
            list(found), list(found.values()), style, color=COLOURS[queue], label=NAMES[queue]
        )
    axes.axhline(1, color=COLOURS["in-place"], lw=1, label=NAMES["in-place"])
    axes.axvline(near, color=PAPER, ls=":", label="paper: best near here")
    axes.set_xlabel(f"slow keys [of {max(curves['linecutting'])}]")


# ---- windows -------------------------------------------------------------------------------


def traces(
    figure: Figure,
    points: pl.DataFrame,
    theirs: Mapping[Way, Sequence[tuple[float, float]]],
    sizes: tuple[int, int],
) -> None:
    """Draw UP-F12; ``theirs``: time and staleness by the paper's rules, by queue; ``sizes``: ticks
    of a window, and of work a row."""
    sides = figure.subplots(2, 1, sharex=True)
    for axes, way in zip(sides, theirs, strict=True):
        own = points.filter(pl.col("queue") == way, pl.col("shown_at") <= 24)
        _trace(axes, way, (own, theirs[way]), sizes)
    sides[1].set_xlabel("time [ticks]; a row comes every tick")
    sides[0].legend(loc="upper left")
    again = points.filter(pl.col("window") > 1).unique("queue", keep="first")
    columns = ("queue", "staleness_before", "staleness_after")
    stale = {queue: f"{before} → {after}" for queue, before, after in again.select(columns).rows()}
    spelled = ", ".join(f"{stale[way]} ticks with {WINDOW_NAMES[way]}" for way in theirs)
    caption(
        figure,
        f"Staleness goes {spelled}; {int(points['exact'].sum())} of {points.height} windows are"
        " exactly as by the rules",
        "EAGER's first window starts at 1 and is shown at 7; the one that closes at 4 invalidates"
        " it there; LAZY's staleness counts from window ends",
    )


def _trace(
    axes: Axes,
    way: Way,
    both: tuple[pl.DataFrame, Sequence[tuple[float, float]]],
    sizes: tuple[int, int],
) -> None:
    """Draw the staleness of one queue, beside the paper's, and the windows it works on."""
    (own, theirs), (size, cost) = both, sizes
    times, values = [1.0], [0.0]
    for row in own.iter_rows(named=True):
        times += [row["shown_at"]] * 2
        values += [row["staleness_before"], row["staleness_after"]]
        axes.plot([row["begun_at"], row["shown_at"]], [-1, -1], color=COLOURS[way], lw=6, alpha=0.5)
        middle = (row["begun_at"] + row["shown_at"]) / 2
        window = f"[{row['window']}, {row['window'] + size})"
        axes.text(middle, -2.9, window, ha="center", fontsize=9)
    axes.plot(times, values, color=COLOURS[way], lw=2, label="staleness")
    label = "by the paper's rules"
    axes.plot(*zip(*theirs, strict=True), "o", color=PAPER, mfc="none", label=label)
    axes.set_title(f"{WINDOW_NAMES[way]}: staleness, and the windows that are worked on")
    axes.set_ylabel("staleness [ticks]")
    axes.set_ylim(-4, 13)
    axes.set_xticks(range(1, 25, cost))
    axes.set_yticks(range(0, 13, 3))


def window_sizes(figure: Figure, lines: Mapping[str, Mapping[Way, Mapping[int, float]]]) -> None:
    """Draw UP-F13: staleness in seconds by kind of windows, queue and size."""
    sides = figure.subplots(1, 2)
    for axes, (kind, ways) in zip(sides, lines.items(), strict=True):
        for way, line in ways.items():
            sizes, values = list(line), list(line.values())
            axes.plot(sizes, values, QUEUE_LINES[way], color=COLOURS[way], label=WINDOW_NAMES[way])
        axes.set_title(f"windows: {kind}")
        axes.set(xlabel="window size [ticks]", ylabel="application staleness [s]", xticks=sizes)
    sides[1].set_yscale("log")
    sides[1].set_ylim(bottom=0.2)
    logarithmic(sides[1], "y")
    for axes in sides:
        axes.legend()
    size = max(lines["tumbling"]["lazy"])
    stale = {
        kind: ", ".join(
            f"{brief(line[size])} s ({WINDOW_NAMES[way]})" for way, line in ways.items()
        )
        for kind, ways in lines.items()
    }
    caption(
        figure,
        f"Windows of {size} ticks are stale by {stale['tumbling']} if tumbling, by"
        f" {stale['slide 1']} if they slide",
        "tumbling, LAZY grows linearly with the size and EAGER falls; both below shedding, that"
        " below append",
    )


def window_orders(
    figure: Figure, lines: Mapping[str, Mapping[str, Mapping[int, float]]], gaps: int
) -> None:
    """Draw UP-F14: EAGER / LAZY by the rows that end a window, the order of keys, and the size.

    ``gaps``: the greatest size in the title, in ticks.
    """
    sides = figure.subplots(1, 2, sharey=True)
    for axes, rows in zip(sides, lines, strict=True):
        _orders(axes, lines[rows])
        axes.set_title(f"{rows} end a window of a key")
    sides[0].set_ylabel("application staleness, EAGER / LAZY [ratio]")
    sides[1].legend()
    own = iter(next(iter(lines.values())).values())
    turns = [ratio for size, ratio in next(own).items() if size <= gaps]
    others = [ratio for line in own for size, ratio in line.items() if size <= gaps]
    caption(
        figure,
        f"Where a key's own rows end its windows, EAGER has {spell_range(turns)} × the"
        f" staleness of LAZY for keys in turn, {spell_range(others)} × for drawn ones"
        f" (windows of up to {gaps} ticks)",
        "above 1 for Zipf, more so for small windows; below 1 for keys in turn",
    )


def _orders(axes: Axes, lines: Mapping[str, Mapping[int, float]]) -> None:
    """Draw the curve of each order of keys."""
    looks = ((BLUE, "o-"), (GREY, "s-"), (ORANGE, "^-"), (RED, "v-"))
    for (order, line), (colour, style) in zip(lines.items(), looks, strict=True):
        axes.plot(list(line), list(line.values()), style, color=colour, label=order)
        axes.set_xticks(list(line))
    axes.axhline(1, color=PAPER, ls="--", label="paper: in turn below, Zipf above")
    axes.set_xlabel("window size [ticks]")


# ---- memory --------------------------------------------------------------------------------


def memory(
    figure: Figure,
    sides: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]],
    places: Mapping[str, Sequence[float]],
    finding: str,
) -> None:
    """Draw UP-F16: means by parameter, measure and manager; ``places``: the values of each
    parameter."""
    axes = figure.subplots(2, 3)
    labels = {"theta": "skew of keys [Zipf θ]", "rate_per_s": "rows that come [1/s]"}
    for row, (by, label) in zip(axes, labels.items(), strict=True):
        drawn = sides[by], places[by]
        _managers(row[0], *drawn, ("effective_usage", "effective_bytes"), 0.01)
        _managers(row[1], *drawn, ("usage_locations", "page_locations"))
        _managers(row[2], *drawn, ("bytes",), 1e3)
        row[0].axhline(100, color=PAPER, ls=":", label="paper: paging")
        names = ("effective usage [%]", "memory [locations]", "memory, pages [kB]")
        for each, name in zip(row, names, strict=True):
            each.set(xlabel=label, ylabel=name)
            if by == "rate_per_s":
                logarithmic(each, "x")
    handles, names = axes[0][0].get_legend_handles_labels()
    axes[0][2].legend(handles, names, loc="lower left")
    caption(
        figure,
        finding,
        "effective usage of paging 1.0; the naive manager's falls with skew and at low load",
    )


def _managers(
    axes: Axes,
    found: Mapping[str, Mapping[str, Sequence[float]]],
    at: Sequence[float],
    measures: tuple[str, ...],
    unit: float = 1.0,
) -> None:
    """Draw the usage of both managers, divided by ``unit``, and beside it that of whole pages."""
    for measure, dashes, which in zip(measures, ("-", "--"), ("", ", whole pages"), strict=False):
        for name, values in found[measure].items():
            marker = {"paging": "o", "naive": "s"}[name]
            shown = [value / unit for value in values]
            style, label = marker + dashes, name + which
            axes.plot(at, shown, style, color=COLOURS[name], label=label, ms=4)
    axes.set_ylim(0, 1.05 * axes.get_ylim()[1])
