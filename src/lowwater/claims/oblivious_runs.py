"""Window-oblivious joins at work: the two queries of WO-Join §5, row by row on a virtual clock.

A run is looked into on a grid of moments: what every join holds, what its model predicts, what it
has put on disk. Its results are compared with all there are, and each says when it came out.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims.measure import Collected
from lowwater.claims.oblivious_fixed import OBLIVIOUS, fixed
from lowwater.claims.oblivious_streams import KEY, Setting, Stream
from lowwater.claims.oblivious_truth import Log, Truth
from lowwater.engines.embedded.clock import Charge, VirtualClock
from lowwater.engines.embedded.engine import EmbeddedEngine, Pace
from lowwater.engines.embedded.graph import Stage
from lowwater.errors import StreamWarning
from lowwater.joins.oblivious.options import ReliefMode
from lowwater.plan.physical.compile import compile_plan
from lowwater.progress.contract import Contract
from lowwater.sources.replay import Replay
from lowwater.stream.duration import SECOND

GRID = 4
"""Looks a second."""


PARTS = 1 << 14
"""How finely shares of results are told apart."""


@dataclass(frozen=True)
class Query:
    """A query over streams of a setting: their rows, all results there are, and the query."""

    name: str
    streams: tuple[Stream, ...]
    logs: tuple[Log, ...]

    @classmethod
    def of(cls, name: str, streams: Sequence[Stream]) -> Query:
        """With its rows."""
        return cls(name, tuple(streams), tuple(Log(each.name, each.table()) for each in streams))

    @property
    def seconds(self) -> int:
        """How long rows come."""
        return int(np.ceil(self.streams[0].seconds))

    @cached_property
    def joins(self) -> tuple[Truth, ...]:
        """What each of its joins could find; the last one's are the query's."""
        if len(self.logs) == 3:
            return (Truth(self.logs),)
        first, second = Truth(self.logs[:3]), Truth(self.logs[3:])
        return first, second, Truth((first.log("S7"), second.log("S8")))

    @property
    def total(self) -> int:
        """How many results there are."""
        return self.joins[-1].results.height

    def found_by(self, sizes: Sequence[Sequence[float]]) -> float:
        """The share of all results that joins with fixed buffers find."""
        if len(self.joins) == 1:
            return float(self.joins[0].reached(sizes[0]).mean())
        pairs = zip(self.joins, ("S7", "S8"), sizes, strict=False)
        last = Truth(tuple(join.log(name, own) for join, name, own in pairs))
        return float(last.reached(sizes[-1]).sum()) / self.total

    @property
    def inputs(self) -> int:
        """How many buffers its joins have together."""
        return sum(len(join.logs) for join in self.joins)

    def one_size(self, size: int) -> list[list[int]]:
        """Buffers of one size for all inputs."""
        return [[size] * len(join.logs) for join in self.joins]

    def least_size(self, accuracy: float) -> int:
        """The least size of all buffers that find a share of all results."""
        low, high = 0, max(int(join.needs.max()) for join in self.joins)
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.found_by(self.one_size(middle)) >= accuracy
            low, high = (low, middle) if enough else (middle, high)
        return high

    def fixed_sizes(self, accuracy: float) -> list[list[int]]:
        """The least fixed buffers that find a share of all results, every input as far back."""
        low, high = 0, PARTS
        while high - low > 1:
            middle = (low + high) // 2
            enough = self.found_by([join.sizes(middle / PARTS) for join in self.joins]) >= accuracy
            low, high = (low, middle) if enough else (middle, high)
        return [join.sizes(high / PARTS) for join in self.joins]

    def stream(self, mode: ReliefMode = "plain", known: bool = False) -> lw.Stream:
        """The query; disorder is said, or left to be measured."""
        sources = [
            lw.stream(
                Replay(log.table, f"{log.name}_at"),
                name=log.name,
                time=KEY,
                progress=_said(each) if known else lw.unpromised(),
            )
            for each, log in zip(self.streams, self.logs, strict=True)
        ]
        if len(sources) == 3:
            return lw.join(sources, on=KEY, strategy=mode)
        first = lw.join(sources[:3], on=KEY, strategy=mode)
        second = lw.join(sources[3:], on=KEY, strategy=mode)
        return lw.join([first, second], on=KEY, strategy=mode)


def _said(stream: Stream) -> Contract:
    return lw.unpromised(disorder=stream.disorder, multiplicity=stream.multiplicity)


@cache
def query_1(setting: Setting) -> Query:
    """One join of three streams."""
    return Query.of("Query 1", setting.query_1())


@cache
def query_2(setting: Setting) -> Query:
    """J3 over J1 and J2, of three streams each."""
    return Query.of("Query 2", setting.query_2())


QUERIES = {1: query_1, 2: query_2}


class LookingClock(VirtualClock):
    """A virtual clock that looks into all joins as it passes a grid of moments."""

    def __init__(self, charge: Charge = "nothing"):
        super().__init__(charge=charge)
        self._stages: list[Stage] = []
        self._next = 0
        self.looks: list[dict[str, float | None]] = []

    def watch(self, engine: EmbeddedEngine) -> None:
        """Look into the joins of an engine that has not run yet."""
        self._stages = [s for s in engine._stages.values() if s.operator.name == OBLIVIOUS]

    def wait(self, until: int | None) -> None:
        """Look, if it is time, then jump."""
        if self.now() >= self._next:
            for number, stage in enumerate(self._stages):
                self.looks += self._look(number, stage)
            self._next = (self.now() * GRID // SECOND + 1) * SECOND // GRID
        super().wait(until)

    def _look(self, number: int, stage: Stage) -> list[dict[str, float | None]]:
        about, ports = stage.kernel.about(), range(stage.kernel.ports)
        held = [int(about[f"held rows[{port}]"]) for port in ports]
        size = stage.store.bytes / max(1, sum(held))
        return [
            {
                "second": self.now() / SECOND,
                "join": number,
                "input": port,
                "held_rows": held[port],
                "predicted_rows": _number(about.get(f"predicted rows[{port}]")),
                "disk_rows": int(about[f"rows on disk[{port}]"]),
                "held_bytes": held[port] * size,
            }
            for port in ports
        ]


def _number(value: object) -> float | None:
    return value if isinstance(value, int | float) else None


@dataclass(frozen=True)
class Run:
    """What one run of a query did."""

    query: Query
    results: pl.DataFrame
    """The place of each input's row, when the last of them came, when the result came out."""
    looks: pl.DataFrame
    abouts: list[dict[str, object]]
    """What each join said of itself at the end."""

    @cached_property
    def accuracy(self) -> float:
        """The share of all results that came out; none of them twice, and no others."""
        names = [log.name for log in self.query.logs]
        if self.results.select(names).is_duplicated().any():
            raise AssertionError("a result came out twice")
        keys = [log.keys[self.results[log.name].to_numpy() - 1] for log in self.query.logs]
        if any(not np.array_equal(key, self.results[KEY].to_numpy()) for key in keys):
            raise AssertionError("a result is none")
        return self.results.height / self.query.total

    @cached_property
    def latency(self) -> NDArray[np.float64]:
        """Seconds from the arrival of each result's last row until it came out."""
        waited: NDArray[np.float64] = (self.results["_out_at"] - self.results["at"]).to_numpy()
        return waited

    def per_second(self) -> pl.DataFrame:
        """The most that was held and predicted in each second, by join and input."""
        second = pl.col("second").floor().cast(pl.Int64)
        return (
            self.looks.with_columns(second)
            .filter(pl.col("second") < self.query.seconds)
            .group_by("join", "input", "second", maintain_order=True)
            .agg(pl.col("held_rows", "predicted_rows", "disk_rows", "held_bytes").max())
        )

    def average(self, what: str = "held_rows") -> pl.DataFrame:
        """What was held on average while rows came, by join and input."""
        during = self.looks.filter(pl.col("second") < self.query.seconds)
        return during.group_by("join", "input", maintain_order=True).agg(pl.col(what).mean())

    def memory(self, what: str = "held_rows") -> float:
        """What all joins together held on average."""
        return float(self.average(what)[what].sum())


def run(
    query: Query,
    mode: ReliefMode = "plain",
    *,
    known: bool = False,
    sizes: Sequence[Sequence[int]] | None = None,
    charge: Charge = "nothing",
    tick: float = 0.0,
) -> Run:
    """Run a query row by row, or in ticks of some seconds of arrivals to be done sooner.

    Where work takes time, rows that have queued are read together. With ``sizes`` its joins have
    fixed buffers instead.
    """
    plan = compile_plan(query.stream(mode, known)._node)
    if sizes is not None:
        plan = fixed(plan, sizes)
    clock = LookingClock(charge)
    sink = Collected(clock)
    at_once = 65_536 if tick or charge != "nothing" else 1
    engine = EmbeddedEngine(plan, sink, clock, Pace(at_once, round(tick * SECOND)), None)
    if sizes is None:
        clock.watch(engine)
    with warnings.catch_warnings():  # how many results are found is what is measured here
        warnings.simplefilter("ignore", StreamWarning)
        engine.run()
    last = pl.max_horizontal(f"{log.name}_at" for log in query.logs).alias("at")
    names = [log.name for log in query.logs]
    stages = [s for s in engine._stages.values() if s.operator.name == OBLIVIOUS]
    if any(stage.store.rows for stage in stages):
        raise AssertionError("rows are left after the end")
    return Run(
        query,
        sink.table().select(KEY, *names, last, "_out_at"),
        pl.DataFrame(clock.looks, infer_schema_length=None),
        [dict(stage.kernel.about()) for stage in stages],
    )


@dataclass(frozen=True)
class Scale:
    """How large an experiment is."""

    settings: tuple[Setting, ...]
    ticks: tuple[float, float]
    """Seconds of arrivals handed over together, by query; 0 hands over each row as it arrives."""

    def run(
        self, number: int, setting: Setting, mode: ReliefMode = "plain", known: bool = False
    ) -> Run:
        """A run that several claims look at."""
        return _once(number, setting, self.ticks[number - 1], mode, known)


@cache
def _once(number: int, setting: Setting, tick: float, mode: ReliefMode, known: bool) -> Run:
    return run(QUERIES[number](setting), mode, known=known, tick=tick)


FULL = Scale(tuple(Setting(seed) for seed in (1, 2, 3)), ticks=(0.0, 0.1))
QUICK = Scale((Setting(1, faster=4, warm=6),), ticks=(0.25, 0.25))


def scale(quick: bool) -> Scale:
    """The size of a claim's run."""
    return QUICK if quick else FULL
