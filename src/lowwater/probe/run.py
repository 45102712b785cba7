"""A probe runs a query in this process on a virtual clock, and an observer follows the run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import polars as pl

from lowwater.api import Stream
from lowwater.engines.clock import Charge, VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, ReadPace
from lowwater.engines.embedded.graph import Vertex
from lowwater.errors import OptionError, unknown_name
from lowwater.joins.ordered.ordered_join import OrderedJoin
from lowwater.metrics import OperatorMetrics, RunMetrics
from lowwater.operators.kernel import Kernel
from lowwater.plan.physical.operator import KernelOperator, Operator, PhysicalPlan, PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.sources.replay import Replay
from lowwater.stream.duration import SECOND, Duration, nanoseconds
from lowwater.stream.element import Chunk, Element, End, Punctuation
from lowwater.updates.staleness import MeasuresStaleness, Staleness

CHUNK_ROWS = 65_536
"""Rows that a source hands over at once, at most, unless the caller says otherwise."""
Kind = Literal["rows", "punctuation", "end", "more"]
Attributes = tuple[str, ...]
Substitute = Callable[[Kernel], Kernel]
"""A function that takes the kernel of an operator and returns the one that replaces it."""


class ProbedOperator:
    """One operator of a run; its values are those of the moment at which they are read.

    All sizes count state only.
    """

    def __init__(self, vertex: Vertex):
        self._vertex = vertex

    @property
    def name(self) -> str:
        """The operator's kind, such as ``window`` or ``join``."""
        return self._vertex.operator.name

    @property
    def title(self) -> str:
        """The name and a number, as in ``explain()`` and in the metrics."""
        return self._vertex.operator.title

    @property
    def inputs(self) -> int:
        """Number of inputs."""
        return len(self._vertex.inputs)

    @property
    def rows(self) -> int:
        """Rows held now, over all inputs."""
        return self._vertex.store.rows + self._vertex.kernel.held[0]

    @property
    def bytes(self) -> int:
        """Bytes held now, over all inputs."""
        return self._vertex.store.bytes + self._vertex.kernel.held[1]

    def rows_of(self, input: int) -> int:
        """Return the rows held now of one input; with one input, all rows.

        The operator must keep its inputs apart, as band joins and joins of many inputs do.

        ``input``
            Number of the input, from 0.
        """
        store, name = self._vertex.store, f"rows{input}"
        if self.inputs == 1:
            return self.rows
        return sum(store.rows_in(name, slice_) for slice_ in store.slices(name))

    @property
    def queue(self) -> int:
        """Elements (rows and punctuation) that wait in front of the operator."""
        return sum(arc.length.now for arc in self._vertex.inputs)

    @property
    def marks(self) -> dict[str, int]:
        """Marks in ticks, by attribute, with the input in brackets where there are several."""
        return self._vertex.kernel.marks()

    @property
    def details(self) -> dict[str, str | int | float]:
        """Values that the operator adds to its metrics: the strategy in use, sizes of its
        buffers."""
        return self._vertex.kernel.about()

    @property
    def comparisons(self) -> int:
        """Pairs of rows compared so far."""
        return self._vertex.kernel.comparisons

    @property
    def staleness(self) -> Staleness:
        """The staleness, in seconds, of a queue of updates; other operators raise an error."""
        kernel = self._vertex.kernel
        if not isinstance(kernel, MeasuresStaleness):
            raise OptionError(f"{self.title} is no queue of updates: it has no staleness")
        return kernel.staleness()

    @property
    def done_to(self) -> int:
        """The time, in ticks, up to which an ordered join has emitted all results of the rows that
        came: it has compared these rows, and no earlier result is to come."""
        kernel = self._vertex.kernel
        if not isinstance(kernel, OrderedJoin):
            raise OptionError(f"{self.title} is no ordered join")
        upto = kernel.frontier[0]
        # The frontier does not show whether the row at that very time is joined; its queue does.
        return upto - 1 if kernel.unjoined[0] <= upto else upto

    def metrics(self) -> OperatorMetrics:
        """Return the metrics so far; shares of time are 0 before the run has ended."""
        return self._vertex.metrics(0)


@dataclass(slots=True)
class Step:
    """One operator at work on one element, or on a portion of work that it had left."""

    operator: ProbedOperator
    input: int | None
    """The input the element came from; None where the operator goes on by itself."""
    kind: Kind
    """``more`` where the operator goes on by itself."""
    attributes: Attributes = ()
    """Attributes that a punctuation bounds."""
    results: tuple[pl.DataFrame, ...] = ()
    """Rows that the step emits; empty before it is done."""
    left_queue: int = 0
    """Rows that the step let out of a queue of updates."""
    comparisons: int = 0
    """Pairs of rows that the step compared."""
    nanoseconds: int = 0
    """Nanoseconds that the step takes on the clock."""


class Observer:
    """Receives calls while a :class:`Probe` runs. Subclasses override the methods they need.

    An error that an observer raises ends the run.

    ``step``
        The step of an operator.
    ``rows``
        Rows of the result.
    """

    run: Probe
    """The run, set before it begins."""

    def on_begin(self, step: Step) -> None:
        """Called before an operator takes an element or goes on."""

    def on_done(self, step: Step) -> None:
        """Called when the step is done and the clock does not show its time yet."""

    def on_charged(self, step: Step) -> None:
        """Called when the clock shows the step's time; its results have not moved on yet."""

    def on_idle(self) -> None:
        """Called when everything that arrived is done, before the clock jumps."""

    def on_results(self, rows: pl.DataFrame) -> None:
        """Called with rows that leave the query."""


class Probe:
    """One run of a query, observed.

    >>> log = pl.DataFrame({"at": [0.0, 1.0], "ts": [1, 2]})
    >>> query = lw.stream(lw.replay(log, "at"), name="s", time="ts").where("ts % 2 = 0")
    >>> run = Probe(query, tick=0).run()
    >>> run.results.rows(), run.seconds
    ([(1.0, 2, 1.0)], 1.0)
    >>> run.operator("filter").metrics().rows_in
    2

    ``query``
        A stream of finite sources.
    ``observer``
        The observer whose methods are called. Default: None.
    ``plan``
        "out-of-order", or "in-order", which puts sorts and merges in. Default: "out-of-order".
    ``charge``
        Cost of work on the clock: "nothing", "measured", nanoseconds a step,
        ``PerComparison(nanoseconds)`` of a join, or ``PerRow(nanoseconds)`` of an update queue.
        Default: "nothing".
    ``tick``
        Length of clock time whose arrivals are handed over together; 0: each row as it arrives.
        Default: None, whenever there are ``chunk_rows`` of them.
    ``chunk_rows``
        Most rows that are handed over at once. Default: 65,536.
    ``keep``
        True keeps the results for :attr:`results`. Default: True.
    ``punctuation``
        By an operator's name, the attributes of punctuation that it may use; all other punctuation
        is withheld from it. Default: None, nothing is withheld.
    ``substitutes``
        By an operator's name, a function from its kernel to one that takes its place, for baselines
        written against ``lowwater.operators.kernel``. Default: None.
    """

    def __init__(
        self,
        query: Stream,
        *,
        observer: Observer | None = None,
        plan: PlanShape = "out-of-order",
        charge: Charge = "nothing",
        tick: Duration | None = None,
        chunk_rows: int = CHUNK_ROWS,
        keep: bool = True,
        punctuation: Mapping[str, Sequence[Attributes]] | None = None,
        substitutes: Mapping[str, Substitute] | None = None,
    ):
        self._observer = observer or Observer()
        changes = dict(substitutes or {})
        for name, used in (punctuation or {}).items():
            changes[name] = _withholding(used, changes.get(name))
        planned = _changed(compile_plan(query._node, plan), changes)
        self._clock = _Clock(charge, self._observer.on_idle)
        pace = ReadPace(chunk_rows, None if tick is None else nanoseconds(tick, "tick"))
        self._columns = planned.schema
        self._kept: list[pl.DataFrame] | None = [] if keep else None
        self._engine = EmbeddedEngine(planned, _Results(self._take), self._clock, pace, None)
        self._arrivals = {
            each.spec.name: each.source.times
            for each in planned.sources
            if isinstance(each.source, Replay)
        }
        self.operators = tuple(map(ProbedOperator, self._engine.vertices.values()))
        """All operators but the sources, in the order of the plan."""
        self._wire()
        self.wall_seconds = 0.0
        """Seconds of real time that the run took."""

    def _wire(self) -> None:
        self._observer.run = self
        hooks = ("on_begin", "on_done", "on_charged")
        if any(
            getattr(type(self._observer), each) is not getattr(Observer, each) for each in hooks
        ):
            vertices = self._engine.vertices.values()
            for vertex, operator in zip(vertices, self.operators, strict=True):
                vertex.watch = _Steps(operator, self._observer)

    def run(self) -> Probe:
        """Run until all sources have ended, or until :meth:`stop`; return this probe."""
        begun = time.perf_counter()
        self._engine.run()
        self.wall_seconds = time.perf_counter() - begun
        return self

    def stop(self) -> None:
        """End the run after the step that is under way."""
        self._engine.stop()

    @property
    def now(self) -> int:
        """The virtual time, in nanoseconds."""
        return self._clock.now()

    @property
    def seconds(self) -> float:
        """The virtual time, in seconds."""
        return self._clock.now() / SECOND

    def operator(self, name: str) -> ProbedOperator:
        """Return the first operator of a name or title.

        ``name``
            The name, ``join`` for example, or the title, ``join#2``.
        """
        for each in self.operators:
            if name in (each.name, each.title):
                return each
        raise OptionError(unknown_name("operator", name, [each.title for each in self.operators]))

    def named(self, name: str) -> list[ProbedOperator]:
        """Return all operators of a name, in the order of the plan.

        ``name``
            The name, ``join`` for example.
        """
        return [each for each in self.operators if each.name == name]

    def unread(self, stream: str) -> int:
        """Return the number of rows of a replayed stream that have arrived and are not read yet.

        ``stream``
            Name of the stream; its log must have arrival times.
        """
        arrivals = self._arrivals[stream]
        if arrivals is None:
            raise OptionError(f"stream {stream!r} has no arrival times")
        arrived = int(np.searchsorted(arrivals, self.now, "right"))
        return arrived - self._engine.feed(stream).rows

    def metrics(self) -> RunMetrics:
        """Return the metrics of the run so far, as ``Run.metrics()`` does."""
        return self._engine.metrics()

    @property
    def results(self) -> pl.DataFrame:
        """The results so far, as they left; ``_out_at`` is the virtual time in seconds."""
        if self._kept is None:
            raise OptionError("results are kept only with keep=True")
        return pl.concat(
            [pl.DataFrame(schema={**self._columns, "_out_at": pl.Float64}), *self._kept]
        )

    def _take(self, rows: pl.DataFrame) -> None:
        if self._kept is not None:
            self._kept.append(rows.with_columns(pl.lit(self.seconds).alias("_out_at")))
        self._observer.on_results(rows)


# ---- how a run is observed -------------------------------------------------------------------


class _Clock(VirtualClock):
    """A virtual clock that calls a function before it jumps."""

    def __init__(self, charge: Charge, idle: Callable[[], None]):
        super().__init__(charge=charge)
        self._idle = idle

    def wait(self, until: int | None) -> None:
        self._idle()
        super().wait(until)


class _Results:
    """A sink that hands rows to a function."""

    def __init__(self, take: Callable[[pl.DataFrame], None]):
        self.write = take

    def close(self) -> None:
        """Do nothing: there is nothing to close."""


class _Steps:
    """Calls an observer at the steps of one operator."""

    def __init__(self, operator: ProbedOperator, observer: Observer):
        self._operator, self._observer = operator, observer
        self._step = Step(operator, None, "more")

    def begins(self, port: int | None, element: Element | None) -> None:
        self._step = step = Step(self._operator, port, _kind(element))
        if isinstance(element, Punctuation):
            step.attributes = element.attributes
        self._observer.on_begin(step)

    def worked(self, results: Sequence[Element], leaving: int) -> None:
        self._step.results = tuple(each for each in results if isinstance(each, pl.DataFrame))
        self._step.left_queue = leaving
        self._observer.on_done(self._step)

    def charged(self, nanoseconds: int, compared: int) -> None:
        self._step.nanoseconds, self._step.comparisons = nanoseconds, compared
        self._observer.on_charged(self._step)


def _kind(element: Element | None) -> Kind:
    if element is None:
        return "more"
    if isinstance(element, pl.DataFrame):
        return "rows"
    return "end" if isinstance(element, End) else "punctuation"


class _Withholding(Kernel):
    """Runs another kernel and withholds all punctuation but that on certain attributes."""

    def __init__(self, kernel: Kernel, used: Sequence[Attributes]):
        super().__init__(kernel.store, kernel.ports)
        self._kernel, self._used = kernel, used

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        return self._kernel.on_chunk(port, chunk)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        if promise.attributes not in self._used:
            return []
        return self._kernel.on_punctuation(port, promise)

    def close_port(self, port: int) -> Sequence[Element]:
        return self._kernel.close_port(port)


def _withholding(used: Sequence[Attributes], change: Substitute | None) -> Substitute:
    """Return a function that withholds punctuation from a kernel, after another change to it."""
    return lambda kernel: _Withholding(change(kernel) if change else kernel, used)


def _changed(plan: PhysicalPlan, changes: Mapping[str, Substitute]) -> PhysicalPlan:
    """Return the plan with the kernels of operators changed, by the operators' names."""

    def changed(operator: Operator) -> Operator:
        change = changes.get(operator.name)
        if change is None or not isinstance(operator, KernelOperator):
            return operator
        build = operator.build
        return replace(
            operator,
            build=lambda store, host: change(build(store, replace(host, in_portions=False))),
        )

    unknown = changes.keys() - {each.name for each in plan.operators}
    if unknown:
        names = [each.name for each in plan.operators]
        raise OptionError(unknown_name("operator", min(unknown), names))
    return replace(plan, operators=tuple(map(changed, plan.operators)))
