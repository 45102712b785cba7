"""How many minutes of each input a band join holds when one input may be late: OOP §5.3, Fig. 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import IOP_COLOUR, OOP_COLOUR, PAPER_COLOUR, note
from lowwater.claims.measure import IOP, OOP, SamplingClock, engine_of
from lowwater.claims.packets import REPLIES, Link
from lowwater.engines.embedded.engine import EmbeddedEngine
from lowwater.joins.band_join import ROWS
from lowwater.operators.sort import HELD
from lowwater.plan.compile import compile_plan
from lowwater.plan.physical import PlanShape
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
    "iop_sort_s0": "IOP: S0\nin the sort",
    "iop_join_s0": "IOP: S0\nin the join",
    "iop_join_s1": "IOP: S1\nin the join",
    "oop_join_s0": "OOP: S0\nin the join",
    "oop_join_s1": "OOP: S1\nin the join",
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
    colours = [IOP_COLOUR if name.startswith("iop") else OOP_COLOUR for name in held]
    axes.bar(list(LABELS.values()), [held[name] for name in LABELS], color=colours, width=0.6)
    for at, name in enumerate(LABELS):
        axes.text(at, held[name] + 0.12, f"{held[name]:.1f}", ha="center")
        bounds = EXPECTED[name]
        for value in {bounds.low, bounds.high}:
            axes.hlines(value, at - 0.38, at + 0.38, color=PAPER_COLOUR, linestyles="--")
    axes.set_ylabel("minutes of the stream held (median)")
    axes.set_ylim(0, 8)
    saved = held["iop_sort_s0"] + held["iop_join_s0"] - held["oop_join_s0"]
    axes.set_title(
        f"A band join out of order holds {saved:.1f} minutes less of the input that may be late",
        loc="left",
        fontsize=11,
    )
    note(axes, "Dashed: the paper (5 min of S0 in the sort + 7 of S1; OOP 2 of S0 + 5 to 7 of S1)")


S53 = Claim(
    "OOP-S5.3",
    "band join of ± 2 min, S0 may be 5 min late",
    "IOP holds 5 min of S0 in the sort and 7 min of S1; OOP holds 2 min of S0 and 5–7 min of S1",
    f"those minutes, give or take {TOLERANCE}",
    run,
)
