"""What is held of rows until their windows are answered: partials by pane or window, or the rows.

The forms may be mixed: each row is in exactly one of them, and what is asked for is put together
from all. A state slice holds one pane (or window), or several neighbouring ones where rows are
sparse.

Invariant: partials given for a window are those of all rows in it that were put and not taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import polars as pl

from lowwater.operators.aggregates import Aggregate
from lowwater.operators.keeping import Form, Keeping
from lowwater.operators.partials import Partials
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore
from lowwater.stream.element import END_OF_TIME, MARK, Chunk
from lowwater.stream.window import WindowSpec

START = "window_start"
PANE = "__pane"


class WindowState:
    """The partials of open windows, by group."""

    def __init__(
        self,
        store: ChunkStore,
        ticks: pl.Expr,
        window: WindowSpec,
        groups: Sequence[str],
        aggregates: Sequence[Aggregate],
        keep: Form | None,
    ):
        self._window, self._ticks = window, ticks
        pane = (ticks // window.pane * window.pane).alias(PANE)
        self._panes = Partials(store, pane, groups, aggregates)
        self._windows = Partials(store, pl.col(START), groups, aggregates, "window-")
        self._slicing = Slicing(window.pane)
        self.keeping = Keeping(window, keep)
        self._by_window = False  # whatever is chosen: groups progress one by one

    # ---- in --------------------------------------------------------------------------------

    def put(self, rows: Chunk) -> None:
        """Take rows in."""
        rows = self._in_windows(rows)
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
            self.keeping.came(rows.height, size)
        else:
            self._measure(rows)
            self._panes.put(rows, self._slice(PANE))

    @property
    def form(self) -> Form:
        """The form in which rows are kept now."""
        return "windows" if self._by_window else self.keeping.form

    def _measure(self, rows: Chunk) -> None:
        if self.keeping.measures:
            self.keeping.came(rows.height, self._panes.size_as_rows(rows))

    def put_partials(self, partials: Chunk) -> None:
        """Take partials by pane in."""
        if not partials.height:
            return
        panes = partials[PANE]
        self._observe(partials.height, int(panes.min()), int(panes.max()))  # type: ignore[arg-type]
        if self.form == "windows":
            self._windows.put_partials(self._spread(partials), self._slice(START))
        else:
            self._panes.put_partials(partials, self._slice(PANE))

    def reduced(self, rows: Chunk) -> Chunk:
        """Rows as partials by pane; nothing is put."""
        return self._panes.reduced(self._in_windows(rows))

    def _in_windows(self, rows: Chunk) -> Chunk:
        """Rows between two windows are in none."""
        window = self._window
        if window.slide <= window.range:
            return rows
        return rows.filter(self._ticks % window.slide < window.range)

    def _observe(self, rows: int, low: int, high: int) -> None:
        if self._slicing.observe(rows, low, high):
            self._panes.regroup(self._slice(PANE))
            self._windows.regroup(self._slice(START))

    def _slice(self, place: str) -> pl.Expr:
        return pl.col(place) // self._slicing.width

    def _spread(self, partials: Chunk, first: int | None = None, until: int | None = None) -> Chunk:
        """Each partial by pane once for every window that its pane is in, between two starts."""
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

    # ---- out -------------------------------------------------------------------------------

    def between(self, first: int, until: int) -> Chunk | None:
        """Partials by window start of all windows that start from ``first`` to before ``until``."""
        window, width = self._window, self._slicing.width
        limit = until - window.slide + window.range  # the end of the last of them
        found: list[Chunk] = []
        for slice_, held in self._read(self._panes, first, limit):
            inside = _inside(held, PANE, slice_ * width, width, first, limit)
            found.append(self._spread(inside, first, until))
        for slice_, held in self._read(self._windows, first, until):
            found.append(_inside(held, START, slice_ * width, width, first, until))
        some = [chunk for chunk in found if chunk.height]
        return pl.concat(some) if some else None

    def _read(self, held: Partials, low: int, high: int) -> Iterator[tuple[int, Chunk]]:
        width = self._slicing.width
        for slice_ in held.slices(low // width, -(-high // width)):
            partials = held.get(slice_)
            assert partials is not None
            yield slice_, partials

    def held(self, start: int) -> int:
        """About how many partials a window has."""
        width, window = self._slicing.width, self._window
        panes = self._panes.rows_in(start // width, -(-(start + window.range) // width))
        return panes + self._windows.rows_in(start // width, start // width + 1)

    def release(self, until: int) -> None:
        """Forget what only windows that start before ``until`` need."""
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
        """The windows between two starts that have rows, in order."""
        found: set[int] = set()
        width, window = self._slicing.width, self._window
        for held, place in ((self._panes, PANE), (self._windows, START)):
            for slice_ in held.slices(first // width, -(-(until + window.range) // width)):
                partials = held.get(slice_)
                assert partials is not None
                for at in partials[place].unique().to_list():
                    found.update([at] if place == START else window.starts_covering(at))
        return sorted(start for start in found if first <= start < until)

    def earliest(self, first: int) -> int | None:
        """The earliest window with rows that starts at or after ``first``."""
        best = END_OF_TIME
        for held, place in ((self._panes, PANE), (self._windows, START)):
            for slice_ in held.slices(low=first // self._slicing.width):
                partials = held.get(slice_)
                assert partials is not None
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
        """Take the partials of windows whose end their group's mark has reached.

        From then on partials are kept by window, so that a group's window can be taken alone.
        """
        if not self._by_window and not self._window.tumbling:
            self._by_window = True
            self._panes_to_windows(first)
        place, held = (PANE, self._panes) if self._window.tumbling else (START, self._windows)
        done: list[Chunk] = []
        furthest = int(marks[MARK].max()) - self._window.range  # type: ignore[arg-type]
        for slice_, partials in self._read(held, first, furthest + 1):
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
        """Fold partials."""
        self._panes.settle()
        self._windows.settle()

    def snapshot(self) -> dict[str, Any]:
        """The form and the width of a slice."""
        return {
            "slicing": self._slicing.snapshot(),
            "panes": self._panes.snapshot(),
            "windows": self._windows.snapshot(),
            "keeping": self.keeping.snapshot(),
            "by_window": self._by_window,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        self._slicing.restore(saved["slicing"])
        self._panes.restore(saved["panes"])
        self._windows.restore(saved["windows"])
        self.keeping.restore(saved["keeping"])
        self._by_window = saved["by_window"]


def _inside(partials: Chunk, place: str, begin: int, width: int, low: int, high: int) -> Chunk:
    """The partials of a slice from one place to before another."""
    if begin >= low and begin + width <= high:
        return partials
    return partials.filter(pl.col(place).is_between(low, high, closed="left"))
