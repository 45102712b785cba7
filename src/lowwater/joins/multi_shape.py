"""The columns of a join of many inputs: how rows are keyed, matched step by step, put together.

Rows of one input meet those of the others one input after the other. What is matched so far is held
narrow: for each input the number of the row and its time, and the keys once. Only what meets a row
of every input is put together from whole rows.

Invariant: among rows matched so far, for every two of them the later one is within the window of
the earlier one. So what the next input may have lies between two times, at most the next window
and the least of those so far apart.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from lowwater.joins.shape import BUCKET, Carried, bucketed, far_apart, key_of
from lowwater.stream.element import Chunk
from lowwater.stream.time_domain import TimeDomain


@dataclass(frozen=True)
class MultiShape:
    """What a join of many inputs matches on and what it puts out."""

    windows: tuple[int, ...]
    """For each input, by how many ticks at most its row is below another of a result."""
    domain: TimeDomain
    times: tuple[str, ...]
    """The time column of each input, under its own name."""
    on: tuple[tuple[str, ...], ...]
    """Columns that must be equal, one of each input."""
    names: tuple[Mapping[str, str], ...]
    """For each input, its columns to the names they have inside the join."""
    output: Mapping[str, pl.DataType]
    """The columns that come out, under their inside names."""
    merged: Mapping[str, str]
    """Inside names of key columns that do not come out to the output column of the same value."""
    residual: pl.Expr | None
    carried: tuple[Carried, ...] = ()
    """Other progressing columns of the inputs that come out."""

    @property
    def ports(self) -> range:
        """The inputs, by number."""
        return range(len(self.times))

    def out_name(self, port: int, column: str) -> str:
        """The output column that has the values of an input's column."""
        inside = self.names[port][column]
        return self.merged.get(inside, inside)

    def progressing(self, port: int) -> dict[str, str]:
        """Progressing columns of an input, and their names in the output."""
        times = {self.times[port]: self.out_name(port, self.times[port])}
        return times | {each.name: each.out for each in self.carried if each.side == port}

    def slack(self) -> dict[str, int]:
        """By how much at most each progressing output column is below the time of other inputs."""
        found: dict[str, int] = {}
        behind = {each.out: each.behind for each in self.carried}
        for port in self.ports:
            for out in self.progressing(port).values():
                by = self.windows[port] + behind.get(out, 0)
                found[out] = min(by, found.get(out, by))
        return found

    def inside_time(self, port: int) -> pl.Expr:
        """The ticks of an input's time, under the name it has inside the join."""
        return self.domain.to_ticks(pl.col(self.names[port][self.times[port]]))

    def prepare(self, port: int, chunk: Chunk) -> Chunk:
        """Rename the rows of an input."""
        return chunk.rename(dict(self.names[port]))

    # ---- matching --------------------------------------------------------------------------

    def narrow(self, port: int, rows: Chunk) -> Chunk:
        """Of rows of an input: their numbers, their times and their keys."""
        keys = (
            key_of(self.names[port][names[port]], self.output[self.out_name(0, names[0])])
            for names in self.on
        )
        return rows.select(
            pl.int_range(pl.len(), dtype=pl.UInt32).alias(_row(port)),
            self.inside_time(port).alias(_time(port)),
            *(key.alias(name) for key, name in zip(keys, self._keys, strict=True)),
        )

    def numbers(self, port: int, found: Chunk) -> pl.Series:
        """Of matches: the number of the row of an input that each has."""
        return found[_row(port)]

    def keys(self, port: int, rows: Chunk) -> Chunk:
        """What rows of an input are joined on, in one form for all inputs."""
        return self.narrow(port, rows).select(self._keys)

    @property
    def _keys(self) -> list[str]:
        return [f"__key{at}" for at in range(len(self.on))]

    def reached(self, found: Chunk, ports: tuple[int, ...], port: int) -> tuple[int, int]:
        """The least and the greatest time at which a row of another input can meet some match."""
        times = [found[_time(each)].to_numpy() for each in ports]
        until = [time + self.windows[each] for time, each in zip(times, ports, strict=True)]
        low = np.maximum.reduce(times).min() - self.windows[port]
        return int(low), int(np.minimum.reduce(until).max())

    def _between(self, ports: tuple[int, ...], port: int) -> tuple[pl.Expr, pl.Expr]:
        """From when to when a row of another input can be that meets a match of some inputs."""
        latest = pl.max_horizontal(pl.col(_time(each)) for each in ports)
        until = pl.min_horizontal(pl.col(_time(each)) + self.windows[each] for each in ports)
        return latest - self.windows[port], until

    def extend(self, found: Chunk, ports: tuple[int, ...], port: int, others: Chunk) -> Chunk:
        """All matches of some inputs' rows with a row of one more input."""
        low, high = self._between(ports, port)
        time = pl.col(_time(port))
        on, window = self._keys, min(self.windows[each] for each in ports)
        by_time = self._by_time(found, ports[0], window, others, port)
        if by_time:
            width = window + self.windows[port] + 1
            found, others = bucketed(found, (low, high), others, time, width)
            on.append(BUCKET)
        pairs = found.join(others, on=on).filter((time >= low) & (time <= high))
        return pairs.drop(BUCKET) if by_time else pairs

    def _by_time(self, found: Chunk, first: int, window: int, others: Chunk, port: int) -> bool:
        """Whether rows are to be matched by time as well as by key."""
        if window == self.windows[port] == 0:
            return self.times not in self.on
        if not self.on:
            return True
        times = (found[_time(first)].to_numpy(), others[_time(port)].to_numpy())
        return far_apart(times, max(window, self.windows[port], 1))

    def put_out(self, found: Chunk, rows: Mapping[int, Chunk]) -> Chunk:
        """Matches of rows of all inputs in the output's columns."""
        parts = []
        for port in self.ports:
            own = [name for name in self.names[port].values() if name in self.output]
            if own:
                parts.append(rows[port].select(own)[found[_row(port)]])
        whole = pl.concat(parts, how="horizontal")
        if self.residual is not None:
            whole = whole.filter(self.residual)
        return whole.select(list(self.output))


def _row(port: int) -> str:
    return f"__row{port}"


def _time(port: int) -> str:
    return f"__time{port}"
