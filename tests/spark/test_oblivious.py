"""Joins without a window on Spark: nothing is lost where disorder is known, also over a restart."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from tests.support.oracle import answer, table_rows
from tests.unit.engine.test_oblivious_batches import far_apart, log, scrambling

ROWS, BEHIND, FILES = 4_000, 1_200, 8
MEMORY = 32_000
"""Less than half of what the rows take by which one input is ahead."""


def frames() -> list[pl.DataFrame]:
    """Two rows an epoch; the second input is so many epochs behind."""
    return [log(0, 1, ROWS), log(1, 1, ROWS, behind=BEHIND)]


def stream(source: Any, at: int, frame: pl.DataFrame) -> lw.Stream:
    disorder = scrambling(frame["epoch"].to_numpy())
    return lw.stream(
        source, name=f"s{at}", time="epoch", progress=lw.unpromised(disorder, multiplicity=2)
    )


def expected() -> Any:
    sql = "SELECT s0.epoch, s0.v0, s1.v1 FROM s0 JOIN s1 USING (epoch)"
    return answer(sql, dict(zip(("s0", "s1"), frames(), strict=True)))


@pytest.mark.parametrize("strategy", ["plain", "msf", "dbf", "hybrid", "auto"])
def test_every_result_is_found_as_in_one_process(spark, strategy):
    streams = [stream(frame, at, frame) for at, frame in enumerate(frames())]
    limit = {} if strategy in ("plain", "msf") else {"memory": MEMORY}
    query = lw.join(streams, on="epoch", strategy=strategy, **limit)
    run = query.run(engine="spark", session=spark, chunk_rows=ROWS // FILES, buckets=2)
    run.await_termination()
    found = table_rows(pl.from_arrow(run.results()))
    assert found == expected() == table_rows(pl.from_arrow(query.collect()))
    about = run.metrics().operator("obliviousjoin").about
    assert about["late rows"] == 0
    if strategy != "auto":  # which may give rows up that nobody meets; the estimate counts them
        assert about["accuracy"] == 1.0


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
def test_joins_share_a_memory_budget(spark):
    """Two joins, one of them of inputs far apart; and a budget that is too small is told, or ends
    the run."""
    one = [stream(frame, at, frame) for at, frame in enumerate(frames())]
    other = log(2, 1, ROWS)
    streams = [lw.join(one, on="epoch"), stream(other, 2, other)]
    query = lw.join(streams, on="epoch")
    options = {"engine": "spark", "session": spark, "chunk_rows": ROWS // FILES, "buckets": 2}
    run = query.run(**options, memory="1 MB")
    run.await_termination()
    sql = "SELECT s0.epoch, v0, v1, v2 FROM s0 JOIN s1 USING (epoch) JOIN s2 USING (epoch)"
    given = dict(zip(("s0", "s1", "s2"), [*frames(), other], strict=True))
    assert table_rows(pl.from_arrow(run.results())) == answer(sql, given)
    joins = [each.about for each in run.metrics().operators if "memory share" in each.about]
    assert [each["memory budget"] for each in joins] == [1_000_000] * 2
    assert sum(each["memory share"] for each in joins) <= 1_000_000
    wild = [
        lw.stream(each, name=f"w{at}", time="epoch", progress=lw.unpromised())
        for at, each in enumerate(frames())
    ]
    refused = lw.join(wild, on="epoch", strategy="plain").run(
        **options, memory="1 kB", admission="refuse"
    )
    with pytest.raises(lw.AdmissionError, match="the joins of the fullest bucket need"):
        refused.await_termination()


def test_too_many_lost_results_are_told(spark):
    """All buckets together are judged, and one warning comes."""
    frames = far_apart()
    streams = [
        lw.stream(each, name=f"s{at}", time="epoch", progress=lw.unpromised())
        for at, each in enumerate(frames)
    ]
    query = lw.join(streams, on="epoch", accuracy=0.999)
    run = query.run(engine="spark", session=spark, chunk_rows=250, buckets=2)
    with pytest.warns(lw.StreamWarning, match="obliviousjoin.*fewer than 99.9 %") as told:
        run.await_termination()
    assert len(told) == 1
    about = run.metrics().operator("obliviousjoin").about
    assert about["results found"] == run.results().num_rows
    assert about["accuracy"] == pytest.approx(run.results().num_rows / 4_000, abs=0.005)


def write(folder: Path, at: int, numbers: range) -> None:
    """Some of the files of an input; each is a batch, read in several tasks."""
    (folder / f"{at}").mkdir(parents=True, exist_ok=True)
    frame = frames()[at]
    edges = np.linspace(0, frame.height, FILES + 1).astype(int)
    for number in numbers:
        path = folder / f"{at}" / f"{number:03d}.parquet"
        frame[edges[number] : edges[number + 1]].write_parquet(path, row_group_size=100)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def test_a_run_goes_on_from_its_checkpoint_with_what_it_had_put_aside(spark, tmp_path):
    def query() -> lw.Stream:
        streams = []
        for at, frame in enumerate(frames()):
            reader = spark.readStream.schema(f"epoch bigint, v{at} bigint")
            reader = reader.option("maxFilesPerTrigger", 1)
            streams.append(stream(reader.parquet(str(tmp_path / "in" / f"{at}")), at, frame))
        return lw.join(streams, on="epoch", strategy="dbf", memory=MEMORY)

    on_disk = []
    for numbers in (range(FILES // 2), range(FILES // 2, FILES)):
        for at in (0, 1):
            write(tmp_path / "in", at, numbers)
        run = query().run(
            engine="spark",
            session=spark,
            sink=tmp_path / "out",
            checkpoint=tmp_path / "cp",
            trigger="available-now",
        )
        run.await_termination()
        on_disk.append(run.metrics().operator("obliviousjoin").about["rows on disk[0]"])
    assert on_disk[0] > 500
    found = pl.from_arrow(spark.read.parquet(str(tmp_path / "out")).toArrow())
    assert table_rows(found) == expected()
