"""Kill a run at a chosen point and start it again, until it has come to its end."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

import numpy as np
import polars as pl

VICTIM = Path(__file__).with_name("victim.py")
PATIENCE = 600.0
"""Seconds after which a run counts as hanging, also on a machine that is busy with other work."""


def make_data(folder: Path, files: int, rows: int, seed: int) -> None:
    """Two streams of files: disordered within the promise, a few rows beyond it."""
    rng = np.random.default_rng(seed)
    for name in ("left", "right"):
        target = folder / "data" / name
        target.mkdir(parents=True)
        for number in range(files):
            times = np.sort(rng.uniform(number * 60, (number + 1) * 60, rows))
            times = times - rng.uniform(0, 4, rows)
            if number > 2:
                times[rows // 2] -= 120  # late, whichever way the batches fall
            frame = pl.DataFrame(
                {
                    "ts": pl.Series((times * 1e6).astype(np.int64)).cast(pl.Datetime("us")),
                    "k": rng.integers(0, 20, rows),
                    "v": rng.uniform(0, 1, rows).round(6),
                }
            )
            path = target / f"part-{number:04d}.parquet"
            frame.write_parquet(path)
            os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def judged(data: Path) -> tuple[dict[str, pl.DataFrame], pl.DataFrame]:
    """The rows of each side that kept the promise, and those that did not."""
    sides, refused = {}, []
    for name in ("left", "right"):
        mark, kept = None, []
        for path in sorted((data / name).glob("*.parquet")):  # one file a batch
            rows = pl.read_parquet(path)
            late = rows.filter(pl.col("ts") < mark) if mark is not None else rows.clear()
            refused.append(late.select(pl.lit(name).alias("_stream"), "ts", "k", "v"))
            kept.append(rows.join(late, on=["ts", "k", "v"], how="anti"))
            newest = rows["ts"].max() - pl.Series([5_000_000]).cast(pl.Duration("us"))[0]
            mark = newest if mark is None else max(mark, newest)
        sides[name] = pl.concat(kept)
    return sides, pl.concat(refused)


def pairs_of(sides: dict[str, pl.DataFrame], reach: pl.Expr) -> pl.DataFrame:
    """The pairs of both sides that are within reach."""
    pairs = sides["left"].join(sides["right"], on="k", suffix="_right")
    return pairs.filter((pl.col("ts") - pl.col("ts_right")).abs() <= reach)


def oracle(data: Path) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The batch answer over the rows that kept the promise, and those that did not."""
    sides, refused = judged(data)
    pairs = pairs_of(sides, pl.duration(seconds=10))
    start = pl.col("ts").dt.truncate("1m").alias("window_start")
    counted = pairs.group_by(start, "k").agg(n=pl.len().cast(pl.Int64), top=pl.col("v").max())
    counted = counted.with_columns(window_end=pl.col("window_start") + pl.duration(minutes=1))
    return counted, refused


def start(folder: Path, *how: str) -> subprocess.Popen[bytes]:
    """Start the victim in a session of its own, so that all of it can be killed at once."""
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(VICTIM), str(folder), *how],
            start_new_session=True,
            stdout=log,
            stderr=subprocess.STDOUT,
        )


def batches(folder: Path, kind: str) -> set[int]:
    """The batches a checkpoint has begun (``offsets``) or finished (``commits``)."""
    found = (folder / "checkpoint" / kind).glob("*")
    return {int(each.name) for each in found if each.name.isdigit()}


def kill_driver(victim: subprocess.Popen[bytes]) -> None:
    """Kill the driver, its JVM and its workers, without warning."""
    os.killpg(victim.pid, signal.SIGKILL)


def kill_worker(victim: subprocess.Popen[bytes]) -> None:
    """Kill the Python workers only; the driver finds out by itself."""
    for each in processes(victim, b"pyspark.daemon"):
        os.kill(each, signal.SIGKILL)


def processes(victim: subprocess.Popen[bytes], name: bytes) -> set[int]:
    """The processes in the session of the victim that were started as this."""
    found = set()
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            command = (each / "cmdline").read_bytes()
            session = (each / "stat").read_text().rpartition(")")[2].split()[3]
        except OSError:
            continue
        if name in command and int(session) == victim.pid:
            found.add(int(each.name))
    return found


def committed(folder: Path) -> pl.DataFrame:
    """The rows Spark's file sink has committed: those in the files its log names, as it does."""
    log = folder / "_spark_metadata"
    numbers = {int(each.name.split(".")[0]) for each in log.iterdir() if each.name[:1].isdigit()}
    files: dict[str, None] = {}
    for number in sorted(numbers):
        for part in (log / str(number), log / f"{number}.compact"):
            lines = part.read_text(encoding="utf-8").splitlines()[1:] if part.exists() else []
            files.update((json.loads(line)["path"], None) for line in lines)
    return pl.read_parquet([unquote(urlsplit(each).path) for each in files])


Kill = Callable[[subprocess.Popen[bytes]], None]


def survive(folder: Path, kills: list[Kill], seed: int, *how: str) -> int:
    """Run to the end through all kills; how many of them hit a batch that was under way."""
    chance = random.Random(seed)
    hits = 0
    for kill in kills:
        victim = start(folder, *how)
        done = batches(folder, "commits")
        wanted = max(done, default=-1) + 1 + chance.randrange(2)
        pause = chance.uniform(0, 0.4)
        if not await_point(victim, lambda at=wanted: at in batches(folder, "offsets")):
            check_end(folder, victim)
            return hits
        time.sleep(pause)
        hits += wanted not in batches(folder, "commits")
        kill(victim)
        victim.wait(PATIENCE)
    check_end(folder, start(folder, *how))
    return hits


def check_end(folder: Path, victim: subprocess.Popen[bytes]) -> None:
    """Wait until the victim has come to its end; fail with its log if it hangs or has crashed."""
    try:
        code = victim.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        kill_driver(victim)
        code = victim.wait()
    assert code == 0, (folder / "log.txt").read_text()[-3_000:]


def await_point(victim: subprocess.Popen[bytes], there: Callable[[], bool]) -> bool:
    """Wait until the victim has come to a point; false if it ended before."""
    limit = time.monotonic() + PATIENCE
    while not there():
        if victim.poll() is not None:
            return False
        assert time.monotonic() < limit, "the run made no batch"
        time.sleep(0.002)
    return True
