"""A preflight finds the problems that a run would have, such as rows that cannot be read."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from lowwater.errors import LowwaterError, QueryError, SinkError
from lowwater.pipeline.targets import Target
from lowwater.pipeline.text import Pipeline
from lowwater.sinks import Folder
from lowwater.sources.files import Files

MOST_FILES = 100
"""The greatest number of files of a stream whose first rows are read."""


@dataclass(frozen=True)
class Problem:
    """A problem that a run would have: an error that would end it, or the text of a warning.

    ``where`` is the stream or query.
    """

    where: str
    what: LowwaterError | str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


def problems(
    pipeline: Pipeline, goals: dict[int, Target], late: dict[int, dict[str, Folder]]
) -> Iterator[Problem]:
    """Yield the problems that can be found without a run."""
    for name, stream in pipeline.streams.items():
        if isinstance(stream.node.source, Files):
            for what in _of_files(stream.node.source):
                yield Problem(f"stream {name}", what)
    for number, goal in goals.items():
        for folder in (goal.folder, *late[number].values()):
            if folder is not None:
                for what in _of_folder(folder, pipeline.engine):
                    yield Problem(f"query {number}", what)


def _of_files(files: Files) -> Iterator[LowwaterError | str]:
    place = Path(files.path)
    if place.is_dir() and not os.access(place, os.R_OK | os.X_OK):
        yield QueryError(f"cannot read the folder {place}: permission denied")
        return
    try:
        here = files.listed()
    except OSError as error:
        yield QueryError(f"cannot read {place}: {error.strerror or error}")
        return
    if not here:
        nothing = f"there are no files at {place}"
        yield f"{nothing} yet; a run waits for them" if files.live else QueryError(nothing)
    missing = files.missing_columns()
    for path in here[:MOST_FILES]:
        try:
            files.begin(path, missing)
        except LowwaterError as error:
            yield error
    yield from missing.messages() if files.format == "json" else ()


def _of_folder(folder: Folder, engine: str) -> Iterator[LowwaterError | str]:
    path = folder.path
    if path.exists() and not path.is_dir():
        yield SinkError(f"cannot write results to {path}: it is a file")
        return
    there = next(each for each in (path, *path.absolute().parents) if each.exists())
    if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
        yield SinkError(f"cannot write results to {path}: {there} cannot be written to")
        return
    try:
        folder.refuse_if_used()
    except SinkError as error:
        yield f"{error}, or go on with --checkpoint" if engine == "spark" else error
