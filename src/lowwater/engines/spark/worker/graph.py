"""A graph runs the operators of one stage in one bucket until a batch is processed."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.feedback import Feedback
from lowwater.engines.members import Member, Need, Part, backtrack
from lowwater.engines.memory import MemoryAccount, MemoryLedger, QueryMemory
from lowwater.operators.kernel import Host
from lowwater.operators.shared_memory import SharesMemory
from lowwater.operators.stamp import TICK, Stamp
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Element
from lowwater.stream.floor import Floor


class Graph:
    """Pushes elements through the operators and collects the elements that leave the stage."""

    def __init__(
        self,
        parts: Sequence[Part],
        exports: Iterable[int],
        store: Callable[[str], ChunkStore],
        host: Host,
    ):
        self.members: dict[int, Member] = {}
        self._now = host.now
        self.awaiting: Awaiting | None = None
        self._accounts: dict[int, MemoryAccount] = {}  # by operator
        self._consumers: dict[int, list[tuple[int, int]]] = {}
        self.left: dict[int, list[Element]] = {index: [] for index in exports}
        for part in parts:
            own = replace(host, in_part=part.in_part)
            self.members[part.index] = Member(part, store(part.slot), own)
            for port, source in enumerate(part.inputs):
                self._consumers.setdefault(source, []).append((part.index, port))
        self._feedback = Feedback(
            {part.index: part.inputs for part in parts},
            lambda index: self.members[index].floors(),
            {part.index: part.floor for part in parts},
            self.left,
            self._state_floor,
        )

    def begin(self) -> None:
        """State the floors that follow from the query and from the state."""
        self._feedback.begin()
        for member in self.members.values():
            member.feedback = self._feedback

    def _state_floor(self, index: int, floor: Floor) -> None:
        """Hand an operator the floor of its rows; sources have that of the query."""
        if index in self.members:
            self.members[index].forget(floor)

    def push(self, producer: int, elements: Iterable[Element]) -> None:
        """Let elements leave an operator (or a source) and follow them to the end."""
        queue: deque[tuple[int, Element]] = deque((producer, element) for element in elements)
        while queue:
            origin, element = queue.popleft()
            if isinstance(element, pl.DataFrame) and not element.height:
                continue
            if origin in self.left:
                self.left[origin].append(element)
            for index, port in self._consumers.get(origin, ()):
                member = self.members[index]
                begun = time.perf_counter_ns()
                results = member.take(port, element)
                member.call(member.kernel.record_time, time.perf_counter_ns() - begun)
                for result in results:
                    member.counts.count_out(result)
                    queue.append((index, result))

    def open_accounts(self, memory: int, sharing: Iterable[int]) -> None:
        """Let operators share the memory of the bucket, in bytes, by the needs that they have
        measured."""
        query = QueryMemory(MemoryLedger(memory), "warn")
        for index in sharing:
            kernel = self.members[index].kernel
            assert isinstance(kernel, SharesMemory)
            title = self.members[index].part.where.title
            self._accounts[index] = query.open(title, kernel.memory_need)

    def share_memory(self) -> None:
        """Give each operator its share of the memory; those that have to shrink come first."""
        for _ in range(2):
            for index, account in self._accounts.items():
                self.push(index, self.members[index].settle_share(account))

    def finish(self) -> None:
        """Let kernels do the work that they defer to the end of a batch, in plan order."""
        for member in self.members.values():
            while member.kernel.has_work:
                begun = time.perf_counter_ns()
                results = member.call(member.kernel.work_on)
                for result in results:
                    member.counts.count_out(result)
                self.push(member.part.index, results)
                took = time.perf_counter_ns() - begun
                member.call(member.kernel.end_portion, took, self._now() + took)

    @property
    def waits(self) -> bool:
        """True if rows wait for a batch that has time for them."""
        return any(member.kernel.waiting_since is not None for member in self.members.values())

    def needs(self) -> dict[str, list[Need]]:
        """Return the marks that each operator needs of the inputs of the stage, by the title of
        operators that hold something back."""
        return {
            member.part.where.title: [
                need for each in requests for need in backtrack(self.members, member, each)
            ]
            for member in reversed(self.members.values())
            if (requests := member.requests)
        }

    @property
    def holding(self) -> list[str]:
        """The titles of the operators that hold back something of single groups."""
        return [
            member.part.where.title
            for member in reversed(self.members.values())
            if member.covered and member.holds
        ]

    # ---- latent time -----------------------------------------------------------------------

    @property
    def stamps(self) -> dict[int, Stamp]:
        """The kernels that stamp rows with the clock, by operator."""
        kernels = ((index, member.kernel) for index, member in self.members.items())
        return {index: kernel for index, kernel in kernels if isinstance(kernel, Stamp)}

    def stamp(self, now: int) -> None:
        """Move latent time to ``now``, the time at which rows were stamped in some bucket."""
        for index, kernel in self.stamps.items():
            self.push(index, self.members[index].call(kernel.rows_stamped, now))

    def tick(self, now: int) -> bool:
        """Move latent time with the clock, in every bucket alike; return whether a promise on it
        was made."""
        promised = False
        for index, kernel in self.stamps.items():
            member = self.members[index]
            self.push(index, member.call(kernel.promise_last))
            if kernel.how.on_demand or kernel.how.beats:
                promises = member.call(kernel.enable, now)
                self.push(index, promises)
                promised = promised or bool(promises)
        return promised

    def clock_due(self, index: int, mark: int) -> int | None:
        """Return the clock time at which a tick lets an operator promise a latent time, in
        nanoseconds; None if it does so at no tick."""
        return mark * TICK if self.stamps[index].how.on_demand else None

    # ---- state -----------------------------------------------------------------------------

    def settle(self) -> None:
        """Let all kernels make their state small."""
        for member in self.members.values():
            member.call(member.kernel.settle)

    def snapshot(self) -> dict[str, Any]:
        """Return the numbers of all kernels, by slot."""
        return {m.part.slot: m.call(m.kernel.snapshot) for m in self.members.values()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from a snapshot; an operator that is not in it starts empty."""
        for member in self.members.values():
            if member.part.slot in saved:
                member.call(member.kernel.restore, saved[member.part.slot])
