"""A member is an operator at work: it has a kernel, counts elements and makes requests.

Both engines run a plan as members of one graph; they differ in when a member gets its next element,
in clocks and in stores.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import polars as pl

from lowwater.engines.feedback import Feedback
from lowwater.engines.memory import MemoryAccount
from lowwater.engines.step import Where, call, step
from lowwater.operators.kernel import Host, Kernel, Request
from lowwater.operators.shared_memory import SharesMemory
from lowwater.operators.stamp import Stamp
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Element, End
from lowwater.stream.floor import Floor
from lowwater.stream.time_domain import ROWS, TimeDomain
from lowwater.updates.staleness import MeasuresStaleness, Staleness

if TYPE_CHECKING:  # workers run operators and do no planning
    from lowwater.engines.awaiting import Awaiting
    from lowwater.plan.nodes import Node
    from lowwater.plan.physical.operator import Build, KernelOperator

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Need = tuple[int, str, int]
"""A mark that a request needs of an input of the graph: the source (or operator of an earlier
stage), the attribute and the mark in ticks."""


@dataclass(frozen=True)
class Part:
    """An operator as an engine runs it: no node, no source, so that it can be sent to a worker."""

    index: int
    slot: str
    """The name of its state, which stays the same when row-wise operators come or go."""
    where: Where
    inputs: tuple[int, ...]
    build: Build
    in_part: bool
    """True if its answers leave as partials, to be finished after the stage."""
    domains: Mapping[str, TimeDomain]
    """The time domains of its progressing attributes, of its inputs and of its output."""
    floor: Floor
    """The floor of its output rows, as the query states it."""

    @classmethod
    def of(cls, operator: KernelOperator, slot: str, floor: Floor, in_part: bool = False) -> Part:
        """Return the part that runs an operator of a plan."""
        return cls(
            operator.index,
            slot,
            Where.of(operator),
            operator.inputs,
            operator.build,
            in_part,
            domains_of(operator.node),
            dict(floor),
        )

    def kernel(self, store: ChunkStore, host: Host) -> Kernel:
        """Build the kernel over a store."""
        return call(self.where, self.build, store, host)


def domains_of(node: Node) -> dict[str, TimeDomain]:
    """Return the time domains of a node's progressing attributes; those of inputs come first."""
    found: dict[str, TimeDomain] = {}
    for each in (*node.inputs, node):
        for name, attribute in each.progress.items():
            found.setdefault(name, attribute.domain)
    return found


def show_marks(
    marks: Mapping[str, int], domains: Mapping[str, TimeDomain]
) -> dict[str, datetime | int | None]:
    """Return marks as people read them, by attribute; ``ts[1]`` is ``ts`` of input 1."""
    return {
        name: domains.get(name.partition("[")[0], ROWS).show(mark) for name, mark in marks.items()
    }


@dataclass(slots=True)
class Counts:
    """The rows and promises that came to an operator and left it; an end is neither."""

    rows_in: int = 0
    rows_out: int = 0
    promises_in: int = 0
    promises_out: int = 0
    rows_unneeded: int = 0
    """Rows that came and were not taken in, because no row of the result needs them."""

    def add(self, counts: Counts) -> None:
        """Add the counts of another copy of the operator, or of another batch."""
        self.rows_in += counts.rows_in
        self.rows_out += counts.rows_out
        self.promises_in += counts.promises_in
        self.promises_out += counts.promises_out
        self.rows_unneeded += counts.rows_unneeded

    def count_in(self, element: Element) -> None:
        """Count an element that the operator takes."""
        if isinstance(element, pl.DataFrame):
            self.rows_in += element.height
        elif not isinstance(element, End):
            self.promises_in += 1

    def count_out(self, element: Element) -> None:
        """Count an element that leaves the operator."""
        if isinstance(element, pl.DataFrame):
            self.rows_out += element.height
        elif not isinstance(element, End):
            self.promises_out += 1


class Member:
    """An operator at work."""

    awaiting: Awaiting | None = None
    """The requests for single groups; None if the operator's requests are on whole streams."""

    feedback: Feedback | None = None
    """The floors of the graph; None if all rows are taken in."""

    def __init__(self, part: Part, store: ChunkStore, host: Host):
        self.part, self.counts = part, Counts()
        self._share: int | None = None  # of a memory budget
        self.kernel = part.kernel(store, host)

    def take(self, port: int, element: Element) -> Sequence[Element]:
        """Hand the kernel an element of an input and return the elements that leave.

        Rows that the operator does not need are left out.
        """
        if self.feedback is not None and isinstance(element, pl.DataFrame):
            needed = self.feedback.needed(self.part.index, port, element)
            self.counts.rows_unneeded += element.height - needed.height
            if not needed.height:
                return []
            element = needed
        self.counts.count_in(element)
        results = step(self.kernel, port, element, self.part.where)
        if self.awaiting is not None:
            self.awaiting.take(self.part.index, port, element)
        feeds_back = self.kernel.feeds_back and not isinstance(element, pl.DataFrame)
        if self.feedback is not None and feeds_back:
            self.feedback.refresh(self.part.index)
        return results

    def floors(self) -> Sequence[Floor]:
        """Return the floor that the operator states of each input."""
        return self.call(self.kernel.floors)

    def forget(self, floor: Floor) -> None:
        """Free the state that only output rows below a floor depend on."""
        self.call(self.kernel.forget, floor)

    def call(
        self, method: Callable[Given, Returned], *arguments: Given.args, **named: Given.kwargs
    ) -> Returned:
        """Call another method of the kernel."""
        return call(self.part.where, method, *arguments, **named)

    def settle_share(self, account: MemoryAccount) -> Sequence[Element]:
        """Report the memory that is needed and used, and take the share of the budget; return the
        elements that leave because it is smaller."""
        kernel = self.kernel
        assert isinstance(kernel, SharesMemory)
        share = account.settle(kernel.memory_need, kernel.memory_used, kernel.ended)
        if share == self._share:
            return []
        self._share = share
        results = self.call(kernel.take_share, share)
        account.settle(kernel.memory_need, kernel.memory_used, kernel.ended)
        return results

    def marks(self) -> dict[str, int]:
        """Return the marks of the inputs in ticks, by input or attribute."""
        return self.call(self.kernel.marks)

    def show(self, marks: Mapping[str, int]) -> dict[str, datetime | int | None]:
        """Return marks of this operator as people read them."""
        return show_marks(marks, self.part.domains)

    def staleness(self) -> Staleness | None:
        """Return the staleness of the results; None if the operator does not measure it."""
        return (
            self.call(self.kernel.staleness) if isinstance(self.kernel, MeasuresStaleness) else None
        )

    def notes(self) -> list[str]:
        """Return the operator's warnings since the last call, each with its title."""
        return [f"{self.part.where.title}: {each}" for each in self.call(self.kernel.notes)]

    @property
    def covered(self) -> bool:
        """True if all that the operator holds back is requested of single groups."""
        return self.awaiting is not None and self.awaiting.covers(self.part.index)

    @property
    def requests(self) -> Sequence[Request]:
        """The progress of whole streams that would release something the operator holds back."""
        return () if self.covered else self.call(self.kernel.requests)

    @property
    def holds(self) -> bool:
        """True if the operator holds back something that progress would release."""
        if self.covered and self.awaiting is not None:
            return self.awaiting.holds(self.part.index)
        return bool(self.requests)


def backtrack(members: Mapping[int, Member], member: Member, request: Request) -> Iterator[Need]:
    """Follow a request of a member back to the inputs of the graph; yield the marks it needs.

    An operator that stamps rows counts as an input, because its marks follow from the clock.
    """
    index = member.part.inputs[request.port]
    before = members.get(index)
    if before is None or isinstance(before.kernel, Stamp):
        for attribute, mark in request.bounds:
            yield index, attribute, mark
        return
    for each in before.call(before.kernel.backtrack, request):
        yield from backtrack(members, before, each)
