"""Buffers that follow the data: WO-Join §5.1, Fig. 5 (one join), Fig. 6 and 7 (joins of joins).

The optimal buffer of a second is the least one that finds all its results, by going back from each.
Beside it stand what the model predicts (Eq. 8), with the scrambling factors known and with all
measured by the join as it runs, and what the join really held. Ours keeps rows by value, so that it
may hold less than the model allows, and less than a buffer of the newest rows would have to.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLACK, COLOURS, ORANGE, PAPER, SKY, tell
from lowwater.claims.oblivious_definitions import Places, lags, scrambling_factor
from lowwater.claims.oblivious_runs import Query, Run, query_1, query_2, scale
from lowwater.claims.oblivious_truth import Truth
from lowwater.joins.oblivious.memory_model import InputTraits, MemoryNeeds, joined

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

KNOWN_ACCURACY, MEASURED_ACCURACY = 1.0, 0.992
FOLLOWS = 0.95
"""The least correlation of what is predicted with the optimum, second by second."""


@dataclass(frozen=True)
class Found:
    """How complete a pair of runs was: with all known, and with all measured."""

    known: Run
    measured: Run

    @property
    def complete(self) -> bool:
        """Whether both are as complete as the paper's."""
        known, measured = self.known.accuracy, self.measured.accuracy
        return known == KNOWN_ACCURACY and measured >= MEASURED_ACCURACY

    def columns(self) -> list[pl.Expr]:
        """For a table of points."""
        return [
            pl.lit(self.known.accuracy).alias("accuracy_known"),
            pl.lit(self.measured.accuracy).alias("accuracy_measured"),
            pl.lit(estimated(self.measured)).alias("accuracy_estimated"),
        ]


def estimated(run: Run) -> float:
    """The share of results that the joins of a run thought they had found."""
    return float(np.prod([float(str(about["accuracy"])) for about in run.abouts]))


def curves(run: Run, join: int, name: str) -> pl.DataFrame:
    """What a join held and predicted in each second, by input."""
    own = run.per_second().filter(pl.col("join") == join)
    return own.select(
        pl.col("input", "second"),
        pl.col("predicted_rows").alias(f"predicted_{name}_rows"),
        pl.col("held_rows").alias(f"held_{name}_rows"),
    )


def optimum(truth: Truth, seconds: int, more: dict[str, Places]) -> pl.DataFrame:
    """The least buffer of each second by input, and other figures of the same shape."""
    best = truth.optimal(seconds)
    inputs, count = range(best.shape[1]), best.shape[0]
    return pl.concat(
        pl.DataFrame(
            {
                "input": [port] * count,
                "name": [truth.logs[port].name] * count,
                "second": range(count),
                "optimal_rows": best[:, port],
            }
            | {name: values[:, port] for name, values in more.items()}
        )
        for port in inputs
    ).cast({"second": pl.Int64})


def by_second(truth: Truth, values: NDArray[np.int64], seconds: int) -> Places:
    """The greatest value of each second, of values that go with results."""
    most = np.zeros((seconds, values.shape[1]), np.int64)
    np.maximum.at(most, np.minimum(truth.at.astype(np.int64), seconds - 1), values)
    return most


def points(found: Found, join: int, more: dict[str, Places]) -> pl.DataFrame:
    """Everything about one join of a query, second by second."""
    query = found.known.query
    table = optimum(query.joins[join], query.seconds, more)
    for run, name in ((found.known, "known"), (found.measured, "measured")):
        table = table.join(curves(run, join, name), on=["input", "second"], how="left")
    seed = pl.lit(query.streams[0].seed // 100).alias("seed")
    return table.select(seed, pl.all(), *found.columns()).sort("input", "second")


# ---- WO-F5 ---------------------------------------------------------------------------------


def _model(query: Query) -> dict[str, Places]:
    """Equation 8 with all known, by second."""
    truth = query.joins[0]
    known = truth.predicted([each.disorder for each in query.streams])
    return {"model_rows": by_second(truth, known, query.seconds)}


def judge_one(tables: Sequence[pl.DataFrame]) -> Outcome:
    """Buffers of one join of three streams."""
    table = pl.concat(tables)
    shown = tables[0]
    least, by_known = (
        min(
            _follows(each.filter(pl.col("name") == name), f"predicted_{how}_rows")
            for each in tables
            for name in ("S1", "S3")
        )
        for how in ("measured", "known")
    )
    known = [float(each["accuracy_known"][0]) for each in tables]
    measured = [float(each["accuracy_measured"][0]) for each in tables]
    thought = [float(each["accuracy_estimated"][0]) for each in tables]
    below = table.filter(pl.col("model_rows") < pl.col("optimal_rows")).height
    faults = [
        text
        for failed, text in (
            (min(known) < KNOWN_ACCURACY, "results are missing though all is known"),
            (min(measured) < MEASURED_ACCURACY, "too many results are missing where measured"),
            (below > 0, f"the model is below the optimum in {below} seconds"),
            (by_known < FOLLOWS, f"with all known they correlate by {by_known:.2f} only"),
            (
                least < FOLLOWS,
                f"where measured they correlate by {least:.2f} only: a factor measured over few"
                " rows is thought larger than it is, and S2 sends few while it is slowed",
            ),
        )
        if failed
    ]
    sums = {
        name: float(shown.filter(pl.col("optimal_rows") > 0)[name].mean())  # type: ignore[arg-type]
        for name in ("optimal_rows", "predicted_measured_rows", "held_measured_rows")
    }
    ours = (
        f"accuracy {_percents(known)} known, {_percents(measured)} measured (estimated"
        f" {_percents(thought)} by the join itself); predicted and optimal correlate by ≥"
        f" {by_known:.3f} known, {least:.3f} measured (S1, S3); on average optimal"
        f" {sums['optimal_rows']:,.0f} rows an input,"
        f" predicted {sums['predicted_measured_rows']:,.0f}, held"
        f" {sums['held_measured_rows']:,.0f}"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        names = shown["name"].unique(maintain_order=True).to_list()
        for axes, name in zip(figure.subplots(len(names), 1, sharex=True), names, strict=True):
            _draw(axes, shown.filter(pl.col("name") == name), name)
        axes.set_xlabel("time [s]")
        figure.axes[1].legend(ncols=2, loc="upper right")
        tell(
            figure,
            f"A join without a window finds {min(measured):.2%} of results; the buffers it predicts"
            f" correlate with the optimal ones by {least:.3f} or more (S1, S3)",
            "predicted buffers follow the optimal ones; 100 % of results with known parameters,"
            " 99.6 % with measured ones",
        )

    return Outcome(ours, not faults, table, plot)


def _follows(own: pl.DataFrame, predicted: str) -> float:
    """The correlation of prediction and optimum over seconds with both."""
    both = own.filter(pl.col("optimal_rows") > 0).drop_nulls(predicted)
    return float(np.corrcoef(both["optimal_rows"], both[predicted])[0, 1])


def _percents(shares: Sequence[float]) -> str:
    low, high = min(shares), max(shares)
    return f"{low:.2%}" if f"{low:.2%}" == f"{high:.2%}" else f"{low:.2%} … {high:.2%}"


def _draw(axes: Axes, own: pl.DataFrame, name: str) -> None:
    seconds = own["second"].to_list()
    for column, line, colour, label in (
        ("predicted_known_rows", "-", SKY, "predicted, all known"),
        ("predicted_measured_rows", "--", ORANGE, "predicted, all measured"),
        ("held_measured_rows", ":", COLOURS["plain"], "held, all measured"),
    ):
        axes.plot(seconds, own[column].to_list(), line, color=colour, label=label)
    best = own.filter(pl.col("optimal_rows") > 0)
    optimal = best["second"].to_list(), best["optimal_rows"].to_list()
    axes.plot(*optimal, color=BLACK, lw=1.2, label="optimal")
    axes.set_ylabel(f"buffer of {name} [rows]")
    axes.set_ylim(bottom=0)


def run_f5(quick: bool) -> Outcome:
    """Buffers of Query 1."""
    size, tables = scale(quick), []
    for setting in size.settings:
        found = Found(*(size.run(1, setting, known=known) for known in (True, False)))
        tables.append(points(found, 0, _model(query_1(setting))))
    return judge_one(tables)


# ---- WO-F6 ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bound:
    """What Theorem 3.1 says of the results of a join, and what they are."""

    name: str
    traits: InputTraits
    disorder: int
    rate: float

    @property
    def holds(self) -> bool:
        """Whether results are within."""
        return self.disorder <= self.traits.disorder and self.rate <= self.traits.rate


def bounds(query: Query) -> list[Bound]:
    """The inputs of the last join, by those of the first ones."""
    found = []
    for at, log in enumerate(query.joins[-1].logs):
        own = range(3 * at, 3 * at + 3)
        traits = joined([query.streams[each].traits(query.logs[each].table) for each in own])
        rate = len(log.keys) / query.seconds
        found.append(Bound(log.name, traits, scrambling_factor(log.keys), rate))
    return found


def bound_rows(query: Query, found: Sequence[Bound]) -> Places:
    """Equation 8 with the bounds of Theorem 3.1, by second, with the greatest lags of the second.

    The lag is the one of the moment, so the rows that came since the row it is about are in it.
    """
    truth, traits = query.joins[-1], tuple(each.traits for each in found)
    ahead = np.zeros((len(truth.at), 2), np.int64)
    for one, (own, mate) in enumerate((truth.logs, truth.logs[::-1])):
        came, other_came = own.came(truth.at), mate.came_before(truth.at)
        ahead[:, one] = lags(own.continued(mate), mate.keys, came, other_came)
    best = np.full((query.seconds, 2), np.iinfo(np.int64).min)
    np.maximum.at(best, np.minimum(truth.at.astype(np.int64), query.seconds - 1), ahead)
    rows = np.zeros_like(best)
    for second in np.unique(np.minimum(truth.at.astype(np.int64), query.seconds - 1)):
        one, two = best[second].tolist()
        needs = MemoryNeeds(traits, ((0.0, one), (two, 0.0)))
        rows[second] = [needs.buffer(0), needs.buffer(1)]
    return rows


def judge_joined(tables: Sequence[pl.DataFrame], found: Sequence[Sequence[Bound]]) -> Outcome:
    """Buffers of a join of two joins."""
    table, shown = pl.concat(tables), tables[0]
    known = [float(each["accuracy_known"][0]) for each in tables]
    measured = [float(each["accuracy_measured"][0]) for each in tables]
    some = table.filter(pl.col("optimal_rows") > 0)
    below = some.filter(pl.col("bound_rows") < pl.col("optimal_rows")).height
    broken = [each.name for query in found for each in query if not each.holds]
    faults = [
        text
        for failed, text in (
            (min(known) < KNOWN_ACCURACY, "results are missing though all is known"),
            (min(measured) < MEASURED_ACCURACY, "too many results are missing where measured"),
            (below > 0, f"the bound is below the optimum in {below} seconds"),
            (bool(broken), f"Theorem 3.1 is broken by {', '.join(broken)}"),
        )
        if failed
    ]
    spelled = "; ".join(
        f"{each.name}: scrambled by {each.disorder:,} (bound {each.traits.disorder:,}),"
        f" {each.rate:.0f} rows/s (bound {each.traits.rate:.0f})"
        for each in found[0]
    )
    means = some.group_by("name", maintain_order=True).agg(
        (pl.col("bound_rows").mean() / pl.col("optimal_rows").mean()).alias("times"),
        (pl.col("held_measured_rows").mean() / pl.col("optimal_rows").mean()).alias("held"),
    )
    loose = ", ".join(
        f"{times:.1f} × for {name} (held {held:.2f} ×)" for name, times, held in means.rows()
    )
    ours = (
        f"accuracy {_percents(known)} known, {_percents(measured)} measured; the bound is never"
        f" below the optimum, on average {loose}; {spelled}"
        if not below
        else f"accuracy {_percents(known)} known, {_percents(measured)} measured; {spelled}"
    )
    ours += f" DOES NOT HOLD: {'; '.join(faults)}" if faults else ""

    def plot(figure: Figure) -> None:
        names = shown["name"].unique(maintain_order=True).to_list()
        for axes, name in zip(figure.subplots(len(names), 1, sharex=True), names, strict=True):
            own = shown.filter(pl.col("name") == name)
            sure = own.filter(pl.col("optimal_rows") > 0)
            axes.plot(
                sure["second"].to_list(),
                sure["bound_rows"].to_list(),
                "--",
                color=PAPER,
                label="paper: bound by Theorem 3.1",
            )
            _draw(axes, own, name)
        axes.set_xlabel("time [s]")
        figure.axes[0].legend(ncols=2, loc="upper right")
        tell(
            figure,
            f"In times the optimal buffer, the bound is {loose}; it is below the optimum at"
            f" {below} of {some.height} points",
            "the bound holds, but the margin between predicted and optimal is much wider than for"
            " Query 1",
        )

    return Outcome(ours, not faults, table, plot)


def run_f6(quick: bool) -> Outcome:
    """Buffers of the last join of Query 2."""
    size, tables, all_bounds = scale(quick), [], []
    for setting in size.settings[:1]:
        query = query_2(setting)
        found = bounds(query)
        runs = Found(*(size.run(2, setting, known=known) for known in (True, False)))
        tables.append(points(runs, 2, {"bound_rows": bound_rows(query, found)}))
        all_bounds.append(found)
    return judge_joined(tables, all_bounds)


F5 = Claim(
    "WO-F5",
    "buffers of a join of three scrambled streams, one slowed, one bursting",
    "predicted buffers follow the optimal ones; 100 % of results with known parameters, 99.6 % when"
    " measured at run time (99.2–99.6 % in all runs)",
    f"accuracy 100 % known, ≥ {MEASURED_ACCURACY:.1%} measured; the model never below the optimum;"
    f" predicted and optimal buffers of S1 and S3 correlate by ≥ {FOLLOWS}",
    run_f5,
)
F6 = Claim(
    "WO-F6",
    "buffers of a join of two joins, one of them slowed",
    "the bound of Theorem 3.1 holds but is loose; 99.2–99.6 % of results",
    f"accuracy 100 % known, ≥ {MEASURED_ACCURACY:.1%} measured; bound never below the optimum",
    run_f6,
)
