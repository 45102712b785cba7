"""The driver checks that a run can continue from its checkpoint and is alone in its folders.

Spark continues from damaged logs as if they had never been longer: rows are then counted twice or
written nowhere, without an error. Therefore the logs are checked before the query starts, and an
error of Spark about a checkpoint becomes one that names the file and says what to do.

Invariant: a run starts only if its sources' logs and the folder of its results list every batch
that its checkpoint lists, so that no batch is taken for a new one.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Container, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from lowwater.engines.run import RunOptions
from lowwater.engines.spark.driver.written_files import LOG, WHOLE
from lowwater.errors import CheckpointError, SinkError, StreamError
from lowwater.sinks import Folder, FolderLock, FolderLocked

ADVICE = (
    "Put back a copy of the whole checkpoint, or start from a new checkpoint with a new folder for"
    " results: it begins where its sources begin, without the windows that were open."
)
LOGS = ("offsets", "commits")
CHECKED = ("metadata", "offsets/*", "commits/*", "sources/*/*", "state/*/_*/**/*")
"""Files of a checkpoint that are small and checked whole; Spark checks those with rows itself."""
SINK_VERSION = "v1"
"""The format of the log of a folder of results."""
_VERSION = re.compile(rb"v\d+\n")
_NUMBERED = re.compile(r"\d+")
_CHUNK = 512
_PLAN, _TRACEBACK = "=== Streaming Query ===", "Traceback (most recent call last):"
_OF_STATE = re.compile(
    r"STATE_STORE|STATE_SCHEMA|STATEFUL_OPERATOR|STREAMING_CHECKPOINT|STATE_METADATA|CHECKPOINT_"
    r"|INVALID_LOG_VERSION|MALFORMED_LOG|checkpoint|ChecksumException|Checksum error"
    r"|[Oo]ffset ?[Ll]og|[Cc]ommit ?[Ll]og|MetadataLog|metadata log|RocksDB|changelog"
    r"|MISSING_METADATA"
)


@dataclass(frozen=True)
class BatchNumbers:
    """The numbers of the last batches of a checkpoint, from 0; -1 if there is none."""

    planned: int
    """The last batch whose rows were chosen."""
    done: int
    """The last batch that has ended: ``planned``, or the one before."""

    @property
    def fresh(self) -> bool:
        """True if no batch was planned."""
        return self.planned < 0


class LockedFolders:
    """The folders of a run, locked until it ends."""

    def __init__(self, options: RunOptions, checkpoint: Path, results: Path):
        self._held = ExitStack()
        try:
            self._take(options, checkpoint, results)
        except BaseException:
            self._held.close()
            raise

    def release(self) -> None:
        """Unlock the folders."""
        self._held.close()

    def _take(self, options: RunOptions, checkpoint: Path, results: Path) -> None:
        own = options.checkpoint is not None
        if own:
            self._claim_checkpoint(checkpoint)
        self.progress = progress_of(checkpoint)
        folder = folder_of(options.sink)
        if folder is not None:
            self._held.callback(folder.lock().release)
            _check_results(folder, self.progress, checkpoint)
        elif options.sink is None and own:
            _check_log(results, self.progress, checkpoint)
        for late in _late_folders(options.late_sink):
            self._held.callback(late.lock().release)
            _check_late(late, self.progress, checkpoint)

    def _claim_checkpoint(self, checkpoint: Path) -> None:
        try:
            checkpoint.mkdir(parents=True, exist_ok=True)
            self._held.callback(FolderLock(checkpoint).release)
        except FolderLocked:
            raise CheckpointError(
                f"another run uses the checkpoint {checkpoint} now; wait for its end or stop it, or"
                " give this run a checkpoint of its own"
            ) from None
        except OSError as error:
            raise CheckpointError(f"cannot write a checkpoint to {checkpoint}: {error}") from None


def folder_of(sink: object) -> Folder | None:
    """Return the folder that a sink is; None if it is something else."""
    if isinstance(sink, str | Path):
        return Folder(Path(sink))
    return sink if isinstance(sink, Folder) else None


# ---- the checkpoint ----------------------------------------------------------------------------


def progress_of(checkpoint: Path) -> BatchNumbers:
    """Return the last batches of a checkpoint; raises if its logs are damaged."""
    try:
        return _progress(checkpoint)
    except OSError as error:
        raise damaged(Path(error.filename or checkpoint), error.strerror or str(error)) from None


def _progress(checkpoint: Path) -> BatchNumbers:
    for pattern in CHECKED:
        for file in sorted(checkpoint.glob(pattern)):
            if not file.name.startswith("."):
                _check_sum(file)
    offsets, commits = (_batches(checkpoint / name) for name in LOGS)
    if not offsets:
        _refuse_remains(checkpoint, commits)
        return BatchNumbers(-1, -1)
    if not (checkpoint / "metadata").is_file():
        raise damaged(checkpoint / "metadata", "it is missing")
    _parse(checkpoint / "metadata", _read(checkpoint / "metadata").decode("utf-8", "replace"))
    planned, done = max(offsets), max(commits, default=-1)
    _refuse_gaps(checkpoint / "offsets", offsets, offsets[0], planned)
    _refuse_gaps(checkpoint / "commits", commits, min(commits, default=0), done)
    if not planned - 1 <= done <= planned:
        missing = checkpoint / (LOGS[0] if done > planned else LOGS[1])
        raise damaged(
            missing / str(planned + 1 if done > planned else planned - 1),
            f"it is missing: batches were planned up to {planned} and done up to {done}",
        )
    for name in LOGS:
        for file in (each for each in (checkpoint / name).iterdir() if _number(each) is not None):
            _lines(file)
    _check_sources(checkpoint, _lines(checkpoint / "offsets" / str(planned)))
    return BatchNumbers(planned, done)


def _refuse_remains(checkpoint: Path, commits: list[int]) -> None:
    """Refuse a checkpoint that lists no planned batch and still holds files of one."""
    remains = [checkpoint / "commits" / str(n) for n in commits[:1]]
    remains += [each for each in checkpoint.glob("state/*/*/*") if each.is_file()][:1]
    if remains:
        raise damaged(checkpoint / "offsets", f"it is empty or missing, but there is {remains[0]}")


def _check_sources(checkpoint: Path, offsets: list[str]) -> None:
    """Check that the sources' own logs list all that the last batch has read."""
    for place, line in enumerate(offsets[2:]):
        if not line.startswith("{"):
            continue
        last = _parse(checkpoint / "offsets", line).get("logOffset")
        if not isinstance(last, int) or last < 0:
            continue
        log = checkpoint / "sources" / str(place)
        _check_numbered(log, last)


def _check_numbered(log: Path, last: int) -> None:
    """Check that a log of numbered files has all files up to ``last``; a compact one stands for
    those before it."""
    found = {n: each for each in _files(log) if (n := _number(each)) is not None}
    whole = [n for n, each in found.items() if each.name.endswith(WHOLE)]
    first = max((n for n in whole if n <= last), default=0)
    _refuse_gaps(log, found, first, last)
    for number in sorted(found):
        for line in _lines(found[number])[1:] if number >= first else ():
            _parse(found[number], line)


def _files(folder: Path) -> list[Path]:
    return [*folder.iterdir()] if folder.is_dir() else []


def _batches(folder: Path) -> list[int]:
    return sorted(int(each.name) for each in _files(folder) if _NUMBERED.fullmatch(each.name))


def _number(file: Path) -> int | None:
    name = file.name.removesuffix(WHOLE)
    return int(name) if _NUMBERED.fullmatch(name) else None


def _refuse_gaps(folder: Path, numbers: Container[int], first: int, last: int) -> None:
    """Refuse a log of numbered files that lacks one of those from ``first`` to ``last``."""
    for number in range(first, last + 1):
        if number not in numbers:
            raise damaged(folder / str(number), "it is missing")


def _read(file: Path) -> bytes:
    if file.is_dir():
        raise damaged(file, "it is a folder")
    return file.read_bytes()


def _lines(file: Path) -> list[str]:
    """Return the lines of a file of a log; the first is the version of its format."""
    content = _read(file)
    if not _VERSION.match(content):
        raise damaged(file, "it does not begin with the version of its format")
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        raise damaged(file, "it is no text") from None


def _parse(file: Path, line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise damaged(file, "it is no JSON")
    return found


def _check_sum(file: Path) -> None:
    """Compare a file with the sums that Hadoop keeps beside it on a local disk, if it does."""
    sums = file.with_name(f".{file.name}.crc")
    if not sums.is_file() or not file.exists():
        return
    if file.is_dir():
        raise damaged(file, "it is a folder")
    kept, content = sums.read_bytes(), file.read_bytes()
    if kept[:4] != b"crc\0" or int.from_bytes(kept[4:8], "big") != _CHUNK:
        return
    chunks = (content[at : at + _CHUNK] for at in range(0, len(content), _CHUNK))
    if kept[8:] != b"".join(zlib.crc32(each).to_bytes(4, "big") for each in chunks):
        raise damaged(file, f"its content does not fit the sums in {sums.name}")


def damaged(file: Path, what: str) -> CheckpointError:
    """Return the error about a file of a checkpoint that is not as it was written."""
    return CheckpointError(f"the checkpoint is damaged: {file}: {what}. {ADVICE}")


# ---- folders of results ------------------------------------------------------------------------


def _check_results(folder: Folder, progress: BatchNumbers, checkpoint: Path) -> None:
    """Refuse a folder whose files could be taken for those that this run will write."""
    if not progress.fresh:
        if folder.mode == "replace":
            raise SinkError(
                f'{folder.path}: mode="replace" begins anew, and {checkpoint} goes on from batch'
                f" {progress.planned}; remove the checkpoint too, or leave mode= out"
            )
        _check_log(folder.path, progress, checkpoint)
        return
    if folder.mode == "replace":
        folder.remove_results()
    if folder.mode == "append" and (any(folder.path.glob("*.*")) or (folder.path / LOG).exists()):
        raise SinkError(
            f"{folder.path} already holds files, and Spark adds to a folder only from the"
            " checkpoint it was written with; go on from that checkpoint, or give another folder"
        )
    if folder.mode != "append":
        folder.refuse_if_used()


def _check_log(folder: Path, progress: BatchNumbers, checkpoint: Path) -> None:
    """Check the log of a folder of results against the checkpoint.

    Spark skips a batch that is in the folder's log, and shows readers only files that are in it.
    """
    log = folder / LOG
    if not log.exists() or (progress.fresh and not _files(log)):
        return
    if not log.is_dir():
        raise damaged(log, "it is no folder")
    for file in _files(log):
        if _number(file) is not None:
            _check_sum(file)
    found = sorted({n for each in _files(log) if (n := _number(each)) is not None})
    if not found:
        if progress.done < 0:  # killed before the end of the first batch
            return
        raise damaged(log, "it lists no batch")
    if found[-1] > progress.planned:
        raise CheckpointError(
            f"{folder} holds results up to batch {found[-1]}, and {checkpoint} knows of batches up"
            f" to {progress.planned} only: new answers would be passed over as written. Give the"
            " checkpoint that the folder was written with, or a new folder"
        )
    if found[-1] < progress.done:
        raise damaged(
            log / str(progress.done),
            f"it is missing: {checkpoint} has done batches up to {progress.done}",
        )
    whole = [n for n in found if (log / f"{n}{WHOLE}").exists()]
    first = max(whole, default=found[0])
    _refuse_gaps(log, found, first, found[-1])
    for number in range(first, found[-1] + 1):
        _check_listed(folder, log / str(number))


def _check_listed(folder: Path, file: Path) -> None:
    """Check that all files are there that the log lists for one batch."""
    version, *lines = _lines(file if file.exists() else file.with_name(f"{file.name}{WHOLE}"))
    if version != SINK_VERSION:
        raise damaged(file, f"its format is {version}, and Spark reads {SINK_VERSION}")
    for line in lines:
        listed = Path(str(_parse(file, line).get("path", "")))
        if not (folder / listed.name).is_file():
            raise damaged(folder / listed.name, f"it is missing, and {file} lists it")


def _check_late(folder: Folder, progress: BatchNumbers, checkpoint: Path) -> None:
    """Refuse a folder with late rows of batches that the checkpoint does not know: files are named
    by batch, so this run would overwrite them."""
    if folder.mode == "replace" and progress.fresh:
        for file in folder.path.glob("batch-*.parquet"):
            file.unlink(missing_ok=True)
    names = [each.name.split("-") for each in folder.path.glob("batch-*.parquet")]
    last = max((int(n[1]) for n in names if n[1].isdigit()), default=-1)
    if last > progress.planned:
        raise SinkError(
            f"{folder.path} already holds late rows of batch {last}, which {checkpoint} does not"
            " know of; give an empty folder, or the checkpoint they were written with"
        )


def _late_folders(given: object) -> Iterator[Folder]:
    targets = given.values() if isinstance(given, Mapping) else [given]
    seen: set[Path] = set()
    for folder in map(folder_of, targets):
        if folder is not None and folder.path.absolute() not in seen:
            seen.add(folder.path.absolute())
            yield folder


# ---- errors of Spark ---------------------------------------------------------------------------


def about_checkpoint(trouble: BaseException, checkpoint: Path, fresh: bool) -> BaseException:
    """Return the error as a :class:`CheckpointError` if it is one of Spark's about a checkpoint.

    ``trouble`` is an error that :func:`~lowwater.engines.spark.wire.errors.translate` returned.
    """
    if fresh or type(trouble) is not StreamError or trouble.__cause__ is None:
        return trouble
    texts = [each.partition(_PLAN)[0] for each in _texts(trouble)]
    if any(_TRACEBACK in each for each in texts):  # it comes from a worker, not from Spark's logs
        return trouble
    files = [
        found.rstrip(".,;:'\")]")
        for text in texts
        for found in re.findall(rf"{re.escape(str(checkpoint))}/[^\s,'\"()\[\]]*", text)
    ]
    if not files and not any(_OF_STATE.search(text) for text in texts):
        return trouble
    file = Path(max(files, key=len)) if files else checkpoint
    error = damaged(file, f"Spark cannot go on from it: {trouble}")
    error.__cause__ = trouble.__cause__
    return error


def _texts(error: BaseException | None) -> Iterator[str]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield str(error)
        error = error.__cause__
