"""Spark Connect: the same query, described here and run by a server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from tests.conftest import ROOT
from tests.support.killing import committed, make_data, oracle

pytestmark = pytest.mark.xdist_group("spark")
JOB = ROOT / "tests" / "support" / "connect_job.py"
FILES, ROWS = 3, 200
KEYS = ["window_start", "window_end", "k"]


def test_a_query_runs_over_connect_as_a_dataframe_and_as_a_run(tmp_path: Path):
    make_data(tmp_path, files=FILES, rows=ROWS, seed=1)
    done = subprocess.run(
        [sys.executable, str(JOB), str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3_000:]
    told = json.loads((tmp_path / "rows.json").read_text())
    assert told == {"left": FILES * ROWS, "right": FILES * ROWS}
    expected, _ = oracle(tmp_path / "data")
    collected = pl.read_parquet(tmp_path / "collected.parquet")
    assert collected.sort(KEYS).equals(expected.select(collected.columns).sort(KEYS))
    full = datetime(1970, 1, 1) + timedelta(minutes=FILES - 1)  # the last minute is not complete
    complete = expected.filter(pl.col("window_end") <= full)
    results = committed(tmp_path / "results")
    assert results.sort(KEYS).equals(complete.select(results.columns).sort(KEYS))
    assert 20 < results.height < collected.height
