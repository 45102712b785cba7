"""The cache has copies of chunks of state in shared memory, for the batches that follow.

Reading state through Spark costs a copy through a socket. A chunk never changes once it is written,
so a copy of the same chunk is as good: every try of a batch marks the chunks it writes with a token
of its own, the index in Spark's state holds the token that counts, and a file is found by its
token. A chunk whose copy is not found, after a restart or on another machine, is read from Spark's
state, which decides.
"""

from __future__ import annotations

import contextlib
import uuid
from pathlib import Path

import polars as pl
import pyarrow as pa

from lowwater.engines.spark.worker.run_folders import RunFolders
from lowwater.state.index import ChunkKey
from lowwater.stream.element import Chunk

FOLDERS = RunFolders(Path("/dev/shm"), "lowwater")
LIMIT = 256 * 2**20
"""The greatest number of bytes that one bucket keeps."""
LEAST = 4_096
"""Bytes from which a chunk is copied; smaller ones are as quick to fetch."""


class ChunkCache:
    """The files of one bucket of one run."""

    def __init__(self, run: str, stage: int, bucket: int):
        home = FOLDERS.of(run)
        self._folder = None if home is None else home / f"{stage}-{bucket}"
        self.token = uuid.uuid4().hex[:16]

    def put(self, slot: str, key: ChunkKey, chunk: Chunk) -> bool:
        """Copy a chunk under this try's token; return whether that was possible."""
        if self._folder is None:
            return False
        target = self._folder / _name(slot, key, self.token)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            unfinished = target.with_name(f".{target.name}")
            chunk.write_ipc(unfinished, compression="uncompressed")
            unfinished.replace(target)
        except OSError:
            return False  # no shared memory, or no more of it: the state store has the chunk
        return True

    def get(self, slot: str, key: ChunkKey, token: str) -> Chunk | None:
        """Return a chunk by its token; None if it is not here."""
        if self._folder is None:
            return None
        try:
            with pa.memory_map(str(self._folder / _name(slot, key, token))) as file:
                table = pa.ipc.open_file(file).read_all()
        except (OSError, pa.ArrowInvalid):
            return None
        chunk = pl.from_arrow(table)
        assert isinstance(chunk, pl.DataFrame)
        return chunk

    def drop(self, slot: str, key: ChunkKey, token: str) -> None:
        """Remove the copy of a chunk."""
        if self._folder is not None:
            with contextlib.suppress(OSError):
                (self._folder / _name(slot, key, token)).unlink(missing_ok=True)


def _name(slot: str, key: ChunkKey, token: str) -> str:
    return f"{slot}-{key.name}-{key.slice}-{key.sequence}-{token}"
