"""A ticker that never falls behind: 40 symbols, eight times more trades than can be processed.

Each trade replaces the last one of its symbol, and the age of the shown price is what matters. A
query that processes every trade falls further and further behind. An update stream processes the
newest trade of each symbol and gives up those that were replaced while they waited.

In one process, time passes on a virtual clock. On Spark, trades come from its `rate` source and
the work takes real time.
"""

from __future__ import annotations

import argparse
import sys
import time
from statistics import mean
from typing import Any

import polars as pl

import lowwater as lw

SYMBOLS = 40
COST = 0.02  # seconds of work a trade
OVERLOAD = 8
RATE = int(OVERLOAD / COST)  # trades a second
SECONDS = 6
COLUMNS = {"timestamp": pl.Datetime("us", "UTC"), "value": pl.Int64, "symbol": pl.Int64}
WAYS = {"every trade": "append", "the newest of each symbol": "in-place"}


def trades(engine: str) -> Any:
    """Return numbered trades as they come in: a log to replay, or a streaming DataFrame."""
    if engine == "spark":
        from lowwater.engines.spark.driver.session import spark_session  # noqa: PLC0415

        return spark_session().readStream.format("rate").option("rowsPerSecond", RATE).load()
    value = pl.int_range((SECONDS + 1) * RATE, eager=True)
    at = (value * (1_000_000 // RATE)).cast(pl.Datetime("us", "UTC"))
    return lw.replay(pl.DataFrame({"timestamp": at, "value": value}), arrival="timestamp")


def price(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the trades with their prices in another currency."""
    cents = (10_000 + pl.col("value") * 31 % 500) * 0.92
    return rows.select("timestamp", "value", "symbol", cents=cents.round(1))


def slow_price(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the same as `price`, as slowly as a lookup of exchange rates may take."""
    time.sleep(COST * rows.height)
    return price(rows)


def play(engine: str, schedule: Any) -> tuple[pl.DataFrame, list[tuple[float, float]], int]:
    """Return the shown prices, the age of the shown price at moments, and the trades given up."""
    clock = lw.WallClock() if engine == "spark" else lw.VirtualClock(charge=lw.per_row(COST))
    numbered = lw.stream(trades(engine), name="trades", time="timestamp")
    by_symbol = numbered.map(symbol=f"CAST(floor(sqrt(value * 7919 % {SYMBOLS**2})) AS BIGINT)")
    work = slow_price if engine == "spark" else price
    ticker = by_symbol.updates("symbol", schedule).apply(work, {**COLUMNS, "cents": pl.Float64})
    shown: list[pl.DataFrame] = []
    ages: list[tuple[float, float]] = []

    def show(table: Any) -> None:
        rows, now = pl.DataFrame(table), clock.now() / 1e9
        shown.append(rows)
        ages.append((now, now - rows["timestamp"].dt.epoch("us").mean() / 1e6))

    options = {"buckets": 1} if engine == "spark" else {"clock": clock, "tick": 0}
    run = ticker.run(engine, sink=show, **options)
    while not ages or ages[-1][0] < ages[0][0] + SECONDS:
        if run.await_termination(0.02):
            break
    run.stop()
    given_up = run.metrics().operator("update").about["given up for newer ones"]
    return pl.concat(shown), ages, int(given_up)


def in_a_batch(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the prices of these trades, computed at once; some symbols are rarer than others."""
    symbol = (pl.col("value") * 7919 % SYMBOLS**2).sqrt().cast(pl.Int64)
    return price(rows.with_columns(symbol=symbol))


def main(engine: str = "embedded") -> int:
    """Show every trade, then the newest of each symbol; return 0 if only the first falls behind."""
    right, before, after = {}, {}, {}
    print(f"{'':27}{'shown':>7}{'right':>7}{'given up':>10}{'age, 1st half':>15}{'2nd half':>10}")
    for way, schedule in WAYS.items():
        shown, ages, given_up = play(engine, schedule)
        right[way] = shown.equals(in_a_batch(shown.select("timestamp", "value")))
        middle = ages[0][0] + SECONDS / 2
        before[way] = mean(age for now, age in ages if now < middle)
        after[way] = mean(age for now, age in ages if now >= middle)
        print(
            f"{way:27}{shown.height:>7,}{right[way]!s:>7}{given_up:>10,}"
            f"{before[way]:>13.1f} s{after[way]:>8.1f} s"
        )
    every, fresh = WAYS
    print(
        f"With {OVERLOAD} times more trades than there is time for, prices were on average"
        f" {before[fresh]:.1f} s old when they were shown in the first {SECONDS // 2} s and"
        f" {after[fresh]:.1f} s in the next; working on every trade, {before[every]:.1f} s and"
        f" {after[every]:.1f} s."
    )
    grown = {way: after[way] - before[way] for way in WAYS}
    flat = grown[every] > SECONDS / 4 and grown[fresh] < grown[every] / 2
    return 0 if all(right.values()) and flat and after[fresh] < after[every] else 1


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    sys.exit(main(parser.parse_args().engine))
