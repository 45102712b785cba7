"""Window aggregate (WID, OOP §5.2 and A.2.2) over panes, by time or by row number.

A row is reduced once, into the pane it lies in; a window is answered from its panes when a promise
says that no row for it can come any more. A row-count window is the same thing on sequence
numbers, which the source gave the rows before any operator could reorder or drop them.

A state slice holds one pane, or several neighbouring ones where rows are sparse.

Invariant: a window is answered exactly once, when the mark reaches its end; a pane is dropped when
the last window that covers it has been answered; windows with no row are never answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.aggregates import Aggregate, finish, in_key_order, merge
from lowwater.operators.kernel import Ask, Reducing
from lowwater.operators.partials import Partials
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    MARK,
    Chunk,
    Element,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.time_domain import TimeDomain
from lowwater.stream.window import WindowSpec

START, END = "window_start", "window_end"
PANE = "__pane"


class WindowAggregate(Reducing):
    """Aggregates rows per window and group."""

    rule: ClassVar[str] = (
        "windows ending at or before the mark are answered, then told on both ends"
    )

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        window: WindowSpec,
        groups: Sequence[str],
        aggregates: Sequence[Aggregate],
    ):
        super().__init__(store)
        self._time, self._domain, self._window = time, domain, window
        self._groups, self._aggregates = list(groups), list(aggregates)
        ticks = domain.to_ticks(pl.col(time))
        self._ticks = ticks
        self._partials = Partials(
            store, (ticks // window.pane * window.pane).alias(PANE), self._groups, self._aggregates
        )
        self._slicing = Slicing(window.pane)
        self._open_from = window.first_open(BEGINNING)  # windows before this are answered
        self._mark = BEGINNING

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Reduce rows into their panes."""
        chunk = self._in_windows(chunk)
        if chunk.height:
            times = self._domain.array_of(chunk[self._time])
            self._observe(chunk.height, int(times.min()), int(times.max()))
            self._partials.put(chunk, pl.col(PANE) // self._slicing.width)
        return []

    def _in_windows(self, chunk: Chunk) -> Chunk:
        """Rows between two windows are in none."""
        window = self._window
        if window.slide <= window.range:
            return chunk
        return chunk.filter(self._ticks % window.slide < window.range)

    def _observe(self, rows: int, low: int, high: int) -> None:
        if self._slicing.observe(rows, low, high):
            self._partials.regroup(pl.col(PANE) // self._slicing.width)

    def reduced(self, chunk: Chunk) -> Chunk:
        """Rows as partials by pane and group."""
        return self._partials.reduced(self._in_windows(chunk))

    def on_partials(self, partials: Chunk) -> None:
        """Take partials of panes in."""
        if partials.height:
            panes = partials[PANE]
            self._observe(partials.height, int(panes.min()), int(panes.max()))  # type: ignore[arg-type]
            self._partials.put_partials(partials, pl.col(PANE) // self._slicing.width)

    # ---- answers ---------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Answer the windows the promise completes."""
        if promise.attributes != (self._time,) or promise.values[0] <= self._mark:
            return []
        self._mark = promise.values[0]
        first_open = self._window.first_open(self._mark)
        if first_open <= self._open_from:
            return []
        answers = self._answer(first_open)
        self._open_from = first_open
        return [
            *answers,
            Punctuation.linear(START, first_open),
            Punctuation.linear(END, first_open + self._window.range),
        ]

    def closing(self, port: int) -> Sequence[Element]:
        """Answer everything that is left."""
        self._mark = END_OF_TIME
        answers = self._answer(self._window.first_open(END_OF_TIME))
        self._open_from = self._window.first_open(END_OF_TIME)
        return answers

    def _answer(self, first_open: int) -> list[Element]:
        """Answers of all windows that start before ``first_open`` and are not answered yet."""
        window = self._window
        limit = first_open - window.slide + window.range  # the end of the last complete window
        complete: list[Chunk] = []
        for slice_ in self._partials.slices(high=-(-limit // self._slicing.width)):
            held = self._partials.get(slice_)
            assert held is not None
            complete.append(
                held if self._ends_by(slice_, limit) else held.filter(pl.col(PANE) < limit)
            )
            if self._ends_by(slice_, first_open):
                self._partials.take(slice_)
            elif slice_ * self._slicing.width < first_open:
                self._partials.replace(slice_, held.filter(pl.col(PANE) >= first_open))
        rows = pl.concat(complete) if complete else None
        if rows is None or not rows.height:
            return []
        answer = self._finish(self._spread(rows, first_open))
        return [answer] if answer.height else []

    def _ends_by(self, slice_: int, tick: int) -> bool:
        return (slice_ + 1) * self._slicing.width <= tick

    def _spread(self, partials: Chunk, first_open: int) -> Chunk:
        """Each partial once for every complete, unanswered window that its pane is in."""
        window = self._window
        if window.tumbling:
            return partials.rename({PANE: START})
        pane = pl.col(PANE)
        first = ((pane - window.range) // window.slide + 1) * window.slide
        last = pane // window.slide * window.slide
        starts = pl.int_ranges(
            pl.max_horizontal(first, pl.lit(self._open_from)),
            pl.min_horizontal(last, pl.lit(first_open - window.slide)) + 1,
            window.slide,
        )
        return partials.with_columns(starts.alias(START)).explode(START).drop_nulls(START)

    def _finish(self, partials: Chunk) -> Chunk:
        """Answers of windows from partials that carry the start of theirs."""
        merged = merge(partials, [START, *self._groups], self._aggregates)
        return merged if self.in_part else self._shown(merged)

    def finished(self, partials: Chunk) -> Chunk:
        """Answers of windows from the partial answers of all copies."""
        return self._shown(merge(partials, [START, *self._groups], self._aggregates))

    def _shown(self, merged: Chunk) -> Chunk:
        merged = in_key_order(merged, [START, *self._groups])
        begin = self._domain.from_ticks(pl.col(START)).alias(START)
        end = self._domain.from_ticks(pl.col(START) + self._window.range).alias(END)
        keys = [begin, end, *(pl.col(name) for name in self._groups)]
        return finish(merged, keys, self._aggregates)

    # ---- progress per group ----------------------------------------------------------------

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Answer windows of the groups that have passed them, and of nobody else."""
        keys = list(promise.keys)
        usable = promise.attribute == self._time and set(keys) <= set(self._groups)
        if not usable or not self._window.tumbling:
            return []
        furthest = int(promise.marks[MARK].max())  # type: ignore[arg-type]
        done: list[Chunk] = []
        for slice_ in self._partials.slices(high=-(-furthest // self._slicing.width)):
            held = self._partials.get(slice_)
            assert held is not None
            marked = held.join(promise.marks, on=keys, how="left", nulls_equal=True)
            passed = (pl.col(PANE) + self._window.range <= pl.col(MARK)).fill_null(False)
            rows = marked.filter(passed).drop(MARK)
            if rows.height:
                done.append(rows)
                self._partials.replace(slice_, marked.filter(~passed).drop(MARK))
        return [self._finish(pl.concat(done).rename({PANE: START}))] if done else []

    # ---- asking and saving -----------------------------------------------------------------

    def asks(self) -> Sequence[Ask]:
        """The earliest open window with rows wants the mark at its end."""
        for slice_ in self._partials.slices():
            held = self._partials.get(slice_)
            assert held is not None
            least = int(held[PANE].min())  # type: ignore[arg-type]
            starts = [s for s in self._window.starts_covering(least) if s >= self._open_from]
            if starts:
                return [Ask(0, self._time, starts[0] + self._window.range)]
        return []

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """A promise on a window's edge needs the mark past all earlier windows."""
        if attribute not in (START, END):
            return []
        first = mark if attribute == START else mark - self._window.range
        first = -(-first // self._window.slide) * self._window.slide  # windows start on the grid
        return [Ask(0, self._time, first - self._window.slide + self._window.range)]

    def marks(self) -> dict[str, int]:
        """The input's mark."""
        return {self._time: self._mark}

    def settle(self) -> None:
        """Fold partials."""
        self._partials.settle()

    def snapshot(self) -> dict[str, Any]:
        """The mark, the first open window and the width of a slice."""
        return super().snapshot() | {
            "mark": self._mark,
            "open_from": self._open_from,
            "slicing": self._slicing.snapshot(),
            "partials": self._partials.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._mark, self._open_from = saved["mark"], saved["open_from"]
        self._slicing.restore(saved["slicing"])
        self._partials.restore(saved["partials"])
