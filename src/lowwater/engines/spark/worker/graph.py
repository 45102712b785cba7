"""The operators of one stage in one bucket, run to the end of what a batch brought."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl

from lowwater.engines.awaiting import Awaiting, Node
from lowwater.engines.step import Where, proceed, step
from lowwater.operators.kernel import Kernel, Request
from lowwater.operators.stamp import TICK, Stamp
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Element
from lowwater.stream.time_domain import ROWS, TimeDomain

if TYPE_CHECKING:  # workers run operators and do no planning
    from lowwater.plan.physical.operator import Build


@dataclass(frozen=True)
class Part:
    """An operator as a worker needs it: no node, no source, nothing that is not its own."""

    index: int
    name: str
    slot: str
    """What its state is filed under: stays the same when row-wise operators come or go."""
    where: Where
    inputs: tuple[int, ...]
    build: Build
    in_part: bool = False
    domains: Mapping[str, TimeDomain] = field(default_factory=dict)
    """How its progressing attributes count."""

    def shown(self, marks: Mapping[str, int]) -> dict[str, str]:
        """Marks as a person reads them; ``ts[1]`` is the mark of ``ts`` on input 1."""
        return {
            name: str(self.domains.get(name.partition("[")[0], ROWS).show(mark))
            for name, mark in marks.items()
        }


@dataclass
class Counts:
    """What went through an operator in this batch."""

    rows_in: int = 0
    rows_out: int = 0
    promises_in: int = 0
    promises_out: int = 0


@dataclass
class Member:
    """An operator at work."""

    part: Part
    kernel: Kernel
    counts: Counts = field(default_factory=Counts)


class Graph:
    """Pushes elements through the operators and gathers what leaves the stage."""

    def __init__(
        self,
        parts: Sequence[Part],
        exports: Iterable[int],
        store: Callable[[str], ChunkStore],
        now: Callable[[], int],
    ):
        self.members: dict[int, Member] = {}
        self._now = now
        self.awaiting: Awaiting | None = None
        self._consumers: dict[int, list[tuple[int, int]]] = {}
        self.left: dict[int, list[Element]] = {index: [] for index in exports}
        for part in parts:
            kernel = part.build(store(part.slot), now)
            if part.in_part:
                kernel.in_part = True  # type: ignore[attr-defined]
            self.members[part.index] = Member(part, kernel)
            for port, source in enumerate(part.inputs):
                self._consumers.setdefault(source, []).append((part.index, port))

    def push(self, producer: int, elements: Iterable[Element]) -> None:
        """Let elements leave an operator (or a source) and follow them to the end."""
        queue: deque[tuple[int, Element]] = deque((producer, element) for element in elements)
        while queue:
            origin, element = queue.popleft()
            rows = element.height if isinstance(element, pl.DataFrame) else 0
            if isinstance(element, pl.DataFrame) and not rows:
                continue
            if origin in self.left:
                self.left[origin].append(element)
            for index, port in self._consumers.get(origin, ()):
                member = self.members[index]
                begun = time.perf_counter_ns()
                results = step(member.kernel, port, element, member.part.where)
                member.kernel.record_time(time.perf_counter_ns() - begun)
                if self.awaiting is not None:
                    self.awaiting.take(index, port, element)
                _count(member.counts, rows, results)
                queue.extend((index, result) for result in results)

    def finish(self) -> None:
        """Let kernels do what they leave for the end of a batch, those first that others read."""
        for member in self.members.values():
            while member.kernel.has_work:
                begun = time.perf_counter_ns()
                results = proceed(member.kernel, member.part.where)
                _count_out(member.counts, results)
                self.push(member.part.index, results)
                took = time.perf_counter_ns() - begun
                member.kernel.end_portion(took, self._now() + took)

    @property
    def waits(self) -> bool:
        """Whether rows wait for a batch in which there is time for them."""
        return any(member.kernel.waiting_since is not None for member in self.members.values())

    def requests(self) -> dict[str, list[tuple[int, str, int]]]:
        """The operators that hold something back, and the progress they want for it from what
        enters the stage: (producer, attribute, mark)."""
        return {
            member.part.where.title: [w for ask in asked for w in self._backtrack(member, ask)]
            for member in reversed(self.members.values())
            if not self._covered(member) and (asked := member.kernel.requests())
        }

    @property
    def nodes(self) -> dict[int, Node]:
        """The operators, and what feeds them."""
        return {
            index: Node(each.kernel, each.part.inputs, each.part.slot)
            for index, each in self.members.items()
        }

    def _covered(self, member: Member) -> bool:
        return self.awaiting is not None and self.awaiting.covers(member.part.index)

    @property
    def holding(self) -> list[str]:
        """The operators that hold something of single groups back."""
        return [
            member.part.where.title
            for member in reversed(self.members.values())
            if self._covered(member) and self.awaiting and self.awaiting.holds(member.part.index)
        ]

    def _backtrack(self, member: Member, ask: Request) -> Iterator[tuple[int, str, int]]:
        index = member.part.inputs[ask.port]
        if index not in self.members:
            for attribute, mark in ask.bounds:
                yield index, attribute, mark
            return
        before = self.members[index]
        if isinstance(before.kernel, Stamp):  # the clock is asked
            for attribute, mark in ask.bounds:
                yield index, attribute, mark
            return
        for wish in before.kernel.backtrack(ask):
            yield from self._backtrack(before, wish)

    # ---- latent time -----------------------------------------------------------------------

    @property
    def stamps(self) -> dict[int, Stamp]:
        """The operators that give rows the time of the clock."""
        kernels = ((index, member.kernel) for index, member in self.members.items())
        return {index: kernel for index, kernel in kernels if isinstance(kernel, Stamp)}

    def tell_clock(self, now: int) -> bool:
        """Let latent time move with a tick, in every bucket alike; whether it was promised on."""
        told = False
        for index, kernel in self.stamps.items():
            self.push(index, kernel.tell())
            if kernel.how.on_demand or kernel.how.beats:
                promises = kernel.enable(now)
                self.push(index, promises)
                told = told or bool(promises)
        return told

    def clock_due(self, index: int, mark: int) -> int | None:
        """When a tick lets an operator promise a latent time; None if it does not on demand."""
        return mark * TICK if self.stamps[index].how.on_demand else None

    def settle(self) -> None:
        """Let all kernels make their state small."""
        for member in self.members.values():
            member.kernel.settle()

    def snapshot(self) -> dict[str, Any]:
        """The numbers of all kernels."""
        return {m.part.slot: m.kernel.snapshot() for m in self.members.values()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from a snapshot; an operator that was not there before starts fresh."""
        for member in self.members.values():
            if member.part.slot in saved:
                member.kernel.restore(saved[member.part.slot])


def _count(counts: Counts, rows: int, results: Sequence[Element]) -> None:
    if rows:
        counts.rows_in += rows
    else:
        counts.promises_in += 1
    _count_out(counts, results)


def _count_out(counts: Counts, results: Sequence[Element]) -> None:
    for result in results:
        if isinstance(result, pl.DataFrame):
            counts.rows_out += result.height
        else:
            counts.promises_out += 1
