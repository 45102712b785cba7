"""One join over many inputs: rows of each input that are equal in the keys and near in time.

Each input has a window. Rows, one of each input, make a result if none of them is further below the
latest of them than its own input's window. A new row meets what is kept of the other inputs, one
after the other, the one with the fewest rows in reach first. Nothing but rows of the inputs is
kept, however many inputs there are: no result of fewer inputs is (a multi-way window join, as
against a pipeline of joins of two).

Output promises. A result still to come has a row still to come of some input. So what one input
promises, or another, or any other, holds of it (joint punctuation, OOP §7). If none of its rows of
*some* inputs are still to come, then one of another input is, and its rows of those inputs are at
most their windows below that. So what these inputs promise, or the least mark of all others less
a window, holds as well, and speaks of the columns of these inputs only. Of one input it is the
lesser of its own mark and of the others' marks less its window (individual punctuation).

Promises per group are not used.

Invariant: a row is kept exactly while a row at or above the mark of some other input could meet it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import Any, ClassVar

import polars as pl

from lowwater.joins.multi_shape import MultiShape
from lowwater.joins.reach import share
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.output_marks import OutputMarks, any_of
from lowwater.state.slicing import Slicing, reslice, take_below
from lowwater.state.store import ChunkStore, add, read, split
from lowwater.stream.element import BEGINNING, END_OF_TIME, Chunk, Element, Punctuation, moved

MOST_TOGETHER = 4
"""If somebody waits for columns of more inputs than this, promises are told of each input and of
all that are waited for, not of each choice among them."""


class MultiJoin(Kernel):
    """Joins many inputs whose times lie within each other's windows."""

    rule: ClassVar[str] = "individual: own mark or the others' less the window; joint: all marks"

    def __init__(
        self,
        store: ChunkStore,
        shape: MultiShape,
        slice_ticks: Sequence[int],
        awaited: frozenset[str] | None = None,
    ):
        super().__init__(store, len(shape.times))
        self._shape = shape
        self._names = [shape.progressing(port) for port in shape.ports]
        self._slack = shape.slack()
        self._out = OutputMarks(awaited)
        self._together = self._chosen()
        self._heard: list[dict[tuple[str, ...], Punctuation]] = [{} for _ in shape.ports]
        self._slicing = [Slicing(each) for each in slice_ticks]  # of each input, by its window
        self._marks = [BEGINNING] * self.ports

    def _chosen(self) -> list[tuple[int, ...]]:
        """The inputs on whose columns promises are told together, the most first."""
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
        """Match rows with those of all other inputs, then keep those that can still be met."""
        rows = self._shape.prepare(port, chunk)
        ticks = self._shape.domain.array_of(chunk[self._shape.times[port]])
        low, high = int(ticks.min()), int(ticks.max())
        found = self._meet(port, rows, low, high)
        self._keep(port, rows, low, high)
        return [found] if found is not None and found.height else []

    def _slice(self, port: int) -> pl.Expr:
        return self._shape.inside_time(port) // self._slicing[port].width

    def _meet(self, port: int, rows: Chunk, low: int, high: int) -> Chunk | None:
        """The results of new rows with kept ones."""
        matched = self._match(port, rows, low, high)
        return None if matched is None else self._shape.put_out(*matched)

    def _match(
        self, port: int, rows: Chunk, low: int, high: int
    ) -> tuple[Chunk, dict[int, Chunk]] | None:
        """All matches of new rows with kept ones, and the rows they are of; None if none is."""
        shape, met = self._shape, {port: rows}
        found = shape.narrow(port, rows)
        for other in self._fewest_first(port, low, high):
            first, last = shape.reached(found, tuple(met), other)
            width = self._slicing[other].width
            others = read(self.store, rows_of(other), first // width, last // width + 1)
            if others is None:
                return None
            length = shape.windows[port] + shape.windows[other] + 1
            self.comparisons += share(found.height * others.height, length, high - low)
            found = shape.extend(found, tuple(met), other, shape.narrow(other, others))
            if not found.height:
                return None
            met[other] = others
        return found, met

    def _fewest_first(self, port: int, low: int, high: int) -> list[int]:
        """The other inputs, by how many of their rows are in reach of rows between two times."""
        windows, rows = self._shape.windows, {}
        for other in self._shape.ports:
            if other != port:
                name, width = rows_of(other), self._slicing[other].width
                first, last = low - windows[other], high + windows[port]
                slices = self.store.slices(name, first // width, last // width + 1)
                rows[other] = sum(self.store.rows_in(name, each) for each in slices)
        return sorted(rows, key=rows.__getitem__)

    def _keep(self, port: int, rows: Chunk, low: int, high: int) -> None:
        """Keep the rows that can still be met."""
        if self._slicing[port].observe(rows.height, low, high):
            reslice(self.store, rows_of(port), self._slice(port))
        threshold = self._threshold(port)
        if low < threshold:
            rows = rows.filter(self._shape.inside_time(port) >= threshold)
        for slice_, part in split(rows, self._slice(port)):
            add(self.store, rows_of(port), slice_, part)

    def _threshold(self, port: int) -> int:
        """Rows of ``port`` below this time can meet nothing that is still to come."""
        return moved(self._least_but([port]), -self._shape.windows[port])

    def _least_but(self, ports: Sequence[int]) -> int:
        """The least mark of all other inputs."""
        return min(mark for port, mark in enumerate(self._marks) if port not in ports)

    # ---- promises --------------------------------------------------------------------------

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Drop what cannot be met any more and tell what follows."""
        known = promise.renamed(self._names[port])
        before = self._heard[port].get(promise.attributes)
        if known is None or not known.goes_beyond(before.values if before else None):
            return []
        self._heard[port][promise.attributes] = known
        if promise.attributes == (self._shape.times[port],):
            self._marks[port] = promise.values[0]
            self._purge(port)
        return self._tell()

    def close_port(self, port: int) -> Sequence[Element]:
        """An input that ended can meet nothing any more."""
        self._marks[port] = END_OF_TIME
        names = self._names[port]
        for kind in [(self._shape.times[port],), *self._heard[port]]:
            ended = tuple((names[name], END_OF_TIME) for name in kind)
            self._heard[port][kind] = Punctuation(ended)
        self._purge(port)
        return self._tell() if self._open else []

    def _purge(self, ahead: int) -> None:
        """Drop rows of the other inputs that a mark has passed."""
        for port in self._shape.ports:
            if port != ahead and self._threshold(port) > BEGINNING:
                self._drop(port, self._threshold(port))

    def _drop(self, port: int, below: int) -> None:
        """Drop rows of an input below a time."""
        time, width = self._shape.inside_time(port), self._slicing[port].width
        take_below(self.store, rows_of(port), time, below, width)

    def _tell(self) -> list[Element]:
        told: list[Element] = []
        for ports in self._together:
            for known in product(*(self._heard[port].values() for port in ports)):
                told += self._out.advance(self._promised(ports, known))
        return told

    def _promised(self, ports: Sequence[int], known: Iterable[Punctuation]) -> dict[str, int]:
        """What promises of some inputs say of the output, where their rows may be old ones."""
        bounds = any_of(*(each.bounds for each in known))
        if len(ports) < self.ports:
            bearer = self._bearer(bounds)
            reached = moved(self._least_but(ports), -self._slack[bearer])
            bounds[bearer] = min(bounds[bearer], reached)
        return bounds

    def _bearer(self, names: Iterable[str]) -> str:
        """The column that is least behind: it bears what other inputs' marks say of old rows."""
        return min(names, key=lambda name: (self._slack[name], name))

    # ---- asking and saving -----------------------------------------------------------------

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """A promise on one input needs its own mark, and the others' a window further."""
        return self._wanted([(attribute, mark)])

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """A promise on some inputs needs theirs, and the others' a window further."""
        if self._spoken_of(bounds) in self._together:
            return self._wanted(bounds)
        return super().needs_any(bounds)

    def _spoken_of(self, bounds: Sequence[tuple[str, int]]) -> tuple[int, ...]:
        names = {name for name, _ in bounds}
        return tuple(p for p in self._shape.ports if names & set(self._names[p].values()))

    def _wanted(self, bounds: Sequence[tuple[str, int]]) -> list[Request]:
        marks, ports = dict(bounds), self._spoken_of(bounds)
        wants = []
        for port in ports:
            own = self._names[port].items()
            wants.append(Request.any_of(port, [(n, marks[out]) for n, out in own if out in marks]))
        bearer = self._bearer(marks)
        further = marks[bearer] + self._slack[bearer]
        for port in self._shape.ports:
            if port not in ports:
                wants.append(Request(port, self._shape.times[port], further))
        return [want for want in wants if not self._has(want)]

    def _has(self, want: Request) -> bool:
        """Whether an input has promised what is wanted of it."""
        if want.port not in self._open:
            return True
        wished = {self._names[want.port][name]: mark for name, mark in want.bounds}
        return any(
            all(mark >= wished.get(name, END_OF_TIME) for name, mark in known.bounds)
            for known in self._heard[want.port].values()
        )

    def marks(self) -> dict[str, int]:
        """Return the marks of all inputs."""
        times = enumerate(self._shape.times)
        return {f"{time}[{port}]": self._marks[port] for port, time in times}

    def snapshot(self) -> dict[str, Any]:
        """The marks held and told."""
        return super().snapshot() | {
            "marks": list(self._marks),
            "heard": [dict(each) for each in self._heard],
            "out": self._out.snapshot(),
            "slicing": [each.snapshot() for each in self._slicing],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot."""
        super().restore(saved)
        self._marks = list(saved["marks"])
        self._out.restore(saved["out"])
        self._heard = [dict(each) for each in saved["heard"]]
        for slicing, state in zip(self._slicing, saved["slicing"], strict=True):
            slicing.restore(state)


def rows_of(port: int) -> str:
    """The name under which rows of an input are kept."""
    return f"rows{port}"
