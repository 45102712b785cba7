"""Alarms of two sites that belong together, reported in the order in which they happened.

Two alarms of the same line within 5 seconds of each other, one at each site, are one incident.
Incidents should be read in order, so that nobody reads of the consequence first. The sites' links
have delays of their own, so pairs are found in any order. With `order=` they leave the join by
their times; its value decides whether alarms or pairs of alarms are held for that.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw

SECONDS = 120
LINES = 30
DELAY = {"harbour": (0.0, 0.5), "airport": (3.0, 6.0)}  # least and greatest, in seconds
TICK = {"embedded": 0.5, "spark": 20}  # seconds of arrivals that are handed over together
ORDERS = {
    "embedded": (None, "sync-filter", "filter-order", "adaptive"),
    "spark": (None, "adaptive"),
}
KEY = ["line", "ts", "ts_right"]


def alarms(site: str, seed: int) -> pl.DataFrame:
    """Return the alarms of a site in order of arrival; some overtake others."""
    chance = np.random.default_rng(seed)
    happened = np.sort(chance.uniform(0, SECONDS, 10 * SECONDS))
    arrived = happened + chance.uniform(*DELAY[site], len(happened))
    ts = pl.Series((happened * 1e6).astype(np.int64)).cast(pl.Datetime("us"))
    line = chance.integers(0, LINES, len(happened))
    return pl.DataFrame({"arrived": arrived, "ts": ts, "line": line}).sort("arrived")


def incidents(logs: dict[str, pl.DataFrame], order: Any) -> lw.Stream:
    """Return the pairs of alarms of one line that are near each other in time."""
    harbour, airport = (
        lw.stream(
            lw.replay(log, arrival="arrived"), name=site, time="ts", progress=lw.within("3 seconds")
        )
        for site, log in logs.items()
    )
    return harbour.join(airport, on="line", within="5 seconds", order=order)


def answers(query: lw.Stream, engine: str) -> pl.DataFrame:
    """Return the answers and when they left, in seconds of the clock by which alarms arrive."""
    tick, found = TICK[engine], []
    if engine == "spark":

        def take(batch: Any, number: int) -> None:
            found.append(pl.DataFrame(batch.toArrow()).with_columns(at=(number + 1.0) * tick))

        writer = query.to_spark(tick=tick).writeStream.foreachBatch(take)
        writer.trigger(availableNow=True).start().awaitTermination()
    else:
        clock = lw.VirtualClock()

        def keep(table: Any) -> None:
            found.append(pl.DataFrame(table).with_columns(at=clock.now() / 1e9))

        query.run(sink=keep, clock=clock, tick=tick).await_termination()
    return pl.concat(found)


def truth(harbour: pl.DataFrame, airport: pl.DataFrame) -> pl.DataFrame:
    """Return the same pairs, found over all alarms at once."""
    near = (pl.col("ts") - pl.col("ts_right")).abs() <= pl.duration(seconds=5)
    return harbour.join(airport, on="line").filter(near).select(KEY).sort(KEY)


def main(engine: str = "embedded") -> int:
    """Find incidents without order, then in order; return 0 if all are found and in order."""
    logs = {site: alarms(site, seed) for seed, site in enumerate(DELAY)}
    expected = truth(*logs.values())
    right, back, waited = {}, {}, {}
    print(f"{'order':14}{'incidents':>10}{'right':>7}{'go back':>9}{'mean wait':>11}")
    for order in ORDERS[engine]:
        found = answers(incidents(logs, order), engine)
        right[order] = found.select(KEY).sort(KEY).equals(expected)
        times = found.select(pl.max_horizontal("ts", "ts_right")).to_series()
        back[order] = int((times < times.cum_max()).sum())
        there = pl.max_horizontal("arrived", "arrived_right")  # when both alarms are there
        waited[order] = found.select((pl.col("at") - there).mean()).item()
        print(
            f"{order or 'none':14}{found.height:>10,}{right[order]!s:>7}{back[order]:>9,}"
            f"{waited[order]:>9.1f} s"
        )
    none, *_, last = ORDERS[engine]
    print(
        f"Of {expected.height:,} incidents {back[none]:,} left after a later one without order and"
        f" {sum(back.values()) - back[none]} with it; the price of order is to wait"
        f" {waited[last]:.1f} s instead of {waited[none]:.1f} s."
    )
    return 0 if all(right.values()) and back.pop(none) > 0 == sum(back.values()) else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    sys.exit(main(parser.parse_args().engine))
