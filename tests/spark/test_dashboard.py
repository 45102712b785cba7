"""What the page of a run on Spark knows: channels, batches, the last rows, and what is saved."""

from __future__ import annotations

import json
import urllib.request

import polars as pl
import pytest

import lowwater as lw
from lowwater.dashboard.history import METRICS, read_saved
from tests.spark.test_streaming import at, read, write


def told(url: str, what: str) -> dict:
    with urllib.request.urlopen(f"{url}api/{what}", timeout=60) as answer:
        return json.loads(answer.read())


def test_a_log_tells_of_rows_marks_and_channels_as_in_one_process(spark):
    rows = pl.DataFrame(
        {"ts": [n // 3 + 7 * (n % 3) for n in range(300)], "k": [n % 3 for n in range(300)]}
    )
    stream = lw.stream(lw.replay(rows), name="s", time="ts", channel="k")
    query = stream.window("10 seconds").agg(n="count(*)")
    found = {}
    for engine, options in (("embedded", {}), ("spark", {"session": spark})):
        run = query.run(engine=engine, chunk_rows=100, **options)
        run.await_termination()
        found[engine] = run.metrics()
    one, many = (found[engine].stream("s") for engine in ("embedded", "spark"))
    assert [(c.channel, c.mark) for c in many.channels] == [
        (c.channel, c.mark) for c in one.channels
    ]
    assert (many.channel_count, many.ahead, many.rows) == (3, one.ahead, 300)
    assert (many.marks, many.slowest_channel) == (one.marks, one.channels[0].channel)
    batches = found["spark"].batches
    assert [each.number for each in batches] == list(range(len(batches)))
    assert sum(each.rows for each in batches) == 300
    assert all(each.seconds > 0 and "addBatch" in each.parts for each in batches)


@pytest.mark.parametrize(
    "kind", [{"channel": "k", "channels": [7, 8]}, {"groups": "k"}], ids=["channels", "groups"]
)
def test_the_page_names_the_channel_that_holds_the_mark_and_shows_rows(spark, tmp_path, kind):
    write(tmp_path / "in", 0, [1, 2, 70], k=7)
    write(tmp_path / "in", 1, [10, 20], k=8)
    write(tmp_path / "in", 2, [15, 500], k=8)
    stream = read(spark, tmp_path / "in", "s", **kind)
    run = stream.window("10 seconds").group_by("k").agg(n="count(*)").run(
        engine="spark",
        session=spark,
        checkpoint=tmp_path / "cp",
        sink=tmp_path / "out",
        trigger="available-now",
        dashboard=lw.dashboard(show_rows=True),
    )  # fmt: skip
    run.await_termination()
    page = run.dashboard
    assert page is not None
    page.settle()
    state, rows = told(page.url, "state"), told(page.url, "rows")["queries"]["1"]
    page.close()
    (query,) = state["queries"]
    assert (state["engine"], query["rows_in"], query["late_rows"]) == ("spark", 7, 1)
    (shown,) = query["streams"]
    assert (shown["slowest"], shown["channel_count"]) == ("7", 2)
    assert [(each["name"], each["lag"]) for each in shown["channels"]] == [("7", 430.0), ("8", 0.0)]
    assert len(query["batches"]) == 3
    assert {row[0] for row in rows["answers"]["rows"]} == {str(at(n)) for n in (0, 10, 20)}
    assert [row[1] for row in rows["late"]["rows"]] == ["8"]
    saved, history = read_saved(tmp_path / "cp")
    assert saved["saved"] == str(tmp_path / "cp" / METRICS)
    assert saved["queries"] == state["queries"]
    assert history.since()["queries"]["1"]["rows_in"][-1] == 7
