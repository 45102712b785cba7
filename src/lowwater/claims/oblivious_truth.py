"""What a join without a window could find and what it would have to keep, from the logs alone.

Every result is made when the last of its rows comes. Of each input, a buffer of the newest rows
finds it if it reaches back to the result's row: the rows that came from that one on are the least
buffer for this result (the paper's backtracking, WO-Join §5.1). The greatest over the results of a
second is the optimal buffer of that second, and no fixed buffer finds results that need more.

A log has three columns: when a row came, its key, its place in the order of arrival, named after
the stream. The results of a join are such a log again, so joins of joins need nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

from lowwater.claims.oblivious_definitions import Keys, Places, lags, multiplicity
from lowwater.claims.oblivious_streams import KEY

Seconds = NDArray[np.float64]


@dataclass(frozen=True)
class Log:
    """The arrivals of one stream."""

    name: str
    table: pl.DataFrame

    @cached_property
    def at(self) -> Seconds:
        """When each row came."""
        return self.table[f"{self.name}_at"].to_numpy()

    @cached_property
    def keys(self) -> Keys:
        """The keys in order of arrival."""
        return self.table[KEY].to_numpy()

    def continued(self, other: Log) -> Keys:
        """The keys, and in order those that would have come until the stream is where another is.

        A log ends while its stream goes on, so what one that is behind would have had is added.
        """
        further = np.arange(self.keys.max() + 1, other.keys.max() + 1)
        return np.concatenate((self.keys, further.repeat(multiplicity(self.keys))))

    def came(self, times: Seconds) -> Places:
        """How many rows had come by then."""
        return np.searchsorted(self.at, times, side="right")

    def came_before(self, times: Seconds) -> Places:
        """How many rows had come before then."""
        return np.searchsorted(self.at, times, side="left")


@dataclass(frozen=True)
class Truth:
    """All results of a join of some logs."""

    logs: tuple[Log, ...]

    @cached_property
    def results(self) -> pl.DataFrame:
        """The place of each input's row, when the last of them came (``at``), by that."""
        found = self.logs[0].table
        for log in self.logs[1:]:
            found = found.join(log.table, on=KEY)
        last = pl.max_horizontal(f"{log.name}_at" for log in self.logs).alias("at")
        names = [log.name for log in self.logs]
        return found.select(last, KEY, *names).sort("at", *names)

    @cached_property
    def at(self) -> Seconds:
        """When each result can first be known."""
        return self.results["at"].to_numpy()

    @cached_property
    def needs(self) -> Places:
        """For each result and each input, the newest rows of the input that reach back to it.

        The row that comes last meets the others as it comes, whatever comes with it.
        """
        found = []
        for log in self.logs:
            place = self.results[log.name].to_numpy()
            back = log.came(self.at) - place + 1
            found.append(np.where(log.at[place - 1] == self.at, 1, back))
        return np.stack(found, axis=1)

    def log(self, name: str, sizes: Sequence[float] | None = None) -> Log:
        """The results as arrivals at the next join: all, or those that fixed buffers find."""
        found = self.results if sizes is None else self.results.filter(self.reached(sizes))
        place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).alias(name)
        return Log(name, found.select(pl.col("at").alias(f"{name}_at"), KEY, place))

    # ---- buffers ---------------------------------------------------------------------------

    def optimal(self, seconds: int) -> Places:
        """For each second and each input, the least buffer that finds all results of the second."""
        best = np.zeros((seconds, len(self.logs)), np.int64)
        within = np.minimum(self.at.astype(np.int64), seconds - 1)
        np.maximum.at(best, within, self.needs)
        return best

    def reached(self, sizes: Sequence[float]) -> NDArray[np.bool_]:
        """Which results buffers of the newest rows find, a size for each input."""
        return np.logical_and.reduce(self.needs <= np.array(sizes), axis=1)  # type: ignore[no-any-return]

    def sizes(self, share: float) -> list[int]:
        """For each input, the least buffer that reaches back far enough for a share of results."""
        at = max(0, int(np.ceil(share * len(self.needs))) - 1)
        return [int(each) for each in np.sort(self.needs, axis=0)[at]]

    def predicted(self, disorder: Sequence[int]) -> Places:
        """Equation 8 with all parameters known, for each result, just before its last row came.

        The lag is the one when the row came that is as many places back as the other input is
        scrambled, and the rows since then are counted instead of being reckoned from rates.
        """
        found = np.ones_like(self.needs)
        for one, own in enumerate(self.logs):
            came = own.came(self.at)
            for other, mate in enumerate(self.logs):
                if other != one:
                    back = np.maximum(0, mate.came_before(self.at) - disorder[other])
                    wanted = disorder[one] + lags(own.continued(mate), mate.keys, came, back)
                    found[:, one] = np.maximum(found[:, one], wanted)
        return found
