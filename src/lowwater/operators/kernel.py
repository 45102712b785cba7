"""The kernel: an operator as an engine sees it.

An engine gives a kernel one element at a time and gets elements back. A kernel reads no clock, uses
no random numbers, and refers neither to its engine nor to the operators after it. Its rows are in a
chunk store, its few numbers in its snapshot. A kernel that is built again from store and snapshot,
also in another process, continues as if it had never stopped.

Invariants every kernel keeps: a punctuation it emits is true of all rows it emits later; marks it
emits never go back; after the end of all inputs its store is empty.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, runtime_checkable

from lowwater.operators.metric import Readings
from lowwater.operators.waiting import Release
from lowwater.progress.late import LateRows
from lowwater.state.store import ChunkStore
from lowwater.stream.element import Chunk, Element, End, GroupPunctuation, Punctuation
from lowwater.stream.floor import Floor


@dataclass(frozen=True, slots=True)
class Request:
    """A request for progress: input ``port`` should promise ``attribute`` up to ``mark``, in ticks.

    With ``others``, a joint promise of all these bounds meets the request as well.
    """

    port: int
    attribute: str
    mark: int
    others: tuple[tuple[str, int], ...] = ()

    @classmethod
    def any_of(cls, port: int, bounds: Sequence[tuple[str, int]]) -> Request:
        """Return the request for a promise of at least one of the bounds."""
        (attribute, mark), *others = bounds
        return cls(port, attribute, mark, tuple(others))

    @property
    def bounds(self) -> tuple[tuple[str, int], ...]:
        """All bounds, at least one of which should be promised."""
        return ((self.attribute, self.mark), *self.others)


def _no_clock() -> int:
    return 0


@dataclass(frozen=True, slots=True)
class Host:
    """The way in which an engine runs a kernel; fixed when the kernel is built."""

    now: Callable[[], int] = _no_clock
    """The engine's clock, in nanoseconds."""
    copies: int = 1
    """The number of copies of the kernel that share the work, each with some of the rows."""
    in_part: bool = False
    """True if the answers of an aggregate leave as partials, to be finished with those of the other
    copies."""
    in_batches: bool = False
    """True if rows come in batches that have no order in themselves. At the end of each,
    :meth:`Kernel.work_on` is called while :attr:`Kernel.has_work`."""
    in_portions: bool = False
    """True if work that can be cut is left for :meth:`Kernel.work_on`."""
    hurried: bool = True
    """True if work takes time on the engine's clock, so that rows wait in kernels that queue."""
    singly: bool = False
    """True if a portion of a kernel that queues is one update, however long it takes."""
    memory: int | None = None
    """The bytes that a kernel shares with others of its process or bucket (``SharesMemory``); None
    for none."""
    budget: int | None = None
    """The memory budget of all queries, in bytes, of which ``memory`` is a part or the whole."""


ALONE = Host()
"""The host of a kernel that runs as a single copy, without a clock and without batches."""


class Kernel:
    """Base of all kernels. Unless overridden, it has one input and passes rows and promises on."""

    rule: ClassVar[str] = "promises pass through"
    """The rule by which output promises follow from input promises, in words, for explain."""

    comparisons = 0
    """Number of pairs of rows compared so far: the measure of a join's work."""
    queues: ClassVar[bool] = False
    """True if rows are held until the engine has no input to read. Then it calls :meth:`work_on`,
    which releases one portion, and :meth:`end_portion` when the results of that portion have
    left."""
    defers: ClassVar[bool] = False
    """True if some work may be left for :meth:`work_on`, which the engine calls when all rows of a
    batch have come."""

    feeds_back: ClassVar[bool] = False
    """True if :meth:`floors` depends on punctuation and ends of inputs, too; then the engine calls
    it after each of these."""

    def __init__(self, store: ChunkStore, ports: int = 1, host: Host = ALONE):
        self.store, self.ports, self.host = store, ports, host
        self._open = set(range(ports))
        self.floor: Floor = {}
        """The floor of the output rows that are needed, as the engine stated it last."""

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Take rows in."""
        return [chunk]

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Take a promise in."""
        return [promise]

    def on_group_punctuation(self, port: int, promise: GroupPunctuation) -> Sequence[Element]:
        """Take a promise per group in. Ignoring one is always sound, and the default."""
        return []

    def on_end(self, port: int) -> Sequence[Element]:
        """Take the end of an input; the end of the last one ends the output."""
        self._open.discard(port)
        elements = list(self.close_port(port))
        return elements if self._open else [*elements, End()]

    def close_port(self, port: int) -> Sequence[Element]:
        """Return the output at the end of an input, before the end itself."""
        return []

    @property
    def ended(self) -> bool:
        """True if all inputs have ended."""
        return not self._open

    @property
    def has_work(self) -> bool:
        """True if work is left that needs no new element."""
        return False

    def work_on(self) -> Sequence[Element]:
        """Do one portion of the work that is left, and return the output."""
        return []

    def record_time(self, nanoseconds: int) -> None:
        """Record the duration of the last step, in nanoseconds of the engine's clock."""

    def shift_arrivals(self, nanoseconds: int) -> None:
        """Set the nanoseconds to add to arrival times in rows to get clock times.

        The engine calls it at most once, before the first element, on kernels that queue.
        """

    @property
    def waiting_since(self) -> int | None:
        """Arrival time of the oldest waiting row of a kernel that queues, in clock nanoseconds;
        None if nothing waits."""
        return None

    def end_portion(self, nanoseconds: int, now: int) -> None:
        """Record that all results of the last portion had left at clock time ``now``.

        The portion took ``nanoseconds`` of work.
        """

    @property
    def held(self) -> tuple[int, int]:
        """Rows and bytes that are kept outside of the store."""
        return 0, 0

    def requests(self) -> Sequence[Request]:
        """Return requests for the progress that would release rows or answers held here."""
        return []

    def releases(self) -> Sequence[Release]:
        """Return the marks of single groups that release rows held here.

        The result is empty if only marks of the whole stream release them.
        """
        return ()

    def input_keys(self, port: int, names: tuple[str, ...]) -> tuple[str, ...] | None:
        """Return the columns of an input that name the groups of output columns ``names``.

        None if there are no such columns.
        """
        return names

    def needs(self, attribute: str, mark: int) -> Sequence[Request]:
        """Return the input progress that the output needs to promise ``attribute >= mark``."""
        return [Request(0, attribute, mark)]

    def backtrack(self, request: Request) -> Sequence[Request]:
        """Return the input progress that the output needs to meet a request of its consumer."""
        if request.others:
            return self.needs_any(request.bounds)
        return self.needs(request.attribute, request.mark)

    def needs_any(self, bounds: Sequence[tuple[str, int]]) -> Sequence[Request]:
        """Return the input progress that the output needs to promise any one of the bounds."""
        return [each for attribute, mark in bounds for each in self.needs(attribute, mark)]

    def forget(self, floor: Floor) -> None:
        """Free the state that only output rows below a floor depend on.

        A later floor is never below an earlier one. Output rows below it may leave or not, and may
        be wrong: nobody takes them. Rows at or above it are those that would leave without it. The
        floor is not part of the snapshot; the engine states it again.
        """
        self.floor = floor

    def floors(self) -> Sequence[Floor]:
        """Return the floor of each input: no output row that is needed depends on rows below it.

        The engine drops the rows of an input that are below its floor, and states the floor to the
        operator before. An empty floor is always sound, and the default.
        """
        return [{}] * self.ports

    def take_late_rows(self) -> tuple[str, Chunk | None, list[LateRows]] | None:
        """Return the late rows since the last call; None if there were none.

        The result is the stream, the rows (None if they are dropped) and the lines of their
        account.
        """
        return None

    def marks(self) -> dict[str, int]:
        """Return the marks of the inputs, by input or attribute, for people."""
        return {}

    def metrics(self) -> Readings:
        """Return the metrics of this kernel's work: its choices and their reasons, buffer sizes."""
        return Readings()

    def about(self) -> dict[str, str | int | float]:
        """Return the metrics by the words for them, for people."""
        return self.metrics().about

    def notes(self) -> Sequence[str]:
        """Return the warnings since the last call.

        Copies that warn for the same reason return the same text.
        """
        return []

    def settle(self) -> None:
        """Make the state small before an engine writes it. Answers do not change."""

    def snapshot(self) -> dict[str, Any]:
        """Return the state that is not in the store."""
        return {"open": sorted(self._open)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Set the state to that of a snapshot."""
        self._open = set(saved["open"])


@runtime_checkable
class Finisher(Protocol):
    """A kernel of which several copies can run, each on some of the rows.

    The output of all copies for one promise, finished together, is the output of a single copy with
    all the rows.

    ``finished`` touches no state: it may run in a process that has none of it.
    """

    def finished(self, parts: Chunk, /) -> Chunk:
        """Return the answers, from the output of all copies."""


class Reducer(Kernel, ABC):
    """A kernel that aggregates.

    Rows can be reduced to partials on the way to it. Several copies can run, each on some of the
    rows; the final answers follow from their partial answers.

    ``reduced`` and ``finished`` touch no state: they may run in a process that has none of it.
    """

    @abstractmethod
    def reduced(self, chunk: Chunk) -> Chunk:
        """Return rows as partials."""

    @abstractmethod
    def on_partials(self, partials: Chunk) -> None:
        """Take partials in, with the effect of the rows they came from."""

    @abstractmethod
    def finished(self, parts: Chunk) -> Chunk:
        """Return the answers, from the partial answers of all copies."""
