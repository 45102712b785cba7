"""Update streams on Spark: 100 keys, 1,000 updates a second, work that takes 10 ms a row.

A thread drops a file every tenth of a second. Three sides work on it: ours, plain Spark, which
works on every row, and plain Spark that keeps the latest row of each key in every batch. All hand
their rows to the same function as batches end. What counts is how stale that is: the age
of the oldest update of a key that no row handed over reflects, averaged over keys and time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from itertools import count, pairwise
from pathlib import Path
from random import Random
from typing import Any

import polars as pl

from lowwater.bench.spark_compare import Row, figure, say, scale, workspace
from lowwater.bench.spark_data import write_file
from lowwater.bench.spark_side import HDFS, ROCKSDB, Side, read_files, session, started
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
LAST = 10.0
"""Seconds over which staleness is told, at the end and before."""
WARM = 15.0
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


class Shown:
    """What a side handed over: which update of which key, and when."""

    def __init__(self) -> None:
        self.rows: list[tuple[float, int, int]] = []

    def take(self, batch: Any) -> None:
        """Take the rows of a batch."""
        rows = batch.select("key", "number").collect()
        now = time.time()
        self.rows += [(now, row["key"], row["number"]) for row in rows]


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


def run_updates() -> Iterator[Row]:
    """How stale what is shown gets under ten times more updates than can be worked on."""
    seconds = max(20.0, SECONDS * min(1.0, scale()))
    found = {}
    sides: dict[str, tuple[Side, Callable[[Any, Shown], Any]]] = {
        "ours": (Side("ours", ROCKSDB, _ours), _handed),
        "spark, all rows": (Side("spark, all rows", HDFS, _all_rows), _handed),
        "spark, latest of a batch": (Side("spark, latest of a batch", HDFS, _as_is), _latest),
    }
    for side, hand in sides.values():
        _run(side, hand, WARM)  # what starting costs is not what is asked for
    for name, (side, hand) in sides.items():
        found[name] = _run(side, hand, seconds)
        spelled = ", ".join(f"{each:.2f}" for each in found[name])
        say(f"  {name}: staleness {spelled} s")
    ours = found.pop("ours")
    what = f"{KEYS} keys, {ROWS / EVERY:,.0f} updates/s, {COST * 1e3:.0f} ms a row: staleness"
    for name, theirs in found.items():
        for part, at in (("at the end", -1), ("in the middle", len(theirs) // 2)):
            yield figure(
                f"updates, {part}", what, "s", ours[at], name, theirs[at], round(seconds)
            ) | {"over_time": [ours, theirs]}


def _run(side: Side, hand: Callable[[Any, Shown], Any], seconds: float) -> list[float]:
    spark = session()
    shown = Shown()
    with workspace() as folder, Feeder(folder) as feeder:
        source = read_files(spark, feeder.folder, SCHEMA, FILES)
        writer = hand(side.query([source]).writeStream, shown)
        writer = writer.option("checkpointLocation", str(folder / "checkpoint"))
        begun = time.time()
        query = started(spark, side, writer)
        time.sleep(seconds)
        end = time.time()
        query.stop()
        if query.exception() is not None:
            raise query.exception()
    parts = max(2, round(seconds / LAST))
    edges = [begun + (end - begun) * part / parts for part in range(parts + 1)]
    told = [staleness(feeder.came, shown.rows, low, high) for low, high in pairwise(edges)]
    say(f"  {side.name}: {len(shown.rows):,} of {len(feeder.came):,} rows in {seconds:.0f} s")
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


def _handed(writer: Any, shown: Shown) -> Any:
    return writer.foreachBatch(lambda rows, _: shown.take(rows))


def _latest(writer: Any, shown: Shown) -> Any:
    from pyspark.sql import functions as F  # noqa: PLC0415

    def latest(rows: Any, _: int) -> None:
        newest = F.max_by(F.struct("ts", "key", "number"), "number").alias("newest")
        spread = rows.repartition(2, "key")  # a task for each core, however little there is to do
        kept = spread.groupBy("key").agg(newest).select("newest.*")
        shown.take(kept.mapInArrow(_worked, SCHEMA))

    return writer.foreachBatch(latest)
