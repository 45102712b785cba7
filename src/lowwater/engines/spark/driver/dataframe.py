"""A plan becomes a streaming DataFrame: sources, source stages, stateful stages, the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from lowwater.engines.run import RunOptions
from lowwater.engines.scratch import scratch_folder
from lowwater.engines.spark.driver.inputs import with_dataframes
from lowwater.engines.spark.driver.listener import ANSWERS, METRICS, TickListener
from lowwater.engines.spark.driver.plan_program import make_program
from lowwater.engines.spark.driver.pushdown import Pushed, push_down
from lowwater.engines.spark.session import (
    on_one_machine,
    prepare_session,
    set_if_allowed,
    ship_package,
    spark_session,
)
from lowwater.engines.spark.sources import clock as clock_source
from lowwater.engines.spark.sources import replay as replay_source
from lowwater.engines.spark.sources.replay import LogPrint, ReplayLog
from lowwater.engines.spark.wire.late_files import LateFolder, late_folder
from lowwater.engines.spark.wire.message import DDL, Kind, pickled
from lowwater.engines.spark.wire.program import Program, SourceProgram
from lowwater.engines.spark.wire.types import spark_ddl
from lowwater.engines.spark.worker.result import ResultStage
from lowwater.engines.spark.worker.source_stage import NOW, SourceStage
from lowwater.engines.spark.worker.stage import StageProcessor
from lowwater.errors import OptionError
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.progress.options import Heartbeat, OnDemand, Timer
from lowwater.sources.push import Push
from lowwater.sources.replay import Replay
from lowwater.sources.spark import SparkFrame, call_apart, is_remote
from lowwater.stream.duration import nanoseconds

CHUNK_ROWS = 1_000_000
"""The greatest number of rows of a replay in one batch, unless ``chunk_rows=`` is given."""


@dataclass(frozen=True)
class Built:
    """A query ready to be started."""

    dataframe: DataFrame
    session: SparkSession
    program: Program
    folder: Path
    live: bool
    answers: str | None = None
    """The folder of the newest answers; None if they are not kept."""


def build_dataframe(plan: PhysicalPlan, options: RunOptions) -> DataFrame:
    """Return a plan as a streaming DataFrame."""
    return build(plan, options).dataframe


def build(
    plan: PhysicalPlan,
    options: RunOptions,
    late: LateFolder | None = None,
    end: bool = False,
    answers: str | None = None,
) -> Built:
    """Build the query of a plan; ``end`` ends all sources after the rows read so far. The newest
    answers are kept in the folder ``answers``, if all machines can see it."""
    spark = _session(plan, options)
    if is_remote(spark):
        return call_apart(lambda: _built(spark, plan, options, late, end, answers))
    return _built(spark, plan, options, late, end, answers)


def _built(
    spark: SparkSession,
    plan: PhysicalPlan,
    options: RunOptions,
    late: LateFolder | None,
    end: bool,
    answers: str | None,
) -> Built:
    prepare_session(spark)
    ship_package(spark)
    plan = with_dataframes(plan, spark)
    live = _live(plan, options)
    buckets = options.buckets or _parallelism(spark)
    _fit_partitions(spark, buckets)
    folder = scratch_folder("query")
    late = late or late_folder(options.late_sink)
    requests = folder / "requests"
    requests.mkdir()
    on_demand = plan.queues or any(isinstance(each.spec.idle, OnDemand) for each in plan.sources)
    pushed = push_down(plan, whole_rows=late is not None)
    plan = pushed.plan
    here = on_one_machine(spark)
    answers = answers if here or options.checkpoint is not None else None
    waits = str(requests) if on_demand and not end else None
    memory = None if options.memory is None else options.memory.bytes
    program = make_program(plan, buckets, live, late, waits, memory, answers)
    if on_demand and not here:
        spark.streams.addListener(TickListener(requests))
    messages = _sources(pushed, options, spark, program, folder, live)
    clock = _clock(plan, spark, program, options.to_end, end)
    if clock is not None:
        messages.append(clock)
    frame = reduce(lambda some, more: some.unionAll(more), messages)
    for stage in program.stages:
        frame = frame.groupBy("bucket").transformWithState(
            StageProcessor(stage, program.end), DDL, "Append", "None"
        )
    return Built(_result(frame, program, buckets), spark, program, folder, live, answers)


def _result(frame: DataFrame, program: Program, buckets: int) -> DataFrame:
    report = F.when(F.col("kind") == int(Kind.REPORT), F.decode(F.col("body"), "utf-8"))
    frame = frame.observe(METRICS, F.collect_list(report).alias("reports"))
    if program.combined is not None:
        frame = frame.filter(F.col("kind") == int(Kind.RESULT))
        spread = len(program.stages[-1].routes[-1].ids)
        frame = frame.repartition(min(spread, buckets), "bucket")
    stage = ResultStage(program.combined, program.tail, program.schema)
    answers = frame.mapInArrow(stage, spark_ddl(program.schema))
    if program.combined is None:
        return answers
    return answers.observe(ANSWERS, F.count(F.lit(1)).alias("rows"))


def _session(plan: PhysicalPlan, options: RunOptions) -> SparkSession:
    if options.session is not None:
        given: SparkSession = options.session
        return given
    for each in plan.sources:
        source = each.source
        if isinstance(source, SparkFrame):
            own: SparkSession = source.dataframe.sparkSession
            return own
    return SparkSession.getActiveSession() or spark_session()


def _live(plan: PhysicalPlan, options: RunOptions) -> bool:
    for each in plan.sources:
        source = each.source
        if isinstance(source, Push):
            raise OptionError(
                f"stream {each.spec.name!r}: lw.push feeds this process only;"
                ' on Spark read a streaming DataFrame, or use engine="embedded"'
            )
        if not isinstance(source, SparkFrame | Replay):
            raise OptionError(f"a {type(source).__name__} cannot be read on Spark")
        idle = each.spec.idle
        behind = None if idle is None else idle.behind_clock
        if behind is not None and options.clock == "wall" and isinstance(source, Replay):
            raise OptionError(
                f"stream {each.spec.name!r}: behind_clock= compares the times of rows with the"
                " clock, and on Spark a log that is played by the clock has arrival times of its"
                ' own; play it with engine="embedded", or leave behind_clock= out'
            )
    if options.clock not in (None, "virtual", "wall"):
        raise OptionError(f"clock= on Spark is 'virtual' or 'wall', not {options.clock!r}")
    return options.clock == "wall"


def _parallelism(spark: SparkSession) -> int:
    """Return the number of buckets: the user's number of shuffle partitions, else of cores."""
    partitions = int(spark.conf.get("spark.sql.shuffle.partitions") or UNSET_PARTITIONS)
    if partitions != UNSET_PARTITIONS:
        return partitions
    try:
        return max(1, int(spark.sparkContext.defaultParallelism))
    except Exception:  # Spark Connect does not know
        return 8


UNSET_PARTITIONS = 200
"""Spark's default number of shuffle partitions, which counts as not set by the user."""


def _fit_partitions(spark: SparkSession, buckets: int) -> None:
    """Set the number of shuffle partitions to that of buckets, unless the user has set it."""
    if spark.conf.get("spark.sql.shuffle.partitions") == str(UNSET_PARTITIONS):
        set_if_allowed(spark, "spark.sql.shuffle.partitions", str(buckets))


# ---- sources -------------------------------------------------------------------------------


def _sources(
    pushed: Pushed,
    options: RunOptions,
    spark: SparkSession,
    program: Program,
    folder: Path,
    live: bool,
) -> list[DataFrame]:
    plan = pushed.plan
    replays = {each.index: each.source for each in plan.sources if isinstance(each.source, Replay)}
    if replays:
        spark.dataSource.register(replay_source.ReplaySource)
    cuts = cut_logs(replays, options)
    frames = []
    for source, operator in zip(program.sources, plan.sources, strict=True):
        given = operator.source
        if isinstance(given, SparkFrame):
            frames.append(_frame(given.dataframe, source, pushed.columns[source.index]))
        else:
            assert isinstance(given, Replay)
            frames.append(_replay(spark, given, source, cuts[source.index], folder, live))
    return frames


def _frame(
    dataframe: DataFrame, source: SourceProgram, selected: Sequence[tuple[str, str]]
) -> DataFrame:
    columns = [F.expr(text).alias(name) for name, text in selected]
    if source.clocked:
        columns.append(F.current_timestamp().alias(NOW))
    return dataframe.select(*columns).mapInArrow(SourceStage(source), DDL)


def _replay(
    spark: SparkSession,
    given: Replay,
    source: SourceProgram,
    cuts: tuple[int, ...],
    folder: Path,
    live: bool,
) -> DataFrame:
    known = LogPrint.of(given, cuts, live)
    rows = folder / f"rows-{source.index}.arrow"
    given.table.write_ipc(rows)
    path = folder / f"log-{source.index}"
    log = ReplayLog(source, str(rows), given.times, cuts, live, known)
    path.write_bytes(cloudpickle.dumps(log))  # type: ignore[no-untyped-call]
    return spark.readStream.format(replay_source.FORMAT).option("log", str(path)).load()


def cut_logs(replays: dict[int, Replay], options: RunOptions) -> dict[int, tuple[int, ...]]:
    """Return the rows at which each log of a query is cut into batches, so that a batch holds the
    same stretch of time of every log."""
    limit = options.chunk_rows or CHUNK_ROWS
    longest = max((each.rows for each in replays.values()), default=0)
    steps = max(1, -(-longest // limit))
    times = [each.times for each in replays.values() if each.times is not None]
    edges = _edges(times, steps, nanoseconds(options.tick, "tick") if options.tick else None)
    cuts = {}
    for index, each in replays.items():
        if each.times is not None:
            inner = np.searchsorted(each.times, edges, "left")
        else:
            count = len(edges) + 1 if times else steps
            inner = np.arange(1, count) * each.rows // count
        cuts[index] = (0, *(int(cut) for cut in inner), each.rows)
    return cuts


def _edges(times: list[NDArray[np.int64]], steps: int, tick: int | None) -> NDArray[np.int64]:
    """Return the arrival times at which a new batch begins."""
    together = np.sort(np.concatenate(times)) if times else np.empty(0, np.int64)
    if not len(together):
        return np.empty(0, np.int64)
    if tick:
        first, last = int(together[0]) // tick, int(together[-1]) // tick
        return np.arange(first + 1, last + 1, dtype=np.int64) * tick
    return together[np.arange(1, steps) * len(together) // steps]


def _clock(
    plan: PhysicalPlan,
    spark: SparkSession,
    program: Program,
    to_end: bool,
    end: bool,
) -> DataFrame | None:
    """Return the clock as a source; None if nothing in the query depends on it."""
    requests = program.request_folder
    specs = [each.spec for each in plan.sources]
    periods = [
        nanoseconds(each.period)
        for spec in specs
        for each in (spec.idle, spec.punctuate)
        if isinstance(each, Heartbeat | Timer)
    ]
    closing = to_end and not all(source.ordered for source in program.sources)
    if not (requests or periods or closing):
        return None
    targets = [
        (stage.number, stage.ids)
        for stage in program.stages
        if stage.sources or plan.queues or stage.stamps
    ]
    spark.dataSource.register(clock_source.ClockSource)
    reader: Any = spark.readStream.format(clock_source.FORMAT)
    for name, value in {
        "targets": pickled(targets).hex(),
        "requests": requests or "",
        "period": str(min(periods, default=0)),
        "end": str(end).lower(),
    }.items():
        reader = reader.option(name, value)
    clock: DataFrame = reader.load()
    return clock
