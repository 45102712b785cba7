"""Five devices whose clocks and links drift apart: one promise per device, or one for all.

Each device sends in order. Merged into one stream they are not: a device that is behind looks
late next to one that is ahead. A single promise for the merged stream has to guess how far apart
they are. A promise per channel has nothing to guess.
"""

from __future__ import annotations

import sys

import polars as pl
from rich.console import Console
from rich.table import Table

import lowwater as lw

DEVICES = 5
APART = 30  # seconds between one device's delay and the next one's


def readings() -> pl.DataFrame:
    """What arrives: device n is n * 30 seconds behind."""
    logs = [
        lw.Workload(rate=10, seconds=240, seed=n, skew=n * APART)
        .table()
        .with_columns(pl.lit(f"device {n}").alias("device"))
        for n in range(DEVICES)
    ]
    return pl.concat(logs).sort("arrived", maintain_order=True)


def main() -> int:
    """Count per minute and device under four promises, and show what each one loses."""
    log = readings()
    promises = {
        "one promise: ordered": {"progress": lw.ordered()},
        "one promise: within 10 seconds": {"progress": lw.within("10 seconds")},
        "one promise: within 3 minutes": {"progress": lw.within("3 minutes")},
        "one promise per device: ordered": {"progress": lw.ordered(), "channel": "device"},
    }
    table = Table(title="Readings per minute and device", title_justify="left")
    for name in ("promise", "rows in", "late rows", "windows", "state peak, rows"):
        table.add_column(name, justify="left" if name == "promise" else "right")
    late = {}
    for name, options in promises.items():
        stream = lw.stream(lw.replay(log, arrival="arrived"), name="readings", time="ts", **options)
        counts = stream.window("1 minute").group_by("device").agg(n="count(*)")
        run = counts.run(tick="5 seconds")
        run.await_termination()
        metrics = run.metrics()
        late[name] = metrics.late_rows
        table.add_row(
            name,
            f"{metrics.stream('readings').rows:,}",
            f"{metrics.late_rows:,}",
            str(metrics.rows_out),
            f"{metrics.state_rows_peak:,}",
        )
    console = Console(width=100)
    console.print(table)
    first, *_, last = late.values()
    console.print(
        f"One promise for the merged stream made {first:,} rows late;"
        f" one promise per device made {last:,} late, and nothing was guessed."
    )
    return 0 if last == 0 < first else 1


if __name__ == "__main__":
    sys.exit(main())
