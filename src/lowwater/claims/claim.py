"""One experiment of one paper: what it should show, how ours is run, and what came out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPERS", "Claim", "Outcome", "Plot"]

PAPERS = {"OOP": "OOP", "ETS": "ETS", "ORD": "Ordered", "WO": "WO-Join", "UP": "UpStream"}
"""The papers, by what the ids of their claims begin with."""

Plot = Callable[["Figure"], None]
"""Draws an outcome on an empty matplotlib figure (add the axes with ``figure.subplots``)."""


@dataclass(frozen=True)
class Outcome:
    """What one run of a claim measured."""

    ours: str
    """Our measured figure in one line; when it does not hold, with the reason."""
    holds: bool
    """Whether the measured figure meets the claim's criterion."""
    table: pl.DataFrame
    """Every measured point, flat columns with the unit in the name; written as CSV."""
    plot: Plot
    """Draws the table; called only when matplotlib is at hand."""


@dataclass(frozen=True)
class Claim:
    """One experiment of one paper and the run that repeats it.

    ``run(True)`` is the quick variant: smaller rates and durations, the same shape and the same
    criterion.
    """

    id: str
    """Such as ``OOP-F1``: the paper, then the experiment or section."""
    title: str
    """What is measured, in a few words."""
    paper: str
    """The figure or the shape the paper reports, in one line."""
    expects: str
    """The criterion ours must meet, in one line."""
    run: Callable[[bool], Outcome]
    """Runs the experiment (``quick`` or in full) and judges it."""

    @property
    def source(self) -> str:
        """The name of the paper."""
        begin, _, _ = self.id.partition("-")
        return PAPERS.get(begin, begin)
