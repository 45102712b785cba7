"""One side of a comparison with Spark: a query run over files, and what its batches took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import unquote, urlparse

import polars as pl

from lowwater.bench.spark_watch import Usage, watching

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
"""What both sides get on top of the settings of :func:`lowwater.engines.spark.driver.session`."""

Query = Callable[[list[Any]], Any]
"""From streaming DataFrames to one."""


@dataclass(frozen=True)
class Side:
    """A way to run a query: its name, its state store, and the query over its sources."""

    name: str
    provider: str
    query: Query


def ours(query: Query) -> Side:
    """Our side; it always keeps state in RocksDB."""
    return Side("ours", ROCKSDB, query)


def plain(query: Query, form: str = "") -> list[Side]:
    """Plain Spark, with each of its state stores."""
    label = f"spark {form}".strip()
    return [Side(f"{label}, HDFS", HDFS, query), Side(f"{label}, RocksDB", ROCKSDB, query)]


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as Spark reports it."""

    number: int
    began: float
    """Seconds since 1970."""
    rows: int
    millis: dict[str, int]
    spark_state_rows: int
    spark_state_bytes: int
    """What Spark says its state takes in memory; of the newest version, where it tells."""
    state_rows: int
    state_bytes: int
    in_memory: int = 0
    """Rows that joins without a window did not put aside."""

    @property
    def trigger(self) -> int:
        """Milliseconds the whole batch took."""
        return self.millis["triggerExecution"]

    @property
    def ended(self) -> float:
        """Seconds since 1970."""
        return self.began + self.trigger / 1e3


@dataclass
class Ran:
    """What a run took and gave."""

    side: str
    batches: list[Batch]
    seconds: float
    """From the start of the query to its end, everything included."""
    usage: Usage
    """What all processes used together."""
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
        """The median time of a batch, after so many."""
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
    """The session in which all sides run."""
    from lowwater.engines.spark.driver.session import spark_session  # noqa: PLC0415

    return spark_session("local[2]", "lowwater bench", **SETTINGS)


def read_files(spark: Any, folder: Path, schema: str, files: int = 1) -> Any:
    """A folder of Parquet files as a stream, so many files a batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def run_side(spark: Any, side: Side, sources: list[Any], folder: Path, memory: bool = False) -> Ran:
    """Run a query over all files that are there and take down what happened."""
    folder.mkdir(parents=True)
    begun = time.perf_counter()
    with watching(memory) as usage:
        query = start(spark, side, sources, folder, availableNow=True)
        query.awaitTermination()
        seconds = time.perf_counter() - begun
    return Ran(side.name, batches_of(query), seconds, usage, results_in(folder))


def start(spark: Any, side: Side, sources: list[Any], folder: Path, **trigger: Any) -> Any:
    """Start a query into Parquet files."""
    writer = side.query(sources).writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    if trigger:
        writer = writer.trigger(**trigger)
    return started(spark, side, writer.option("path", str(folder / "out")))


def started(spark: Any, side: Side, writer: Any) -> Any:
    """Start a query with the state store of its side."""
    spark.conf.set(PROVIDER, side.provider)
    try:
        return writer.start()
    finally:
        spark.conf.set(PROVIDER, ROCKSDB)  # a query keeps the settings it was started with


def results_in(folder: Path) -> pl.DataFrame:
    """The rows a query wrote, with the time at which their file was complete."""
    frames = []
    for file in committed(folder / "out" / "_spark_metadata"):
        written = pl.lit(file.stat().st_mtime).alias("written")
        frames.append(pl.read_parquet(file).with_columns(written))
    held = [frame for frame in frames if frame.height]
    return pl.concat(held) if held else pl.DataFrame()


def committed(log: Path, batch: str = "[0-9]*") -> list[Path]:
    """The files that a sink's log names; there may be others, of a batch that was cut off."""
    found = set()
    for file in log.glob(batch):
        for line in file.read_text(encoding="utf-8").splitlines():
            if line.startswith("{"):
                found.add(Path(unquote(urlparse(json.loads(line)["path"]).path)))
    return sorted(found)


def batches_of(query: Any) -> list[Batch]:
    """All batches of a query, as far as Spark remembers them."""
    return [as_batch(each) for each in query.recentProgress if "addBatch" in each.durationMs]


def as_batch(progress: Any) -> Batch:
    """A batch from Spark's report of it."""
    operators = progress.stateOperators
    observed = progress.observedMetrics.get("lowwater")
    reports = [json.loads(each) for each in observed["reports"]] if observed else []
    about = [each for report in reports for each in report["operators"].values()]
    return Batch(
        progress.batchId,
        datetime.fromisoformat(progress.timestamp).timestamp(),
        progress.numInputRows,
        dict(progress.durationMs),
        sum(each.numRowsTotal for each in operators),
        sum(_state_bytes(each) for each in operators),
        sum(each["rows"] for each in about),
        sum(each["bytes"] for each in about),
        sum(
            rows
            for each in about
            for name, rows in each["about"].items()
            if name[:9] == "held rows"
        ),
    )


def _state_bytes(operator: Any) -> int:
    newest: Any = operator.customMetrics.get("stateOnCurrentVersionSizeBytes")
    return int(operator.memoryUsedBytes if newest is None else newest)
