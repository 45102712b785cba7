"""This benchmark compares fixed numbers of rows that are read ahead with the chosen one.

One input of a join without a window is far ahead, and all of its rows are on disk. The other input
comes in bursts. The latency is the time from a burst to its results: pages that have to be read
then are in it, and pages that are read ahead, after the results have left, are not. The memory is
the number of rows that were read and not due yet. Each burst waits until the reading of the burst
before is done, so the total time is that of all work.

It is repeated with a disk that takes longer for each page, by a wait of fixed length.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

import numpy as np
import polars as pl

from lowwater.api import Stream, join, stream
from lowwater.bench.report import Row, figure
from lowwater.engines.clock import stopwatch
from lowwater.engines.embedded.pages import PagedStore
from lowwater.joins.multi_join import rows_of
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.operators.kernel import Host
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.contract import unpromised
from lowwater.state.index import ChunkKey
from lowwater.state.store import read
from lowwater.stream.element import Chunk

ROWS = 60_000
"""Rows of each input."""
AHEAD = 1_000
"""Rows of the foremost input in a chunk."""
BURSTS = (50, 200, 800)
"""Rows of the lagging input that come together; sizes take turns at random."""
SKIPPED = 0.2
"""The part of the rows that is not measured: the first rows are in memory, before any is on disk.
"""
FIXED = (0, 64, 256, 1_024, 4_096)
"""The fixed numbers of rows read ahead."""
SLOWER = (0.0, 0.005)
"""Seconds that are added to the reading of each page."""
TIMES = 5
"""Number of runs of each setting, with other bursts in each."""
PAUSE = 2_000_000
"""Nanoseconds between two bursts by the clock that the join reads."""


class SlowStore(PagedStore):
    """Pages on a disk that takes longer."""

    def __init__(self, folder: str, seconds: float):
        super().__init__(folder)
        self._seconds = seconds

    def _load(self, key: ChunkKey) -> Chunk:
        if self._seconds:
            time.sleep(self._seconds)
        return super()._load(key)


@dataclass(frozen=True)
class Run:
    """The measures of one run."""

    median: float
    """Median latency of a burst in milliseconds."""
    slow: float
    """Latency that one burst in a hundred exceeds, in milliseconds."""
    total: float
    """Seconds of all work."""
    held: int
    """The greatest number of rows in memory that were not due yet."""
    waited: int
    """Pages for which results waited."""
    ahead: int
    """The number of rows read ahead at the end."""


def run_read_ahead() -> Iterator[Row]:
    """Compare the chosen number of rows with fixed ones, by latency, memory and time."""
    for seconds in SLOWER:
        found = {
            name: [_run(name, seconds, seed) for seed in range(TIMES)] for name in (*FIXED, "auto")
        }
        means = {name: median(each.median for each in runs) for name, runs in found.items()}
        best = min(FIXED, key=means.__getitem__)
        what = f"bursts of {', '.join(map(str, BURSTS))} rows, {seconds * 1e3:g} ms more a page"
        for name in FIXED:
            yield _row(what, found["auto"], name, found[name], name == best)


def _row(what: str, ours: list[Run], name: int, theirs: list[Run], best: bool) -> Row:
    def middle(runs: list[Run], field: str) -> float:
        return float(median(getattr(each, field) for each in runs))

    peer = f"C = {name:,} rows{', the best' if best else ''}"
    row = figure(
        "read-ahead", what, "ms", middle(ours, "median"), peer, middle(theirs, "median"), ROWS
    )
    fields = ("median", "slow", "total", "held", "waited", "ahead")
    return row | {
        "runs": TIMES,
        **{field: [middle(ours, field), middle(theirs, field)] for field in fields},
        "all": [[each.median for each in runs] for runs in (ours, theirs)],
    }


def _inputs() -> list[Stream]:
    return [
        stream(pl.DataFrame(schema={"e": pl.Int64, "v": pl.Int64}), name=name, time="e",
               progress=unpromised(disorder=0, multiplicity=1))
        for name in ("first", "second")
    ]  # fmt: skip


def _run(ahead: int | str, seconds: float, seed: int) -> Run:
    chance = np.random.default_rng(seed)
    plan = compile_plan(join(_inputs(), on="e", strategy="dbf", read_ahead=ahead).node)
    now = [0]
    with tempfile.TemporaryDirectory() as folder:
        store = SlowStore(folder, seconds)
        kernel = plan.kernel(plan.result.index).build(store, Host(lambda: now[0], in_portions=True))
        assert isinstance(kernel, ObliviousJoin)
        for first in range(0, ROWS, AHEAD):
            now[0] += AHEAD * PAUSE // int(np.mean(BURSTS))
            kernel.on_chunk(0, _rows(first, AHEAD))
        times: list[float] = []
        held, at, begun = 0, 0, stopwatch()
        while at < ROWS:
            size = min(int(chance.choice(BURSTS)), ROWS - at)
            now[0] += PAUSE
            before = stopwatch()
            kernel.on_chunk(1, _rows(at, size))
            took = (stopwatch() - before) / 1e6
            while kernel.has_work:
                kernel.work_on()
            at += size
            if at >= ROWS * SKIPPED:
                times.append(took)
                held = max(held, _not_due(store, at))
        total = (stopwatch() - begun) / 1e9
        about = kernel.about()
        store.close()
    return Run(
        median(times),
        float(np.quantile(times, 0.99)),
        total,
        held,
        int(about["pages waited for[0]"]),
        int(about["read ahead[0]"]),
    )


def _not_due(store: PagedStore, reached: int) -> int:
    """Return the rows of the first input that were read from disk and are not due."""
    rows = read(store, rows_of(0))
    return 0 if rows is None else int((rows["e"] >= reached).sum())


def _rows(first: int, count: int) -> pl.DataFrame:
    values = np.arange(first, first + count)
    return pl.DataFrame({"e": values, "v": values})
