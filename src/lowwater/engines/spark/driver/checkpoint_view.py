"""The content of a checkpoint is read from Spark's state: marks and sizes of every operator."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowwater.engines.spark.session import spark_session
from lowwater.engines.spark.wire.report import BucketSummary
from lowwater.errors import CheckpointError
from lowwater.metrics import restored


@dataclass(frozen=True)
class CheckpointEntry:
    """The state of one operator in one bucket, or the marks of one stream there."""

    stage: int
    bucket: int
    what: str
    """The title of the operator, or ``stream`` and the stream's name."""
    marks: str
    """The marks by attribute, as people read them."""
    chunks: int | None = None
    """The chunks of the operator; None of a stream, which keeps none."""
    rows: int | None = None
    bytes: int | None = None


def read_checkpoint(folder: str | Path, session: Any = None) -> list[CheckpointEntry]:
    """Return the entries of a checkpoint, by stage, bucket and operator."""
    path = Path(folder).absolute()
    if not (path / "state").is_dir():
        hint = "it has no state yet" if (path / "offsets").is_dir() else "there is none"
        raise CheckpointError(f"{folder} is not the checkpoint of a run that keeps state: {hint}")
    spark = session or spark_session()
    found: list[CheckpointEntry] = []
    names = (each.name for each in (path / "state").iterdir())
    for operator in sorted(int(name) for name in names if name.isdigit()):  # Spark's stateful ones
        reader = spark.read.format("statestore").option("path", str(path))
        reader = reader.option("operatorId", operator).option("stateVarName", "index")
        try:
            rows = reader.load().select("value.about").collect()
        except Exception as error:
            raise CheckpointError(
                f"{folder} holds state that was not written by lowwater: {_first_line(error)}"
            ) from error
        for row in rows:
            found += _entries(restored(BucketSummary, json.loads(row["about"])))
    return sorted(found, key=lambda each: (each.stage, each.bucket, each.what))


def _entries(found: BucketSummary) -> list[CheckpointEntry]:
    where = found.stage, found.bucket
    streams = [
        CheckpointEntry(*where, f"stream {name}", _spelled(marks))
        for name, marks in found.streams_shown.items()
    ]
    operators = [
        CheckpointEntry(*where, title, _spelled(each.shown), each.chunks, each.rows, each.bytes)
        for title, each in found.operators.items()
    ]
    return [*streams, *operators]


def _spelled(marks: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {mark}" for name, mark in marks.items())


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
