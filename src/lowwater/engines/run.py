"""An engine takes a plan and options, and returns a handle on the run.

:class:`Run` is that handle; the class of each engine works, stops, and finds the results.
"""

from __future__ import annotations

import threading
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

import polars as pl
import pyarrow as pa

from lowwater.engines.answers import REFUSAL, Answers, Puller
from lowwater.engines.clock import Charge, Clock, PerComparison, PerRow
from lowwater.engines.memory import MemoryBudget, MemoryLedger
from lowwater.errors import OptionError, StreamWarning, unknown_name
from lowwater.metrics import RunMetrics
from lowwater.plan.conditions import Time, floor_before
from lowwater.plan.physical.answers import answer_shape
from lowwater.plan.physical.costs import Rates
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.plan.physical.sharing import SharedPlan
from lowwater.sinks import SinkCall
from lowwater.stream.duration import Duration, nanoseconds
from lowwater.stream.floor import Floor
from lowwater.updates.options import Key

ENGINES = ("embedded", "spark")
STOP_SECONDS = 10.0
"""Seconds that ``stop()`` waits for the end of a run; a sink that blocks cannot be interrupted."""


class RunPage(Protocol):
    """The page of a run."""

    url: str
    """Its address."""

    def settle(self) -> None:
        """Read the metrics one last time; the page shows these until it is closed."""

    def close(self) -> None:
        """Take the page down; the run continues."""


class Run(ABC):
    """A query that is running, or has run.

    The work is done on a thread of the run's own. An error ends it, is kept, and is raised in the
    caller's thread by the next call that waits for the run.

    >>> log = pl.DataFrame({"ts": [1, 5, 2]})
    >>> run = lw.stream(log, name="s", time="ts").run()
    >>> run.await_termination(timeout=60)
    True
    >>> run.results()["ts"].to_pylist(), run.late_rows("s")["ts"].to_pylist()
    ([1, 5], [2])
    >>> run.metrics().late_rows
    1
    """

    dashboard: RunPage | None = None
    """The page that shows it, if there is one."""

    def __init__(self, plan: PhysicalPlan, sink_call: SinkCall, keeps_results: bool):
        self._schema, self._node = plan.schema, plan.result.node
        self._streams = [each.spec.name for each in plan.sources]
        self._sink_call = sink_call
        self._keeps_results = keeps_results
        self._error: BaseException | None = None
        self._stopped = False
        self._thread = threading.Thread(target=self._work, name="lowwater", daemon=True)
        shape = answer_shape(plan)
        self._puller = None if shape is None else Puller(shape)

    # ---- what an engine does ---------------------------------------------------------------

    @abstractmethod
    def _work(self) -> None:
        """Run until the end; keep the error that ends the run in ``_error``."""

    @abstractmethod
    def _interrupt(self) -> None:
        """Make the work end and wait for it, for at most ten seconds while a sink blocks."""

    @abstractmethod
    def _results(self) -> pa.Table:
        """Return the results so far; called only if they are kept."""

    @abstractmethod
    def _late_rows(self, stream: str) -> pa.Table:
        """Return the side output of a stream of this run."""

    @abstractmethod
    def _answers(self, key: Key | None) -> Answers:
        """Return the newest answers of all update keys, or at least of one; called only if the
        query has an update key."""

    @abstractmethod
    def last_rows(self) -> pl.DataFrame:
        """Return the last answers, the newest last, at most ``keep_last`` of them."""

    @abstractmethod
    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """Return the last late rows of a stream, at most ``keep_last`` of them.

        ``stream``
            Name of the stream.
        """

    @abstractmethod
    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""

    @abstractmethod
    def _forget(self, floor: Floor) -> None:
        """Raise the floor of the answers that are needed."""

    def _unread(self) -> str:
        """Return a clause about the rows that are not read because a sink blocks; "" for none."""
        return ""

    # ---- starting and ending ---------------------------------------------------------------

    def start(self) -> Self:
        """Run in the background."""
        self._thread.start()
        return self

    def run_here(self) -> Self:
        """Run until the end."""
        self.start()
        self._thread.join()
        self._raise()
        return self

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the run, if one did."""
        return self._error

    @property
    def active(self) -> bool:
        """True until the run has ended."""
        return self._thread.is_alive()

    @property
    def stopped(self) -> bool:
        """True if ``stop()`` was called before the run ended."""
        return self._stopped

    def stop(self) -> None:
        """End the run and wait for it (a sink, which runs inside it, cannot wait).

        A sink that blocks cannot be interrupted: after ten seconds this returns and warns of it.
        """
        self._stopped |= self.active
        self._interrupt()
        if threading.current_thread() is not self._thread:
            self._warn_of_sink(0.0)
            self._raise()

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end of the run; return True if it has ended, and raise its error if it has
        one.

        ``timeout``
            Most seconds to wait. Default: None, until the end.
        """
        self._thread.join(timeout)
        if timeout is not None:
            self._warn_of_sink(timeout)
        self._raise()
        return not self.active

    def _warn_of_sink(self, seconds: float) -> None:
        """Warn of a sink that has not returned for ``seconds`` and so keeps the run from ending."""
        said = self._sink_call.blocked(seconds) if self.active else None
        if said is not None:
            warnings.warn(
                f"{said}: the run ends when it returns. It is not known which of these rows it"
                f" has taken; {self._unread()}nothing that comes after them is handed over",
                StreamWarning,
                stacklevel=3,
            )

    def _raise(self) -> None:
        """Raise the error that ended the run, if one did."""
        if self._error is not None:
            raise self._error

    # ---- feedback --------------------------------------------------------------------------

    def forget_before(self, time: Time, on: str | None = None) -> None:
        """Hand over no more answers before a time, and free all state that only these need.

        Answers at or after the time are those that would come without the call. Rows that only
        earlier answers need are not kept any more: they count as *not needed*, and are not late. A
        later call with an earlier time changes nothing.

        A run on Spark refuses the call: its batches must be repeatable. Stop it, and start the
        query again with :meth:`lowwater.Stream.forget_before` on the same checkpoint.

        >>> source = lw.push({"ts": pl.Int64})
        >>> rows = lw.stream(source, name="rows", time="ts")
        >>> run = rows.window("1 minute").agg(n="count(*)").run()
        >>> run.forget_before(60)
        >>> source.send([{"ts": 10}, {"ts": 70}])
        >>> source.close()
        >>> run.await_termination(timeout=60)
        True
        >>> run.results()["window_start"].to_pylist(), run.metrics().streams[0].unneeded_rows
        ([60], 1)

        ``time``
            The earliest time that is of use: a datetime, a date, or a text in ISO form; of an
            integer column the number, in its unit.
        ``on``
            The progressing column of the answers that is compared. Default: None, the main time.
        """
        self._forget(floor_before(self._node, time, on, "forget_before"))

    # ---- results ---------------------------------------------------------------------------

    def results(self) -> pa.Table:
        """Return the results so far, if they were kept (no ``sink=`` was given)."""
        if not self.active:
            self._raise()
        if not self._keeps_results:
            raise OptionError(
                "results went to the sink; they are kept only when sink= is not given"
            )
        return self._results()

    @property
    def puller(self) -> Puller | None:
        """Completes the newest answers for readers; None if the query has no update key."""
        return self._puller

    def latest(self, key: object = ()) -> dict[str, Any] | None:
        """Return the newest answer of a key now, while the run goes on or after its end; None if
        the key is unknown, was deleted or has expired.

        The answer is a mapping with its columns and three more: ``_time``, the time of the row that
        it answers (of a join the later one), ``_age``, the seconds since it was given, and
        ``_staleness``, the seconds for which a newer row of the key has been waiting (0.0: none).

        >>> log = pl.DataFrame({"ts": [1, 2, 3], "k": ["a", "b", "a"], "v": [10, 20, 30]})
        >>> run = lw.stream(log, name="s", time="ts", update_key="k").run()
        >>> run.await_termination()
        True
        >>> run.latest("a")
        {'ts': 3, 'k': 'a', 'v': 30, '_time': 3, '_age': 0.0, '_staleness': 0.0}
        >>> run.latest("c") is None
        True

        ``key``
            Value of the key column; for several columns a tuple in their order, or a mapping of
            columns to values. The key is the update key, or all groups of a window. Default:
            ``()``, for ``update_key=()``.
        """
        puller = self._pulling()
        wanted = puller.key_of(key)
        return puller.one(self._answers(puller.update_key(wanted)), wanted)

    def table(self) -> pa.Table:
        """Return the newest answer of every key now, with the columns that :meth:`latest` adds.

        Keys that were deleted or have expired are not in it. It is kept with ``sink=`` too.

        >>> log = pl.DataFrame({"ts": [1, 2, 3], "k": ["a", "b", "a"], "v": [10, 20, 30]})
        >>> run = lw.stream(log, name="s", time="ts", update_key="k").run()
        >>> run.await_termination()
        True
        >>> run.table().select(["k", "v"]).to_pylist()
        [{'k': 'b', 'v': 20}, {'k': 'a', 'v': 30}]
        """
        return self._pulling().table(self._answers(None)).to_arrow()

    def _pulling(self) -> Puller:
        """Return what completes answers; raise the run's error, or one if there is no key."""
        if not self.active:
            self._raise()
        if self._puller is None:
            raise OptionError(REFUSAL)
        self._puller.check()
        return self._puller

    def late_rows(self, stream: str | None = None) -> pa.Table:
        """Return the side output: the rows of a stream that were refused.

        Three columns are added: ``_reason``, ``_late_by_seconds``, and ``_mark``, the promise that
        the row breaks.

        ``stream``
            Name of the stream. Default: None, the only one; must be given if there are several.
        """
        if stream is None:
            if len(self._streams) > 1:
                raise OptionError(f"several streams ran: say which of {', '.join(self._streams)}")
            stream = self._streams[0]
        if stream not in self._streams:
            raise OptionError(unknown_name("stream", stream, self._streams))
        return self._late_rows(stream)


@dataclass(frozen=True)
class RunOptions:
    """The arguments of ``Stream.run``; an engine refuses those that it does not have."""

    sink: object = None
    late_sink: object = None
    clock: Clock | Literal["virtual", "wall"] | None = None
    charge: Charge = "nothing"
    chunk_rows: int | None = None
    tick: Duration | None = None
    checkpoint: object = None
    trigger: Duration | None = None
    buckets: int | None = None
    session: Any = None
    memory: MemoryBudget | None = None
    """The memory that all joins without a window may take together."""
    ledger: MemoryLedger | None = None
    """The ledger of the budget, if the query shares it with others in this process."""
    rates: Rates | None = None
    """Rows a second of streams, by which the memory is judged before the run."""
    label: str = ""
    """The name of the query in messages; empty if there is one."""
    to_end: bool = False
    """True if the run ends with the rows that its sources hold now."""
    keep_last: int = 0
    """Number of the last answers, and of the last late rows of each stream, that are kept to be
    shown."""

    def __post_init__(self) -> None:
        for option in ("chunk_rows", "buckets"):
            given = getattr(self, option)
            whole = isinstance(given, int) and not isinstance(given, bool) and given > 0
            if given is not None and not whole:
                raise OptionError(f"{option} is a whole number above zero, not {given!r}")
        known = isinstance(self.charge, int | PerComparison | PerRow)
        if self.charge not in ("nothing", "measured") and not known:
            raise OptionError(
                "charge= is 'nothing', 'measured', nanoseconds or lw.per_row('10 ms'), not"
                f" {self.charge!r}"
            )
        if self.tick is not None and nanoseconds(self.tick, "tick") < 0:
            raise OptionError(f"tick= is a length of time of zero or more, not {self.tick!r}")


def prepare_shared(plan: SharedPlan, options: Mapping[str, RunOptions]) -> Mapping[str, Run]:
    """Set queries up that share queues, which run in this process; return their runs by name."""
    from lowwater.engines.embedded.shared_run import prepare_shared as make  # noqa: PLC0415

    return make(plan, options)


def prepare(plan: PhysicalPlan, engine: str, options: RunOptions) -> Run:
    """Set a plan up on an engine, which is imported only here."""
    if engine == "embedded":
        from lowwater.engines.embedded.run import prepare_embedded  # noqa: PLC0415

        return prepare_embedded(plan, options)
    if engine == "spark":
        from lowwater.engines.spark import require_spark  # noqa: PLC0415

        require_spark()
        from lowwater.engines.spark.driver.run import prepare_spark  # noqa: PLC0415

        return prepare_spark(plan, options)
    raise OptionError(f"unknown engine {engine!r}; this version has: {', '.join(ENGINES)}")


def spark_session(master: str | None = None) -> Any:
    """Return the Spark session that is running, or else a new one."""
    from lowwater.engines.spark import require_spark  # noqa: PLC0415

    require_spark()
    from lowwater.engines.spark.session import spark_session as make  # noqa: PLC0415

    return make(master)


def external_columns(
    session: Any, format_: str, path: str, options: Mapping[str, str]
) -> Mapping[str, pl.DataType]:
    """Return the columns that a format of Spark's declares itself."""
    from lowwater.engines.spark.driver import inputs as reading  # noqa: PLC0415

    return reading.external_columns(session, format_, path, options)


def streaming_dataframe(plan: PhysicalPlan, options: RunOptions) -> Any:
    """Return a plan as a streaming DataFrame."""
    from lowwater.engines.spark import require_spark  # noqa: PLC0415

    require_spark()
    from lowwater.engines.spark.driver.dataframe import build_dataframe  # noqa: PLC0415

    return build_dataframe(plan, options)
