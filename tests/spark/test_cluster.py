"""A cluster of two executors, each a process of its own, one of which is lost on the way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import polars as pl
import pyspark
import pytest

from tests.conftest import ROOT
from tests.support.killing import (
    PATIENCE,
    await_point,
    batches,
    committed,
    kill_driver,
    make_data,
    oracle,
    processes,
)

pytestmark = pytest.mark.xdist_group("spark")
JOB = ROOT / "tests" / "support" / "cluster_job.py"
EXECUTOR = b"org.apache.spark.executor.CoarseGrainedExecutorBackend"
FILES = 6


def test_an_executor_is_lost_and_each_result_is_there_once(tmp_path: Path):
    make_data(tmp_path, files=FILES, rows=500, seed=5)
    home = tmp_path / "spark"  # Spark keeps the executors' folders in its home
    home.mkdir()
    for each in Path(pyspark.__file__).parent.iterdir():
        (home / each.name).symlink_to(each)
    log = tmp_path / "log.txt"
    with log.open("ab") as output:
        job = subprocess.Popen(
            [sys.executable, str(JOB), str(tmp_path)],
            env=os.environ | {"SPARK_HOME": str(home), "PYTHONPATH": str(ROOT)},
            cwd=tmp_path,
            start_new_session=True,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        # Both are there, state has been made, and a batch is under way.
        assert await_point(job, lambda: {0, 1} <= batches(tmp_path, "offsets")), log.read_text()
        assert await_point(job, lambda: len(processes(job, EXECUTOR)) == 2), log.read_text()
        before = processes(job, EXECUTOR)
        os.kill(min(before), signal.SIGKILL)
        seen = set(before)

        def replaced() -> bool:
            seen.update(processes(job, EXECUTOR))
            return len(seen) > 2

        assert await_point(job, replaced), log.read_text()
        (tmp_path / "leave").touch()
        assert job.wait(PATIENCE) == 0, log.read_text()[-3_000:]
    finally:
        if job.poll() is None:
            kill_driver(job)
    assert batches(tmp_path, "commits") >= set(range(FILES))
    results = committed(tmp_path / "results")
    late = pl.read_parquet(tmp_path / "late" / "batch-*.parquet")
    assert results.select("window_start", "k").is_duplicated().sum() == 0
    expected, refused = oracle(tmp_path / "data")
    keys = ["window_start", "window_end", "k"]
    answered = expected.filter(pl.col("window_end") <= results["window_end"].max())
    assert results.sort(keys).equals(answered.select(results.columns).sort(keys))
    assert sorted(late.select("_stream", "ts", "k", "v").rows()) == sorted(refused.rows())
    assert answered.height > 20 * 3
