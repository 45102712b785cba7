"""Packets per minute over four links whose clocks drift apart and whose delays change.

Each link is in order by itself, so each can promise that, and no delay has to be guessed. One
watermark for all of them needs a guess: a short one loses the packets of the link that is behind,
a long one delays every answer, also while no link is behind.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import numpy as np
import polars as pl

import lowwater as lw

SECONDS = 480
LINKS = {  # by name: seconds its clock is off, what it gains a second, least and greatest delay
    "north": (0.0, 0.000, 1, 2),
    "east": (2.0, 0.005, 1, 15),
    "south": (-3.0, -0.010, 5, 30),
    "west": (0.5, 0.002, 2, 90),  # its delay grows to a minute and a half, and shrinks again
}
WAYS: dict[str, dict[str, Any]] = {
    "one guess for all, 20 seconds": {"progress": lw.within("20 seconds")},
    "one guess for all, 2 minutes": {"progress": lw.within("2 minutes")},
    "a mark for each link": {"progress": lw.ordered(), "channel": "link"},
}
TICK = {"embedded": 1, "spark": 60}  # seconds of arrivals that are handed over together


def packets() -> pl.DataFrame:
    """Return the packets in order of arrival: link, the link's time, and the time of arrival."""
    chance, logs = np.random.default_rng(1), []
    for name, (off, drift, least, greatest) in LINKS.items():
        sent = np.sort(chance.uniform(0, SECONDS, 4_800))
        swing = np.sin(np.pi * sent / SECONDS) ** 4  # delays are worst in the middle
        arrived = np.maximum.accumulate(sent + least + (greatest - least) * swing)
        ts = ((sent * (1 + drift) + off) * 1e6).astype(np.int64)
        logs.append(pl.DataFrame({"arrived": arrived, "ts": ts, "link": name}))
    return pl.concat(logs).with_columns(pl.col("ts").cast(pl.Datetime("us"))).sort("arrived")


def answers(query: lw.Stream, engine: str) -> pl.DataFrame:
    """Return the answers and when they left, in seconds of the clock by which packets arrive."""
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


def main(engine: str = "embedded") -> int:
    """Count in three ways; return 0 if a mark for each link loses no packet and waits less."""
    log = packets()
    minute = pl.col("ts").dt.truncate("1m").alias("window_start")
    truth = log.group_by(minute).agg(right=pl.len(), complete=pl.max("arrived"))
    truth = truth.sort("window_start").head(-2)  # the last ones end with the log, not by a promise
    lost, waited = {}, {}
    print(f"{'':32}{'packets lost':>14}{'minutes wrong':>15}{'mean wait':>12}")
    for way, promise in WAYS.items():
        stream = lw.stream(lw.replay(log, arrival="arrived"), name="packets", time="ts", **promise)
        counts = stream.window("1 minute").agg(packets="count(*)")
        both = truth.join(answers(counts, engine), on="window_start", how="left")
        missing = both["right"] - both["packets"].fill_null(0)
        # A minute cannot be right before its last packet is there: the wait counts from then.
        wait = (both["at"] - both["complete"]).clip(0).mean()
        lost[way], waited[way] = int(missing.sum()), wait
        print(f"{way:32}{lost[way]:>14,}{(missing != 0).sum():>15}{wait:>10.1f} s")
    short, long, each = WAYS
    print(
        f"Of {truth['right'].sum():,} packets, a mark for each link lost {lost[each]} and answered"
        f" {waited[each]:.1f} s after a minute was complete; a short guess for all links lost"
        f" {lost[short]:,}, a long one lost {lost[long]} and answered after {waited[long]:.1f} s."
    )
    return 0 if lost[each] == 0 < lost[short] and waited[each] < waited[long] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    sys.exit(main(parser.parse_args().engine))
