"""The window-oblivious join: a join of many inputs on a progressing attribute, without a window.

The time for which a row is kept follows from the data (WO-Join). The disorder of each input is
measured and gives a lower bound on its rows to come; the input's punctuation gives another. The
greater of the two is the input's *mark*. A row is kept until the marks of all other inputs have
passed it. So a row is never dropped before a lagging input has reached it.

For each input there is a bound below which its rows have been dropped. Rows that come below the
bound of another input are counted as late; they still match the rows that are kept. Rows dropped
because of the cap on memory are counted as given up. Lost results are counted by key
(``lost_results``).

There are two reliefs of memory, used alone or together (``memory_model``). *Sorting first* (msf):
rows wait until the marks of all inputs have passed them and are then joined, and the results leave
in order; rows that come below the joined ones are given up. *Disk first* (dbf): rows of an input
that another input has not reached are spilled to pages (``stored_rows``).

Output punctuation. When the last row of a result comes, its other rows are kept. So every result is
at or above the second greatest of the bounds below which rows were dropped. This holds however
inexact the measurements are.

Invariants: a joined row is kept until it is below ``dropped`` of its input, has made all its
matches, or is given up. So a result is lost only if one of its rows comes below ``dropped`` of
another input, repeats a value whose rows have matched, or was given up. A spilled row is above the
greatest value of some other input (above the joined rows, if rows are sorted first), so it has no
match yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.joins.multi_join import MultiJoin, rows_of
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.bounds import JoinBounds
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.estimates import InputEstimates
from lowwater.joins.oblivious.memory_manager import MemoryManager
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.result_account import ResultAccount
from lowwater.joins.oblivious.stored_rows import StoredRows
from lowwater.joins.oblivious.unmatched_rows import UnmatchedRows
from lowwater.joins.shape import KINDS, JoinKind
from lowwater.operators.kernel import Host, Request
from lowwater.operators.metric import Readings
from lowwater.state.store import ChunkStore, read
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation, moved

LAZY = 16
"""Rows are dropped when one in ``LAZY`` rows held has come since the last time."""
NUMBERS = (
    *("_rows_since_drop", "_was_sorting", "_warned", "_first_step", "_last_step", "_step_time"),
)
"""The attributes of the join that are saved as they are."""


class ObliviousJoin(MultiJoin):
    """Joins many inputs on a progressing attribute; rows are dropped by measured disorder."""

    rule: ClassVar[str] = "the bound below which rows of all inputs but one have been dropped"
    defers: ClassVar[bool] = True
    feeds_back: ClassVar[bool] = False  # disorder is measured by all rows of an input

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        options: Oblivious,
        host: Host,
        awaited: frozenset[str] | None = None,
        kind: JoinKind = KINDS["inner"],
        columns: Sequence[str] | None = None,
    ):
        super().__init__(store, shape, slice_ticks, awaited, host)
        self._now, per_second = host.now, shape.domain.ticks_per_second
        self._estimates = InputEstimates(options, shape.windows, per_second, kind, host.copies)
        self._stored = StoredRows(store, shape, slice_ticks, self._slicing)
        self._memory = MemoryManager(options, store, self._stored, self._estimates, host)
        self._chooser = self._memory.chooser
        self._account = ResultAccount(shape, self._stored, self._estimates.losses)
        columns = list(shape.output) if columns is None else columns
        self._unmatched = UnmatchedRows(
            store, shape, kind, columns, slice_ticks, self._out, self._account
        )
        self._bounds = JoinBounds(shape.windows, self._estimates)
        self._rows_since_drop = 0  # rows since the last drop
        self._was_sorting = self._chooser.sorts  # the mode by which the rows are stored
        self._joining_waiting = False
        self._warned = False  # about lost results
        self._batch_open = self._pages_to_read = False
        self._first_step: int | None = None
        self._last_step = self._step_time = 0  # start of this step and the one before

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Join rows or hold them, update the estimates, and drop rows without a match to come."""
        rows = self._shape.prepare(port, self._unmatched.number(port, chunk))
        ticks = self._stored.ticks(port, rows)
        results = self._begin_step()
        self._estimates.take(
            port, ticks, max(self._bounds.late_below(port), self._bounds.joined_below)
        )
        self._count_repeats(port, ticks)
        self._rows_since_drop += len(ticks)
        if not self.host.in_batches:
            self._estimates.measure(self._step_time)
        results += self._choose()
        if not self._chooser.sorts:
            self._unspill()
        if self._joins_in_order and int(ticks.min()) < self._bounds.joined_below:
            in_time = ticks >= self._bounds.joined_below
            self._account.take(port, rows.filter(~in_time), self._bounds.late_below(port))
            self._leave(port, rows.filter(~in_time))
            rows, ticks = rows.filter(in_time), ticks[in_time]
        rows = self._spill(port, rows, ticks)
        if rows.height and self._chooser.sorts:
            self._stored.waiting[port].put(rows)
        elif rows.height:
            results += self._joined(port, rows)
        if self.host.in_batches:
            self._batch_open = True
            return [*results, *self._unmatched.take_told()]
        return self._finish_step(results)

    @property
    def has_work(self) -> bool:
        """True if rows were taken in since the last end of a batch, or pages are to be read ahead
        now that the results of the step have left."""
        return self._batch_open or self._pages_to_read

    def work_on(self) -> Sequence[Element]:
        """Read pages ahead; end a batch: update the estimates from all its rows, then drop rows."""
        if not self._batch_open:
            self._read_ahead()
            found = self._finish_step([])
            self._pages_to_read = False  # under a cap, pages may have been spilled again
            return found
        self._batch_open = False
        results = self._apply_mode()
        self._estimates.measure(self._step_time)
        return self._finish_step(results)

    def _begin_step(self) -> list[Chunk]:
        """Read the clock; return the results of a change of mode."""
        self._last_step, self._step_time = self._step_time, self._now()
        if self._first_step is None:
            self._first_step = self._last_step = self._step_time
        return self._apply_mode()

    def _joined(self, port: int, rows: Chunk) -> list[Chunk]:
        """Return the results of rows with the kept rows of the others, and keep the rows."""
        low, high = self._span(port, rows)
        matched = self._match(port, rows, low, high)
        passed = self._keep(port, rows, low, high)
        if matched is None or not matched[0].height:
            self._account.take(port, rows, self._bounds.late_below(port))
            self._leave(port, passed)
            return []
        self._account.take(
            port, rows, self._bounds.late_below(port), self._shape.numbers(port, matched[0])
        )
        found = self._shape.put_out(*matched)
        self._estimates.losses.add_found(found.height)
        results = self._unmatched.put_out(found)
        if passed.height:
            self._leave(port, passed)
            self._unmatched.drop(port, self._threshold(port))
        if found.height and self._estimates.unique and not self._chooser.sorts:
            self._keep_matched(found)
        return [results] if results.height else []

    def _leave(self, port: int, rows: Chunk | None) -> None:
        """Put out those of an input's rows that are not kept and have not matched."""
        self._unmatched.leave(port, rows, self._bounds.passed(port))

    def _keep_matched(self, found: Chunk) -> None:
        """Keep the values of results, whose rows are dropped; record if a value came twice."""
        time = self._shape.out_name(0, self._shape.times[0])
        values = np.unique(self._shape.domain.array_of(found[time]))
        if len(values) < found.height:  # a value came twice
            self._estimates.record_repeats(self._shape.ports)
        elif self._stored.matched.bytes + values.nbytes <= self._memory.cap // 2:  # memory as well
            self._stored.matched.add(values)

    def _count_repeats(self, port: int, ticks: Ticks) -> None:
        """Count rows as late that repeat a value whose rows have matched and are dropped."""
        again = self._stored.matched.among(ticks) if len(self._stored.matched) else 0
        if again:
            self._estimates.add_late(port, again)
            self._estimates.record_repeats([port])

    def _span(self, port: int, rows: Chunk) -> tuple[int, int]:
        ticks = self._stored.ticks(port, rows)
        return int(ticks.min()), int(ticks.max())

    @property
    def _joins_in_order(self) -> bool:
        """True if rows below those joined already are given up, because their results would be out
        of order."""
        return self._chooser.sorts or any(self._shape.windows)

    # ---- rows that wait --------------------------------------------------------------------

    def _unspill(self, below: int | None = None) -> None:
        """Read the spilled rows back that lie below a value; if None, those that the frontier of
        their input has reached."""
        for port in self._shape.ports:
            frontier = self._spill_above(port) if below is None else below - 1
            if not self._chooser.spills:
                frontier = END_OF_TIME
            self._put_back(port, self._stored.spilled[port].fetch(frontier))

    def _put_back(self, port: int, rows: Chunk | None) -> None:
        """Keep rows that were read from disk; no row matches them but those of this step."""
        if rows is None:
            return
        if self._chooser.sorts:
            self._stored.waiting[port].put(rows)
        else:
            self._account.take(port, rows, self._bounds.late_below(port))
            self._leave(port, self._keep(port, rows, *self._span(port, rows)))

    def _read_ahead(self) -> None:
        """Read the pages that will be due next (``read_ahead``)."""
        now = self._step_time
        for port in self._memory.ports_to_read(self._spill_above, now):
            spilled, rows = self._stored.spilled[port], self._memory.rows_ahead(port, now)
            self._put_back(port, spilled.fetch_ahead(self._spill_above(port), rows))

    def _spill_above(self, port: int) -> int:
        """Return the value above which rows of an input may be spilled: no match of theirs has been
        joined."""
        if self._chooser.sorts:
            return self._bounds.sorted_below - 1
        return self._bounds.frontier(port)

    def _spill(self, port: int, rows: Chunk, ticks: Ticks) -> Chunk:
        """Spill the rows that are far ahead, and return the others."""
        if not self._chooser.spills:
            return rows
        frontier = self._spill_above(port)
        far = ticks > frontier
        now, last = self._step_time, self._last_step
        moved = now != self._first_step  # on a clock that stands still no time can be compared
        if not far.any() or not self._memory.is_far_ahead(
            port, frontier, int(far.sum()), now, now - last if moved else None
        ):
            return rows
        spilled = self._stored.spilled[port]
        if self._memory.page_bytes is not None:
            spilled.limit_pages(rows, self._memory.page_bytes)
        spilled.put(rows.filter(far))
        return rows.filter(~far)

    def _join_waiting(self, below: int) -> list[Chunk]:
        """Join the waiting rows below a value, and return the results in order.

        No row is dropped meanwhile: if rows were joined as they came before, marks may have passed
        kept rows that still have matches among these.
        """
        found: list[Chunk] = []
        least = list(self._bounds.dropped)
        self._joining_waiting = True
        for port in self._shape.ports:
            rows = self._stored.waiting[port].upto(below - 1)
            if rows is not None:
                least[port] = min(least[port], self._span(port, rows)[0])
                found += self._joined(port, rows)
        self._joining_waiting = False
        for port in self._shape.ports:
            if least[port] < self._bounds.dropped[port]:
                self._drop(port, self._bounds.dropped[port])
        return self._in_order(found)

    def _in_order(self, results: list[Chunk]) -> list[Chunk]:
        """Return results in order of the latest of their times."""
        if not results:
            return []
        names = dict.fromkeys(map(self._shape.out_name, self._shape.ports, self._shape.times))
        times = [name for name in names if name in results[0].columns]
        return [pl.concat(results).sort(pl.max_horizontal(times), maintain_order=True)]

    # ---- choosing a relief -----------------------------------------------------------------

    def _choose(self) -> list[Chunk]:
        """Choose the mode if that is due, and return the results that a change of it releases."""
        self._memory.choose(self._step_time, self._bounds.reached)
        return self._apply_mode()

    def _apply_mode(self) -> list[Chunk]:
        """Change to the mode that was chosen, also after a restart; return the results released."""
        if self._was_sorting == self._chooser.sorts:
            return []
        self._was_sorting = self._chooser.sorts
        if not self._chooser.sorts:
            return self._join_all_waiting()
        for port in self._shape.ports:  # keep all rows that waiting rows may match
            self._drop_to(port, self._droppable(port))
        self._bounds.begin_sorting()
        return []

    def _join_all_waiting(self) -> list[Chunk]:
        """Join all waiting rows, as if they had been joined when they came."""
        for port in self._shape.ports:
            rows = self._stored.spilled[port].fetch(self._bounds.frontier(port))
            if rows is not None:
                self._stored.waiting[port].put(rows)
        results = self._join_waiting(END_OF_TIME)
        for port in self._shape.ports:
            self._drop_to(port, moved(self._bounds.joined_below, -self._shape.windows[port]))
        return results

    # ---- dropping --------------------------------------------------------------------------

    def _finish_step(self, results: list[Chunk], at_once: bool = False) -> list[Element]:
        """Drop rows without matches to come, obey the cap, and add output punctuation."""
        if not self.host.in_portions:  # else when the results of this step have left
            self._read_ahead()
        results += self._advance_marks()
        at_once |= bool(self._chooser.sorts and self._unmatched.tracked)  # to leave in order
        if at_once or self._rows_since_drop * LAZY >= self.store.rows:
            self._rows_since_drop = 0
            for port in self._shape.ports:
                self._drop_to(port, self._droppable(port))
            if len(self._stored.matched):
                self._drop_matched()
        results += self._obey_cap()
        if told := self._unmatched.take_told():
            results = self._in_order(results + told) if self._chooser.sorts else results + told
        if self.host.in_portions:
            ports = self._memory.ports_to_read(self._spill_above, self._step_time)
            self._pages_to_read = bool(ports)
        return [*results, *self._promise()]

    def _drop_matched(self) -> None:
        """Drop the rows that have matched and match nothing more."""
        self._unmatched.drop_values(self._stored.drop_matched(min(self._bounds.dropped)))

    def _obey_cap(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released; here there is no
        cap."""
        return []

    def _threshold(self, port: int) -> int:
        """Return the value below which rows of an input are not kept."""
        return BEGINNING if self._joining_waiting else self._bounds.dropped[port]

    def _droppable(self, port: int) -> int:
        """Return the value below which rows of an input have no match to come."""
        passed = moved(self._least_but([port]), -self._shape.windows[port])
        return max(passed, self._bounds.given_up_below, self._bounds.dropped[port])

    def _advance_marks(self, least: int = BEGINNING) -> list[Chunk]:
        """Advance the marks; if rows are sorted first, join those below the marks or ``least``."""
        if not self._chooser.sorts:
            self._marks = list(map(max, self._marks, self._bounds.marks))
            return []
        edge = max(self._bounds.sorted_below, least)
        if edge == BEGINNING:
            return []
        self._unspill(edge)
        found = self._join_waiting(edge)
        self._bounds.joined_below = max(self._bounds.joined_below, edge)
        self._marks = [max(mark, edge) for mark in self._marks]
        return found

    def _drop_to(self, port: int, below: int) -> None:
        if below > self._bounds.dropped[port]:
            self._drop(port, below)
            self._bounds.dropped[port] = below

    def _drop(self, port: int, below: int) -> Chunk | None:
        """Drop rows of an input below a time; put out those that have not matched."""
        gone = super()._drop(port, below)
        self._leave(port, gone)
        self._unmatched.drop(port, below)
        return gone

    def _promise(self) -> list[Element]:
        marks: dict[str, int] = {}
        for port in self._shape.ports:
            mark = self._bounds.result_mark(port, self._chooser.sorts)
            if port in self._unmatched.outer:
                mark = min(mark, self._bounds.outer_mark(port, self._out.awaited is None))
            for out in self._names[port].values():
                marks[out] = min(mark, marks.get(out, mark))
        return [each for out, mark in marks.items() for each in self._out.advance({out: mark})]

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Take the punctuation of an input, which is its mark if it exceeds the measured bound."""
        on_time = promise.attributes == (self._shape.times[port],)
        if not on_time or not self._received.advance(port, promise):
            return []
        (self._bounds.promised[port],) = promise.values
        return self._bounds_moved()

    def close_port(self, port: int) -> Sequence[Element]:
        """Raise the mark of an input that ended to the end of time."""
        self._batch_open = False
        self._estimates.measure(self._step_time)
        self._estimates.disorders[port].end()
        self._received.end(port, self._shape.times[port])
        return self._bounds_moved()

    def _close_epoch(self) -> list[Element]:
        """Join and drop all rows as if all inputs had ended, and reset all estimates."""
        self._estimates.measure(self._step_time)
        for estimate in self._estimates.disorders:
            estimate.end()
        results = self._bounds_moved()
        self._estimates.reset()
        self._stored.drop_matched(END_OF_TIME)
        self._marks = [BEGINNING] * self.ports
        self._bounds.reset()
        return results

    def _bounds_moved(self) -> list[Element]:
        results = self._begin_step()
        if not self._chooser.sorts:
            self._unspill()
        return self._finish_step(results, at_once=True)

    def requests(self) -> Sequence[Request]:
        """Request the punctuation that has passed the earliest row of an outer side, of inputs that
        have emitted some."""
        found: list[Request] = []
        for port in self._unmatched.outer:
            slices = self.store.slices(rows_of(port))
            first = read(self.store, rows_of(port), slices[0], slices[0] + 1) if slices else None
            other = 1 - port
            if first is not None and self._bounds.promised[other] > BEGINNING:
                least = self._span(port, first)[0] + self._shape.windows[port]
                found.append(Request(other, self._shape.times[other], least + 1))
        return self._received.missing(found, self._open)

    # ---- looking and saving ----------------------------------------------------------------

    def marks(self) -> dict[str, int]:
        """Return the marks of all inputs."""
        bounds = enumerate(zip(self._shape.times, self._bounds.marks, strict=True))
        return {f"{time}[{port}]": bound for port, (time, bound) in bounds}

    def metrics(self) -> Readings:
        """Return the strategy, the estimates, the rows predicted and held, and the results lost."""
        losses = self._estimates.losses
        measured = self._estimates.metrics(
            self._stored,
            self._step_time,
            self._unmatched.results(losses),
            not self.host.in_batches,
        )
        return self._memory.metrics(self._step_time) | measured | self._unmatched.metrics(losses)

    def notes(self) -> Sequence[str]:
        """Return one warning if too many results are lost; of several copies the engine warns."""
        if self._warned or self.host.copies > 1 or not self._estimates.losses.any_lost:
            return []
        results, lost, _ = self._unmatched.results(self._estimates.losses)
        notes = self._estimates.shortfall(results, lost, ended=not self._open)
        self._warned = bool(notes)
        return notes

    def snapshot(self) -> dict[str, Any]:
        """Return all estimates and bounds."""
        return super().snapshot() | {
            "estimates": self._estimates.snapshot(),
            "memory": self._memory.snapshot(),
            "stored": self._stored.snapshot(),
            "unmatched": self._unmatched.snapshot(),
            "bounds": self._bounds.snapshot(),
            "numbers": {name: getattr(self, name) for name in NUMBERS},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._estimates.restore(saved["estimates"])
        self._memory.restore(saved["memory"])
        self._stored.restore(saved["stored"])
        self._unmatched.restore(saved["unmatched"])
        self._bounds.restore(saved["bounds"])
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
