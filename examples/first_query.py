"""Count packets per minute over three links that do not keep step.

Control carries almost nothing, Main1 is on time, Main2 comes in 20 seconds behind. Each link is in
order by itself, so each one says so, and nobody has to guess a delay for all of them together.
"""

from __future__ import annotations

import sys
from datetime import datetime

import polars as pl
import pyarrow as pa
from rich.console import Console
from rich.table import Table

import lowwater as lw
from lowwater.metrics import RunMetrics

SECONDS = 300
CONTROL = lw.Workload(rate=0.05, seconds=SECONDS, seed=1)
MAIN1 = lw.Workload(rate=200, seconds=SECONDS, seed=2, keys=50)
MAIN2 = lw.Workload(rate=200, seconds=SECONDS, seed=3, keys=50, skew=20)


def query() -> lw.Stream:
    """The number of packets per minute, over all three links."""
    control = lw.stream(
        CONTROL.replay(),
        name="Control",
        time="ts",
        progress=lw.ordered(),
        idle=lw.on_demand(skew="1 second"),
    )
    main1 = lw.stream(MAIN1.replay(), name="Main1", time="ts", progress=lw.ordered())
    main2 = lw.stream(MAIN2.replay(), name="Main2", time="ts", progress=lw.ordered())
    return control.union(main1, main2).window("1 minute").agg(packets="count(*)")


def truth() -> dict[datetime, int]:
    """The same count over all rows at once, to compare with."""
    rows = pl.concat([load.table().select("ts") for load in (CONTROL, MAIN1, MAIN2)])
    counted = rows.group_by(pl.col("ts").dt.truncate("1m")).len()
    return dict(counted.rows())


def main() -> int:
    """Run the query on a virtual clock and show what came out and when; 0 if it was right."""
    console = Console(width=100)
    packets = query()
    console.print("[bold]The plan[/bold]")
    console.print(packets.explain(), markup=False, highlight=False)

    clock = lw.VirtualClock()
    answers: list[tuple[datetime, datetime, int, float]] = []

    def keep(results: pa.Table) -> None:
        for row in results.to_pylist():
            now = clock.now() / 1e9
            answers.append((row["window_start"], row["window_end"], row["packets"], now))

    run = packets.run(sink=keep, clock=clock, tick="1 second")
    run.await_termination()
    show_answers(console, answers)
    show_streams(console, run.metrics())
    right = {start: count for start, _, count, _ in answers} == truth()
    late = run.metrics().late_rows
    console.print(
        f"{len(answers)} minutes counted, {late} rows late, equal to the batch count:"
        f" {'yes' if right else 'NO'}."
    )
    return 0 if right and not late else 1


def show_answers(console: Console, answers: list[tuple[datetime, datetime, int, float]]) -> None:
    """One line per minute."""
    table = Table(title="\nPackets per minute", title_justify="left")
    table.add_column("from")
    table.add_column("to")
    table.add_column("packets", justify="right")
    table.add_column("answered, seconds after the minute ended", justify="right")
    for start, end, count, now in answers:
        after = now - (end - datetime(1970, 1, 1)).total_seconds()
        table.add_row(f"{start:%H:%M:%S}", f"{end:%H:%M:%S}", f"{count:,}", f"{after:.0f}")
    console.print(table)


def show_streams(console: Console, metrics: RunMetrics) -> None:
    """One line per source, then what the run held."""
    table = Table(title="\nSources", title_justify="left")
    for name in ("stream", "rows", "late", "mark at the end", "timestamps made on demand"):
        table.add_column(name, justify="left" if name == "stream" else "right")
    for each in metrics.streams:
        table.add_row(
            each.name,
            f"{each.rows:,}",
            str(each.refused_rows),
            f"{each.marks['ts']:%H:%M:%S}",
            str(each.enabling_timestamps),
        )
    console.print(table)
    rows_in = sum(each.rows for each in metrics.streams)
    console.print(
        f"\n{rows_in:,} rows went in; the query held at most {metrics.state_rows_peak:,}"
        " partial counts at once."
    )


if __name__ == "__main__":
    sys.exit(main())
