"""The window-oblivious join: rows of many inputs equal in a progressing attribute, and no window.

How long a row is kept follows from the data (WO-Join). Each input is measured by a gauge, which
says what no row still to come should be below; what the input promises counts as well, and the
greater of the two is its *mark*. A row is kept until the marks of all other inputs have passed it.
So what is kept follows lags, bursts and lulls by itself: nothing is dropped while an input that
lags has not come so far.

Rows that come below what was dropped meet what is still there; each is counted, and so is every row
that a cap on memory made the join give up. The share of results found is estimated from these.

Two reliefs, alone or together (see ``manager``). *Sorting first*: rows wait until the marks of all
inputs have passed them, then those that waited are joined and their results leave in order; what
comes later still is given up. *Disk first*: rows of an input beyond what the others have reached
wait in pages (see ``aside``).

Output promises. A result has a row that comes last, and its other rows are kept then. So no result
is below what is dropped of at least all inputs but one: that is a true promise, however rough the
measurements are.

Invariants: rows below ``_dropped`` of an input are neither in the store nor put there; a row that
waits aside is above the greatest value of some other input, and so belongs to no result yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.joins.multi_join import MultiJoin, rows_of
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.aside import LEAST_ROWS, PAGE_ROWS, Aside
from lowwater.joins.oblivious.gauge import Gauge
from lowwater.joins.oblivious.manager import FITS, Manager
from lowwater.joins.oblivious.model import PUTTING_ASIDE, SORTING, Needs, Traits
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.records import Ticks
from lowwater.joins.telling import once
from lowwater.operators.time_buffer import TimeBuffer
from lowwater.state.store import ChunkStore, read, take
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation

LAZY = 16
"""Rows are dropped once at least one in so many of those held is new."""
OFTEN = 4
"""What is needed is measured anew when one in so many of the rows held is new."""
FEW = 64
"""But not before so many are."""
ROUND_TRIPS = 3
"""Rows are put aside if they are ahead by so many times what it takes to get them back (§4.2)."""
SPARE = 16
"""Under a cap, one in so many bytes is freed beyond what must be."""


class ObliviousJoin(MultiJoin):
    """Joins many inputs on a progressing attribute, and measures how long to keep rows."""

    rule: ClassVar[str] = "what is dropped of all inputs but one, by measure and by promise"

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        options: Oblivious,
        now: Callable[[], int],
        awaited: frozenset[str] | None = None,
    ):
        super().__init__(store, shape, slice_ticks, awaited)
        self._options, self._now = options, now
        missing = (1 - options.accuracy) / self.ports
        known = options.disorder or (None,) * self.ports
        per_second = shape.domain.ticks_per_second
        self._gauges = [Gauge(missing, each, per_second) for each in known]
        self._manager = Manager(options)
        self._times = [shape.names[port][shape.times[port]] for port in shape.ports]
        self._waiting = [
            TimeBuffer(store, f"waiting{port}", self._times[port], shape.domain, slice_ticks[port])
            for port in shape.ports
        ]
        self._aside = [Aside(store, port, shape.inside_time(port)) for port in shape.ports]
        self._pledged = [BEGINNING] * self.ports
        self._dropped = [BEGINNING] * self.ports
        self._swept = BEGINNING  # rows below were joined after they had waited
        self._floor = BEGINNING  # rows below were given up for lack of memory
        self._late = [0] * self.ports
        self._given_up = [0] * self.ports
        self._multiplicity = [1] * self.ports
        self._fresh = 0  # rows taken in since rows were dropped
        self._unmeasured = 0  # rows taken in since needs were measured
        self._began: int | None = None
        self._before = self._at = 0  # when this step and the one before began

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Measure rows, join them now or let them wait, and drop what is not needed any more."""
        rows = self._shape.prepare(port, chunk)
        ticks = self._shape.domain.array_of(chunk[self._shape.times[port]])
        self._begin_step()
        self._count_late(port, ticks)
        gauge = self._gauges[port]
        (gauge.gather if self.in_batches else gauge.observe)(ticks, self._at)
        self._fresh += len(ticks)
        self._unmeasured += len(ticks)
        results = self._choose()
        if not self._sorts:
            self._fetch(self._reached)
        elif int(ticks.min()) < self._swept:  # what would come out of order does not go in
            in_time = ticks >= self._swept
            rows, ticks = rows.filter(in_time), ticks[in_time]
        rows = self._put_aside(port, rows, ticks)
        if rows.height and self._sorts:
            self._waiting[port].put(rows)
        elif rows.height:
            results += self._joined(port, rows)
        return self._settled(results)

    def all_in(self) -> Sequence[Element]:
        """Conclude from a batch what no later row should be below."""
        if not self.in_batches or not self._open:
            return []
        for gauge in self._gauges:
            gauge.all_in(self._at)
        return self._settled([], at_once=True)

    def _begin_step(self) -> None:
        self._before, self._at = self._at, self._now()
        if self._began is None:
            self._began = self._before = self._at

    @property
    def _sorts(self) -> bool:
        return self._manager.mode in SORTING

    @property
    def _puts_aside(self) -> bool:
        return self._manager.mode in PUTTING_ASIDE

    def _count_late(self, port: int, ticks: Ticks) -> None:
        """Count rows that come below what was dropped of another input, or joined already."""
        others = (each for at, each in enumerate(self._dropped) if at != port)
        self._late[port] += int((ticks < max(*others, self._swept)).sum())

    def _joined(self, port: int, rows: Chunk) -> list[Chunk]:
        """The results of rows with what is kept of the others; they are kept as well."""
        low, high = self._span(port, rows)
        found = self._meet(port, rows, low, high)
        self._keep(port, rows, low, high)
        return [found] if found is not None and found.height else []

    def _span(self, port: int, rows: Chunk) -> tuple[int, int]:
        ticks = self._ticks(port, rows)
        return int(ticks.min()), int(ticks.max())

    def _ticks(self, port: int, rows: Chunk) -> Ticks:
        return self._shape.domain.array_of(rows[self._times[port]])

    # ---- rows that wait --------------------------------------------------------------------

    @property
    def _bounds(self) -> list[int]:
        """What no row still to come of each input should be below."""
        measured = (gauge.bound for gauge in self._gauges)
        return list(map(max, self._pledged, measured))

    @property
    def _reached(self) -> int:
        """Rows above this belong to no result yet: some input has none there."""
        tops = (gauge.top for gauge in self._gauges)
        return min(map(max, tops, (each - 1 for each in self._pledged)))

    @property
    def _edge(self) -> int:
        """Rows below this wait no more, where rows are sorted first."""
        return max(min(self._bounds), self._floor)

    @property
    def _frontier(self) -> int:
        """Rows above this need not be in memory."""
        return self._edge - 1 if self._sorts else self._reached

    def _fetch(self, frontier: int) -> None:
        """Bring back what waits aside no more."""
        if not self._puts_aside:
            frontier = END_OF_TIME
        for port in self._shape.ports:
            rows = self._aside[port].fetch(frontier)
            if rows is None:
                continue
            if self._sorts:
                self._waiting[port].put(rows)
            else:  # nothing that has come can meet them, but for the rows of this step
                self._keep(port, rows, *self._span(port, rows))

    def _put_aside(self, port: int, rows: Chunk, ticks: Ticks) -> Chunk:
        """Put rows aside that are far ahead; the others."""
        if not self._puts_aside:
            return rows
        far = ticks > self._frontier
        if not far.any() or not self._far_ahead(port, int(far.sum())):
            return rows
        if self._options.memory is not None:
            share = self._cap // (SPARE * self.ports * max(1, _row_bytes(rows)))
            self._aside[port].page_rows = min(PAGE_ROWS, max(LEAST_ROWS, share))
        self._aside[port].put(rows.filter(far))
        return rows.filter(~far)

    def _far_ahead(self, port: int, rows: int) -> bool:
        """Whether an input is so far ahead that rows put aside are back before they are due."""
        if self._at == self._began:  # the clock stands still
            return rows >= PAGE_ROWS
        since = self._gauges[port].reached(self._frontier + 1)
        trip = max(self.store.round_trip, self._at - self._before)
        return since is not None and self._at - since >= ROUND_TRIPS * trip

    def _sweep(self, below: int) -> list[Chunk]:
        """Join rows that have waited, up to a value; the results in order."""
        found: list[Chunk] = []
        for port in self._shape.ports:
            rows = self._waiting[port].upto(below - 1)
            if rows is not None:
                found += self._joined(port, rows)
        self._swept = max(self._swept, below)
        time = self._shape.out_name(0, self._shape.times[0])
        return [pl.concat(found).sort(time, maintain_order=True)] if found else []

    # ---- what is needed --------------------------------------------------------------------

    def _choose(self) -> list[Chunk]:
        """Let the manager choose, now and then; what leaves if rows wait no more."""
        held = self.store.rows
        self._measure_multiplicity(held)
        if not self._manager.chooses:
            return []
        over = self._memory > FITS * self._cap
        if not held or (self._unmeasured < max(FEW, held // OFTEN) and not over):
            return []
        sorted_before, needs = self._sorts, self._needs()
        if needs is not None:
            self._unmeasured = 0
            rows = sum(self._held(port) for port in self._shape.ports)
            self._manager.choose(needs, self._memory / max(1, rows), self._cap, PAGE_ROWS)
        elif over:
            ahead = sum(int((self._values(p) > self._reached).sum()) for p in self._shape.ports)
            self._manager.guess(ahead, held - ahead)
        if sorted_before and not self._sorts:
            return self._let_go()
        if not sorted_before and self._sorts:
            self._swept = max(self._swept, self._told_mark)
        return []

    def _let_go(self) -> list[Chunk]:
        """Join everything that waits, as it would have been joined when it came."""
        for port in self._shape.ports:
            rows = self._aside[port].fetch(self._reached)
            if rows is not None:
                self._waiting[port].put(rows)
        swept = self._swept
        results = self._sweep(END_OF_TIME)
        self._swept = swept
        self._drop_all(swept)
        return results

    @property
    def _cap(self) -> int:
        return (self._options.memory or END_OF_TIME) // self.copies

    @property
    def _memory(self) -> int:
        """Bytes of rows in memory."""
        kept = sum(self.store.bytes_of(rows_of(port)) for port in self._shape.ports)
        waiting = sum(self.store.bytes_of(f"waiting{port}") for port in self._shape.ports)
        return kept + waiting + sum(each.bytes for each in self._aside)

    def _held(self, port: int) -> int:
        """Rows of an input in memory."""
        name = rows_of(port)
        kept = sum(self.store.rows_in(name, each) for each in self.store.slices(name))
        return kept + self._waiting[port].rows + self._aside[port].loose

    def _measure_multiplicity(self, held: int) -> None:
        if self._unmeasured < max(FEW, held // OFTEN):
            return
        for port in self._shape.ports:
            ticks = self._values(port)
            if len(ticks):
                most = int(np.unique(ticks, return_counts=True)[1].max())
                self._multiplicity[port] = max(self._multiplicity[port], most)
        if not self._manager.chooses:
            self._unmeasured = 0

    def _values(self, port: int) -> Ticks:
        """The ticks of an input's rows in memory, in no order."""
        names = (rows_of(port), f"waiting{port}", f"loose{port}")
        chunks = [rows for name in names if (rows := read(self.store, name)) is not None]
        parts = [self._ticks(port, rows) for rows in chunks]
        return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)

    def _needs(self) -> Needs | None:
        """What is needed, by what is measured; None before enough is."""
        if any(gauge.factor is None for gauge in self._gauges):
            return None
        traits = []
        rates = [gauge.rate(self._at) for gauge in self._gauges]
        for port, gauge in enumerate(self._gauges):
            rate = rates[port] if all(rates) else float(gauge.rows)
            factor = min(gauge.factor or 0, gauge.rows)
            traits.append(Traits(rate or 1.0, factor, self._multiplicity[port]))
        lags = []
        for one, own in enumerate(traits):
            values, far = self._values(one), self._aside[one].rows
            ahead = [int((values >= gauge.bound).sum()) + far for gauge in self._gauges]
            lags.append(
                tuple(
                    count - own.rate * mate.disorder / mate.rate
                    for count, mate in zip(ahead, traits, strict=True)
                )
            )
        return Needs(tuple(traits), tuple(lags))

    # ---- dropping and telling --------------------------------------------------------------

    def _settled(self, results: list[Chunk], at_once: bool = False) -> list[Element]:
        """Drop what is not needed any more, and tell what cannot come any more."""
        results += self._advance()
        if at_once or self._fresh * LAZY >= self.store.rows:
            self._fresh = 0
            for port in self._shape.ports:
                threshold = self._threshold(port)
                if threshold > self._dropped[port]:
                    self._drop(port, threshold)
                    self._dropped[port] = threshold
        while self._options.memory is not None and self._memory > self._cap:
            results += self._give_up()
        return [*results, *self._tell()]

    def _threshold(self, port: int) -> int:
        """Rows of ``port`` below this time are not kept any more."""
        return max(super()._threshold(port), self._floor, self._dropped[port])

    def _advance(self, least: int = BEGINNING) -> list[Chunk]:
        """Move the marks, and join what has waited long enough, or is below a value."""
        bounds = self._bounds
        if not self._sorts:
            self._marks = list(map(max, self._marks, bounds))
            return []
        edge = max(self._edge, least)
        if edge == BEGINNING:
            return []
        self._fetch(edge - 1)
        found = self._sweep(edge)
        self._marks = [max(mark, edge) for mark in self._marks]
        return found

    def _give_up(self) -> list[Chunk]:
        """Free memory: what all inputs have mostly passed goes first, then what is furthest ahead
        of some, then the least."""
        memory, values = self._memory, [self._values(port) for port in self._shape.ports]
        everything = np.sort(np.concatenate(values))
        rows = len(everything)
        excess = memory - self._cap + self._cap // SPARE
        count = min(rows, -(-excess * rows // memory))
        settled = min(gauge.mostly_passed for gauge in self._gauges)
        passed, ahead = np.searchsorted(everything, [settled, self._reached + 1]).tolist()
        below = min(count, passed)
        above = min(count - below, rows - ahead)
        if above:
            self._clear_above(int(everything[rows - above]))
        below = count - above
        if not below:
            return []
        least = int(everything[below - 1]) + 1
        results = self._advance(least)  # what waits is joined with what has come
        self._floor = max(self._floor, least)
        self._drop_all(self._floor)
        return results

    def _drop_all(self, below: int) -> None:
        for port in self._shape.ports:
            if below > self._dropped[port]:
                self._drop(port, below)
                self._dropped[port] = below

    def _clear_above(self, value: int) -> None:
        """Have no rows from a value on in memory, above what all inputs have reached: they go to
        disk if they may, and are given up if not."""
        for port in self._shape.ports:
            time = self._shape.inside_time(port)
            found = [self._waiting[port].take_from(value)]
            for slice_ in self.store.slices(rows_of(port)):
                rows = take(self.store, rows_of(port), slice_, slice_ + 1)
                assert rows is not None
                found.append(rows.filter(time >= value))
                stay = rows.filter(time < value)
                if stay.height:
                    self.store.put(rows_of(port), slice_, stay)
            ahead = [rows for rows in found if rows is not None and rows.height]
            if not self._puts_aside:
                self._given_up[port] += sum(rows.height for rows in ahead)
                continue
            for rows in ahead:
                self._aside[port].put(rows)
            self._aside[port].flush()

    @property
    def _told_mark(self) -> int:
        """No result still to come is below this."""
        return sorted(self._dropped)[-2]

    def _tell(self) -> list[Element]:
        mark = max(self._told_mark, self._swept if self._sorts else BEGINNING)
        outs = dict.fromkeys(name for each in self._names for name in each.values())
        return [each for out in outs for each in once({out: mark}, self._told, self._awaited)]

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """A promise of an input counts as what is measured does."""
        known = promise.renamed(self._names[port])
        if known is None or promise.attributes != (self._shape.times[port],):
            return []
        (mark,) = promise.values
        if mark <= self._pledged[port]:
            return []
        self._heard[port][promise.attributes] = known
        self._pledged[port] = mark
        return self._moved()

    def closing(self, port: int) -> Sequence[Element]:
        """An input that ended can meet nothing any more."""
        self._gauges[port].end()
        time = self._shape.times[port]
        self._heard[port][time,] = Punctuation.linear(self._names[port][time], END_OF_TIME)
        return self._moved()

    def _moved(self) -> list[Element]:
        self._begin_step()
        if not self._sorts:
            self._fetch(self._reached)
        return self._settled([], at_once=True)

    # ---- asking and saving -----------------------------------------------------------------

    def marks(self) -> dict[str, int]:
        """The marks of all inputs."""
        bounds = enumerate(zip(self._shape.times, self._bounds, strict=True))
        return {f"{time}[{port}]": bound for port, (time, bound) in bounds}

    @property
    def accuracy(self) -> float:
        """The share of results that was found, estimated: a row that came too late, or was given
        up, misses as many results as the others had."""
        found = 1.0
        for port, gauge in enumerate(self._gauges):
            lost = self._late[port] + self._given_up[port]
            found *= 1 - min(1.0, lost / max(1, gauge.rows))
        return found

    def about(self) -> dict[str, str | int | float]:
        """What was measured, what is predicted and held, and what was given up."""
        expected = float(np.prod([gauge.expected for gauge in self._gauges]))
        about: dict[str, str | int | float] = {
            **self._manager.about(),
            "accuracy": self.accuracy,
            "expected accuracy": expected,
            "late rows": sum(self._late),
            "rows given up": sum(self._given_up),
        }
        needs = self._needs()
        for port, gauge in enumerate(self._gauges):
            rate = gauge.rate(self._at)
            if rate is not None:
                about[f"rows/s[{port}]"] = rate
            about[f"scrambling factor[{port}]"] = gauge.scrambling
            about[f"multiplicity[{port}]"] = self._multiplicity[port]
            if needs is not None:
                about[f"predicted rows[{port}]"] = needs.buffer(port)
                for other in self._shape.ports:
                    if other != port:
                        about[f"lag[{port}→{other}]"] = round(needs.lags[port][other])
            about[f"held rows[{port}]"] = self._held(port)
            about[f"rows on disk[{port}]"] = self._aside[port].rows
        return about

    def snapshot(self) -> dict[str, Any]:
        """All that is measured, and what was dropped."""
        return super().snapshot() | {
            "gauges": [each.snapshot() for each in self._gauges],
            "manager": self._manager.snapshot(),
            "waiting": [each.snapshot() for each in self._waiting],
            "aside": [each.snapshot() for each in self._aside],
            "promised": list(self._pledged),
            "dropped": list(self._dropped),
            "swept": self._swept,
            "floor": self._floor,
            "late": list(self._late),
            "given up": list(self._given_up),
            "multiplicity": list(self._multiplicity),
            "fresh": self._fresh,
            "unmeasured": self._unmeasured,
            "clock": (self._began, self._before, self._at),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        for port in self._shape.ports:
            self._gauges[port].restore(saved["gauges"][port])
            self._waiting[port].restore(saved["waiting"][port])
            self._aside[port].restore(saved["aside"][port])
        self._manager.restore(saved["manager"])
        self._pledged, self._dropped = list(saved["promised"]), list(saved["dropped"])
        self._swept, self._floor = saved["swept"], saved["floor"]
        self._late, self._given_up = list(saved["late"]), list(saved["given up"])
        self._multiplicity = list(saved["multiplicity"])
        self._fresh, self._unmeasured = saved["fresh"], saved["unmeasured"]
        self._began, self._before, self._at = saved["clock"]


def _row_bytes(rows: Chunk) -> int:
    return int(rows.estimated_size()) // rows.height
