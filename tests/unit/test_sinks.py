"""Where results go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import lowwater as lw
from lowwater.sinks import Folder, FolderSink
from tests.unit.running import finished

FRAME = pl.DataFrame({"ts": [1, 5, 2, 6], "v": [1, 2, 3, 4]})


def stream() -> lw.Stream:
    return lw.stream(FRAME, name="s", time="ts")


@pytest.mark.parametrize("kind", [str, Path])
def test_a_folder_gets_parquet_files(tmp_path: Path, kind: Any) -> None:
    folder = tmp_path / "new" / "results"
    finished(stream(), sink=kind(folder), chunk_rows=1)
    assert [file.name for file in folder.iterdir()] == ["part-00000.parquet"]
    assert pl.read_parquet(folder / "*.parquet")["ts"].to_list() == [1, 5, 6]


def test_a_folder_that_holds_results_is_refused(tmp_path: Path) -> None:
    finished(stream(), sink=tmp_path)
    with pytest.raises(lw.SinkError, match="already holds Parquet files; give an empty folder"):
        stream().run(sink=tmp_path)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("x")
    with pytest.raises(lw.SinkError, match="cannot write results to"):
        stream().run(sink=tmp_path / "taken")


def test_files_are_cut_at_their_limit_and_complete_before_they_have_their_name(
    tmp_path: Path,
) -> None:
    sink = FolderSink(Folder(tmp_path), rows_per_file=2)
    for at in range(5):
        sink.write(pl.DataFrame({"v": [at]}))
        assert not list(tmp_path.glob(".*"))
    sink.close()
    files = sorted(tmp_path.iterdir())
    assert [file.name for file in files] == [f"part-0000{n}.parquet" for n in range(3)]
    assert [pl.read_parquet(file).height for file in files] == [2, 2, 1]


@pytest.mark.parametrize(("kind", "read"), [("parquet", pl.read_parquet), ("csv", pl.read_csv)])
def test_a_query_without_results_writes_a_file_of_columns(
    tmp_path: Path, kind: str, read: Any
) -> None:
    finished(stream().where("v > 99"), sink=Folder(tmp_path, kind))
    [file] = tmp_path.iterdir()
    assert file.name == f"part-00000.{kind}"
    assert (read(file).columns, read(file).height) == (["ts", "v"], 0)


def test_a_query_without_results_writes_no_json_and_no_late_rows(tmp_path: Path) -> None:
    out, late = tmp_path / "out", tmp_path / "late"
    sorted_rows = lw.stream(FRAME.sort("ts"), time="ts")
    finished(sorted_rows.where("v > 99"), sink=Folder(out, "json"), late_sink=late)
    assert [*out.iterdir(), *late.iterdir()] == []


def test_a_run_that_fails_without_results_leaves_the_folder_as_it_was(tmp_path: Path) -> None:
    strict = lw.stream(FRAME, time="ts", late="fail").where("v > 99")
    with pytest.raises(lw.BrokenPromise):
        finished(strict, sink=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_function_gets_arrow_tables_as_they_come() -> None:
    got: list[pa.Table] = []
    finished(stream(), sink=got.append, chunk_rows=1)
    assert all(isinstance(table, pa.Table) for table in got)
    assert [table["ts"].to_pylist() for table in got] == [[1], [5], [6]]


def test_a_sink_of_ones_own_is_written_to_and_closed() -> None:
    class Mine:
        def __init__(self) -> None:
            self.rows, self.closed = 0, 0

        def write(self, chunk: pl.DataFrame) -> None:
            assert not self.closed
            self.rows += chunk.height

        def close(self) -> None:
            self.closed += 1

    results, late = Mine(), Mine()
    finished(stream(), sink=results, late_sink=late)
    assert (results.rows, results.closed) == (3, 1)
    assert (late.rows, late.closed) == (1, 1)


def test_a_late_sink_gets_the_refused_rows_with_their_stream() -> None:
    got: list[dict[str, Any]] = []
    run = finished(stream(), late_sink=lambda table: got.extend(table.to_pylist()))
    assert got == [
        {
            "ts": 2,
            "v": 3,
            "_reason": "late",
            "_late_by_seconds": 3.0,
            "_mark": 5,
            "_stream": "s",
        }
    ]
    assert run.late_rows().num_rows == 0
    assert run.metrics().late_rows == 1


def test_a_late_sink_may_be_a_folder(tmp_path: Path) -> None:
    finished(stream(), sink=tmp_path / "good", late_sink=tmp_path / "late")
    assert pl.read_parquet(tmp_path / "late" / "*.parquet")["_stream"].to_list() == ["s"]


def test_dropped_rows_do_not_reach_the_late_sink() -> None:
    got: list[pa.Table] = []
    finished(lw.stream(FRAME, time="ts", late="drop"), late_sink=got.append)
    assert got == []


def test_a_late_folder_takes_rows_refused_for_different_reasons(tmp_path: Path) -> None:
    mixed = lw.stream(pl.DataFrame({"ts": [5, 1, None]}), time="ts")
    finished(mixed, late_sink=tmp_path, chunk_rows=1)
    assert pl.read_parquet(tmp_path / "*.parquet")["_reason"].to_list() == ["late", "no time"]


def test_a_sink_that_fails_ends_the_run_with_a_sink_error() -> None:
    def fail(table: pa.Table) -> None:
        raise ValueError("no room")

    run = stream().run(sink=fail)
    with pytest.raises(lw.SinkError, match="the sink failed: ValueError: no room") as caught:
        run.await_termination(60)
    assert isinstance(caught.value.__cause__, ValueError)
