"""One Spark session for all tests of the engine."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from lowwater.engines.spark.session import spark_session

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """A quiet session on two cores; its workers can import the tests' modules."""
    session = spark_session(master="local[2]", **{"spark.executorEnv.PYTHONPATH": str(ROOT)})
    yield session
    session.stop()
