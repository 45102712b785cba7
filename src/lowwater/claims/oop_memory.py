"""These claims measure the memory of unions and joins over skewed or late streams: OOP §8.

Fig. 1 (§8.1, G2) and §8.2, N3 aggregate over unions; §8.1, G3 and §8.2, N2 join them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims import oop_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.packets import REPLIES, Link
from lowwater.probe import Probe
from lowwater.typing import PlanShape

F1_LIMIT, F1_PAPER = 0.35, 0.30
N3_LIMIT = 1.25
G3_LIMIT = 1.2
N2_LIMIT = 0.8
SHAPES: dict[str, PlanShape] = {"iop": "in-order", "oop": "out-of-order"}
ALL_ROWS = 10_000_000
"""The most rows that are handed over at once: more than any tick has."""


def cost(query: lw.Stream, shape: PlanShape, tick: float) -> Probe:
    """Run a query to its end, rows handed over in ticks of so many seconds of arrival time."""
    run = Probe(query, plan=shape, tick=tick, chunk_rows=ALL_ROWS, keep=False).run()
    late = run.metrics().late_rows
    if late:
        raise AssertionError(f"{late} rows were late; the set-up is wrong")
    return run


def sweep(
    name: str, points: Sequence[float], query: Callable[[float], lw.Stream], tick: float = 1.0
) -> pl.DataFrame:
    """Measure the peak memory of both plans at every value of a parameter (column ``name``).

    ``bytes`` count state and rows in queues; ``state_bytes`` and ``rows`` count what operators
    hold, with the rows that wait in merges and sorts.
    """
    rows = []
    for point in points:
        stream = query(point)
        runs = {each: cost(stream, shape, tick) for each, shape in SHAPES.items()}
        found = {each: run.metrics() for each, run in runs.items()}
        iop, oop = found["iop"], found["oop"]
        if iop.rows_out != oop.rows_out:
            raise AssertionError(f"at {point}: the plans gave different numbers of results")
        row: dict[str, Any] = {name: point}
        row |= {f"{each}_bytes": metrics.memory_peak or 0 for each, metrics in found.items()}
        row["ratio"] = row["oop_bytes"] / row["iop_bytes"]
        row |= {f"{each}_state_bytes": metrics.state_bytes_peak for each, metrics in found.items()}
        row |= {f"{each}_rows": metrics.state_rows_peak for each, metrics in found.items()}
        row |= {f"{each}_seconds": run.wall_seconds for each, run in runs.items()}
        rows.append(row)
    return pl.DataFrame(rows)


def row_width(schema: Mapping[str, pl.DataType]) -> int:
    """Return the bytes of a row of fixed-size columns."""
    return sum(int(pl.Series([0]).cast(dtype).estimated_size()) for dtype in schema.values())


# ---- OOP-F1 --------------------------------------------------------------------------------


def _skewed_counts(delay: float, rate: float, groups: int) -> lw.Stream:
    """Return Q5, with windows of 10 s, over a stream on time and one that is ``delay`` s late."""
    seconds = delay + 20
    columns = ("ts", "srcIP", "destIP")
    on_time = Link("M1", rate, seconds, groups, seed=1).stream(*columns)
    late = Link("M2", rate, seconds, groups, seed=2, delay=delay).stream(*columns)
    counted = on_time.union(late).window("10 seconds").group_by("srcIP", "destIP")
    return counted.agg(n="count(*)")


def run_f1(quick: bool) -> Outcome:
    """Measure the memory of Q5 over the delay of the late stream.

    The quick variant divides rates and groups alike by eight, which leaves the rows per group and
    window, and so every ratio, as they are.
    """
    share, delays = Scale((1, (1, 10, 20, 30, 40)), (8, (1, 10, 40))).of(quick)
    query = partial(_skewed_counts, rate=110_000 / share, groups=65_536 // share)
    return f1_outcome(sweep("delay_seconds", delays, query))


def f1_outcome(table: pl.DataFrame) -> Outcome:
    """Judge how far memory is below that of the in-order plan, above all at the largest delay."""
    first, last = table.row(0, named=True), table.row(-1, named=True)
    delay, ratio = last["delay_seconds"], last["ratio"]
    ours = (
        f"IOP {_mb(first['iop_bytes'])} → {_mb(last['iop_bytes'])},"
        f" OOP {_mb(first['oop_bytes'])} → {_mb(last['oop_bytes'])};"
        f" OOP/IOP {first['ratio']:.2f} at {first['delay_seconds']:g} s,"
        f" {ratio:.2f} at {delay:g} s"
    )
    criteria = [
        Criterion(ratio <= F1_LIMIT, f"OOP/IOP is {ratio:.2f} at {delay:g} s"),
        Criterion(bool((table["ratio"] < 1).all()), "OOP is not below IOP throughout"),
    ]
    return judge(ours, criteria, table, lambda figure: plots.f1(figure, table, F1_PAPER))


# ---- OOP-N3 --------------------------------------------------------------------------------


def _sliding_count(delay: float, rate: float) -> lw.Stream:
    """Return Q9 over two fast links on time and a slow one that is ``delay`` seconds late."""
    seconds = delay + 360
    links = (
        Link("M1", rate, seconds, 1_000, seed=1),
        Link("M2", rate, seconds, 1_000, seed=2),
        Link("C", rate / 100, seconds, 1_000, seed=3, delay=delay),
    )
    first, *others = (link.stream("ts") for link in links)
    return first.union(*others).window("5 minutes", "1 minute").agg(n="count(*)")


N3_SCALE = Scale((4_000, (0, 30, 60, 120, 180, 240, 300)), (2_000, (0, 60, 180)))
"""Packets a second, and delays of the slow link in seconds."""


def run_n3(quick: bool) -> Outcome:
    """Measure the memory of Q9 over the delay of the slow link."""
    rate, delays = N3_SCALE.of(quick)
    table = sweep("delay_seconds", delays, partial(_sliding_count, rate=rate), tick=2.0)
    oop, iop = _growth(table, "oop_bytes"), _growth(table, "iop_bytes")
    first, last = table.row(0, named=True), table.row(-1, named=True)
    ours = (
        f"from no delay to {delays[-1]} s: IOP × {iop:.1f} (to {last['iop_bytes'] / 1e3:,.0f} kB),"
        f" OOP × {oop:.2f} (to {last['oop_bytes'] / 1e3:.1f} kB, {last['ratio']:.2%} of IOP);"
        f" OOP's state alone {first['oop_state_bytes'] / 1e3:.1f} →"
        f" {last['oop_state_bytes'] / 1e3:.1f} kB, one more pane a minute of delay"
    )
    criteria = [Criterion(oop <= N3_LIMIT, f"OOP grows × {oop:.2f}")]
    return judge(ours, criteria, table, lambda figure: plots.n3(figure, table, iop, oop))


def _growth(table: pl.DataFrame, column: str) -> float:
    return float(table[column][-1] / table[column][0])


def _mb(size: float) -> str:
    return f"{size / 1e6:.1f} MB"


# ---- OOP-G3 --------------------------------------------------------------------------------


def _window_join(skew: float, rate: float) -> lw.Stream:
    """Return Q6: both inputs are unions of a stream on time and one that is late by ``skew``."""
    link = partial(Link, rate=rate, seconds=skew + 30, flows=round(rate * 20))
    left = link("A", seed=1).stream().union(link("B", seed=2, delay=skew).stream())
    right = (
        link("C", seed=3, reverse=True)
        .stream()
        .union(link("D", seed=4, delay=skew, reverse=True).stream())
    )
    joined = left.join(right, on=REPLIES, within=lw.same("10 seconds"))
    return joined.select("srcIP", "destIP", "ts")


G3_SCALE = Scale((10_000, (0, 5, 10, 20, 30, 40)), (1_000, (0, 20, 40)))
"""Packets a second, and skews within each input in seconds."""


def run_g3(quick: bool) -> Outcome:
    """Measure the memory of Q6 over the skew within each input."""
    rate, skews = G3_SCALE.of(quick)
    return g3_outcome(sweep("skew_seconds", skews, partial(_window_join, rate=rate)))


def g3_outcome(table: pl.DataFrame) -> Outcome:
    """Judge whether both plans hold the same rows, and in how many bytes."""
    worst = float(table["ratio"].max())  # type: ignore[arg-type]
    same = bool((table["iop_rows"] == table["oop_rows"]).all())
    in_join = table["oop_bytes"][-1] / table["oop_rows"][-1]
    arriving = row_width(Link("A", 1, 1, 1, seed=1).stream().schema)
    ours = (
        f"{'the same number of rows' if same else 'different numbers of rows'} held at every skew;"
        f" OOP/IOP bytes at most {worst:.2f} (a row is {arriving} bytes as it arrives and in a"
        f" merge, {in_join:.0f} in the join)"
    )
    criteria = [
        Criterion(same, "the plans hold different numbers of rows"),
        Criterion(worst <= G3_LIMIT, f"OOP takes {worst:.2f} × the bytes"),
    ]
    return judge(ours, criteria, table, lambda figure: plots.g3(figure, table, same, G3_LIMIT))


# ---- OOP-N2 --------------------------------------------------------------------------------


def _equality_join(delay: float, rate: float) -> lw.Stream:
    """Return Q8: the right input is a union of a link on time and a slow one that is late."""
    link = partial(Link, seconds=delay + 30, flows=round(rate * 10), whole_seconds=True)
    right = (
        link("M2", rate, seed=2, reverse=True)
        .stream()
        .union(link("C", rate / 100, seed=3, reverse=True, delay=delay).stream())
    )
    joined = link("M1", rate, seed=1).stream().join(right, on=["ts", *REPLIES])
    return joined.select("srcIP", "destIP", "ts")


N2_SCALE = Scale((4_000, (0, 30, 60, 120, 180, 240)), (400, (0, 30, 60)))
"""Packets a second, and delays of the late tuples in seconds."""


def run_n2(quick: bool) -> Outcome:
    """Measure the memory of Q8 over the delay of the late tuples."""
    rate, delays = N2_SCALE.of(quick)
    table = sweep("delay_seconds", delays, partial(_equality_join, rate=rate))
    iop, oop = _slope(table, "iop_bytes"), _slope(table, "oop_bytes")
    ours = (
        f"a second of delay costs IOP {iop / 1e3:.1f} kB and OOP {oop / 1e3:.1f} kB:"
        f" OOP's slope is {oop / iop:.2f} of IOP's"
    )
    criteria = [Criterion(oop <= N2_LIMIT * iop, f"OOP's slope is {oop / iop:.2f} of IOP's")]
    return judge(ours, criteria, table, lambda figure: plots.n2(figure, table, oop / iop))


def _slope(table: pl.DataFrame, column: str) -> float:
    """Return the bytes a second of delay costs, by least squares."""
    return float(np.polyfit(table["delay_seconds"].to_numpy(), table[column].to_numpy(), 1)[0])


F1 = Claim(
    "OOP-F1",
    "Q5: count per address pair over a union, one stream late",
    "IOP memory grows with the delay, OOP grows slowly: about 30 % of IOP at 40 s",
    f"OOP below IOP throughout, OOP/IOP ≤ {F1_LIMIT} at 40 s",
    run_f1,
)
N3 = Claim(
    "OOP-N3",
    "Q9: sliding count over a union, the slow stream late",
    "IOP memory grows with the delay of C, OOP is about flat",
    f"OOP's peak at the largest delay ≤ {N3_LIMIT} × its peak at none",
    run_n3,
)
G3 = Claim(
    "OOP-G3",
    "Q6: tumbling-window join of unions of skewed streams",
    "the same number of tuples held; OOP's structures cost at most 20 % more",
    f"OOP/IOP bytes ≤ {G3_LIMIT} at every skew",
    run_g3,
)
N2 = Claim(
    "OOP-N2",
    "Q8: equality join on time, late tuples on one input",
    "OOP memory grows more slowly with the lateness than IOP",
    f"slope of OOP ≤ {N2_LIMIT} × slope of IOP",
    run_n2,
)
