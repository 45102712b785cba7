"""Pull queries of runs in this process: keys of every form, what is refused, and readers of other
threads while the run goes on."""

from __future__ import annotations

import threading
from datetime import date
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from tests.unit.running import finished

QUOTES = pl.DataFrame(
    {
        "ts": [1, 2, 3, 4, 5],
        "symbol": ["IBM", "GM", "IBM", "GM", None],
        "venue": [1, 1, 2, 1, 1],
        "price": [10, 20, 30, 40, 50],
    }
)
ABOUT = {"_time", "_age", "_staleness"}


def quotes(**options: Any) -> lw.Stream:
    return lw.stream(QUOTES, name="Q", time="ts", **{"update_key": ("symbol", "venue")} | options)


def price(run: lw.Run, key: object) -> object:
    found = run.latest(key)
    return None if found is None else found["price"]


def test_a_key_of_several_columns_is_a_tuple_or_a_mapping() -> None:
    run = finished(quotes())
    assert price(run, ("GM", 1)) == 40
    assert price(run, {"venue": 2, "symbol": "IBM"}) == 30
    assert price(run, (None, 1)) == 50
    assert price(run, ("GM", 2)) is None
    assert run.table().num_rows == 4
    assert [row["price"] for row in run.table().to_pylist()] == [10, 30, 40, 50]


def test_without_key_columns_there_is_one_answer() -> None:
    run = finished(quotes(update_key=()))
    assert price(run, ()) == price(run, {}) == 50
    found = run.latest()
    assert found is not None
    assert run.table().to_pylist() == [found]


def test_rows_of_a_window_are_named_by_all_groups() -> None:
    """A newer window of a symbol replaces all rows of its older one."""
    windows = quotes(update_key="symbol").window("2 s").group_by("symbol", "venue")
    run = finished(windows.agg(price="max(price)"))
    assert price(run, ("IBM", 2)) == 30
    assert run.latest(("IBM", 1)) is None
    assert price(run, ("GM", 1)) == 40


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("GM", r"the key has 2 columns \(symbol, venue\); 'GM' has 1 values"),
        (("GM", 1, 2), r"has 3 values"),
        (("GM", "1"), r"'1' is no value of key column 'venue', which has type Int64"),
        ((7, 1), r"7 is no value of key column 'symbol', which has type String"),
        ({"symbol": "GM"}, r"the key has the columns symbol, venue; the mapping has 'symbol'"),
    ],
)
def test_wrong_keys_are_refused(key: object, message: str) -> None:
    with pytest.raises(lw.OptionError, match=message):
        finished(quotes()).latest(key)


def test_queries_without_an_update_key_are_refused_with_what_to_write() -> None:
    run = finished(lw.stream(QUOTES, name="Q", time="ts"))
    for pull in (run.table, lambda: run.latest("GM")):
        with pytest.raises(lw.OptionError, match=r"declare update_key= .* updates\('key'\)"):
            pull()
    assert finished(lw.stream(QUOTES, name="Q", time="ts").updates("symbol")).table().num_rows == 3


def test_a_column_with_the_name_of_an_added_one_is_refused_when_answers_are_pulled() -> None:
    run = finished(quotes().map(_age="1"))
    assert run.results().num_rows == 5
    with pytest.raises(lw.OptionError, match=r"has a column '_age'; give yours another name"):
        run.table()


def test_the_error_of_a_run_is_raised() -> None:
    run = quotes().apply(lambda rows: rows.with_columns(price=1 / 0)).run()
    with pytest.raises(lw.LowwaterError):
        run.await_termination()
    with pytest.raises(lw.LowwaterError, match="division by zero"):
        run.table()


def test_answers_without_their_time_have_no_time() -> None:
    run = finished(quotes().select("symbol", "venue", "price"))
    found = run.latest(("GM", 1))
    assert found is not None
    assert (found["price"], found["_time"]) == (40, None)


def test_a_deleted_key_comes_again() -> None:
    run = finished(quotes(update_key="symbol", delete_when="price = 30"))
    assert (price(run, "IBM"), price(run, "GM")) == (None, 40)
    row = {"ts": [6], "symbol": ["IBM"], "venue": [1], "price": [60]}
    again = pl.concat([QUOTES, pl.DataFrame(row)])
    stream = lw.stream(again, name="Q", time="ts", update_key="symbol", delete_when="price = 30")
    assert price(finished(stream), "IBM") == 60


def test_an_older_row_of_a_deleted_key_that_waits_is_not_shown() -> None:
    rows = pl.DataFrame(
        {"ts": [0, 1, 2, 3], "k": ["a", "b", "a", "a"], "v": [1, 1, 2, 0], "came": [0.0, 1, 2, 3]}
    )
    log = lw.replay(rows, arrival="came")
    stream = lw.stream(log, name="S", time="ts", update_key="k", delete_when="v = 0")
    run = finished(stream, tick=0, charge=lw.per_row("10 seconds"))
    assert run.results()["v"].to_pylist() == [1, 1, 0], "a's row of 2 was replaced"
    assert [row["k"] for row in run.table().to_pylist()] == ["b"]


def test_staleness_counts_from_the_oldest_update_that_is_not_shown() -> None:
    rows = pl.DataFrame({"ts": [0, 1, 2], "k": ["a"] * 3, "came": [0.0, 1.0, 2.0]})
    stream = lw.stream(lw.replay(rows, arrival="came"), name="S", time="ts", update_key="k")
    seen: list[Any] = []
    shown: list[lw.Run] = []

    def look(chunk: pl.DataFrame) -> pl.DataFrame:
        seen.append(shown[0].latest("a") if shown else None)
        return chunk

    begun = threading.Event()
    run = stream.apply(lambda chunk: (begun.wait(10), look(chunk))[1]).run(
        tick=0, charge=lw.per_row("10 seconds")
    )
    shown.append(run)
    begun.set()
    run.await_termination()
    assert seen[0] is None
    (second,) = seen[1:]
    about = second["ts"], second["_staleness"], second["_age"]
    assert about == (0, 19.0, 10.0), "the clock stands where the work on the next row ends"
    found = run.latest("a")
    assert found is not None
    assert (found["ts"], found["_staleness"]) == (2, 0.0)


def test_other_threads_read_while_the_run_goes_on() -> None:
    push = lw.push({"ts": pl.Int64, "k": pl.Int64})
    run = lw.stream(push, name="S", time="ts", update_key="k").run(sink=lambda table: None)
    stopped, errors = threading.Event(), []

    def read() -> None:
        last: dict[int, int] = {}
        while not stopped.is_set():
            try:
                for row in run.table().to_pylist():
                    assert row["ts"] >= last.get(row["k"], 0)
                    last[row["k"]] = row["ts"]
                    one = run.latest(row["k"])
                    assert one is not None
                    assert one["ts"] >= row["ts"]
            except BaseException as error:
                errors.append(error)
                return

    threads = [threading.Thread(target=read) for _ in range(3)]
    for each in threads:
        each.start()
    for at in range(200):
        push.send([{"ts": at, "k": at % 10}])
    push.close()
    run.await_termination()
    stopped.set()
    for each in threads:
        each.join()
    assert not errors
    assert sorted(row["ts"] for row in run.table().to_pylist()) == [*range(190, 200)]


def test_keys_may_be_dates() -> None:
    table = pl.DataFrame({"ts": [1, 2], "day": [date(2026, 1, 1), date(2026, 1, 2)]})
    run = finished(lw.stream(table, name="S", time="ts", update_key="day"))
    found = run.latest(date(2026, 1, 2))
    assert found is not None
    assert found["ts"] == 2
    assert run.puller is not None
    assert run.puller.key_from_texts(["2026-01-02"]) == (date(2026, 1, 2),)
