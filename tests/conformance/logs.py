"""The streams all engines are compared on: small logs from a seed, and the rows that are on time.

They are out of order within what they promise, out of step with each other, and full of nulls,
duplicates and types.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import polars as pl

import lowwater as lw
from tests.support.disorder import scrambled, scrambling_factor

START = datetime(2024, 2, 29, 23, 58)
WIDE = {
    "ts": pl.Datetime("us"),
    "id": pl.Int64,
    "k": pl.Int32,
    "other": pl.Int32,
    "s": pl.String,
    "f": pl.Float64,
    "small": pl.Int8,
    "day": pl.Date,
    "flag": pl.Boolean,
    "v": pl.Int64,
}


@dataclass(frozen=True)
class World:
    """All streams, and the tables the oracle asks under the same names."""

    events: lw.Stream
    """Datetimes, at most 5 seconds back."""
    delayed: lw.Stream
    """The same columns, 20 seconds behind; three channels that do not keep step."""
    shuffled: lw.Stream
    """The same columns, displaced by at most 8 rows."""
    ticks: lw.Stream
    """Whole seconds, in order, in groups."""
    spans: lw.Stream
    """Two progressing columns."""
    told: lw.Stream
    """The producer sends promises, some of them bare."""
    leaving: lw.Stream
    """Groups that come and end, with a row or without."""
    parting: lw.Stream
    """The same as channels."""
    paired: lw.Stream
    """Two times; the producer promises one of the two, sometimes in a row that is marked so."""
    gap: lw.Stream
    """In order, with a silence of three days in the middle."""
    days: lw.Stream
    """Dates."""
    floats: lw.Stream
    """Seconds as floating-point numbers, with arrival times."""
    millis: lw.Stream
    """Milliseconds as whole numbers of 32 bits."""
    zoned: lw.Stream
    """Milliseconds in a time zone."""
    unstamped: lw.Stream
    """No time of its own: stamped when it comes in."""
    latent: lw.Stream
    """No time of its own: stamped where one is needed."""
    typed: lw.Stream
    """Types that Spark does not have."""
    empty: lw.Stream
    """No row at all; the columns of ticks."""
    sensors: tuple[lw.Stream, ...]
    """Four that promise nothing, two rows an epoch, some missing; how disordered they are is known.
    ``sensor1`` and so on to the oracle."""
    tables: dict[str, pl.DataFrame]


def _sensor(number: int) -> pl.DataFrame:
    """Rows some places from where they should be; ``k`` is the same for both of an epoch or not."""
    frame = scrambled(80, 2, (3, 25, 0, 11)[number - 1], number)
    chance = random.Random(f"sensor{number}")
    keys = pl.Series("k", [chance.randint(0, 2) for _ in range(frame.height)])
    return frame.with_columns(keys).filter(pl.col("epoch") % (number + 7) != 3)


def _unpromised(name: str, frame: pl.DataFrame) -> lw.Stream:
    known = lw.unpromised(scrambling_factor(frame["epoch"]), multiplicity=2)
    return _stream(name, frame, time="epoch", progress=known)


def _wide(seed: int, rows: int, step: float, back: float, skew: float) -> pl.DataFrame:
    """Rows that are never more than ``back`` seconds behind one before them; some come twice."""
    chance = random.Random(seed)
    clock, found = 0.0, []
    for number in range(rows):
        clock += chance.expovariate(1 / step)
        time = START + timedelta(seconds=int(clock - chance.uniform(0, back) - skew))
        found.append(
            (
                time,
                number,
                chance.choice([None, 0, 1, 1, 2, 3]),
                chance.choice([None, 0, 1, 2, 2]),
                chance.choice(["", "a", "a", "é", "long name", None]),
                chance.choice([None, 0.0, -0.0, 1.5, -2.25, 1e9]),
                chance.choice([None, -128, 0, 127]),
                chance.choice([None, date(1969, 12, 31), date(2024, 2, 29)]),
                chance.choice([None, True, False]),
                chance.choice([None, 0, 1, 2, 3, -4, 10**12]),
            )
        )
        if chance.random() < 0.15:
            found.append(found[-1])
    return pl.DataFrame(found, schema=WIDE, orient="row")


def _channels(seed: int) -> pl.DataFrame:
    """Three channels, each in order, one of them far behind the others."""
    chance = random.Random(seed)
    parts = []
    for number, (name, skew) in enumerate([("a", 0), ("é", 3), ("long name", 30)]):
        part = _wide(seed + number, 40, 1.2, 0, 20 + skew)
        parts.append(part.with_columns(s=pl.lit(name)).rows())
    merged = []
    while any(parts):
        part = chance.choice([each for each in parts if each])
        merged.append(part.pop(0))
    return pl.DataFrame(merged, schema=WIDE, orient="row")


def _displaced(seed: int, places: int) -> pl.DataFrame:
    """Rows change places in blocks of one more than this."""
    chance = random.Random(seed)
    table = _wide(seed, 100, 1.0, 0, 5)
    order: list[int] = []
    for first in range(0, table.height, places + 1):
        block = list(range(first, min(first + places + 1, table.height)))
        chance.shuffle(block)
        order += block
    return table[order]


def _numbers(seed: int, rows: int, repeated: int = 3) -> pl.DataFrame:
    chance = random.Random(seed)
    found = [
        (at // repeated, at % 4, chance.choice("xyz"), chance.randint(-9, 9)) for at in range(rows)
    ]
    schema = {"ts": pl.Int64, "k": pl.Int64, "g": pl.String, "v": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _spans(seed: int) -> pl.DataFrame:
    chance = random.Random(seed)
    found = [(at // 2, at // 2 - chance.randint(0, 25), chance.randint(0, 3)) for at in range(160)]
    schema = {"last": pl.Int64, "first": pl.Int64, "k": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _told(seed: int) -> pl.DataFrame:
    """Times in some disorder; now and then the least time still to come, with a row or without."""
    chance = random.Random(seed)
    times = [at // 2 + chance.randint(0, 12) for at in range(120)]
    found: list[tuple[int | None, int | None, int]] = []
    for at, time in enumerate(times):
        least = min(times[at + 1 :], default=None)
        mark = least if chance.random() < 0.3 else None
        if mark is not None and chance.random() < 0.5:
            found += [(time, None, at % 3), (None, mark, at % 3)]
        else:
            found.append((time, mark, at % 3))
    schema = {"ts": pl.Int64, "mark": pl.Int64, "k": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def _leaving(seed: int) -> pl.DataFrame:
    """Sessions of some rows each, three at a time; the last row of each says so, or is bare."""
    chance = random.Random(seed)
    open_ = {number: chance.randint(3, 9) for number in range(3)}
    found: list[tuple[int | None, int, int | None, bool | None]] = []
    for at in range(140):
        name = chance.choice(sorted(open_))
        open_[name] -= 1
        last = not open_[name]
        bare = last and chance.random() < 0.4
        found.append((at // 2, name, at % 7, None if bare or not last else True))
        if bare:
            found.append((None, name, None, True))
        if last:
            del open_[name]
            open_[max([name, *open_]) + 1] = chance.randint(3, 9)
    schema = {"ts": pl.Int64, "g": pl.Int64, "v": pl.Int64, "gone": pl.Boolean}
    return pl.DataFrame(found, schema=schema, orient="row")


def _paired(seed: int) -> pl.DataFrame:
    """Two times near each other; now and then bounds of which all later rows satisfy one."""
    chance = random.Random(seed)
    rows = [(at // 3 + chance.randint(0, 6), at // 3 + chance.randint(0, 6)) for at in range(120)]
    found: list[tuple[int, int, int | None, int | None, bool]] = []
    for at, (one, two) in enumerate(rows):
        found.append((one, two, None, None, False))
        if at % 4 == 3:
            first = at // 3
            second = min((b for a, b in rows[at + 1 :] if a < first), default=first)
            found.append((0, 0, first, min(second, first), True))
    schema = dict.fromkeys(("one", "two", "from_one", "from_two"), pl.Int64())
    return pl.DataFrame(found, schema=schema | {"only": pl.Boolean()}, orient="row")


def _typed(seed: int) -> pl.DataFrame:
    chance = random.Random(seed)
    values: dict[str, tuple[pl.DataType, list[Any]]] = {
        "u8": (pl.UInt8(), [0, 255]),
        "u16": (pl.UInt16(), [0, 65_535]),
        "u32": (pl.UInt32(), [0, 2**32 - 1]),
        "u64": (pl.UInt64(), [0, 2**63, 2**64 - 1]),
        "f32": (pl.Float32(), [0.5, -1.25]),
        "exact": (pl.Decimal(12, 2), [Decimal("0.10"), Decimal("-3.00")]),
        "bytes": (pl.Binary(), [b"", b"\xff\x00"]),
        "length": (pl.Duration("us"), [timedelta(microseconds=1), timedelta(days=-2)]),
        "kind": (pl.Enum(["low", "high"]), ["low", "high"]),
        "category": (pl.Categorical(), ["x", "y"]),
        "fine": (pl.Datetime("ns"), [START, START + timedelta(microseconds=7)]),
    }
    columns = {
        name: pl.Series([chance.choice([None, *found]) for _ in range(100)], dtype=dtype)
        for name, (dtype, found) in values.items()
    }
    times = [START + timedelta(milliseconds=at * 300) for at in range(100)]
    return pl.DataFrame({"ts": pl.Series(times, dtype=pl.Datetime("ms")), **columns})


def _arriving(seed: int) -> pl.DataFrame:
    chance = random.Random(seed)
    return pl.DataFrame(
        {
            "at": [at * 0.25 for at in range(120)],
            "sec": [at * 0.25 - chance.randint(0, 8) / 4 for at in range(120)],
            "k": [chance.randint(0, 2) for _ in range(120)],
        }
    )


@cache
def world() -> World:
    """The streams; the same ones every time."""
    wide = {
        "events": _wide(1, 150, 0.5, 4.9, 0),
        "delayed": _channels(2),
        "shuffled": _displaced(5, 8),
    }
    ticks = _numbers(6, 180)
    told = _told(8)
    leaving = _leaving(12)
    paired = _paired(13)
    gap = _numbers(9, 90).with_columns(
        ts=pl.when(pl.col("ts") < 15).then("ts").otherwise(pl.col("ts") + 3 * 86_400)
    )
    days = pl.DataFrame(
        {
            "day": [date(2024, 1, 1) + timedelta(days=at // 4) for at in range(80)],
            "k": [at % 3 for at in range(80)],
        }
    )
    floats = _arriving(10)
    millis = pl.DataFrame(
        {"ts": [at * 250 for at in range(100)], "k": [at % 3 for at in range(100)]},
        schema={"ts": pl.Int32, "k": pl.UInt8},
    )
    summer = datetime(2024, 3, 31, 0, 30, tzinfo=UTC)  # half an hour before clocks go forward
    zoned = pl.DataFrame(
        {
            "ts": [summer + timedelta(minutes=at) for at in range(90)],
            "k": [at % 3 for at in range(90)],
        }
    ).with_columns(pl.col("ts").dt.cast_time_unit("ms").dt.convert_time_zone("Europe/Berlin"))
    plain = floats.select("at", "k")
    sensors = {f"sensor{number}": _sensor(number) for number in (1, 2, 3, 4)}
    return World(
        events=_stream("events", wide["events"], progress=lw.within("5 seconds")),
        delayed=_stream("delayed", wide["delayed"], channel="s"),
        shuffled=_stream("shuffled", wide["shuffled"], progress=lw.within_rows(8)),
        ticks=_stream("ticks", ticks, groups="g"),
        spans=_stream(
            "spans",
            _spans(7),
            time="last",
            progress={"last": lw.ordered(), "first": lw.within("26 seconds")},
        ),
        told=_stream("told", told, progress=lw.punctuated("mark")),
        leaving=_stream("leaving", leaving, groups="g", ended="gone"),
        parting=_stream("parting", leaving, channel="g", ended="gone"),
        paired=_stream(
            "paired",
            paired,
            time="one",
            progress={
                "one": lw.punctuated("from_one", alone="only", jointly=True),
                "two": lw.punctuated("from_two", alone="only", jointly=True),
            },
        ),
        gap=_stream("gap", gap, jump=lw.jump("1 day")),
        days=_stream("days", days, time="day"),
        floats=_stream(
            "floats", lw.replay(floats, arrival="at"), time="sec", progress=lw.within("3 seconds")
        ),
        millis=_stream("millis", millis, unit="ms", punctuate=lw.every("3 seconds")),
        zoned=_stream("zoned", zoned),
        unstamped=_stream(
            "unstamped", lw.replay(plain, arrival="at"), time="seen", stamp="internal"
        ),
        typed=_stream("typed", typed := _typed(11)),
        empty=_stream("empty", ticks.clear()),
        sensors=tuple(_unpromised(name, frame) for name, frame in sensors.items()),
        latent=_stream("latent", lw.replay(plain, arrival="at"), time="seen", stamp="latent"),
        tables={
            **wide,
            **sensors,
            "ticks": ticks,
            "spans": _spans(7),
            "told": told.filter(pl.col("ts").is_not_null()),
            "leaving": leaving.filter(pl.col("ts").is_not_null()),
            "parting": leaving.filter(pl.col("ts").is_not_null()),
            "paired": paired.filter(~pl.col("only")),
            "gap": gap,
            "days": days,
            "floats": floats,
            "millis": millis,
            "zoned": zoned,
            "unstamped": plain,
            "latent": plain,
            "typed": typed,
            "empty": ticks.clear(),
        },
    )


def _stream(name: str, source: Any, **options: Any) -> lw.Stream:
    return lw.stream(source, **{"name": name, "time": "ts"} | options)
