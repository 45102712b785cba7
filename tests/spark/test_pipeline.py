"""Declarative pipelines: a table defined by a query of ours, run by Spark's own command."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

import polars as pl
import pyspark
import pytest

from lowwater.engines.spark import jvm
from lowwater.engines.spark.session import ROCKSDB, STATE_STORE
from tests.conftest import ROOT
from tests.support.killing import committed, make_data, oracle

pytestmark = pytest.mark.xdist_group("spark")
HOME = Path(pyspark.__file__).parent
FILES = 3

SPEC = f"""
name: lowwater
storage: {{folder}}/storage
libraries:
  - glob:
      include: tables/**
configuration:
  {STATE_STORE}: {ROCKSDB}
  spark.sql.shuffle.partitions: "2"
"""

TABLES = """
from pathlib import Path

from pyspark import pipelines as dp
from pyspark.sql import SparkSession
from tests.support.victim import query

@dp.table
def counts():
    spark = SparkSession.active()
    return query(spark, Path({folder!r}, "data")).to_spark(spark)  # to start one would be refused
"""


def test_a_table_of_a_pipeline_is_a_query_of_ours(tmp_path: Path):
    make_data(tmp_path, files=FILES, rows=200, seed=2)
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables" / "counts.py").write_text(TABLES.format(folder=str(tmp_path)))
    spec = tmp_path / "spark-pipeline.yml"
    spec.write_text(SPEC.format(folder=tmp_path.as_uri()))
    with jvm.environment(here=True, start=True):
        env = os.environ | {
            "PYTHONPATH": str(ROOT),
            "SPARK_HOME": str(HOME),
            "SPARK_TESTING": "1",  # any free port, not always the same
        }
    done = subprocess.run(
        [HOME / "bin" / "spark-pipelines", "--remote", "local[2]", "run", "--spec", spec],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-3_000:]
    expected, _ = oracle(tmp_path / "data")
    full = datetime(1970, 1, 1) + timedelta(minutes=FILES - 1)  # the last minute is not complete
    keys = ["window_start", "window_end", "k"]
    complete = expected.filter(pl.col("window_end") <= full)
    table = committed(tmp_path / "spark-warehouse" / "counts")
    assert table.sort(keys).equals(complete.select(table.columns).sort(keys))
    assert table.height > 20
