"""A claim is one experiment of a paper: what it reports, how we repeat it, how ours is judged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["NOT", "PAPERS", "Claim", "Criterion", "Outcome", "Plot", "Scale", "judge"]

PAPERS = {"OOP": "OOP", "ETS": "ETS", "ORD": "Ordered", "WO": "WO-Join", "UP": "UpStream"}
"""The name of each paper, by the part of its claims' ids before the hyphen."""
NOT = "DOES NOT HOLD: "
"""The words in an outcome before the reasons why it does not hold."""

Plot = Callable[["Figure"], None]
"""Draws an outcome on an empty matplotlib figure (add the axes with ``figure.subplots``)."""
Amount = TypeVar("Amount")


@dataclass(frozen=True)
class Outcome:
    """The result of one run of a claim."""

    ours: str
    """Our measured figure in one line; when it does not hold, with the reason."""
    holds: bool
    """True if all criteria of the claim are met."""
    table: pl.DataFrame
    """Every measured point, in flat columns with the unit in the name; written as CSV."""
    plot: Plot
    """Draws the table; called only when matplotlib is installed."""


@dataclass(frozen=True)
class Criterion:
    """A condition that a claim's figures must meet."""

    check: bool
    """True if it is met."""
    text: str
    """The reason that an outcome gives if it is not met."""


def judge(ours: str, criteria: Sequence[Criterion], table: pl.DataFrame, plot: Plot) -> Outcome:
    """Return the outcome of a run: it holds if all criteria are met, else ``ours`` ends with the
    reasons. ``table`` and ``plot`` are passed on."""
    faults = [each.text for each in criteria if not each.check]
    reasons = f" {NOT}{'; '.join(faults)}" if faults else ""
    return Outcome(ours + reasons, not faults, table, plot)


@dataclass(frozen=True)
class Scale(Generic[Amount]):
    """The rates, durations and seeds of a claim, for its full and its quick variant."""

    full: Amount
    quick: Amount
    """Smaller rates and durations; the shape and the criteria are those of the full variant."""

    def of(self, quick: bool) -> Amount:
        """Return the amounts of one variant."""
        return self.quick if quick else self.full


@dataclass(frozen=True)
class Claim:
    """One experiment of one paper and the run that repeats it."""

    id: str
    """The id, such as ``OOP-F1``: the paper, then the experiment or section."""
    title: str
    """The quantity that is measured, in a few words."""
    paper: str
    """The figure or the shape the paper reports, in one line."""
    expects: str
    """The criterion ours must meet, in one line."""
    run: Callable[[bool], Outcome]
    """Runs the experiment, quick (True) or in full, and judges it."""

    @property
    def source(self) -> str:
        """The name of the paper."""
        begin, _, _ = self.id.partition("-")
        return PAPERS.get(begin, begin)
