"""A checkpoint of a replay knows its log again, and no other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark import cloudpickle
from pyspark.sql.streaming.datasource import ReadMaxRows

import lowwater as lw
from lowwater.engines.spark.sources.replay import LogPrint, ReplayLog, ReplayStreamReader
from lowwater.sources.replay import Replay

ROWS = pl.DataFrame({"at": range(6), "v": [1.0, None, 3.0, 4.0, 5.0, 6.0], "k": ["a", "b"] * 3})
CUTS = (0, 2, 4, 6)
EVERYTHING = {"rows": ROWS, "arrival": "at", "cuts": CUTS, "live": False}


def reader(folder: Path, **changed: Any) -> ReplayStreamReader:
    """A reader of a log, as another run makes it again."""
    given = EVERYTHING | changed
    log = Replay(given["rows"], given["arrival"])
    known = LogPrint.of(log, given["cuts"], given["live"])
    about = ReplayLog(None, "", log.times, given["cuts"], given["live"], known)  # type: ignore[arg-type]
    path = folder / "log"
    path.write_bytes(cloudpickle.dumps(about))  # type: ignore[no-untyped-call]
    return ReplayStreamReader(str(path))


def places(log: ReplayStreamReader) -> list[dict[str, Any]]:
    """All offsets of a log, from the first to its end."""
    found = [log.initialOffset()]
    while not found[-1]["ended"]:
        found.append(log.latestOffset(found[-1], ReadMaxRows(1)))
    return found


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "grown": ({"rows": ROWS.vstack(ROWS.tail(1)), "cuts": (0, 2, 4, 7)}, "6 rows, and has 7"),
    "shrunk": ({"rows": ROWS.head(5), "cuts": (0, 2, 4, 5)}, "6 rows, and has 5"),
    "a value": ({"rows": ROWS.with_columns(v=pl.col("v").fill_null(0))}, "some of them differ"),
    "in order": ({"rows": ROWS[[1, 0, 2, 3, 4, 5]], "arrival": None}, "some of them differ"),
    "arrivals": ({"arrival": None}, "some of them differ"),
    "a type": ({"rows": ROWS.with_columns(pl.col("v").cast(pl.Float32))}, "it had the columns at "),
    "a name": ({"rows": ROWS.rename({"v": "w"})}, "it had the columns at "),
    "the cuts": ({"cuts": (0, 3, 6)}, "chunk_rows= or tick= was different"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_log_that_changed_is_refused_wherever_it_was_left(tmp_path: Path, name: str) -> None:
    left = places(reader(tmp_path))
    assert len(left) == len(CUTS)
    changes, says = CHANGES[name]
    other = reader(tmp_path, **changes)
    for place in left:
        with pytest.raises(Exception, match=says) as caught:
            other.latestOffset(place, ReadMaxRows(1))
        assert "CheckpointError" in str(caught.value)  # the planner's process carries it so
    with pytest.raises(Exception, match=says):
        other.partitions(left[0], left[1])


def test_the_same_log_goes_on_wherever_it_was_left(tmp_path: Path) -> None:
    left = places(reader(tmp_path))
    again = reader(tmp_path, rows=ROWS.head(2).vstack(ROWS.tail(4)))  # other chunks, same rows
    for place, after in zip(left, [*left[1:], left[-1]], strict=True):
        assert again.latestOffset(place, ReadMaxRows(1)) == after


def test_a_log_played_by_the_clock_may_be_cut_otherwise(tmp_path: Path) -> None:
    place = reader(tmp_path, live=True).initialOffset()
    other = reader(tmp_path, live=True, cuts=(0, 6))
    assert other.latestOffset(place, ReadMaxRows(1))["row"] > 0


def test_a_checkpoint_that_knows_nothing_of_its_log_goes_on(tmp_path: Path) -> None:
    place = {"step": 1, "row": 2, "at": 0, "ended": False}
    assert reader(tmp_path).latestOffset(place, ReadMaxRows(1))["row"] == 4
    with pytest.raises(lw.CheckpointError):
        LogPrint.of(Replay(ROWS), CUTS, False).refuse_other({"columns": "", "rows": 0})
