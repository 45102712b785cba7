"""The ordered join (Ordered §4-§6): any join, with its rows or its results held back.

The time of a result is the greatest of its rows' times. Each input has a buffer of rows before the
join, and there is one buffer of results after it. With Sync-Filter, rows wait in the buffers before
the join until the least mark of all inputs has passed them, and are then joined by time. With
Filter-Order, rows are joined as they come. In both, a result leaves when that mark has passed it,
because neither a row to come nor a waiting one can make an earlier result.

A switch from Sync-Filter to Filter-Order joins the waiting rows. A switch back needs no work: held
results leave as the mark moves, together with those of rows joined since, until none is held (the
paper's steps E to L).

Invariant: after every step exactly the results up to the *frontier* have left. The frontier is the
least position (``ordered_shape``) that the punctuation of an input has reached. So the results and
their order do not depend on the mode or on switches.

Sizes of the buffers, also invariants after every step: a row waits only if it is above the least
mark of all inputs, and a result is held only if it is above the frontier. In a join of pairs the
frontier is not below the least mark, so both sizes are bounded by what came above that mark: by the
rates and by how far that input is behind (``held back by`` names it). If rows come out alone, the
frontier is the least mark less the reach of the join. While rows are still to be joined, the bound
on results holds with the first of them instead of the mark.

Work can be done in portions, so that ready results leave before the next rows are joined. Then the
frontier is not beyond the first row that is still to be joined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import polars as pl

from lowwater.joins.ordered.ordered_shape import AT, OrderedShape, Position, number_of
from lowwater.joins.ordered.strategy import ModeChooser, Ordering
from lowwater.joins.promises import OutputMarks
from lowwater.operators.kernel import Host, Kernel, Request
from lowwater.operators.metric import Metric, Readings, Texts, peak, size
from lowwater.state.store import ChunkStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import (
    BEGINNING,
    END_OF_TIME,
    Chunk,
    Element,
    End,
    Punctuation,
    moved,
)
from lowwater.stream.floor import Floor
from lowwater.stream.low_water_mark import LowWaterMark

TARGET = 10_000_000
"""Target length of a portion of work, in nanoseconds."""
FIRST_PORTION = 256
"""Number of rows in the first portion."""

HELD_ROWS = size(
    "order_held_rows", "results held", "Results found that wait for earlier ones.", key="held_rows"
)
HELD_ROWS_PEAK = peak(
    "order_held_rows_peak",
    "results held at most",
    "The most results that waited for earlier ones, in any one bucket.",
    key="held_rows_peak",
)
HELD_BYTES = size(
    "order_held_bytes",
    "bytes of results held",
    "Bytes of the results that wait for earlier ones.",
    "bytes",
    key="held_bytes",
    exact=False,
)
HELD_BYTES_PEAK = peak(
    "order_held_bytes_peak",
    "bytes of results held at most",
    "The most bytes of results that waited for earlier ones, in any one bucket.",
    "bytes",
    key="held_bytes_peak",
)
WAITING_ROWS = size(
    "order_waiting_rows",
    "rows waiting",
    "Rows of the inputs that wait to be joined in order.",
    key="waiting_rows",
)
WAITING_ROWS_PEAK = peak(
    "order_waiting_rows_peak",
    "rows waiting at most",
    "The most rows of one input that waited to be joined, in any one bucket.",
    key="waiting_rows_peak",
)

HELD_BACK_BY = Metric(
    "order_held_back_by",
    str,
    "state",
    Texts(),
    "held back by",
    "The input with the least mark, for which rows or results wait; absent while none wait.",
    key="held_back_by",
)


class OrderedJoin(Kernel):
    """Orders the results of a join of any kind by time."""

    rule: ClassVar[str] = "the least mark over the inputs, after the results it releases"
    defers: ClassVar[bool] = True
    feeds_back: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        join: Callable[[ChunkStore], Kernel],
        shape: OrderedShape,
        ordering: Ordering,
        slice_ticks: int,
        host: Host,
    ):
        ports = range(len(shape.inputs))
        super().__init__(store, len(ports), host)
        self._join, self._shape, self._now = join(store), shape, host.now
        self._strategy = ModeChooser(
            ordering, shape.windows, shape.inputs[0].domain.ticks_per_second
        )
        self._mode = self._strategy.mode
        self._waiting = [
            TimeBuffer(store, f"waiting{port}", AT, slice_ticks, then=[number_of(port)])
            for port in ports
        ]
        self._held = TimeBuffer(store, "held", AT, slice_ticks, then=shape.ties.then)
        self._todo: list[Chunk | None] = [None for _ in ports]  # rows to be joined, by input
        self._registers = LowWaterMark(ports)
        self._received: list[dict[tuple[str, ...], Punctuation]] = [{} for _ in ports]
        self._unseen = [False for _ in ports]  # inputs with punctuation that the join has not got
        self._ended: set[int] = set()  # ended inputs whose end the join has not got
        self._next = [0 for _ in ports]
        self._latest = BEGINNING
        self._known: dict[tuple[str, ...], int] = {}  # marks of the join
        self._out = OutputMarks()
        self._per_row = TARGET / FIRST_PORTION  # nanoseconds; the first value is a guess
        self._joined = 0  # rows in the last step
        self._compared = 0

    # ---- rows and promises -----------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Join rows, or hold them until they are in order; return the results that leave."""
        first = self._next[port]
        self._next[port] += chunk.height
        numbers = pl.int_range(first, first + chunk.height, dtype=pl.Int64)
        rows = chunk.with_columns(self._shape.inputs[port].ticks, numbers.alias(number_of(port)))
        self._latest = max(self._latest, int(rows[AT].max()))  # type: ignore[arg-type]
        self._strategy.arrived(port, chunk.height, self._now(), self._latest)
        self._change_mode()
        if self._mode == "filter-order":
            self._add(port, rows)
        else:
            self._waiting[port].put(rows)
            self._let_in()
        return self._step()

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Advance the mark of an input; join waiting rows and release results."""
        before = self._received[port].get(promise.attributes)
        if not promise.goes_beyond(before.values if before else None):
            return []
        self._received[port][promise.attributes] = promise
        self._unseen[port] = True
        if self._registers.advance(port, self._shape.inputs[port].mark(promise)):
            self._let_in()
        return self._step()

    def on_end(self, port: int) -> Sequence[Element]:
        """Close the mark of an input that ended."""
        self._open.discard(port)
        self._ended.add(port)
        self._registers.close(port)
        self._let_in()
        return self._ending(self._step())

    def _ending(self, elements: list[Element]) -> list[Element]:
        return elements if self._open or self.has_work else [*elements, End()]

    def _change_mode(self) -> None:
        """Change to the mode that the strategy has chosen."""
        if self._mode == self._strategy.mode:
            return
        self._mode = self._strategy.mode
        if self._mode == "filter-order":
            for port, waiting in enumerate(self._waiting):
                self._add(port, waiting.upto(END_OF_TIME))
                self._unseen[port] = True

    def _let_in(self) -> None:
        """Take the rows below the least mark of all inputs out of the buffers before the join."""
        for port, waiting in enumerate(self._waiting):
            if waiting:
                self._add(port, waiting.upto(self._registers.value))
                self._unseen[port] = True

    def _add(self, port: int, rows: Chunk | None) -> None:
        if rows is None:
            return
        before = self._todo[port]
        self._todo[port] = rows if before is None else pl.concat([before, rows])

    # ---- work ------------------------------------------------------------------------------

    @property
    def has_work(self) -> bool:
        """True if rows are still to be joined."""
        return any(rows is not None for rows in self._todo)

    def work_on(self) -> Sequence[Element]:
        """Join a portion of rows; after the last, end the output if all inputs have ended."""
        portion = max(1, round(TARGET / max(1.0, self._per_row)))
        return self._ending(self._release(self._work(portion)))

    def record_time(self, nanoseconds: int) -> None:
        """Update the cost of a comparison and the number of rows in a portion."""
        compared = self.comparisons - self._compared
        self._compared = self.comparisons
        self._strategy.took(nanoseconds, compared)
        if self._joined:
            self._per_row = max(nanoseconds / self._joined, self._per_row / 2)
        self._joined = 0

    def _step(self) -> list[Element]:
        """Return the output that follows from an element.

        If work is done in portions, rows that are to be joined are left for :meth:`work_on`.
        """
        if self.host.in_portions and self.has_work:
            return self._release([])
        return self._release(self._work(None))

    def _work(self, portion: int | None) -> list[Chunk]:
        """Join rows, the earliest first if ``portion`` limits their number; return the results."""
        results: list[Chunk] = []
        upto = END_OF_TIME if portion is None else self._end_of(portion)
        for port in range(self.ports):
            rows = self._taken(port, upto)
            if rows is not None:
                self._joined += rows.height
                results += self._results_of(self._join.on_chunk(port, rows.drop(AT)))
        for port in range(self.ports):
            if self._todo[port] is None and self._unseen[port]:
                self._unseen[port] = False
                for promise in self._promises(port):
                    results += self._results_of(self._join.on_punctuation(port, promise))
            done = self._todo[port] is None and not self._waiting[port]
            if done and port in self._ended:
                self._ended.discard(port)
                results += self._results_of(self._join.on_end(port))
        self.comparisons = self._join.comparisons
        return results

    def _end_of(self, portion: int) -> int:
        """Return the greatest time of the rows in a portion."""
        times = np.concatenate([rows[AT].to_numpy() for rows in self._todo if rows is not None])
        at = min(portion, len(times)) - 1
        return int(np.partition(times, at)[at])

    def _taken(self, port: int, upto: int) -> Chunk | None:
        rows = self._todo[port]
        self._todo[port] = None
        if rows is None or upto >= END_OF_TIME:
            return rows
        later = rows.filter(pl.col(AT) > upto)
        if later.height:
            self._todo[port] = later
            rows = rows.filter(pl.col(AT) <= upto)
        return rows if rows.height else None

    def _promises(self, port: int) -> list[Punctuation]:
        """Return the punctuation that holds for rows of an input that wait or are still to come."""
        heard = self._received[port].values()
        if not self._waiting[port]:
            return list(heard)
        lags, mark = self._shape.inputs[port].lags, self._registers.value
        ended = port in self._ended
        return [
            Punctuation.linear(name, min(END_OF_TIME if ended else value, moved(mark, -lags[name])))
            for promise in heard
            if promise.is_linear
            for name, value in promise.bounds
            if name in lags
        ]

    def _results_of(self, elements: Sequence[Element]) -> list[Chunk]:
        """Return the results in the output of the join, and keep its marks."""
        results = []
        for element in elements:
            if isinstance(element, pl.DataFrame):
                if element.height:
                    results.append(element.with_columns(self._shape.output.ticks))
            elif isinstance(element, Punctuation):
                self._known[element.attributes] = min(element.values)
        return results

    # ---- order -----------------------------------------------------------------------------

    @property
    def frontier(self) -> Position:
        """The position up to which results leave: no result to come sorts before one of them."""
        ties = self._shape.ties
        if not self._shape.paired:  # a row that has been joined may still leave alone
            known = self._shape.sides.items()
            return min((self._known_of(side), ties.rank(port) - 1) for port, side in known)
        promised = ((self._registers.of(port), ties.rank(port)) for port in range(self.ports))
        return min(*promised, self.unjoined)

    @property
    def unjoined(self) -> Position:
        """The first position of a row still to be joined; END_OF_TIME if there is none."""
        todo = ((port, rows) for port, rows in enumerate(self._todo) if rows is not None)
        first = ((int(rows[AT].min()), self._shape.ties.rank(port)) for port, rows in todo)  # type: ignore[arg-type]
        return min(first, default=(END_OF_TIME, self.ports))

    def _known_of(self, columns: tuple[str, ...]) -> int:
        """Return the join's mark on the greatest of some columns."""
        own = (mark for names, mark in self._known.items() if set(names) <= set(columns))
        return END_OF_TIME if not self._open and not self.has_work else max(own, default=BEGINNING)

    def _release(self, results: list[Chunk]) -> list[Element]:
        """Release the results up to the frontier, of those held and of new ones."""
        frontier = mark, rank = self.frontier
        staying = self._shape.ties.result > rank
        leaving = [held] if (held := self._held.upto(mark, staying)) is not None else []
        for rows in results:
            if int(rows[AT].max()) < mark:  # type: ignore[arg-type]
                leaving.append(rows)
                continue
            after = self._shape.ties.after(frontier)
            later = rows.filter(after)
            if later.height:
                self._held.put(later)
            if later.height < rows.height:
                leaving.append(rows.filter(~after) if later.height else rows)
        released: list[Element] = []
        if leaving:
            together = pl.concat(leaving) if len(leaving) > 1 else leaving[0]
            alone = len(leaving) == 1 and held is not None  # held results are sorted
            rows = together if alone else self._held.sorted(together)
            released = [rows.select(self._shape.columns)]
        return [*released, *self._promise(mark)]

    def _promise(self, mark: int) -> list[Element]:
        """Return punctuation for the results held or still to come."""
        output = self._shape.output
        promises = (
            self._out.advance(dict.fromkeys(output.stamps, mark)) if self._shape.paired else []
        )
        for name, lag in output.lags.items():
            known = self._known.get((name,), BEGINNING)
            promises += self._out.advance({name: min(known, moved(mark, -lag))})
        return promises

    def finished(self, results: Chunk) -> Chunk:
        """Sort results of several copies that left at one frontier."""
        timed = results.with_columns(self._shape.output.ticks)
        return timed.sort(AT, self._shape.ties.result, maintain_order=True).drop(AT)

    # ---- requests --------------------------------------------------------------------------

    def requests(self) -> Sequence[Request]:
        """Request progress up to the least row or result that is held."""
        least = min(waiting.least for waiting in self._waiting)
        if self._shape.paired:
            least = min(least, self._held.least)
            # A result at a time that all inputs have reached waits until later inputs pass it.
            return self._requests_upto(least) or [
                each for each in self._requests_upto(least + 1) if each.port
            ]
        requests = [*self._requests_upto(least), *self._translated(self._join.requests())]
        return [*requests, *(self._results_upto(self._held.least + 1) if self._held else ())]

    def _requests_upto(self, mark: int) -> list[Request]:
        """Request progress up to a mark from every input that is behind it."""
        if mark >= END_OF_TIME:
            return []
        behind = (port for port in sorted(self._open) if self._registers.of(port) < mark)
        return [self._shape.inputs[port].request(port, mark) for port in behind]

    def _results_upto(self, mark: int) -> list[Request]:
        """Return the requests that let results up to a mark leave."""
        if self._shape.paired:
            return self._requests_upto(mark)
        bounds = [[(name, mark) for name in side] for side in self._shape.sides.values()]
        return [each for side in bounds for each in self._translated(self._join.needs_any(side))]

    def _translated(self, requests: Sequence[Request]) -> list[Request]:
        """Return requests of the join as requests of this kernel.

        While rows wait in order, the join gets punctuation only as far as all inputs have it.
        """
        if self._mode == "filter-order":
            return [each for each in requests if each.port in self._open]
        return [
            more
            for each in requests
            for more in self._requests_upto(max(m for _, m in each.bounds))
        ]

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Return the input progress that the output needs to promise ``attribute >= mark``."""
        return self.needs_any([(attribute, mark)])

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Return the input progress that lets the output promise one of the bounds."""
        output = self._shape.output
        names = {name for name, _ in bounds}
        if self._shape.paired and set(output.stamps) <= names:
            return self._requests_upto(max(mark for _, mark in bounds))
        known = [(name, mark) for name, mark in bounds if name in output.lags]
        if not known:
            return []
        furthest = max(mark + output.lags[name] for name, mark in known)
        own = [bound for bound in known if bound[0] not in output.stamps]
        needed = self._translated(self._join.needs_any(own)) if own else []
        return [*self._results_upto(furthest), *needed]

    # ---- metrics and saving ----------------------------------------------------------------

    def forget(self, floor: Floor) -> None:
        """Let the join inside free its state."""
        super().forget(floor)
        self._join.forget(floor)

    def floors(self) -> Sequence[Floor]:
        """Return the floors of the join inside, whose punctuation counts the rows that wait."""
        return self._join.floors()

    def marks(self) -> dict[str, int]:
        """Return the marks of all inputs."""
        stamps = [" or ".join(each.stamps) for each in self._shape.inputs]
        return {f"{stamps[p]}[{p}]": self._registers.of(p) for p in range(self.ports)}

    def metrics(self) -> Readings:
        """Return the strategy, the reason for it, and the sizes of the buffers."""
        waiting = self._waiting
        return self._strategy.metrics() | {
            HELD_ROWS: self._held.rows,
            HELD_ROWS_PEAK: self._held.rows_peak,
            HELD_BYTES: self._held.bytes,
            HELD_BYTES_PEAK: self._held.bytes_peak,
            WAITING_ROWS: sum(each.rows for each in waiting),
            WAITING_ROWS_PEAK: max(each.rows_peak for each in waiting),
            HELD_BACK_BY: self._held_back_by,
        }

    @property
    def _held_back_by(self) -> str | None:
        """The name of the open input with the least mark; None if nothing waits for it."""
        if not self._open or not (self._held or any(self._waiting)):
            return None
        rank = self._shape.ties.rank
        behind = min(self._open, key=lambda port: (self._registers.of(port), rank(port)))
        return self._shape.names[behind]

    def settle(self) -> None:
        """Make the state of the join small."""
        self._join.settle()

    def snapshot(self) -> dict[str, Any]:
        """Return the marks, the counters and the snapshots of the parts."""
        assert not self.has_work, "rows are still to be joined"
        return super().snapshot() | {
            "join": self._join.snapshot(),
            "strategy": self._strategy.snapshot(),
            "mode": self._mode,
            "waiting": [each.snapshot() for each in self._waiting],
            "held": self._held.snapshot(),
            "registers": (self._registers.marks(), self._registers.value),
            "heard": [dict(each) for each in self._received],
            "ended": sorted(self._ended),
            "next": list(self._next),
            "latest": self._latest,
            "known": dict(self._known),
            "out": self._out.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._join.restore(saved["join"])
        self._strategy.restore(saved["strategy"])
        self._mode = saved["mode"]
        for buffer, each in zip(self._waiting, saved["waiting"], strict=True):
            buffer.restore(each)
        self._held.restore(saved["held"])
        self._registers.restore(*saved["registers"])
        self._received = [dict(each) for each in saved["heard"]]
        self._ended = set(saved["ended"])
        self._next, self._latest = list(saved["next"]), saved["latest"]
        self._known = dict(saved["known"])
        self._out.restore(saved["out"])
