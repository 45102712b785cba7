"""Joins without a window run the two queries of WO-Join §5, row by row on a virtual clock.

A run is sampled on a grid of moments: the rows that every join holds, that its model predicts, and
that it has put on disk. Its results, each with the time at which it left, are compared with all
results there are.

The joins are measured against a join with a buffer of fixed size for each input (the W-Join of §5).
Rows are found and kept as in our other joins of many inputs, so the two differ in what they drop.
"""

from __future__ import annotations

import warnings
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims.claim import Scale
from lowwater.claims.oblivious_streams import KEY, ArrivalLog, ScrambledStream, Setting, Truth
from lowwater.joins.multi_join import MultiJoin, rows_of
from lowwater.operators.kernel import Kernel
from lowwater.probe import CHUNK_ROWS, SECOND, Observer, Probe
from lowwater.state.store import take
from lowwater.stream.element import Chunk, Element
from lowwater.typing import Charge, Contract, ReliefMode

RELIEF_MODES: tuple[ReliefMode, ...] = ("plain", "msf", "dbf", "hybrid")
JOIN = "obliviousjoin"
"""The name of the operators that join without a window."""
GRID = 4
"""Samples a second."""
PARTS = 1 << 14
"""Number of parts into which a search for a share of results divides that share."""


@dataclass(frozen=True)
class Query:
    """A query of the paper, with the rows of its streams and all its results."""

    name: str
    streams: tuple[ScrambledStream, ...]
    logs: tuple[ArrivalLog, ...]

    @classmethod
    def of(cls, name: str, streams: Sequence[ScrambledStream]) -> Query:
        """Return a query with the rows of its streams."""
        return cls(
            name, tuple(streams), tuple(ArrivalLog(each.name, each.table()) for each in streams)
        )

    @property
    def seconds(self) -> int:
        """The seconds in which rows come, rounded up."""
        return int(np.ceil(self.streams[0].seconds))

    @cached_property
    def joins(self) -> tuple[Truth, ...]:
        """The results of each of its joins; those of the last join are the query's."""
        if len(self.logs) == 3:
            return (Truth(self.logs),)
        first, second = Truth(self.logs[:3]), Truth(self.logs[3:])
        return first, second, Truth((first.log("S7"), second.log("S8")))

    @property
    def total(self) -> int:
        """The number of all results."""
        return self.joins[-1].results.height

    def found_by(self, sizes: Sequence[Sequence[float]]) -> float:
        """Return the share of all results that joins with fixed buffers find."""
        if len(self.joins) == 1:
            return float(self.joins[0].reached(sizes[0]).mean())
        pairs = zip(self.joins, ("S7", "S8"), sizes, strict=False)
        last = Truth(tuple(join.log(name, own) for join, name, own in pairs))
        return float(last.reached(sizes[-1]).sum()) / self.total

    @property
    def inputs(self) -> int:
        """Number of buffers its joins have together."""
        return sum(len(join.logs) for join in self.joins)

    def one_size(self, size: int) -> list[list[int]]:
        """Return buffers of one size for all inputs."""
        return [[size] * len(join.logs) for join in self.joins]

    def least_size(self, accuracy: float) -> int:
        """Return the least size of all buffers that find a share of all results."""
        low, high = 0, max(int(join.needs.max()) for join in self.joins)
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.found_by(self.one_size(middle)) >= accuracy
            low, high = (low, middle) if enough else (middle, high)
        return high

    def fixed_sizes(self, accuracy: float) -> list[list[int]]:
        """Return fixed buffers that find a share of all results, each sized for the same share."""
        low, high = 0, PARTS
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.found_by([join.sizes(middle / PARTS) for join in self.joins]) >= accuracy
            low, high = (low, middle) if enough else (middle, high)
        return [join.sizes(high / PARTS) for join in self.joins]

    def stream(self, mode: ReliefMode = "plain", known: bool = False) -> lw.Stream:
        """Return the query; its disorder is stated (``known``) or left to be measured."""
        sources = [
            lw.stream(
                lw.replay(log.table, f"{log.name}_at"),
                name=log.name,
                time=KEY,
                progress=_stated(each) if known else lw.unpromised(),
            )
            for each, log in zip(self.streams, self.logs, strict=True)
        ]
        if len(sources) == 3:
            return lw.join(sources, on=KEY, strategy=mode)
        first = lw.join(sources[:3], on=KEY, strategy=mode)
        second = lw.join(sources[3:], on=KEY, strategy=mode)
        return lw.join([first, second], on=KEY, strategy=mode)


def _stated(stream: ScrambledStream) -> Contract:
    return lw.unpromised(disorder=stream.disorder, multiplicity=stream.multiplicity)


@cache
def query_1(setting: Setting) -> Query:
    """Return one join of three streams."""
    return Query.of("Query 1", setting.query_1())


@cache
def query_2(setting: Setting) -> Query:
    """Return J3 over J1 and J2, of three streams each."""
    return Query.of("Query 2", setting.query_2())


QUERIES = {1: query_1, 2: query_2}


class Samples(Observer):
    """Samples all joins without a window, on a grid of moments."""

    def __init__(self) -> None:
        self._next = 0
        self.rows: list[dict[str, float | None]] = []

    def on_idle(self) -> None:
        """Take a sample if the next moment of the grid has come."""
        if self.run.now < self._next:
            return
        self._next = (self.run.now * GRID // SECOND + 1) * SECOND // GRID
        for number, join in enumerate(self.run.named(JOIN)):
            details, ports = join.details, range(join.inputs)
            held = [int(details[f"held rows[{port}]"]) for port in ports]
            size = join.bytes / max(1, sum(held))
            for port in ports:
                predicted = details.get(f"predicted rows[{port}]")
                self.rows.append(
                    {
                        "second": self.run.seconds,
                        "join": number,
                        "input": port,
                        "held_rows": held[port],
                        "predicted_rows": predicted if isinstance(predicted, int | float) else None,
                        "disk_rows": int(details[f"rows on disk[{port}]"]),
                        "held_bytes": held[port] * size,
                    }
                )


class FixedJoin(MultiJoin):
    """Matches the same rows as another join, with the newest rows of each input as its buffers.

    Rows that are taken in together are matched before any is dropped for them.
    """

    rule: ClassVar[str] = "none before the end"

    def __init__(self, join: MultiJoin, sizes: Sequence[int]):
        super().__init__(join.store, join._shape, [each.width for each in join._slicing])
        self._sizes = sizes
        self._came: list[deque[int]] = [deque() for _ in join._shape.ports]

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Match rows; then drop the oldest rows, down to the size of the buffer."""
        results = super().on_chunk(port, chunk)
        came = self._came[port]
        came.extend(self._shape.domain.array_of(chunk[self._shape.times[port]]).tolist())
        while len(came) > self._sizes[port]:
            self._push_out(port, came.popleft())
        return results

    def _push_out(self, port: int, ticks: int) -> None:
        """Drop the oldest row of a time; rows of a slice are in the order in which they came."""
        slice_ = ticks // self._slicing[port].width
        held = take(self.store, rows_of(port), slice_, slice_ + 1)
        if held is None:
            return
        same = held.select(self._shape.inside_time(port)).to_series().to_numpy() == ticks
        if same.any():
            at = int(np.argmax(same))
            held = pl.concat([held[:at], held[at + 1 :]], rechunk=True)
        if held.height:
            self.store.put(rows_of(port), slice_, held)


@dataclass(frozen=True)
class JoinRun:
    """One run of a query."""

    query: Query
    results: pl.DataFrame
    """By result: the place of each input's row, the arrival of the last of them (``at``), and the
    time at which the result left (``_out_at``), in seconds."""
    samples: pl.DataFrame
    details: list[dict[str, Any]]
    """The details that each join adds to its metrics, at the end."""

    @cached_property
    def accuracy(self) -> float:
        """The share of all results that the join found; an error if one is wrong or came twice."""
        names = [log.name for log in self.query.logs]
        if self.results.select(names).is_duplicated().any():
            raise AssertionError("a result came out twice")
        keys = [log.keys[self.results[log.name].to_numpy() - 1] for log in self.query.logs]
        if any(not np.array_equal(key, self.results[KEY].to_numpy()) for key in keys):
            raise AssertionError("a result is no match")
        return self.results.height / self.query.total

    @cached_property
    def latency(self) -> NDArray[np.float64]:
        """Seconds from the arrival of each result's last row until it left."""
        waited: NDArray[np.float64] = (self.results["_out_at"] - self.results["at"]).to_numpy()
        return waited

    def per_second(self) -> pl.DataFrame:
        """Return the most rows that were held and predicted in each second, by join and input."""
        second = pl.col("second").floor().cast(pl.Int64)
        return (
            self.samples.with_columns(second)
            .filter(pl.col("second") < self.query.seconds)
            .group_by("join", "input", "second", maintain_order=True)
            .agg(pl.col("held_rows", "predicted_rows", "disk_rows", "held_bytes").max())
        )

    def average(self, what: str = "held_rows") -> pl.DataFrame:
        """Return the average of a column while rows came, by join and input."""
        during = self.samples.filter(pl.col("second") < self.query.seconds)
        return during.group_by("join", "input", maintain_order=True).agg(pl.col(what).mean())

    def memory(self, what: str = "held_rows") -> float:
        """Return the average of a column over all joins together."""
        return float(self.average(what)[what].sum())


def run(
    query: Query,
    mode: ReliefMode = "plain",
    *,
    known: bool = False,
    sizes: Sequence[Sequence[int]] | None = None,
    charge: Charge = "nothing",
    tick: float = 0.0,
) -> JoinRun:
    """Run a query row by row, or in ticks of some seconds of arrivals to be done sooner.

    Where work takes time (``charge``), rows that have queued are read together. ``known``: the
    disorder of the streams is stated, not measured. With ``sizes`` the joins have fixed buffers
    instead, a size for each input of each join.
    """
    samples, substitutes = Samples(), dict[str, Callable[[Kernel], Kernel]]()
    if sizes is not None:
        left = iter(sizes)

        def fixed(join: Kernel) -> Kernel:
            assert isinstance(join, MultiJoin)
            return FixedJoin(join, next(left))

        substitutes[JOIN] = fixed
    probe = Probe(
        query.stream(mode, known),
        observer=samples if sizes is None else None,
        charge=charge,
        tick=tick,
        chunk_rows=CHUNK_ROWS if tick or charge != "nothing" else 1,
        substitutes=substitutes,
    )
    with warnings.catch_warnings():  # how many results are found is what is measured here
        warnings.simplefilter("ignore", lw.StreamWarning)
        probe.run()
    last = pl.max_horizontal(f"{log.name}_at" for log in query.logs).alias("at")
    names = [log.name for log in query.logs]
    joins = probe.named(JOIN)
    if any(join.rows for join in joins):
        raise AssertionError("rows are left after the end")
    return JoinRun(
        query,
        probe.results.select(KEY, *names, last, "_out_at"),
        pl.DataFrame(samples.rows, infer_schema_length=None),
        [join.details for join in joins],
    )


@dataclass(frozen=True)
class QuerySettings:
    """The streams of an experiment, and how their rows are handed over."""

    settings: tuple[Setting, ...]
    ticks: tuple[float, float]
    """Seconds of arrivals handed over together, by query; 0 hands over each row as it arrives."""

    def run(
        self, number: int, setting: Setting, mode: ReliefMode = "plain", known: bool = False
    ) -> JoinRun:
        """Return a run of Query 1 or 2, which several claims share."""
        return _once(number, setting, self.ticks[number - 1], mode, known)


@cache
def _once(number: int, setting: Setting, tick: float, mode: ReliefMode, known: bool) -> JoinRun:
    return run(QUERIES[number](setting), mode, known=known, tick=tick)


FULL = QuerySettings(tuple(Setting(seed) for seed in (1, 2, 3)), ticks=(0.0, 0.1))
QUICK = QuerySettings((Setting(1, faster=4, warm=6),), ticks=(0.25, 0.25))
SCALE = Scale(FULL, QUICK)
