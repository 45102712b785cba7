"""One side of a comparison with Spark: a query run over files, and what its batches took."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import polars as pl

from lowwater.bench.spark_watch import cpu_seconds

_STATES = "org.apache.spark.sql.execution.streaming.state"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKSDB = f"{_STATES}.RocksDBStateStoreProvider"
HDFS = f"{_STATES}.HDFSBackedStateStoreProvider"

Sources = list[Any]
"""Streaming DataFrames."""


@dataclass(frozen=True)
class Side:
    """A way to run a query: its name, its state store, and the query over its sources."""

    name: str
    provider: str
    query: Callable[[Sources], Any]


@dataclass(frozen=True)
class Batch:
    """One micro-batch, as Spark reports it."""

    number: int
    rows: int
    millis: dict[str, int]
    spark_state_rows: int
    spark_state_bytes: int
    state_rows: int
    state_bytes: int

    @property
    def trigger(self) -> int:
        """Milliseconds the whole batch took."""
        return self.millis["triggerExecution"]


@dataclass
class Ran:
    """What a run took and gave."""

    side: str
    batches: list[Batch]
    seconds: float
    """From the start of the query to its end, everything included."""
    first: float
    """From the start of the query to the end of its first batch."""
    cpu: float
    """Processor seconds of all processes together."""
    results: pl.DataFrame = field(default_factory=pl.DataFrame)

    @property
    def full(self) -> list[Batch]:
        """The batches that brought rows."""
        return [batch for batch in self.batches if batch.rows]

    @property
    def steady_speed(self) -> float:
        """Rows a second after the first batch."""
        later = self.full[1:]
        return sum(b.rows for b in later) / (sum(b.trigger for b in later) / 1e3)

    @property
    def cold_speed(self) -> float:
        """Rows a second, start-up and first batch included."""
        later = sum(b.trigger for b in self.full[1:]) / 1e3
        return sum(b.rows for b in self.full) / (self.first + later)

    @property
    def middle_millis(self) -> float:
        """The median batch after the first quarter."""
        return median(b.trigger for b in self.full[len(self.full) // 4 :])

    @property
    def state_bytes(self) -> int:
        """The most bytes of operator state, as the operators count them."""
        return max(batch.state_bytes for batch in self.batches)

    @property
    def spark_state_bytes(self) -> int:
        """The most bytes of state by Spark's count."""
        return max(batch.spark_state_bytes for batch in self.batches)

    @property
    def spark_state_rows(self) -> int:
        """The most entries of state by Spark's count."""
        return max(batch.spark_state_rows for batch in self.batches)


def read_files(spark: Any, folder: Path, schema: str, files: int = 1) -> Any:
    """A folder of Parquet files as a stream, so many files a batch."""
    reader = spark.readStream.schema(schema).option("maxFilesPerTrigger", files)
    return reader.parquet(str(folder))


def run_side(spark: Any, side: Side, sources: Sources, folder: Path, **trigger: Any) -> Ran:
    """Run a query over all files that are there and take down what happened."""
    spark.conf.set(PROVIDER, side.provider)
    folder.mkdir(parents=True)
    begun, used = time.perf_counter(), cpu_seconds()
    query = start(side.query(sources), folder, **(trigger or {"availableNow": True}))
    query.awaitTermination()
    seconds = time.perf_counter() - begun
    used = cpu_seconds() - used
    batches = [as_batch(each) for each in query.recentProgress]
    first = seconds - sum(b.trigger for b in batches[1:]) / 1e3
    return Ran(side.name, batches, seconds, first, used, results_in(folder))


def start(frame: Any, folder: Path, **trigger: Any) -> Any:
    """Start a query into Parquet files."""
    writer = frame.writeStream.format("parquet").outputMode("append")
    writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
    return writer.trigger(**trigger).start(str(folder / "out"))


def results_in(folder: Path) -> pl.DataFrame:
    """The rows a query wrote."""
    files = sorted((folder / "out").glob("*.parquet"))
    frames = [pl.read_parquet(file) for file in files]
    held = [frame for frame in frames if frame.height]
    return pl.concat(held) if held else pl.DataFrame()


def as_batch(progress: Any) -> Batch:
    """A batch from Spark's report of it."""
    operators = progress.stateOperators
    reports = progress.observedMetrics.get("lowwater")
    held = [json.loads(each) for each in reports["reports"]] if reports else []
    about = [each for report in held for each in report["operators"].values()]
    return Batch(
        progress.batchId,
        progress.numInputRows,
        dict(progress.durationMs),
        sum(each.numRowsTotal for each in operators),
        sum(each.memoryUsedBytes for each in operators),
        sum(each["rows"] for each in about),
        sum(each["bytes"] for each in about),
    )
