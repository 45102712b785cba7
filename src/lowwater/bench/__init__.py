"""Benchmarks: the same work done by us and by a peer in one run; they print, never judge.

A run takes place in a process of its own, with as many threads as :data:`THREADS` says for both
sides, because Polars fixes the size of its thread pool when it is loaded.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import polars as pl

from lowwater.bench.kernels import run_kernels
from lowwater.bench.report import provenance, show
from lowwater.bench.spark_suite import PARTS as SPARK_PARTS
from lowwater.bench.spark_suite import run_spark
from lowwater.errors import OptionError, unknown_name

__all__ = ["BENCHMARKS", "THREADS", "run", "show"]

BENCHMARKS = {"kernels": run_kernels, "spark": run_spark}
PARTS = dict(SPARK_PARTS)
"""Parts of benchmarks that can be run by themselves."""
THREADS = 2


def run(names: list[str]) -> list[dict[str, Any]]:
    """Run benchmarks, or parts of them, by name (all, if none are named); rows of figures.

    A row has ``name``, ``ours``, ``peer``, ``peer_value``, their ``unit``, ``ratio`` (ours to the
    peer's), and what it was made with in ``provenance``. :func:`show` prints rows for people.
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


def _run_apart(names: list[str]) -> list[dict[str, Any]]:
    environment = os.environ | {"POLARS_MAX_THREADS": str(THREADS)}
    done = subprocess.run(
        [sys.executable, "-m", "lowwater.bench", *names],
        env=environment, stdout=subprocess.PIPE, text=True, check=True,
    )  # fmt: skip
    rows: list[dict[str, Any]] = json.loads(done.stdout)
    return rows
