"""Buckets write the newest answers of each batch to files, from which the driver keeps the table of
all keys.

A file is named by batch, stage and bucket. A batch that is run again writes the same files again,
so the files of committed batches hold each change once. The driver folds them into one file of all
keys and removes them; a run that goes on from a checkpoint begins with that file.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from lowwater.engines.answers import pending_of
from lowwater.engines.spark.wire.message import packed, pickled, unpacked, unpickled
from lowwater.errors import SinkError
from lowwater.stream.element import MARK, Chunk, Element, GroupPunctuation
from lowwater.updates.answers import AnswerShape, AnswerTable, QueueKeys
from lowwater.updates.queue_kernel import QueueKernel

SUFFIX = ".answers"


@dataclass(frozen=True)
class AnswerFiles:
    """Where a stage writes answers, and which of its operators give them."""

    folder: str
    shape: AnswerShape
    result: int | None
    """The operator whose rows are the answers; None if it is in another stage."""
    queues: tuple[QueueKeys, ...]
    """The queues of the stage."""


@dataclass(frozen=True)
class AnswerChanges:
    """The changes of one bucket in one batch."""

    rows: Chunk
    """The newest answers of the batch, as :meth:`AnswerTable.rows` returns them."""
    ended: pl.DataFrame
    """The update keys whose end was reported; their answers of earlier batches are dropped."""
    pending: pl.DataFrame
    """The update keys that wait, as :class:`~lowwater.engines.answers.Answers` has them."""
    now: int
    """Clock time of the batch in nanoseconds."""


def changes_of(
    files: AnswerFiles, left: Sequence[Element], queues: Sequence[QueueKernel], now: int
) -> AnswerChanges:
    """Return the changes by the elements that left a stage as results; ``queues`` are the kernels
    of ``files.queues``."""
    table = AnswerTable(files.shape)
    key = list(files.shape.update_key)
    ended = [
        pl.DataFrame(schema={name: files.shape.schema[name] for name in key} | {MARK: pl.Int64})
    ]
    for element in left:
        if isinstance(element, pl.DataFrame):
            table.add(element, now)
        elif isinstance(element, GroupPunctuation) and table.end(element):
            ended.append(element.marks.select(*key, MARK))
    waiting = [
        (kernel.pending(), each.order) for kernel, each in zip(queues, files.queues, strict=True)
    ]
    gone = pl.concat(ended, how="vertical_relaxed")
    return AnswerChanges(table.rows(), gone, pending_of(waiting, files.shape), now)


def file_of(batch: int, stage: int, bucket: int) -> str:
    """Return the name of the file of a bucket and batch."""
    return f"batch-{batch:012d}-{stage}-{bucket}{SUFFIX}"


def place_of(name: str) -> tuple[int, tuple[int, int]]:
    """Return the batch, and the stage and bucket, that the name of a file gives."""
    _, batch, stage, bucket = name.removesuffix(SUFFIX).split("-")
    return int(batch), (int(stage), int(bucket))


def write_changes(target: Path, found: AnswerChanges) -> None:
    """Write a file, in place of one of an earlier try."""
    body = pickled((packed(found.rows), packed(found.ended), packed(found.pending), found.now))
    write_whole(target, body)


def read_changes(source: Path) -> AnswerChanges:
    """Read a file that :func:`write_changes` wrote."""
    rows, ended, pending, now = unpickled(source.read_bytes())
    return AnswerChanges(unpacked(rows), unpacked(ended), unpacked(pending), now)


def write_whole(target: Path, body: bytes) -> None:
    """Write a file so that readers see all of it or nothing."""
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        unfinished = target.with_name(f".{target.name}-{os.getpid()}")
        unfinished.write_bytes(body)
        unfinished.replace(target)
    except OSError as error:
        raise SinkError(f"cannot write the newest answers to {target.parent}: {error}") from None
