"""Kill a run at a chosen point and start it again, until it has come to its end."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

VICTIM = Path(__file__).with_name("victim.py")
PATIENCE = 180.0


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


def start(folder: Path) -> subprocess.Popen[bytes]:
    """Start the victim in a session of its own, so that all of it can be killed at once."""
    with (folder / "log.txt").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, str(VICTIM), str(folder)],
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
    for each in Path("/proc").iterdir():
        if not each.name.isdigit():
            continue
        try:
            command = (each / "cmdline").read_bytes()
            session = (each / "stat").read_text().rpartition(")")[2].split()[3]
        except OSError:
            continue
        if b"pyspark.daemon" in command and int(session) == victim.pid:
            os.kill(int(each.name), signal.SIGKILL)


Kill = Callable[[subprocess.Popen[bytes]], None]


def survive(folder: Path, kills: list[Kill], seed: int) -> int:
    """Run to the end through all kills; how many of them hit a batch that was under way."""
    chance = random.Random(seed)
    hits = 0
    for kill in kills:
        victim = start(folder)
        done = batches(folder, "commits")
        wanted = max(done, default=-1) + 1 + chance.randrange(2)
        pause = chance.uniform(0, 0.4)
        if not _await(victim, lambda at=wanted: at in batches(folder, "offsets")):
            return hits  # it came to its end
        time.sleep(pause)
        hits += wanted not in batches(folder, "commits")
        kill(victim)
        victim.wait(PATIENCE)
    victim = start(folder)
    if victim.wait(PATIENCE) != 0:
        raise AssertionError((folder / "log.txt").read_text()[-3_000:])
    return hits


def _await(victim: subprocess.Popen[bytes], there: Callable[[], bool]) -> bool:
    limit = time.monotonic() + PATIENCE
    while not there():
        if victim.poll() is not None:
            return False
        assert time.monotonic() < limit, "the run made no batch"
        time.sleep(0.002)
    return True
