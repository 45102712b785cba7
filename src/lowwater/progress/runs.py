"""The rows of a chunk by channel: who spoke, and which rows are whose."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.spec import channel_name
from lowwater.stream.element import Chunk

ROW = "__row"


@dataclass(frozen=True, slots=True)
class Runs:
    """Channels in order of first appearance, each with its rows in order of arrival."""

    keys: Chunk
    """A row for each channel; no columns if the stream has no channels."""
    rows: NDArray[np.int64]
    """Positions in the chunk, channel after channel."""
    starts: NDArray[np.int64]
    """Where in ``rows`` each channel begins."""

    @classmethod
    def of(cls, chunk: Chunk, keys: Sequence[str], usable: NDArray[np.bool_]) -> Runs:
        """The usable rows of a chunk."""
        if not usable.any():
            return cls(chunk.select(keys).clear(), np.empty(0, np.int64), np.empty(0, np.int64))
        if not keys:
            return cls(pl.DataFrame(), np.flatnonzero(usable), np.zeros(1, np.int64))
        named = chunk.select(keys).with_row_index(ROW)
        if not usable.all():
            named = named.filter(pl.Series(usable))
        grouped = named.group_by(keys, maintain_order=True).agg(pl.col(ROW).cast(pl.Int64))
        lengths = grouped[ROW].list.len().cast(pl.Int64).to_numpy()
        rows = grouped[ROW].explode(empty_as_null=False).to_numpy()
        return cls(grouped.select(keys), rows, np.cumsum(lengths) - lengths)

    @property
    def lengths(self) -> NDArray[np.int64]:
        """How many rows each channel has."""
        return np.diff(self.starts, append=len(self.rows))

    @property
    def names(self) -> list[Hashable]:
        """The channels' names."""
        if not self.keys.width:
            return [None] if len(self.starts) else []
        if self.keys.width == 1:
            return list(self.keys.to_series().to_list())
        return [channel_name(parts) for parts in self.keys.rows()]

    def __iter__(self) -> Iterator[tuple[Hashable, NDArray[Any]]]:
        starts, lengths = self.starts.tolist(), self.lengths.tolist()
        for name, first, count in zip(self.names, starts, lengths, strict=True):
            yield name, self.rows[first : first + count]
