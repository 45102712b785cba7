"""Whether the plot of a claim can be read by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations

from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from lowwater.claims import drawing, registry
from lowwater.claims.claim import Outcome

PALETTE = {*drawing.COLOURS.values(), drawing.PAPER, drawing.PINK, drawing.SKY, "#ffffff"}
SMALLEST = 9.0
"""Points; 12 pixels if a plot is 900 pixels wide."""


def readable(name: str, outcome: Outcome) -> str:
    """Draw what a claim measured, fail if a reader would miss something; gives the finding."""
    registry.find([name])
    figure = drawing.drawn(outcome.plot)
    missing = list(faults(figure))
    assert not missing, f"{name}: {'; '.join(missing)}"
    return " ".join(figure.get_suptitle().split())


def faults(figure: Figure) -> Iterator[str]:
    """What is missing, too much, too small, or of no colour of ours."""
    title = figure.get_suptitle()
    if not re.search(r"\d", title):
        yield f"the title has no measured figure: {title!r}"
    if re.search(r"\b(nan|inf|None)\b", title):
        yield f"the title is of nothing measured: {title!r}"
    if not re.match(r"Paper: \S+\s\S+", figure.get_supxlabel()):
        yield "nothing is said of the paper"
    legends = [each.get_legend() for each in figure.axes]
    named = {text.get_text() for legend in legends if legend for text in legend.get_texts()}
    for axes in figure.axes:
        if axes.axison:
            yield from _axis_faults(axes.xaxis, axes.get_shared_x_axes().get_siblings(axes))
            yield from _axis_faults(axes.yaxis, axes.get_shared_y_axes().get_siblings(axes))
        labels = axes.get_legend_handles_labels()[1]
        if len(labels) > 1 and not named.issuperset(labels):
            yield f"no legend has {sorted({*labels} - named)}"
        colours = {to_hex(line.get_color()) for line in axes.lines}
        colours |= {to_hex(patch.get_facecolor()) for patch in axes.patches if patch.get_fill()}
        if colours - PALETTE:
            yield f"no colours of the palette: {sorted(colours - PALETTE)}"
    yield from _text_faults(figure)


def _axis_faults(axis: Axis, siblings: list[Axes]) -> Iterator[str]:
    """An axis is named by itself or by one it shares its numbers with."""
    own = axis.axis_name
    names = [getattr(each, f"{own}axis").get_label_text() for each in siblings]
    name = next(filter(None, names), "")
    words = any(re.search("[a-z]", label.get_text()) for label in axis.get_ticklabels())
    if not name:
        yield f"an axis ({own}) has no name"
    elif not words and not re.search(r"\[.+\]", name):
        yield f"the axis {name!r} has no unit"


def _text_faults(figure: Figure) -> Iterator[str]:
    shown = [
        (each.get_text(), each.get_window_extent())
        for each in figure.findobj(Text)
        if each.get_visible() and each.get_text().strip() and _drawn(figure, each)
    ]
    small = {
        each.get_text()
        for each in figure.findobj(Text)
        if each.get_text().strip() and each.get_fontsize() < SMALLEST
    }
    if small:
        yield f"too small to read: {sorted(small)}"
    whole = figure.bbox.padded(1)
    for text, box in shown:
        if not (whole.x0 <= box.x0 and box.x1 <= whole.x1):
            yield f"{text!r} goes beyond the figure"
    for (one, box), (other, another) in combinations(shown, 2):
        if box.padded(-1).overlaps(another.padded(-1)):
            yield f"{one!r} lies over {other!r}"


def _drawn(figure: Figure, text: Text) -> bool:
    """Numbers beside an axis that are beyond its end are there and not drawn."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            ticks = axis.get_major_ticks()
            if any(text in (tick.label1, tick.label2) for tick in ticks):
                low, high = sorted(axis.get_view_interval())
                at = text.get_position()[0 if axis.axis_name == "x" else 1]
                return axes.axison and low <= at <= high
    return True
