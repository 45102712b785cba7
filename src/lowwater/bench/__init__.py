"""A benchmark does the same work with lowwater and with a peer in one run; it judges nothing.

``kernels`` compares with Polars, ``shared`` a queue of several queries with a queue for each.
``read-ahead`` compares the rows that a join without a window reads ahead with fixed numbers of
them. ``spark`` compares with plain Spark, the better of its two state stores: both sides read the
same Parquet files in the same order, as many a batch, in one session with the same settings, and
write Parquet. They take turns. Their answers are compared window by window.
``LOWWATER_BENCH_SCALE=0.1`` makes all row counts of ``spark`` a tenth, except for those of the
small batches.

A run takes place in a process of its own, in which Polars has :data:`THREADS` threads for both
sides, because Polars fixes the size of its thread pool when it is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping

import polars as pl

from lowwater.bench.kernels import run_kernels
from lowwater.bench.read_ahead import run_read_ahead
from lowwater.bench.report import Row, provenance, show
from lowwater.bench.shared_queue import run_shared
from lowwater.bench.spark_groups import run_groups
from lowwater.bench.spark_large import run_closes, run_growth, run_w1, run_w2, run_w3
from lowwater.bench.spark_live import run_w4
from lowwater.bench.spark_oblivious import run_oblivious
from lowwater.bench.spark_ordered import run_ordered
from lowwater.bench.spark_small import run_small
from lowwater.bench.spark_updates import run_updates
from lowwater.errors import OptionError, unknown_name

__all__ = ["BENCHMARKS", "THREADS", "run", "show"]

PARTS: Mapping[str, Callable[[], Iterator[Row]]] = {
    "W1": run_w1,
    "W2": run_w2,
    "W3": run_w3,
    "W4": run_w4,
    "closes": run_closes,
    "small": run_small,
    "groups": run_groups,
    "ordered": run_ordered,
    "oblivious": run_oblivious,
    "updates": run_updates,
    "growth": run_growth,
}
"""Parts of the benchmark ``spark`` that can be run by themselves, by name."""


def run_spark() -> Iterator[Row]:
    """Run all parts."""
    for part in PARTS.values():
        yield from part()


BENCHMARKS = {
    "kernels": run_kernels,
    "read-ahead": run_read_ahead,
    "shared": run_shared,
    "spark": run_spark,
}
THREADS = 2
"""Threads of Polars in every run."""


def run(names: list[str]) -> list[Row]:
    """Run benchmarks, or parts of them, by name (all, if none are named); return rows of figures.

    A row has ``name``, ``ours``, ``peer``, ``peer_value``, their ``unit``, ``ratio`` (ours to the
    peer's), and its ``provenance``: revision, machine and versions. :func:`show` prints rows for
    people.
    """
    names = names or list(BENCHMARKS)
    known = {**BENCHMARKS, **PARTS}
    for name in names:
        if name not in known:
            raise OptionError(unknown_name("benchmark", name, known))
    if pl.thread_pool_size() != THREADS:
        return _run_apart(names)
    made_with = provenance()
    return [
        row | {"benchmark": name, "provenance": made_with}
        for name in names
        for row in known[name]()
    ]


def _run_apart(names: list[str]) -> list[Row]:
    environment = os.environ | {"POLARS_MAX_THREADS": str(THREADS)}
    done = subprocess.run(
        [sys.executable, "-m", "lowwater.bench", *names],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    rows: list[Row] = json.loads(done.stdout)
    return rows
