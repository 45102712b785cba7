"""These methods of a query explain it, run it, and correct its answers by late rows."""

from __future__ import annotations

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import polars as pl
import pyarrow as pa

from lowwater.dashboard.options import LAST, Dashboard, dashboard_of
from lowwater.dashboard.page import start_page
from lowwater.engines.admission import refuse_without_joins, shares_of
from lowwater.engines.clock import Charge, Clock
from lowwater.engines.memory import MemoryBudget
from lowwater.engines.run import Run, RunOptions, prepare, streaming_dataframe
from lowwater.errors import OptionError, StreamWarning
from lowwater.joins.oblivious.options import Admission
from lowwater.plan.builders import corrections as correction_builders
from lowwater.plan.explain import explain
from lowwater.plan.nodes import Node
from lowwater.plan.physical.costs import Rates
from lowwater.plan.physical.operator import PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.spec import STREAM
from lowwater.stream.duration import Duration
from lowwater.stream.size import Size

LateRows = Any
"""A table of late rows, a folder of Parquet files with late rows, or a mapping of streams to
these."""


class Runnable(ABC):
    """A query that can be explained and run."""

    _node: Node

    @property
    @abstractmethod
    def node(self) -> Node:
        """The logical node of the query, with a time."""

    def explain(
        self,
        plan: PlanShape = "out-of-order",
        *,
        rates: Mapping[str, float] | None = None,
        cost: Duration | None = None,
        memory: Size | None = None,
    ) -> str:
        """Return the plan as text: its operators, their progress, their buckets on Spark.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
        >>> "window" in s.window("1 minute").agg(n="count(*)").explain()
        True

        ``plan``
            "out-of-order" (default), or "in-order": the shape that puts rows in order first.
        ``rates``
            Rows a second by stream. With them, ordered joins show the latency expected of each
            strategy, and joins without a window the number of rows they are expected to keep.
            Default: None, nothing is expected.
        ``cost``
            Length of time that the comparison of two rows takes, ``"5 us"``; goes with ``rates``.
            Default: None, it is left out.
        ``memory``
            Most memory for all joins without a window together, as in :meth:`run`. With it, they
            show their needs and shares. Default: None, there is no budget.
        """
        if cost is not None and rates is None:
            raise OptionError("cost= goes with rates=, rows a second of each stream")
        expected = Rates(rates, cost) if rates is not None else None
        planned, budget = compile_plan(self._node, plan), MemoryBudget.of(memory)
        if budget is None:
            return explain(planned, expected)
        refuse_without_joins([planned])
        return explain(planned, expected, shares_of([planned], budget.bytes, expected)[0])

    def collect(
        self,
        engine: str = "embedded",
        *,
        plan: PlanShape = "out-of-order",
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Clock | Literal["virtual", "wall"] | None = None,
        buckets: int | None = None,
        session: Any = None,
        memory: Size | None = None,
        admission: Admission | None = None,
        rates: Mapping[str, float] | None = None,
    ) -> pa.Table:
        """Run to the end of finite sources and return all results.

        On Spark, only the rows that the sources hold now are read. Late rows, which are in no
        result, are counted in a :class:`lowwater.StreamWarning`.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
        >>> s.collect().num_rows
        2

        ``engine``
            "embedded" (default), in this process, or "spark".
        ``plan``, ``chunk_rows``, ``tick``, ``clock``, ``buckets``, ``session``
            As in :meth:`run`.
        ``memory``, ``admission``, ``rates``
            As in :meth:`run`.
        """
        options = RunOptions(
            clock=clock,
            chunk_rows=chunk_rows,
            tick=tick,
            buckets=buckets,
            session=session,
            to_end=True,
            memory=MemoryBudget.of(memory, admission),
            rates=rates_of(memory, rates),
        )
        planned = compile_plan(self._node, plan)
        run = prepare(planned, engine, options).run_here()
        policies = {each.spec.name: each.spec.late for each in planned.sources}
        for each in run.metrics().streams:
            if each.refused_rows and policies[each.name] == "side":
                warnings.warn(
                    f"{each.refused_rows:,} row(s) of {each.name} came late, or without a usable"
                    " time or channel, and are in no answer; run() keeps them, in late_rows()",
                    StreamWarning,
                    stacklevel=2,
                )
        return run.results()

    def run(
        self,
        engine: str = "embedded",
        *,
        sink: object = None,
        late_sink: object = None,
        checkpoint: object = None,
        trigger: Duration | None = None,
        plan: PlanShape = "out-of-order",
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Clock | Literal["virtual", "wall"] | None = None,
        charge: Charge = "nothing",
        buckets: int | None = None,
        session: Any = None,
        dashboard: bool | Dashboard = False,
        memory: Size | None = None,
        admission: Admission | None = None,
        rates: Mapping[str, float] | None = None,
    ) -> Run:
        """Run in the background and return a handle.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
        >>> run = s.run()
        >>> run.await_termination()
        True
        >>> run.metrics().rows_out
        2

        ``engine``
            "embedded" (default), in this process, or "spark".
        ``sink``
            Destination of the results: a folder for Parquet files, ``lw.folder(...)``, or a
            function of a PyArrow table. Default: None, the handle keeps them for ``results()``.
        ``late_sink``
            The same for late rows; on Spark a folder. Default: None, the handle keeps them for
            ``late_rows()``.
        ``checkpoint``
            On Spark: a folder from which a run that ended or was killed goes on. Default: None.
        ``trigger``
            On Spark: length of time from one batch to the next, or "available-now" to stop after
            the rows that are there. Default: None, batches follow each other.
        ``plan``
            "out-of-order" (default), or "in-order": rows are put in order first, to compare.
        ``chunk_rows``
            Most rows that are handed over at once. Default: None, 65,536; on Spark a million rows
            of a replay make a batch.
        ``tick``
            Length of clock time whose arrivals are handed over together; 0: each row as it arrives.
            Default: None, whenever there are ``chunk_rows`` of them.
        ``clock``
            "virtual" jumps from arrival to arrival, "wall" waits for them; or a clock of your own,
            ``lw.VirtualClock()``. Default: None, virtual unless a source is live.
        ``charge``
            Cost of work on a virtual clock: "nothing" (default), "measured", nanoseconds a step,
            or ``lw.per_row(...)``.
        ``buckets``
            On Spark: number of parts that state is spread over. Default: None, the number of
            shuffle partitions, or of cores.
        ``session``
            On Spark: the session. Default: None, the active one.
        ``dashboard``
            True, or ``lw.dashboard(...)``: show the run on a page, at ``run.dashboard.url``.
            Default: False.
        ``memory``
            Most memory for the rows of all joins without a window together, ``"1 GB"``. It is
            divided by need while the query runs; the option of this name of a join limits that
            join alone. On Spark each bucket has an equal part. Default: None, no limit.
        ``admission``
            What happens if the joins need more to find the share of results that is asked for:
            "warn" gives a warning with the numbers, "refuse" ends the run with
            ``lw.AdmissionError``, before it begins if enough is declared. Goes with ``memory``.
            Default: None, which means "warn".
        ``rates``
            Rows a second by stream, by which the need is judged before the run, if the disorder of
            the streams is declared. Goes with ``memory``. Default: None, the declared rates.
        """
        page = dashboard_of(dashboard)
        options = RunOptions(
            sink=sink,
            late_sink=late_sink,
            clock=clock,
            charge=charge,
            chunk_rows=chunk_rows,
            tick=tick,
            checkpoint=checkpoint,
            trigger=trigger,
            buckets=buckets,
            session=session,
            keep_last=LAST if page is not None and page.show_rows else 0,
            memory=MemoryBudget.of(memory, admission),
            rates=rates_of(memory, rates),
        )
        planned = compile_plan(self._node, plan)
        run = prepare(planned, engine, options).start()
        return run if page is None else start_page(run, planned, engine, options, page)

    def to_spark(
        self,
        spark: Any = None,
        *,
        plan: PlanShape = "out-of-order",
        late_sink: str | Path | None = None,
        chunk_rows: int | None = None,
        tick: Duration | None = None,
        clock: Literal["virtual", "wall"] | None = None,
        buckets: int | None = None,
    ) -> Any:
        """Return the query as a streaming DataFrame, for any sink, trigger and checkpoint of Spark.

        Nothing is started: ``query.to_spark(spark).writeStream.format("console").start()`` does.

        ``spark``
            The session. Default: None, the active one.
        ``late_sink``
            Folder for late rows. Default: None, they are counted and dropped.
        ``plan``, ``chunk_rows``, ``tick``, ``clock``, ``buckets``
            As in :meth:`run`.
        """
        options = RunOptions(
            late_sink=late_sink,
            clock=clock,
            chunk_rows=chunk_rows,
            tick=tick,
            buckets=buckets,
            session=spark,
        )
        return streaming_dataframe(compile_plan(self._node, plan), options)

    # ---- late rows, afterwards -------------------------------------------------------------

    def corrections(self, late: LateRows) -> pa.Table:
        """Return the query's answer to late rows alone: what they would have added.

        Queries whose answers cannot be corrected are refused: those with joins, distinct rows,
        sessions, windows of rows or on change, and conditions on answers.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 61, 2]}), name="s", time="ts")
        >>> query = s.window("1 minute").agg(n="count(*)")
        >>> run = query.run()
        >>> run.await_termination()
        True
        >>> query.corrections(run.late_rows())["n"].to_pylist()
        [1]

        ``late``
            The result of ``run.late_rows()``, or a folder of files of late rows; if several streams
            had late rows, a mapping of their names to either. Rows without a usable time are left
            out.
        """
        node = self.node
        tables = (
            late if isinstance(late, Mapping) else {correction_builders.only_stream(node): late}
        )
        given = {name: _frame(each, name) for name, each in tables.items()}
        planned = compile_plan(correction_builders.over_late_rows(node, given), "out-of-order")
        return prepare(planned, "embedded", RunOptions(to_end=True)).run_here().results()

    def corrected(self, answers: Any, late: LateRows) -> pa.Table:
        """Return answers restated, as if the late rows had come in time.

        Counts and sums are added, the less of two minima and the greater of two maxima is kept, and
        a window that had no answer gets one. Queries with other aggregates are refused.

        >>> s = lw.stream(pl.DataFrame({"ts": [1, 61, 2]}), name="s", time="ts")
        >>> query = s.window("1 minute").agg(n="count(*)")
        >>> run = query.run()
        >>> run.await_termination()
        True
        >>> query.corrected(run.results(), run.late_rows())["n"].to_pylist()
        [2, 1]

        ``answers``
            The result of ``run.results()`` or ``collect``, or a folder of such files.
        ``late``
            The late rows, as in :meth:`corrections`.
        """
        node = self.node
        correction_builders.shape(node)
        found = pl.DataFrame(self.corrections(late))
        return correction_builders.put_together(node, _frame(answers), found).to_arrow()


def rates_of(memory: Size | None, rates: Mapping[str, float] | None) -> Rates | None:
    """Return the rates that go with a memory budget; None if none are given."""
    if rates is not None and memory is None:
        raise OptionError("rates= goes with memory=, the budget that they are judged by")
    return None if rates is None else Rates(rates)


def _frame(given: Any, stream: str | None = None) -> pl.DataFrame:
    """Return the rows of a table, or of the Parquet files of a folder; only those of ``stream`` if
    it is given and the rows name their streams."""
    if isinstance(given, str | Path):
        place = Path(given)
        if not place.exists():
            raise OptionError(
                f"{place} is not there; if no row was late, there is nothing to correct"
            )
        files = sorted(place.rglob("*.parquet")) if place.is_dir() else [place]
        if not files:
            return pl.DataFrame()
        frame = pl.concat([pl.read_parquet(each) for each in files], how="diagonal")
    elif isinstance(given, pa.Table | pl.DataFrame):
        frame = pl.DataFrame(given)
    else:
        raise OptionError(f"give a table or a folder of Parquet files, not {type(given).__name__}")
    if stream is not None and STREAM in frame.columns:
        frame = frame.filter(pl.col(STREAM) == stream)
    return frame
