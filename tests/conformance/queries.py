"""The queries every engine must answer alike, each with the SQL text that means the same.

To add one, write a function of the world that gives a stream, above it the SQL; all engines run it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import polars as pl

import lowwater as lw
from lowwater.joins.ordered.strategy import Order
from lowwater.joins.shape import How
from lowwater.plan.physical.operator import PlanShape
from tests.conformance.logs import World
from tests.support.oracle import last_rows, on_change

SECOND = 1_000_000


@dataclass(frozen=True)
class Case:
    """A query, and what it means."""

    name: str
    build: Callable[[World], lw.Stream]
    sql: str
    shapes: tuple[PlanShape, ...] = ("out-of-order",)
    """The plans all engines run."""
    buckets: int = 2
    chunk_rows: int = 70


CASES: list[Case] = []


def case(
    sql: str,
    shapes: tuple[PlanShape, ...] = ("out-of-order",),
    buckets: int = 2,
    chunk_rows: int = 70,
) -> Callable[[Callable[[World], lw.Stream]], Callable[[World], lw.Stream]]:
    """Put a query on the list."""

    def listed(build: Callable[[World], lw.Stream]) -> Callable[[World], lw.Stream]:
        CASES.append(Case(build.__name__, build, sql, shapes, buckets, chunk_rows))
        return build

    return listed


BOTH: tuple[PlanShape, ...] = ("out-of-order", "in-order")


def windows(
    source: str, size: int, slide: int | None = None, time: str = "ts", unit: int = 1
) -> str:
    """The rows of a table, each once for every window it is in, with ``ws`` and ``we``.

    ``unit`` is the number of ticks in a second of a Datetime; 1 for whole numbers.
    """
    whole = unit == 1
    ticks = time if whole else f"epoch_us({time})"
    step, length = (slide or size) * unit, size * unit
    show = "({})" if whole else "make_timestamp({})"
    below = f"({{}} - (({{}}) % {step} + {step}) % {step})"
    first, last = (below.format(*[f"({at})"] * 2) for at in (f"{ticks} - {length}", ticks))
    return f"""(SELECT {show.format("start")} AS ws, {show.format(f"start + {length}")} AS we, *
        FROM (SELECT unnest(generate_series({first} + {step}, {last}, {step})) AS start, *
              FROM {source}))"""


moments = partial(windows, unit=SECOND)

# ---- row by row ----------------------------------------------------------------------------


@case("SELECT * FROM events")
def a_source_alone(w: World) -> lw.Stream:
    return w.events


@case("""SELECT ts, k, upper(s), v * 2, f / 2, CASE WHEN flag THEN 'yes' ELSE 'no' END, day
         FROM events WHERE (v > 1 OR s = 'é') AND k IS NOT NULL""")
def where_and_select(w: World) -> lw.Stream:
    return w.events.where("(v > 1 OR s = 'é') AND k IS NOT NULL").select(
        "ts",
        "k",
        loud="upper(s)",
        twice="v * 2",
        half="f / 2",
        word="CASE WHEN flag THEN 'yes' ELSE 'no' END",
        day="day",
    )


@case("SELECT *, coalesce(v, -1) + k, ts + INTERVAL 90 SECOND FROM delayed", buckets=3)
def map_beside_all_columns(w: World) -> lw.Stream:
    return w.delayed.map(n="coalesce(v, -1) + k", later="ts + INTERVAL '90' SECOND")


def _signed(chunk: pl.DataFrame) -> pl.DataFrame:
    return chunk.select("ts", sign=pl.col("v").sign(), text=pl.col("id").cast(pl.String))


@case("SELECT ts, CAST(sign(v) AS BIGINT), CAST(id AS VARCHAR) FROM events")
def apply_with_other_columns(w: World) -> lw.Stream:
    schema = {"ts": pl.Datetime("us"), "sign": pl.Int64, "text": pl.String}
    return w.events.apply(_signed, schema)


@case("SELECT * FROM events UNION ALL SELECT * FROM delayed UNION ALL SELECT * FROM shuffled")
def union_of_three(w: World) -> lw.Stream:
    return w.events.union(w.delayed, w.shuffled)


@case("SELECT * REPLACE (CAST(kind AS VARCHAR) AS kind) FROM typed", chunk_rows=40)
def types_that_spark_does_not_have(w: World) -> lw.Stream:
    return w.typed


@case("""SELECT k, v + 1, g, ts FROM ticks WHERE k < 3""")
def columns_with_odd_names(w: World) -> lw.Stream:
    odd = {"two words": "k", "a.b": "v + 1", "ünïcode, `quoted`": "g", "when": "ts"}
    return w.ticks.where("k < 3").select(**odd)


# ---- windows -------------------------------------------------------------------------------


@case(
    f"""SELECT ws, we, count(*), count(v), sum(v), avg(v), min(f), max(day), min(s)
        FROM {moments("events", 10)} GROUP BY ALL""",
    BOTH,
)
def tumbling_over_everything(w: World) -> lw.Stream:
    return w.events.window("10 seconds").agg(
        n="count(*)",
        some="count(v)",
        total="sum(v)",
        mean="avg(v)",
        least="min(f)",
        latest="max(day)",
        word="min(s)",
    )


@case(
    f"""SELECT ws, we, k, s, count(*), count(f), sum(v), sum(small), avg(f), min(v), max(v + k),
               stddev(f), count(DISTINCT s), count(DISTINCT v),
               first(v ORDER BY ts, v) FILTER (v IS NOT NULL),
               last(v ORDER BY ts, v) FILTER (v IS NOT NULL)
        FROM {moments("delayed", 20)} GROUP BY ALL""",
    buckets=3,
)
def every_aggregate_by_two_keys(w: World) -> lw.Stream:
    return (
        w.delayed.window("20 seconds")
        .group_by("k", "s")
        .agg(
            n="count(*)",
            some="count(f)",
            total="sum(v)",
            little="sum(small)",
            mean="avg(f)",
            least="min(v)",
            most="max(v + k)",
            spread="stddev(f)",
            words="count(DISTINCT s)",
            kinds="count(DISTINCT v)",
            first="first(v)",
            last="last(v)",
        )
    )


@case(
    f"""SELECT ws, u64, bytes, exact, CAST(kind AS VARCHAR), category, fine, count(*), max(f32)
        FROM {moments("typed", 15)} GROUP BY ALL""",
    buckets=3,
    chunk_rows=40,
)
def windows_by_keys_of_many_types(w: World) -> lw.Stream:
    keys = ("u64", "bytes", "exact", "kind", "category", "fine")
    counted = w.typed.window("15 seconds").group_by(*keys).agg(n="count(*)", most="max(f32)")
    return counted.select("window_start", *keys, "n", "most")


@case(
    f"""SELECT ws, we, count(DISTINCT k), stddev(small),
               first(v ORDER BY ts, v) FILTER (v IS NOT NULL),
               last(v ORDER BY ts, v) FILTER (v IS NOT NULL)
        FROM {moments("(SELECT * FROM events UNION ALL SELECT * FROM delayed)", 15, 5)}
        GROUP BY ALL"""
)
def sliding_over_a_union(w: World) -> lw.Stream:
    return (
        w.events.union(w.delayed)
        .window("15 seconds", slide="5 seconds")
        .agg(keys="count(DISTINCT k)", spread="stddev(small)", first="first(v)", last="last(v)")
    )


@case(
    f"SELECT ws, we, flag, day, count(*) FROM {moments('shuffled', 12, 4)} GROUP BY ALL",
)
def sliding_by_a_bool_and_a_date(w: World) -> lw.Stream:
    sliding = w.shuffled.window("12 seconds", slide="4 seconds")
    return sliding.group_by("flag", "day").agg(n="count(*)")


@case(f"SELECT ws, we, f, max(id) FROM {moments('events', 3, 10)} GROUP BY ALL")
def hopping_with_gaps_by_a_float(w: World) -> lw.Stream:
    return w.events.window("3 seconds", slide="10 seconds").group_by("f").agg(most="max(id)")


@case(f"SELECT ws, we, count(*) FROM {windows('ticks', 1, 7)} GROUP BY ALL", chunk_rows=50)
def hopping_with_gaps_over_everything(w: World) -> lw.Stream:
    return w.ticks.window(1, slide=7).agg(n="count(*)")


NUMBERED = "(SELECT row_number() OVER () - 1 AS seq, * FROM {})"


@case(
    f"""SELECT ws, we, count(*), sum(v) FROM {windows(NUMBERED.format("events"), 20, 10, "seq")}
        WHERE v > 0 GROUP BY ALL"""
)
def windows_of_rows(w: World) -> lw.Stream:
    return w.events.where("v > 0").window(rows=20, slide_rows=10).agg(n="count(*)", total="sum(v)")


@case(
    f"""SELECT ws, we, k, max(v) FROM {windows(NUMBERED.format("ticks"), 30, None, "seq")}
        GROUP BY ALL"""
)
def windows_of_rows_by_key(w: World) -> lw.Stream:
    return w.ticks.window(rows=30).group_by("k").agg(most="max(v)")


Span = tuple[int | None, int | None]


def _wider(one: Span, two: Span) -> Span:
    low, high = ([each for each in pair if each is not None] for pair in zip(one, two, strict=True))
    return min(low, default=None), max(high, default=None)


SPREAD = lw.aggregate(
    init=lambda: (None, None),
    add=lambda span, rows: _wider(span, (rows["v"].min(), rows["v"].max())),
    merge=_wider,
    finish=lambda span: None if span[0] is None else span[1] - span[0],
    columns=("v",),
    returns=pl.Int64,
)


@case(f"SELECT ws, we, k, max(v) - min(v), count(*) FROM {moments('events', 10)} GROUP BY ALL")
def a_user_aggregate_by_key(w: World) -> lw.Stream:
    return w.events.window("10 seconds").group_by("k").agg(spread=SPREAD, n="count(*)")


@case(
    f"SELECT ws, max(v) - min(v) FROM {moments('delayed', 30, 10)} GROUP BY ALL",
    buckets=3,
)
def a_user_aggregate_over_everything(w: World) -> lw.Stream:
    return (
        w.delayed.window("30 seconds", slide="10 seconds")
        .agg(spread=SPREAD)
        .select("window_start", "spread")
    )


@case(f"SELECT ws, we, k, count(*) FROM {windows('spans', 10, None, 'first')} GROUP BY ALL")
def windows_on_a_second_attribute(w: World) -> lw.Stream:
    return w.spans.window("10 seconds", on="first").group_by("k").agg(n="count(*)")


COUNTED = f"""(SELECT ws AS ts, k, s, count(*) AS n FROM {moments("events", 5)} GROUP BY ALL)"""


@case(f"SELECT ws, we, k, sum(n), max(n) FROM {moments(COUNTED, 20)} GROUP BY ALL", BOTH)
def windows_over_windows_by_the_same_key(w: World) -> lw.Stream:
    counted = w.events.window("5 seconds").group_by("k", "s").agg(n="count(*)")
    again = counted.select("k", "s", "n", ts="window_start").window("20 seconds")
    return again.group_by("k").agg(total="sum(n)", most="max(n)")


@case(
    f"""SELECT ws, we, n, count(*) FROM {moments(COUNTED.replace("k, s,", "k,"), 20)}
        GROUP BY ALL""",
    buckets=3,
)
def windows_over_windows_by_another_key(w: World) -> lw.Stream:
    counted = w.events.window("5 seconds").group_by("k").agg(n="count(*)")
    return (
        counted.select("n", ts="window_start")
        .window("20 seconds")
        .group_by("n")
        .agg(times="count(*)")
    )


@case(
    f"""SELECT we, sum(n) FROM {moments(COUNTED, 30)} GROUP BY ALL HAVING sum(n) > 3""",
)
def windows_over_windows_over_everything(w: World) -> lw.Stream:
    counted = w.events.window("5 seconds").group_by("k", "s").agg(n="count(*)")
    return (
        counted.window("30 seconds", on="window_start")
        .agg(total="sum(n)")
        .where("total > 3")
        .select("window_end", "total")
    )


# ---- windows that slide on change ----------------------------------------------------------


def changing(source: str, seconds: int, *keys: str, **aggregates: str) -> str:
    """SQL for a window of so many seconds that slides on change."""
    return on_change(source, f"INTERVAL {seconds} SECOND", aggregates, keys)


@case(
    changing(
        "delayed",
        7,
        "k",
        "s",
        n="count(r.ts)",
        given="count(r.f)",
        floats="sum(r.f)",
        total="CAST(sum(r.v) AS BIGINT)",
        mean="avg(r.v)",
        least="min(r.f)",
        most="max(r.v + r.k)",
        kinds="count(DISTINCT r.v)",
    ),
    BOTH,
    buckets=3,
)
def on_change_by_two_keys(w: World) -> lw.Stream:
    sliding = w.delayed.window("7 seconds", slide="on change").group_by("k", "s")
    return sliding.agg(
        n="count(*)",
        given="count(f)",
        floats="sum(f)",
        total="sum(v)",
        mean="avg(v)",
        least="min(f)",
        most="max(v + k)",
        kinds="count(DISTINCT v)",
    )


@case(
    changing(
        "(SELECT * FROM events UNION ALL SELECT * FROM shuffled)",
        30,
        words="count(DISTINCT r.s)",
        latest="max(r.day)",
        word="min(r.s)",
    )
)
def on_change_over_a_union(w: World) -> lw.Stream:
    sliding = w.events.union(w.shuffled).window("30 seconds", slide="on change")
    return sliding.agg(words="count(DISTINCT s)", latest="max(day)", word="min(s)")


@case(
    f"""SELECT window_end, u64, bytes, exact, CAST(kind AS VARCHAR), category, n, total, most
        FROM ({
        changing(
            "typed",
            15,
            "u64",
            "bytes",
            "exact",
            "kind",
            "category",
            n="count(r.ts)",
            total="CAST(sum(r.exact) AS DECIMAL(38, 2))",
            most="max(r.fine)",
        )
    })""",
    buckets=3,
    chunk_rows=40,
)
def on_change_by_keys_of_many_types(w: World) -> lw.Stream:
    keys = ("u64", "bytes", "exact", "kind", "category")
    sliding = w.typed.window("15 seconds", slide="on change").group_by(*keys)
    answers = sliding.agg(n="count(*)", total="sum(exact)", most="max(fine)")
    return answers.select("window_end", *keys, "n", "total", "most")


@case(
    f"""SELECT ws, we, s, max(n), count(*) FROM {
        moments(f"({changing('events', 6, 's', n='count(DISTINCT r.k)')})", 10, time="window_end")
    } GROUP BY ALL"""
)
def on_change_then_the_most_of_each_window(w: World) -> lw.Stream:
    answers = w.events.window("6 seconds", slide="on change").group_by("s")
    kinds = answers.agg(n="count(DISTINCT k)")
    return kinds.window("10 seconds").group_by("s").agg(most="max(n)", changes="count(*)")


@case(
    last_rows(
        "delayed",
        {"n": "count(*)", "total": "CAST(sum(b.v) AS BIGINT)", "most": "max(b.f)"},
        rows=4,
        slide=3,
        keys=("k", "s"),
        ties=("f", "v"),
        expire="INTERVAL 40 SECOND",
    ),
    BOTH,
    buckets=3,
)
def last_rows_of_two_keys(w: World) -> lw.Stream:
    window = w.delayed.window(rows=4, slide_rows=3, by=("k", "s"), expire="40 seconds")
    return window.agg(n="count(*)", total="sum(v)", most="max(f)")


@case(
    f"""SELECT ws, s, max(n), count(*) FROM {
        moments(
            "("
            + last_rows(
                "(SELECT * FROM events UNION ALL SELECT * FROM shuffled)",
                {"n": "count(DISTINCT b.k)"},
                length="INTERVAL 8 SECOND",
                slide=2,
                keys=("s",),
                ties=("k",),
            )
            + ")",
            10,
            time="window_start",
        )
    } GROUP BY ALL"""
)
def time_by_rows_then_the_most_of_each_window(w: World) -> lw.Stream:
    answers = w.events.union(w.shuffled).window("8 seconds", slide_rows=2, by="s")
    kinds = answers.agg(n="count(DISTINCT k)")
    windows = kinds.window("10 seconds", on="window_start").group_by("s")
    return windows.agg(most="max(n)", answers="count(*)").select(
        "window_start", "s", "most", "answers"
    )


# ---- groups that end by progress, distinct, order ------------------------------------------


@case("SELECT ts, k, count(*), max(v) FROM events GROUP BY ALL")
def grouped_by_time_and_key(w: World) -> lw.Stream:
    return w.events.group_by("ts", "k").agg(n="count(*)", most="max(v)")


@case("SELECT ts, sum(v), avg(f) FROM delayed GROUP BY ALL")
def grouped_by_time_alone(w: World) -> lw.Stream:
    return w.delayed.group_by("ts").agg(total="sum(v)", mean="avg(f)")


@case("SELECT DISTINCT * FROM events")
def distinct_rows(w: World) -> lw.Stream:
    return w.events.distinct()


@case("SELECT DISTINCT ts, k, s FROM shuffled", buckets=3)
def distinct_keys(w: World) -> lw.Stream:
    return w.shuffled.distinct("ts", "k", "s")


@case(
    f"""SELECT ws, we, count(*) FROM {moments("(SELECT DISTINCT ts, s FROM delayed)", 10)}
        GROUP BY ALL"""
)
def distinct_then_window(w: World) -> lw.Stream:
    return w.delayed.distinct("ts", "s").window("10 seconds").agg(n="count(*)")


@case("SELECT * FROM events UNION ALL SELECT * FROM delayed", BOTH)
def a_union_in_order(w: World) -> lw.Stream:
    return w.events.union(w.delayed).order_by()


@case(f"SELECT ws, we, k, count(*) FROM {moments('shuffled', 10)} GROUP BY ALL")
def order_then_window(w: World) -> lw.Stream:
    return w.shuffled.order_by().window("10 seconds").group_by("k").agg(n="count(*)")


# ---- joins ---------------------------------------------------------------------------------

NEAR = "b.ts BETWEEN a.ts - INTERVAL {} SECOND AND a.ts + INTERVAL {} SECOND"


@case(
    f"""SELECT a.ts, a.k, a.id, b.ts, b.id FROM events a JOIN delayed b
        ON a.k = b.k AND {NEAR.format(2, 2)}""",
)
def inner_band_join(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="k", within="2 seconds")
    return pairs.select("ts", "k", "id", "ts_right", "id_right")


@case(
    f"""SELECT a.ts, a.k, a.s, a.id, b.id FROM events a LEFT JOIN shuffled b
        ON a.k = b.k AND a.s = b.s AND {NEAR.format(3, 3)} AND a.v >= b.v""",
    BOTH,
    buckets=3,
)
def left_band_join_with_a_condition(w: World) -> lw.Stream:
    pairs = w.events.join(
        w.shuffled, on=["k", "s"], within="3 seconds", how="left", where="v >= v_right"
    )
    return pairs.select("ts", "k", "s", "id", "id_right")


@case(
    f"""SELECT a.id, a.ts, b.* FROM events a RIGHT JOIN delayed b
        ON a.day = b.day AND a.flag = b.flag AND {NEAR.format(0, 6)}"""
)
def right_band_join_by_a_date_and_a_bool(w: World) -> lw.Stream:
    pairs = w.events.select("id", "ts", "day", "flag").join(
        w.delayed, on=["day", "flag"], within=("0 seconds", "6 seconds"), how="right"
    )
    return pairs.select(
        "id",
        "ts",
        *(f"{name}_right" if name in ("ts", "id") else name for name in w.delayed.columns),
    )


@case(
    f"""SELECT a.ts, coalesce(a.s, b.s), a.id, b.ts, b.id FROM events a FULL JOIN delayed b
        ON a.s = b.s AND {NEAR.format(1, 4)}""",
)
def full_band_join_by_text(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="s", within=("1 second", "4 seconds"), how="full")
    return pairs.select("ts", "s", "id", "ts_right", "id_right")


@case(
    """SELECT a.ts, a.v, b.ts, b.v FROM ticks a JOIN gap b
       ON b.ts BETWEEN a.ts AND a.ts + 1 AND a.v < b.v"""
)
def join_without_a_key(w: World) -> lw.Stream:
    pairs = w.ticks.join(w.gap, within=(0, 1), where="v < v_right")
    return pairs.select("ts", "v", "ts_right", "v_right")


@case(
    """SELECT a.ts, a.k, b.ts FROM ticks a JOIN told b
       ON a.k = b.k AND b.ts BETWEEN a.ts + 2 AND a.ts + 5"""
)
def join_of_a_band_that_lies_ahead(w: World) -> lw.Stream:
    return w.ticks.join(w.told, on="k", within=(-2, 5)).select("ts", "k", "ts_right")


@case(
    """SELECT coalesce(a.ts, b.ts), coalesce(a.k, b.k), a.id, b.id
       FROM events a FULL JOIN shuffled b ON a.ts = b.ts AND a.k = b.k"""
)
def full_join_on_time_itself(w: World) -> lw.Stream:
    pairs = w.events.join(w.shuffled, on=["ts", "k"], how="full")
    return pairs.select("ts", "k", "id", "id_right")


ALONE = """(SELECT * FROM events a
            WHERE NOT EXISTS (SELECT 1 FROM shuffled b WHERE a.ts = b.ts AND a.k = b.k))"""


@case(f"SELECT ws, we, k, count(*) FROM {moments(ALONE, 10)} GROUP BY ALL", BOTH)
def anti_join_on_time_itself_then_windows(w: World) -> lw.Stream:
    alone = w.events.join(w.shuffled, on=["ts", "k"], how="anti")
    return alone.window("10 seconds").group_by("k").agg(n="count(*)")


@case(
    """SELECT a.id, a.k, b.id, b.other FROM events a LEFT JOIN delayed b
       ON a.k = b.other AND epoch_us(a.ts) // 5000000 = epoch_us(b.ts) // 5000000""",
    buckets=3,
)
def window_join_of_different_columns(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on=[("k", "other")], within=lw.same("5 seconds"), how="left")
    return pairs.select("id", "k", "id_right", "other_right")


@case("SELECT ts, k, g, v, NULL FROM ticks")
def join_with_a_stream_that_says_nothing(w: World) -> lw.Stream:
    pairs = w.ticks.join(w.empty.select("ts", "k", other="v"), on="k", within=3, how="left")
    return pairs.select("ts", "k", "g", "v", "other")


# ---- joins in order -------------------------------------------------------------------------


def _near(w: World, order: Order | None, how: How = "inner") -> lw.Stream:
    pairs = w.events.join(w.delayed, on="k", within="2 seconds", order=order, how=how)
    return pairs.select("ts", "k", "id", "ts_right", "id_right")


NEARBY = f"""SELECT a.ts, coalesce(a.k, b.k), a.id, b.ts, b.id FROM events a {{}} JOIN delayed b
             ON a.k = b.k AND {NEAR.format(2, 2)}"""


@case(NEARBY.format("INNER"), BOTH, buckets=3, chunk_rows=40)
def join_in_order_by_sync_filter(w: World) -> lw.Stream:
    return _near(w, "sync-filter")


@case(NEARBY.format("INNER"), BOTH, buckets=3, chunk_rows=40)
def join_in_order_by_filter_order(w: World) -> lw.Stream:
    return _near(w, "filter-order")


@case(NEARBY.format("INNER"), chunk_rows=20)
def join_in_order_by_adaptive(w: World) -> lw.Stream:
    return _near(w, "adaptive")


@case(NEARBY.format("LEFT"))
def left_join_in_order(w: World) -> lw.Stream:
    return _near(w, "sync-filter", "left")


@case(NEARBY.format("FULL"), buckets=3)
def full_join_in_order(w: World) -> lw.Stream:
    return _near(w, "filter-order", "full")


@case(
    f"""SELECT a.ts, a.k, b.ts, c.ts FROM events a, delayed b, shuffled c
        WHERE a.k = b.k AND {NEAR.format(2, 2)} AND a.k = c.k AND a.v > c.v
        AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 3 SECOND""",
    buckets=3,
)
def joins_in_order_over_joins_in_order(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="k", within="2 seconds", order="filter-order")
    third = w.shuffled.select("k", tc="ts", vc="v")
    three = pairs.join(
        third,
        on="k",
        within=("1 second", "3 seconds"),
        times=("ts_right", "tc"),
        where="v > vc",
        order="sync-filter",
    )
    return three.select("ts", "k", "ts_right", "tc")


@case(
    f"""SELECT ws, we, k, count(*) FROM {
        moments(
            f'''(SELECT greatest(a.ts, b.ts) AS ts, a.k FROM events a JOIN delayed b
             ON a.k = b.k AND {NEAR.format(2, 2)})''',
            10,
        )
    } GROUP BY ALL"""
)
def windows_over_a_join_in_order(w: World) -> lw.Stream:
    pairs = _near(w, "adaptive").select("k", at="greatest(ts, ts_right)")
    return pairs.window("10 seconds").group_by("k").agg(n="count(*)")


PAIRED = f"""(SELECT a.ts, a.k, a.s, a.v, b.ts AS tr, b.s AS sr FROM events a JOIN delayed b
              ON a.k = b.k AND {NEAR.format(2, 3)})"""


def _paired(w: World) -> lw.Stream:
    return w.events.join(w.delayed, on="k", within=("2 seconds", "3 seconds"))


@case(f"SELECT ws, we, k, count(*), max(v) FROM {moments(PAIRED, 10)} GROUP BY ALL")
def join_then_window_by_its_key(w: World) -> lw.Stream:
    return _paired(w).window("10 seconds").group_by("k").agg(n="count(*)", most="max(v)")


@case(f"SELECT ws, we, sr, count(*) FROM {moments(PAIRED, 10, time='tr')} GROUP BY ALL", BOTH)
def join_then_window_by_another_key(w: World) -> lw.Stream:
    return _paired(w).window("10 seconds", on="ts_right").group_by("s_right").agg(n="count(*)")


@case(f"SELECT ws, we, count(*), sum(v) FROM {moments(PAIRED, 10, 5)} GROUP BY ALL", buckets=3)
def join_then_window_over_everything(w: World) -> lw.Stream:
    return _paired(w).window("10 seconds", slide="5 seconds").agg(n="count(*)", total="sum(v)")


@case(
    changing(f"(SELECT greatest(ts, tr) AS ts, s FROM {PAIRED})", 10, kinds="count(DISTINCT r.s)"),
    BOTH,
)
def join_then_kinds_on_change(w: World) -> lw.Stream:
    pairs = _paired(w).map(at="greatest(ts, ts_right)")
    return pairs.window("10 seconds", slide="on change", on="at").agg(kinds="count(DISTINCT s)")


@case(f"SELECT ts, tr, count(*) FROM {PAIRED} GROUP BY ALL")
def join_then_group_by_both_times(w: World) -> lw.Stream:
    return _paired(w).group_by("ts", "ts_right").agg(n="count(*)")


@case(
    f"""SELECT ws, we, count(*) FROM {
        moments(
            '''(SELECT coalesce(a.ts, b.ts) AS t
        FROM events a FULL JOIN delayed b ON a.other = b.other
        AND b.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts + INTERVAL 1 SECOND)''',
            10,
            time="t",
        )
    }
        GROUP BY ALL"""
)
def full_join_then_window_on_either_time(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="other", within="1 second", how="full")
    return pairs.map(t="coalesce(ts, ts_right)").window("10 seconds", on="t").agg(n="count(*)")


@case(
    f"""SELECT a.id, b.id, c.id FROM events a JOIN delayed b ON a.k = b.k AND {NEAR.format(1, 1)}
        JOIN shuffled c ON a.k = c.k AND c.ts BETWEEN a.ts - INTERVAL 1 SECOND AND a.ts"""
)
def join_of_joins_by_one_key(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="k", within="1 second").select(
        "ts", "k", one="id", two="id_right"
    )
    triples = pairs.join(w.shuffled, on="k", within=("1 second", "0 seconds"))
    return triples.select("one", "two", "id")


@case(
    f"""SELECT a.id, b.id, c.id FROM events a JOIN delayed b ON a.k = b.k AND {NEAR.format(1, 1)}
        JOIN shuffled c ON b.s = c.s AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts""",
    buckets=3,
)
def join_of_joins_by_two_keys(w: World) -> lw.Stream:
    pairs = w.events.join(w.delayed, on="k", within="1 second").select(
        ts="ts_right", s="s_right", one="id", two="id_right"
    )
    triples = pairs.join(w.shuffled, on="s", within=("1 second", "0 seconds"))
    return triples.select("one", "two", "id")


TRIPLED = f"""(SELECT a.ts AS t0, b.ts AS t1, c.ts AS t2, a.s AS s, b.v AS v
    FROM events a JOIN delayed b ON a.k = b.k AND {NEAR.format(2, 3)}
    JOIN shuffled c ON a.k = c.k
        AND c.ts BETWEEN b.ts - INTERVAL 1 SECOND AND b.ts + INTERVAL 2 SECOND)"""


def _tripled(w: World) -> lw.Stream:
    """Triples, the third time near the second."""
    pairs = w.events.join(w.delayed, on="k", within=("2 seconds", "3 seconds"))
    pairs = pairs.select("k", "s", t0="ts", t1="ts_right", v="v_right")
    third = w.shuffled.select("k", t2="ts")
    return pairs.join(third, on="k", within=("1 second", "2 seconds"), times=("t1", "t2"))


@case(f"SELECT t0, t1, t2, count(*), sum(v) FROM {TRIPLED} GROUP BY ALL", BOTH)
def joins_then_group_by_three_times(w: World) -> lw.Stream:
    return _tripled(w).group_by("t0", "t1", "t2").agg(n="count(*)", total="sum(v)")


@case(
    f"SELECT t0 + INTERVAL 1 SECOND, t2, s, count(*) FROM {TRIPLED} WHERE v > 1 GROUP BY ALL",
    buckets=3,
)
def joins_then_group_by_two_of_three_times_and_another_key(w: World) -> lw.Stream:
    """What the second stage groups by is not what the first one spreads by."""
    chosen = _tripled(w).where("v > 1").select(t="t0 + INTERVAL '1' SECOND", t2="t2", s="s")
    return (
        chosen.distinct("t", "t2", "s")
        .union(chosen)
        .group_by("t", "t2", "s")
        .agg(n="count(*)")
        .select("t", "t2", "s", n="n - 1")
    )


@case(f"SELECT ws, we, count(*) FROM {moments(TRIPLED, 10, time='t0')} GROUP BY ALL")
def joins_then_window_on_the_time_of_the_first(w: World) -> lw.Stream:
    return _tripled(w).window("10 seconds", on="t0").agg(n="count(*)")


@case(f"SELECT a.id, b.id FROM events a JOIN events b ON a.k = b.k AND {NEAR.format(0, 2)}")
def a_stream_joined_with_itself(w: World) -> lw.Stream:
    pairs = w.events.join(w.events, on="k", within=("0 seconds", "2 seconds"))
    return pairs.select("id", "id_right")


@case(
    f"""SELECT a.id, b.id FROM events a JOIN events b ON a.k = b.other AND {NEAR.format(2, 0)}""",
    buckets=3,
)
def a_stream_joined_with_itself_by_different_columns(w: World) -> lw.Stream:
    pairs = w.events.join(w.events, on=[("k", "other")], within=("2 seconds", "0 seconds"))
    return pairs.select("id", "id_right")


TOGETHER = """(SELECT a.ts AS t0, b.ts AS t1, c.ts AS t2, a.k AS k, a.s AS s, b.s AS s2, c.v AS v,
        a.id AS i0, b.id AS i1, c.id AS i2
    FROM events a, delayed b, shuffled c WHERE a.k = b.k AND b.k = c.k
    AND greatest(b.ts, c.ts) - a.ts <= INTERVAL 3 SECOND
    AND greatest(a.ts, c.ts) - b.ts <= INTERVAL 1 SECOND
    AND greatest(a.ts, b.ts) - c.ts <= INTERVAL 2 SECOND)"""


def _together(w: World) -> lw.Stream:
    """Three streams in one join, with a window each."""
    windows = ["3 seconds", "1 second", "2 seconds"]
    return lw.join([w.events, w.delayed, w.shuffled], on="k", within=windows)


@case(f"SELECT t0, t1, t2, k, i0, i1, i2 FROM {TOGETHER} WHERE s <> s2 OR v > 0", BOTH, buckets=3)
def one_join_of_three_streams(w: World) -> lw.Stream:
    windows = ["3 seconds", "1 second", "2 seconds"]
    inputs = [w.events, w.delayed, w.shuffled]
    rows = lw.join(inputs, on="k", within=windows, where="s <> s_2 OR v_3 > 0")
    return rows.select("ts", "ts_2", "ts_3", "k", "id", "id_2", "id_3")


@case(f"SELECT ws, we, s2, count(*) FROM {moments(TOGETHER, 10, time='t1')} GROUP BY ALL")
def one_join_of_three_streams_then_window_by_another_key(w: World) -> lw.Stream:
    return _together(w).window("10 seconds", on="ts_2").group_by("s_2").agg(n="count(*)")


@case(f"SELECT t0, t2, k, count(*), sum(v) FROM {TOGETHER} GROUP BY ALL", buckets=3)
def one_join_of_three_streams_then_group_by_two_times(w: World) -> lw.Stream:
    return _together(w).group_by("ts", "ts_3", "k").agg(n="count(*)", total="sum(v_3)")


@case(
    """SELECT a.id, b.id, c.id, d.id, a.k, b.other FROM events a, delayed b, shuffled c, events d
       WHERE a.k = b.other AND a.k = c.k AND a.k = d.k AND a.s = b.s AND a.s = c.s AND a.s = d.s
       AND greatest(a.ts, b.ts, c.ts, d.ts) - least(a.ts, b.ts, c.ts, d.ts) <= INTERVAL 8 SECOND"""
)
def one_join_of_four_streams_by_columns_of_other_names(w: World) -> lw.Stream:
    inputs = [w.events, w.delayed, w.shuffled, w.events]
    rows = lw.join(inputs, on=[("k", "other", "k", "k"), "s"], within="8 seconds")
    return rows.select("id", "id_2", "id_3", "id_4", "k", "other_2")


@case(
    """SELECT a.ts, a.v, b.v, c.ts FROM ticks a JOIN gap b ON a.ts = b.ts
       JOIN told c ON c.ts BETWEEN a.ts - 1 AND a.ts WHERE a.v < b.v"""
)
def one_join_without_a_key(w: World) -> lw.Stream:
    rows = lw.join([w.ticks, w.gap, w.told], within=[0, 0, 1], where="v < v_2")
    return rows.select("ts", "v", "v_2", "ts_3")


# ---- unions of what was computed -----------------------------------------------------------


@case(
    f"""SELECT ws, k, count(*) FROM {
        moments(
            '''(SELECT ts, k FROM events
        UNION ALL SELECT ts, other AS k FROM events)''',
            10,
        )
    } GROUP BY ALL""",
    buckets=3,
)
def a_stream_and_its_columns_exchanged(w: World) -> lw.Stream:
    both = w.events.select("ts", "k").union(w.events.select("ts", k="other"))
    counted = both.window("10 seconds").group_by("k").agg(n="count(*)")
    return counted.select("window_start", "k", "n")


@case(
    f"""SELECT ws, k, count(*) FROM {moments("events", 10)} GROUP BY ALL
        UNION ALL SELECT ws, k, count(*) FROM {moments("delayed", 20)} GROUP BY ALL"""
)
def a_union_of_aggregated_streams(w: World) -> lw.Stream:
    one = w.events.window("10 seconds").group_by("k").agg(n="count(*)")
    two = w.delayed.window("20 seconds").group_by("k").agg(n="count(*)")
    return one.union(two).select("window_start", "k", "n")


@case(
    f"""SELECT a.ws, a.k, a.n, b.n FROM
        (SELECT ws, k, count(*) AS n FROM {moments("events", 10)} GROUP BY ALL) a LEFT JOIN
        (SELECT ws, k, count(*) AS n FROM {moments("delayed", 10)} GROUP BY ALL) b
        ON a.ws = b.ws AND a.k = b.k""",
)
def aggregated_streams_joined(w: World) -> lw.Stream:
    one, two = (
        each.window("10 seconds").group_by("k").agg(n="count(*)").select("window_start", "k", "n")
        for each in (w.events, w.delayed)
    )
    return one.join(two, on=["window_start", "k"], how="left")


# ---- contracts and clocks ------------------------------------------------------------------


@case(f"SELECT ws, we, g, sum(v) FROM {windows('ticks', 10)} GROUP BY ALL")
def answered_group_by_group(w: World) -> lw.Stream:
    return w.ticks.window(10).group_by("g").agg(total="sum(v)")


@case(
    """SELECT min(ts), max(ts) + 2, g, count(*) FROM (
           SELECT *, sum(CASE WHEN ts - before < 2 THEN 0 ELSE 1 END)
               OVER (PARTITION BY g ORDER BY ts ROWS UNBOUNDED PRECEDING) AS number
           FROM (SELECT *, lag(ts) OVER (PARTITION BY g ORDER BY ts) AS before FROM ticks))
       GROUP BY g, number""",
    buckets=3,
    chunk_rows=20,
)
def sessions_answered_group_by_group(w: World) -> lw.Stream:
    return w.ticks.session(2).group_by("g").agg(n="count(*)")


@case(
    f"""SELECT ws, we, g, count(*)
        FROM {windows("(SELECT DISTINCT ts, g, k FROM ticks)", 6, 3)} GROUP BY ALL""",
    buckets=3,
)
def duplicates_forgotten_group_by_group_then_windows(w: World) -> lw.Stream:
    once = w.ticks.distinct("ts", "g", "k")
    return once.window(6, slide=3).group_by("g").agg(n="count(*)")


@case(
    """SELECT a.ts, a.g, a.v, b.ts, b.v FROM ticks a LEFT JOIN gap b
       ON a.g = b.g AND b.ts BETWEEN a.ts - 1 AND a.ts""",
    buckets=3,
)
def joined_group_by_group_with_a_stream_without_groups(w: World) -> lw.Stream:
    pairs = w.ticks.join(w.gap, on="g", within=(1, 0), how="left")
    return pairs.select("ts", "g", "v", "ts_right", "v_right")


@case(
    f"""SELECT ws, we, g, count(*), sum(v)
        FROM {windows("(SELECT * FROM ticks UNION ALL SELECT * FROM gap)", 10)} GROUP BY ALL"""
)
def a_union_with_and_without_groups(w: World) -> lw.Stream:
    both = w.ticks.union(w.gap)
    return both.window(10).group_by("g").agg(n="count(*)", total="sum(v)")


@case(f"SELECT ws, we, g, count(*), sum(v) FROM {windows('leaving', 12, 4)} GROUP BY ALL")
def windows_of_groups_that_end(w: World) -> lw.Stream:
    return w.leaving.window(12, slide=4).group_by("g").agg(n="count(*)", total="sum(v)")


@case(
    """SELECT a.ts, a.g, b.ts FROM leaving a LEFT JOIN parting b
       ON a.g = b.g AND b.v > 3 AND b.ts BETWEEN a.ts AND a.ts + 2""",
    buckets=3,
)
def a_join_of_groups_and_channels_that_end(w: World) -> lw.Stream:
    strong = w.parting.where("v > 3")
    return w.leaving.join(strong, on="g", within=(0, 2), how="left").select("ts", "g", "ts_right")


@case(f"SELECT ws, we, count(*) FROM {windows('parting', 10)} GROUP BY ALL", BOTH)
def windows_over_channels_that_end(w: World) -> lw.Stream:
    return w.parting.window(10).agg(n="count(*)")


@case("SELECT one, two, count(*) FROM paired GROUP BY ALL", buckets=3)
def groups_of_times_that_are_promised_jointly(w: World) -> lw.Stream:
    return w.paired.group_by("one", "two").agg(n="count(*)")


@case(f"SELECT ws, we, k, count(*) FROM {windows('told', 10)} GROUP BY ALL", BOTH)
def told_by_the_producer(w: World) -> lw.Stream:
    return w.told.window(10).group_by("k").agg(n="count(*)")


@case(f"SELECT ws, we, count(*) FROM {windows('gap', 10)} GROUP BY ALL", chunk_rows=30)
def a_gap_of_days(w: World) -> lw.Stream:
    return w.gap.window(10).agg(n="count(*)")


@case(
    f"""SELECT ws, we, count(*) FROM {
        moments("(SELECT CAST(day AS TIMESTAMP) AS ts FROM days)", 7 * 86_400)
    } GROUP BY ALL""",
    chunk_rows=30,
)
def windows_of_a_week_over_dates(w: World) -> lw.Stream:
    return w.days.window("7 days").agg(n="count(*)")


@case(
    f"""SELECT ws, we, k, count(*) FROM {
        moments(
            '''(SELECT
        make_timestamp(CAST(sec * 1000000 AS BIGINT)) AS ts, k FROM floats)''',
            5,
        )
    } GROUP BY ALL""",
    chunk_rows=40,
)
def floating_point_seconds_with_arrival_times(w: World) -> lw.Stream:
    return w.floats.window("5 seconds").group_by("k").agg(n="count(*)")


@case(f"SELECT ws, we, k, sum(k) FROM {windows('millis', 2000, 500)} GROUP BY ALL", chunk_rows=40)
def whole_milliseconds(w: World) -> lw.Stream:
    sliding = w.millis.window("2 seconds", slide="500 ms")
    return sliding.group_by("k").agg(total="sum(k)")


@case(
    f"""SELECT ws, we, k, max(make_timestamp(epoch_us(ts))) FROM {moments("zoned", 600)}
        GROUP BY ALL""",
    chunk_rows=40,
)
def times_in_a_zone(w: World) -> lw.Stream:
    return w.zoned.window("10 minutes").group_by("k").agg(latest="max(ts)")


@case("SELECT k, count(*) FROM unstamped GROUP BY k", chunk_rows=40)
def stamped_on_entry(w: World) -> lw.Stream:
    return w.unstamped.window("1 hour").group_by("k").agg(n="count(*)").select("k", "n")


@case(
    """SELECT make_timestamp(floor("at" / 10)::BIGINT * 10000000) AS ws, k, count(*)
       FROM unstamped GROUP BY ALL""",
    chunk_rows=40,
)
def stamped_with_their_arrival(w: World) -> lw.Stream:
    counted = w.unstamped.window("10 seconds").group_by("k").agg(n="count(*)")
    return counted.select("window_start", "k", "n")


@case("SELECT k, count(*) FROM latent GROUP BY k", chunk_rows=40)
def stamped_where_a_time_is_needed(w: World) -> lw.Stream:
    return w.latent.window("1 hour").group_by("k").agg(n="count(*)").select("k", "n")


@case("SELECT count(*) * 2 FROM latent", chunk_rows=40)
def stamped_over_everything(w: World) -> lw.Stream:
    both = w.latent.select("k").union(w.latent.select(k="k + 1"))
    return both.window("1 hour").agg(n="count(*)").select("n")


# ---- nothing is promised -------------------------------------------------------------------


@case("SELECT * FROM sensor1 JOIN sensor2 USING (epoch) JOIN sensor3 USING (epoch)", BOTH, 3)
def a_join_of_streams_that_promise_nothing(w: World) -> lw.Stream:
    return lw.join(w.sensors[:3], on="epoch")


@case(
    """SELECT a.epoch, a.k, a.val, b.val, c.val FROM sensor1 a, sensor2 b, sensor3 c
       WHERE a.epoch = b.epoch AND b.epoch = c.epoch AND a.k = b.k AND b.k = c.k
       AND a.val < b.val + c.val""",
    chunk_rows=9,
)
def sorted_before_they_are_joined(w: World) -> lw.Stream:
    condition = "val < val_2 + val_3"
    joined = lw.join(w.sensors[:3], on=["epoch", "k"], where=condition, strategy="msf")
    return joined.select("epoch", "k", "val", "val_2", "val_3")


@case(
    """SELECT a.epoch, a.val, b.val, c.val, d.val FROM sensor1 a, sensor2 b, sensor3 c, sensor4 d
       WHERE a.epoch = b.epoch AND c.epoch = d.epoch AND a.epoch = c.epoch""",
    BOTH,
    3,
)
def joins_of_joins_of_streams_that_promise_nothing(w: World) -> lw.Stream:
    first, second, third, fourth = (each.select("epoch", "val") for each in w.sensors)
    one = first.join(second, on="epoch")
    two = third.join(fourth, on="epoch").select("epoch", c="val", d="val_right")
    return one.join(two, on="epoch", strategy="dbf")


@case(
    f"""SELECT ws, we, count(*) FROM {
        windows("sensor1 JOIN sensor2 USING (epoch)", 10, time="epoch")
    } GROUP BY ALL""",
    buckets=3,
)
def windows_over_a_join_of_streams_that_promise_nothing(w: World) -> lw.Stream:
    return w.sensors[0].join(w.sensors[1], on="epoch").window(10).agg(n="count(*)")


@case("SELECT epoch, count(*) FROM sensor2 GROUP BY epoch", BOTH)
def groups_of_a_stream_that_promises_nothing(w: World) -> lw.Stream:
    return w.sensors[1].group_by("epoch").agg(n="count(*)")


# ---- update streams, where work takes no time --------------------------------------------------


@case("SELECT ts, g, v, v * 2, k FROM ticks WHERE v > 1", BOTH, 3)
def updates_filtered_and_computed(w: World) -> lw.Stream:
    return w.ticks.updates("g").where("v > 1").select("ts", "g", "v", twice="v * 2", k="k")


@case("SELECT ts, g, v, k FROM ticks", BOTH, 3)
def updates_of_keys_that_expire_and_are_deleted(w: World) -> lw.Stream:
    stream = w.ticks.updates("g", expire=2, delete_when="v > 3")
    return stream.select("ts", "g", "v", k="k")


@case(
    f"SELECT ws, we, k, g, count(*), max(v) FROM {windows('ticks', 10, 5)} GROUP BY ALL",
    BOTH,
    3,
)
def windows_of_updates(w: World) -> lw.Stream:
    stream = w.ticks.updates("k", windows="eager")
    return stream.window(10, slide=5).group_by("k", "g").agg(n="count(*)", most="max(v)")


@case(
    """SELECT a.ts, a.k, a.v, b.ts + 1 FROM ticks a JOIN millis b ON a.k = b.k
       WHERE a.ts = 9 AND b.ts BETWEEN 2500 AND 3000""",
    BOTH,
    chunk_rows=20,
)
def newest_updates_of_two_streams(w: World) -> lw.Stream:
    ticks = w.ticks.updates("k").where("ts = 9")
    millis = w.millis.select("ts", k="CAST(k AS BIGINT)", v="ts + 1").updates("k")
    pairs = ticks.join(millis.where("ts BETWEEN 2500 AND 3000"), on="k")
    return pairs.select("ts", "k", "v", "v_right")
