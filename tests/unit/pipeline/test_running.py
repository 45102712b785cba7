"""Pipelines at work on the embedded engine: every format both ways, growing, live, late."""

from __future__ import annotations

import json
import socket
import threading
from datetime import timedelta
from pathlib import Path

import polars as pl
import pytest

import lowwater as lw
from lowwater.pipeline.run import PipelineRun, RunSettings
from lowwater.pipeline.targets import Writing, late_folders, targets
from lowwater.pipeline.text import load_text
from tests.unit.pipeline.playing import SCHEMA, START, Kept, answers, playing, table, until, write

FORMATS = ("parquet", "csv", "json")
SECONDS = [0, 1, 5, 12, 31, 33]
COUNT = "SELECT count(*) AS n FROM S [RANGE 10 seconds, WA ts]"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def stream(location: str, clauses: str = "", schema: str = SCHEMA, name: str = "S") -> str:
    return f"CREATE STREAM {name} {schema} FROM '{location}' PROGRESS ORDERED BY ts {clauses};\n"


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("schema", [SCHEMA, ""], ids=["declared", "found"])
def test_files_are_read_in_every_format_with_or_without_declared_columns(kind, schema):
    write(table(SECONDS), Path(f"in/a.{kind}"))
    text = stream(f"{kind}:in", schema=schema) + "SELECT * FROM S"
    assert answers(text).rows() == table(SECONDS).to_dicts()


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_in_a_format_is_read_in_it(kind):
    write(table(SECONDS), Path("in.parquet"))
    first = stream("parquet:in.parquet") + f"INSERT INTO '{kind}:out/' SELECT * FROM S"
    answers(first)
    assert [each.suffix for each in Path("out").iterdir()] == [f".{kind}"]
    again = stream(f"{kind}:out") + "SELECT * FROM S"
    assert answers(again).rows() == table(SECONDS).to_dicts()


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_a_folder_of_no_answers_can_be_read(kind):
    write(table(SECONDS), Path("a.csv"))
    answers(stream("csv:a.csv") + f"INSERT INTO '{kind}:out' SELECT * FROM S WHERE v > 99")
    assert answers(stream(f"{kind}:out") + "SELECT * FROM S").rows() == []


@pytest.mark.parametrize("path", ["in/a.csv", "in", "in/*.csv", "in/**/*.csv"])
def test_a_place_is_a_file_a_folder_or_a_pattern(path):
    write(table([0, 1]), Path("in/a.csv"))
    (Path("in") / "_hidden").mkdir()
    (Path("in") / "_hidden" / "x.csv").write_text("nonsense")
    assert len(answers(stream(f"csv:{path}") + "SELECT * FROM S").rows()) == 2


def test_files_of_a_folder_are_read_by_name():
    write(table([5, 6], 2), Path("in/10.csv"))
    write(table([0, 1]), Path("in/2.csv"))
    assert [row["v"] for row in answers(stream("csv:in") + "SELECT v, ts FROM S").rows()] == [
        *range(4)
    ]


def test_csv_may_have_no_header_and_another_separator():
    Path("x.csv").write_text("a;1;2024-01-01 00:00:05Z\nb;;2024-01-01T00:00:06Z\n")
    text = stream("csv:x.csv", "OPTIONS (header 'false', sep ';')") + "SELECT * FROM S"
    assert [tuple(row.values())[:2] for row in answers(text).rows()] == [("a", 1), ("b", None)]


def test_declared_columns_may_be_fewer_and_in_another_order():
    write(table(SECONDS), Path("a.csv"))
    rows = answers(stream("csv:a.csv", schema="(ts TIMESTAMP, v INT)") + "SELECT * FROM S").rows()
    assert rows == table(SECONDS).select("ts", "v").to_dicts()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("k,w,ts\n", "unknown column 'v'. .*Known: k, ts, w"),
        ("k,v,ts\na,one,2024-01-01\n", "cannot read a.csv: line 2, column v: 'one' is no BIGINT"),
    ],
)
def test_a_file_that_is_not_as_declared_ends_the_run(content, message):
    Path("a.csv").write_text(content)
    with pytest.raises(lw.BadInput, match=message):
        answers(stream("csv:a.csv") + "SELECT * FROM S")


def test_no_files_are_wrong_use_and_nothing_is_started():
    with pytest.raises(lw.QueryError, match="there are no files at nowhere"):
        answers(stream("csv:nowhere") + "SELECT * FROM S")


def test_an_empty_file_has_no_rows():
    Path("in").mkdir()
    Path("in/a.csv").write_text("")
    write(table([3]), Path("in/b.csv"))
    assert len(answers(stream("csv:in") + "SELECT * FROM S").rows()) == 1


def test_a_growing_folder_is_read_until_the_run_is_stopped():
    text = stream("parquet:in", "FOLLOW") + COUNT
    with playing(text) as (running, kept):
        write(table([0, 1, 11]), Path("in/2.parquet"))
        until(lambda: len(kept.rows()) == 1, running)
        write(table([12, 25]), Path("in/1.parquet"))
        until(lambda: len(kept.rows()) == 2, running)
        assert running.active
        progress = running.progress()
    assert [row["n"] for row in kept.rows()] == [2, 2]
    assert progress.queries[0].streams[0].mark == START + timedelta(seconds=25)
    assert progress.queries[0].active


def test_answers_of_a_growing_folder_are_written_while_it_grows():
    text = stream("csv:in", "FOLLOW") + f"INSERT INTO 'parquet:out' {COUNT}"
    with playing(text, RunSettings(writing=Writing(flush_every=0))) as (running, _):
        write(table([0, 11]), Path("in/1.csv"))
        until(lambda: list(Path("out").glob("*.parquet")), running)
        assert running.active
    assert pl.read_parquet("out/*.parquet")["n"].to_list() == [1]


def test_lines_of_a_socket_are_csv_or_json_until_it_is_closed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = stream(f"socket:127.0.0.1:{server.getsockname()[1]}") + COUNT
        with playing(text) as (running, kept):
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"a,1,2024-01-01 00:00:01\n\nb,2,2024-01-01 00:0")
                connection.sendall(b'0:12\n{"ts": "2024-01-01T00:00:13", "v": 5}\n')
                until(kept.rows, running)
                assert running.active
                connection.sendall(b"c,3,2024-01-01 00:00:25\n")
            until(lambda: not running.active, running)
    assert [row["n"] for row in kept.rows()] == [1, 2, 1]


def test_a_line_that_is_no_row_is_shown():
    with socket.create_server(("127.0.0.1", 0)) as server:
        text = stream(f"socket:127.0.0.1:{server.getsockname()[1]}") + COUNT

        def send() -> None:
            connection, _ = server.accept()
            with connection:
                connection.sendall(b"a,1,2024-01-01 00:00:01\na,one,2024-01-01 00:00:02\n")

        sender = threading.Thread(target=send)
        sender.start()
        with pytest.raises(lw.BadInput, match="line 'a,one,2024-01-01 00:00:02': column v: "):
            answers(text)
        sender.join()


def test_a_socket_where_nobody_listens_is_said():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(lw.StreamError, match=f"cannot connect to 127.0.0.1:{port}: "):
        answers(stream(f"socket:127.0.0.1:{port}") + COUNT)


def test_late_rows_go_to_the_folder_of_their_stream():
    write(table([5, 1, 9, 2]), Path("a.csv"))
    write(table([5, 6]), Path("b.csv"))
    text = (
        stream("csv:a.csv", "LATE TO 'late/a'", name="A")
        + stream("csv:b.csv", "LATE TO 'parquet:late/b'", name="B")
        + "SELECT * FROM A UNION B"
    )
    kept = answers(text)
    assert len(kept.rows()) == 4
    late = pl.read_parquet("late/a/*.parquet")
    assert late["v"].to_list() == [1, 3]
    assert late["_stream"].to_list() == ["A", "A"]
    assert not list(Path("late/b").iterdir())


def test_late_rows_of_a_stream_without_a_folder_are_counted_only():
    write(table([5, 1]), Path("a.csv"))
    with playing(stream("csv:a.csv") + "SELECT * FROM S") as (running, _):
        until(lambda: not running.active, running)
        progress = running.progress().queries[0].streams[0]
    metrics = progress.metrics
    assert (metrics.rows, metrics.late_rows, progress.late_to) == (2, 1, None)
    assert metrics.longest_late_seconds == 4


def test_queries_run_at_the_same_time_and_views_are_shared():
    write(table(SECONDS), Path("a.csv"))
    text = (
        stream("csv:a.csv", "LATE TO 'late'")
        + "CREATE VIEW V AS SELECT ts, v FROM S WHERE v >= :least;\n"
        + "SELECT v FROM V; -- the first\n"
        + "SELECT count(*) AS n FROM V [RANGE 1 minute];"
    )
    kept = answers(text, least=2)
    assert [row["v"] for row in kept.rows(1)] == [2, 3, 4, 5]
    assert [row["n"] for row in kept.rows(2)] == [4]
    assert sorted(each.name for each in Path("late").iterdir()) == ["query1", "query2"]


def test_one_query_that_fails_ends_the_others():
    write(table([0, 1]), Path("a.csv"))
    Path("b.csv").write_text("k,v,ts\na,one,2024-01-01\n")
    text = (
        stream("csv:in", "FOLLOW", name="A") + stream("csv:b.csv", name="B") + "SELECT * FROM A;"
        "SELECT * FROM B"
    )
    running = PipelineRun(load_text(text), RunSettings(), Kept())
    until(lambda: running.wait(0.1))
    running.stop()
    assert not running.active
    assert running.failed is not None
    assert running.failed[0].number == 2


def paths(text: str, output: str | None = None) -> list[str]:
    return [str(each) for each in targets(load_text(text), output and Path(output)).values()]


def test_targets_are_under_the_output_folder_if_there_is_one():
    head = stream("csv:x")
    one = head + "SELECT * FROM S"
    assert paths(one) == ["console"]
    assert paths(one, "o") == ["parquet:o"]
    assert paths(f"{one}; {COUNT}", "o") == ["parquet:o/query1", "parquet:o/query2"]
    mixed = f"{one}; INSERT INTO 'csv:a/b' {COUNT}; INSERT INTO 'JSON:/abs' {COUNT}"
    assert paths(mixed) == ["console", "csv:a/b", "json:/abs"]
    assert paths(mixed, "o") == ["parquet:o", "csv:o/a/b", "json:/abs"]
    assert paths(f"{head} INSERT INTO 'console:' {COUNT}", "o") == ["console"]


def test_late_folders_are_under_the_output_folder_and_apart_from_each_other():
    text = (
        stream("csv:x", "LATE TO 'late'", name="A")
        + stream("csv:y", "LATE TO 'late'", name="B")
        + "SELECT * FROM A; SELECT * FROM A UNION B"
    )
    found = late_folders(load_text(text), Path("o"))
    assert {str(folder.path) for each in found.values() for folder in each.values()} == {
        "o/late/A/query1",
        "o/late/A/query2",
        "o/late/B",
    }


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("out", "a location is 'format:path', for example 'parquet:out'"),
        ("orc:out", "unknown format of results 'orc'"),
        ("csv:", "say where results go"),
    ],
)
def test_a_wrong_target_is_underlined(target, message):
    text = stream("csv:x") + f"INSERT INTO '{target}'\n{COUNT}"
    with pytest.raises(lw.ExpressionError, match=message) as caught:
        paths(text)
    assert (caught.value.line, caught.value.column) == (2, 13)


def test_a_wrong_target_is_underlined_where_it_is_and_not_in_a_comment():
    insert = f"INSERT INTO 'orc:out' {COUNT}"
    with pytest.raises(lw.ExpressionError, match="unknown format") as caught:
        paths(stream("csv:x") + f"-- {insert}\n{insert}")
    assert (caught.value.line, caught.value.column) == (3, 13)


def test_two_queries_for_one_folder_are_refused():
    with pytest.raises(lw.OptionError, match="out is given 2 times"):
        paths(stream("csv:x") + f"INSERT INTO 'csv:out' {COUNT}; INSERT INTO 'json:out' {COUNT}")
    with pytest.raises(lw.OptionError, match="late is given 2 times"):
        paths(stream("csv:x", "LATE TO 'late'") + f"INSERT INTO 'csv:late' {COUNT}")


@pytest.mark.parametrize("kind", FORMATS)
def test_a_folder_that_holds_results_is_refused_before_anything_runs(kind):
    write(table([0]), Path("a.csv"))
    text = stream("csv:a.csv") + f"INSERT INTO '{kind}:out' SELECT * FROM S"
    answers(text)
    with pytest.raises(lw.SinkError, match=r"out already holds .* files; give an empty folder"):
        answers(text)


def test_options_of_spark_are_refused_elsewhere():
    write(table([0]), Path("a.csv"))
    for options in (RunSettings(checkpoint=Path("c")), RunSettings(trigger="1 second")):
        with pytest.raises(lw.OptionError, match="is for --engine spark"):
            answers(stream("csv:a.csv") + COUNT, options)


def test_a_generated_stream_plays_at_once_or_in_real_time():
    location = "generate:rate=20,seconds=0.5,process=regular"
    text = stream(location, schema="(ts TIMESTAMP)") + "SELECT count(*) AS n FROM S [RANGE 1 min]"
    for options in (RunSettings(), RunSettings(real_time=True)):
        assert [row["n"] for row in answers(text, options).rows()] == [9]


def test_progress_is_told_as_json():
    write(table(SECONDS), Path("a.csv"))
    with playing(stream("csv:a.csv") + COUNT) as (running, _):
        until(lambda: not running.active, running)
        told = json.loads(json.dumps(running.progress().as_json()))
    assert (told["rows_in"], told["rows_out"], told["late_rows"]) == (6, 3, 0)
    [query] = told["queries"]
    assert (query["state_rows"], query["active"], query["target"]) == (0, False, "console")
    assert query["streams"][0]["mark"] == "2024-01-01T00:00:33"


def test_lag_is_behind_the_newest_stream_if_streams_do_not_go_by_the_clock():
    write(table([0, 5]), Path("a.csv"))
    write(table([0, 65]), Path("b.csv"))
    text = stream("csv:a.csv", name="A") + stream("csv:b.csv", name="B") + "SELECT * FROM A UNION B"
    with playing(text) as (running, _):
        until(lambda: not running.active, running)
        lags = {
            each.metrics.name: each.lag_seconds for each in running.progress().queries[0].streams
        }
    assert lags == {"A": 60.0, "B": 0.0}


def test_queries_over_one_update_stream_share_its_queue():
    text = """
        CREATE STREAM S FROM 'generate:rate=5,seconds=8,start=2024-01-01' PROGRESS ORDERED BY ts
        UPDATE KEY key;
        SELECT ts, key FROM S;
        SELECT ts, key FROM S WHERE value >= 0;
        SELECT key, count(*) AS n FROM S [RANGE 2 seconds, WA ts] GROUP BY key
    """
    pipeline = load_text(text)
    assert [each.names for each in pipeline.shared] == [("1", "2")]
    kept = answers(text)
    assert kept.rows(1) == kept.rows(2)
    assert len(kept.rows(1)) > 10
    assert load_text(text, "spark").shared == ()
