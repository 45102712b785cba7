"""Plots that several claims share: in-order against out-of-order over what was varied."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

IOP_COLOUR, OOP_COLOUR, PAPER_COLOUR = "#b5482a", "#1f6f8b", "#555555"


def curves(axes: Axes, table: pl.DataFrame, x: str, what: str, scale: float = 1.0) -> None:
    """Draw the columns ``iop_<what>`` and ``oop_<what>``, divided by ``scale``, over ``x``."""
    for name, colour, label in (
        ("iop", IOP_COLOUR, "in-order (IOP)"),
        ("oop", OOP_COLOUR, "out-of-order (OOP)"),
    ):
        values = table[f"{name}_{what}"] / scale
        axes.plot(table[x].to_list(), values.to_list(), "o-", color=colour, label=label)
    axes.set_ylim(bottom=0)
    axes.grid(alpha=0.3)


def note(axes: Axes, text: str) -> None:
    """Say below all axes of the figure what the paper expects."""
    axes.figure.supxlabel(text, x=0.01, ha="left", color=PAPER_COLOUR, fontsize=9)


def memory_plot(
    figure: Figure, table: pl.DataFrame, x: str, *, label: str, title: str, paper: str
) -> None:
    """Peak memory of both plans over ``x``, which ``label`` names with its unit."""
    axes = figure.subplots()
    curves(axes, table, x, "bytes", 1e6)
    axes.set_xlabel(label)
    axes.set_ylabel("peak memory, state and queues [MB]")
    axes.set_title(title, loc="left", fontsize=11)
    axes.legend()
    note(axes, f"Paper: {paper}")
