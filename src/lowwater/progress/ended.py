"""Channels and groups that have ended, and the rows that come after the end (OOP §3.2).

The end of a channel or group promises that no more rows of it come. It is then unknown to the
stream: nothing of it is kept, except for the names of those that ended last. A row of one of these
is refused. A channel or group whose name has been forgotten begins anew with its next row.

Invariant: which rows are refused follows from the rows and ends before them, not from the cut into
chunks; at least the last :data:`MOST` names are remembered.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from lowwater.progress.judgement import Mask
from lowwater.stream.element import Chunk

MOST = 1_000
"""Number of names that are remembered after the end."""
ENDED = "__ended"
"""The key of the ended names among the marks of a stream, and the attribute of ends in a digest."""
_ROW, _RANK, _FLAG, _FIRST = "__row", "__rank", "__flag", "__first"


@dataclass(frozen=True, slots=True)
class Endings:
    """The ends in a chunk, as far as its first ``rows`` rows, which can be judged together."""

    over: Mask
    """Rows of a channel or group that has ended before them."""
    keys: Chunk
    """A row for each channel or group that ends in these rows, in the order of the ends."""
    rows: int
    first: int
    """Position of the first end; the number of rows if there is none."""


@dataclass(frozen=True)
class EndedBefore:
    """The names that were remembered before a batch, as a value that can be sent to readers."""

    keys: Chunk

    def merged(self, parts: Iterable[EndedBefore]) -> EndedBefore:
        """Return these names together with those of other groups."""
        return EndedBefore(pl.concat([self.keys, *(each.keys for each in parts)]).unique())

    def of(self, chunk: Chunk) -> Mask:
        """Return, for each row of a chunk, True if its channel or group has ended."""
        if not self.keys.height:
            return np.zeros(chunk.height, bool)
        marked = self.keys.with_columns(pl.lit(True).alias(_FLAG))
        named = chunk.select(self.keys.columns)
        found = named.join(marked, on=self.keys.columns, how="left", maintain_order="left")
        over: Mask = found[_FLAG].fill_null(False).to_numpy()
        return over


class EndedNames:
    """The names of the channels or groups that ended last.

    ``columns`` are those that name one, and their types; ``flag`` is the column that is true in
    the last row of a channel or group, None if ends come beside the rows only.
    """

    def __init__(self, columns: Mapping[str, pl.DataType], flag: str | None):
        self._columns, self._flag = dict(columns), flag
        self._names: dict[tuple[Hashable, ...], None] = {}  # the one that ended first is first

    def __bool__(self) -> bool:
        return bool(self._names)

    def __contains__(self, name: Hashable) -> bool:
        return (name if isinstance(name, tuple) else (name,)) in self._names

    @property
    def before(self) -> EndedBefore:
        """The names as a value."""
        return EndedBefore(self._frame(list(self._names)))

    def _frame(self, names: Sequence[tuple[Hashable, ...]]) -> Chunk:
        return pl.DataFrame(names, schema=self._columns, orient="row")

    def frame_of(self, name: Hashable) -> Chunk:
        """Return the key columns of one channel or group."""
        return self._frame([name if isinstance(name, tuple) else (name,)])

    def add(self, keys: Chunk) -> None:
        """Remember names, and forget those that ended first if there are too many."""
        self._names.update(dict.fromkeys(keys.rows()))
        for name in list(self._names)[: max(0, len(self._names) - MOST)]:
            del self._names[name]

    def ending(self, chunk: Chunk) -> Chunk:
        """Return the channels or groups that end somewhere in a chunk, each once."""
        keys = chunk.select(list(self._columns))
        if self._flag is None:
            return keys.clear()
        return keys.filter(_flags(chunk, self._flag)).drop_nulls().unique(maintain_order=True)

    def find(self, chunk: Chunk) -> Endings:
        """Return the ends in a chunk whose rows are in arrival order.

        The rows end before one that begins a forgotten channel or group anew.
        """
        rows = chunk.height
        flags = None if self._flag is None else _flags(chunk, self._flag)
        if not self._names and (flags is None or not flags.any()):
            return Endings(np.zeros(rows, bool), self._frame([]), rows, rows)
        names = list(self._columns)
        ranks = pl.Series(_RANK, range(-len(self._names), 0), dtype=pl.Int64)
        known = self.before.keys.with_columns(ranks)
        keyed = chunk.select(names).with_row_index(_ROW).cast({_ROW: pl.Int64})
        keyed = keyed.join(known, on=names, how="left", maintain_order="left")
        flagged = pl.lit(False) if flags is None else flags
        keyed = keyed.with_columns(flagged.alias(_FLAG))
        named = pl.all_horizontal(pl.col(name).is_not_null() for name in names)
        ends = pl.col(_FLAG) & named & pl.col(_RANK).is_null()
        found = keyed.with_columns(pl.when(ends).then(_ROW).min().over(names).alias(_FIRST))
        firsts = found[_FIRST].drop_nulls().unique().sort().to_numpy()
        rank, first = found[_RANK], found[_FIRST]
        over = (rank.is_not_null() | (first < found[_ROW]).fill_null(False)).to_numpy()
        at = np.flatnonzero(over)
        own = np.searchsorted(firsts, first.fill_null(0).to_numpy()[at])
        number = np.where(rank.is_null().to_numpy()[at], own, rank.fill_null(0).to_numpy()[at])
        forgotten = at[np.searchsorted(firsts, at) - number > MOST]
        stop = int(forgotten[0]) if len(forgotten) else rows
        firsts = firsts[firsts < stop]
        begin = int(firsts[0]) if len(firsts) else stop
        return Endings(over[:stop], chunk.select(names)[firsts], stop, begin)

    def snapshot(self) -> list[tuple[Hashable, ...]]:
        """Return the names, the one that ended first first."""
        return list(self._names)

    def restore(self, saved: Iterable[tuple[Hashable, ...]]) -> None:
        """Set the state to that of a snapshot."""
        self._names = dict.fromkeys(saved)


def _flags(chunk: Chunk, flag: str) -> pl.Series:
    return chunk[flag].fill_null(False)
