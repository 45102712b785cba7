"""This benchmark compares the three most used kernels with plain Polars on the same rows.

Polars has all rows at once; ours gets them in chunks, out of order, and answers as it goes. So the
ratio is the price of streaming. Each case also measures how its cost a row changes with the length
of the stream, which it should not, and with smaller chunks, each of which has a cost of its own.

The last part compares the cost of a chunk in a stream of many groups, of which few still have rows,
with its cost in a stream of these few groups alone. Every group has rows twice; from then on only
the same hundred groups have rows. Processor time is counted, because waiting is not compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import numpy as np
import polars as pl

from lowwater.api import Stream, stream
from lowwater.bench.report import Row, figure
from lowwater.engines.step import Where, step
from lowwater.operators.kernel import ALONE
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.contract import ordered, within
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Chunk, Element

CHUNK = 100_000
SMALL_CHUNK = 10_000
GROWTH = (1, 4, 16)
DISORDER = 2.0
"""Seconds by which a row may be behind the rows before it."""

Frames = Sequence[pl.DataFrame]


@dataclass(frozen=True)
class Case:
    """One kernel: its rows, our query, and several ways to write it in Polars."""

    name: str
    what: str
    target: float
    sources: int
    rate: int
    """Rows a second of each source."""
    rows: int
    """Rows of each source in the comparison."""
    start: int
    """Rows of each source on the shortest stream of the measurement of growth."""
    keys: Mapping[str, int]
    ours: Callable[[Frames], Stream]
    peers: Mapping[str, Callable[[Frames], pl.DataFrame]]

    def frames(self, rows: int) -> list[pl.DataFrame]:
        """Return the sources' rows, slightly out of order, from a fixed seed."""
        return [_rows(rows, self.rate, self.keys, seed) for seed in range(self.sources)]


def _rows(count: int, rate: int, keys: Mapping[str, int], seed: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    arrived = np.arange(count) / rate
    micros = ((arrived + 1e6 - rng.uniform(0, DISORDER, count)) * 1e6).astype(np.int64)
    columns = {name: rng.integers(0, size, count) for name, size in keys.items()}
    times = pl.Series("ts", micros).cast(pl.Datetime("us"))
    return pl.DataFrame({"ts": times, **columns, f"row{seed}": np.arange(count)})


def _streams(frames: Frames) -> list[Stream]:
    return [stream(frame, time="ts", progress=within(DISORDER)) for frame in frames]


# ---- K1: tumbling window -------------------------------------------------------------------


def _tumbling(frames: Frames) -> Stream:
    (rows,) = _streams(frames)
    return rows.window("1 minute").group_by("a", "b").agg(n="count(*)")


def _tumbling_polars(frames: Frames) -> pl.DataFrame:
    minute = pl.col("ts").dt.truncate("1m").alias("window_start")
    counted = frames[0].lazy().group_by(minute, "a", "b").agg(pl.len().cast(pl.Int64).alias("n"))
    return counted.select("window_start", _end("1m"), "a", "b", "n").collect()


def _end(length: str) -> pl.Expr:
    return pl.col("window_start").dt.offset_by(length).alias("window_end")


# ---- K2: band join -------------------------------------------------------------------------

_KEY = ("a", "b", "c", "d")
_BAND = pl.duration(seconds=60)


def _band(frames: Frames) -> Stream:
    left, right = _streams(frames)
    return left.join(right, on=list(_KEY), within="60 seconds")


def _near() -> pl.Expr:
    return pl.col("ts_right").is_between(pl.col("ts") - _BAND, pl.col("ts") + _BAND)


def _join_then_filter(frames: Frames) -> pl.DataFrame:
    left, right = (frame.lazy() for frame in frames)
    pairs = left.join(right, on=_KEY).filter(_near())
    return pairs.collect(engine="streaming")  # the in-memory engine would hold every pair at once


def _join_by_bucket(frames: Frames) -> pl.DataFrame:
    """Join each left row with the right rows of three minutes only."""
    left, right = (frame.lazy() for frame in frames)
    minute = pl.col("ts").dt.truncate("1m")
    reach = pl.concat_list(minute - _BAND, minute, minute + _BAND).alias("minute")
    left = left.with_columns(reach).explode("minute")
    pairs = left.join(right.with_columns(minute.alias("minute")), on=(*_KEY, "minute"))
    return pairs.filter(_near()).drop("minute").collect()


# ---- K3: sliding window over a union -------------------------------------------------------


def _sliding(frames: Frames) -> Stream:
    first, *others = (each.select("ts", "key") for each in _streams(frames))
    return first.union(*others).window("5 minutes", "1 minute").group_by("key").agg(n="count(*)")


def _united(frames: Frames) -> pl.LazyFrame:
    return pl.concat([frame.lazy().select("ts", "key") for frame in frames])


def _covering(minute: pl.Expr) -> pl.Expr:
    """Return the starts of the five windows that a minute lies in."""
    starts = pl.concat_list([minute - pl.duration(minutes=back) for back in range(5)])
    return starts.alias("window_start")


def _answered(counts: pl.LazyFrame) -> pl.DataFrame:
    number = pl.col("n").cast(pl.Int64)
    return counts.select("window_start", _end("5m"), "key", number).collect()


def _by_dynamic(frames: Frames) -> pl.DataFrame:
    """Count with an offset of four minutes, for the windows that open before the first row."""
    counts = (
        _united(frames)
        .sort("ts")
        .group_by_dynamic("ts", every="1m", period="5m", offset="-4m", group_by="key")
        .agg(pl.len().alias("n"))
    )
    return _answered(counts.rename({"ts": "window_start"}))


def _by_explode(frames: Frames) -> pl.DataFrame:
    rows = _united(frames).select("key", _covering(pl.col("ts").dt.truncate("1m")))
    counts = rows.explode("window_start").group_by("window_start", "key")
    return _answered(counts.agg(pl.len().alias("n")))


def _by_panes(frames: Frames) -> pl.DataFrame:
    """Count as our kernel does, written out by hand: minutes first, windows from minutes."""
    minutes = _united(frames).group_by(pl.col("ts").dt.truncate("1m").alias("pane"), "key")
    panes = minutes.agg(pl.len().alias("n")).with_columns(_covering(pl.col("pane")))
    counts = panes.explode("window_start").group_by("window_start", "key").agg(pl.col("n").sum())
    return _answered(counts)


CASES = (
    Case(
        "K1", "tumbling 1 min count, 520k groups by 2 columns", 0.25, 1, 16_000, 4_000_000,
        1_000_000, {"a": 720, "b": 722}, _tumbling, {"group_by": _tumbling_polars},
    ),
    Case(
        "K2", "band join, 4-column key, ±60 s", 0.2, 2, 1_000, 2_000_000, 250_000,
        {"a": 20, "b": 20, "c": 25, "d": 10}, _band,
        {"join, filter": _join_then_filter, "join by minute, filter": _join_by_bucket},
    ),
    Case(
        "K3", "sliding 5 min / 1 min count over a union of 3", 0.25, 3, 2_000, 1_000_000, 250_000,
        {"key": 1_000}, _sliding,
        {
            "group_by_dynamic": _by_dynamic,
            "explode, group_by": _by_explode,
            "panes by hand": _by_panes,
        },
    ),
)  # fmt: skip


# ---- timing, and proof that the work is the same -----------------------------------------------

ROUNDS = 3
"""Number of rounds in which every side takes its turn, unless the time is up before."""
PATIENCE = 20.0
"""Seconds after which no new round is begun."""

Seconds = list[float]
"""The seconds of each repetition of one side."""


@dataclass(frozen=True)
class Fingerprint:
    """Two numbers that are equal for equal bags of rows: their number and the sum of hashes."""

    rows: int
    checksum: int

    @classmethod
    def of(cls, *frames: pl.DataFrame) -> Fingerprint:
        """Return the fingerprint of all rows of some frames, in whatever order."""
        total = sum(_hash(frame) for frame in frames)
        return cls(sum(frame.height for frame in frames), total % 2**64)


def alternate(
    sides: Mapping[str, Callable[[], object]], rounds: int = ROUNDS
) -> dict[str, Seconds]:
    """Time the sides in turn, so that other load on the machine slows all of them."""
    timings: dict[str, Seconds] = {name: [] for name in sides}
    begun = time.perf_counter()
    for _ in range(rounds):
        for name, work in sides.items():
            start = time.perf_counter()
            work()
            timings[name].append(time.perf_counter() - start)
        if time.perf_counter() - begun > PATIENCE:
            break
    return timings


def stream_through(query: Stream, chunk_rows: int) -> None:
    """Run a query to its end and drop the results."""
    query.run(sink=_drop, chunk_rows=chunk_rows).await_termination()


def stream_results(query: Stream, chunk_rows: int) -> Fingerprint:
    """Run a query to its end and return the fingerprint of its results."""
    held: list[pl.DataFrame] = []

    def keep(table: Any) -> None:
        frame = pl.from_arrow(table)
        assert isinstance(frame, pl.DataFrame)
        held.append(frame)

    query.run(sink=keep, chunk_rows=chunk_rows).await_termination()
    return Fingerprint.of(*held)


def _drop(_: object) -> None:
    """Drop results."""


def _hash(frame: pl.DataFrame) -> int:
    """Return the sum of the row hashes, added by halves, so that nothing overflows."""
    hashes = frame.hash_rows(7)
    return int((hashes & 0xFFFFFFFF).sum()) + (int((hashes // 2**32).sum()) << 32)


# ---- beside Polars -----------------------------------------------------------------------------


def run_kernels() -> Iterator[Row]:
    """Run every case against Polars, on longer streams, with smaller chunks; then many groups."""
    for case in CASES:
        yield from _against_polars(case)
        yield from _growth(case)
    yield from _many_groups()


def _against_polars(case: Case) -> Iterator[Row]:
    frames = case.frames(case.rows)
    truth = stream_results(case.ours(frames), CHUNK)
    same = {name: Fingerprint.of(peer(frames)) == truth for name, peer in case.peers.items()}
    sides: dict[str, Callable[[], object]] = {"ours": lambda: _stream(case, frames, CHUNK)}
    sides |= {name: partial(peer, frames) for name, peer in case.peers.items()}
    timings = alternate(sides)
    rows = case.rows * case.sources
    ours = rows / median(timings["ours"])
    for name in case.peers:
        theirs = rows / median(timings[name])
        best = min(timings[name]) / min(timings["ours"])
        yield _row(case, f"{case.name} against Polars", ours, (f"Polars: {name}", theirs), rows) | {
            "ratio_of_best": best,
            "target": case.target,
            "same_results": same[name],
            "rows_out": truth.rows,
        }


def _growth(case: Case) -> Iterator[Row]:
    longest = case.frames(case.start * max(GROWTH))
    cuts = [[frame.head(case.start * factor) for frame in longest] for factor in GROWTH]
    sides = {
        str(factor): partial(_stream, case, cut, CHUNK)
        for factor, cut in zip(GROWTH, cuts, strict=True)
    }
    timings = alternate(sides, 2)
    first = _count(cuts[0]) / min(timings[str(GROWTH[0])])
    for factor, cut in zip(GROWTH, cuts, strict=True):
        speed = _count(cut) / min(timings[str(factor)])
        name = f"{case.name} stream {factor}× as long"
        yield _row(case, name, speed, ("ours at 1×", first), _count(cut))
    sides = {str(chunk): partial(_stream, case, cuts[1], chunk) for chunk in (CHUNK, SMALL_CHUNK)}
    timings = alternate(sides, 2)
    large, small = (_count(cuts[1]) / min(timings[name]) for name in sides)
    name = f"{case.name} chunks of {SMALL_CHUNK:,} rows"
    yield _row(case, name, small, (f"ours, chunks of {CHUNK:,}", large), _count(cuts[1]))


def _stream(case: Case, frames: Frames, chunk_rows: int) -> None:
    stream_through(case.ours(frames), chunk_rows)


def _count(frames: Frames) -> int:
    return sum(frame.height for frame in frames)


def _row(case: Case, name: str, ours: float, peer: tuple[str, float], rows: int) -> Row:
    found = figure(name, case.what, "rows/s", ours, *peer, rows)
    return found | {"ours_ns_per_row": 1e9 / ours}


# ---- many groups ---------------------------------------------------------------------------

KNOWN, MOVING = 100_000, 100
"""Numbers of groups: all, and those that have rows in later chunks."""
GROUP_ROWS = 1_000
"""Rows of a chunk."""
CHUNKS = 60
GROUPS_TARGET = 1.5
NOWHERE = Where("bench", "", "")

Query = Callable[[Stream, Stream], Stream]

QUERIES: dict[str, Query] = {
    "rows judged": lambda a, _: a.where("v >= 0"),
    "tumbling window": lambda a, _: a.window(10).group_by("g").agg(n="count(*)"),
    "session": lambda a, _: a.session(8).group_by("g").agg(n="count(*)"),
    "distinct": lambda a, _: a.distinct("ts", "g"),
    "group by time": lambda a, _: a.group_by("ts", "g").agg(n="count(*)"),
    "band join": lambda a, b: a.join(b, on="g", within=5),
    "anti join": lambda a, b: a.join(b, on="g", within=5, how="anti"),
}


def chunks(known: int) -> tuple[list[Chunk], list[Chunk]]:
    """Return chunks with rows of all groups, and later ones with rows of few; both have equally
    many rows a second."""
    rng = np.random.default_rng(0)
    rate = GROUP_ROWS // 10
    first = []
    for turn in (-2, -1):
        for low in range(0, known, 10_000):
            groups = np.arange(low, min(low + 10_000, known))
            first.append(_frame(turn * known // rate + groups // rate, groups))
    later = []
    for number in range(CHUNKS):
        times = np.sort(rng.integers(10 + number * 10, 20 + number * 10, GROUP_ROWS))
        later.append(_frame(times, rng.integers(0, min(MOVING, known), GROUP_ROWS)))
    return first, later


def _frame(times: Any, groups: Any) -> Chunk:
    return pl.DataFrame({"ts": times, "g": groups, "v": groups})


def millis(query: Query, known: int) -> float:
    """Return the median milliseconds of processor time that a chunk takes."""
    empty = pl.DataFrame(schema={"ts": pl.Int64, "g": pl.Int64, "v": pl.Int64})
    sides = [stream(empty, name=each, time="ts", progress=ordered(), groups="g") for each in "ab"]
    plan = compile_plan(query(sides[0], sides[1])._node)
    kernels = {each.index: each.build(MemoryStore(), ALONE) for each in plan.kernels}
    intakes = {each.index: Intake(each.spec, plan.demands[each.index]) for each in plan.sources}

    def push(producer: int, elements: Sequence[Element]) -> None:
        for element in elements:
            if isinstance(element, pl.DataFrame) and not element.height:
                continue
            for index, port in plan.consumers(producer):
                push(index, step(kernels[index], port, element, NOWHERE))

    def taken(chunk: Chunk) -> float:
        begun = time.process_time()
        for index, intake in intakes.items():
            result = intake.take(chunk, 0)
            push(index, [result.rows, *result.promises])
        return time.process_time() - begun

    first, later = chunks(known)
    for chunk in first:
        taken(chunk)
    return median(map(taken, later)) * 1e3


def _many_groups() -> Iterator[Row]:
    """Run each query with few groups and with many."""
    for name, query in QUERIES.items():
        turns = [(millis(query, MOVING), millis(query, KNOWN)) for _ in range(2)]
        few, many = (min(each) for each in zip(*turns, strict=True))
        what = f"a chunk of {GROUP_ROWS:,} rows of {MOVING} groups, {KNOWN:,} known"
        peer, rows = f"ours, {MOVING} groups in all", GROUP_ROWS * CHUNKS
        yield figure(f"many groups: {name}", what, "ms", many, peer, few, rows) | {
            "target": GROUPS_TARGET
        }
