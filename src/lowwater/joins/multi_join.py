"""One join over many inputs: rows of each input that are equal in the keys and near in time.

Each input has a window. Rows, one of each input, make a result if each is at most its own input's
window below the latest of them. New rows are matched with the kept rows of one other input after
the other, beginning with the input that has the fewest rows in reach. Only rows of the inputs are
kept, no results of fewer inputs (a multi-way window join, unlike a pipeline of joins of two).

Output promises. A result still to come has a row still to come of some input. So it satisfies the
promise of at least one input (joint punctuation, OOP §7). Now take *some* of the inputs. If the
rows that the result has of these have all come, a row of another input is still to come, and they
are at most their windows below it. So the result satisfies the promise of one of these inputs, or
the least mark of all others less a window: a promise on columns of these inputs only. For one input
it is the lesser of its own mark and the others' marks less its window (individual punctuation).

Feedback. If results need the time of one input to be at least a floor, the rows of each other input
must be at most their window below it. The same holds for the earliest row of an input, kept or to
come, which bounds the results that are still possible.

Promises per group are not used.

Invariant: a row is kept exactly while a row at or above the mark of another input could match it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any, ClassVar

import polars as pl

from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.promises import InputPromises, OutputMarks, any_of
from lowwater.joins.reach import compared_pairs
from lowwater.operators.kernel import ALONE, Host, Kernel, Request
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation, moved
from lowwater.stream.floor import Floor, raised

MOST_TOGETHER = 4
"""Greatest number of inputs with awaited columns for which every subset of them gets a joint
promise. Above it only single inputs and all of them together do."""


class MultiJoin(Kernel):
    """Joins many inputs whose times lie within each other's windows.

    ``slice_ticks`` has the least width of a slice for each input. ``awaited`` are the output
    attributes on which a consumer uses promises; None: all.
    """

    rule: ClassVar[str] = "individual: own mark or the others' less the window; joint: all marks"
    feeds_back: ClassVar[bool] = True

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        awaited: frozenset[str] | None = None,
        host: Host = ALONE,
    ):
        super().__init__(store, len(shape.times), host)
        self._shape = shape
        self._names = [shape.progressing(port) for port in shape.ports]
        self._slack = shape.slack()
        self._out = OutputMarks(awaited)
        self._together = self._chosen()
        self._received = InputPromises(self._names)
        self._slicing = [Slicing(each) for each in slice_ticks]  # of each input, by its window
        self._marks = [BEGINNING] * self.ports

    def _chosen(self) -> list[tuple[int, ...]]:
        """Return the sets of inputs whose columns are promised jointly, the largest first."""
        ports = [
            port
            for port in self._shape.ports
            if self._out.awaited is None or self._out.awaited & set(self._names[port].values())
        ]
        sizes: Iterable[int] = range(len(ports), 0, -1)
        if self._out.awaited is None or len(ports) > MOST_TOGETHER:
            sizes = (len(ports), 1)
        return [each for size in sizes for each in combinations(ports, size)]

    # ---- rows ------------------------------------------------------------------------------

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Match rows with all other inputs, then keep those that can match rows to come."""
        rows = self._shape.prepare(port, chunk)
        ticks = self._shape.domain.array_of(chunk[self._shape.times[port]])
        low, high = int(ticks.min()), int(ticks.max())
        found = self._meet(port, rows, low, high)
        self._keep(port, rows, low, high)
        return [found] if found is not None and found.height else []

    def _slice(self, port: int) -> pl.Expr:
        return self._shape.inside_time(port) // self._slicing[port].width

    def _meet(self, port: int, rows: Chunk, low: int, high: int) -> Chunk | None:
        """Return the results of new rows with kept ones."""
        matched = self._match(port, rows, low, high)
        return None if matched is None else self._shape.put_out(*matched)

    def _match(
        self, port: int, rows: Chunk, low: int, high: int
    ) -> tuple[Chunk, dict[int, Chunk]] | None:
        """Return all matches of new rows with kept ones, and the rows of each input; None if there
        are no matches."""
        shape, met = self._shape, {port: rows}
        found = shape.narrow(port, rows)
        for other in self._fewest_first(port, low, high):
            first, last = shape.reached(found, tuple(met), other)
            width = self._slicing[other].width
            others = read(self.store, rows_of(other), first // width, last // width + 1)
            if others is None:
                return None
            length = shape.windows[port] + shape.windows[other] + 1
            self.comparisons += compared_pairs(found.height * others.height, length, high - low)
            found = shape.extend(found, tuple(met), other, shape.narrow(other, others))
            if not found.height:
                return None
            met[other] = others
        return found, met

    def _fewest_first(self, port: int, low: int, high: int) -> list[int]:
        """Return the other inputs, that with the fewest rows in reach of two times first."""
        windows, rows = self._shape.windows, {}
        for other in self._shape.ports:
            if other != port:
                name, width = rows_of(other), self._slicing[other].width
                first, last = low - windows[other], high + windows[port]
                slices = self.store.slices(name, first // width, last // width + 1)
                rows[other] = sum(self.store.rows_in(name, each) for each in slices)
        return sorted(rows, key=rows.__getitem__)

    def _keep(self, port: int, rows: Chunk, low: int, high: int) -> Chunk:
        """Keep the rows that can match rows to come; return the others."""
        if self._slicing[port].observe(rows.height, low, high):
            reslice(self.store, rows_of(port), self._slice(port))
        threshold, passed = self._threshold(port), rows.clear()
        if low < threshold:
            time = self._shape.inside_time(port)
            passed, rows = rows.filter(time < threshold), rows.filter(time >= threshold)
        for slice_, part in split(rows, self._slice(port)):
            add(self.store, rows_of(port), slice_, part)
        return passed

    def _threshold(self, port: int) -> int:
        """Return the time below which rows of an input match no row still to come."""
        return moved(self._least_but([port]), -self._shape.windows[port])

    def _least_but(self, ports: Sequence[int]) -> int:
        """Return the least mark of all inputs but some."""
        return min(mark for port, mark in enumerate(self._marks) if port not in ports)

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop rows that match no row to come; return the promises that follow."""
        if not self._received.advance(port, promise):
            return []
        if promise.attributes == (self._shape.times[port],):
            self._marks[port] = promise.values[0]
            self._purge(port)
        return self._promise()

    def close_port(self, port: int) -> Sequence[Element]:
        """Drop rows that only the ended input could match; return the promises that follow."""
        self._marks[port] = END_OF_TIME
        self._received.end(port, self._shape.times[port])
        self._purge(port)
        return self._promise() if self._open else []

    def _purge(self, ahead: int) -> None:
        """Drop rows of the other inputs that a mark has passed."""
        for port in self._shape.ports:
            if port != ahead and self._threshold(port) > BEGINNING:
                self._drop(port, self._threshold(port))

    def _drop(self, port: int, below: int) -> Chunk | None:
        """Drop rows of an input below a time, and return them; None if there are none."""
        time, width = self._shape.inside_time(port), self._slicing[port].width
        return take_below(self.store, rows_of(port), time, below, width)

    def _promise(self) -> list[Element]:
        promises: list[Element] = []
        for ports in self._together:
            for known in product(*map(self._received.of, ports)):
                promises += self._out.advance(self._bounds_of(ports, known))
        return promises

    def _bounds_of(self, ports: Sequence[int], known: Iterable[Punctuation]) -> dict[str, int]:
        """Return the bounds on the output that follow from promises of some inputs.

        They also hold for results whose rows of these inputs have come already.
        """
        bounds = any_of(*(each.bounds for each in known))
        if len(ports) < self.ports:
            name = self._least_behind(bounds)
            reached = moved(self._least_but(ports), -self._slack[name])
            bounds[name] = min(bounds[name], reached)
        return bounds

    def _least_behind(self, names: Iterable[str]) -> str:
        """Return the column that is the fewest ticks behind the times of other inputs, on which the
        bound that follows from their marks is promised."""
        return min(names, key=lambda name: (self._slack[name], name))

    # ---- requests and saving ---------------------------------------------------------------

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the input's own mark, and the others' a window further."""
        return self._requests_for([(attribute, mark)])

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Request the bounds of some inputs, and the marks of the others a window further."""
        if self._ports_of(bounds) in self._together:
            return self._requests_for(bounds)
        return super().needs_any(bounds)

    def _ports_of(self, bounds: Sequence[tuple[str, int]]) -> tuple[int, ...]:
        names = {name for name, _ in bounds}
        return tuple(p for p in self._shape.ports if names & set(self._names[p].values()))

    def _requests_for(self, bounds: Sequence[tuple[str, int]]) -> list[Request]:
        marks, ports = dict(bounds), self._ports_of(bounds)
        requests = []
        for port in ports:
            own = self._names[port].items()
            requests.append(
                Request.any_of(port, [(n, marks[out]) for n, out in own if out in marks])
            )
        name = self._least_behind(marks)
        further = marks[name] + self._slack[name]
        for port in self._shape.ports:
            if port not in ports:
                requests.append(Request(port, self._shape.times[port], further))
        return self._received.missing(requests, self._open)

    # ---- feedback --------------------------------------------------------------------------

    def forget(self, floor: Floor) -> None:
        """Drop the rows that only results below the floor need."""
        super().forget(floor)
        for port, own in enumerate(self._for_results() if self.feeds_back else ()):
            if self._shape.times[port] in own:
                self._drop(port, own[self._shape.times[port]])

    def floors(self) -> Sequence[Floor]:
        """Return what results need of each input, and what the rows of the others can match."""
        if not self.feeds_back:
            return super().floors()
        return list(map(raised, self._for_results(), self._for_partners()))

    def _for_results(self) -> list[dict[str, int]]:
        """Return the floor of each input that follows from that of the results."""
        found: list[dict[str, int]] = [{} for _ in self._shape.ports]
        for port, time in enumerate(self._shape.times):
            own = self._names[port].items()
            floor = {name: self.floor[out] for name, out in own if out in self.floor}
            found[port] = raised(found[port], floor)
            if time in floor:
                found = [
                    each if other == port else raised(each, self._near(other, floor[time]))
                    for other, each in enumerate(found)
                ]
        return found

    def _for_partners(self) -> list[dict[str, int]]:
        """Return the floor of each input that follows from the rows of the others, kept and to
        come."""
        least = []
        for port, mark in enumerate(self._marks):
            slices = self.store.slices(rows_of(port))
            kept = slices[0] * self._slicing[port].width if slices else END_OF_TIME
            least.append(min(kept, mark))
        found: list[dict[str, int]] = []
        for port, mark in enumerate(self._marks):
            near = self._near(port, max(each for at, each in enumerate(least) if at != port))
            found.append(near if near[self._shape.times[port]] > mark else {})
        return found

    def _near(self, port: int, time: int) -> dict[str, int]:
        """Return the floor of an input whose rows match a row at ``time`` or later."""
        return {self._shape.times[port]: moved(time, -self._shape.windows[port])}

    def marks(self) -> dict[str, int]:
        """Return the marks of all inputs."""
        times = enumerate(self._shape.times)
        return {f"{time}[{port}]": self._marks[port] for port, time in times}

    def snapshot(self) -> dict[str, Any]:
        """Return the marks of the inputs, the promises made, and the state of slices."""
        return super().snapshot() | {
            "marks": list(self._marks),
            "heard": self._received.snapshot(),
            "out": self._out.snapshot(),
            "slicing": [each.snapshot() for each in self._slicing],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._marks = list(saved["marks"])
        self._out.restore(saved["out"])
        self._received.restore(saved["heard"])
        for slicing, state in zip(self._slicing, saved["slicing"], strict=True):
            slicing.restore(state)


def rows_of(port: int) -> str:
    """Return the name under which rows of an input are kept in the store."""
    return f"rows{port}"
