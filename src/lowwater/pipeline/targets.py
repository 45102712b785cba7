"""Targets are the folders of queries' answers and of streams' late rows."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from lowwater.errors import OptionError, unknown_name
from lowwater.pipeline.location import Location, read_location
from lowwater.pipeline.text import Pipeline
from lowwater.plan.text_places import pointed
from lowwater.sinks import FORMATS, Folder, Mode
from lowwater.stream.duration import Duration

CONSOLE = "console"


@dataclass(frozen=True)
class Writing:
    """The way in which all folders of a pipeline are written.

    A row waits for ``flush_every``, a length of real time, before it is in a file.
    """

    mode: Mode = "fail"
    flush_every: Duration = Folder.flush_every

    def folder(self, path: Path, format_: str = "parquet") -> Folder:
        """Return a folder that is written in this way."""
        return Folder(path, format_, self.mode, self.flush_every)


PLAIN = Writing()
"""The defaults."""


@dataclass(frozen=True)
class Target:
    """Target of a query's answers; without a folder they go to the console."""

    folder: Folder | None = None

    def __str__(self) -> str:
        return f"{self.folder.format}:{self.folder.path}" if self.folder else CONSOLE


def targets(pipeline: Pipeline, output: Path | None, writing: Writing = PLAIN) -> dict[int, Target]:
    """Return the target of each query by number; ``output`` is the folder of relative targets, and
    of queries without one."""
    bare = [query for query in pipeline.queries if query.target is None]
    found: dict[int, Target] = {}
    for query in pipeline.queries:
        if query.target is not None:
            try:
                found[query.number] = _named(read_location(query.target), output, writing)
            except OptionError as error:
                first, last = query.target_place or (0, 0)
                raise pointed(error.parts, pipeline.text, first, last - first + 1) from None
        elif output is not None:
            inside = output if len(bare) == 1 else output / f"query{query.number}"
            found[query.number] = Target(writing.folder(inside))
        else:
            found[query.number] = Target()
    kept = [
        folder.path
        for folders in late_folders(pipeline, output).values()
        for folder in folders.values()
    ]
    counted = Counter([*kept, *(each.folder.path for each in found.values() if each.folder)])
    for path, count in counted.items():
        if count > 1:
            raise OptionError(f"{path} is given {count} times as a folder for rows; give it once")
    return found


def _named(location: Location, output: Path | None, writing: Writing) -> Target:
    kind = location.format.lower()
    if kind == CONSOLE:
        return Target()
    if kind not in FORMATS:
        raise OptionError(unknown_name("format of results", kind, (*FORMATS, CONSOLE)))
    if not location.path:
        raise OptionError(f"say where results go: '{kind}:folder'")
    return Target(writing.folder(_under(output, location.path), kind))


def _under(output: Path | None, path: str) -> Path:
    return output / path if output is not None else Path(path)


def late_folders(
    pipeline: Pipeline, output: Path | None, writing: Writing = PLAIN
) -> dict[int, dict[str, Folder]]:
    """Return, for each query, the folders of late rows of its streams with LATE TO.

    Which rows are late is decided query by query, so each query has a folder if several read a
    stream, and so has each stream if several name one folder.
    """
    named = Counter(stream.declared.late_to for stream in pipeline.streams.values())
    readers = Counter(name for query in pipeline.queries for name in set(query.streams))
    found: dict[int, dict[str, Folder]] = {query.number: {} for query in pipeline.queries}
    for name, stream in pipeline.streams.items():
        given = stream.declared.late_to
        if given is None:
            continue
        folder = _under(output, _late_path(name, given))
        if named[given] > 1:
            folder /= name
        for query in pipeline.queries:
            if name in query.streams:
                own = folder if readers[name] == 1 else folder / f"query{query.number}"
                found[query.number][name] = writing.folder(own)
    return found


def _late_path(stream: str, given: str) -> str:
    kind, colon, path = given.partition(":")
    if colon and kind.lower() == "parquet":
        return path
    if not given or (colon and kind.lower() in (*FORMATS, CONSOLE)):
        raise OptionError(
            f"stream {stream!r}: late rows are kept as Parquet files: LATE TO 'folder/'"
        )
    return given
