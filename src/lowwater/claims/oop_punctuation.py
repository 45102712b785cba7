"""These claims measure joint punctuation and punctuation on part of a stream: OOP §7 and A.1.1.

Joint punctuation completes groups of two timestamps (Q3, Fig. 8) a band sooner than individual
punctuation.
Punctuation by device lets a prompt device's window be answered while others lag: half of the
devices here are an hour behind.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

import lowwater as lw
from lowwater.claims import oop_plots as plots
from lowwater.claims.claim import Claim, Criterion, Outcome, Scale, judge
from lowwater.claims.oop_memory import ALL_ROWS
from lowwater.claims.packets import Link
from lowwater.probe import Probe

# ---- OOP-S7 --------------------------------------------------------------------------------

Delays = dict[str, NDArray[np.float64]]
"""The ticks that each group waits for its answer, by kind of punctuation."""
BAND = 120
"""The band of the join, in seconds, which are also the ticks of time."""
CHAIN_BAND = 30
"""The band of each of two joins, one over the other."""

Attributes = tuple[str, ...]
PUNCTUATION: dict[str, tuple[Attributes, ...]] = {
    "joint": (("ts", "ts_right"),),
    "individual": (("ts_right",),),
    "either": (("ts",), ("ts_right",)),
}
"""Punctuation the count may use: on both times together, on S1.ts, on S0.ts or S1.ts."""
CHAINED: dict[str, tuple[Attributes, ...]] = {
    "joint of three": (("t0", "t1", "t2"),),
    "joint of two": (("t0", "t2"),),
    "individual of three": (("t2",),),
}
"""The same over a join of a join: on all times, on the first and the last, on the last alone."""


def _links(rate: float, seconds: float) -> tuple[Link, Link]:
    """Return S0 with SYN packets and S1 with their acknowledgements, in order and in step."""
    calls = Link("S0", rate, seconds, 50, seed=1, whole_seconds=True, even=True)
    answers = replace(calls, name="S1", seed=2, reverse=True)
    return calls, answers


def _connections(calls: Link, answers: Link) -> lw.Stream:
    """Return Q3: a band join of two minutes with ``ts < ts_right`` besides, and counts."""
    joined = calls.stream().join(
        answers.stream(),
        on=[("destIP", "srcIP"), ("destPort", "srcPort")],
        within=(BAND, BAND),
        where="ts < ts_right",
    )
    return joined.group_by("ts", "ts_right").agg(n="count(*)")


def _chains(calls: Link, answers: Link, thanks: Link) -> lw.Stream:
    """Return Q3 with the packet that follows the acknowledgement: a count over a join of a join."""
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
    """Return the tick at which a link's first packet beyond each time arrives."""
    log = link.table()
    beyond = np.searchsorted(log["ts"].to_numpy(), times.to_numpy(), side="right")
    ticks = np.ceil(log["arrived"].to_numpy()).astype(np.int64)
    return np.append(ticks, ticks[-1])[beyond]


S7_SCALE = Scale((4, 360), (1, 200))
"""Packets a second, and the length in seconds."""


def run_s7(quick: bool) -> Outcome:
    """Measure the ticks from when all inputs have passed a group to its answer."""
    rate, seconds = S7_SCALE.of(quick)
    calls, answers = _links(rate, seconds)
    thanks = replace(calls, name="S2", seed=3)
    times = {"ts": calls, "ts_right": answers}
    pairs = _delays(_connections(calls, answers), PUNCTUATION, times, seconds - BAND - 2)
    times = {"t0": calls, "t1": answers, "t2": thanks}
    before = seconds - 2 * CHAIN_BAND - 2
    return s7_outcome(pairs, _delays(_chains(calls, answers, thanks), CHAINED, times, before))


def _delays(
    query: lw.Stream,
    kinds: Mapping[str, tuple[Attributes, ...]],
    times: Mapping[str, Link],
    before: float,
) -> Delays:
    """Measure how long groups wait that punctuation completes: those before a time in seconds."""
    delays, counts = {}, {}
    for kind, used in kinds.items():
        run = Probe(query, tick=1, chunk_rows=ALL_ROWS, punctuation={"group": used}).run()
        counts[kind] = int(run.results["n"].sum())
        # Groups that only the end of the input completes say nothing about punctuation.
        out = run.results.filter(pl.col(list(times)[-1]) < before)
        passed = [_passed(link, out[name]) for name, link in times.items()]
        delays[kind] = out["_out_at"].to_numpy() - np.maximum.reduce(passed)
    if len(set(counts.values())) != 1:
        raise AssertionError(f"the kinds of punctuation gave different counts: {counts}")
    return delays


def s7_outcome(delays: Delays, chained: Delays) -> Outcome:
    """Judge the delay of every group."""
    joint, individual, either = (delays[kind] for kind in PUNCTUATION)
    all_three, two, last = (chained[kind] for kind in CHAINED)
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
    criteria = [
        Criterion(bool((ticks == expected).all()), f"{name} waits {_spread(ticks)} ticks")
        for name, ticks, expected in (
            ("joint", joint, 0),
            ("individual", individual, BAND),
            ("joint of three", all_three, 0),
            ("individual of three", last, 2 * CHAIN_BAND),
        )
    ]
    spread = {kind: _spread(delays[kind]) for kind in PUNCTUATION}
    return judge(ours, criteria, table, lambda figure: plots.s7(figure, delays, spread, BAND))


def _spread(ticks: NDArray[np.float64]) -> str:
    low, high = ticks.min(), ticks.max()
    return f"{low:.0f}" if low == high else f"{low:.0f} to {high:.0f}"


# ---- OOP-GROUPS ----------------------------------------------------------------------------

LAG = 3_600
"""Seconds by which every other device is behind."""
WINDOW = 60
EVERY = 20
"""Seconds between two rows of a device."""
TICK = 5
"""Seconds of arrival that are handed over together."""


def fleet(devices: int, seconds: int) -> pl.DataFrame:
    """Return the rows of all devices in the order of arrival; odd devices are an hour behind."""
    turns = seconds // EVERY
    device = np.tile(np.arange(devices), turns)
    within = device * EVERY // devices // TICK * TICK
    arrived = np.repeat(np.arange(turns) * EVERY, devices) + within
    frame = pl.DataFrame({"arrived": arrived, "ts": arrived - device % 2 * LAG, "device": device})
    return frame.sort("arrived", maintain_order=True)


def _counted(log: pl.DataFrame, **keyed: Any) -> lw.Stream:
    devices = lw.stream(lw.replay(log, "arrived"), name="devices", time="ts", **keyed)
    return devices.window(WINDOW).group_by("device").agg(n="count(*)")


def passed(log: pl.DataFrame) -> pl.DataFrame:
    """Return when each device's first row at or past the end of a window arrived, by window."""
    ends = log.select("device", "arrived", (pl.col("ts") // WINDOW * WINDOW).alias("window_end"))
    return ends.group_by("device", "window_end").agg(pl.col("arrived").min())


def _measured(query: lw.Stream, log: pl.DataFrame) -> dict[str, Any]:
    run = Probe(query, tick=TICK, chunk_rows=ALL_ROWS).run()
    metrics, results = run.metrics(), run.results
    answers = results.join(passed(log), on=["device", "window_end"], how="inner")
    delays = answers.select(
        (pl.col("device") % 2).alias("odd"), (pl.col("_out_at") - pl.col("arrived")).alias("delay")
    )
    prompt, lagging = (delays.filter(pl.col("odd") == odd)["delay"] for odd in (0, 1))
    return {
        "late_rows": metrics.late_rows,
        "answers": metrics.rows_out,
        "rows": int(results["n"].sum()),
        "prompt_delay_s": float(prompt.max()),  # type: ignore[arg-type]
        "prompt_mean_delay_s": float(prompt.mean()),  # type: ignore[arg-type]
        "lagging_delay_s": float(lagging.max()),  # type: ignore[arg-type]
        "state_rows": metrics.state_rows_peak,
        "state_bytes": metrics.state_bytes_peak,
    }


GROUPS_SCALE = Scale((1_000, 2 * LAG), (100, LAG + 600))
"""The number of devices, and the length in seconds."""


def run_groups(quick: bool) -> Outcome:
    """Measure delays and state by each device's progress, and by the least of all."""
    devices, seconds = GROUPS_SCALE.of(quick)
    log = fleet(devices, seconds)
    rows = []
    for name, key in (("each device", "groups"), ("the least", "channel")):
        rows.append({"progress": name, **_measured(_counted(log, **{key: "device"}), log)})
    table = pl.DataFrame(rows)
    own, least = table.rows(named=True)
    if own["rows"] != log.height or own["answers"] != least["answers"]:
        raise AssertionError("the two ways of progress counted different rows")
    mean = least["prompt_mean_delay_s"]
    ours = (
        f"{devices:,} devices, half of them an hour behind: a window waits"
        f" {own['prompt_delay_s']:.0f} s"
        f" after its own device has passed it ({mean:,.0f} s on average for"
        f" the least of all); {own['late_rows']} rows dropped; {own['state_rows']:,} rows held"
        f" at most, not {least['state_rows']:,}"
    )
    criteria = [
        Criterion(
            own["prompt_delay_s"] == own["lagging_delay_s"] == 0, "a window waits for other devices"
        ),
        Criterion(own["late_rows"] == 0, "rows are dropped"),
        Criterion(own["state_rows"] * 4 < least["state_rows"], "more than a quarter is held"),
        Criterion(mean > LAG / 2, "the least of all does not wait for the devices that lag"),
    ]
    return judge(ours, criteria, table, lambda figure: plots.groups(figure, table))


S7 = Claim(
    "OOP-S7",
    "Q3: count per pair of timestamps over a band join",
    "a group is output once both inputs pass it; individual punctuation waits a band longer",
    f"delay of every group: 0 ticks with joint, {BAND} ticks (the band) with individual; over a"
    f" join of a join 0, and {2 * CHAIN_BAND} ticks (both bands)",
    run_s7,
)
GROUPS = Claim(
    "OOP-GROUPS",
    "A.1.1: counts by device, half of the devices an hour behind",
    "punctuation on part of a stream lets that part be answered and forgotten by itself",
    "no window waits once its own device has passed it, nothing is dropped, and a quarter of the"
    " rows or less is held",
    run_groups,
)
