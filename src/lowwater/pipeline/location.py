"""Locations as pipeline files write them: ``format:path``."""

from __future__ import annotations

import re
from dataclasses import dataclass

from lowwater.errors import OptionError

_SHAPE = re.compile(r"([A-Za-z][A-Za-z0-9_.\-]*):(.*)", re.DOTALL)


@dataclass(frozen=True)
class Location:
    """A format and what it needs to find the rows: a path, a host and port, settings."""

    format: str
    path: str

    def __str__(self) -> str:
        return f"{self.format}:{self.path}"

    @property
    def elsewhere(self) -> bool:
        """Whether the path is the address of another system, such as ``s3a://bucket/x``."""
        return "://" in self.path and not self.path.startswith("file://")


def read_location(text: str) -> Location:
    """Take a location apart."""
    found = _SHAPE.fullmatch(text.strip())
    if not found:
        raise OptionError(f"a location is 'format:path', for example 'parquet:{text or 'folder'}'")
    path = found[2].strip()
    return Location(found[1], path.removeprefix("file://"))


def host_and_port(path: str) -> tuple[str, int]:
    """``localhost:9999``."""
    host, _, port = path.removeprefix("//").rpartition(":")
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise OptionError(
            f"a socket is 'socket:host:port', for example 'socket:localhost:9999',"
            f" not 'socket:{path}'"
        )
    return host.strip("[]") or "localhost", int(port)
