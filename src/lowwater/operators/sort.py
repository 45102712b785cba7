"""Sort and order-preserving merge: rows leave in time order, unblocked by promises.

They make the in-order plans (IOP) and serve ``order_by``. The registers of ETS §4 are the low-water
mark per input: a row leaves when it is not above the least register, so simultaneous rows on all
inputs leave at once and none waits for a strictly later one (the relaxed *more* condition).

Promises on the time are told on. A column that is never more than so far behind the time gets them
too: a row that is held is above the least register, so the column is above that less so much.

Invariant: rows leave in non-decreasing time; rows of equal time leave in the order they came; a
row is held exactly while its time is above the least register.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import polars as pl

from lowwater.operators.kernel import Ask, Finishing, Kernel
from lowwater.state.slicing import Slicing
from lowwater.state.store import ChunkStore, add, split, take
from lowwater.stream.element import BEGINNING, Chunk, Element, Punctuation, moved
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
        self._told: dict[str, int] = {}
        self._time, self._domain, self._slicing = time, domain, Slicing(slice_ticks)
        self._ticks = domain.to_ticks(pl.col(time))
        self._registers = LowWaterMark(range(ports))
        self._held: dict[int, tuple[int, int]] = {}  # per slice, the least and greatest time held

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Hold rows until the registers pass them."""
        times = self._domain.array_of(chunk[self._time])
        low, high = int(times.min()), int(times.max())
        if high <= self._registers.value and not self._held:
            return [self._sorted(chunk)]
        if self._slicing.observe(chunk.height, low, high):
            self._reslice()
        self._hold_all(chunk, low, high)
        return self._release(self._registers.value)

    def _hold_all(self, rows: Chunk, low: int, high: int) -> None:
        width = self._slicing.width
        if low // width == high // width:
            self._hold(low // width, rows, low, high)
            return
        for slice_, part in split(rows, self._ticks // width):
            times = self._domain.array_of(part[self._time])
            self._hold(slice_, part, int(times.min()), int(times.max()))

    def _reslice(self) -> None:
        spans = list(self._held.values())
        rows = take(self.store, HELD)
        self._held.clear()
        if rows is not None:
            self._hold_all(rows, min(low for low, _ in spans), max(high for _, high in spans))

    def _hold(self, slice_: int, rows: Chunk, low: int, high: int) -> None:
        add(self.store, HELD, slice_, rows)
        least, most = self._held.get(slice_, (low, high))
        self._held[slice_] = (min(least, low), max(most, high))

    def _sorted(self, rows: Chunk) -> Chunk:
        return rows if rows.height == 1 else rows.sort(self._time, maintain_order=True)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Move a register; release what it let go; most promises on other attributes end here."""
        if promise.is_linear and promise.attributes[0] in self._carried:
            self._carried[promise.attributes[0]].advance(port, promise.values[0])
            return self._tell_carried()
        if promise.attributes != (self._time,):
            return []
        if not self._registers.advance(port, promise.values[0]):
            return []
        mark = self._registers.value
        told = Punctuation.linear(self._time, mark)
        return [*self._release(mark), told, *self._tell_carried()]

    def closing(self, port: int) -> Sequence[Element]:
        """An input that ended holds nobody back."""
        for marks in self._carried.values():
            marks.close(port)
        moved = self._registers.close(port)
        mark = self._registers.value
        released = self._release(mark) if moved else []
        if not self._open:
            return released
        told = [Punctuation.linear(self._time, mark)] if moved else []
        return [*released, *told, *self._tell_carried()]

    def _tell_carried(self) -> list[Element]:
        told: list[Element] = []
        for name, marks in self._carried.items():
            mark = min(marks.value, moved(self._registers.value, -self._behind[name]))
            if mark > self._told.get(name, BEGINNING):
                self._told[name] = mark
                told.append(Punctuation.linear(name, mark))
        return told

    def _release(self, mark: int) -> list[Element]:
        """Every held row not above the mark, in order."""
        released: list[Chunk] = []
        for slice_ in [s for s in self.store.slices(HELD) if self._held[s][0] <= mark]:
            rows = take(self.store, HELD, slice_, slice_ + 1)
            assert rows is not None
            most = self._held.pop(slice_)[1]
            if most > mark:
                later = rows.filter(self._ticks > mark)
                least = int(self._domain.array_of(later[self._time]).min())
                self._hold(slice_, later, least, most)
                rows = rows.filter(self._ticks <= mark)
            released.append(self._sorted(rows))
        return [pl.concat(released) if len(released) > 1 else released[0]] if released else []

    def asks(self) -> Sequence[Ask]:
        """The least held row wants every register behind it to come up to its time."""
        if not self._held:
            return []
        least = self._held[self.store.slices(HELD)[0]][0]
        return self.needs(self._time, least)

    def needs(self, attribute: str, mark: int) -> Sequence[Ask]:
        """Every register that is behind must move."""
        asks = []
        if attribute in self._carried:
            marks = self._carried[attribute]
            slow = (port for port in sorted(self._open) if marks.of(port) < mark)
            asks = [Ask(port, attribute, mark) for port in slow]
            mark += self._behind[attribute]
        behind = (p for p in sorted(self._open) if self._registers.of(p) < mark)
        return [*asks, *(Ask(port, self._time, mark) for port in behind)]

    def marks(self) -> dict[str, int]:
        """The registers."""
        return {f"{self._time}[{port}]": mark for port, mark in self._registers.marks().items()}

    def snapshot(self) -> dict[str, Any]:
        """The registers and the span of times per slice."""
        registers = (self._registers.marks(), self._registers.value)
        return super().snapshot() | {
            "registers": registers,
            "carried": {n: (each.marks(), each.value) for n, each in self._carried.items()},
            "told": dict(self._told),
            "held": dict(self._held),
            "slicing": self._slicing.snapshot(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot."""
        super().restore(saved)
        self._registers.restore(*saved["registers"])
        for name, marks in self._carried.items():
            marks.restore(*saved["carried"][name])
        self._told = dict(saved["told"])
        self._held = dict(saved["held"])
        self._slicing.restore(saved["slicing"])


class Sort(Merge, Finishing):
    """Orders one input by ``time``.

    Copies that are told the same let go of all rows up to the same mark. So what they let go at
    once, sorted together, is in order, and goes on where what left before ended.
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

    def _sorted(self, rows: Chunk) -> Chunk:
        return rows if self.in_part else super()._sorted(rows)

    def finished(self, parts: Chunk) -> Chunk:
        """The rows of all copies in order."""
        return super()._sorted(parts)
