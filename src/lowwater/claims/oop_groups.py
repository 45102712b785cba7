"""Devices that do not keep step, counted by each device's own progress: OOP A.1.1.

A punctuation may speak of part of a stream. Here half of the devices are an hour behind; how long
does a window of a prompt device wait once the device itself has passed it, and what is held?
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

import lowwater as lw
from lowwater.claims.claim import Claim, Outcome
from lowwater.claims.drawing import BLUE, RED, bars, brief, tell
from lowwater.claims.measure import Collected, engine_of
from lowwater.engines.embedded.clock import VirtualClock
from lowwater.plan.physical.compile import compile_plan

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LAG = 3_600
"""Seconds by which every other device is behind."""
WINDOW = 60
EVERY = 20
"""Seconds between two rows of a device."""
TICK = 5
"""Seconds of arrival that are handed over together."""


def fleet(devices: int, seconds: int) -> pl.DataFrame:
    """Rows of all devices in the order of their arrival; odd ones send what is an hour old."""
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
    """When each device's first row at or past the end of a window arrived, by window."""
    ends = log.select("device", "arrived", (pl.col("ts") // WINDOW * WINDOW).alias("window_end"))
    return ends.group_by("device", "window_end").agg(pl.col("arrived").min())


def _measured(query: lw.Stream, log: pl.DataFrame) -> dict[str, Any]:
    clock = VirtualClock()
    sink = Collected(clock)
    engine = engine_of(compile_plan(query._node), clock, sink, TICK)
    engine.run()
    metrics = engine.metrics()
    answers = sink.table().join(passed(log), on=["device", "window_end"], how="inner")
    delays = answers.select(
        (pl.col("device") % 2).alias("odd"), (pl.col("_out_at") - pl.col("arrived")).alias("delay")
    )
    prompt, lagging = (delays.filter(pl.col("odd") == odd)["delay"] for odd in (0, 1))
    return {
        "late_rows": metrics.late_rows,
        "answers": metrics.rows_out,
        "rows": int(sink.table()["n"].sum()),
        "prompt_delay_s": float(prompt.max()),  # type: ignore[arg-type]
        "prompt_mean_delay_s": float(prompt.mean()),  # type: ignore[arg-type]
        "lagging_delay_s": float(lagging.max()),  # type: ignore[arg-type]
        "state_rows": metrics.state_rows_peak,
        "state_bytes": metrics.state_bytes_peak,
    }


def run(quick: bool) -> Outcome:
    """Delays and state by each device's progress, and by the least of all."""
    devices, seconds = (100, LAG + 600) if quick else (1_000, 2 * LAG)
    log = fleet(devices, seconds)
    rows = []
    for name, key in (("each device", "groups"), ("the least", "channel")):
        rows.append({"progress": name, **_measured(_counted(log, **{key: "device"}), log)})
    table = pl.DataFrame(rows)
    own, least = table.rows(named=True)
    if own["rows"] != log.height or own["answers"] != least["answers"]:
        raise AssertionError("the two ways of progress counted different rows")
    holds = (
        own["prompt_delay_s"] == own["lagging_delay_s"] == 0
        and own["late_rows"] == 0
        and own["state_rows"] * 4 < least["state_rows"]
        and least["prompt_mean_delay_s"] > LAG / 2
    )
    ours = (
        f"{devices:,} devices, half an hour behind: a window waits {own['prompt_delay_s']:.0f} s"
        f" after its own device has passed it ({least['prompt_mean_delay_s']:,.0f} s on average for"
        f" the least of all); {own['late_rows']} rows dropped; {own['state_rows']:,} rows held"
        f" at most, not {least['state_rows']:,}"
    )
    return Outcome(ours, holds, table, lambda figure: _plot(figure, table))


def _plot(figure: Figure, table: pl.DataFrame) -> None:
    left, right = figure.subplots(1, 2)
    own, least = table.rows(named=True)
    sides = (
        (left, table["prompt_mean_delay_s"] / 60, "mean wait of a prompt device's window [min]"),
        (right, table["state_rows"] / 1e3, "rows held at most [thousand]"),
    )
    for axes, heights, label in sides:
        bars(axes, (0, 1), heights.to_list(), [BLUE, RED], brief)
        axes.set_xticks((0, 1), table["progress"].to_list())
        axes.set(xlabel="whose progress ends a window", ylabel=label)
        axes.margins(y=0.1)
    tell(
        figure,
        f"A prompt device's window waits {own['prompt_mean_delay_s']:.0f} s by its own progress,"
        f" {least['prompt_mean_delay_s'] / 60:.0f} min by the least of all; {own['state_rows']:,}"
        f" rows are held, not {least['state_rows']:,}",
        "a promise may speak of part of a stream, so that this part waits for no other",
    )


GROUPS = Claim(
    "OOP-GROUPS",
    "A.1.1: counts by device, half of the devices an hour behind",
    "punctuation on part of a stream lets that part be answered and forgotten by itself",
    "no window waits once its own device has passed it, nothing is dropped, and a quarter of the"
    " rows or less is held",
    run,
)
