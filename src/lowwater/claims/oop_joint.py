"""Joint against individual punctuation for groups of two timestamps: OOP §7, Q3 and Fig. 8."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLUE, ORANGE, PAPER, RED, tell
from lowwater.claims.measure import Collected, engine_of
from lowwater.claims.packets import Link
from lowwater.engines.embedded.clock import VirtualClock
from lowwater.operators.kernel import Kernel
from lowwater.plan.physical.compile import compile_plan
from lowwater.plan.physical.operator import KernelOperator, Operator, PhysicalPlan
from lowwater.stream.element import Chunk, Element, Punctuation

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BAND = 120
"""Seconds, which are also the ticks of time."""
CHAIN_BAND = 30
"""The band of each of two joins, one over the other."""

Attributes = tuple[str, ...]
PUNCTUATION: dict[str, tuple[Attributes, ...]] = {
    "joint": (("ts", "ts_right"),),
    "individual": (("ts_right",),),
    "either": (("ts",), ("ts_right",)),
}
"""Which promises the count may use: of both times together, of S1.ts, of S0.ts or S1.ts."""
CHAINED: dict[str, tuple[Attributes, ...]] = {
    "joint of three": (("t0", "t1", "t2"),),
    "joint of two": (("t0", "t2"),),
    "individual of three": (("t2",),),
}
"""The same over a join of a join: of all times, of the first and the last, of the last alone."""


class Deaf(Kernel):
    """Runs another kernel and keeps from it all promises but those on certain attributes."""

    def __init__(self, kernel: Kernel, heard: tuple[Attributes, ...]):
        super().__init__(kernel.store, kernel.ports)
        self._kernel, self._heard = kernel, heard

    def on_chunk(self, port: int, chunk: Chunk) -> Sequence[Element]:
        """Pass rows on."""
        return self._kernel.on_chunk(port, chunk)

    def on_punctuation(self, port: int, promise: Punctuation) -> Sequence[Element]:
        """Pass a promise on, if it may be heard."""
        if promise.attributes not in self._heard:
            return []
        return self._kernel.on_punctuation(port, promise)

    def close_port(self, port: int) -> Sequence[Element]:
        """Pass the end on."""
        return self._kernel.close_port(port)


def _deafened(plan: PhysicalPlan, heard: tuple[Attributes, ...]) -> PhysicalPlan:
    """The plan with a count that hears only some promises."""

    def deafen(operator: Operator) -> Operator:
        if operator.name != "group" or not isinstance(operator, KernelOperator):
            return operator
        build = operator.build
        return replace(operator, build=lambda store, host: Deaf(build(store, host), heard))

    return plan.with_operators([deafen(each) for each in plan.operators])


def _links(rate: float, seconds: float) -> tuple[Link, Link]:
    """SYN packets on S0 and their acknowledgements on S1, in order and together."""
    calls = Link("S0", rate, seconds, 50, seed=1, whole_seconds=True, even=True)
    answers = replace(calls, name="S1", seed=2, reverse=True)
    return calls, answers


def _connections(calls: Link, answers: Link) -> lw.Stream:
    """Q3: the windows of two minutes make the band, ``ts < ts_right`` is checked besides."""
    joined = calls.stream().join(
        answers.stream(),
        on=[("destIP", "srcIP"), ("destPort", "srcPort")],
        within=(BAND, BAND),
        where="ts < ts_right",
    )
    return joined.group_by("ts", "ts_right").agg(n="count(*)")


def _chains(calls: Link, answers: Link, thanks: Link) -> lw.Stream:
    """Q3 with the packet that follows the acknowledgement: a join feeds a join feeds a count."""
    flow = ("srcIP", "destIP", "srcPort", "destPort")
    answer = dict(zip(flow, ("destIP", "srcIP", "destPort", "srcPort"), strict=True))
    first = calls.stream().select(*flow, t0="ts")
    second = answers.stream().select(t1="ts", **answer)
    third = thanks.stream().select(*flow, t2="ts")
    reach = (CHAIN_BAND, CHAIN_BAND)
    pairs = first.join(second, on=flow, within=reach, where="t0 < t1")
    triples = pairs.join(third, on=flow, within=reach, where="t1 < t2", times=("t1", "t2"))
    return triples.group_by("t0", "t1", "t2").agg(n="count(*)")


def _passed(link: Link, times: pl.Series) -> NDArray[np.int64]:
    """The tick at which a link's first packet beyond each time arrives."""
    log = link.table()
    beyond = np.searchsorted(log["ts"].to_numpy(), times.to_numpy(), side="right")
    ticks = np.ceil(log["arrived"].to_numpy()).astype(np.int64)
    return np.append(ticks, ticks[-1])[beyond]


def run(quick: bool) -> Outcome:
    """Ticks from when all inputs have passed a group to its answer, by kind of punctuation."""
    rate, seconds = (1, 200) if quick else (4, 360)
    calls, answers = _links(rate, seconds)
    thanks = replace(calls, name="S2", seed=3)
    pairs = compile_plan(_connections(calls, answers)._node)
    times = {"ts": calls, "ts_right": answers}
    delays = _delays(pairs, PUNCTUATION, times, seconds - BAND - 2)
    chains = compile_plan(_chains(calls, answers, thanks)._node)
    times = {"t0": calls, "t1": answers, "t2": thanks}
    return _judged(delays, _delays(chains, CHAINED, times, seconds - 2 * CHAIN_BAND - 2))


def _delays(
    plan: PhysicalPlan,
    kinds: dict[str, tuple[Attributes, ...]],
    times: dict[str, Link],
    before: float,
) -> dict[str, NDArray[np.float64]]:
    """How long groups wait that some promises can complete: all before a certain time."""
    delays, counts = {}, {}
    for kind, heard in kinds.items():
        clock = VirtualClock()
        sink = Collected(clock)
        engine_of(_deafened(plan, heard), clock, sink, tick=1.0).run()
        # Groups that only the end of the input could complete say nothing of punctuation.
        out = sink.table()
        counts[kind] = int(out["n"].sum())
        out = out.filter(pl.col(list(times)[-1]) < before)
        passed = [_passed(link, out[name]) for name, link in times.items()]
        delays[kind] = out["_out_at"].to_numpy() - np.maximum.reduce(passed)
    if len(set(counts.values())) != 1:
        raise AssertionError(f"the kinds of punctuation gave different counts: {counts}")
    return delays


def _judged(
    delays: dict[str, NDArray[np.float64]], chained: dict[str, NDArray[np.float64]]
) -> Outcome:
    joint, individual, either = (delays[kind] for kind in PUNCTUATION)
    all_three, two, last = (chained[kind] for kind in CHAINED)
    holds = bool(joint.min() == joint.max() == 0 and individual.min() == individual.max() == BAND)
    holds &= bool(
        all_three.min() == all_three.max() == 0 and last.min() == last.max() == 2 * CHAIN_BAND
    )
    ours = (
        f"joint {_spread(joint)} ticks after both inputs passed the group; individual on S1.ts"
        f" {_spread(individual)} ticks (the band is {BAND}); individual on either time"
        f" {_spread(either)}, {either.mean():.0f} on average. A join over a join, bands of"
        f" {CHAIN_BAND}: joint of three times {_spread(all_three)}, of two {_spread(two)},"
        f" individual {_spread(last)}"
    )
    table = pl.concat(
        pl.DataFrame({"punctuation": kind, "delay_ticks": delay})
        .group_by("punctuation", "delay_ticks")
        .len("groups")
        .sort("delay_ticks")
        for kind, delay in (delays | chained).items()
    )
    return Outcome(ours, holds, table, lambda figure: _plot(figure, delays))


def _spread(ticks: NDArray[np.float64]) -> str:
    low, high = ticks.min(), ticks.max()
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


def _plot(figure: Figure, delays: dict[str, NDArray[np.float64]]) -> None:
    axes = figure.subplots()
    styles = {
        "joint": (BLUE, "joint (S0.ts, S1.ts)", "-"),
        "individual": (RED, "individual, on S1.ts", "-"),
        "either": (ORANGE, "individual, whichever of S0.ts and S1.ts is first", "-"),
    }
    for kind, (colour, label, style) in styles.items():
        ticks = np.sort(delays[kind])
        share = 100 * np.arange(1, len(ticks) + 1) / len(ticks)
        steps = np.concatenate(([ticks[0]], ticks)), np.concatenate(([0.0], share))
        axes.step(*steps, where="post", color=colour, label=label, linestyle=style, linewidth=2.5)
    for place, said in ((0, " paper: joint"), (BAND, " paper: individual, the band")):
        axes.axvline(place, color=PAPER, linestyle=":")
        axes.text(place, 104, said, color=PAPER, fontsize=9)
    axes.set_xlim(-5, BAND + 40)
    axes.set_ylim(-3, 112)
    axes.set_yticks(range(0, 101, 20))
    axes.set_xlabel("delay of a group's answer after both inputs have passed it [ticks of 1 s]")
    axes.set_ylabel("groups answered [%]")
    axes.legend(loc="upper left", bbox_to_anchor=(0.08, 0.9))
    joint, individual = (_spread(delays[kind]) for kind in ("joint", "individual"))
    tell(
        figure,
        f"A pair of timestamps is answered {joint} ticks after both inputs passed it with joint"
        f" punctuation, {individual} with individual (the band is {BAND})",
        "joint punctuation is independent of the band, individual waits a band more",
    )


S7 = Claim(
    "OOP-S7",
    "Q3: count per pair of timestamps over a band join",
    "a group is output once both inputs pass it; individual punctuation waits a band longer",
    f"delay of every group: 0 ticks with joint, {BAND} ticks (the band) with individual; over a"
    f" join of a join 0, and {2 * CHAIN_BAND} ticks (both bands)",
    run,
)
