"""Folders of results: what is counted can be read, and no run loses another's files."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

import lowwater as lw
from lowwater.sinks import FolderSink, folder_lock
from lowwater.sinks.folder_lock import LOCK_FILE
from tests.unit.running import LONG, finished

NEVER = "1 day"
READERS: dict[str, Callable[[Path], pl.DataFrame]] = {
    "parquet": pl.read_parquet,
    "csv": pl.read_csv,
    "json": pl.read_ndjson,
}


def until(found: Callable[[], Any]) -> Any:
    """Wait for something that must come."""
    last = time.monotonic() + LONG
    while not (value := found()):
        assert time.monotonic() < last
        time.sleep(0.005)
    return value


def frame(rows: int, first: int = 0) -> pl.DataFrame:
    return pl.DataFrame({"ts": range(first, first + rows)})


def query(rows: int = 3, first: int = 0) -> lw.Stream:
    return lw.stream(frame(rows, first), name="s", time="ts")


def seen(folder: Path, kind: str = "parquet") -> list[int]:
    """What a reader finds."""
    return [t for file in sorted(folder.glob(f"*.{kind}")) for t in READERS[kind](file)["ts"]]


# ---- rows_out is what readers see --------------------------------------------------------------


@pytest.mark.parametrize("kind", READERS)
def test_rows_are_written_by_time_while_no_rows_come(tmp_path: Path, kind: str) -> None:
    door = lw.push({"ts": pl.Int64})
    run = lw.stream(door, name="s", time="ts").run(sink=lw.folder(tmp_path, kind, flush_every=0.01))
    door.send([{"ts": 1}, {"ts": 2}])
    until(lambda: run.metrics().rows_out == 2)
    assert seen(tmp_path, kind) == [1, 2]
    assert run.active
    assert run.metrics().rows_waiting == 0
    door.send({"ts": 3})
    until(lambda: run.metrics().rows_out == 3)
    assert seen(tmp_path, kind) == [1, 2, 3]
    run.stop()


def test_rows_that_wait_are_told_apart_from_rows_that_are_out(tmp_path: Path) -> None:
    door = lw.push({"ts": pl.Int64})
    run = lw.stream(door, name="s", time="ts").run(sink=lw.folder(tmp_path, flush_every=NEVER))
    door.send([{"ts": 1}, {"ts": 2}])
    until(lambda: run.metrics().rows_waiting == 2)
    assert run.metrics().rows_out == 0
    assert seen(tmp_path) == []
    run.stop()
    assert run.metrics().rows_out == 2
    assert run.metrics().rows_waiting == 0
    assert seen(tmp_path) == [1, 2]


@pytest.mark.parametrize(
    "limit",
    [{"flush_rows": 2}, {"flush_size": 16}, {"flush_every": 0}],
    ids=["rows", "size", "every chunk"],
)
def test_rows_are_written_when_there_are_enough(tmp_path: Path, limit: dict[str, Any]) -> None:
    sink = FolderSink(lw.folder(tmp_path, **{"flush_every": NEVER, **limit}))
    for at in range(4):
        sink.write(frame(1, at))
        out = at + 1 if limit == {"flush_every": 0} else (at + 1) // 2 * 2
        assert (sink.rows_written, sink.rows_waiting) == (out, at + 1 - out)
        assert seen(tmp_path) == list(range(out))
    sink.close()


def test_every_row_that_is_counted_can_be_read_at_every_moment(tmp_path: Path) -> None:
    sink = FolderSink(lw.folder(tmp_path, flush_rows=7, flush_every=0.001))
    wrong: list[tuple[int, int]] = []
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            counted = sink.rows_written
            found = len(seen(tmp_path))
            if found < counted:
                wrong.append((counted, found))

    watching = threading.Thread(target=look)
    watching.start()
    for at in range(300):
        sink.write(frame(1, at))
    sink.close()
    done.set()
    watching.join()
    assert wrong == []
    assert (sink.rows_written, sink.rows_waiting) == (300, 0)
    assert seen(tmp_path) == list(range(300))


@pytest.mark.parametrize("kind", READERS)
def test_no_glob_finds_a_file_that_is_not_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    name = {"parquet": "write_parquet", "csv": "write_csv", "json": "write_ndjson"}[kind]
    write = getattr(pl.DataFrame, name)
    found: list[list[Path]] = []

    def watched(rows: pl.DataFrame, path: Path) -> None:
        write(rows, path)
        found.append([*tmp_path.rglob(f"*.{kind}")])
        raise OSError("no space left")

    monkeypatch.setattr(pl.DataFrame, name, watched)
    sink = FolderSink(lw.folder(tmp_path, kind, flush_every=0))
    with pytest.raises(lw.SinkError, match="no space left"):
        sink.write(frame(1))
    assert found == [[]]
    assert [*tmp_path.iterdir()] == []
    monkeypatch.undo()
    sink.close()
    assert seen(tmp_path, kind) == [0]


def test_a_file_that_cannot_be_written_ends_a_run_to_which_nothing_comes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(rows: pl.DataFrame, path: Path) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(pl.DataFrame, "write_parquet", full)
    door = lw.push({"ts": pl.Int64})
    for option in ("sink", "late_sink"):
        target = lw.folder(tmp_path / option, flush_every=0.001)
        run = lw.stream(door, name="s", time="ts").run(**{option: target})
        door.send([{"ts": 2}, {"ts": 1}])
        with pytest.raises(lw.SinkError, match="no space left"):
            run.await_termination(LONG)
        assert not run.active
        door = lw.push({"ts": pl.Int64})


def test_a_killed_run_leaves_all_that_it_counted(tmp_path: Path) -> None:
    program = textwrap.dedent("""
        import sys, time
        import polars as pl
        import lowwater as lw
        door = lw.push({"ts": pl.Int64})
        out = lw.folder(sys.argv[1], flush_every=0.01)
        run = lw.stream(door, name="s", time="ts").run(sink=out)
        for at in range(1_000_000):
            door.send({"ts": at})
            print(run.metrics().rows_out, flush=True)
            time.sleep(0.001)
    """)
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        counted = 0
        for line in victim.stdout:
            counted = int(line)
            if counted > 20:
                break
        victim.kill()
        counted = max([counted, *(int(line) for line in victim.stdout if line.endswith("\n"))])
    rows = seen(tmp_path)
    assert rows == list(range(len(rows)))
    assert len(rows) >= counted > 20
    assert duckdb.sql(f"SELECT count(*) FROM '{tmp_path}/*.parquet'").fetchall() == [(len(rows),)]
    finished(query(2, first=len(rows)), sink=lw.folder(tmp_path, mode="append"))  # the lock is gone
    assert seen(tmp_path) == list(range(len(rows) + 2))


# ---- one folder, two runs ----------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["fail", "append", "replace"])
def test_a_folder_that_a_run_writes_to_is_refused(tmp_path: Path, mode: Any) -> None:
    door = lw.push({"ts": pl.Int64})
    folder, again = tmp_path / "out", tmp_path / "again"
    first = lw.stream(door, name="s", time="ts").run(sink=folder)
    again.symlink_to(folder)
    for path in (folder, again):
        for option in ("sink", "late_sink"):
            with pytest.raises(lw.SinkError, match="another run is writing to"):
                query().run(**{option: lw.folder(path, mode=mode)})
    door.send({"ts": 7})
    door.close()
    assert first.await_termination(LONG)
    finished(query(), sink=lw.folder(folder, mode="append"))
    assert seen(folder) == [7, 0, 1, 2]


def test_a_folder_that_another_process_writes_to_is_refused_until_it_dies(tmp_path: Path) -> None:
    program = (
        "import sys, time\nimport polars as pl\nimport lowwater as lw\n"
        "run = lw.stream(lw.push({'ts': pl.Int64}), name='s', time='ts').run(sink=sys.argv[1])\n"
        "print('runs', flush=True)\ntime.sleep(600)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "runs\n"
        with pytest.raises(lw.SinkError, match="another run is writing to"):
            query().run(sink=tmp_path)
        holder.kill()
    finished(query(), sink=tmp_path)
    assert seen(tmp_path) == [0, 1, 2]


def test_a_sink_and_a_late_sink_cannot_share_a_folder(tmp_path: Path) -> None:
    with pytest.raises(lw.SinkError, match="another run is writing to"):
        query().run(sink=tmp_path, late_sink=tmp_path)
    finished(query(), sink=tmp_path)  # nothing is left locked


def test_streams_may_share_a_folder_of_late_rows(tmp_path: Path) -> None:
    back = pl.DataFrame({"ts": [5, 1]})
    both = lw.stream(back, name="a", time="ts").union(lw.stream(back, name="b", time="ts"))
    finished(both, late_sink={"a": tmp_path, "b": str(tmp_path)})
    assert sorted(pl.read_parquet(tmp_path / "*.parquet")["_stream"]) == ["a", "b"]


def test_a_run_that_cannot_begin_lets_go_of_its_folder(tmp_path: Path) -> None:
    with pytest.raises(lw.OptionError, match="sink= is"):
        query().run(sink=tmp_path, late_sink=3)
    with pytest.raises(lw.OptionError, match="clock= is"):
        query().run(sink=tmp_path, clock="sun")  # type: ignore[arg-type]
    finished(query(), sink=tmp_path)


@pytest.mark.parametrize("kind", READERS)
def test_a_later_run_adds_files_or_takes_their_place(tmp_path: Path, kind: str) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    finished(query(2), sink=lw.folder(tmp_path, kind))
    with pytest.raises(lw.SinkError, match="already holds"):
        query(2).run(sink=lw.folder(tmp_path, kind))
    finished(query(3, first=2), sink=lw.folder(tmp_path, kind, mode="append"))
    assert seen(tmp_path, kind) == [0, 1, 2, 3, 4]
    finished(query(1, first=9), sink=lw.folder(tmp_path, kind, mode="replace"))
    assert seen(tmp_path, kind) == [9]
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_files_of_others_are_not_removed(tmp_path: Path) -> None:
    frame(1).write_parquet(tmp_path / "mine.parquet")
    with pytest.raises(lw.SinkError, match="already holds Parquet files"):
        query().run(sink=lw.folder(tmp_path, mode="replace"))
    finished(query(2, first=1), sink=lw.folder(tmp_path, mode="append"))
    assert sorted(pl.read_parquet(tmp_path / "*.parquet")["ts"]) == [0, 1, 2]


def test_a_name_that_is_taken_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    sink = FolderSink(lw.folder(tmp_path, flush_every=0))
    frame(1, 50).write_parquet(tmp_path / "part-00000.parquet")
    sink.write(frame(1))
    sink.close()
    assert seen(tmp_path) == [50, 0]


def test_without_links_names_are_given_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_links(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr(os, "link", no_links)
    test_a_name_that_is_taken_meanwhile_is_not_written_over(tmp_path)


def test_a_folder_that_spark_wrote_is_not_added_to(tmp_path: Path) -> None:
    (tmp_path / "_spark_metadata").mkdir()
    for mode, words in (("fail", "already holds"), ("append", "was written by Spark")):
        with pytest.raises(lw.SinkError, match=words):
            query().run(sink=lw.folder(tmp_path, mode=mode))  # type: ignore[arg-type]
    finished(query(), sink=lw.folder(tmp_path, mode="replace"))
    assert seen(tmp_path) == [0, 1, 2]


def test_what_a_killed_run_left_unfinished_is_removed(tmp_path: Path) -> None:
    (tmp_path / "part-00007.parquet.unfinished").write_bytes(b"half")
    finished(query(), sink=tmp_path)
    assert [file.name for file in tmp_path.iterdir()] == ["part-00000.parquet"]


@pytest.mark.parametrize("locks", ["on files", "nowhere"])
def test_where_folders_cannot_be_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: str
) -> None:
    lock = folder_lock.fcntl.flock

    def flock(descriptor: int, operation: int) -> None:
        if locks == "nowhere" or os.path.isdir(f"/dev/fd/{descriptor}"):
            raise OSError(9, "not here")
        lock(descriptor, operation)

    monkeypatch.setattr(folder_lock.fcntl, "flock", flock)
    if locks == "nowhere":
        with pytest.warns(lw.StreamWarning, match="file system without locks"):
            finished(query(), sink=tmp_path)
        return
    sink = FolderSink(lw.folder(tmp_path))
    assert (tmp_path / LOCK_FILE).exists()
    with pytest.raises(lw.SinkError, match="another run is writing to"):
        FolderSink(lw.folder(tmp_path))
    sink.close()
    finished(query(), sink=tmp_path)


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"mode": "add"}, "mode= is fail, append, replace, not 'add'"),
        ({"format": "orc"}, "results are written as parquet, csv, json, not 'orc'"),
        ({"flush_every": -1}, "flush_every= is zero or more"),
        ({"flush_every": "soon"}, "flush_every="),
        ({"flush_rows": 0}, "flush_rows= is a whole number above zero, not 0"),
        ({"flush_size": "0 MB"}, "flush_size= is an amount of memory above zero"),
    ],
)
def test_options_that_cannot_be(option: dict[str, Any], words: str) -> None:
    with pytest.raises(lw.OptionError, match=words):
        lw.folder("out", **option)
