"""Parts of the library can be used alone: a source of chunks, a contract, measured disorder."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.joins.oblivious.disorder import DisorderEstimate
from lowwater.progress.contract import Contract
from lowwater.sources.replay import Replay, ReplayReader
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain

Ticks = NDArray[np.int64]


class Chunks(Replay):
    """A source whose rows are made as they are read, chunk by chunk.

    The rows have no arrival times.

    >>> import lowwater as lw
    >>> chunks = Chunks({"ts": pl.Int64()}, lambda: (pl.DataFrame({"ts": [at]}) for at in (1, 2)))
    >>> lw.stream(chunks, name="s", time="ts").collect()["ts"].to_pylist()
    [1, 2]

    ``schema``
        The columns of all chunks, and the Polars type of each.
    ``make``
        Function that returns the chunks in order, anew at every call; each is handed over whole.
    """

    def __init__(self, schema: Mapping[str, pl.DataType], make: Callable[[], Iterable[Chunk]]):
        super().__init__(pl.DataFrame(schema=schema))
        self._make = make

    def open(self) -> _ChunkReader:
        """Start from the first chunk."""
        return _ChunkReader(self.table, iter(self._make()))


class _ChunkReader(ReplayReader):
    """Hands over one chunk with each reading."""

    def __init__(self, nothing: pl.DataFrame, chunks: Iterator[Chunk]):
        super().__init__(nothing, None)
        self._chunks = (each for each in chunks if each.height)
        self._table = next(self._chunks, nothing)

    def read(self, now: int, limit: int) -> Chunk | None:
        """Return the next chunk, whole."""
        chunk = super().read(now, self._table.height)
        self._table, self._at = next(self._chunks, self._table.clear()), 0
        return chunk


def judge_rows(contract: Contract, times: Ticks, ticks_per_second: int = 1) -> tuple[Ticks, Ticks]:
    """Judge the rows of one channel by a contract, in the order of their arrival.

    Two arrays are returned, in ticks: the mark that each row met (a row below it is late), and the
    mark after the row.

    >>> import numpy as np, lowwater as lw
    >>> met, after = judge_rows(lw.within(2), np.array([5, 9, 6]))
    >>> after.tolist()
    [3, 7, 7]

    ``contract``
        The contract, which must promise something.
    ``times``
        Times of the rows, in ticks.
    ``ticks_per_second``
        Number of ticks that make a second. Default: 1.
    """
    channel = contract.channel(TimeDomain(pl.Int64(), ticks_per_second), None)
    verdict = channel.observe(times, times)
    return verdict.before, verdict.after


def scrambling_factors(keys: Ticks) -> Ticks:
    """Return the scrambling factor after each row, as a join without a window measures it.

    The factor is the greatest number of rows by which a row came after one that is not less.

    >>> import numpy as np
    >>> scrambling_factors(np.array([1, 3, 2, 2])).tolist()
    [0, 0, 1, 2]

    ``keys``
        Values of the join attribute, in the order of arrival.
    """
    estimate = DisorderEstimate(missing=0.001, known=None, ticks_per_second=1)
    found = []
    for came, key in enumerate(keys, 1):
        estimate.observe(np.array([key]), came)
        found.append(estimate.scrambling)
    return np.array(found, np.int64)
