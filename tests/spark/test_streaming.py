"""What a user of Structured Streaming relies on: batches, triggers, listeners, errors, state."""

from __future__ import annotations

import json
import os
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import lowwater as lw
from lowwater.cli import app
from lowwater.engines.spark.driver.checkpoint_view import read_checkpoint
from tests.support.batches import learned_in_batches

SCHEMA = "ts timestamp_ntz, k bigint, v double"
START, EPOCH = datetime(2024, 1, 1), datetime(1970, 1, 1)
MICROSECOND = timedelta(microseconds=1)


def write(folder: Path, number: int, seconds: list[float], k: int = 1) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(
        {
            "ts": [START + timedelta(seconds=each) for each in seconds],
            "k": [k] * len(seconds),
            "v": [float(each) for each in seconds],
        },
        schema={"ts": pl.Datetime("us"), "k": pl.Int64, "v": pl.Float64},
    )
    path = folder / f"{number:03d}.parquet"
    frame.write_parquet(path)
    os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


def read(spark, folder: Path, name: str, **options) -> lw.Stream:
    reader = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1)
    return lw.stream(reader.parquet(str(folder)), name=name, time="ts", **options)


def by_batch(frame, checkpoint: Path) -> dict[int, list[tuple]]:
    """The rows of each batch."""
    found: dict[int, list[tuple]] = {}

    def keep(rows, batch: int) -> None:
        found[batch] = sorted(tuple(row) for row in rows.collect())

    writer = frame.writeStream.foreachBatch(keep).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination()
    return found


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_a_window_is_in_the_batch_that_completed_it_also_behind_a_join(spark, tmp_path):
    for number, seconds in enumerate(([1, 30, 59], [61, 90], [125])):
        for side in ("left", "right"):
            write(tmp_path / side, number, seconds)
    left, right = (read(spark, tmp_path / side, side) for side in ("left", "right"))
    counts = left.join(right, on=["k"], within="1 second").window("1 minute").agg(n="count(*)")
    found = by_batch(counts.to_spark(spark), tmp_path / "cp")
    assert found == {0: [], 1: [(at(0), at(60), 3)], 2: [(at(60), at(120), 2)]}
    alone = read(spark, tmp_path / "left", "left").window("1 minute").agg(n="count(*)")
    found = by_batch(alone.to_spark(spark), tmp_path / "cp2")
    assert found == {0: [], 1: [(at(0), at(60), 3)], 2: [(at(60), at(120), 2)]}


def test_listeners_see_marks_and_sizes(spark, tmp_path):
    write(tmp_path / "in", 0, [1, 2, 70])
    counts = read(spark, tmp_path / "in", "s").window("1 minute").group_by("k").agg(n="count(*)")
    run = counts.run(engine="spark", session=spark, trigger="available-now")
    run.await_termination()
    reports = [
        json.loads(each)
        for progress in run.query.recentProgress
        for each in progress.observedMetrics["lowwater"]["reports"]
    ]
    assert {each["stage"] for each in reports} == {0}
    assert reports[0]["streams_shown"]["s"] == {"ts": "2024-01-01 00:01:10"}
    assert sum(each["streams"]["s"]["rows"] for each in reports) == 3
    assert run.metrics().operator("window").state_rows == 1
    assert run.metrics().stream("s").marks["ts"] == at(70)


def test_a_live_run_goes_on_as_files_come_and_stops_when_told(spark, tmp_path):
    write(tmp_path / "in", 0, [1, 2, 70])
    counts = read(spark, tmp_path / "in", "s").window("1 minute").group_by("k").agg(n="count(*)")
    run = counts.run(engine="spark", session=spark, trigger="100 milliseconds")
    run.process_all_available()
    assert run.results().num_rows == 1
    write(tmp_path / "in", 1, [130])
    run.process_all_available()
    assert run.results().num_rows == 2
    assert run.active
    run.stop()
    assert not run.active


def test_an_error_in_an_operator_names_it_and_the_users_line(spark, tmp_path):
    write(tmp_path / "in", 0, [1, 2, 70])

    def broken(rows: pl.DataFrame) -> pl.DataFrame:
        raise ValueError("no such sensor")

    q = read(spark, tmp_path / "in", "s").apply(broken).window("1 minute").agg(n="count(*)")
    with pytest.raises(lw.OperatorError, match=r"(?s)apply#1 broken.*no such sensor") as caught:
        q.collect(engine="spark", session=spark)
    assert "test_streaming.py" in str(caught.value)
    assert "at org.apache" not in str(caught.value)


def test_a_broken_promise_fails_with_channel_time_and_mark(spark, tmp_path):
    write(tmp_path / "in", 0, [100, 200], k=7)
    write(tmp_path / "in", 1, [150], k=7)
    s = read(spark, tmp_path / "in", "s", channel="k", late="fail")
    with pytest.raises(lw.BrokenPromise) as caught:
        s.window("1 minute").agg(n="count(*)").collect(engine="spark", session=spark)
    assert (caught.value.channel, caught.value.time, caught.value.mark) == (7, at(150), at(200))


def test_a_run_goes_on_from_its_checkpoint_if_the_plan_can_read_it(spark, tmp_path):
    folder, checkpoint, out = tmp_path / "in", tmp_path / "cp", tmp_path / "out"
    options = {
        "engine": "spark",
        "session": spark,
        "sink": out,
        "checkpoint": checkpoint,
        "trigger": "available-now",
    }

    def counted(predicate: str, length: str = "1 minute") -> lw.Stream:
        return read(spark, folder, "s").where(predicate).window(length).agg(n="count(*)")

    write(folder, 0, [1, 30])
    counted("v >= 0").run(**options).await_termination()
    write(folder, 1, [59, 61])
    counted("v >= 0 AND k = 1").run(**options).await_termination()  # another filter, the same state
    rows = [tuple(row) for row in spark.read.parquet(str(out)).collect()]
    assert rows == [(at(0), at(60), 3)]
    write(folder, 2, [200])
    with pytest.raises(lw.CheckpointError, match=r"(?s)was: .*1 minute.*is: .*5 minutes"):
        counted("v >= 0", "5 minutes").run(**options).await_termination()
    with pytest.raises(lw.CheckpointError, match=r"was: 2 buckets\n.*is: .*3 buckets"):
        counted("v >= 0").run(**options, buckets=3).await_termination()


def test_a_checkpoint_can_be_looked_into(spark, tmp_path):
    write(tmp_path / "in", 0, [1, 2, 70])
    counts = read(spark, tmp_path / "in", "s").window("1 minute").group_by("k").agg(n="count(*)")
    counts.run(
        engine="spark", session=spark, checkpoint=tmp_path / "cp", trigger="available-now"
    ).await_termination()
    held = read_checkpoint(tmp_path / "cp", spark)
    assert {each.what for each in held} == {"stream s", "window#1"}
    assert sum(each.rows for each in held if each.what == "window#1") == 1
    assert {each.rows for each in held if each.what == "stream s"} == {None}
    assert {each.marks for each in held if each.what == "stream s"} == {"ts 2024-01-01 00:01:10"}
    shown = CliRunner().invoke(app, ["checkpoint", str(tmp_path / "cp")])
    assert shown.exit_code == 0
    assert "window#1" in shown.output
    wrong = CliRunner().invoke(app, ["checkpoint", str(tmp_path / "nowhere")])
    assert wrong.exit_code == 2


def test_a_silent_source_does_not_stall_the_others(spark, tmp_path):
    write(tmp_path / "busy", 0, [1, 2])
    write(tmp_path / "silent", 0, [1.5])
    idle = lw.on_demand(skew="0 seconds")
    busy = read(spark, tmp_path / "busy", "busy")
    silent = read(spark, tmp_path / "silent", "silent", idle=idle)
    counts = busy.union(silent).window("1 second").agg(n="count(*)")
    run = counts.run(engine="spark", session=spark, trigger="50 milliseconds")
    run.process_all_available()
    write(tmp_path / "busy", 1, [3, 4])
    limit = time.monotonic() + 60
    while run.results().num_rows < 3 and time.monotonic() < limit:
        time.sleep(0.2)  # the silent source promises that time passes there too
    rows = run.results().to_pylist()
    run.stop()
    metrics = run.metrics()
    assert metrics.stream("silent").enabling_timestamps > 0
    assert metrics.stream("busy").enabling_timestamps == 0
    assert metrics.operator("window").idle_share > 0
    assert sorted((each["window_start"], each["n"]) for each in rows) == [
        (at(1), 2),
        (at(2), 1),
        (at(3), 1),
    ]


def test_a_source_that_never_sent_a_row_is_bounded_by_the_clock(spark, tmp_path):
    (tmp_path / "silent").mkdir()
    now = (datetime.now(UTC).replace(tzinfo=None) - START).total_seconds() // 60 * 60
    write(tmp_path / "busy", 0, [now - 170, now - 110, now - 50])
    busy = read(spark, tmp_path / "busy", "busy")
    idle = lw.on_demand(behind_clock="30 seconds")
    silent = read(spark, tmp_path / "silent", "silent", idle=idle)
    counts = busy.union(silent).window("1 minute").agg(n="count(*)")
    run = counts.run(engine="spark", session=spark, trigger="50 milliseconds")
    run.process_all_available()
    limit = time.monotonic() + 60
    while run.results().num_rows < 2 and time.monotonic() < limit:
        time.sleep(0.2)
    rows = run.results().to_pylist()
    run.stop()
    assert [(each["window_start"], each["n"]) for each in rows] == [
        (at(now - 180), 1),
        (at(now - 120), 1),
    ]
    assert run.metrics().stream("silent").enabling_timestamps > 0


def test_a_window_over_a_silent_latent_stream_closes_by_the_clock(spark, tmp_path):
    write(tmp_path / "silent", 0, [1, 2, 3])
    source = spark.readStream.schema("ts timestamp_ntz, k bigint, v bigint")
    frame = source.parquet(str(tmp_path / "silent")).select("k")
    silent = lw.stream(frame, name="s", time="seen", stamp="latent", idle=lw.on_demand())
    counted = silent.window("1 second").agg(n="count(*)")
    run = counted.run(engine="spark", session=spark, trigger="50 milliseconds")
    run.process_all_available()
    limit = time.monotonic() + 60
    while not run.results().num_rows and time.monotonic() < limit:
        time.sleep(0.2)  # no row comes; the clock passes the window
    found = run.results().to_pylist()
    run.stop()
    assert [each["n"] for each in found] == [3]
    assert run.metrics().stream("s").enabling_timestamps > 0


def test_columns_nobody_reads_are_not_read(spark, tmp_path):
    write(tmp_path / "in", 0, [1, 2, 70])
    counts = read(spark, tmp_path / "in", "s").where("v > 1").window("1 minute").agg(n="count(*)")
    plan = counts.to_spark(spark)._jdf.queryExecution().analyzed().toString()
    assert "(cast(v" in plan or "v#" in plan
    assert "k#" not in plan.split("MapInArrow SourceStage")[1].split("\n")[0]


def test_what_cannot_run_on_spark_says_so(spark):
    live = lw.stream(lw.push({"ts": pl.Int64}), name="live", time="ts")
    with pytest.raises(lw.OptionError, match=r"lw\.push feeds this process only"):
        live.collect(engine="spark", session=spark)
    played = lw.stream(
        pl.DataFrame({"ts": [1]}), name="log", time="ts", idle=lw.on_demand(behind_clock="1 s")
    )
    with pytest.raises(lw.OptionError, match="a log that is played by the clock has arrival times"):
        played.run(engine="spark", session=spark, clock="wall")
    table = pl.DataFrame({"ts": [1]})
    log = lw.stream(table, name="log", time="ts")
    with pytest.raises(lw.OptionError, match="buckets is a whole number"):
        log.collect(engine="spark", session=spark, buckets=0)
    with pytest.raises(lw.OptionError, match="trigger= is a length of time"):
        log.run(engine="spark", session=spark, trigger="now and then")
    with pytest.raises(lw.OptionError, match="checkpoint= is for engine"):
        log.run(checkpoint="cp")
    with pytest.raises(lw.OptionError, match="not streaming"):
        lw.stream(spark.range(3), name="batch", time="id")
    frame = spark.readStream.format("rate").load()
    with pytest.raises(lw.OptionError, match='engine="spark"'):
        lw.stream(frame, name="rate", time="timestamp").select("timestamp").collect()


def test_a_learned_promise_goes_from_batch_to_batch_and_tells_how_complete_it_is(spark, tmp_path):
    """Each file goes ten seconds further; the last row of each is behind, every third time far."""
    contract = lw.learned(0.9)
    files = [
        [*(10 * file + step / 4 for step in range(40)), 10 * file - (9 if file % 3 == 2 else 1)]
        for file in range(7)
    ]
    for number, seconds in enumerate(files):
        write(tmp_path / "in", number, seconds)
    query = read(spark, tmp_path / "in", "s", progress=contract, jump=None)
    counts = query.window("1 second").agg(n="count(*)")
    run = counts.run(engine="spark", session=spark, trigger="available-now", buckets=2)
    run.await_termination()
    rows = [(round((at(each) - EPOCH) / MICROSECOND), "", None) for file in files for each in file]
    kept = learned_in_batches(rows, [41] * 7, contract, keyed=False)
    late = run.late_rows()
    refused = [time for (time, _, _), on_time in zip(rows, kept, strict=True) if not on_time]
    assert refused
    assert sorted(round((t - EPOCH) / MICROSECOND) for t in late["ts"].to_pylist()) == refused
    metrics = run.metrics().stream("s")
    (told,) = metrics.completeness
    assert (told.rows, told.late_rows, told.target) == (7 * 41, len(refused), 0.9)
    assert told.slack_seconds is not None
    assert metrics.marks["ts"] == at(69.75 - told.slack_seconds)
    assert counts.corrections(late)["n"].to_pylist() == [1] * len(refused)


def test_a_channel_set_aside_stays_aside_after_a_restart(spark, tmp_path):
    def sent(number: int, seconds: list[float]) -> None:
        for k in (1, 2, 3):
            write(tmp_path / "parts", k, seconds, k)
        write(tmp_path / "parts", 9, [each - 3 * 365 * 86_400 for each in seconds], 9)
        parts = [pl.read_parquet(tmp_path / f"parts/{k:03d}.parquet") for k in (1, 2, 3, 9)]
        write(tmp_path / "in", number, [])
        pl.concat(parts).write_parquet(tmp_path / "in" / f"{number:03d}.parquet")
        os.utime(tmp_path / "in" / f"{number:03d}.parquet", (1_700_000_000 + number,) * 2)

    sent(0, [1, 9])
    stream = read(
        spark, tmp_path / "in", "s", channel="k", channels=(1, 2, 3, 9), stale_after="1 minute"
    )
    counts = stream.window("10 seconds").agg(n="count(*)").to_spark(spark)
    sent(1, [11, 19])
    first = by_batch(counts, tmp_path / "cp")
    sent(2, [21, 29])
    then = by_batch(counts, tmp_path / "cp")
    assert by_batch(counts, tmp_path / "at once") == first | then
    fresh = {n: [row for row in rows if row[0] >= START] for n, rows in (first | then).items()}
    assert fresh[1] == [(at(0), at(10), 6)]
    assert fresh[2] == [(at(10), at(20), 6)]  # by what is late: channel 9 is not waited for
