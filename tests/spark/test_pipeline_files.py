"""Pipeline files on Spark: they say what they say on the embedded engine."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import lowwater as lw
from lowwater.pipeline.run import PipelineRun, RunSettings
from lowwater.pipeline.text import load_text
from tests.unit.pipeline.playing import SCHEMA, START, Kept, table, until, write
from tests.unit.running import LONG

COUNT = "SELECT k, count(*) AS n, sum(v) AS s FROM S [RANGE 10 seconds, WA ts] GROUP BY k"
MINUTES = 4 * LONG
"""Spark takes its time."""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def stream(location: str, clauses: str = "", schema: str = SCHEMA, name: str = "S") -> str:
    return f"CREATE STREAM {name} {schema} FROM '{location}' PROGRESS ORDERED BY ts {clauses};\n"


def run(text: str, engine: str, **options) -> tuple[Kept, PipelineRun]:
    kept = Kept()
    running = PipelineRun(load_text(text, engine), RunSettings(**options), kept)
    running.wait(MINUTES)
    running.stop()
    assert running.failed is None, running.failed
    return kept, running


def everything(folder: str) -> list[tuple]:
    files = [each for each in Path(folder).iterdir() if each.suffix == ".json"]
    frames = [pl.read_ndjson(each) for each in files if each.stat().st_size]
    return sorted(row for frame in frames for row in frame.select("k", "n", "s").iter_rows())


def test_files_of_every_format_and_generated_rows_give_the_same_on_both_engines(spark):
    rows = table([0, 1, 5, 12, 31, 33])
    write(rows, Path("csv/deep/a.csv"))
    write(rows.with_columns(ts=pl.col("ts").dt.to_string("iso:strict") + "+01:00"), Path("z.json"))
    berlin = rows.with_columns(pl.col("ts").dt.replace_time_zone("Europe/Berlin"))
    write(berlin.with_columns(other=1).reverse().reverse(), Path("p.parquet"))
    text = (
        stream("csv:csv", "LATE TO 'late'", "(ts TIMESTAMP, v BIGINT, k STRING)", "A")
        + stream("json:z.json", schema="(ts TIMESTAMP, v BIGINT, k STRING)", name="B")
        + stream("parquet:*.parquet", schema="(ts TIMESTAMP, v BIGINT, k STRING)", name="C")
        + "CREATE STREAM G FROM 'generate:rate=5,seconds=40,start=2024-01-01,skew=2'"
        " PROGRESS ORDERED BY ts;\n"
        "CREATE VIEW D AS SELECT ts, value AS v, 'g' AS k FROM G;\n"
        "CREATE VIEW S AS SELECT * FROM A UNION B UNION C UNION D;\n"
        f"INSERT INTO 'json:out' {COUNT}"
    )
    _, here = run(text, "embedded", output=Path("one"))
    _, there = run(text, "spark", output=Path("two"))
    assert everything("one/out") == everything("two/out")
    one, two = here.progress(), there.progress()
    assert (one.rows_in, one.rows_out) == (two.rows_in, two.rows_out)
    with pytest.raises(lw.SinkError, match="two/out already holds JSON files"):
        run(text, "spark", output=Path("two"))


def test_a_record_is_bad_on_both_engines_alike(spark):
    Path("a b.csv").write_text("k,v,ts\na,1,2024-01-01\nb,2\n")
    pl.DataFrame({"k": ["a"], "v": [1.9], "ts": [START]}).write_parquet("p.parquet")
    for location, says in (
        ("csv:a b.csv", "a b.csv: line 3, too few values: 2 for 3 columns"),
        ("parquet:p.parquet", "p.parquet: row 1, column v: 1.9 is no BIGINT"),
    ):
        for engine in ("embedded", "spark"):
            running = PipelineRun(
                load_text(stream(location) + COUNT, engine), RunSettings(), Kept()
            )
            running.wait(MINUTES)
            running.stop()
            assert running.failed is not None
            assert isinstance(running.failed[1], lw.BadInput)
            assert says in str(running.failed[1])


def test_with_a_checkpoint_open_windows_are_left_for_the_next_run(spark):
    text = stream("csv:in", "LATE TO 'late'") + COUNT
    write(table([0, 4, 12]), Path("in/1.csv"))
    first, _ = run(text, "spark", checkpoint=Path("kept"))
    write(table([14, 30, 2], 3), Path("in/2.csv"))
    second, running = run(text, "spark", checkpoint=Path("kept"))
    assert [(row["k"], row["n"], row["s"]) for row in first.rows()] == [("a", 2, 1)]
    assert [(row["k"], row["n"], row["s"]) for row in second.rows()] == [("a", 2, 5)]
    assert pl.read_parquet("late/*.parquet")["v"].to_list() == [5]
    [about] = running.progress().queries[0].streams
    assert (about.metrics.rows, about.metrics.late_rows, about.late_to) == (3, 1, "late")
    assert about.mark == START + timedelta(seconds=30)


def test_a_checkpoint_refuses_a_log_that_grew(spark):
    for seconds in (10, 20):
        text = (
            f"CREATE STREAM S FROM 'generate:rate=5,seconds={seconds},start=2024-01-01'"
            " PROGRESS WITHIN 1 SECOND ON ts; SELECT count(*) AS n FROM S [RANGE 5 seconds, WA ts]"
        )
        running = PipelineRun(
            load_text(text, "spark"), RunSettings(checkpoint=Path("kept")), Kept()
        )
        running.wait(MINUTES)
        running.stop()
        failed = running.failed
        assert (failed is None) == (seconds == 10)
    assert failed is not None
    assert isinstance(failed[1], lw.CheckpointError)
    assert "the checkpoint is of a log that has changed since: it had " in str(failed[1])


def test_a_format_of_sparks_by_name_runs_until_it_is_stopped(spark):
    text = """
        CREATE STREAM R (timestamp TIMESTAMP, value BIGINT) FROM 'rate:'
        PROGRESS ORDERED BY timestamp OPTIONS (rowsPerSecond '20');
        SELECT value, timestamp FROM R WHERE value % 2 = 0
    """
    kept = Kept()
    running = PipelineRun(load_text(text, "spark"), RunSettings(trigger="100 ms"), kept)
    try:
        until(lambda: len(kept.rows()) > 5, running)
        assert running.active
    finally:
        running.stop()
    assert running.failed is None
    assert [row["value"] for row in kept.rows()][:3] == [0, 2, 4]


def test_columns_of_a_format_need_not_be_declared(spark):
    text = "CREATE STREAM R FROM 'rate:' PROGRESS ORDERED BY timestamp; SELECT * FROM R"
    assert list(load_text(text, "spark").queries[0].plan.schema) == ["timestamp", "value"]
    with pytest.raises(lw.ExpressionError, match="nonsense"):
        load_text(text.replace("rate:", "nonsense:"), "spark")


def test_lines_of_a_socket_are_csv_or_json(spark):
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = stream(f"socket:127.0.0.1:{server.getsockname()[1]}") + "SELECT * FROM S"
        kept = Kept()
        server.settimeout(MINUTES)
        running = PipelineRun(load_text(text, "spark"), RunSettings(), kept)
        connection, _ = server.accept()
        try:
            with connection:
                connection.sendall(b'a,1,2024-01-01 00:00:01\n{"ts":"2024-01-01T00:00:02Z"}\n\n')
                until(lambda: len(kept.rows()) == 2, running)
        finally:
            running.stop()
    assert kept.rows() == [
        {"k": "a", "v": 1, "ts": START + timedelta(seconds=1)},
        {"k": None, "v": None, "ts": START + timedelta(seconds=2)},
    ]


def test_a_trigger_is_for_streams_that_go_on(spark):
    write(table([0]), Path("a.csv"))
    text = stream("csv:a.csv") + COUNT
    with pytest.raises(lw.OptionError, match="this pipeline ends by itself"):
        run(text, "spark", trigger="1 second")


def test_the_command_is_stopped_by_a_signal_in_the_middle_of_a_batch():
    text = """
        CREATE STREAM G FROM 'generate:rate=500,seconds=600,start=2024-01-01'
        PROGRESS ORDERED BY ts;
        SELECT count(*) AS n FROM G [RANGE 1 second]
    """
    Path("p.sql").write_text(text)
    command = [sys.executable, "-m", "lowwater", "run", "p.sql", "--engine", "spark", "--real-time"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as process:
        try:
            lines = [process.stdout.readline() for _ in range(3)]
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=MINUTES)
        finally:
            process.kill()
    assert process.returncode == 0, said
    assert lines[2].startswith("2024-01-01 00:00:00  2024-01-01 00:00:01")
    assert "stopped after" in said
    assert "Exception" not in said
    assert "Error" not in said


def test_queries_together_have_a_checkpoint_each_and_go_on_from_it(spark):
    rows = table([0, 1, 5, 12, 31, 33])
    stream = lw.stream(lw.replay(rows), name="S", time="ts")
    queries = lw.together(
        {
            "of a": stream.where("k = 'a'"),
            "windows": stream.window("10 seconds").group_by("k").agg(n="count(*)"),
        }
    )
    for _ in range(2):
        runs = queries.run("spark", sink={"of a": "rows"}, checkpoint="kept", session=spark)
        assert runs.await_termination(timeout=MINUTES)
    assert {each.name for each in Path("kept").iterdir()} == {"of a", "windows"}
    assert pl.read_parquet("rows/*.parquet").height == rows.filter(k="a").height
