"""All plots of claims share one palette, the finding above, and the paper's statement below.

A plot is read by itself. Its title has the measured figure, true whether the claim holds or not;
every axis has a name, with the unit in brackets if it has numbers; the figures that the paper
expects are drawn in grey, or stand in the note. A strategy has the same colour in all plots. People
who see few colours can distinguish these, and no two lines differ in colour alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from lowwater.claims.claim import Plot

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BLUE, RED, GREEN, ORANGE = "#0072b2", "#d55e00", "#009e73", "#e69f00"
PINK, SKY, BLACK, GREY = "#cc79a7", "#56b4e9", "#222222", "#8a8a8a"
PAPER = "#555555"
"""The colour of figures that the paper expects, in dashes or dots; no measured figure has it."""
COLOURS: dict[str, str] = {
    "iop": RED,
    "oop": BLUE,
    "A no timestamps": RED,
    "B heartbeats": ORANGE,
    "C on demand": BLUE,
    "D latent": GREEN,
    "sync-filter": RED,
    "filter-order": BLUE,
    "adaptive": GREEN,
    "unordered": ORANGE,
    "fixed": RED,
    "one size": ORANGE,
    "plain": BLUE,
    "msf": PINK,
    "dbf": GREEN,
    "hybrid": BLACK,
    "append": GREY,
    "shedding": ORANGE,
    "fifo": RED,
    "in-place": BLUE,
    "linecutting": PINK,
    "rare-first": ORANGE,
    "auto": GREEN,
    "lazy": SKY,
    "eager": BLACK,
    "paging": BLUE,
    "naive": RED,
}
"""Colours, by the strategy or plan that is drawn."""
SIZE = (9.0, 5.2)
"""Size of a figure in inches. Shown 900 pixels wide, a point of a font is 1.4 pixels."""
DOTS = 130
"""Pixels an inch: sharp also on screens that show a figure in more than 900 pixels."""
TITLE_LETTERS, NOTE_LETTERS = 98, 125
"""Letters that fit in a line of the title and of the note."""
LONGEST_WORD = 14
GLUED = re.compile(r"(?<=[\d±→=]) | (?=[=→×])")
"""Spaces at which no line ends: between a number and its unit, and around signs."""
STYLE: dict[Any, Any] = {
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "figure.titlesize": 12,
    "grid.alpha": 0.3,
    "legend.fontsize": 9,
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}
Which = Literal["x", "y"]


def drawn(plot: Plot, path: Path | None = None) -> Figure:
    """Draw a plot on a figure of its own, with no display; ``path``: also into this PNG file."""
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    with rc_context(STYLE):
        figure = Figure(figsize=SIZE, layout="constrained")
        FigureCanvasAgg(figure)
        plot(figure)
        if path is None:
            figure.draw_without_rendering()
        else:
            figure.savefig(path, dpi=DOTS)
    return figure


def caption(figure: Figure, finding: str, paper: str) -> None:
    """Write the finding above all axes and the paper's statement below them."""
    title, note = _lines(finding, TITLE_LETTERS), _lines(f"Paper: {paper}", NOTE_LETTERS)
    figure.suptitle(title, x=0.01, ha="left")
    figure.supxlabel(note, x=0.01, ha="left", color=PAPER, fontsize=9.5)


def _lines(text: str, letters: int) -> str:
    """Break a text into lines of about equal length, as few as possible."""
    lines = -(-len(text) // letters)
    even = letters if lines == 1 else min(letters, len(text) // lines + LONGEST_WORD)
    return fill(GLUED.sub("\u00a0", text), even, break_on_hyphens=False)


def caption_of(figure: Figure) -> str:
    """Return the finding of a figure and the paper's statement, in one line."""
    return " ".join(f"{figure.get_suptitle()}. {figure.get_supxlabel()}".split())


def brief(value: float) -> str:
    """Write a number in three digits, or whole with thousands apart."""
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


# ---- lines ---------------------------------------------------------------------------------


def curves(axes: Axes, table: pl.DataFrame, x: str, what: str, scale: float = 1.0) -> None:
    """Draw the columns ``iop_<what>`` and ``oop_<what>``, divided by ``scale``, over ``x``."""
    for name, style, label in (
        ("iop", "o-", "in-order (IOP)"),
        ("oop", "s-", "out-of-order (OOP)"),
    ):
        values = table[f"{name}_{what}"] / scale
        axes.plot(table[x].to_list(), values.to_list(), style, color=COLOURS[name], label=label)
    axes.set_ylim(bottom=0)


def logarithmic(axes: Axes, which: Which) -> None:
    """Make an axis logarithmic, with numbers as people write them."""
    from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator  # noqa: PLC0415

    if which == "x":
        axes.set_xscale("log")
    else:
        axes.set_yscale("log")
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    axis = axes.xaxis if which == "x" else axes.yaxis
    steps = _steps(high / low)
    places = [step * 10.0**power for power in range(-9, 10) for step in steps]
    axis.set_major_locator(FixedLocator([place for place in places if low <= place <= high]))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axis.set_minor_locator(NullLocator())


def _steps(span: float) -> Sequence[float]:
    """Return the numbers shown of each decade: the more decades, the fewer."""
    if span < 8:
        return (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8)
    if span < 40:
        return (1, 2, 3, 5)
    return (1, 2, 5) if span < 1_000 else (1,)


# ---- bars ----------------------------------------------------------------------------------


def bars(
    axes: Axes,
    places: Sequence[float],
    heights: Sequence[float],
    colours: str | Sequence[str],
    spell: Callable[[float], str],
    *,
    width: float = 0.6,
    label: str = "",
    inside: bool = False,
) -> None:
    """Draw bars with the height of each written above it, or at its foot if ``inside``."""
    axes.bar(places, heights, width, color=colours, label=label)
    look: dict[str, Any] = {"ha": "center", "va": "bottom", "fontsize": 9}
    look |= {"color": "white"} if inside else {"bbox": {"fc": "white", "ec": "none", "pad": 0.5}}
    for place, height in zip(places, heights, strict=True):
        foot = (place, 0 if inside else height)
        axes.annotate(spell(height), foot, (0, 3), textcoords="offset points", **look)
    axes.grid(visible=False, axis="x")


def keys(axes: Axes, looks: dict[str, str]) -> None:
    """Add a legend with further entries; ``looks`` maps their texts to their colours."""
    from matplotlib.patches import Patch  # noqa: PLC0415

    found, _ = axes.get_legend_handles_labels()
    patches = [Patch(color=colour, label=label) for label, colour in looks.items()]
    axes.legend(handles=[*patches, *found])
