"""What the benchmarks on Spark read of a run: batches, state and results of our side."""

from __future__ import annotations

from functools import partial

import pytest

from lowwater.bench import spark_ours
from lowwater.bench.spark_data import DISORDER, Flow, write_files
from lowwater.bench.spark_oblivious import OURS, Epochs
from lowwater.bench.spark_side import Ran, ours, read_files, run_side

FILES, ROWS = 3, 400


def ran(spark, folder, query, *flows: Flow) -> Ran:
    """Return the run of our side over small files of some sources, a file of each a batch."""
    for number, flow in enumerate(flows):
        write_files(flow, folder / f"{number}", FILES, ROWS)
    sources = [
        read_files(spark, folder / f"{number}", flow.schema) for number, flow in enumerate(flows)
    ]
    return run_side(spark, ours(query), sources, folder / "run")


def test_batches_tell_the_rows_that_our_operators_keep(spark, tmp_path):
    flow = Flow(20, {"ip": 5, "port": 5}, 1)
    found = ran(spark, tmp_path, spark_ours.tumbling, flow)
    assert [batch.rows for batch in found.full] == [ROWS] * FILES
    assert found.state_rows > 0
    assert found.state_bytes > 0
    assert not found.results.is_empty()


@pytest.mark.parametrize("options", OURS.values(), ids=list(OURS))
def test_batches_tell_the_rows_that_a_join_without_a_window_holds_in_memory(
    spark, tmp_path, options
):
    keys = {"v": 1_000}
    flows = [Epochs(100, keys, seed, DISORDER) for seed in (1, 2)]
    found = ran(spark, tmp_path, partial(spark_ours.equal_times, **options), *flows)
    held = [batch.in_memory for batch in found.full]
    assert all(0 < rows <= batch.state_rows for rows, batch in zip(held, found.full, strict=True))
