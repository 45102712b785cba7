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

Invariants: a joined row is kept until it is below ``_dropped`` of its input, has made all its
matches, or is given up. So a result is lost only if one of its rows comes below ``_dropped`` of
another input, repeats a value whose rows have matched, or was given up. A spilled row is above the
greatest value of some other input (above the joined rows, if rows are sorted first), so it has no
match yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.joins.multi_join import MultiJoin
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.disorder import Ticks
from lowwater.joins.oblivious.estimates import InputEstimates
from lowwater.joins.oblivious.lost_results import ResultAccount
from lowwater.joins.oblivious.memory_manager import MemoryManager
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.stored_rows import StoredRows
from lowwater.operators.kernel import Host
from lowwater.operators.metric import Readings
from lowwater.operators.shared_memory import MemoryNeed
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation

LAZY = 16
"""Rows are dropped when one in ``LAZY`` rows held has come since the last time."""
NUMBERS = (
    *("_joined_below", "_given_up_below", "_rows_since_drop", "_was_sorting", "_warned"),
    *("_first_step", "_last_step", "_step_time"),
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
    ):
        super().__init__(store, shape, slice_ticks, awaited, host)
        self._now, per_second = host.now, shape.domain.ticks_per_second
        self._estimates = InputEstimates(options, self.ports, per_second, host.copies)
        self._stored = StoredRows(store, shape, slice_ticks, self._slicing)
        self._memory = MemoryManager(options, store, self._stored, self._estimates, host)
        self._chooser = self._memory.chooser
        self._account = ResultAccount(shape, self._stored, self._estimates.losses)
        self._input_marks = [BEGINNING] * self.ports  # of the input punctuation
        self._dropped = [BEGINNING] * self.ports
        self._joined_below = BEGINNING  # sorted first: rows below have been joined
        self._given_up_below = BEGINNING  # rows below were given up for lack of memory
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
        rows = self._shape.prepare(port, chunk)
        ticks = self._stored.ticks(port, rows)
        results = self._begin_step()
        self._estimates.take(port, ticks, max(self._late_below(port), self._joined_below))
        self._count_repeats(port, ticks)
        self._rows_since_drop += len(ticks)
        if not self.host.in_batches:
            self._estimates.measure(self._step_time)
        results += self._choose()
        if not self._chooser.sorts:
            self._unspill(self._frontier)
        elif int(ticks.min()) < self._joined_below:  # their results would be out of order
            in_time = ticks >= self._joined_below
            self._account.take(port, rows.filter(~in_time), self._late_below(port))
            rows, ticks = rows.filter(in_time), ticks[in_time]
        rows = self._spill(port, rows, ticks)
        if rows.height and self._chooser.sorts:
            self._stored.waiting[port].put(rows)
        elif rows.height:
            results += self._joined(port, rows)
        if self.host.in_batches:
            self._batch_open = True
            return results
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
        self._keep(port, rows, low, high)
        if matched is None or not matched[0].height:
            self._account.take(port, rows, self._late_below(port))
            return []
        self._account.take(
            port, rows, self._late_below(port), self._shape.numbers(port, matched[0])
        )
        found = self._shape.put_out(*matched)
        self._estimates.losses.add_found(found.height)
        if not found.height:
            return []
        if self._estimates.unique and not self._chooser.sorts:
            self._keep_matched(found)
        return [found]

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

    def _late_below(self, port: int) -> int:
        """Return the bound below which a row of an input is late: rows of another were dropped."""
        return max(each for at, each in enumerate(self._dropped) if at != port)

    def _span(self, port: int, rows: Chunk) -> tuple[int, int]:
        ticks = self._stored.ticks(port, rows)
        return int(ticks.min()), int(ticks.max())

    # ---- rows that wait --------------------------------------------------------------------

    @property
    def _bounds(self) -> list[int]:
        """The mark of each input: a lower bound on its rows to come, by punctuation or by
        measurement."""
        measured = (estimate.bound for estimate in self._estimates.disorders)
        return list(map(max, self._input_marks, measured))

    @property
    def _frontier(self) -> int:
        """The greatest value that all inputs have reached; rows above it have no results yet."""
        return min(map(max, self._estimates.tops, (each - 1 for each in self._input_marks)))

    @property
    def _sorted_below(self) -> int:
        """The bound below which rows are joined, if they are sorted first."""
        return max(min(self._bounds), self._given_up_below)

    def _unspill(self, frontier: int) -> None:
        """Read the spilled rows back that the frontier has reached."""
        if not self._chooser.spills:
            frontier = END_OF_TIME
        for port in self._shape.ports:
            self._put_back(port, self._stored.spilled[port].fetch(frontier))

    def _put_back(self, port: int, rows: Chunk | None) -> None:
        """Keep rows that were read from disk; no row matches them but those of this step."""
        if rows is None:
            return
        if self._chooser.sorts:
            self._stored.waiting[port].put(rows)
        else:
            self._account.take(port, rows, self._late_below(port))
            self._keep(port, rows, *self._span(port, rows))

    def _read_ahead(self) -> None:
        """Read the pages that will be due next (``read_ahead``)."""
        frontier, now = self._spill_above, self._step_time
        for port in self._memory.ports_to_read(frontier, now):
            spilled = self._stored.spilled[port]
            self._put_back(port, spilled.fetch_ahead(frontier, self._memory.rows_ahead(port, now)))

    @property
    def _spill_above(self) -> int:
        """The value above which rows may be spilled: no match of theirs has been joined."""
        return self._sorted_below - 1 if self._chooser.sorts else self._frontier

    def _spill(self, port: int, rows: Chunk, ticks: Ticks) -> Chunk:
        """Spill the rows that are far ahead, and return the others."""
        if not self._chooser.spills:
            return rows
        frontier = self._spill_above
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
        least = list(self._dropped)
        self._joining_waiting = True
        for port in self._shape.ports:
            rows = self._stored.waiting[port].upto(below - 1)
            if rows is not None:
                least[port] = min(least[port], self._span(port, rows)[0])
                found += self._joined(port, rows)
        self._joining_waiting = False
        for port in self._shape.ports:
            if least[port] < self._dropped[port]:
                self._drop(port, self._dropped[port])
        time = self._shape.out_name(0, self._shape.times[0])
        return [pl.concat(found).sort(time, maintain_order=True)] if found else []

    # ---- choosing a relief -----------------------------------------------------------------

    def _choose(self) -> list[Chunk]:
        """Choose the mode if that is due, and return the results that a change of it releases."""
        self._memory.choose(self._step_time, self._frontier)
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
        self._joined_below = max(self._joined_below, self._mark_out)
        return []

    def _join_all_waiting(self) -> list[Chunk]:
        """Join all waiting rows, as if they had been joined when they came."""
        for port in self._shape.ports:
            rows = self._stored.spilled[port].fetch(self._frontier)
            if rows is not None:
                self._stored.waiting[port].put(rows)
        results = self._join_waiting(END_OF_TIME)
        self._drop_all(self._joined_below)
        return results

    @property
    def memory_need(self) -> MemoryNeed | None:
        """The memory needed by the last measurement; None before there is one."""
        return self._memory.need

    @property
    def memory_used(self) -> int:
        """Bytes of the rows in memory now."""
        return self._stored.memory

    def take_share(self, share: int) -> Sequence[Element]:
        """Obey a share of a memory budget from now on; return the elements that leave."""
        self._memory.share = share
        if not self._memory.is_over:
            return []
        self._stored.drop_matched(min(self._dropped))
        self._stored.matched.limit(self._memory.cap // 2)
        return self._finish_step(self._begin_step())

    # ---- dropping --------------------------------------------------------------------------

    def _finish_step(self, results: list[Chunk], at_once: bool = False) -> list[Element]:
        """Drop rows without matches to come, obey the cap, and add output punctuation."""
        if not self.host.in_portions:  # else when the results of this step have left
            self._read_ahead()
        results += self._advance_marks()
        if at_once or self._rows_since_drop * LAZY >= self.store.rows:
            self._rows_since_drop = 0
            for port in self._shape.ports:
                self._drop_to(port, self._droppable(port))
            if len(self._stored.matched):
                self._stored.drop_matched(min(self._dropped))
        if self._memory.is_over:
            results += self._choose()
        while self._memory.is_over:
            results += self._give_up()
        if self.host.in_portions:
            ports = self._memory.ports_to_read(self._spill_above, self._step_time)
            self._pages_to_read = bool(ports)
        return [*results, *self._promise()]

    def _threshold(self, port: int) -> int:
        """Return the value below which rows of an input are not kept."""
        return BEGINNING if self._joining_waiting else self._dropped[port]

    def _droppable(self, port: int) -> int:
        """Return the value below which rows of an input have no match to come."""
        return max(self._least_but([port]), self._given_up_below, self._dropped[port])

    def _advance_marks(self, least: int = BEGINNING) -> list[Chunk]:
        """Advance the marks; if rows are sorted first, join those below the marks or ``least``."""
        if not self._chooser.sorts:
            self._marks = list(map(max, self._marks, self._bounds))
            return []
        edge = max(self._sorted_below, least)
        if edge == BEGINNING:
            return []
        self._unspill(edge - 1)
        found = self._join_waiting(edge)
        self._joined_below = max(self._joined_below, edge)
        self._marks = [max(mark, edge) for mark in self._marks]
        return found

    def _give_up(self) -> list[Chunk]:
        """Free memory down to the cap, and return the results that are released.

        Rows that all inputs have mostly passed go first, then those furthest ahead, then those with
        the least values.
        """
        settled = min(estimate.mostly_passed for estimate in self._estimates.disorders)
        above, least = self._memory.to_free(settled, self._frontier)
        if above is not None:
            self._clear_above(above)
        if least is None:
            return []
        results = self._advance_marks(least)  # join waiting rows before they are dropped
        self._given_up_below = max(self._given_up_below, least)
        self._drop_all(least)
        return results

    def _clear_above(self, value: int) -> None:
        """Remove the rows at or above a value from memory; the value is above the frontier.

        They are spilled if the mode allows that, and given up otherwise.
        """
        for port in self._shape.ports:
            spilled = self._stored.spilled[port]
            spilled.forget_ahead(value)
            waited, kept = self._stored.take_from(port, value)
            if self._chooser.spills and kept is not None:
                self._account.put_back(port, kept)
            elif not self._chooser.spills and waited is not None:
                self._account.take(port, waited, self._late_below(port))
            for rows in (waited, kept):
                if rows is not None and self._chooser.spills:
                    spilled.put(rows)
                elif rows is not None:
                    self._estimates.add_given_up(port, rows.height)
            spilled.flush()

    def _drop_all(self, below: int) -> None:
        for port in self._shape.ports:
            self._drop_to(port, below)

    def _drop_to(self, port: int, below: int) -> None:
        if below > self._dropped[port]:
            self._drop(port, below)
            self._dropped[port] = below

    @property
    def _mark_out(self) -> int:
        """The lower bound on the results to come."""
        return max(sorted(self._dropped)[-2], self._joined_below)

    def _promise(self) -> list[Element]:
        outs = dict.fromkeys(name for each in self._names for name in each.values())
        mark = self._mark_out
        return [each for out in outs for each in self._out.advance({out: mark})]

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Take the punctuation of an input, which is its mark if it exceeds the measured bound."""
        on_time = promise.attributes == (self._shape.times[port],)
        if not on_time or not self._received.advance(port, promise):
            return []
        (self._input_marks[port],) = promise.values
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
        self._marks, self._dropped = [BEGINNING] * self.ports, [BEGINNING] * self.ports
        self._joined_below = self._given_up_below = BEGINNING
        return results

    def _bounds_moved(self) -> list[Element]:
        results = self._begin_step()
        if not self._chooser.sorts:
            self._unspill(self._frontier)
        return self._finish_step(results, at_once=True)

    # ---- looking and saving ----------------------------------------------------------------

    def marks(self) -> dict[str, int]:
        """Return the marks of all inputs."""
        bounds = enumerate(zip(self._shape.times, self._bounds, strict=True))
        return {f"{time}[{port}]": bound for port, (time, bound) in bounds}

    def metrics(self) -> Readings:
        """Return the strategy, the estimates, the rows predicted and held, and the results lost."""
        measured = self._estimates.metrics(self._stored, self._step_time, not self.host.in_batches)
        return self._memory.metrics(self._step_time) | measured

    def notes(self) -> Sequence[str]:
        """Return one warning if too many results are lost; of several copies the engine warns."""
        if self._warned or self.host.copies > 1 or not self._estimates.losses.any_lost:
            return []
        notes = self._estimates.shortfall(ended=not self._open)
        self._warned = bool(notes)
        return notes

    def snapshot(self) -> dict[str, Any]:
        """Return all estimates and bounds."""
        return super().snapshot() | {
            "estimates": self._estimates.snapshot(),
            "memory": self._memory.snapshot(),
            "stored": self._stored.snapshot(),
            "marks of inputs": (list(self._input_marks), list(self._dropped)),
            "numbers": {name: getattr(self, name) for name in NUMBERS},
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._estimates.restore(saved["estimates"])
        self._memory.restore(saved["memory"])
        self._stored.restore(saved["stored"])
        self._input_marks, self._dropped = map(list, saved["marks of inputs"])
        for name, value in saved["numbers"].items():
            setattr(self, name, value)
