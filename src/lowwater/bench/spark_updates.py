"""Update streams on Spark: 100 keys, 1,000 updates a second, work that takes 10 ms a row.

A thread drops a file every tenth of a second. Four sides work on it: ours; plain Spark, which works
on every row; plain Spark that keeps the latest row of each key in every batch, as one writes that,
which Spark then does in one task, since it cannot know what a row will cost; and the same spread
over all cores by hand. All write Parquet files. What counts is how stale what they wrote is: the
age of the oldest update of a key that no row there reflects, averaged over keys and time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from lowwater.bench.spark_compare import Row, figure, say, scale, workspace
from lowwater.bench.spark_data import write_file
from lowwater.bench.spark_side import (
    HDFS,
    ROCKSDB,
    Side,
    committed,
    read_files,
    session,
    started,
)
from lowwater.stream.duration import SECOND
from lowwater.updates.staleness import Account

KEYS = 100
EVERY = 0.1
"""Seconds between two files."""
ROWS = 100
"""Rows of one of them: 1,000 a second."""
COST = 0.010
"""Seconds of work a row."""
SECONDS = 60.0
LAST = 10
"""Seconds over which staleness is told, at the end and before."""
WARM = 30.0
"""Seconds for which each is run before it counts: Spark and its workers take long to get going."""
CORES = 2
LATEST, SPREAD = "spark, latest of a batch", "spark, the same spread by hand"
SCHEMA = "ts timestamp, key int, number bigint"
FILES = 1_000_000
"""Files a batch may have: as many as there are."""


def work(rows: pl.DataFrame) -> pl.DataFrame:
    """What takes its time."""
    time.sleep(COST * rows.height)
    return rows


class Feeder:
    """Drops files until it is told to stop, and remembers when each update came."""

    def __init__(self, folder: Path):
        self.folder = folder / "in"
        self.folder.mkdir(parents=True)
        self.came: list[tuple[float, int]] = []
        """When each update came, and its key, by its number."""
        self._random = Random(7)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._feed, daemon=True)

    def __enter__(self) -> Feeder:
        """Begin."""
        self._drop(0)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self._done.set()
        self._thread.join()

    def _feed(self) -> None:
        begun = time.monotonic()
        for number in count(1):
            if self._done.wait(max(0.0, begun + number * EVERY - time.monotonic())):
                return
            self._drop(number)

    def _drop(self, number: int) -> None:
        """Write a file next to the folder and move it in, so that it is never seen half done."""
        keys = [self._random.randrange(KEYS) for _ in range(ROWS)]
        first, now = len(self.came), time.time()
        rows = pl.DataFrame(
            {
                "ts": pl.Series([int(now * 1e6)] * ROWS).cast(pl.Datetime("us", "UTC")),
                "key": pl.Series(keys, dtype=pl.Int32),
                "number": pl.int_range(first, first + ROWS, eager=True),
            }
        )
        unfinished = self.folder.with_name(f".{number}")
        write_file(rows, unfinished)
        unfinished.rename(self.folder / f"{number:06d}.parquet")
        self.came += [(now, key) for key in keys]


Shown = list[tuple[float, int, int]]
"""What a side wrote: when it was there to be read, the key, and the number of the update."""


def in_log(folder: Path) -> Shown:
    """What a streaming query wrote; it is there once the sink's log names it."""
    first: dict[Path, float] = {}  # later logs name the files of earlier ones again
    for log in (folder / "_spark_metadata").glob("[0-9]*"):
        for file in committed(log.parent, log.name):
            first[file] = min(log.stat().st_mtime, first.get(file, float("inf")))
    return [row for file, when in first.items() for row in _rows_of(when, file)]


def in_folders(folder: Path) -> Shown:
    """What was written batch by batch, each to a folder; it is there once that is complete."""
    found: Shown = []
    for done in folder.glob("*/_SUCCESS"):
        for file in done.parent.glob("*.parquet"):
            found += _rows_of(done.stat().st_mtime, file)
    return found


def _rows_of(when: float, file: Path) -> Shown:
    rows = pl.read_parquet(file, columns=["key", "number"])
    return [(when, key, number) for key, number in rows.iter_rows()]


def staleness(
    came: list[tuple[float, int]], shown: list[tuple[float, int, int]], begun: float, end: float
) -> float:
    """The average over all keys between two times, exactly, in seconds."""
    events = [(at, 0, key, number) for number, (at, key) in enumerate(came)]
    events += [(at, 1, key, number) for at, key, number in shown]
    accounts = {key: Account() for key in range(KEYS)}
    before: dict[int, float] | None = None
    for at, kind, key, number in [*sorted(events), (float("inf"), 0, 0, 0)]:
        if before is None and at > begun:
            before = {k: each.application.area(_ns(begun)) for k, each in accounts.items()}
        if at > end:
            break
        account = accounts[key]
        if kind == 0:
            account.arrived(_ns(at), replaced=False)
        else:
            account.taken(_ns(at), _ns(came[number][0]))
            account.shown(_ns(at))
    assert before is not None
    grown = [accounts[key].application.area(_ns(end)) - area for key, area in before.items()]
    return sum(grown) / KEYS / (end - begun)


def _ns(seconds: float) -> int:
    return round(seconds * SECOND)


@dataclass(frozen=True)
class Way:
    """A way to keep up: what to run, and how its results are written and read."""

    side: Side
    write: Callable[[Any, Path], Any]
    read: Callable[[Path], Shown]


def run_updates() -> Iterator[Row]:
    """How stale what is shown gets under ten times more updates than can be worked on."""
    seconds = max(20.0, SECONDS * min(1.0, scale()))
    ways = (
        Way(Side("ours", ROCKSDB, _ours), _to_files, in_log),
        Way(Side("spark, all rows", HDFS, _all_rows), _to_files, in_log),
        Way(Side(LATEST, HDFS, _as_is), partial(_latest_to_files, None), in_folders),
        Way(Side(SPREAD, HDFS, _as_is), partial(_latest_to_files, CORES), in_folders),
    )
    for way in ways:
        _run(way, WARM)  # what starting costs is not what is asked for
    found = {way.side.name: _run(way, seconds) for way in ways}
    ours = found.pop("ours")
    what = f"{KEYS} keys, {ROWS / EVERY:,.0f} updates/s, {COST * 1e3:.0f} ms a row: staleness"
    for name, theirs in found.items():
        for part, at in (("in the middle", len(theirs) // 2), ("at the end", -1)):
            yield figure(
                f"updates, {part}", what, "s", ours[at], name, theirs[at], round(seconds)
            ) | {"over_time": [ours, theirs]}


def _run(way: Way, seconds: float) -> list[float]:
    spark = session()
    with workspace() as folder, Feeder(folder) as feeder:
        source = read_files(spark, feeder.folder, SCHEMA, FILES)
        writer = way.write(way.side.query([source]).writeStream, folder / "out")
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        begun = time.time()
        query = started(spark, way.side, writer)
        time.sleep(seconds)
        query.stop()
        if query.exception() is not None:
            raise query.exception()
        shown = way.read(folder / "out")
    edges = [begun + at for at in range(0, round(seconds) + 1, LAST)]
    told = [staleness(feeder.came, shown, low, high) for low, high in pairwise(edges)]
    spelled = ", ".join(f"{each:.2f}" for each in told)
    say(f"  {way.side.name}: staleness {spelled} s; {len(shown):,} of {len(feeder.came):,} rows")
    return told


def _ours(sources: list[Any]) -> Any:
    import lowwater as lw  # noqa: PLC0415

    stream = lw.stream(
        sources[0],
        name="updates",
        time="ts",
        progress=lw.within("1 minute"),
        update_key="key",
    )
    return stream.apply(work).to_spark()


def _all_rows(sources: list[Any]) -> Any:
    return sources[0].mapInArrow(_worked, SCHEMA)


def _as_is(sources: list[Any]) -> Any:
    return sources[0]


def _worked(batches: Any) -> Any:
    for batch in batches:
        work(pl.DataFrame(batch))
        yield batch


def _to_files(writer: Any, folder: Path) -> Any:
    return writer.format("parquet").option("path", str(folder))


def _latest_to_files(tasks: int | None, writer: Any, folder: Path) -> Any:
    from pyspark.sql import functions as F  # noqa: PLC0415

    def latest(rows: Any, batch: int) -> None:
        newest = F.max_by(F.struct("ts", "key", "number"), "number").alias("newest")
        spread = rows if tasks is None else rows.repartition(tasks, "key")
        kept = spread.groupBy("key").agg(newest).select("newest.*")
        kept.mapInArrow(_worked, SCHEMA).write.parquet(str(folder / str(batch)))

    return writer.foreachBatch(latest)
