"""The engine seam: a plan and options in, a handle on the run out."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import polars as pl
import pyarrow as pa

from lowwater.engines.embedded.clock import Charge, Clock, PerComparison, PerRow
from lowwater.errors import OptionError, StreamWarning
from lowwater.metrics import RunMetrics
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.sinks import SinkCall
from lowwater.stream.duration import Duration, nanoseconds

ENGINES = ("embedded", "spark")
STOP_SECONDS = 10.0
"""Seconds that ``stop()`` waits for the end of a run; a sink that blocks cannot be interrupted."""


def warn_of_sink(call: SinkCall, seconds: float, more: str = "") -> None:
    """Warn of a sink that has not returned for so many seconds and so keeps a run from ending."""
    said = call.blocked(seconds)
    if said is not None:
        warnings.warn(
            f"{said}: the run ends when it returns. It is not known which of these rows it has"
            f" taken; {more}nothing that comes after them is handed over",
            StreamWarning,
            stacklevel=3,
        )


class Shown(Protocol):
    """The page of a run."""

    url: str
    """Its address."""

    def settle(self) -> None:
        """Read the metrics one last time; the page shows these until it is closed."""

    def close(self) -> None:
        """Take the page down; the run continues."""


class Run(Protocol):
    """A query that is running, or has run."""

    dashboard: Shown | None
    """The page that shows it, if there is one."""

    def start(self) -> Run:
        """Run in the background."""

    def run_here(self) -> Run:
        """Run until the end."""

    @property
    def exception(self) -> BaseException | None:
        """The error that ended the run, if one did."""

    @property
    def active(self) -> bool:
        """True until the run has ended."""

    @property
    def stopped(self) -> bool:
        """True if ``stop()`` was called before the run ended."""

    def stop(self) -> None:
        """End the run and wait for it, for at most ten seconds if a sink does not return."""

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait for the end, at most ``timeout`` seconds; return whether it has come. An error of
        the run is raised here."""

    def results(self) -> pa.Table:
        """Return the results so far, if they were kept (no ``sink=`` was given)."""

    def last_rows(self) -> pl.DataFrame:
        """Return the last answers, the newest last, at most ``keep_last`` of them."""

    def last_late_rows(self, stream: str) -> pl.DataFrame:
        """Return the last late rows of a stream, at most ``keep_last`` of them."""

    def late_rows(self, stream: str | None = None) -> pa.Table:
        """Return the side output: rows of a stream that were not let in, and why.

        ``_reason`` says why, ``_late_by_seconds`` how late, ``_mark`` which promise was broken.
        """

    def metrics(self) -> RunMetrics:
        """Return the metrics so far."""


@dataclass(frozen=True)
class RunOptions:
    """The options of a run; an engine refuses those that it does not have."""

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
    to_end: bool = False
    """Treat the rows that are there now as all the rows there will be."""
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
    """Return a session for queries on Spark: the one that runs, or else a new one."""
    from lowwater.engines.spark import require_spark  # noqa: PLC0415

    require_spark()
    from lowwater.engines.spark.driver.session import spark_session as make  # noqa: PLC0415

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
