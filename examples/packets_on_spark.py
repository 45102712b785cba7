"""Packets of three links on Spark: answers, their delay, and those of plain Spark beside them.

Main1 is on time, Main2 comes in 4 seconds behind, Control is almost silent. First they are played
in real time and counted in windows of 2 seconds (the paper's Q1, a minute made short). Then packets
of Main1 are joined with those of Main2 that are at most 2 seconds away, and counted (Q7). In the
end the same count is done with Spark's own watermarks.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.live import Live
from rich.table import Table

import lowwater as lw

SECONDS = int(os.environ.get("LOWWATER_DEMO_SECONDS", "24"))
WINDOW = 2
LINKS = {
    "Control": lw.Workload(rate=0.1, seconds=SECONDS, seed=6, keys=50),
    "Main1": lw.Workload(rate=500, seconds=SECONDS, seed=2, keys=50),
    "Main2": lw.Workload(rate=500, seconds=SECONDS, seed=3, keys=50, skew=4),
}
BAND = "2 seconds"


def links() -> dict[str, lw.Stream]:
    """Return the links. Each is in order by itself; a silent one gets timestamps on demand."""
    return {
        name: lw.stream(load.replay(), name=name, time="ts", idle=lw.on_demand(skew="1 second"))
        for name, load in LINKS.items()
    }


def count_all(streams: dict[str, lw.Stream]) -> lw.Stream:
    """Count the packets of all links (Q1)."""
    together = streams["Control"].union(streams["Main1"], streams["Main2"])
    return together.window(f"{WINDOW} seconds").agg(packets="count(*)")


def count_pairs(streams: dict[str, lw.Stream]) -> lw.Stream:
    """Count pairs of packets with one key, near each other in time (Q7)."""
    pairs = streams["Main1"].join(streams["Main2"], on=["key"], within=BAND)
    return pairs.window(f"{WINDOW} seconds").agg(pairs="count(*)")


def play(console: Console, session: Any, folder: Path) -> lw.Run:
    """Run Q1 in real time and show what happens."""
    run = count_all(links()).run(
        engine="spark",
        session=session,
        clock="wall",
        trigger="500 milliseconds",
        sink=folder / "q1",
        checkpoint=folder / "q1-checkpoint",
    )
    begun = time.monotonic()
    with Live(console=console, refresh_per_second=4) as screen:
        while not run.await_termination(0.5):
            screen.update(_progress(run, time.monotonic() - begun))
        screen.update(_progress(run, time.monotonic() - begun))
    return run


def _progress(run: lw.Run, seconds: float) -> Table:
    metrics = run.metrics()
    table = Table(title=f"Q1 in real time: {seconds:.0f} s", title_justify="left")
    for name in ("link", "packets", "late", "promised up to"):
        table.add_column(name, justify="left" if name == "link" else "right")
    for each in metrics.streams:
        mark = each.marks["ts"]
        shown = f"{mark:%M:%S.%f}"[:-4] if mark else "-"
        table.add_row(each.name, f"{each.rows:,}", str(each.refused_rows), shown)
    table.caption = f"{metrics.rows_out} windows answered"
    return table


def truth() -> pl.DataFrame:
    """Count Q1 over all rows at once."""
    rows = pl.concat([load.table().select("ts") for load in LINKS.values()])
    start = pl.col("ts").dt.truncate(f"{WINDOW}s").alias("window_start")
    return rows.group_by(start).agg(packets=pl.len().cast(pl.Int64)).sort("window_start")


def truth_of_pairs() -> pl.DataFrame:
    """Count Q7 over all rows at once."""
    left, right = (LINKS[name].table().select("ts", "key") for name in ("Main1", "Main2"))
    near = (pl.col("ts") - pl.col("ts_right")).abs() <= pl.duration(seconds=2)
    pairs = left.join(right, on="key").filter(near)
    start = pl.col("ts").dt.truncate(f"{WINDOW}s").alias("window_start")
    return pairs.group_by(start).agg(pairs=pl.len().cast(pl.Int64)).sort("window_start")


def write_log(folder: Path) -> None:
    """Write the same packets as files, one for each half second of arrival."""
    folder.mkdir()
    tables = [
        load.table().select("arrived", "ts", pl.lit(name).alias("link"))
        for name, load in LINKS.items()
    ]
    log = pl.concat(tables).sort("arrived")
    numbered = log.with_columns((pl.col("arrived") * 2).floor().cast(pl.Int64).alias("half"))
    parts = numbered.partition_by("half", as_dict=True, maintain_order=True)
    for (half,), rows in parts.items():
        path = folder / f"{half:04d}.parquet"
        rows.select(pl.col("ts").dt.replace_time_zone("UTC"), "link").write_parquet(path)
        os.utime(path, (1_700_000_000 + half, 1_700_000_000 + half))  # Spark reads oldest first


def plain_spark(session: Any, log: Path, folder: Path, delay: str, per_link: bool) -> pl.DataFrame:
    """Count Q1 with Spark's watermarks: one for all links together, or one for each of them."""
    from pyspark.sql import functions as F  # noqa: PLC0415

    def read() -> Any:
        reader = session.readStream.schema("ts timestamp, link string")
        return reader.option("maxFilesPerTrigger", 1).parquet(str(log))

    if per_link:
        each = [read().where(F.col("link") == name).withWatermark("ts", delay) for name in LINKS]
        packets = each[0].unionAll(each[1]).unionAll(each[2])
    else:
        packets = read().withWatermark("ts", delay)
    counted = packets.groupBy(F.window("ts", f"{WINDOW} seconds")).count()
    query = (
        counted.select(F.col("window.start").alias("window_start"), "count")
        .writeStream.format("parquet")
        .option("path", str(folder))
        .option("checkpointLocation", f"{folder}-checkpoint")
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    found = pl.from_arrow(session.read.parquet(str(folder)).toArrow())
    return found.with_columns(pl.col("window_start").dt.replace_time_zone(None))


def judge(name: str, answers: pl.DataFrame, column: str) -> tuple[str, int, int, int]:
    """Return the windows answered, packets missing from them, and windows not answered."""
    expected = truth()
    met = expected.join(answers, on="window_start", how="inner", suffix="_theirs")
    given = column if column != "packets" else "packets_theirs"
    lost = int((met["packets"] - met[given]).sum())
    return name, met.height, lost, expected.height - met.height


def main() -> int:
    """Run all parts; return 0 if the answers of lowwater are right."""
    from lowwater.engines.spark.driver.session import spark_session  # noqa: PLC0415

    console = Console(width=100)
    folder = Path(tempfile.mkdtemp(prefix="lowwater-demo-"))
    console.print("Starting Spark ...")
    session = spark_session("local[2]")
    console.print("[bold]The plan of Q1[/bold]")
    console.print(count_all(links()).explain(), markup=False, highlight=False)
    play(console, session, folder)
    ours = pl.from_arrow(session.read.parquet(str(folder / "q1")).toArrow())

    console.print(f"\nQ7: pairs of Main1 and Main2 within {BAND}, as fast as it goes ...")
    begun = time.monotonic()
    run = count_pairs(links()).run(engine="spark", session=session, sink=folder / "q7")
    run.await_termination()
    took = time.monotonic() - begun
    pairs = pl.from_arrow(session.read.parquet(str(folder / "q7")).toArrow())
    same = pairs.select("window_start", "pairs").sort("window_start").equals(truth_of_pairs())
    total = int(pairs["pairs"].sum())
    console.print(
        f"  {total:,} pairs in {pairs.height} windows, {took:.1f} s; equal to batch: {same}"
    )

    console.print("\nQ1 again with Spark's own watermarks ...")
    write_log(folder / "log")
    rows = [judge("lowwater: a promise for each link", ours, "packets")]
    for name, delay, per_link in (
        ("one watermark, 1 second", "1 second", False),
        ("one watermark, 5 seconds", "5 seconds", False),
        ("a watermark for each link, 1 second", "1 second", True),
    ):
        found = plain_spark(session, folder / "log", folder / f"plain-{len(rows)}", delay, per_link)
        rows.append(judge(f"plain Spark: {name}", found, "count"))
    show(console, rows)
    shutil.rmtree(folder, ignore_errors=True)
    session.stop()
    right = rows[0][2] == rows[0][3] == 0 and same
    console.print("Ours is equal to the batch count." if right else "[red]Ours is wrong.[/red]")
    return 0 if right else 1


def show(console: Console, rows: list[tuple[str, int, int, int]]) -> None:
    """Print the answers of each side as a table."""
    table = Table(title="\nThe same packets, the same count", title_justify="left")
    table.add_column("")
    for name in ("windows answered", "packets missing in them", "not yet answered"):
        table.add_column(name, justify="right")
    for name, *numbers in rows:
        table.add_row(name, *(f"{number:,}" for number in numbers))
    console.print(table)


if __name__ == "__main__":
    sys.exit(main())
