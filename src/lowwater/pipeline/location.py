"""A location is written ``format:path`` in a pipeline file, or ``generate:`` and a workload.

``generate:rate=100,seconds=60,keys=10,seed=1`` is a workload. Its times begin with 1970, with the
date of ``start=2024-01-01``, or with the time of day for ``start=now``.
"""

from __future__ import annotations

import re
from dataclasses import MISSING, Field, dataclass, fields
from datetime import UTC, datetime

import polars as pl

from lowwater.errors import OptionError, unknown_name
from lowwater.sources.generate import Workload
from lowwater.sources.replay import Replay

_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9_.\-]*):(.*)", re.DOTALL)


@dataclass(frozen=True)
class Location:
    """A format, and the path, address or settings by which its rows are found."""

    format: str
    path: str

    def __str__(self) -> str:
        return f"{self.format}:{self.path}"

    @property
    def elsewhere(self) -> bool:
        """True if the path is the address of another system, such as ``s3a://bucket/x``."""
        return "://" in self.path and not self.path.startswith("file://")


def read_location(text: str) -> Location:
    """Return the format and the path of a location."""
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise OptionError(f"a location is 'format:path', for example 'parquet:{text or 'folder'}'")
    path = found[2].strip()
    return Location(found[1], path.removeprefix("file://"))


def host_and_port(path: str) -> tuple[str, int]:
    """Return the host and the port of ``localhost:9999``."""
    host, _, port = path.removeprefix("//").rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise OptionError(
            f"a socket is 'socket:host:port', for example 'socket:localhost:9999',"
            f" not 'socket:{path}'"
        )
    return host.strip("[]") or "localhost", int(port)


# ---- generate: --------------------------------------------------------------------------------

START = "start"
_LISTS = ("phases",)
_KNOWN = {each.name: each for each in fields(Workload) if each.name not in _LISTS}


def generated(path: str) -> Replay:
    """Return the workload that the settings describe; settings left out have the defaults of
    :class:`Workload`."""
    given: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in path.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if name not in (*_KNOWN, START):
            raise OptionError(unknown_name("setting of generate:", name, (*_KNOWN, START)))
        if not equals:
            raise OptionError(f"generate: takes name=value, for example rate=100, not {part!r}")
        given[name] = value
    start = given.pop(START, None)
    for name, field in _KNOWN.items():
        if field.default is MISSING and name not in given:
            raise OptionError(f"generate: needs {name}=, for example generate:rate=100,seconds=60")
    values = {name: _value(_KNOWN[name], text) for name, text in given.items()}
    table = Workload(**values).table()  # type: ignore[arg-type]
    return Replay(table if start is None else _moved(table, start), "arrived")


def _moved(table: pl.DataFrame, start: str) -> pl.DataFrame:
    try:
        begin = datetime.now(UTC) if start == "now" else datetime.fromisoformat(start)
    except ValueError:
        raise OptionError(f"generate: start is a time or 'now', not {start!r}") from None
    begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
    if table.schema["ts"].is_integer():
        return table.with_columns(pl.col("ts") + int(begin.timestamp()))
    return table.with_columns(pl.col("ts") + (begin - datetime(1970, 1, 1, tzinfo=UTC)))


def _value(field: Field[object], text: str) -> int | float | str:
    if field.type == "str":
        return text
    try:
        return int(text) if field.type == "int" else float(text)
    except ValueError:
        kind = "a whole number" if field.type == "int" else "a number"
        raise OptionError(f"generate: {field.name} is {kind}, not {text!r}") from None
