"""The state of open windows, in the smallest of three forms (OOP §5.5).

``panes``: one partial for each pane and group; the panes of a window are merged when it closes.
``windows``: one partial for each window and group. ``rows``: the rows themselves, reduced when a
window closes. The smallest form depends on the data: on the number of rows of a window and group,
on the size of a partial, on the number of panes of a window that a group is in. These are measured
when windows close. A change of form affects new rows only. A slice of the state holds one pane (or
window), or several neighbouring ones if rows are sparse.

Invariant: each row is in exactly one form. The partials returned for a window are those of all its
rows that were put and not taken, whatever their form.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import polars as pl

from lowwater.errors import OptionError
from lowwater.operators.aggregates import Aggregate
from lowwater.operators.partials import Partials
from lowwater.operators.waiting import Release
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME, MARK, Chunk
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec

START = "window_start"
PANE = "__pane"
Form = Literal["panes", "windows", "rows"]
FORMS: tuple[Form, ...] = get_args(Form)
BETTER = 1.5
"""Factor by which another form must be smaller before it is chosen."""
SEEN_ROWS, SEEN_ANSWERS = 4_096, 256
"""Numbers of rows and of answers that are measured before the form is chosen again."""


@dataclass(frozen=True)
class WindowGrouping:
    """The windows and groups by which rows are aggregated, and the aggregates."""

    time: str
    """The column by which rows are in windows."""
    domain: TimeDomain
    """The domain of that column."""
    window: WindowSpec
    groups: Sequence[str]
    """The columns that name a group."""
    aggregates: Sequence[Aggregate]
    by: Sequence[str] = ()
    """The columns that name a group with promises of its own; empty if there are none."""

    @property
    def ticks(self) -> pl.Expr:
        """The expression of a row's time, in ticks."""
        return self.domain.to_ticks(pl.col(self.time))

    @property
    def pane(self) -> pl.Expr:
        """The expression of the start of a row's pane, in ticks."""
        return (self.ticks // self.window.pane * self.window.pane).alias(PANE)

    def in_windows(self, rows: Chunk) -> Chunk:
        """Return the rows that are in a window: there may be gaps between windows."""
        window = self.window
        if window.slide <= window.range:
            return rows
        return rows.filter(self.ticks % window.slide < window.range)

    def releases(self) -> list[Release]:
        """Return the marks that release rows of single groups: the ends of their windows."""
        window, step = self.window, self.window.slide
        if not self.by:
            return []
        ends = (1, window.range, step, window.range % step)
        return [Release(0, self.ticks, tuple(self.by), self.time, *ends)]


class WindowState:
    """The rows of open windows, or their partials by group.

    ``keep`` is the form of the state, None to choose it.
    """

    def __init__(self, store: ChunkStore, grouping: WindowGrouping, keep: Form | None):
        self._grouping, self._window, self._ticks = grouping, grouping.window, grouping.ticks
        groups, aggregates, window = grouping.groups, grouping.aggregates, grouping.window
        self._panes = Partials(store, grouping.pane, groups, aggregates)
        self._windows = Partials(store, pl.col(START), groups, aggregates, "window-")
        self._slicing = Slicing(window.pane)
        self.choice = FormChoice(window, keep)
        self._by_window = False  # true from the first promise on single groups

    # ---- putting ---------------------------------------------------------------------------

    def put(self, rows: Chunk) -> None:
        """Add rows in the present form."""
        rows = self._grouping.in_windows(rows)
        if not rows.height:
            return
        form = self.form
        if form == "windows":
            self._measure(rows)
            self.put_partials(self._panes.reduced(rows))
            return
        low, high = rows.select(self._ticks.min().alias("l"), self._ticks.max().alias("h")).row(0)
        self._observe(rows.height, low, high)
        if form == "rows":
            size = self._panes.buffer(rows, self._slice(PANE))
            self.choice.add_rows(rows.height, size)
        else:
            self._measure(rows)
            self._panes.put(rows, self._slice(PANE))

    @property
    def form(self) -> Form:
        """The form in which new rows are kept."""
        return "windows" if self._by_window else self.choice.form

    def _measure(self, rows: Chunk) -> None:
        if self.choice.measures:
            self.choice.add_rows(rows.height, self._panes.size_as_rows(rows))

    def put_partials(self, partials: Chunk) -> None:
        """Add partials by pane."""
        if not partials.height:
            return
        panes = partials[PANE]
        self._observe(partials.height, int(panes.min()), int(panes.max()))  # type: ignore[arg-type]
        if self.form == "windows":
            self._windows.put_partials(self._spread(partials), self._slice(START))
        else:
            self._panes.put_partials(partials, self._slice(PANE))

    def reduced(self, rows: Chunk) -> Chunk:
        """Return rows as partials by pane; nothing is stored."""
        return self._panes.reduced(self._grouping.in_windows(rows))

    def _observe(self, rows: int, low: int, high: int) -> None:
        if self._slicing.observe(rows, low, high):
            self._panes.regroup(self._slice(PANE))
            self._windows.regroup(self._slice(START))

    def _slice(self, place: str) -> pl.Expr:
        return pl.col(place) // self._slicing.width

    def _spread(self, partials: Chunk, first: int | None = None, until: int | None = None) -> Chunk:
        """Return each partial once for every window that its pane is in, by window start.

        Only windows that start from ``first`` to before ``until`` are returned.
        """
        window = self._window
        if window.tumbling:
            return partials.rename({PANE: START})
        pane = pl.col(PANE)
        low = ((pane - window.range) // window.slide + 1) * window.slide
        high = pane // window.slide * window.slide
        if first is not None:
            low = pl.max_horizontal(low, pl.lit(first))
        if until is not None:
            high = pl.min_horizontal(high, pl.lit(until - window.slide))
        spread = partials.with_columns(pl.int_ranges(low, high + 1, window.slide).alias(START))
        return spread.explode(START).drop_nulls(START).select(START, *partials.columns[1:])

    # ---- reading ---------------------------------------------------------------------------

    def between(self, first: int, until: int) -> Chunk | None:
        """Return the partials of windows that start from ``first`` to before ``until``."""
        window, width = self._window, self._slicing.width
        limit = until - window.slide + window.range  # the end of the last of them
        found: list[Chunk] = []
        for slice_, held in self._panes.items(first // width, -(-limit // width)):
            inside = _inside(held, PANE, slice_ * width, width, first, limit)
            found.append(self._spread(inside, first, until))
        for slice_, held in self._windows.items(first // width, -(-until // width)):
            found.append(_inside(held, START, slice_ * width, width, first, until))
        some = [chunk for chunk in found if chunk.height]
        return pl.concat(some) if some else None

    def is_single(self, first: int, until: int) -> bool:
        """Return true if :meth:`between` returns one partial for each window and group."""
        width = self._slicing.width
        low, high = first // width, -(-(until - self._window.slide + self._window.range) // width)
        panes, windows = (bool(held.slices(low, high)) for held in (self._panes, self._windows))
        if panes:
            return self._window.tumbling and not windows and self._panes.is_folded(low, high)
        return self._windows.is_folded(low, high)

    @property
    def index_bytes(self) -> int:
        """The size of the indexes by which partials are found, beside the store."""
        return self._panes.index_bytes + self._windows.index_bytes

    def held(self, start: int) -> int:
        """Return the number of partials of a window, roughly."""
        width, window = self._slicing.width, self._window
        panes = self._panes.rows_in(start // width, -(-(start + window.range) // width))
        return panes + self._windows.rows_in(start // width, start // width + 1)

    def release(self, until: int) -> None:
        """Drop the rows and partials that only windows starting before ``until`` need."""
        width = self._slicing.width
        for held, place in ((self._panes, PANE), (self._windows, START)):
            for slice_ in held.slices(high=-(-until // width)):
                if (slice_ + 1) * width <= until:
                    held.drop(slice_)
                else:
                    partials = held.get(slice_)
                    assert partials is not None
                    held.replace(slice_, partials.filter(pl.col(place) >= until))

    def starts(self, first: int, until: int) -> list[int]:
        """Return the starts of windows with rows from ``first`` to before ``until``, in order."""
        found: set[int] = set()
        width, window = self._slicing.width, self._window
        for held, place in ((self._panes, PANE), (self._windows, START)):
            for _, partials in held.items(first // width, -(-(until + window.range) // width)):
                for at in partials[place].unique().to_list():
                    found.update([at] if place == START else window.starts_covering(at))
        return sorted(start for start in found if first <= start < until)

    def earliest(self, first: int) -> int | None:
        """Return the start of the earliest window with rows at or after ``first``; None if none."""
        best = END_OF_TIME
        for held, place in ((self._panes, PANE), (self._windows, START)):
            for _, partials in held.items(first // self._slicing.width):
                least = partials.filter(pl.col(place) >= first)[place].min()
                if least is None:
                    continue
                at = int(least)  # type: ignore[arg-type]
                starts = [at] if place == START else self._window.starts_covering(at)
                open_ = [start for start in starts if start >= first]
                if open_:
                    best = min(best, open_[0])
                    break
        return best if best < END_OF_TIME else None

    # ---- group by group --------------------------------------------------------------------

    def take_passed(self, marks: Chunk, keys: Sequence[str], first: int) -> Chunk | None:
        """Remove and return the partials of windows whose end their group's mark has reached.

        ``marks`` has the mark of each group, named by ``keys``; ``first`` is the first open window.
        From then on partials are kept by window, so that a window of one group can be removed.
        """
        if not self._by_window and not self._window.tumbling:
            self._by_window = True
            self._panes_to_windows(first)
        place, held = (PANE, self._panes) if self._window.tumbling else (START, self._windows)
        done: list[Chunk] = []
        furthest = int(marks[MARK].max()) - self._window.range  # type: ignore[arg-type]
        width = self._slicing.width
        for slice_, partials in held.items(first // width, -(-(furthest + 1) // width)):
            marked = partials.join(marks, on=keys, how="left", nulls_equal=True)
            passed = (pl.col(place) + self._window.range <= pl.col(MARK)).fill_null(False)
            passed &= pl.col(place) >= first
            rows = marked.filter(passed).drop(MARK)
            if rows.height:
                done.append(rows.rename({place: START}))
                held.replace(slice_, marked.filter(~passed).drop(MARK))
        return pl.concat(done) if done else None

    def _panes_to_windows(self, first: int) -> None:
        for slice_ in self._panes.slices():
            partials = self._panes.take(slice_)
            assert partials is not None
            self._windows.put_partials(self._spread(partials, first), self._slice(START))

    # ---- saving ----------------------------------------------------------------------------

    def settle(self) -> None:
        """Merge partials, before an engine saves the state."""
        self._panes.settle()
        self._windows.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the form and the width of a slice."""
        return {
            "slicing": self._slicing.snapshot(),
            "panes": self._panes.snapshot(),
            "windows": self._windows.snapshot(),
            "keeping": self.choice.snapshot(),
            "by_window": self._by_window,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._slicing.restore(saved["slicing"])
        self._panes.restore(saved["panes"])
        self._windows.restore(saved["windows"])
        self.choice.restore(saved["keeping"])
        self._by_window = saved["by_window"]


def _inside(partials: Chunk, place: str, begin: int, width: int, low: int, high: int) -> Chunk:
    """Return the partials of a slice whose ``place`` is from ``low`` to before ``high``."""
    if begin >= low and begin + width <= high:
        return partials
    return partials.filter(pl.col(place).is_between(low, high, closed="left"))


# ---- the choice of a form -----------------------------------------------------------------------


def check_form(given: object) -> Form | None:
    """Return a user's ``keep=``, checked: a form, or None to have it chosen."""
    if given is None or given in FORMS:
        return given
    raise OptionError(f"keep= is 'panes', 'windows' or 'rows', or None to choose, not {given!r}")


def first_form(window: WindowSpec) -> Form:
    """Return the form to begin with, by the window alone.

    If a window has many more panes than a row has windows, partials by pane would be more than
    partials by window.
    """
    return "windows" if window.panes > 4 * window.overlap else "panes"


class FormChoice:
    """The form in which rows are kept; chosen by measurement unless ``given``."""

    def __init__(self, window: WindowSpec, given: Form | None):
        self._window, self._given = window, given
        self.form: Form = given or first_form(window)
        self._reset()

    def _reset(self) -> None:
        self._rows = self._row_bytes = 0
        self._answers = self._answer_bytes = self._parts = 0

    @property
    def measures(self) -> bool:
        """True if the form is chosen by measurement."""
        return self._given is None

    def add_rows(self, rows: int, size: int) -> None:
        """Count rows, and the bytes they take as rows."""
        self._rows += rows
        self._row_bytes += size

    def add_answers(self, parts: int, answers: int, size: int) -> None:
        """Count merged partials, the answers that follow from them, and the answers' bytes."""
        self._parts += parts
        self._answers += answers
        self._answer_bytes += size
        if self._rows >= SEEN_ROWS and self._answers >= SEEN_ANSWERS:
            self._choose()
            self._reset()

    def _choose(self) -> None:
        """Choose the smallest form for a window and group, if it is smaller by ``BETTER``."""
        overlap = self._window.overlap
        rows = self._rows * overlap / self._answers
        partial = self._answer_bytes / self._answers
        panes = min(rows, float(self._window.panes))
        if self.form == "panes":  # it was measured
            panes = min(panes, self._parts / self._answers)
        sizes: dict[Form, float] = {
            "panes": panes * partial / overlap,
            "windows": partial,
            "rows": rows * (self._row_bytes / self._rows) / overlap,
        }
        if self._window.tumbling:
            del sizes["windows"]  # a pane is a window
        best = min(sizes, key=lambda form: sizes[form])
        if sizes[best] * BETTER < sizes.get(self.form, partial):
            self.form = best

    def snapshot(self) -> Any:
        """Return the form and what was measured."""
        measured = (self._rows, self._row_bytes, self._parts, self._answers, self._answer_bytes)
        return self.form, measured

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        self.form, measured = saved
        self._rows, self._row_bytes, self._parts, self._answers, self._answer_bytes = measured
