"""Explain: operators, rules, partitioning, punctuation, order."""

from __future__ import annotations

from typing import Any

import polars as pl

import lowwater as lw


def left() -> lw.Stream:
    frame = pl.DataFrame(schema={"ts": pl.Int64, "k": pl.String, "v": pl.Int64})
    return lw.stream(frame, name="left", time="ts", progress=lw.within("5 s"))


def right() -> lw.Stream:
    frame = pl.DataFrame(schema={"ts": pl.Int64, "k": pl.String, "v": pl.Int64})
    return lw.stream(frame, name="right", time="ts", channel="k")


def test_a_window_shows_its_lengths_groups_and_partitioning() -> None:
    text = left().where("v > 0").window("1 minute", "20 s").group_by("k").agg(n="sum(v)").explain()
    assert text.splitlines()[0] == "out-of-order plan"
    assert "window#2  range 1 minute, slide 20 s on ts, by k: sum(v) AS n" in text
    assert "partitioned by: k" in text
    assert "filter#1  v > 0" in text
    assert "progress: promises pass through: dropping rows breaks none" in text
    assert "source#0  left: ts within 5 s" in text
    assert "punctuates: ts every 20 s" in text


def test_an_ungrouped_window_has_one_partition() -> None:
    assert "partitioned by: none (one partition)" in left().window("1 s").agg(n="sum(v)").explain()


def test_a_source_shows_how_its_timestamps_are_made() -> None:
    frame = pl.DataFrame(schema={"ts": pl.Int64})
    for idle, line in (
        (lw.on_demand(), "when idle: timestamps on demand, skew 0 s"),
        (
            lw.on_demand("1 s", behind_clock="30 s"),
            "when idle: timestamps on demand, skew 1 s, rows at most 30 s behind the clock",
        ),
        (
            lw.heartbeat("2 s", behind_clock="1 minute"),
            "when idle: a heartbeat every 2 s, skew 0 s, rows at most 1 minute behind the clock",
        ),
    ):
        assert line in lw.stream(frame, name="s", time="ts", idle=idle).distinct().explain()


def test_a_union_shows_its_rule_and_the_contract_of_every_source() -> None:
    text = left().union(right()).order_by().explain()
    assert "union#2  2 inputs, time ts" in text
    assert "progress: the least mark over the inputs" in text
    assert "right: ts ordered per k" in text
    assert "punctuates: ts at every step" in text


def test_order_is_made_after_the_stage_if_nothing_but_row_wise_operators_follow() -> None:
    pairs = left().join(right(), on="k", within="2 minutes")
    latest = pairs.select(k="k", at="greatest(ts, ts_right)").order_by("at")
    text = latest.where("k > 'a'").explain()
    assert "stage 0: join#2, project#3, sort#4" in text
    assert "rows go to buckets: by k" in text
    assert "sort#4 answers in part; rows are put in order after it" in text
    assert "then: filter#5" in text
    assert "stage 1" not in text
    text = latest.distinct("at").explain()
    assert "answers in part" not in text
    assert "rows go to buckets: one bucket" in text


def test_a_source_nobody_waits_for_tells_nothing() -> None:
    assert "punctuates: nothing: no operator waits for it" in left().where("v > 0").explain()


def test_a_join_shows_its_reach_and_keys() -> None:
    text = left().join(right(), on="k", within=("2 minutes", "3 minutes"), how="left").explain()
    assert "left, ts from 2 minutes before to 3 minutes after ts, k = k" in text
    text = left().join(right(), on="k", within=lw.same("10 s")).explain()
    assert "in the same 10 s" in text
    assert "partitioned by: k" in text


def test_joint_promises_are_shown_where_they_are_told_and_used() -> None:
    pairs = left().join(right(), on="k", within="2 minutes")
    text = pairs.group_by("ts", "ts_right").agg(n="sum(v)").explain()
    assert "promises jointly: ts or ts_right" in text
    assert "answers by promises on: ts or ts_right, alone or jointly" in text
    text = pairs.distinct("ts", "ts_right").explain()
    assert "forgets by promises on: ts or ts_right, alone or jointly" in text
    text = pairs.window("1 minute", on="ts_right").agg(n="sum(v)").explain()
    assert "jointly" not in text.replace("progress: ", "")


def test_a_source_tells_what_is_behind_joins_shifts_and_buckets() -> None:
    pairs = left().join(right(), on="k", within=("2 minutes", "3 minutes"))
    text = pairs.window("10 minutes").agg(n="sum(v)").explain()
    # of the right's time a mark is useful when it lets the left's one come to a window's end
    assert "punctuates: ts every 22 s and 10 minutes" in text
    shifted = left().select("v", "k", ts="ts + 10").window("1 minute", "30 s").agg(n="sum(v)")
    assert "punctuates: ts every 30 s" in shifted.explain()


def test_a_window_of_rows_counts_rows() -> None:
    text = left().window(rows=100).agg(n="sum(v)").explain()
    assert "range 100 rows, slide 100 rows on row" in text
    assert "row numbers" in text


def test_a_shared_stream_is_shown_once() -> None:
    shared = left().where("v > 0")
    text = shared.union(shared).explain()
    assert text.count("filter#1  v > 0") == 2
    assert text.count("(shown above)") == 1
    assert text.count("source#0") == 1


def test_the_in_order_plan_sorts_disordered_sources_and_merges() -> None:
    text = left().union(right()).window("1 s").agg(n="sum(v)").explain("in-order")
    assert text.splitlines()[0] == "in-order plan"
    assert text.count("sort#") == 4  # in the tree, and in the stages below it
    assert "merge#4  2 inputs by ts" in text
    assert "union#" not in text


def test_the_in_order_plan_does_not_sort_what_is_ordered() -> None:
    frame = pl.DataFrame(schema={"ts": pl.Int64})
    one, two = lw.stream(frame, time="ts"), lw.stream(frame, time="ts")
    text = one.union(two).explain("in-order")
    assert "sort#" not in text
    assert "merge#" in text


def test_the_in_order_plan_sorts_the_output_of_a_join() -> None:
    text = left().join(right(), on="k", within="1 s").explain("in-order")
    assert text.splitlines()[1].startswith("sort#")


def test_stamped_streams_say_so() -> None:
    frame = pl.DataFrame(schema={"v": pl.Int64})
    internal = lw.stream(frame, name="i", time="ts", stamp="internal")
    assert "i: internal timestamps" in internal.explain()
    latent = lw.stream(frame, name="l", time="ts", stamp="latent").window("1 s").agg(n="sum(v)")
    assert "l: latent timestamps" in latent.explain()
    assert "stamp#1  ts" in latent.explain()


def test_an_ordered_join_says_what_the_sizes_of_its_buffers_depend_on() -> None:
    def stream(name: str, **promise: Any) -> lw.Stream:
        rows = pl.DataFrame({"ts": [1], "k": [1]})
        return lw.stream(rows, name=name, time="ts", **promise)

    slow, fast = stream("slow", progress=lw.within("5 seconds")), stream("fast")
    adaptive = slow.join(fast, on="k", within=60, order="adaptive")
    told = adaptive.explain(rates={"slow": 1, "fast": 10})
    assert "held results: those above it\n" in told
    assert "expected: 60.5 rows above that mark on average, with 5 s of slack\n" in told
    told = slow.join(fast, on="k", within=60, how="left", order="sync-filter").explain()
    assert "waiting rows: those above the least mark of slow, fast; held results" in told
    assert "less the reach of the join\n" in told
    assert "expected:" not in told
    unsure = stream("learned", progress=lw.learned(0.9))
    told = unsure.join(fast, on="k", within=60, order="sync-filter").explain(
        rates={"learned": 1, "fast": 10}
    )
    assert "expected: 5.5 rows above that mark on average, without the slack that is" in told
