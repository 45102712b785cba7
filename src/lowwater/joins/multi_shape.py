"""The columns of a join of many inputs: the keys, the matching step by step, the output.

Rows of one input are matched with those of one other input after the other. A match so far is
*narrow*: it has the number and the time of the row of each input, and the keys once. Only a match
of rows of all inputs is put together from whole rows.

Invariant: of every two rows of a match so far, the later one is within the window of the earlier
one. So a row of the next input that fits lies between two times, which are at most the next window
and the least window so far apart.
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
    """The columns that a join of many inputs matches on, and those it emits."""

    windows: tuple[int, ...]
    """For each input, the most ticks that its row of a result is below another row of it."""
    domain: TimeDomain
    times: tuple[str, ...]
    """The time column of each input, under its own name."""
    on: tuple[tuple[str, ...], ...]
    """Columns that must be equal, one of each input."""
    names: tuple[Mapping[str, str], ...]
    """For each input, the name inside the join of each of its columns."""
    output: Mapping[str, pl.DataType]
    """The columns of the output, under their inside names."""
    merged: Mapping[str, str]
    """For key columns that are not in the output, by inside name: the output column of the same
    value."""
    residual: pl.Expr | None
    carried: tuple[Carried, ...] = ()
    """Progressing columns of the output beside the times."""

    @property
    def ports(self) -> range:
        """The inputs, by number."""
        return range(len(self.times))

    def out_name(self, port: int, column: str) -> str:
        """Return the output column that has the values of an input's column."""
        inside = self.names[port][column]
        return self.merged.get(inside, inside)

    def progressing(self, port: int) -> dict[str, str]:
        """Return the progressing columns of an input, with their names in the output."""
        times = {self.times[port]: self.out_name(port, self.times[port])}
        return times | {each.name: each.out for each in self.carried if each.side == port}

    def slack(self) -> dict[str, int]:
        """Return the most ticks that each progressing output column is below the times of the other
        inputs."""
        found: dict[str, int] = {}
        behind = {each.out: each.behind for each in self.carried}
        for port in self.ports:
            for out in self.progressing(port).values():
                by = self.windows[port] + behind.get(out, 0)
                found[out] = min(by, found.get(out, by))
        return found

    def inside_time(self, port: int) -> pl.Expr:
        """Return the ticks of an input's time, as an expression over inside names."""
        return self.domain.to_ticks(pl.col(self.names[port][self.times[port]]))

    def prepare(self, port: int, chunk: Chunk) -> Chunk:
        """Return the rows of an input under their inside names."""
        return chunk.rename(dict(self.names[port]))

    # ---- matching --------------------------------------------------------------------------

    def narrow(self, port: int, rows: Chunk) -> Chunk:
        """Return the numbers, times and keys of rows of an input."""
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
        """Return the number that each match has for its row of an input."""
        return found[_row(port)]

    def keys(self, port: int, rows: Chunk) -> Chunk:
        """Return the key columns of rows of an input, in one form for all inputs."""
        return self.narrow(port, rows).select(self._keys)

    @property
    def _keys(self) -> list[str]:
        return [f"__key{at}" for at in range(len(self.on))]

    def reached(self, found: Chunk, ports: tuple[int, ...], port: int) -> tuple[int, int]:
        """Return the least and the greatest time at which a row of another input fits any match."""
        times = [found[_time(each)].to_numpy() for each in ports]
        until = [time + self.windows[each] for time, each in zip(times, ports, strict=True)]
        low = np.maximum.reduce(times).min() - self.windows[port]
        return int(low), int(np.minimum.reduce(until).max())

    def _between(self, ports: tuple[int, ...], port: int) -> tuple[pl.Expr, pl.Expr]:
        """Return the first and the last time at which a row of another input fits a match."""
        latest = pl.max_horizontal(pl.col(_time(each)) for each in ports)
        until = pl.min_horizontal(pl.col(_time(each)) + self.windows[each] for each in ports)
        return latest - self.windows[port], until

    def extend(self, found: Chunk, ports: tuple[int, ...], port: int, others: Chunk) -> Chunk:
        """Return the matches of some inputs, each extended by a row of one more input."""
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
        """Return true if rows are matched by buckets of time as well as by key."""
        if window == self.windows[port] == 0:
            return self.times not in self.on
        if not self.on:
            return True
        times = (found[_time(first)].to_numpy(), others[_time(port)].to_numpy())
        return far_apart(times, max(window, self.windows[port], 1))

    def put_out(self, found: Chunk, rows: Mapping[int, Chunk]) -> Chunk:
        """Return matches of rows of all inputs in the columns of the output."""
        parts = []
        for port in self.ports:
            own = [name for name in self.names[port].values() if name in self.output]
            if own:
                parts.append(rows[port].select(own)[found[_row(port)]])
        whole = pl.concat(parts, how="horizontal")
        if self.residual is not None:
            whole = whole.filter(self.residual)
        return whole.select(list(self.output))

    def put_out_alone(self, port: int, rows: Chunk) -> Chunk:
        """Return rows of one input, without partners, in the columns of the output."""
        own = {self.merged.get(name, name): name for name in self.names[port].values()}
        return rows.select(
            pl.col(own[name]).alias(name) if name in own else pl.lit(None, dtype).alias(name)
            for name, dtype in self.output.items()
        )


def _row(port: int) -> str:
    return f"__row{port}"


def _time(port: int) -> str:
    return f"__time{port}"
