"""One of a thousand devices falls silent: which answers wait for it, and how metrics name it.

Every device sends a reading a second, in order. With one mark for all devices no second can be
counted after the one in which a device fell silent, because it may still send. The metrics name the
device. With a mark for each device only its own windows wait. If all devices are counted
together, `idle=` makes timestamps for the silent device.

In one process, time passes on a virtual clock. On Spark readings come from its `rate` source.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import polars as pl

import lowwater as lw

DEVICES = 1_000
STALLED = 417
HEARD = 2_000  # readings of all devices before it falls silent
SECONDS, LONGEST = 5, 50  # for which it is watched, at least and at most
WAYS: dict[str, dict[str, Any]] = {
    "one mark, all devices": {"channel": "device"},
    "a mark each, by device": {"groups": "device"},
    "a mark each and idle=, all": {"groups": "device", "idle": lw.on_demand(skew="1 second")},
}
LATER = pl.col("first") >= HEARD  # answers for the time in which it is silent


def readings(engine: str) -> Any:
    """Return numbered readings as they come in: a log to replay, or a streaming DataFrame."""
    heard = f"value % {DEVICES} <> {STALLED} OR value < {HEARD}"
    if engine == "spark":
        from lowwater.engines.spark.driver.session import spark_session  # noqa: PLC0415

        rate = spark_session().readStream.format("rate").option("rowsPerSecond", DEVICES).load()
        return rate.where(heard).selectExpr("timestamp", "value", f"value % {DEVICES} AS device")
    value = pl.int_range(2 * LONGEST * DEVICES, eager=True).alias("value")
    log = pl.DataFrame(
        {"timestamp": (value * 1_000).cast(pl.Datetime("us", "UTC")), "value": value}
    )
    log = log.with_columns(device=value % DEVICES).filter(pl.sql_expr(heard))
    return lw.replay(log, arrival="timestamp")


def count(engine: str, promise: dict[str, Any], by: list[str]) -> tuple[pl.DataFrame, Any]:
    """Count readings a second; return counts with their delay, and the device furthest behind."""
    clock = lw.WallClock() if engine == "spark" else lw.VirtualClock()
    stream = lw.stream(readings(engine), name="readings", time="timestamp", **promise)
    seconds = stream.window("1 second").group_by(*by)
    query = seconds.agg(n="count(*)", first="min(value)", last="max(value)")
    found: list[pl.DataFrame] = []

    def keep(table: Any) -> None:
        rows, now = pl.DataFrame(table), clock.now() / 1e9
        found.append(rows.with_columns(wait=now - pl.col("window_end").dt.epoch("us") / 1e6))

    options = {} if engine == "spark" else {"clock": clock, "tick": 0.1}
    run = query.run(engine, sink=keep, **options)
    least, watched = 0 if "channel" in promise else 2, 0.0  # later answers, if there can be any
    while watched < SECONDS or (watched < LONGEST and later_answers(found) < least):
        run.await_termination(0.02)
        watched = run.metrics().stream("readings").rows / DEVICES
    run.stop()  # before the log ends, which would answer everything
    return pl.concat(found), run.metrics().stream("readings").slowest_channel


def later_answers(found: list[pl.DataFrame]) -> int:
    """Return the number of answers about the time in which the device is silent."""
    return sum(not each.filter(LATER).is_empty() for each in found)


def right(found: pl.DataFrame, by: list[str]) -> bool:
    """Return true if as many were counted as there are between the first reading and the last."""
    for n, first, last in found.select("n", "first", "last").iter_rows():
        numbers = range(first, last + 1, DEVICES if by else 1)
        if n != sum(v % DEVICES != STALLED or v < HEARD for v in numbers):
            return False
    return True


def main(engine: str = "embedded") -> int:
    """Count in three ways; return 0 if the device is named and the others do not wait for it."""
    fine, later, wait = True, {}, {}
    print(f"{'':28}{'right':>6}{'later seconds':>15}{'mean wait':>11}{'furthest behind':>17}")
    for way, promise in WAYS.items():
        by = ["device"] if way.endswith("by device") else []
        found, behind = count(engine, promise, by)
        same, after = right(found, by), found.filter(LATER)
        fine &= same and behind == STALLED
        later[way], wait[way] = after["window_end"].n_unique(), after["wait"].mean() or 0.0
        waited = f"{wait[way]:.1f} s" if later[way] else "-"
        print(f"{way:28}{same!s:>6}{later[way]:>15}{waited:>11}{f'device {behind}':>17}")
    one, each, idle = WAYS
    print(
        f"Device {behind} of {DEVICES:,} fell silent, and the metrics named it; of the time after"
        f" that, one mark for all answered {later[one]} seconds; a mark for each answered"
        f" {later[each]} of every other device, {wait[each]:.1f} s after their end, and with idle="
        f" {later[idle]} of all together, after {wait[idle]:.1f} s."
    )
    return 0 if fine and later[one] == 0 < min(later[each], later[idle]) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    sys.exit(main(parser.parse_args().engine))
