"""SYN packets matched with their ACKs over many hosts, each with a mark of its own.

A probe at each host sends what it saw in order, but probes are minutes behind each other. A SYN
waits for its ACK for at most 30 seconds of its own host's time. With one mark for all hosts it is
kept until the last probe has caught up; with a mark for each host, until its own probe has.

The answer counts sessions by the second of the SYN and the second of the ACK. Such a group is over
when *both* seconds have passed: a joint promise, which the join makes from those of its inputs.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
import polars as pl

import lowwater as lw

HOSTS = 100
BEHIND = 300  # seconds by which the last probe is behind the first
SECONDS = 600
WAIT = 30  # seconds a SYN waits for its ACK
TICK = {"embedded": 20, "spark": 150}  # seconds of arrivals that are handed over together
KEY = ["host", "syn", "ack"]


def packets() -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return SYNs and ACKs in order of arrival; one in ten SYNs is never answered."""
    chance = np.random.default_rng(2)
    rows = 20_000
    host = chance.integers(0, HOSTS, rows)
    syn = np.sort(chance.uniform(0, SECONDS, rows))
    ack = syn + chance.exponential(4, rows)
    answered = (ack - syn < WAIT) & (chance.random(rows) > 0.1)
    behind = host * BEHIND / HOSTS
    common = {"host": host, "port": np.arange(rows)}
    calls = pl.DataFrame({"arrived": syn + behind, **common, "syn": syn.astype(np.int64)})
    replies = pl.DataFrame({"arrived": ack + behind, **common, "ack": ack.astype(np.int64)})
    return calls.sort("arrived"), replies.filter(answered).sort("arrived")


def sessions(calls: pl.DataFrame, replies: pl.DataFrame, **promise: str) -> lw.Stream:
    """Count the sessions of a host, by the second of the SYN and that of the ACK."""
    first = lw.stream(lw.replay(calls, arrival="arrived"), name="SYN", time="syn", **promise)
    second = lw.stream(lw.replay(replies, arrival="arrived"), name="ACK", time="ack", **promise)
    pairs = first.join(second, on=["host", "port"], within=(0, WAIT))
    return pairs.group_by(*KEY).agg(sessions="count(*)")


def truth(calls: pl.DataFrame, replies: pl.DataFrame) -> pl.DataFrame:
    """Return the same counts, computed over all packets at once."""
    pairs = calls.join(replies, on=["host", "port"])
    near = pairs.filter((pl.col("ack") - pl.col("syn")).is_between(0, WAIT))
    return near.group_by(KEY).agg(sessions=pl.len().cast(pl.Int64)).sort(KEY)


def main(engine: str = "embedded") -> int:
    """Match with one mark for all hosts, then with one for each; return 0 if that holds less."""
    calls, replies = packets()
    expected = truth(calls, replies)
    right, held = {}, {}
    print(f"{'':26}{'sessions':>10}{'right':>7}{'late':>6}{'most rows held':>16}")
    for way, promise in {
        "one mark for all hosts": {"channel": "host"},
        "a mark for each host": {"groups": "host"},
    }.items():
        run = sessions(calls, replies, **promise).run(engine, tick=TICK[engine])
        run.await_termination()
        found, metrics = pl.DataFrame(run.results()).sort(KEY), run.metrics()
        right[way], held[way] = found.equals(expected), metrics.state_rows_peak
        count, answer = found["sessions"].sum(), "yes" if right[way] else "NO"
        print(f"{way:26}{count:>10,}{answer:>7}{metrics.late_rows:>6}{held[way]:>16,}")
    one, each = right
    print(
        f"{expected['sessions'].sum():,} sessions of {HOSTS} hosts were found both ways; a mark for"
        f" each host held {held[each]:,} rows at most, one mark for all {held[one]:,}:"
        f" {held[one] / held[each]:.1f} times as many."
    )
    return 0 if all(right.values()) and 2 * held[each] < held[one] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    sys.exit(main(parser.parse_args().engine))
