"""What the benchmarks on Spark read of a run: batches, state and results of our side."""

from __future__ import annotations

from functools import partial

import pytest

from lowwater.bench import spark_ours, spark_plain
from lowwater.bench.spark_data import DISORDER, Flow, write_files
from lowwater.bench.spark_oblivious import OURS, Epochs
from lowwater.bench.spark_ordered import BATCH, SORTED, TIME
from lowwater.bench.spark_side import HDFS, Side, SideRun, ours, read_files, run_side

FILES, ROWS = 3, 400


def ran(spark, folder, side: Side, *flows: Flow) -> SideRun:
    """Return the run of a side over small files of some sources, a file of each a batch."""
    for number, flow in enumerate(flows):
        write_files(flow.files(FILES, ROWS), folder / f"{number}")
    sources = [
        read_files(spark, folder / f"{number}", flow.schema) for number, flow in enumerate(flows)
    ]
    return run_side(spark, side, sources, folder / "run")


def test_batches_tell_the_rows_that_our_operators_keep(spark, tmp_path):
    flow = Flow(20, {"ip": 5, "port": 5}, 1)
    found = ran(spark, tmp_path, ours(spark_ours.tumbling), flow)
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
    query = partial(spark_ours.equal_times, **options)
    found = ran(spark, tmp_path, ours(query), *flows)
    held = [batch.in_memory for batch in found.full]
    assert all(0 < rows <= batch.state_rows for rows, batch in zip(held, found.full, strict=True))


def test_batches_of_plain_spark_are_sorted_and_read_one_by_one(spark, tmp_path):
    flows = [Flow(20, {"k": 50}, seed) for seed in (1, 2)]
    query = partial(spark_plain.pairs, band=1, delay=f"{DISORDER:g} seconds")
    found = ran(spark, tmp_path, Side("spark", HDFS, query, SORTED), *flows).results
    assert found[BATCH].is_sorted()
    assert found[BATCH].n_unique() > 1
    assert all(own[TIME].is_sorted() for own in found.partition_by(BATCH))
