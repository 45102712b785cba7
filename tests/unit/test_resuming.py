"""Logs of a checkpoint and of the folder that goes with it, damaged in every way, without Spark."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import lowwater as lw
from lowwater.engines.run import RunOptions
from lowwater.engines.spark.driver.checkpoint_folder import (
    BatchNumbers,
    LockedFolders,
    about_checkpoint,
    progress_of,
)
from lowwater.errors import CheckpointError, SinkError, StreamError

BATCHES = 4
Damage = Callable[[Path], None]


def put(path: Path, *lines: object, version: str | None = "v1") -> None:
    """A file of a log, with sums beside it as Hadoop writes them."""
    path.parent.mkdir(parents=True, exist_ok=True)
    texts = [each if isinstance(each, str) else json.dumps(each) for each in lines]
    content = "\n".join([*([version] if version else []), *texts]).encode()
    path.write_bytes(content)
    chunks = [content[at : at + 512] for at in range(0, len(content), 512)]
    sums = b"".join(zlib.crc32(each).to_bytes(4, "big") for each in chunks)
    path.with_name(f".{path.name}.crc").write_bytes(b"crc\0" + (512).to_bytes(4, "big") + sums)


def made(home: Path, batches: int = BATCHES) -> Path:
    """A checkpoint of so many batches and the folder they were written to."""
    cp, out = home / "cp", home / "out"
    put(cp / "metadata", {"id": "8d6c"}, version=None)
    for n in range(batches):
        put(cp / "offsets" / str(n), {"batchWatermarkMs": 0, "pad": "x" * 600}, {"logOffset": n})
        put(cp / "commits" / str(n), {"nextBatchWatermarkMs": 0})
        put(cp / "sources" / "0" / str(n), {"path": f"file:///in/{n}.parquet", "batchId": n})
        put(out / "_spark_metadata" / str(n), {"path": f"file://{out}/part-{n}.parquet"})
        (out / f"part-{n}.parquet").write_bytes(b"rows")
    put(cp / "state" / "0" / "_metadata" / "v2" / "0", {"operatorInfo": {}}, version="v2")
    return cp


def places(home: Path, **options: Any) -> LockedFolders:
    given = {"sink": home / "out", "checkpoint": home / "cp"} | options
    return LockedFolders(RunOptions(**given), home / "cp", home / "cp" / "results")


def remove(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def make_a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def fill_with_noise(path: Path) -> None:
    path.write_bytes(bytes(range(256)))


def without_sums(damage: Damage) -> Damage:
    """The same on a file system that keeps no sums."""

    def act(path: Path) -> None:
        path.with_name(f".{path.name}.crc").unlink()
        damage(path)

    act.__name__ = f"{damage.__name__}, no sums"
    return act


FOUND = (remove, empty, cut, flip, make_a_folder, fill_with_noise)
DAMAGES: tuple[Damage, ...] = (
    *FOUND,
    *map(without_sums, (remove, empty, make_a_folder, fill_with_noise)),
)
LOGS = [
    "cp/metadata",
    *(f"cp/{log}/{n}" for log in ("offsets", "commits", "sources/0") for n in range(BATCHES)),
    *(f"out/_spark_metadata/{n}" for n in range(BATCHES)),
]


def test_what_was_not_damaged_is_gone_on_with(tmp_path: Path) -> None:
    assert progress_of(made(tmp_path)) == BatchNumbers(BATCHES - 1, BATCHES - 1)
    (tmp_path / "cp" / "offsets" / "stranger.txt").write_text("not ours")
    (tmp_path / "out" / "_spark_metadata" / ".3.tmp").write_text("left by a kill")
    places(tmp_path).release()


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("log", LOGS)
def test_a_damaged_log_is_refused_by_name_or_does_not_matter(
    tmp_path: Path, log: str, damage: Damage
) -> None:
    made(tmp_path)
    damage(tmp_path / log)
    harmless = {  # the batch is then run again, and what it wrote is in the folder already
        f"cp/commits/{BATCHES - 1}": ("remove", "remove, no sums"),
        **{f"cp/{kind}/0": ("remove", "remove, no sums") for kind in ("offsets", "commits")},
        "out/_spark_metadata/0": ("remove", "remove, no sums"),
    }
    if damage.__name__ in harmless.get(log, ()):
        places(tmp_path).release()
        return
    with pytest.raises(CheckpointError) as caught:
        places(tmp_path)
    told = str(caught.value)
    assert str(tmp_path / log) in told or str(tmp_path / log).rpartition("/")[0] in told
    assert "Put back a copy" in told or "new folder" in told
    places_again = tmp_path / "other"
    made(places_again)
    places(places_again).release()


@pytest.mark.parametrize("folder", ["cp/offsets", "cp/commits", "cp/sources/0", "cp/sources"])
def test_a_folder_of_the_checkpoint_that_is_missing_is_refused(tmp_path: Path, folder: str) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / folder)
    with pytest.raises(CheckpointError):
        places(tmp_path)


def test_a_batch_that_was_planned_and_not_done_is_gone_on_with(tmp_path: Path) -> None:
    cp = made(tmp_path)
    put(cp / "offsets" / str(BATCHES), {}, {"logOffset": BATCHES - 1})
    assert progress_of(cp) == BatchNumbers(BATCHES, BATCHES - 1)
    put(cp / "offsets" / str(BATCHES + 1), {}, {"logOffset": BATCHES - 1})
    with pytest.raises(CheckpointError, match=rf"commits/{BATCHES}.* is missing"):
        progress_of(cp)


def test_old_batches_are_left_out_of_logs_and_folded(tmp_path: Path) -> None:
    cp = made(tmp_path, 13)
    log = tmp_path / "out" / "_spark_metadata"
    for n in range(11):
        for folder in ("offsets", "commits"):
            (cp / folder / str(n)).unlink()
        if n < 10:
            (cp / "sources" / "0" / str(n)).unlink()
            (log / str(n)).unlink()
    put(cp / "sources" / "0" / "9.compact", *({"path": f"f{n}"} for n in range(10)))
    put(log / "9.compact", *({"path": f"part-{n}.parquet"} for n in range(10)))
    assert progress_of(cp) == BatchNumbers(12, 12)
    places(tmp_path).release()
    (cp / "sources" / "0" / "9.compact").unlink()
    with pytest.raises(CheckpointError, match="sources/0/0: it is missing"):
        progress_of(cp)


# ---- one run at a time -------------------------------------------------------------------------


def test_a_checkpoint_in_use_is_refused_and_so_is_a_folder(tmp_path: Path) -> None:
    made(tmp_path)
    first = places(tmp_path)
    with pytest.raises(CheckpointError, match="another run uses the checkpoint"):
        places(tmp_path, sink=tmp_path / "elsewhere")
    other = tmp_path / "second"
    made(other)
    with pytest.raises(SinkError, match="another run is writing to"):
        places(other, sink=tmp_path / "out")
    with pytest.raises(SinkError, match="another run is writing to"):
        places(other, late_sink={"s": tmp_path / "out"})
    first.release()
    places(tmp_path).release()
    places(other).release()


@pytest.mark.parametrize("mode", ["fail", "append", "replace"])
def test_a_new_checkpoint_with_a_folder_that_spark_has_written_to(
    tmp_path: Path, mode: Any
) -> None:
    made(tmp_path)
    shutil.rmtree(tmp_path / "cp")
    folder = lw.folder(tmp_path / "out", mode=mode)
    if mode == "replace":
        (tmp_path / "out" / "notes.txt").write_text("mine")
        places(tmp_path, sink=folder).release()
        assert [each.name for each in (tmp_path / "out").iterdir()] == ["notes.txt"]
        return
    with pytest.raises(SinkError, match="already holds"):
        places(tmp_path, sink=folder)
    assert len(list((tmp_path / "out").glob("*.parquet"))) == BATCHES


def test_a_folder_ahead_of_the_checkpoint_is_refused(tmp_path: Path) -> None:
    made(tmp_path, 2)
    made(tmp_path / "far", 5)
    with pytest.raises(CheckpointError, match=r"up to batch 4.*up to 1 only"):
        places(tmp_path, sink=tmp_path / "far" / "out")
    places(tmp_path, sink=tmp_path / "new").release()
    with pytest.raises(SinkError, match="begins anew"):
        places(tmp_path, sink=lw.folder(tmp_path / "out", mode="replace"))


def test_late_rows_of_another_checkpoint_are_not_written_over(tmp_path: Path) -> None:
    made(tmp_path, 2)
    late = tmp_path / "late"
    late.mkdir()
    (late / "batch-00000001-0-0.parquet").write_bytes(b"rows")
    places(tmp_path, late_sink=late).release()
    (late / "batch-00000002-0-0.parquet").write_bytes(b"rows")
    with pytest.raises(SinkError, match="already holds late rows of batch 2"):
        places(tmp_path, late_sink=late)


# ---- errors of Spark ---------------------------------------------------------------------------


def spark_error(text: str) -> StreamError:
    error = StreamError(text.partition("\n")[0])
    error.__cause__ = RuntimeError(text)
    return error


@pytest.mark.parametrize(
    "text",
    [
        "[CANNOT_LOAD_STATE_STORE.UNCATEGORIZED] An error occurred during loading state.",
        "Job aborted\nCaused by: java.io.FileNotFoundException: File {cp}/state/0/0/3.changelog",
        "org.apache.hadoop.fs.ChecksumException: Checksum error: file:{cp}/state/0/0/1.zip at 0",
    ],
)
def test_an_error_about_the_state_names_its_file_and_what_to_do(tmp_path: Path, text: str) -> None:
    told = about_checkpoint(spark_error(text.format(cp=tmp_path)), tmp_path, fresh=False)
    assert isinstance(told, CheckpointError)
    assert str(tmp_path) in str(told)
    assert "Put back a copy of the whole checkpoint" in str(told)


@pytest.mark.parametrize(
    "text",
    [
        "Job aborted\n=== Streaming Query ===\nlogs in {cp}/offsets/3 checkpoint",
        "ValueError: the checkpoint\nTraceback (most recent call last):\n {cp}/state/0",
        "java.lang.OutOfMemoryError: heap",
    ],
)
def test_other_errors_stay_what_they_are(tmp_path: Path, text: str) -> None:
    error = spark_error(text.format(cp=tmp_path))
    assert about_checkpoint(error, tmp_path, fresh=False) is error
    error = spark_error(text.format(cp=tmp_path))
    assert about_checkpoint(error, tmp_path, fresh=True) is error
