"""The rows of a chunk by channel, and the verdict on them.

There is one rule: *a row is late if its time is below the mark that its channel had before it*
(:meth:`Judgement.late`). If rows have an order, the rows before it are all that arrived earlier. In
a batch without order they are the rows of earlier batches: nobody can know the order in the batch,
and a guess would make the verdict depend on how the batch was read.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heappush, heapreplace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.progress.channel import Ticks
from lowwater.progress.completeness import Completeness, Shortfall
from lowwater.progress.spec import channel_name
from lowwater.stream.element import BEGINNING, Chunk

ROW = "__row"
Mask = NDArray[np.bool_]
"""One truth value for each row of a chunk."""


@dataclass(frozen=True, slots=True)
class ChannelRows:
    """The rows of a chunk by channel.

    Channels are in order of first appearance, the rows of each in order of arrival.
    """

    keys: Chunk
    """A row for each channel; no columns if the stream has no channels."""
    rows: NDArray[np.int64]
    """Positions in the chunk, channel after channel."""
    starts: NDArray[np.int64]
    """Position in ``rows`` at which each channel begins."""

    @classmethod
    def of(cls, chunk: Chunk, keys: Sequence[str], usable: Mask) -> ChannelRows:
        """Find the rows of each channel among the usable rows of a chunk.

        ``keys`` are the columns that name a channel.
        """
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
        """The number of rows of each channel."""
        return np.diff(self.starts, append=len(self.rows))

    @property
    def names(self) -> list[Hashable]:
        """The names of the channels."""
        if not self.keys.width:
            return [None] if len(self.starts) else []
        if self.keys.width == 1:
            return list(self.keys.to_series().to_list())
        return [channel_name(parts) for parts in self.keys.rows()]

    def __iter__(self) -> Iterator[tuple[Hashable, NDArray[Any]]]:
        starts, lengths = self.starts.tolist(), self.lengths.tolist()
        for name, first, count in zip(self.names, starts, lengths, strict=True):
            yield name, self.rows[first : first + count]


@dataclass(frozen=True, slots=True)
class Deficit:
    """The first channel that makes a stream less complete than its target."""

    channel: Hashable
    shortfall: Shortfall
    completeness: Completeness
    """The completeness of that channel."""


@dataclass(slots=True)
class Judgement:
    """The verdict on the rows of a chunk by the marks of one attribute."""

    before: Ticks
    """The mark that the channel of each row had before it, in ticks."""
    leaps: Mask
    """The rows dated too far ahead."""
    strays: int = 0
    """Number of leaps that later rows contradicted."""
    backward: int = 0
    """Number of the producer's marks that went backwards."""
    deficit: Deficit | None = None
    """The channel by which the stream began to fall short in this chunk; None if it did not."""

    @classmethod
    def blank(cls, rows: int) -> Judgement:
        """Return a judgement by which none of ``rows`` rows is late or a leap."""
        return cls(np.full(rows, BEGINNING, dtype=np.int64), np.zeros(rows, bool))

    def late(self, times: Ticks) -> Mask:
        """Return the rows that are late: those whose time is below the mark before them."""
        return times < self.before


class StreamMarkSweep:
    """The stream's mark at every row of a chunk, for channels whose first row is in it.

    ``floor`` is the mark at which a channel joins if no other channel is known; ``lowest`` is the
    stream's mark before the chunk; ``others`` is the least mark of the channels with no row in the
    chunk, None if there are none. All are ticks.

    Marks only grow along the chunk, so a channel's mark is looked up again only when it is the
    least.
    """

    def __init__(self, floor: int, lowest: int, others: int | None):
        self._floor, self._lowest, self._others = floor, lowest, others
        self._heap: list[tuple[int, int]] = []
        self._trails: list[tuple[NDArray[np.int64], Ticks]] = []

    def add(self, rows: NDArray[np.int64], start: int, after: Ticks) -> None:
        """Add a channel: positions of its rows, its mark before them, and its mark after each."""
        heappush(self._heap, (start, len(self._trails)))
        self._trails.append((rows, after))

    def mark_before(self, row: int) -> int:
        """Return the stream's mark just before a row.

        ``row`` is a position in the chunk, not below that of an earlier call.
        """
        while self._heap:
            mark, at = self._heap[0]
            rows, after = self._trails[at]
            seen = int(np.searchsorted(rows, row))
            now = int(after[seen - 1]) if seen else mark
            if now <= mark:
                break
            heapreplace(self._heap, (now, at))
        known = [mark for mark, _ in self._heap[:1]]
        known += [] if self._others is None else [self._others]
        return max(min(known), self._lowest) if known else self._floor
