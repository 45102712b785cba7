"""The streams of the SQL cases, under the names the papers use, and the tables the oracle asks.

They come from a seed, are small, out of order within what they promise and out of step with each
other. Every row keeps its promise.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from functools import cache
from typing import Any

import polars as pl

import lowwater as lw
from tests.support.disorder import scrambling_factor

START = datetime(2024, 2, 29, 23, 55)
PACKET = {
    "srcIP": pl.String,
    "srcPort": pl.Int64,
    "destIP": pl.String,
    "destPort": pl.Int64,
    "len": pl.Int64,
    "flag": pl.String,
    "ts": pl.Datetime("us"),
}


@dataclass(frozen=True)
class Traces:
    """Streams by name, and their rows."""

    streams: dict[str, lw.Stream]
    tables: dict[str, pl.DataFrame]


@dataclass(frozen=True)
class _Link:
    """How the packets of a link come: seconds between two, how far back, how late the first."""

    step: float = 4
    back: float = 0
    skew: float = 0
    rows: int = 110
    options: tuple[tuple[str, Any], ...] = ()

    def told(self) -> dict[str, Any]:
        """What the stream is declared with."""
        return dict(self.options)


def _within(seconds: int) -> tuple[tuple[str, Any], ...]:
    return (("progress", lw.within(f"{seconds} seconds")),)


LINKS = {
    "Control": _Link(step=14, rows=35),
    "Main1": _Link(step=3, back=6, options=_within(7)),
    "Main2": _Link(step=3, skew=40),
    "M": _Link(step=3, back=9, options=_within(10)),
    "M1": _Link(step=2, rows=180, back=20, options=_within(21)),
    "M2": _Link(step=2, rows=180, skew=15),
    "A": _Link(back=4, options=_within(5)),
    "B": _Link(skew=20),
    "C": _Link(step=5, skew=5, options=(("channel", "srcIP"),)),
    "D": _Link(back=12, skew=30, options=_within(13)),
    "S0": _Link(back=3, options=_within(4)),
    "S1": _Link(skew=10),
}


def _packets(name: str, link: _Link) -> pl.DataFrame:
    chance = random.Random(f"link {name}")
    clock, rows = link.skew, []
    for _ in range(link.rows):
        clock += chance.expovariate(1 / link.step)
        rows.append(
            (
                f"10.0.0.{chance.randrange(3)}",
                chance.choice([22, 80]),
                f"10.0.0.{chance.randrange(3)}",
                chance.choice([22, 80]),
                chance.choice([None, 40, 40, 76, 552, 1500, chance.randrange(40, 1500)]),
                chance.choice(["SYN", "SYN_ACK", "ACK"]),
                START + timedelta(seconds=int(clock - chance.uniform(0, link.back))),
            )
        )
    return pl.DataFrame(rows, schema=PACKET, orient="row")


def _items(name: str, step: float, skew: float) -> pl.DataFrame:
    """What the sensor of a checkout reads."""
    chance = random.Random(name)
    kinds = ["milk", "bread", "salt", "soap", "tea", f"only at {name}"]
    clock, rows = skew, []
    for number in range(70):
        clock += chance.expovariate(1 / step)
        rows.append((chance.choice(kinds), number, START + timedelta(seconds=int(clock))))
    schema = {"ItemType": pl.String, "tag": pl.Int64, "ts": pl.Datetime("us")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _signals(name: str, displaced: int) -> pl.DataFrame:
    """The signal strength a sensor measured, by epoch; rows are displaced, some epochs missing."""
    chance = random.Random(name)
    epochs = [epoch for epoch in range(60) if chance.random() < 0.8 for _ in range(2)]
    order: list[int] = []
    for first in range(0, len(epochs), displaced + 1):
        block = epochs[first : first + displaced + 1]
        chance.shuffle(block)
        order += block
    at = int(name[-1])
    rows = [(epoch, at, at * 2, 0, chance.randint(-90, -30)) for epoch in order]
    schema = dict.fromkeys(["epoch", "x", "y", "z", "val"], pl.Int64)
    return pl.DataFrame(rows, schema=schema, orient="row")


def _ticks() -> pl.DataFrame:
    chance = random.Random("ticks")
    prices = {"IBM": 2400, "SAP": 11_000, "Q": 55}
    clock, rows = 0.0, []
    for _ in range(150):
        clock += chance.expovariate(1 / 5)
        symbol = chance.choice([*prices, "IBM"])
        prices[symbol] = max(1, prices[symbol] + chance.randint(-20, 20))
        at = START + timedelta(milliseconds=int(1000 * (clock - chance.uniform(0, 2.5))))
        rows.append((symbol, prices[symbol] / 100, chance.choice([None, 100, 200]), at))
    schema = {
        "symbol": pl.String,
        "price": pl.Float64,
        "volume": pl.Int32,
        "ts": pl.Datetime("us"),
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def _updates(name: str, symbols: str) -> pl.DataFrame:
    """Prices in order of time, one of a symbol and time, numbered symbol by symbol."""
    chance = random.Random(f"updates {name}")
    rows: list[tuple[Any, ...]] = []
    numbers = dict.fromkeys(symbols.split(), 0)
    for second in range(240):
        for symbol in numbers:
            if chance.random() < 0.3:
                numbers[symbol] += 1
                at = START + timedelta(seconds=second)
                rows.append((symbol, chance.randrange(100, 300) / 4, numbers[symbol], at))
    schema = {"symbol": pl.String, "price": pl.Float64, "n": pl.Int64, "ts": pl.Datetime("us")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _rooms() -> pl.DataFrame:
    chance = random.Random("rooms")
    rows = []
    for minute in range(40):
        for room in ("attic", "cellar", "Hall"):
            if chance.random() < 0.7:
                at = START + timedelta(minutes=minute, seconds=chance.randrange(60))
                warm = chance.choice([None, *(15 + each / 4 for each in range(30))])
                rows.append((room, warm, at))
    schema = {"room": pl.String, "temperature": pl.Float64, "ts": pl.Datetime("us")}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _mixed() -> pl.DataFrame:
    """Values of many types, most of them awkward ones."""
    chance = random.Random("mixed")
    columns: dict[str, tuple[Any, list[Any]]] = {
        "i": (pl.Int64, [None, 0, 1, 7, -7, 12, 10**12]),
        "small": (pl.Int32, [None, 1, 2, -3, 100]),
        "f": (pl.Float64, [None, 0.0, 0.5, 1.5, 2.5, -0.5, -2.5, 3.14159, -7.75, 1e6]),
        "s": (pl.String, [None, "", "a", "Abc", "  pad ", "é", "x-y-z", "50%", "it's"]),
        "t": (pl.String, [None, "", "b", "Abc", "12", "-3"]),
        "yes": (pl.Boolean, [None, True, False]),
        "day": (pl.Date, [None, date(1969, 12, 31), date(2024, 2, 29), date(2023, 7, 1)]),
        "seen": (pl.Datetime("us"), [None, START, START - timedelta(days=200, seconds=17)]),
    }
    made = {
        name: pl.Series([chance.choice(found) for _ in range(90)], dtype=dtype)
        for name, (dtype, found) in columns.items()
    }
    times = [START + timedelta(milliseconds=700 * at) for at in range(90)]
    return pl.DataFrame({"ts": times, "id": list(range(90)), **made})


def _steps() -> pl.DataFrame:
    """Whole seconds, in order, a few at a time."""
    chance = random.Random("steps")
    rows = [(at // 3, chance.choice("xyz"), chance.randint(-9, 9)) for at in range(150)]
    schema = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


@cache
def traces() -> Traces:
    """The streams; the same ones every time."""
    tables = {name: _packets(name, link) for name, link in LINKS.items()}
    told = {name: link.told() for name, link in LINKS.items()}
    for name, step, skew in (("SensorReadings1", 25, 0), ("SensorReadings2", 30, 90)):
        tables[name] = _items(name, step, skew)
    for number, displaced in enumerate((0, 4, 9, 2), start=1):
        tables[f"Sensor{number}"] = _signals(f"Sensor{number}", displaced)
        told[f"Sensor{number}"] = {"time": "epoch", "progress": lw.within_rows(displaced)}
        wild = tables[f"Wild{number}"] = tables[f"Sensor{number}"]
        known = lw.unpromised(scrambling_factor(wild["epoch"]), multiplicity=2)
        told[f"Wild{number}"] = {"time": "epoch", "progress": known}
    tables |= {"Ticks": _ticks(), "Rooms": _rooms(), "Mixed": _mixed(), "Steps": _steps()}
    told |= {
        "Ticks": {"progress": lw.within("3 seconds")},
        "Rooms": {"progress": lw.within("1 minute")},
    }
    for name, symbols in (
        ("Trades", "IBM SAP Q"),
        ("Quotes", "IBM SAP GM"),
        ("Futures", "OIL TIN"),
    ):
        tables[name], told[name] = _updates(name, symbols), {"update_key": "symbol"}
    tables["Temps"] = tables["Rooms"].sort("ts")
    told["Temps"] = {"update_key": "room"}
    streams = {
        name: lw.stream(table, **{"name": name, "time": "ts"} | told.get(name, {}))
        for name, table in tables.items()
    }
    return Traces(streams, tables)
