"""The content of a checkpoint: marks and sizes of every operator, as they are in Spark's state."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lowwater.engines.spark.driver.session import spark_session
from lowwater.errors import CheckpointError


@dataclass(frozen=True)
class Held:
    """The state of one operator in one bucket, or the marks of one stream there."""

    stage: int
    bucket: int
    what: str
    marks: str
    chunks: int
    rows: int
    bytes: int


def look_into(folder: str | Path, session: Any = None) -> list[Held]:
    """Return all that a checkpoint holds, by stage, bucket and operator."""
    path = Path(folder).absolute()
    if not (path / "state").is_dir():
        hint = "it has no state yet" if (path / "offsets").is_dir() else "there is none"
        raise CheckpointError(f"{folder} is not the checkpoint of a run that keeps state: {hint}")
    spark = session or spark_session()
    found: list[Held] = []
    names = (each.name for each in (path / "state").iterdir())
    for operator in sorted(int(name) for name in names if name.isdigit()):  # others are strangers
        reader = spark.read.format("statestore").option("path", str(path))
        reader = reader.option("operatorId", operator).option("stateVarName", "index")
        try:
            rows = reader.load().select("value.about").collect()
        except Exception as error:
            raise CheckpointError(
                f"{folder} holds state that was not written by lowwater: {_first_line(error)}"
            ) from error
        for row in rows:
            found += _held(json.loads(row["about"]))
    return sorted(found, key=lambda each: (each.stage, each.bucket, each.what))


def _held(about: dict[str, Any]) -> list[Held]:
    where = about["stage"], about["bucket"]
    streams = [
        Held(*where, f"stream {name}", _spelled(marks), 0, 0, 0)
        for name, marks in about["streams_shown"].items()
    ]
    operators = [
        Held(*where, title, _spelled(each["shown"]), each["chunks"], each["rows"], each["bytes"])
        for title, each in about["operators"].items()
    ]
    return [*streams, *operators]


def _spelled(marks: dict[str, str]) -> str:
    return ", ".join(f"{name} {mark}" for name, mark in marks.items())


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]
