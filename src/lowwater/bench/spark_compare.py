"""Sides take turns on the same files; their answers are compared and become rows of figures."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import polars as pl
from rich.console import Console

from lowwater.bench.report import Row, figure
from lowwater.bench.spark_data import Flow, link_files, write_files
from lowwater.bench.spark_side import Side, SideRun, read_files, run_side, session
from lowwater.engines.scratch import scratch_folder

TRIAL = 3
"""Number of files over which plain Spark's state stores are tried; the faster one goes on."""

_console = Console(stderr=True)


def scale() -> float:
    """Return the factor by which everything is smaller: ``LOWWATER_BENCH_SCALE``, by default 1."""
    return float(os.environ.get("LOWWATER_BENCH_SCALE") or 1)


def scaled(number: float, least: int = 1) -> int:
    """Return a number of rows or keys times the scale, at least ``least``."""
    return max(least, round(number * scale()))


def say(text: str) -> None:
    """Print a line about the progress of a run."""
    _console.print(text, style="dim", highlight=False, soft_wrap=True)


@dataclass(frozen=True)
class Agreement:
    """The answers of two sides, compared."""

    same: bool
    """True if all windows that both answered have the same rows."""
    both: int
    """Number of windows that both answered."""
    only_ours: int
    """Number of windows that only we answered."""
    only_theirs: int
    """Number of windows that only the other side answered."""


def agreement(ours: pl.DataFrame, theirs: pl.DataFrame) -> Agreement:
    """Compare results window by window; the last ones may be open on one side."""
    if ours.is_empty() or theirs.is_empty():
        return Agreement(False, 0, _windows(ours), _windows(theirs))
    columns = sorted(name for name in ours.columns if name != "written")
    common = ours.join(theirs, on="window_start", how="semi")
    others = theirs.join(ours, on="window_start", how="semi")
    both = _windows(common)
    same = same_rows(common, others, columns)
    return Agreement(same, both, _windows(ours) - both, _windows(theirs) - both)


def same_rows(ours: pl.DataFrame, theirs: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Return true if both have rows, and the same rows in these columns, in any order."""
    if ours.is_empty() or theirs.is_empty():
        return False
    left, right = (each.select(columns).sort(columns) for each in (ours, theirs))
    return left.equals(right)


def _windows(results: pl.DataFrame) -> int:
    return 0 if results.is_empty() else results["window_start"].n_unique()


@contextmanager
def workspace() -> Iterator[Path]:
    """Make a folder for the time of a block."""
    folder = scratch_folder("bench")
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Bench:
    """Files of some sources, and sides that are run over them."""

    def __init__(
        self,
        folder: Path,
        flows: Sequence[Flow],
        files: int,
        rows_each: int,
    ):
        self._spark = session()
        self._folder, self._flows = folder, flows
        self._runs = count(1)
        self._rows_each = rows_each * len(flows)
        for number, flow in enumerate(flows):
            write_files(flow.files(files, rows_each), folder / "all" / f"{number}")
            link_files(folder / "all" / f"{number}", folder / "trial" / f"{number}", TRIAL)

    def run(self, side: Side, files: str = "all", memory: bool = False) -> SideRun:
        """Run one side once; ``memory``: whether to measure memory too, which takes time."""
        sources = [
            read_files(self._spark, self._folder / files / f"{number}", flow.schema)
            for number, flow in enumerate(self._flows)
        ]
        place = self._folder / f"run{next(self._runs)}"
        ran = run_side(self._spark, side, sources, place, memory)
        shutil.rmtree(place, ignore_errors=True)
        say(
            f"  {side.name}: {ran.steady_speed:,.0f} rows/s after the first batch of"
            f" {ran.first:.1f} s ({ran.planning:.1f} s of it planning);"
            f" {ran.usage.cpu:.0f} s of processor;"
            f" {len(ran.full)} batches of {self._rows_each:,} rows"
        )
        return ran

    def better(self, sides: Sequence[Side]) -> Side:
        """Return the side that is faster over the first files."""
        return max(sides, key=lambda side: self.run(side, "trial").steady_speed)

    def turns(self, sides: Sequence[Side], rounds: int = 3) -> dict[str, list[SideRun]]:
        """Run the sides in turn, so many rounds; return their runs by name."""
        runs: dict[str, list[SideRun]] = {side.name: [] for side in sides}
        for _ in range(rounds):
            for side in sides:
                runs[side.name].append(self.run(side))
        return runs


def fastest(runs: Iterable[SideRun]) -> SideRun:
    """Return the run with the most rows a second after its first batch."""
    return max(runs, key=lambda ran: ran.steady_speed)


def speed_rows(
    name: str, what: str, target: float, runs: Mapping[str, Sequence[SideRun]]
) -> Iterator[Row]:
    """Return rows of our best run beside each of theirs, the fastest first; then other measures."""
    ours = fastest(runs["ours"])
    theirs = sorted(
        (fastest(each) for side, each in runs.items() if side != "ours"),
        key=lambda ran: -ran.steady_speed,
    )
    for number, other in enumerate(theirs):
        label = name if not number else f"{name}, other"
        speeds = ours.steady_speed, other.steady_speed
        yield beside(label, what, "rows/s", (ours, other), speeds) | {
            "target": None if number else target,
            "all_speeds": {side: [r.steady_speed for r in each] for side, each in runs.items()},
            **_answers(ours, other),
        }
    pair = ours, theirs[0]
    yield beside(f"{name}, start included", what, "rows/s", pair, [r.cold_speed for r in pair]) | {
        "first_batch_seconds": {side: [r.first for r in each] for side, each in runs.items()}
    }
    yield beside(f"{name}, processor", what, "s", pair, [r.usage.cpu for r in pair])
    yield beside(f"{name}, state", what, "bytes", pair, [r.state_bytes for r in pair]) | {
        "state_rows": [r.state_rows for r in pair],
        "spark_counts_for_ours": ours.spark_state_bytes,
    }


def beside(
    name: str, what: str, unit: str, pair: tuple[SideRun, SideRun], values: Sequence[float]
) -> Row:
    """Return a row of figures of our run and another; ``values``: ours, and the other's."""
    return figure(name, what, unit, values[0], pair[1].side, values[1], pair[0].rows)


def _answers(ours: SideRun, theirs: SideRun) -> Row:
    found = agreement(ours.results, theirs.results)
    return {
        "same_results": found.same,
        "windows_both": found.both,
        "windows_only_ours": found.only_ours,
        "windows_only_peer": found.only_theirs,
    }


# ---- memory, in a process of its own -------------------------------------------------------

_PROGRAM = "from lowwater.bench.spark_compare import main; main()"


def peak_apart(workload: str, side: str, *more: str) -> int:
    """Return the most bytes that a side held, in a process of its own.

    A JVM does not give memory back, so memory is measured in another process. ``more``: the
    arguments of the workload.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM, workload, side, *more],
        stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    return int(json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Measure the workload and side named on the command line; print the bytes."""
    from lowwater.bench import spark_oblivious  # noqa: PLC0415
    from lowwater.bench.spark_large import workloads  # noqa: PLC0415

    name, chosen, *more = sys.argv[1:]
    if name == spark_oblivious.NAME:
        flows, files, rows_each, sides = spark_oblivious.workload(*map(int, more))
    else:
        flows, files, rows_each, sides = workloads()[name]
    side = next(each for each in sides if each.name == chosen)
    with workspace() as folder:
        ran = Bench(folder, flows, files, rows_each).run(side, memory=True)
    sys.stdout.write(f"{ran.usage.memory}\n")
