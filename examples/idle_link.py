"""A busy link merged with an almost silent one: who waits, and for how long.

Rows leave in time order, so each row of the busy link has to know that the silent one will send
nothing earlier. Three ways to know it: wait for the silent link's next row, let it send a
heartbeat, or ask it when somebody waits.
"""

from __future__ import annotations

import sys

from rich.console import Console
from rich.table import Table

import lowwater as lw

BUSY = lw.Workload(rate=5, seconds=60, seed=4).table().drop("ts")
SILENT = lw.Workload(rate=0.05, seconds=60, seed=5).table().drop("ts")
WAYS = {
    "nothing but its rows": None,
    "a heartbeat every 5 s": lw.heartbeat("5 seconds"),
    "timestamps on demand": lw.on_demand(),
}


def merged(idle: object) -> lw.Stream:
    """Both links in one stream, stamped as they come in, in the order of their stamps."""
    silent = lw.stream(
        lw.replay(SILENT, arrival="arrived"),
        name="silent",
        time="seen",
        stamp="internal",
        idle=idle,
    )
    busy = lw.stream(lw.replay(BUSY, arrival="arrived"), name="busy", time="seen", stamp="internal")
    return busy.union(silent).order_by("seen")


def main() -> int:
    """Run the three ways on a virtual clock, row by row, and show how long rows waited."""
    table = Table(title="A busy link beside a silent one", title_justify="left")
    table.add_column("the silent link sends")
    for name in ("mean wait", "longest wait", "peak rows held", "timestamps", "heartbeats"):
        table.add_column(name, justify="right")
    waits = {}
    for name, idle in WAYS.items():
        run = merged(idle).run(tick=0)
        run.await_termination()
        metrics = run.metrics()
        silent = metrics.stream("silent")
        waits[name] = metrics.latency.mean
        table.add_row(
            name,
            f"{metrics.latency.mean / 1e6:,.1f} ms",
            f"{metrics.latency.longest / 1e6:,.1f} ms",
            f"{metrics.state_rows_peak:,}",
            f"{silent.enabling_timestamps:,}",
            f"{silent.heartbeats:,}",
        )
    console = Console(width=100)
    console.print(table)
    nothing, beats, asked = waits.values()
    console.print(
        "Mean wait of a row beside a silent link:"
        f" {nothing / 1e6:,.1f} ms if nobody speaks for it, {beats / 1e6:,.1f} ms with heartbeats,"
        f" {asked / 1e6:,.1f} ms on demand."
    )
    return 0 if asked < beats < nothing else 1


if __name__ == "__main__":
    sys.exit(main())
