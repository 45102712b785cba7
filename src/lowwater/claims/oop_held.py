"""How many minutes of each input a band join holds when one input may be late: OOP §5.3, Fig. 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import COLOURS, PAPER, bars, keys, tell
from lowwater.claims.measure import IOP, OOP, SamplingClock, engine_of
from lowwater.claims.packets import REPLIES, Link
from lowwater.engines.embedded.engine import EmbeddedEngine
from lowwater.joins.band_join import ROWS
from lowwater.operators.sort import HELD
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.operator import PlanShape
from lowwater.state.store import ChunkStore
from lowwater.stream.duration import SECOND

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LATE, BAND = 5, 2
TOLERANCE = 0.4
"""Minutes; the late rows and the length of a tick make up most of it."""


@dataclass(frozen=True)
class Bounds:
    """The minutes a buffer should hold."""

    low: float
    high: float

    def admit(self, minutes: float) -> bool:
        """Whether a measured figure lies within, give or take the tolerance."""
        return self.low - TOLERANCE <= minutes <= self.high + TOLERANCE


EXPECTED = {
    "iop_sort_s0": Bounds(LATE, LATE),
    "iop_join_s0": Bounds(0, 0),
    "iop_join_s1": Bounds(LATE + BAND, LATE + BAND),
    "oop_join_s0": Bounds(BAND, BAND),
    "oop_join_s1": Bounds(LATE, LATE + BAND),
}
LABELS = {
    "iop_sort_s0": "in order: S0\nin the sort",
    "iop_join_s0": "in order: S0\nin the join",
    "iop_join_s1": "in order: S1\nin the join",
    "oop_join_s0": "out of order:\nS0 in the join",
    "oop_join_s1": "out of order:\nS1 in the join",
}


def _join(rate: float, minutes: float) -> lw.Stream:
    """S0 is up to five minutes late in one row of fifty; S1 is in order; the band is ± 2 min."""
    seconds, flows = minutes * 60, round(rate * 600)
    late = Link("S0", rate, seconds, flows, seed=1, late_share=0.02, late_by=60 * LATE, even=True)
    in_order = Link("S1", rate, seconds, flows, seed=2, reverse=True, even=True)
    left = late.stream(progress=lw.within(60 * LATE))
    return left.join(in_order.stream(), on=REPLIES, within=(60 * BAND, 60 * BAND))


def _held(store: ChunkStore, name: str) -> int:
    return sum(store.rows_in(name, slice_) for slice_ in store.slices(name))


def _samples(query: lw.Stream, shape: PlanShape, rate: float, tick: float) -> pl.DataFrame:
    """Minutes of each side held, whenever all that arrived has been worked off."""
    rows: list[dict[str, float]] = []
    a_minute = rate * 60

    def sample(now: int) -> None:
        join = engine.stage("join").store
        taken = {
            "minute": now / SECOND / 60,
            "join_s0": _held(join, ROWS[0]) / a_minute,
            "join_s1": _held(join, ROWS[1]) / a_minute,
        }
        if shape == IOP:
            taken["sort_s0"] = _held(engine.stage("sort").store, HELD) / a_minute
        rows.append(taken)

    plan = compile_plan(query._node, shape)
    engine: EmbeddedEngine = engine_of(plan, SamplingClock(sample), tick=tick)
    engine.run()
    prefix = "iop_" if shape == IOP else "oop_"
    table = pl.DataFrame(rows).with_columns(pl.col("minute").round(3)).unique("minute", keep="last")
    return table.rename({name: prefix + name for name in table.columns if name != "minute"})


def run(quick: bool) -> Outcome:
    """Sample both plans and take the median once the buffers are full."""
    rate, minutes, tick = (10, 14, 5.0) if quick else (100, 30, 2.0)
    query = _join(rate, minutes)
    both = [_samples(query, shape, rate, tick) for shape in (IOP, OOP)]
    table = both[0].join(both[1], on="minute").sort("minute").filter(pl.col("minute") <= minutes)
    full = table.filter(pl.col("minute") > LATE + BAND + 1)
    held = {name: float(full[name].median()) for name in EXPECTED}  # type: ignore[arg-type]
    missed = [name for name, bounds in EXPECTED.items() if not bounds.admit(held[name])]
    ours = (
        f"IOP: {held['iop_sort_s0']:.1f} min of S0 in the sort, {held['iop_join_s0']:.1f} in the"
        f" join, {held['iop_join_s1']:.1f} min of S1; OOP: {held['oop_join_s0']:.1f} min of S0,"
        f" {held['oop_join_s1']:.1f} min of S1"
    )
    if missed:
        ours += f" (outside: {', '.join(missed)})"
    return Outcome(ours, not missed, table, lambda figure: _plot(figure, held))


def _plot(figure: Figure, held: dict[str, float]) -> None:
    axes = figure.subplots()
    colours = [COLOURS[name[:3]] for name in LABELS]
    bars(axes, range(len(LABELS)), [held[name] for name in LABELS], colours, lambda v: f"{v:.1f}")
    for at, name in enumerate(LABELS):
        both = [EXPECTED[name].low, EXPECTED[name].high]
        label = "" if at else "paper"
        axes.hlines(both, at - 0.42, at + 0.42, color=PAPER, linestyles="--", label=label)
    axes.set_xticks(range(len(LABELS)), list(LABELS.values()))
    axes.set(xlabel="where rows are held", ylabel="length of the stream held, median [min]")
    axes.margins(y=0.1)
    keys(axes, {"in-order (IOP)": COLOURS["iop"], "out-of-order (OOP)": COLOURS["oop"]})
    in_order = held["iop_sort_s0"] + held["iop_join_s0"]
    tell(
        figure,
        f"A band join holds {held['oop_join_s0']:.1f} min of the input that may be late out of"
        f" order, {in_order:.1f} min in order",
        "(dashed) in order 5 min of S0 in the sort and 7 min of S1; out of order 2 min of S0 and 5"
        " to 7 min of S1",
    )


S53 = Claim(
    "OOP-S5.3",
    "band join of ± 2 min, S0 may be 5 min late",
    "IOP holds 5 min of S0 in the sort and 7 min of S1; OOP holds 2 min of S0 and 5–7 min of S1",
    f"those minutes, give or take {TOLERANCE}",
    run,
)
