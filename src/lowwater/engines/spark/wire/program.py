"""A program is a plan as Spark's workers need it: plain values that can be sent to any process.

Nothing here holds a node, a source, a session or a DataFrame, and nothing of planning is loaded
where these are used.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field

import polars as pl

from lowwater.engines.members import Part
from lowwater.engines.spark.wire.answer_files import AnswerFiles
from lowwater.engines.spark.wire.buckets import KeyColumns, hash_probe
from lowwater.engines.spark.wire.late_files import LateFolder
from lowwater.engines.step import Where
from lowwater.operators.identity import Identity
from lowwater.operators.kernel import ALONE, Finisher, Kernel, Reducer
from lowwater.progress.demand import Demand
from lowwater.progress.spec import StreamSpec
from lowwater.state.store import MemoryStore
from lowwater.stream.floor import Floor


@dataclass(frozen=True)
class Delivery:
    """The way of a source's rows to one stage."""

    stage: int
    ids: tuple[int, ...]
    key: KeyColumns | None
    prefix: tuple[Part, ...]
    """Row-wise operators that run before rows are sent."""
    end: int
    """The operator whose output is sent: the last of ``prefix``, or the source."""
    reducer: Part | None
    """The aggregate that rows can be reduced for; None if another operator reads them too."""
    owned: bool = False
    """True if punctuation on a group is sent to one bucket only, that of the group's rows."""


@dataclass(frozen=True)
class SourceProgram:
    """A source as workers need it."""

    index: int
    spec: StreamSpec
    demands: Mapping[str, Demand]
    announced: tuple[Hashable, ...]
    ordered: bool
    """True if the order of its rows is known, so that they are judged before they are sent."""
    deliveries: tuple[Delivery, ...]
    clocked: bool
    """True if its rows or promises depend on the clock: stamps, timers, silence."""
    floor: Floor
    """The floor of the rows that some operator needs, as the query states it."""
    origin: Hashable = None
    """Identifies where its rows come from."""


@dataclass(frozen=True)
class Route:
    """The way of an operator's rows out of its stage: to a later stage, or to the result."""

    producer: int
    stage: int
    ids: tuple[int, ...]
    key: KeyColumns | None


@dataclass(frozen=True)
class Exchange:
    """An operator of an earlier stage that sends rows and punctuation to a stage."""

    where: Where
    senders: tuple[int, ...]
    """The ids of the buckets that send."""
    owned: bool
    """True if punctuation on a group comes from one bucket only, that of the group's rows."""


@dataclass(frozen=True)
class StageProgram:
    """A stage as workers need it."""

    number: int
    parts: tuple[Part, ...]
    exports: tuple[int, ...]
    ids: tuple[int, ...]
    sources: tuple[SourceProgram, ...]
    exchanges: Mapping[int, Exchange]
    """By the operator that sends."""
    routes: tuple[Route, ...]
    fingerprint: tuple[str, ...]
    own: tuple[tuple[str, Identity], ...]
    """The users' aggregates in it, each with its operator."""
    stamps: bool
    """True if one of its operators stamps rows by the clock."""
    probe: int = field(default_factory=hash_probe)
    hurried: bool = False
    """True if rows come while others are processed, so that some may have to wait."""
    late_folder: LateFolder | None = None
    request_folder: str | None = None
    memory: int | None = None
    """Bytes that the joins without a window of one bucket share; None for no limit."""
    budget: int | None = None
    """Bytes that all such joins of the query share."""
    sharing: tuple[int, ...] = ()
    """The operators that share memory."""
    answers: AnswerFiles | None = None
    """Where the newest answers are written; None if they are not kept, or come from other
    stages."""

    @property
    def accountable(self) -> frozenset[int]:
        """The sources whose late rows and marks this stage reports: of several stages that judge a
        source, the first one reports."""
        return frozenset(s.index for s in self.sources if s.deliveries[0].stage == self.number)


@dataclass(frozen=True)
class Program:
    """Everything that runs on Spark for one query."""

    sources: tuple[SourceProgram, ...]
    stages: tuple[StageProgram, ...]
    combined: Part | None
    """The operator whose partial answers are combined after the last stage."""
    tail: tuple[Part, ...]
    schema: Mapping[str, pl.DataType]

    @property
    def end(self) -> int:
        """The stage number in messages that leave the last stage."""
        return len(self.stages)

    @property
    def request_folder(self) -> str | None:
        """The folder in which stages save requests for ticks; None if they make none."""
        return self.stages[0].request_folder


def idle_kernel(part: Part) -> Kernel:
    """Return a kernel for its functions that use no state."""
    return part.kernel(MemoryStore(), ALONE)


def finisher_kernel(part: Part) -> Finisher:
    """Return a kernel that combines partial answers, for its functions that use no state."""
    kernel = idle_kernel(part)
    assert isinstance(kernel, Finisher)
    return kernel


def reducer_kernel(part: Part) -> Reducer:
    """Return an aggregate's kernel, for its functions that use no state."""
    kernel = idle_kernel(part)
    assert isinstance(kernel, Reducer)
    return kernel
