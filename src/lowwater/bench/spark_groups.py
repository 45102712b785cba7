"""This benchmark reads devices of which half are an hour behind the others, on Spark.

Ours has a mark for each device. Plain Spark has one watermark for all: one that waits for the
devices that lag, so that no row is lost, or one that is as prompt as ours and loses their rows. The
delay of an answer is measured from the moment when its device has passed the window, in minutes of
arrival.

The second part measures the cost of a batch if many devices are known and few of them have rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from lowwater.api import stream
from lowwater.bench import spark_plain
from lowwater.bench.report import Row, figure
from lowwater.bench.spark_compare import Bench, beside, say, scaled, workspace
from lowwater.bench.spark_data import BEGIN, Flow, stamps, write_files
from lowwater.bench.spark_side import (
    HDFS,
    ROCKSDB,
    Batch,
    Side,
    SideRun,
    read_files,
    run_side,
    session,
)
from lowwater.progress.contract import ordered

DEVICES = 1_000
LAG = 3_600
"""Seconds by which every other device is behind."""
FILES = 30
FILE_SECONDS = 180
"""Seconds of arrival in a file, which is a batch."""
PATIENT, PROMPT = LAG + 60, 60
"""Seconds of the watermark that loses nothing, and of the one that waits as little as ours."""
WINDOW = 60
WARM = 5

MANY, MOVING = 100_000, 100
EVERYBODY, STEPS = 10, 25
"""Batches with rows of all devices, two of each, and then batches with rows of few."""


@dataclass(frozen=True)
class Fleet(Flow):
    """Devices, each in order; those with an odd number are behind."""

    def rows(self, first: int, count: int) -> pl.DataFrame:
        """Return rows by number, the same for the same numbers."""
        rng = np.random.default_rng((self.seed, first))
        arrived = np.arange(first, first + count) / self.rate
        device = rng.integers(0, self.keys["device"], count, dtype=np.int32)
        times = stamps(BEGIN + arrived - (device % 2) * LAG)
        return pl.DataFrame({"ts": times, "device": device})


def _ours(sources: list[Any]) -> Any:
    """Count a minute and device, by each device's progress."""
    rows = stream(sources[0], name="devices", time="ts", progress=ordered(), groups="device")
    return rows.window(f"{WINDOW} seconds").group_by("device").agg(n="count(*)").to_spark()


def _plain(sources: list[Any], delay: int) -> Any:
    """Count the same by one watermark."""
    rows = sources[0].withWatermark("ts", f"{delay} seconds")
    return spark_plain.counted(rows, f"{WINDOW} seconds", "device")


def run_groups() -> Iterator[Row]:
    """Compare the delay of answers, the rows that are lost, and the cost of many groups."""
    yield from _beside_watermarks()
    yield from _many()


# ---- beside watermarks ---------------------------------------------------------------------


def _beside_watermarks() -> Iterator[Row]:
    say("groups: half of the devices an hour behind")
    rows_each = scaled(12_000)
    fleet = Fleet(rows_each / FILE_SECONDS, {"device": DEVICES}, 7, 0.0)
    sides = [
        Side("ours", ROCKSDB, _ours),
        Side("spark, watermark 61 min", HDFS, partial(_plain, delay=PATIENT)),
        Side("spark, watermark 1 min", HDFS, partial(_plain, delay=PROMPT)),
    ]
    with workspace() as folder:
        runs = Bench(folder, [fleet], FILES, rows_each).turns(sides, 1)
    us, patient, prompt = (runs[side.name][0] for side in sides)
    expected = due(pl.concat(fleet.files(FILES, rows_each)))
    what = f"{DEVICES:,} devices, half of them an hour behind, 1 min counts by device"
    for name, odd in (("prompt half", 0), ("lagging half", 1)):
        late = [lateness(ran.results, ran.batches, odd) for ran in (us, patient, prompt)]
        for ran, found in ((patient, late[1]), (prompt, late[2])):
            if late[0] and found:
                values = median(late[0]), median(found)
                yield beside(f"groups: delay, {name}", what, "min", (us, ran), values) | {
                    "answers": [len(late[0]), len(found)],
                    "longest": [max(late[0]), max(found)],
                }
    shares = [lost(ran.results, expected) for ran in (us, patient, prompt)]
    for ran, share in ((patient, shares[1]), (prompt, shares[2])):
        if share:
            yield beside("groups: rows lost", what, "rows", (us, ran), (shares[0], share))
    for ran in (patient, prompt):
        millis = us.middle_millis(WARM), ran.middle_millis(WARM)
        yield beside("groups: batch", what, "ms", (us, ran), millis)
    sizes = us.state_bytes, patient.state_bytes
    yield beside("groups: state", what, "bytes", (us, patient), sizes)


def lateness(results: pl.DataFrame, batches: Sequence[Batch], odd: int) -> list[float]:
    """Return the minutes of arrival from a device's passing of a window to its answer's batch."""
    if results.is_empty():
        return []
    ended = [batch.ended for batch in batches]
    answers = results.filter(pl.col("device") % 2 == odd).select(
        pl.col("window_end").dt.epoch("s").alias("end"), "written"
    )
    found = []
    for end, written in answers.iter_rows():
        batch = next((at for at, time in enumerate(ended) if time >= written), len(ended) - 1)
        arrived = BEGIN + (batches[batch].number + 1) * FILE_SECONDS
        found.append((arrived - end - odd * LAG) / 60)
    return found


def due(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the counts of the windows that every side has had the time to answer."""
    last = BEGIN + FILES * FILE_SECONDS - PATIENT - 2 * FILE_SECONDS
    counts = rows.group_by(
        pl.col("ts").dt.truncate(f"{WINDOW}s").alias("window_start"), "device"
    ).agg(pl.len().alias("rows"))
    ended = pl.col("window_start").dt.epoch("s") + WINDOW + (pl.col("device") % 2) * LAG
    return counts.filter(ended <= last)


def lost(results: pl.DataFrame, expected: pl.DataFrame) -> int:
    """Return the number of rows of windows that were due and are in no answer."""
    if results.is_empty():
        return int(expected["rows"].sum())
    answered = results.with_columns(
        pl.col("window_start").dt.cast_time_unit("us").dt.convert_time_zone("UTC")
    ).group_by("window_start", "device").agg(pl.col("n").sum())  # fmt: skip
    joined = expected.join(answered, on=["window_start", "device"], how="left")
    return int((joined["rows"].cast(pl.Int64) - joined["n"].fill_null(0)).sum())


# ---- many groups ---------------------------------------------------------------------------


def _many() -> Iterator[Row]:
    spark = session()
    known = scaled(MANY, MOVING)
    found: dict[int, list[SideRun]] = {MOVING: [], known: []}
    with workspace() as folder:
        for devices in found:
            write_files(many_devices(devices), folder / f"{devices}")
        for devices in (MOVING, known, known, MOVING):
            source = read_files(spark, folder / f"{devices}", "ts timestamp, device int")
            place = folder / f"run{devices}-{len(found[devices])}"
            ran = run_side(spark, Side("ours", ROCKSDB, _ours), [source], place)
            found[devices].append(ran)
            say(f"  {devices:,} devices: {_steps(ran):.0f} ms a batch of {MOVING}")
    what = f"ours: batches of 1,000 rows of {MOVING} devices, {known:,} known"
    many, few = (min(map(_steps, found[devices])) for devices in (known, MOVING))
    yield figure(
        "groups: batch, many known", what, "ms", many, f"ours, {MOVING} in all", few,
        found[known][0].rows,
    ) | {"target": 1.5}  # fmt: skip


def _steps(ran: SideRun) -> float:
    return ran.middle_millis(EVERYBODY + WARM)


def many_devices(devices: int) -> Iterator[pl.DataFrame]:
    """Yield files with two rows of each device, and then files with rows of a few devices."""
    rng = np.random.default_rng(1)
    everybody = np.array_split(np.tile(np.arange(devices, dtype=np.int32), 2), EVERYBODY)
    few = [rng.integers(0, MOVING, 1_000, dtype=np.int32) for _ in range(STEPS)]
    for number, names in enumerate([*everybody, *few]):
        times = BEGIN + number * 60 + np.linspace(0, 59, len(names))
        yield pl.DataFrame({"ts": stamps(times), "device": names})
