"""The window-oblivious join: rows of many inputs equal in a progressing attribute, and no window.

How long a row is kept follows from the data (WO-Join). Each input is measured by a gauge, which
says what no row still to come should be below; what the input promises counts as well, and the
greater of the two is its *mark*. A row is kept until the marks of all other inputs have passed it.
So what is kept follows lags, bursts and lulls by itself: nothing is dropped while an input that
lags has not come so far.

Rows that come below what was dropped meet what is still there; each is counted, and so is every row
that a cap on memory made the join give up. Lost results are counted by key (see ``losses``).

Two reliefs, alone or together (see ``manager``). *Sorting first*: rows wait until the marks of all
inputs have passed them, then those that waited are joined and their results leave in order; what
comes later still is given up. *Disk first*: rows of an input beyond what the others have reached
wait in pages (see ``aside``).

Output promises. A result has a row that comes last, and its other rows are kept then. So no result
is below what is dropped of at least all inputs but one: that is a true promise, however rough the
measurements are.

Invariants: a row that was joined is kept until it is below ``_dropped`` of its input, has met all
it can, or is given up. So a result is lost only if one of its rows comes below what is dropped of
another input, repeats a value whose rows have met, or was given up. A row that is aside is above
the greatest value of some other input (above what was joined, if rows are sorted first), and so
belongs to no result yet.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.joins.multi_join import MultiJoin
from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.oblivious.accounts import Accounts
from lowwater.joins.oblivious.aside import LEAST_ROWS, PAGE_ROWS
from lowwater.joins.oblivious.manager import FITS, Manager
from lowwater.joins.oblivious.measures import Measures
from lowwater.joins.oblivious.model import PUTTING_ASIDE, SORTING
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.places import Places
from lowwater.joins.oblivious.records import Ticks
from lowwater.joins.telling import once
from lowwater.operators.metric import Readings
from lowwater.state.store import ChunkStore
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation

LAZY = 16
"""Rows are dropped once at least one in so many of those held is new."""
ROUND_TRIPS = 3
"""Rows are put aside if they are ahead by so many times what it takes to get them back (§4.2)."""
SPARE = 16
"""Under a cap, one in so many bytes is freed beyond what must be, and is a page at most."""


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
        self._memory_allowed, self._now = options.memory, now
        self._measures = Measures(options, self.ports, shape.domain.ticks_per_second)
        self._manager = Manager(options)
        self._places = Places(store, shape, slice_ticks, self._slicing)
        self._accounts = Accounts(shape, self._places, self._measures.losses)
        self._pledged = [BEGINNING] * self.ports  # what the inputs promise
        self._dropped = [BEGINNING] * self.ports
        self._swept = BEGINNING  # rows below were joined after they had waited
        self._floor = BEGINNING  # rows below were given up for lack of memory
        self._fresh = 0  # rows taken in since rows were dropped
        self._in_order = self._sorts  # how the rows that are here were put
        self._sweeping = False
        self._noted = False  # that too many results are lost
        self._unsettled = False
        self._began: int | None = None
        self._before = self._at = 0  # when this step and the one before began

    @property
    def _sorts(self) -> bool:
        return self._manager.mode in SORTING

    @property
    def _puts_aside(self) -> bool:
        return self._manager.mode in PUTTING_ASIDE

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Measure rows, join them now or let them wait, and drop what is not needed any more."""
        rows = self._shape.prepare(port, chunk)
        ticks = self._places.ticks(port, rows)
        results = self._begin_step()
        self._measures.take(port, ticks, max(self._gone(port), self._swept))
        self._notice_again(port, ticks)
        self._fresh += len(ticks)
        if not self.in_batches:
            self._measures.measure(self._at)
        results += self._choose()
        if not self._sorts:
            self._fetch(self._reached)
        elif int(ticks.min()) < self._swept:  # what would come out of order does not go in
            in_time = ticks >= self._swept
            self._account(port, rows.filter(~in_time))
            rows, ticks = rows.filter(in_time), ticks[in_time]
        rows = self._put_aside(port, rows, ticks)
        if rows.height and self._sorts:
            self._places.waiting[port].put(rows)
        elif rows.height:
            results += self._joined(port, rows)
        if self.in_batches:
            self._unsettled = True
            return results
        return self._settled(results)

    @property
    def has_work(self) -> bool:
        """Whether rows were taken in of which more may come that belong to the same batch."""
        return self._unsettled

    def work_on(self) -> Sequence[Element]:
        """A batch has ended: measure it, and act on that."""
        self._unsettled = False
        results = self._follow()
        self._measures.measure(self._at)
        return self._settled(results)

    def _begin_step(self) -> list[Chunk]:
        """Take the time; what leaves if another strategy than before is in force."""
        self._measures.losses.copies = self.copies
        self._before, self._at = self._at, self._now()
        if self._began is None:
            self._began = self._before = self._at
        return self._follow()

    def _joined(self, port: int, rows: Chunk) -> list[Chunk]:
        """The results of rows with what is kept of the others; they are kept as well."""
        low, high = self._span(port, rows)
        matched = self._match(port, rows, low, high)
        self._keep(port, rows, low, high)
        if matched is None or not matched[0].height:
            self._account(port, rows)
            return []
        self._account(port, rows, self._shape.numbers(port, matched[0]))
        found = self._shape.put_out(*matched)
        self._measures.losses.found += found.height
        if not found.height:
            return []
        if self._measures.unique and not self._sorts:
            self._note_met(found)
        return [found]

    def _note_met(self, found: Chunk) -> None:
        """Rows that met need not be kept where no value comes twice."""
        time = self._shape.out_name(0, self._shape.times[0])
        values = np.unique(self._shape.domain.array_of(found[time]))
        if len(values) < found.height:  # one does
            self._measures.multiplicity = [max(2, each) for each in self._measures.multiplicity]
        elif self._places.met.bytes + values.nbytes <= self._cap // 2:  # values take memory as well
            self._places.met.add(values)

    def _notice_again(self, port: int, ticks: Ticks) -> None:
        """A second row of a value whose rows have met and gone misses them."""
        again = self._places.met.among(ticks) if len(self._places.met) else 0
        if again:
            self._measures.late[port] += again
            self._measures.multiplicity[port] = max(2, self._measures.multiplicity[port])

    def _gone(self, port: int) -> int:
        """Rows of an input below this miss rows of another one that were dropped."""
        return max(each for at, each in enumerate(self._dropped) if at != port)

    def _account(self, port: int, rows: Chunk, made: pl.Series | None = None) -> None:
        """Count rows that were joined or given up; ``made`` has the row of each match."""
        self._accounts.take(port, rows, self._gone(port), made)

    def _span(self, port: int, rows: Chunk) -> tuple[int, int]:
        ticks = self._places.ticks(port, rows)
        return int(ticks.min()), int(ticks.max())

    # ---- rows that wait --------------------------------------------------------------------

    @property
    def _bounds(self) -> list[int]:
        """What no row still to come of each input should be below."""
        measured = (gauge.bound for gauge in self._measures.gauges)
        return list(map(max, self._pledged, measured))

    @property
    def _reached(self) -> int:
        """Rows above this belong to no result yet: some input has none there."""
        return min(map(max, self._measures.tops, (each - 1 for each in self._pledged)))

    @property
    def _edge(self) -> int:
        """Rows below this wait no more, where rows are sorted first."""
        return max(min(self._bounds), self._floor)

    def _fetch(self, frontier: int) -> None:
        """Bring back what waits aside no more."""
        if not self._puts_aside:
            frontier = END_OF_TIME
        for port in self._shape.ports:
            rows = self._places.aside[port].fetch(frontier)
            if rows is None:
                continue
            if self._sorts:
                self._places.waiting[port].put(rows)
            else:  # nothing that has come can meet them, but for the rows of this step
                self._account(port, rows)
                self._keep(port, rows, *self._span(port, rows))

    def _put_aside(self, port: int, rows: Chunk, ticks: Ticks) -> Chunk:
        """Put rows aside that are far ahead; the others."""
        if not self._puts_aside:
            return rows
        frontier = self._edge - 1 if self._sorts else self._reached
        far = ticks > frontier
        if not far.any() or not self._far_ahead(port, frontier, int(far.sum())):
            return rows
        aside = self._places.aside[port]
        if self._memory_allowed is not None:
            width = max(1, int(rows.estimated_size()) // rows.height)
            share = self._cap // (SPARE * self.ports * width)
            aside.page_rows = min(PAGE_ROWS, max(LEAST_ROWS, share))
        aside.put(rows.filter(far))
        return rows.filter(~far)

    def _far_ahead(self, port: int, frontier: int, rows: int) -> bool:
        """Whether an input is so far ahead that rows put aside are back before they are due."""
        if self._at == self._began:  # the clock stands still
            return rows >= PAGE_ROWS
        since = self._measures.gauges[port].reached(frontier + 1)
        trip = max(self.store.round_trip, self._at - self._before)
        return since is not None and self._at - since >= ROUND_TRIPS * trip

    def _sweep(self, below: int) -> list[Chunk]:
        """Join rows that have waited, up to a value; the results in order.

        All are kept until all have been joined: marks of before may have passed rows that have not
        met yet, if rows were joined as they came until now.
        """
        found: list[Chunk] = []
        least = list(self._dropped)
        self._sweeping = True
        for port in self._shape.ports:
            rows = self._places.waiting[port].upto(below - 1)
            if rows is not None:
                least[port] = min(least[port], self._span(port, rows)[0])
                found += self._joined(port, rows)
        self._sweeping = False
        for port in self._shape.ports:
            if least[port] < self._dropped[port]:
                self._drop(port, self._dropped[port])
        time = self._shape.out_name(0, self._shape.times[0])
        return [pl.concat(found).sort(time, maintain_order=True)] if found else []

    # ---- choosing a relief -----------------------------------------------------------------

    @property
    def _cap(self) -> int:
        return (self._memory_allowed or END_OF_TIME) // self.copies

    def _choose(self) -> list[Chunk]:
        """Measure and let the manager choose, now and then; what leaves if rows wait no more."""
        places, held = self._places, self.store.rows
        over = self._manager.chooses and places.memory > FITS * self._cap
        if not held or not (over or self._measures.due(held)):
            return []
        if not self.in_batches:  # a batch shows how often values come, and state is far away
            self._measures.renew(places)
        if not self._manager.chooses:
            return []
        needs = self._measures.needs(places, self._at, not self.in_batches)
        if needs is not None:
            row_bytes = places.memory / max(1, places.rows)
            self._manager.choose(needs, row_bytes, self._cap, PAGE_ROWS)
        elif over:
            reached = self._reached
            ahead = sum(int((places.values(p) > reached).sum()) for p in self._shape.ports)
            self._manager.guess(ahead, places.rows - ahead)
        return self._follow()

    def _follow(self) -> list[Chunk]:
        """Go over to the strategy in force, also after a restart; what leaves thereby."""
        if self._in_order == self._sorts:
            return []
        self._in_order = self._sorts
        if not self._sorts:
            return self._let_go()
        for port in self._shape.ports:  # no row is to be dropped while those it meets wait
            self._drop_to(port, self._droppable(port))
        self._swept = max(self._swept, self._mark_out)
        return []

    def _let_go(self) -> list[Chunk]:
        """Join everything that waits, as it would have been joined when it came."""
        for port in self._shape.ports:
            rows = self._places.aside[port].fetch(self._reached)
            if rows is not None:
                self._places.waiting[port].put(rows)
        results = self._sweep(END_OF_TIME)
        self._drop_all(self._swept)
        return results

    # ---- dropping and telling --------------------------------------------------------------

    def _settled(self, results: list[Chunk], at_once: bool = False) -> list[Element]:
        """Drop what is not needed any more, and tell what cannot come any more."""
        results += self._advance()
        if at_once or self._fresh * LAZY >= self.store.rows:
            self._fresh = 0
            for port in self._shape.ports:
                self._drop_to(port, self._droppable(port))
            if len(self._places.met):
                self._places.drop_met(min(self._dropped))
        if self._memory_allowed is not None and self._places.memory > self._cap:
            results += self._choose()
        while self._memory_allowed is not None and self._places.memory > self._cap:
            results += self._give_up()
        return [*results, *self._tell()]

    def _threshold(self, port: int) -> int:
        """Rows of ``port`` below this time are not kept any more."""
        return BEGINNING if self._sweeping else self._dropped[port]

    def _droppable(self, port: int) -> int:
        """Rows of ``port`` below this time need not be kept any more."""
        return max(self._least_but([port]), self._floor, self._dropped[port])

    def _advance(self, least: int = BEGINNING) -> list[Chunk]:
        """Move the marks, and join what has waited long enough, or is below a value."""
        if not self._sorts:
            self._marks = list(map(max, self._marks, self._bounds))
            return []
        edge = max(self._edge, least)
        if edge == BEGINNING:
            return []
        self._fetch(edge - 1)
        found = self._sweep(edge)
        self._swept = max(self._swept, edge)
        self._marks = [max(mark, edge) for mark in self._marks]
        return found

    def _give_up(self) -> list[Chunk]:
        """Free memory: what all inputs have mostly passed goes first, then what is furthest ahead
        of some, then the least."""
        memory, values = self._places.memory, map(self._places.values, self._shape.ports)
        everything = np.sort(np.concatenate(list(values)))
        rows = len(everything)
        excess = memory - self._cap + self._cap // SPARE
        count = min(rows, -(-excess * rows // memory))
        settled = min(gauge.mostly_passed for gauge in self._measures.gauges)
        passed, ahead = np.searchsorted(everything, [settled, self._reached + 1]).tolist()
        above = min(count - min(count, passed), rows - ahead)
        if above:
            self._clear_above(int(everything[rows - above]))
        if above == count:
            return []
        least = int(everything[count - above - 1]) + 1
        results = self._advance(least)  # what waits is joined with what has come
        self._floor = max(self._floor, least)
        self._drop_all(least)
        return results

    def _clear_above(self, value: int) -> None:
        """Have no rows from a value on in memory, above what all inputs have reached: they go to
        disk if they may, and are given up if not."""
        for port in self._shape.ports:
            aside = self._places.aside[port]
            waited, kept = self._places.take_from(port, value)
            if self._puts_aside and kept is not None:
                self._accounts.put_back(port, kept)
            elif not self._puts_aside and waited is not None:
                self._account(port, waited)
            for rows in (waited, kept):
                if rows is not None and self._puts_aside:
                    aside.put(rows)
                elif rows is not None:
                    self._measures.given_up[port] += rows.height
            aside.flush()

    def _drop_all(self, below: int) -> None:
        for port in self._shape.ports:
            self._drop_to(port, below)

    def _drop_to(self, port: int, below: int) -> None:
        if below > self._dropped[port]:
            self._drop(port, below)
            self._dropped[port] = below

    @property
    def _mark_out(self) -> int:
        """No result still to come is below this."""
        return max(sorted(self._dropped)[-2], self._swept)

    def _tell(self) -> list[Element]:
        outs = dict.fromkeys(name for each in self._names for name in each.values())
        mark = self._mark_out
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

    def close_port(self, port: int) -> Sequence[Element]:
        """An input that ended can meet nothing any more."""
        self._unsettled = False
        self._measures.measure(self._at)
        self._measures.gauges[port].end()
        time = self._shape.times[port]
        self._heard[port][time,] = Punctuation.linear(self._names[port][time], END_OF_TIME)
        return self._moved()

    def _close_epoch(self) -> list[Element]:
        """Join and drop all rows as if all inputs had ended, and forget what was measured."""
        self._measures.measure(self._at)
        for gauge in self._measures.gauges:
            gauge.end()
        results = self._moved()
        self._measures.begin_again()
        self._places.drop_met(END_OF_TIME)
        self._marks, self._dropped = [BEGINNING] * self.ports, [BEGINNING] * self.ports
        self._swept = self._floor = BEGINNING
        return results

    def _moved(self) -> list[Element]:
        results = self._begin_step()
        if not self._sorts:
            self._fetch(self._reached)
        return self._settled(results, at_once=True)

    # ---- looking and saving ----------------------------------------------------------------

    def marks(self) -> dict[str, int]:
        """The marks of all inputs."""
        bounds = enumerate(zip(self._shape.times, self._bounds, strict=True))
        return {f"{time}[{port}]": bound for port, (time, bound) in bounds}

    def metrics(self) -> Readings:
        """Return what was measured, what is predicted and held, and what was lost."""
        measured = self._measures.metrics(self._places, self._at, not self.in_batches)
        return self._manager.metrics() | measured

    def notes(self) -> Sequence[str]:
        """Once: that too many results are lost. Of copies only all together can tell."""
        if self._noted or self.copies > 1 or not self._measures.losses.lost_more:
            return []
        notes = self._measures.shortfall(ended=not self._open)
        self._noted = bool(notes)
        return notes

    def snapshot(self) -> dict[str, Any]:
        """All that is measured, and what was dropped."""
        return super().snapshot() | {
            "measures": self._measures.snapshot(),
            "manager": self._manager.snapshot(),
            "places": self._places.snapshot(),
            "pledged": list(self._pledged),
            "dropped": list(self._dropped),
            "swept": self._swept,
            "floor": self._floor,
            **{"fresh": self._fresh, "in order": self._in_order, "noted": self._noted},
            "clock": (self._began, self._before, self._at),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._measures.restore(saved["measures"])
        self._manager.restore(saved["manager"])
        self._places.restore(saved["places"])
        self._pledged, self._dropped = list(saved["pledged"]), list(saved["dropped"])
        self._swept, self._floor = saved["swept"], saved["floor"]
        self._fresh, self._in_order, self._noted = (
            saved[n] for n in ("fresh", "in order", "noted")
        )
        self._began, self._before, self._at = saved["clock"]
