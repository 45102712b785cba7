"""Rows that break a promise: every engine refuses the same ones, says the same and counts alike.

Logs have an order, so each row is judged by the rows before it on every engine.
"""

from __future__ import annotations

import random
import warnings
from collections import Counter
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.conformance.engines import Engine
from tests.conformance.queries import windows
from tests.support.oracle import answer, table_rows
from tests.support.streams import is_kept

EMBEDDED = Engine("embedded")


def unruly(seed: int, rows: int = 120) -> pl.DataFrame:
    """A log that goes back now and then, on each of its two devices."""
    chance = random.Random(seed)
    found = []
    for at in range(rows):
        back = chance.randint(5, 30) if chance.random() < 0.15 else 0
        found.append((at // 2 - back, chance.choice("ab"), at))
    schema = {"ts": pl.Int64, "dev": pl.String, "id": pl.Int64}
    return pl.DataFrame(found, schema=schema, orient="row")


def stream(table: pl.DataFrame, name: str = "log", **options: Any) -> lw.Stream:
    return lw.stream(table, **{"name": name, "time": "ts", "progress": lw.within(4)} | options)


def side(run: lw.Run, name: str = "log") -> Counter[tuple[Any, ...]]:
    return table_rows(run.late_rows(name))


def account(run: lw.Run, name: str = "log") -> set[tuple[Any, ...]]:
    return {
        (each.channel, each.reason, each.rows, each.longest_seconds, round(each.mean_seconds, 6))
        for each in run.metrics().stream(name).late
    }


def minutes(source: lw.Stream) -> lw.Stream:
    return source.window(10).group_by("dev").agg(n="count(*)")


def on(engine: Engine, query: lw.Stream) -> lw.Run:
    return engine.run(query, chunk_rows=40, buckets=2)


@pytest.mark.parametrize("channel", [None, "dev"])
def test_the_side_output_holds_what_the_contract_refuses(engine: Engine, channel: Any) -> None:
    log = unruly(1)
    query = minutes(stream(log, channel=channel))
    run = on(engine, query)
    kept = set()
    for part in log.partition_by("dev") if channel else [log]:
        fine = is_kept(part["ts"].to_list(), lw.within(4))
        kept |= set(part.filter(pl.Series(fine))["id"])
    assert 0 < run.late_rows("log").num_rows == log.height - len(kept)
    assert kept.isdisjoint(run.late_rows("log")["id"].to_pylist())
    on_time = log.filter(pl.col("id").is_in(sorted(kept)))
    sql = f"SELECT ws, we, dev, count(*) FROM {windows('log', 10)} GROUP BY ALL"
    assert table_rows(run.results()) == answer(sql, {"log": on_time})
    again = EMBEDDED.run(query)
    assert run.late_rows("log").schema == again.late_rows("log").schema
    assert side(run) == side(again)
    assert account(run) == account(again)
    assert run.metrics().late_rows == again.metrics().late_rows


def test_each_stream_has_a_side_output_of_its_own(engine: Engine) -> None:
    one, two = stream(unruly(2), "one"), stream(unruly(3), "two", progress=lw.ordered())
    query = one.join(two, on="dev", within=1)
    run, again = on(engine, query), EMBEDDED.run(query)
    for name in ("one", "two"):
        assert side(run, name) == side(again, name)
        assert side(run, name)
        assert account(run, name) == account(again, name)
    with pytest.raises(lw.OptionError, match="several streams ran: say which of one, two"):
        run.late_rows()
    with pytest.raises(lw.OptionError, match="unknown stream 'three'"):
        run.late_rows("three")


def test_a_stream_that_two_stages_read_refuses_a_row_once(engine: Engine) -> None:
    log = stream(unruly(4))
    counted = minutes(log).select("dev", "n", ts="window_start")
    query = counted.join(log, on=[("n", "id")], within=20)
    run, again = on(engine, query), EMBEDDED.run(query)
    assert side(run) == side(again)
    assert run.metrics().late_rows == again.metrics().late_rows > 0


def test_dropped_rows_are_counted_and_not_kept(engine: Engine) -> None:
    query = minutes(stream(unruly(5), late="drop"))
    run, again = on(engine, query), EMBEDDED.run(query)
    assert run.late_rows("log").num_rows == 0
    assert account(run) == account(again)
    assert run.metrics().late_rows > 0
    assert table_rows(run.results()) == table_rows(again.results())


def test_rows_without_a_time_or_channel_are_refused_by_name(engine: Engine) -> None:
    log = unruly(6, 60).with_columns(
        sec=pl.when(pl.col("id") % 9 == 4).then(None).otherwise(pl.col("ts") * 1.0),
        dev=pl.when(pl.col("id") % 11 == 5).then(None).otherwise("dev"),
    )
    log = log.with_columns(sec=pl.when(pl.col("id") == 7).then(float("inf")).otherwise("sec"))
    query = minutes(stream(log.drop("ts"), time="sec", channel="dev"))
    run, again = on(engine, query), EMBEDDED.run(query)
    assert {reason for _, reason, *_ in account(run)} == {"late", "no time", "no channel"}
    assert account(run) == account(again)
    assert side(run) == side(again)


@pytest.mark.parametrize(
    ("times", "options", "kind"),
    [
        ([3, 9, 1, 2], {}, lw.BrokenPromise),
        ([3, 9, 1, 2], {"channel": "dev"}, lw.BrokenPromise),
        ([3, None, 1, 2], {}, lw.BadInput),
        ([3, 4, 10**6, 5], {"jump": lw.jump("1 day", "fail")}, lw.BrokenPromise),
    ],
)
def test_a_broken_promise_that_must_not_be_ends_the_run(
    engine: Engine, times: list[Any], options: dict[str, Any], kind: type[Exception]
) -> None:
    log = pl.DataFrame({"ts": times, "dev": "a"}, schema={"ts": pl.Int64, "dev": pl.String})
    query = minutes(stream(log, **{"late": "fail", "progress": lw.ordered()} | options))
    with pytest.raises(kind) as raised:
        engine.collect(query, chunk_rows=2, buckets=2)
    with pytest.raises(kind) as other:
        EMBEDDED.collect(query)
    assert str(raised.value) == str(other.value)
    assert raised.value.__dict__ == other.value.__dict__


def test_rows_dated_far_ahead_are_set_aside_and_spoken_of(engine: Engine) -> None:
    log = pl.DataFrame({"ts": [3, 4, 10**6, 5, 8, 15, 26], "dev": "a"})
    query = minutes(stream(log, jump=lw.jump("1 day", "quarantine")))
    runs, said = [], []
    for each in (engine, EMBEDDED):
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            runs.append(each.run(query, chunk_rows=3, buckets=2))
        said.append({str(w.message) for w in heard if w.category is lw.StreamWarning})
    run, again = runs
    assert said[0] == said[1] != set()
    assert side(run) == side(again) != Counter()
    assert table_rows(run.results()) == table_rows(again.results())


def test_windows_of_rows_count_late_rows_though_they_are_not_in_them(engine: Engine) -> None:
    """The row keeps the number with which it came; what is in no answer leaves a gap."""
    log = unruly(3)
    query = stream(log).window(rows=20).agg(n="count(*)", total="sum(id)")
    fine = pl.Series(is_kept(log["ts"].to_list(), lw.within(4)))
    sql = "SELECT id // 20 * 20, id // 20 * 20 + 20, count(*), sum(id) FROM log GROUP BY ALL"
    wanted = answer(sql, {"log": log.filter(fine)})  # ids are the numbers of rows
    run = on(engine, query)
    assert 0 < run.late_rows("log").num_rows == log.height - fine.sum()
    assert table_rows(run.results()) == wanted
    assert side(run) == side(EMBEDDED.run(query, chunk_rows=7))
    assert "__sequence" not in run.late_rows("log").column_names


def test_an_operator_that_fails_is_named_with_its_line(engine: Engine) -> None:
    query = stream(unruly(7)).apply(_fails)
    errors = []
    for each in (engine, EMBEDDED):
        with pytest.raises(lw.OperatorError) as raised:
            each.collect(query, chunk_rows=50, buckets=2)
        errors.append(raised.value)
    assert str(errors[0]) == str(errors[1])
    assert "test_late_rows.py:" in str(errors[0])
    assert "apply" in str(errors[0])


def _fails(chunk: pl.DataFrame) -> pl.DataFrame:
    raise ValueError("no luck")


def test_a_learned_promise_refuses_the_same_rows_and_says_alike_how_complete_it_is(
    engine: Engine,
) -> None:
    table = unruly(9, 2_000)
    query = minutes(stream(table, progress=lw.learned(0.9), channel="dev"))
    run, own = (each.run(query, chunk_rows=500, buckets=2) for each in (engine, EMBEDDED))
    assert side(run) == side(own)
    assert table_rows(run.results()) == table_rows(own.results())
    told, expected = (each.metrics().stream("log").completeness for each in (run, own))
    assert {each.channel: each for each in told} == {each.channel: each for each in expected}
    assert told[0].channel is None
    assert (told[0].rows, told[0].late_rows) == (2_000, sum(side(run).values()))
    assert 0.86 < told[0].achieved < 0.94
    restated = query.corrected(run.results(), run.late_rows())
    whole = f"SELECT ws, we, dev, count(*) FROM {windows('log', 10)} GROUP BY ALL"
    assert table_rows(restated) == answer(whole, {"log": table})


def test_a_stream_that_falls_short_of_its_completeness_says_so_alike(engine: Engine) -> None:
    """From the middle on, every second row of one device comes minutes late."""
    behind = [600 if at >= 1_000 and at % 4 == 0 else 0 for at in range(2_000)]
    rows = [(at - back, "ab"[at % 2], at) for at, back in enumerate(behind)]
    table = pl.DataFrame(rows, schema=unruly(1, 0).schema, orient="row")
    query = minutes(stream(table, progress=lw.learned(0.99), channel="dev"))
    told = []
    for each in (engine, EMBEDDED):
        with warnings.catch_warnings(record=True) as noticed:
            warnings.simplefilter("always")
            run = each.run(query, chunk_rows=500, buckets=2)
        (found,) = {str(x.message) for x in noticed if x.category is lw.StreamWarning}
        lines = {line.channel: line for line in run.metrics().stream("log").completeness}
        told.append((found, lines))
    assert told[0] == told[1]
    found, lines = told[0]
    assert "stream 'log', channel 'a'" in found
    assert "later than any before them" in found
    assert lines["b"].shortfall is None
    assert lines[None].shortfall == lines["a"].shortfall is not None
    assert 1_000 <= lines["a"].short_since == lines[None].short_since < 1_200
