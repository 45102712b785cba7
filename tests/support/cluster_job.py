"""The victim's query on a cluster of two executors, each a process of its own."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from lowwater.engines.spark.session import spark_session
from tests.support.victim import query


def main(folder: Path) -> None:
    """Run to the end of what is there, and keep the cluster until told to leave."""
    spark = spark_session(
        "local-cluster[2,1,1024]", **{"spark.scheduler.minRegisteredResourcesRatio": 1}
    )
    run = query(spark, folder / "data").run(
        engine="spark",
        sink=folder / "results",
        late_sink=folder / "late",
        checkpoint=folder / "checkpoint",
        trigger="available-now",
        session=spark,
    )
    run.await_termination()
    while not (folder / "leave").exists():
        time.sleep(0.05)
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
