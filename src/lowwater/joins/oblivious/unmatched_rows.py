"""The rows that a window-oblivious join puts out, or drops, without a partner.

In an outer join, rows of its *outer* sides come out alone if no row matches them; in an anti join
only these come out, in a semi join none of them. A row is given up as unmatched when it is dropped:
when the marks of all other inputs have passed it, or before that for lack of memory (*early*). With
measured marks a partner may still come. ``lost_results`` counts the rows that were wrong.

Rows of these sides are numbered. The numbers of those that have matched are stored until the rows
are dropped.

Invariants: a kept row has matched if and only if its number is stored. A row of an outer side comes
out at least once, unless it comes below the punctuation that an operator after the join uses: then
it is *left out*, and counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.lost_results import LostResults
from lowwater.joins.oblivious.result_account import ResultAccount
from lowwater.joins.oblivious.stored_rows import drop_values, matched_of
from lowwater.joins.ordered.ordered_shape import number_of
from lowwater.joins.promises import OutputMarks
from lowwater.joins.shape import JoinKind
from lowwater.operators.metric import Metric, Ratio, Readings, Sum, total
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split
from lowwater.stream.element import Chunk

TIME = "__time"

UNMATCHED = total(
    "join_unmatched_rows",
    "unmatched rows",
    "Rows given up without a partner: those that an outer or anti join put out alone.",
    exact=False,
)
CONTRADICTED = Metric(
    "join_unmatched_contradicted",
    float,
    "rows",
    Sum(exact=False),
    "unmatched rows contradicted",
    "Unmatched rows of which a partner came later, or came before and was gone.",
)
CONTRADICTED_MARGIN = Metric(
    "join_unmatched_contradicted_margin",
    float,
    "rows",
    Sum(exact=False),
    "unmatched rows contradicted margin",
    "Number of rows by which the estimate of contradicted rows may be wrong.",
)
RIGHT = Metric(
    "join_unmatched_right",
    float,
    "rows",
    Sum(exact=False),
    "unmatched rows right",
    "Unmatched rows that are not contradicted so far.",
)
RIGHT_SHARE = Metric(
    "join_unmatched_accuracy",
    float,
    "share",
    Ratio(RIGHT, CONTRADICTED),
    "unmatched accuracy",
    "The share of the unmatched rows that are not contradicted.",
)
EARLY = total(
    "join_unmatched_early",
    "unmatched rows early",
    "Rows given up without a partner before the other inputs had passed them: memory was full.",
    exact=False,
)
LEFT_OUT = total(
    "join_unmatched_left_out",
    "unmatched rows left out",
    "Late rows without a partner, below what was promised, that did not come out.",
    exact=False,
)


class UnmatchedRows:
    """Numbers rows, stores which have matched, and puts out those that have not.

    ``columns`` are those of the join's output; the matches also have the numbers of their rows.
    """

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        kind: JoinKind,
        columns: Sequence[str],
        slice_ticks: Sequence[int],
        out: OutputMarks,
        account: ResultAccount,
    ):
        self._store, self._shape, self._kind, self._columns = store, shape, kind, list(columns)
        self.tracked = kind.tracked
        """The inputs of which it matters whether a row has matched."""
        self.outer = kind.alone
        """The inputs whose rows come out without a partner."""
        self._slicing = [Slicing(each) for each in slice_ticks]
        self._out, self._account = out, account
        self._next = [0] * len(shape.times)
        self._told: list[Chunk] = []
        self.told = 0
        """Number of rows put out alone; in a semi join, of rows dropped without a partner."""
        self.early = 0
        """Number of these rows that marks had not passed, for lack of memory."""
        self.left_out = 0
        """Number of rows below the punctuation, which did not come out."""
        self._matched = 0  # in a semi join: results

    def number(self, port: int, chunk: Chunk) -> Chunk:
        """Return the rows of an input with their numbers, if it matters whether they match."""
        if port not in self.tracked:
            return chunk
        first = self._next[port]
        self._next[port] = first + chunk.height
        numbers = pl.int_range(first, first + chunk.height, dtype=pl.Int64)
        return chunk.with_columns(numbers.alias(number_of(port)))

    # ---- matched rows ----------------------------------------------------------------------

    def put_out(self, found: Chunk) -> Chunk:
        """Store which rows have matched, by all matches that were found; return the results."""
        if self._kind.shown == (0,):
            results = found.clear()
            if not self._kind.alone:  # left rows come out with their first partner
                once = found.unique(number_of(0), maintain_order=True)
                results = self._unmatched(0, once, self._ticks(0, once))
                self._matched += results.height
            self._record(found)
            return results.select(self._columns)
        self._record(found)
        return found.select(self._columns)

    def _ticks(self, port: int, found: Chunk) -> Ticks:
        """Return the ticks of an input's rows in matches."""
        shape = self._shape
        return shape.domain.array_of(found[shape.out_name(port, shape.times[port])])

    def _record(self, found: Chunk) -> None:
        for port in self.tracked if found.height else ():
            time = pl.Series(TIME, self._ticks(port, found))
            met = found.select(number_of(port), time).unique()
            met = self._unmatched(port, met, met[TIME].to_numpy())
            if not met.height:
                continue
            low, high = int(met[TIME].min()), int(met[TIME].max())  # type: ignore[arg-type]
            slicing = self._slicing[port]
            if slicing.observe(met.height, low, high):
                reslice(self._store, matched_of(port), pl.col(TIME) // slicing.width)
            for slice_, part in split(met, pl.col(TIME) // slicing.width):
                add(self._store, matched_of(port), slice_, part)

    def _unmatched(self, port: int, rows: Chunk, ticks: Ticks) -> Chunk:
        """Return the rows that have not matched."""
        if not rows.height:
            return rows
        width = self._slicing[port].width
        first, last = int(ticks.min()) // width, int(ticks.max()) // width + 1
        met = read(self._store, matched_of(port), first, last)
        if met is None:
            return rows
        return rows.join(met, on=number_of(port), how="anti", maintain_order="left")

    def drop(self, port: int, below: int) -> None:
        """Drop the numbers of rows below a time, which have been dropped."""
        if port in self.tracked:
            width = self._slicing[port].width
            take_below(self._store, matched_of(port), pl.col(TIME), below, width)

    def drop_values(self, values: Ticks) -> None:
        """Drop the numbers of matched rows with some values, which have been dropped."""
        for port in self.tracked if len(values) else ():
            width = self._slicing[port].width
            drop_values(self._store, matched_of(port), pl.col(TIME), width, values)

    # ---- unmatched rows --------------------------------------------------------------------

    def leave(self, port: int, rows: Chunk | None, sure: int) -> None:
        """Put out those of an input's dropped rows that have not matched.

        All marks of other inputs have passed the rows below ``sure``.
        """
        if rows is None or not rows.height or port not in self.tracked:
            return
        domain, time = self._shape.domain, self._shape.times[port]
        inside = self._shape.names[port][time]
        alone = self._unmatched(port, rows, domain.array_of(rows[inside]))
        ticks = domain.array_of(alone[inside])
        if port in self._kind.alone:
            below = ticks < self._out.of(self._shape.out_name(port, time))
            self.left_out += int(below.sum())
            alone, ticks = alone.filter(~below), ticks[~below]
            self._told.append(self._shape.put_out_alone(port, alone).select(self._columns))
        self.told += alone.height
        self.early += int((ticks >= sure).sum())
        self._account.tell(port, alone)

    def take_told(self) -> list[Chunk]:
        """Return the rows to put out, and forget them."""
        told, self._told = self._told, []
        return [each for each in told if each.height]

    # ---- looking and saving ----------------------------------------------------------------

    def results(self, losses: LostResults) -> tuple[float, float, float]:
        """Return the number of results found, of those lost, and the margin of error of these.

        A contradicted row is a result that a semi join lost, and a wrong one of an anti join.
        """
        if self._kind.shown != (0,):
            return losses.found, *losses.lost
        wrong, margin = losses.contradicted
        return self.told - wrong if self._kind.alone else self._matched, wrong, margin

    def metrics(self, losses: LostResults) -> Readings:
        """Return the number of unmatched rows and how many were right; nothing for inner joins."""
        if not self.tracked:
            return Readings()
        wrong, margin = losses.contradicted
        right = max(0.0, self.told - wrong)
        return Readings(
            {
                UNMATCHED: self.told,
                CONTRADICTED: wrong,
                CONTRADICTED_MARGIN: margin,
                RIGHT: right,
                RIGHT_SHARE: right / (right + wrong) if self.told else 1.0,
                EARLY: self.early,
                LEFT_OUT: self.left_out,
            }
        )

    def snapshot(self) -> Any:
        """Return the next numbers, the counts, and the state of slices."""
        counts = self.told, self.early, self.left_out, self._matched
        return list(self._next), counts, [each.snapshot() for each in self._slicing]

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot."""
        numbers, (self.told, self.early, self.left_out, self._matched), slicing = saved
        self._next = list(numbers)
        for each, state in zip(self._slicing, slicing, strict=True):
            each.restore(state)
