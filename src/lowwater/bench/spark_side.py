"""A side of a comparison with Spark is a query; its batches, time and memory are measured.

Processor time and memory are read from ``/proc``: of this process, its JVM and Python's workers.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote, urlparse

import polars as pl

from lowwater.joins.oblivious.estimates import HELD

_STATES = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = f"{_STATES}.RocksDBStateStoreProvider"
HDFS = f"{_STATES}.HDFSBackedStateStoreProvider"
SETTINGS = {
    "spark.driver.memory": "4g",
    "spark.driver.extraJavaOptions": "-XX:+UseParallelGC -Xss8m",  # a query stopped amid its work
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.streaming.numRecentProgressUpdates": "10000",
}
"""Settings of both sides, beside those of :func:`lowwater.engines.spark.session`."""

Query = Callable[[list[Any]], Any]
"""A function from streaming DataFrames to one."""


# ---- the use of processes --------------------------------------------------------------------

PROC = Path("/proc")
_TICKS = os.sysconf("SC_CLK_TCK")


def family(parents: Iterable[tuple[int, int]], root: int) -> set[int]:
    """Return a process and all its descendants, from pairs of process and parent."""
    children: dict[int, list[int]] = {}
    for process, parent in parents:
        children.setdefault(parent, []).append(process)
    found, ahead = set(), [root]
    while ahead:
        process = ahead.pop()
        found.add(process)
        ahead += [child for child in children.get(process, []) if child not in found]
    return found


def processes() -> set[int]:
    """Return this process and all its descendants."""
    pairs = []
    for path in PROC.glob("[0-9]*"):
        fields = _stat(int(path.name))
        if fields:
            pairs.append((int(path.name), int(fields[1])))
    return family(pairs, os.getpid())


@dataclass
class Usage:
    """The processor time and the memory that processes used, by samples."""

    cpu: float = 0.0
    """Processor seconds of all processes, also of ended ones."""
    memory: int = 0
    """The most bytes held at once; memory that processes share is counted once."""


@contextmanager
def watching(memory: bool = False, seconds: float = 0.25) -> Iterator[Usage]:
    """Measure the usage of processes while a block runs, with a sample every ``seconds``.

    The usage of a process between its last sample and its end is not counted. ``memory``: true to
    measure memory too, which takes time.
    """
    usage, done = Usage(), threading.Event()
    begun = spent()
    last = dict(begun)

    def look() -> None:
        last.update(spent())
        usage.cpu = used(begun, last)
        if memory:
            usage.memory = max(usage.memory, sum(map(_held, processes())))

    def repeat() -> None:
        while not done.wait(seconds):
            look()

    thread = threading.Thread(target=repeat, daemon=True)
    thread.start()
    try:
        yield usage
    finally:
        done.set()
        thread.join()
        look()


def spent() -> dict[int, float]:
    """Return the processor seconds of each process so far."""
    found = {}
    for process in processes():
        fields = _stat(process)
        if fields:
            found[process] = (int(fields[11]) + int(fields[12])) / _TICKS
    return found


def used(before: Mapping[int, float], after: Mapping[int, float]) -> float:
    """Return the processor seconds of all processes between two samples."""
    return sum(now - before.get(process, 0.0) for process, now in after.items())


def _stat(process: int) -> list[str]:
    """Return the fields after the name, which may hold anything; none if the process has ended."""
    try:
        text = (PROC / str(process) / "stat").read_text(encoding="utf-8")
    except OSError:
        return []
    return text.rpartition(")")[2].split()


def _held(process: int) -> int:
    try:
        text = (PROC / str(process) / "smaps_rollup").read_text(encoding="utf-8")
    except OSError:
        return 0
    return sum(int(line.split()[1]) * 1024 for line in text.splitlines() if line.startswith("Pss:"))


# ---- sides and their batches ---------------------------------------------------------------


@dataclass(frozen=True)
class Output:
    """A way to write the results of a query into a folder, and to read them again."""

    write: Callable[[Any, Path], Any]
    """Returns the writer of a stream with the folder as its destination."""
    read: Callable[[Path], pl.DataFrame]
    """Returns the results in the folder."""


def to_files(writer: Any, folder: Path) -> Any:
    """Return a writer of a stream that writes Parquet files into a folder."""
    return writer.format("parquet").outputMode("append").option("path", str(folder))


def results_in(folder: Path) -> pl.DataFrame:
    """Return the rows a query wrote, with the time at which their file was complete."""
    return together(
        pl.read_parquet(file).with_columns(written=pl.lit(file.stat().st_mtime))
        for file in committed(folder / "_spark_metadata")
    )


def together(frames: Iterable[pl.DataFrame]) -> pl.DataFrame:
    """Return the rows of frames of one schema; a frame without columns if there is no row."""
    held = [frame for frame in frames if frame.height]
    return pl.concat(held) if held else pl.DataFrame()


def committed(log: Path, batch: str = "[0-9]*") -> list[Path]:
    """Return the files that a sink's log names; others may be of a batch that was cut off."""
    found = set()
    for file in log.glob(batch):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("{"):
                found.add(Path(unquote(urlparse(json.loads(line)["path"]).path)))
    return sorted(found)


FILES = Output(to_files, results_in)


@dataclass(frozen=True)
class Side:
    """A query that takes part in a comparison."""

    name: str
    provider: str
    """The class of its state store."""
    query: Query
    """The query over its sources."""
    output: Output = FILES


def ours(query: Query) -> Side:
    """Return our side, which always keeps state in RocksDB."""
    return Side("ours", ROCKSDB, query)


def plain(query: Query, form: str = "") -> list[Side]:
    """Return plain Spark with each of its state stores; ``form`` is part of the name."""
    label = f"spark {form}".strip()
    return [Side(f"{label}, HDFS", HDFS, query), Side(f"{label}, RocksDB", ROCKSDB, query)]


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as Spark reports it."""

    number: int
    began: float
    """The time of its start, in seconds since 1970."""
    rows: int
    millis: dict[str, int]
    spark_state_rows: int
    spark_state_bytes: int
    """Bytes of state in memory by Spark's count; of the newest version, where Spark reports it."""
    state_rows: int
    state_bytes: int
    in_memory: int = 0
    """Rows that joins without a window hold in memory."""

    @property
    def trigger(self) -> int:
        """Milliseconds of the whole batch."""
        return self.millis["triggerExecution"]

    @property
    def ended(self) -> float:
        """The time of its end, in seconds since 1970."""
        return self.began + self.trigger / 1e3


@dataclass
class SideRun:
    """One run of a side: its batches, its time and its results."""

    side: str
    batches: list[Batch]
    seconds: float
    """Seconds from the start of the query to its end, everything included."""
    usage: Usage
    """Processor time and memory of all processes together."""
    results: pl.DataFrame = field(default_factory=pl.DataFrame, repr=False)

    @property
    def full(self) -> list[Batch]:
        """The batches that brought rows."""
        return [batch for batch in self.batches if batch.rows]

    @property
    def rows(self) -> int:
        """Rows of all batches."""
        return sum(batch.rows for batch in self.batches)

    @property
    def first(self) -> float:
        """Seconds from the start of the query to the end of its first batch."""
        return self.seconds - sum(batch.trigger for batch in self.batches[1:]) / 1e3

    @property
    def planning(self) -> float:
        """Seconds of the first batch that went into planning the query."""
        return self.batches[0].millis.get("queryPlanning", 0) / 1e3

    @property
    def steady_speed(self) -> float:
        """Rows a second after the first batch."""
        later = self.full[1:]
        return sum(batch.rows for batch in later) / self._later()

    @property
    def cold_speed(self) -> float:
        """Rows a second, start-up and first batch included."""
        return self.rows / (self.first + self._later())

    def _later(self) -> float:
        return sum(batch.trigger for batch in self.full[1:]) / 1e3

    def middle_millis(self, skip: int) -> float:
        """Return the median milliseconds of a batch, without the first ``skip``."""
        return median(batch.trigger for batch in self.full[skip:])

    @property
    def state_bytes(self) -> int:
        """The most bytes of state after a batch: as our operators count them, or as Spark does."""
        return max(batch.state_bytes or batch.spark_state_bytes for batch in self.batches)

    @property
    def state_rows(self) -> int:
        """The most rows of state after a batch, counted the same way."""
        return max(batch.state_rows or batch.spark_state_rows for batch in self.batches)

    @property
    def spark_state_bytes(self) -> int:
        """The most bytes of state by Spark's count."""
        return max(batch.spark_state_bytes for batch in self.batches)


def session() -> Any:
    """Return the session in which all sides run."""
    from lowwater.engines.spark.session import spark_session  # noqa: PLC0415

    return spark_session("local[2]", "lowwater bench", **SETTINGS)


def read_files(spark: Any, folder: Path, schema: str, files: int = 1) -> Any:
    """Return a folder of Parquet files as a stream of ``files`` files a batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def run_side(
    spark: Any, side: Side, sources: list[Any], folder: Path, memory: bool = False
) -> SideRun:
    """Run a query over all files that are there; return its batches and results."""
    folder.mkdir(parents=True)
    begun = time.perf_counter()
    with watching(memory) as usage:
        query = start(spark, side, sources, folder, availableNow=True)
        query.awaitTermination()
        seconds = time.perf_counter() - begun
    results = side.output.read(folder / "out")
    return SideRun(side.name, batches_of(query), seconds, usage, results)


def start(spark: Any, side: Side, sources: list[Any], folder: Path, **trigger: Any) -> Any:
    """Start a query that writes its results into a folder ``out`` of a folder."""
    writer = writer_of(side, sources, folder)
    return started(spark, side, writer.trigger(**trigger) if trigger else writer)


def writer_of(side: Side, sources: list[Any], folder: Path) -> Any:
    """Return the writer of a query, with its results and its checkpoint in a folder."""
    writer = side.output.write(side.query(sources).writeStream, folder / "out")
    return writer.option("checkpointLocation", str(folder / "checkpoint"))


def started(spark: Any, side: Side, writer: Any) -> Any:
    """Start a query with the state store of its side."""
    spark.conf.set(PROVIDER, side.provider)
    try:
        return writer.start()
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)  # a query keeps the settings it was started with


def stop(query: Any) -> None:
    """Stop a query; raise the error with which it failed, if it did."""
    query.stop()
    if query.exception() is not None:
        raise query.exception()


def batches_of(query: Any) -> list[Batch]:
    """Return all batches of a query that Spark has kept."""
    return [as_batch(each) for each in query.recentProgress if "addBatch" in each.durationMs]


def as_batch(progress: Any) -> Batch:
    """Return a batch from Spark's report of it."""
    from lowwater.engines.spark.driver.listener import reports_in  # noqa: PLC0415

    operators = progress.stateOperators
    held = [each for report in reports_in(progress) for each in report.operators.values()]
    return Batch(
        progress.batchId,
        datetime.fromisoformat(progress.timestamp).timestamp(),
        progress.numInputRows,
        dict(progress.durationMs),
        sum(each.numRowsTotal for each in operators),
        sum(_state_bytes(each) for each in operators),
        sum(each.rows for each in held),
        sum(each.bytes for each in held),
        sum(
            rows
            for each in held
            for metric, rows in each.readings.items()
            if metric.of() == HELD  # of any input
        ),
    )


def _state_bytes(operator: Any) -> int:
    newest: Any = operator.customMetrics.get("stateOnCurrentVersionSizeBytes")
    return int(operator.memoryUsedBytes if newest is None else newest)
