"""Sort and order-preserving merge: rows leave in time order, unblocked by promises.

In-order plans (IOP) and ``order_by`` use them. The registers of ETS §4 are the low-water mark per
input: a row leaves when it is not above the least register, so simultaneous rows on all inputs
leave at once and none waits for a strictly later one (the relaxed *more* condition).

The least register is promised on the time. Each column in ``carried`` is at most so many ticks
below the time and gets promises too: a held row is above the least register, so its column is above
the register less these ticks.

Invariant: rows leave in non-decreasing time; rows of equal time leave in the order they came; a
row is held exactly while its time is above the least register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from lowwater.operators.kernel import Kernel, Request
from lowwater.state.store import ChunkStore
from lowwater.state.time_buffer import TimeBuffer
from lowwater.stream.element import BEGINNING, Chunk, Element, Punctuation, moved
from lowwater.stream.floor import Floor
from lowwater.stream.low_water_mark import LowWaterMark
from lowwater.stream.time_domain import TimeDomain

HELD = "held"


class Merge(Kernel):
    """Merges inputs into one stream ordered by ``time``; with one input it sorts."""

    rule: ClassVar[str] = "the least mark over the inputs, after the rows it releases"

    def __init__(
        self,
        store: ChunkStore,
        ports: int,
        time: str,
        domain: TimeDomain,
        slice_ticks: int,
        carried: Mapping[str, int] | None = None,
    ):
        super().__init__(store, ports)
        self._behind = dict(carried or {})
        self._carried = {name: LowWaterMark(range(ports)) for name in self._behind}
        self._emitted: dict[str, int] = {}
        self._time, self._domain = time, domain
        self._registers = LowWaterMark(range(ports))
        self._buffer = TimeBuffer(store, HELD, time, slice_ticks, domain)

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Hold rows until all registers have passed them; return those that leave."""
        if not self._buffer:
            high = int(self._domain.array_of(chunk[self._time]).max())
            if high <= self._registers.value:
                return [self._buffer.sorted(chunk)]
        self._buffer.put(chunk)
        return self._release(self._registers.value)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Advance a register; return the rows it releases and the promises that follow.

        Promises on attributes that are not ``carried`` are dropped.
        """
        if promise.is_linear and promise.attributes[0] in self._carried:
            self._carried[promise.attributes[0]].advance(port, promise.values[0])
            return self._promise_carried()
        if promise.attributes != (self._time,):
            return []
        if not self._registers.advance(port, promise.values[0]):
            return []
        mark = self._registers.value
        promise = Punctuation.linear(self._time, mark)
        return [*self._release(mark), promise, *self._promise_carried()]

    def close_port(self, port: int) -> Sequence[Element]:
        """Close the register of an input that ended; return what it releases."""
        for marks in self._carried.values():
            marks.close(port)
        moved = self._registers.close(port)
        mark = self._registers.value
        released = self._release(mark) if moved else []
        if not self._open:
            return released
        promises = [Punctuation.linear(self._time, mark)] if moved else []
        return [*released, *promises, *self._promise_carried()]

    def _promise_carried(self) -> list[Element]:
        promises: list[Element] = []
        for name, marks in self._carried.items():
            mark = min(marks.value, moved(self._registers.value, -self._behind[name]))
            if mark > self._emitted.get(name, BEGINNING):
                self._emitted[name] = mark
                promises.append(Punctuation.linear(name, mark))
        return promises

    def _release(self, mark: int) -> list[Element]:
        """Return the held rows that are not above the mark, in order."""
        rows = self._buffer.upto(mark)
        return [] if rows is None else [rows]

    def requests(self) -> Sequence[Request]:
        """Request the time of the least held row from every register below it."""
        return self.needs(self._time, self._buffer.least) if self._buffer else []

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Request the mark from every register below it."""
        slowest = []
        if attribute in self._carried:
            marks = self._carried[attribute]
            slow = (port for port in sorted(self._open) if marks.of(port) < mark)
            slowest = [Request(port, attribute, mark) for port in slow]
            mark += self._behind[attribute]
        behind = (p for p in sorted(self._open) if self._registers.of(p) < mark)
        return [*slowest, *(Request(port, self._time, mark) for port in behind)]

    def forget(self, floor: Floor) -> None:
        """Drop the held rows whose time is below the floor."""
        super().forget(floor)
        if self._time in floor:
            self._buffer.take(below=floor[self._time])

    def floors(self) -> Sequence[Floor]:
        """Return the floor of the output for every input."""
        return [self.floor] * self.ports

    def marks(self) -> dict[str, int]:
        """Return the registers."""
        return {f"{self._time}[{port}]": mark for port, mark in self._registers.marks().items()}

    def snapshot(self) -> dict[str, Any]:
        """Return the registers, the promises made, and the state of the buffer."""
        registers = (self._registers.marks(), self._registers.value)
        return super().snapshot() | {
            "registers": registers,
            "carried": {n: (each.marks(), each.value) for n, each in self._carried.items()},
            "emitted": dict(self._emitted),
            "held": self._buffer.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        super().restore(saved)
        self._registers.restore(*saved["registers"])
        for name, marks in self._carried.items():
            marks.restore(*saved["carried"][name])
        self._emitted = dict(saved["emitted"])
        self._buffer.restore(saved["held"])


class Sort(Merge):
    """Orders one input by ``time``.

    Copies that get the same punctuation release their rows up to the same mark. So the rows that
    they release at one mark, sorted together, follow in order those that left before.
    """

    rule: ClassVar[str] = "the input's mark, after the rows it releases"

    def __init__(
        self,
        store: ChunkStore,
        time: str,
        domain: TimeDomain,
        slice_ticks: int,
        carried: Mapping[str, int] | None = None,
    ):
        super().__init__(store, 1, time, domain, slice_ticks, carried)

    def finished(self, parts: Chunk) -> Chunk:
        """Return the rows that several copies released at one mark, in order."""
        return self._buffer.sorted(parts)
