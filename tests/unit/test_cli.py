"""The command: what people type, what they see, and how it ends."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import lowwater
from lowwater.cli import app
from lowwater.cli.progress import ProgressLines, picture, plain_line
from lowwater.cli.screen import cell_text, fit_widths
from lowwater.metrics import CompletenessMetrics, RunMetrics, StreamMetrics
from lowwater.metrics.words import length, moment, size
from lowwater.pipeline.progress import PipelineProgress, QueryProgress, StreamProgress
from lowwater.pipeline.run import PipelineRun
from lowwater.plan.sql.dialect import STREAM_CLAUSES
from tests.unit.pipeline.playing import SCHEMA, START, table, until, write
from tests.unit.running import LONG

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
COMMAND = [sys.executable, "-W", "error", "-m", "lowwater"]
STREAM = f"CREATE STREAM S {SCHEMA} FROM 'csv:a.csv' PROGRESS ORDERED BY ts"
GROWING = f"CREATE STREAM S {SCHEMA} FROM 'csv:in' PROGRESS ORDERED BY ts FOLLOW"
ALL = "SELECT k, v FROM S"
COUNT = "SELECT k, count(*) AS n FROM S [RANGE 10 seconds, WA ts] GROUP BY k"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(table([0, 1, 11, 3, 25]), Path("a.csv"))


def pipeline(*statements: str) -> str:
    Path("p.sql").write_text(";\n".join(statements), encoding="utf-8")
    return "p.sql"


def lw(*arguments: str, code: int = 0):
    """What a command prints."""
    done = CliRunner().invoke(app, list(arguments))
    assert done.exit_code == code, done.output
    return done


# ---- run ---------------------------------------------------------------------------------------


def test_a_bare_query_prints_a_table_and_a_summary_beside_it():
    done = lw("run", pipeline(STREAM, COUNT))
    assert done.stdout.splitlines() == [
        "window_start         window_end           k  n",
        "───────────────────  ───────────────────  ─  ─",
        "2024-01-01 00:00:00  2024-01-01 00:00:10  a  1",
        "2024-01-01 00:00:00  2024-01-01 00:00:10  b  1",
        "2024-01-01 00:00:10  2024-01-01 00:00:20  b  1",
        "2024-01-01 00:00:20  2024-01-01 00:00:30  b  1",
    ]
    assert re.search(r"done after .* s: 5 rows in, 4 out, 1 late", done.stderr)
    assert "S: 1 late by up to 8 s, not kept; LATE TO 'folder/' would" in done.stderr


def test_a_learned_promise_shows_how_complete_the_stream_is_and_others_show_nothing():
    write(table([*range(40), 20, *range(40, 60)]), Path("a.csv"))
    learned = STREAM.replace("PROGRESS ORDERED BY ts", "PROGRESS LEARNED 90 % ON ts")
    done = lw("run", pipeline(learned, COUNT))
    assert re.search(r"S: complete 98\.36 % of 90 %, slack 0 s, 98\.\d+ % expected", done.stderr)
    last = json.loads(lw("run", pipeline(learned, COUNT), "--json").stdout.splitlines()[-1])
    (stream,) = last["queries"][0]["streams"]
    told = stream["completeness"]
    assert (told["target"], told["achieved"], told["slack_seconds"]) == (0.9, 0.983607, 0.0)
    assert 0.95 < told["expected"] < 1
    assert "complete" not in lw("run", pipeline(STREAM, COUNT)).stderr
    last = json.loads(lw("run", pipeline(STREAM, COUNT), "--json").stdout.splitlines()[-1])
    assert "completeness" not in last["queries"][0]["streams"][0]


def test_the_picture_of_a_run_has_a_column_for_learned_streams_only():
    told = CompletenessMetrics("ts", None, 1_000, 3, 0.999, 0.99951, 0.998, 2.5)
    log = lowwater.stream(pl.DataFrame({"ts": [1]}), name="S", time="ts")
    spec = log.node.spec
    for complete in (None, told):
        lines = (complete,) if complete else ()
        found = StreamMetrics("S", 1_000, 3, (), {"ts": 60}, None, 0, 0, 0, 0, lines)
        metrics = RunMetrics(9, 1.0, (), (found,), 0, 0, 0, 0)
        stream = StreamProgress(found, spec, None)
        query = QueryProgress(1, 1, "console", True, metrics, (stream,))
        progress = PipelineProgress(1.0, (query,))
        drawn = picture(progress, "p.sql", 10.0)
        assert len(drawn.columns) == (6 if complete is None else 7)
        line = plain_line(progress, 10.0)
        shown = "S at 60, complete 99.7 % of 99.9 %, slack 2.5 s" if complete else "S at 60"
        assert line.endswith(shown)


def test_quiet_shows_results_only():
    done = lw("run", pipeline(STREAM, ALL), "--quiet")
    assert done.stdout.splitlines()[2:] == ["a  0", "b  1", "b  2", "b  4"]
    assert done.stderr == ""


def test_the_pipeline_may_come_from_the_input():
    done = CliRunner().invoke(app, ["run", "-", "-q"], input=f"\ufeff{STREAM};{ALL}")
    assert len(done.stdout.splitlines()) == 6
    wrong = CliRunner().invoke(app, ["run", "-"], input=f"{STREAM};SELECT w FROM S")
    assert wrong.stderr.startswith("error in the input: unknown column 'w'")


def test_several_queries_say_which_rows_are_whose():
    text = lw("run", pipeline(STREAM, ALL, COUNT)).stdout
    assert "query 1, line 2" in text
    assert "query 2, line 3" in text


def test_json_gives_an_object_a_line_and_nothing_else():
    done = lw("run", pipeline(STREAM, ALL), "--json")
    first, *_, last = [json.loads(line) for line in done.stdout.splitlines()]
    assert first == {"event": "row", "query": 1, "row": {"k": "a", "v": 0}}
    assert done.stderr == ""
    assert (last["event"], last["rows_in"], last["rows_out"]) == ("done", 5, 4)
    assert last["queries"][0]["streams"][0]["late_rows"] == 1


def test_what_json_has_no_number_for_is_a_text():
    Path("a.csv").write_text("v,w,ts\nnan,1,2024-01-01\ninf,2,2024-01-01\n-inf,3,2024-01-01\n")
    stream = "CREATE STREAM S (v DOUBLE, w DOUBLE, ts TIMESTAMP) FROM 'csv:a.csv'"
    lists = "SELECT collect(v) AS vs FROM S [RANGE 1 minute]"
    done = lw("run", pipeline(stream, "SELECT v, w FROM S", lists), "--json")
    told = [json.loads(line, parse_constant=pytest.fail) for line in done.stdout.splitlines()]
    rows = {number: [] for number in (1, 2)}
    for each in told:
        if each["event"] == "row":
            rows[each["query"]].append(each["row"])
    assert rows[1] == [
        {"v": "NaN", "w": 1.0},
        {"v": "Infinity", "w": 2.0},
        {"v": "-Infinity", "w": 3.0},
    ]
    assert sorted(rows[2][0]["vs"]) == ["-Infinity", "Infinity", "NaN"]


def test_nothing_and_an_empty_text_look_different():
    Path("a.csv").write_text('k,v,ts\n"",,2024-01-01\n,1,2024-01-01\n')
    done = lw("run", pipeline(STREAM, "SELECT v, k FROM S"), "-q")
    assert done.stdout.splitlines() == [
        "   v  k",
        "────  ────",
        "null",
        "   1  null",
    ]


def test_results_go_to_the_output_folder():
    late = f"{STREAM} LATE TO 'late'"
    done = lw("run", pipeline(late, ALL, f"INSERT INTO 'json:all' {ALL}"), "--output", "o")
    assert done.stdout == ""
    assert pl.read_parquet("o/*.parquet")["v"].to_list() == [0, 1, 2, 4]
    assert pl.read_ndjson("o/all/part-00000.json")["v"].to_list() == [0, 1, 2, 4]
    assert pl.read_parquet("o/late/query1/*.parquet")["v"].to_list() == [3]
    assert "query 2 → json:o/all: 5 rows in, 4 out" in done.stderr
    assert "S (query 1): 1 late by up to 8 s, kept in o/late/query1" in done.stderr


def test_names_that_look_like_pictures_stay_names():
    assert (
        "parquet:o: 5 rows in"
        in lw("run", pipeline(STREAM, f"INSERT INTO 'parquet:o' {ALL}")).stderr
    )


@pytest.mark.parametrize(
    ("given", "rows"), [("2", 2), ("1.5", 2), ("11", 0)], ids=["whole", "broken", "many"]
)
def test_parameters_that_are_numbers_become_numbers(given, rows):
    text = pipeline(STREAM, f"{ALL} WHERE v >= :least")
    assert len(lw("run", text, "-q", "--param", f"least={given}").stdout.splitlines()[2:]) == rows


def test_other_parameters_are_texts():
    text = pipeline(STREAM, f"{ALL} WHERE k = :k AND v < :most")
    done = lw("run", text, "-q", "--param", "k=a", "--param", ":most=9")
    assert done.stdout.splitlines()[2:] == ["a  0"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [("7", ["a"]), ("'007'", ["b"]), ("'7'", ["a"]), ("'it''s'", ["c"]), ("''", [])],
)
def test_parameters_in_quotes_are_texts(given, kept):
    Path("a.csv").write_text(
        "k,v,h,ts\na,0,7,2024-01-01\nb,0,007,2024-01-01\nc,0,it's,2024-01-01\n"
    )
    stream = "CREATE STREAM S (k STRING, h STRING, ts TIMESTAMP) FROM 'csv:a.csv'"
    text = pipeline(stream, "SELECT k FROM S WHERE h = CAST(:h AS STRING)")
    done = lw("run", text, "-q", "--param", f"h={given}")
    assert done.stdout.splitlines()[2:] == kept


# ---- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["run", "check", "explain"])
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("SELECT w FROM S", ["unknown column 'w'", "at line 2, column 8:", "  SELECT w FROM S"]),
        ("SELEC v FROM S", ["Did you mean SELECT?", "at line 2, column 1:"]),
        ("SELECT v FROM T", ["unknown stream 'T'. ", "Known: S."]),
        (
            "SELECT v FROM S WHERE v > :n",
            ["unknown parameter ':n'", "--param n=VALUE", "column 27:"],
        ),
        ("SELECT count(*) FROM S", ["at line 2"]),
    ],
)
def test_a_wrong_query_is_underlined_and_is_wrong_use(command, query, message):
    done = lw(command, pipeline(STREAM, query), code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("error in p.sql: ")
    assert all(each in done.stderr for each in message), done.stderr
    assert done.stderr.splitlines()[-1].strip("^ ") == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope.sql"], "cannot read nope.sql: No such file or directory"),
        (["p.sql", "--engine", "flink"], "an engine is embedded or spark, not 'flink'"),
        (["p.sql", "--param", "n"], "--param takes name=value, for example --param n=30, not 'n'"),
        (["p.sql", "--param", "n=1", "--param", "n=2"], "--param n is given twice"),
        (["p.sql", "--param", "n=1"], "error: unknown parameter ':n'"),
        (
            ["p.sql", "--param", "n='a'b'"],
            "a quote inside a text is written twice, not as in 'a'b'",
        ),
        (["p.sql", "--master", "local"], "--master is for --engine spark"),
        (["p.sql", "--checkpoint", "c"], "--checkpoint is for --engine spark"),
        (["p.sql", "--trigger", "1 s"], "--trigger is for --engine spark"),
        (["p.sql", "--nonsense"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_wrong_use_ends_with_two(arguments, message):
    pipeline(STREAM, ALL)
    assert message in lw("run", *arguments, code=2).stderr


def test_a_source_that_is_not_there_is_wrong_use():
    wrong = pipeline(STREAM.replace("a.csv", "b.csv"), ALL)
    assert "there are no files at b.csv" in lw("run", wrong, code=2).stderr


def test_a_run_that_fails_ends_with_one_and_no_traceback():
    Path("a.csv").write_text("k,v,ts\na,one,2024-01-01\n")
    done = lw("run", pipeline(STREAM, ALL), code=1)
    assert "failed after" in done.stderr
    assert "error: cannot read a.csv: line 2, column v: 'one' is no BIGINT" in done.stderr
    assert "Traceback" not in done.stderr
    told = json.loads(lw("run", "p.sql", "--json", code=1).stdout.splitlines()[-1])
    assert told["event"] == "failed"
    assert "cannot read a.csv" in told["error"]


def test_a_folder_that_is_taken_ends_with_one():
    text = pipeline(STREAM, f"INSERT INTO 'csv:out' {ALL}")
    lw("run", text)
    assert "out already holds CSV files; give an empty folder" in lw("run", text, code=1).stderr


def test_a_folder_is_added_to_or_its_results_are_replaced():
    text = pipeline(STREAM, f"INSERT INTO 'csv:out' {ALL}")
    lw("run", text)
    lw("run", text, "--output-mode", "append", "--flush-every", "0 s")
    assert len(list(Path("out").glob("*.csv"))) > 1
    lw("run", text, "--output-mode", "replace")
    assert [file.name for file in Path("out").iterdir()] == ["part-00000.csv"]


@pytest.mark.parametrize(
    ("option", "words"),
    [
        (("--output-mode", "add"), "--output-mode is fail, append, replace, not 'add'"),
        (("--flush-every", "soon"), "--flush-every 'soon' is not a length of time"),
        (("--flush-every", "-1 second"), "--flush-every"),
    ],
)
def test_options_of_folders_that_cannot_be_are_wrong_use(option, words):
    assert words in lw("run", pipeline(STREAM, ALL), *option, code=2).stderr


# ---- check and explain -------------------------------------------------------------------------


def test_check_says_what_would_run_and_runs_nothing():
    text = lw("check", pipeline(f"{STREAM} LATE TO 'late'", f"INSERT INTO 'csv:o' {COUNT}")).stdout
    assert "from csv:a.csv" in text
    assert "k STRING, v BIGINT, ts TIMESTAMP" in text
    assert "progress: ts ordered" in text
    assert "to csv:o" in text
    assert "gives window_start TIMESTAMP, window_end TIMESTAMP, k STRING, n BIGINT" in text
    assert "late rows of S to late" in text
    assert "fine: 1 query would run on the embedded engine" in text
    assert not Path("o").exists()


GOOD_ROW = "a,1,2024-01-01"
MET = {
    "missing file": ("csv:b.csv", "", None, 2, "there are no files at b.csv"),
    "empty pattern": ("csv:in/*.csv", "", None, 2, "there are no files at in/*.csv"),
    "missing folder that may come": ("csv:in", "FOLLOW", None, 0, "yet; a run waits for them"),
    "missing column": ("csv:c.csv", "", "k,vv,ts\n", 1, "Did you mean 'vv'?"),
    "wrong type": ("csv:c.csv", "", f"k,v,ts\na,x,\n{GOOD_ROW}\n", 1, "line 2, column v: 'x'"),
    "cut line": ("csv:c.csv", "", f"k,v,ts\n{GOOD_ROW}\na,1", 1, "line 3, too few values"),
    "no text": ("csv:c.csv", "", "k\0", 1, "it is not a text"),
    "no Parquet": ("parquet:c.csv", "", "k,v,ts\n", 1, "cannot read c.csv"),
    "mistyped JSON": ("json:c.csv", "", '{"k": "a", "vv": 1}', 0, "Did you mean 'vv'?"),
    "some have it": ("json:c.csv", "", '{"k": "a", "v": 1}\n{"v": 1, "ts": null}\n', 0, None),
    "wrong JSON": ("json:c.csv", "", '{"v": "a"}', 1, "line 1, column v: 'a' is no BIGINT"),
}


@pytest.mark.parametrize("engine", ["embedded", "spark"])
@pytest.mark.parametrize("name", MET)
def test_check_says_what_a_run_would_meet(name: str, engine: str):
    location, clauses, content, code, says = MET[name]
    if content is not None:
        Path("c.csv").write_text(content)
    stream = f"CREATE STREAM S {SCHEMA} FROM '{location}' PROGRESS ORDERED BY ts {clauses}"
    done = lw("check", pipeline(stream, ALL), "--engine", engine, code=code)
    assert ("fine: " in done.stdout) == (code == 0)
    said = " ".join(done.stderr.split())
    assert "stream S" in said if says else not said
    assert (says or "") in said
    if engine == "embedded" and code:
        lw("run", "p.sql", code=code)


def test_check_says_of_a_parquet_file_what_does_not_fit():
    rows = pl.DataFrame({"k": ["a"], "v": [1.9], "ts": [START]})
    for wrong, says in (
        (rows, "row 1, column v: 1.9 is no BIGINT"),
        (rows.drop("v"), "unknown column 'v'"),
        (
            rows.with_columns(v=pl.lit("1")),
            "column v is STRING in the file and was declared BIGINT",
        ),
    ):
        wrong.write_parquet("a.parquet")
        text = pipeline(STREAM.replace("csv:a.csv", "parquet:a.parquet"), ALL)
        assert says in " ".join(lw("check", text, code=1).stderr.split())


def test_check_says_of_an_output_that_it_cannot_be_written(monkeypatch: pytest.MonkeyPatch):
    Path("file").touch()
    write(table([0]), Path("used/a.csv"))
    for target, says in (
        ("file", "it is a file"),
        ("file/below", "cannot be written to"),
        ("used", "already holds CSV files"),
    ):
        text = pipeline(STREAM, f"INSERT INTO 'csv:{target}' {ALL}")
        assert says in " ".join(lw("check", text, code=1).stderr.split())
        lw("run", text, code=1)
    text = pipeline(STREAM, f"INSERT INTO 'csv:new' {ALL}")
    monkeypatch.setattr("os.access", lambda path, mode: not mode & os.W_OK)
    assert "cannot be written to" in " ".join(lw("check", text, code=1).stderr.split())
    assert not Path("new").exists()


def test_check_of_a_pipeline_for_spark_starts_no_spark():
    text = pipeline(f"CREATE STREAM S {SCHEMA} FROM 'kafka:t' PROGRESS ORDERED BY ts", ALL)
    done = lw("check", text, "--engine", "spark")
    assert "fine: 1 query would run until stopped on the spark engine" in done.stdout
    assert "use --engine spark" in lw("check", text, code=2).stderr


def test_explain_shows_the_plan_of_every_query():
    text = lw("explain", pipeline(STREAM, COUNT, ALL)).stdout
    assert "query 1, line 2, to console" in text
    assert "window#1  range 10 s, slide 10 s on ts, by k: COUNT(*) AS n" in text
    assert "source#0  S: ts ordered" in text
    assert "partitioned by: k" in text
    assert "query 2, line 3" in text


def test_help_and_version():
    text = lw("--help").stdout
    for name in ("run", "check", "explain", "claims", "bench", "checkpoint"):
        assert name in text
    assert lw("--version").stdout == f"lowwater {lowwater.__version__}\n"


# ---- as a process ------------------------------------------------------------------------------


@contextmanager
def started(*arguments: str, **how):
    """The command as a process, which does not outlive the test."""
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    with subprocess.Popen([*COMMAND, *arguments], **how) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_without_end_is_stopped_by_a_signal_and_that_is_no_failure(number):
    write(table([0, 1, 12]), Path("in/a.csv"))
    with started("run", pipeline(GROWING, COUNT)) as process:
        lines = [process.stdout.readline().decode() for _ in range(4)]
        process.send_signal(number)
        rest, said = process.communicate(timeout=LONG)
    assert process.returncode == 0, said
    assert lines[2] == "2024-01-01 00:00:00  2024-01-01 00:00:10  a  1\n"
    assert b"stopped after" in said
    assert b"3 rows in, 2 out" in said
    assert rest == b""


def test_progress_as_json_comes_while_a_run_goes_on():
    with started("run", pipeline(GROWING, COUNT), "--json") as process:
        first = json.loads(process.stdout.readline())
        process.send_signal(signal.SIGINT)
        said, _ = process.communicate(timeout=LONG)
    assert first["event"] == "progress"
    assert first["queries"][0]["active"]
    assert json.loads(said.splitlines()[-1])["event"] == "stopped"


def test_nobody_reading_the_rows_ends_a_run_without_noise():
    write(table([0, 1]), Path("in/a.csv"))
    numbers = count()
    with started("run", pipeline(GROWING, ALL)) as process:
        assert process.stdout.readline()
        process.stdout.close()

        def over() -> bool:
            write(table([30]), Path(f"in/b{next(numbers)}.csv"))
            return process.poll() is not None

        until(over)
        said = process.stderr.read().decode()
    assert process.returncode == 0, said
    assert "stopped after" in said
    assert "BrokenPipe" not in said


def test_progress_that_cannot_be_shown_ends_no_run(monkeypatch):
    class Broken(ProgressLines):
        every = 0.0

        def show(self, progress):
            raise IndexError("half a step")

    whole, early = PipelineRun.wait, iter([True] * 3)
    monkeypatch.setattr(
        PipelineRun, "wait", lambda self, *_: not next(early, False) and whole(self, LONG)
    )
    monkeypatch.setattr("lowwater.cli.runs.ProgressLines", Broken)
    done = lw("run", pipeline(STREAM, ALL))
    assert done.stderr.count("progress could not be shown: IndexError: half a step") == 1
    assert "5 rows in, 4 out" in done.stderr


def test_nobody_reading_the_progress_ends_no_run():
    write(table([0, 1]), Path("in/a.csv"))
    with started("run", pipeline(GROWING, ALL)) as process:
        head = [process.stdout.readline() for _ in range(4)]
        process.stderr.close()
        write(table([30]), Path("in/b.csv"))
        assert [*head[2:], process.stdout.readline()] == [b"a  0\n", b"b  1\n", b"a  0\n"]
        process.send_signal(signal.SIGINT)
        assert process.wait(LONG) == 0


def on_a_terminal(*arguments: str, until_seen: str) -> tuple[str, int]:
    """What a terminal is sent; the run is interrupted when a text was seen."""
    ours, theirs = pty.openpty()
    environment = os.environ | {"TERM": "xterm", "COLUMNS": "100", "LINES": "30"}
    with started(
        *arguments, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    ) as process:
        os.close(theirs)
        seen = ""
        with suppress(OSError):  # the other end was closed
            while some := os.read(ours, 4096):
                seen += some.decode(errors="replace")
                if until_seen in seen:
                    process.send_signal(signal.SIGINT)
                    until_seen = "\0"
        os.close(ours)
        return seen, process.wait(LONG)


def test_on_a_terminal_progress_is_drawn_below_the_rows():
    write(table([0, 1, 12]), Path("in/a.csv"))
    seen, code = on_a_terminal("run", pipeline(GROWING, COUNT), until_seen="3 in")
    assert code == 0
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", seen)
    assert "p.sql (embedded)" in plain
    assert "query 1 → console" in plain
    assert "2024-01-01 00:00:12" in plain
    assert "2024-01-01 00:00:00  2024-01-01 00:00:10  a  1" in plain
    assert "stopped after" in plain


def test_the_example_runs_and_takes_no_time_to_speak_of():
    done = lw("run", str(EXAMPLES / "packets.sql"))
    assert len(done.stdout.splitlines()) == 2 + 5 * 5
    assert "Main2: " in done.stderr
    assert lw("explain", str(EXAMPLES / "packets.sql")).stdout.count("source#") == 3


def test_the_pipeline_of_the_page_is_fine_and_the_page_names_every_option():
    page = (EXAMPLES.parent / "docs" / "command.md").read_text(encoding="utf-8")
    text, *_ = re.findall(r"^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    rows = {"srcIP": ["a"], "len": [1], "ts": [START]}
    write(pl.DataFrame(rows), Path("trace/main1/1.parquet"))
    done = lw("check", pipeline(text), "--param", "least=100")
    assert "fine: 2 queries would run until stopped" in done.stdout
    assert all(
        f"--{name}" in page
        for name in re.findall(r"--([a-z]+)", lw("run", "--help").stdout)
        if name != "help"
    )
    assert all(clause in page for clause in STREAM_CLAUSES if "IDLE HEART" not in clause)


# ---- words -------------------------------------------------------------------------------------


def test_values_are_shown_as_people_write_them():
    assert [cell_text(each) for each in (None, "", 0.1 + 0.2, 1e30, "a\n b", START, [1, 2])] == [
        "null",
        "",
        "0.3",
        "1e+30",
        "a b",
        "2024-01-01 00:00:00",
        "[1, 2]",
    ]
    assert [length(each) for each in (0.26, 59.94, 100, 3700, 90_000)] == [
        "0.3 s",
        "59.9 s",
        "1 min 40 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
    assert [size(each) for each in (0, 999, 1_500, 2_000_000)] == [
        "0 B",
        "999 B",
        "1.5 kB",
        "2.0 MB",
    ]
    assert [moment(each) for each in (None, 1234, START, START.replace(microsecond=5_400))] == [
        "-",
        "1,234",
        "2024-01-01 00:00:00",
        "2024-01-01 00:00:00.005",
    ]


def test_columns_are_made_narrower_widest_first_to_fit_a_line():
    assert fit_widths([10, 40, 5], 40) == [10, 21, 5]
    assert fit_widths([4, 4], 80) == [4, 4]
    assert fit_widths([50, 50], 5) == [6, 6]


# ---- ordered joins -----------------------------------------------------------------------------

PAIRED = (
    f"CREATE STREAM A {SCHEMA} FROM 'csv:a.csv' PROGRESS ORDERED BY ts WITHIN 20 SECONDS",
    f"CREATE STREAM B {SCHEMA} FROM 'csv:a.csv' PROGRESS ORDERED BY ts WITHIN 20 SECONDS",
    "SELECT A.k, GREATEST(A.ts, B.ts) AS at FROM A, B"
    " WHERE A.k = B.k AND B.ts BETWEEN A.ts - 60 AND A.ts + 60 ORDER BY at",
)
RATES = ("--rate", "A=1", "--rate", "B=10")


def test_explain_says_what_strategies_are_expected_to_take():
    path = pipeline(*PAIRED)
    told = lw("explain", path, *RATES, "--cost", "500us").output
    assert "sync-filter 715 ms, filter-order 550 ms" in told
    assert "adaptive takes filter-order" in told
    switch = "where adaptive changes over (at 500 µs a comparison)"
    assert switch in lw("explain", path, *RATES).output


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("--rate", "A=1"), "the rate of stream 'B' is not given"),
        (("--rate", "C=1"), "unknown stream 'C'"),
        (("--rate", "A=fast"), "--rate takes stream=rows a second"),
        (("--rate", "A=0", "--rate", "B=1"), "above 0"),
        (("--cost", "1us"), "--cost goes with --rate"),
    ],
)
def test_wrong_rates_say_what_is_right(given, message):
    failed = lw("explain", pipeline(*PAIRED), *given, code=2).output
    assert message in failed
    assert "query 1" not in failed


def test_a_run_says_which_strategy_was_chosen():
    done = lw("run", pipeline(*PAIRED))
    assert "join#4: sync-filter, too little seen to decide" in done.stderr


# ---- the page ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given", [["--dashboard-port", "8080"], ["--dashboard-host", "0.0.0.0"], ["--show-rows"]]
)
def test_what_is_said_of_the_page_goes_with_it(given):
    done = lw("run", pipeline(STREAM, COUNT), *given, code=2)
    assert f"{given[0]} goes with --dashboard" in done.output


def test_a_run_with_a_page_says_where_it_is_and_ends_where_nobody_looks():
    done = lw("run", pipeline(STREAM, COUNT), "--dashboard", "--save-metrics", "m")
    assert "dashboard: http://127.0.0.1:" in done.stderr
    assert "done after" in done.stderr
    assert {each.name for each in Path("m").iterdir()} == {"state.json", "history.jsonl"}


def test_metrics_are_saved_without_a_page_too_and_shown_when_the_run_has_ended():
    lw("run", pipeline(STREAM, COUNT), "--save-metrics", "m")
    with subprocess.Popen(
        [*COMMAND, "dashboard", "m"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as shown:
        try:
            where = shown.stdout.readline().removeprefix("dashboard: ").strip()
            with urllib.request.urlopen(f"{where}api/state", timeout=LONG) as answer:
                state = json.loads(answer.read())
            shown.send_signal(signal.SIGINT)
            assert shown.wait(LONG) == 0
        finally:
            shown.kill()
    assert (state["title"], state["outcome"], state["live"]) == ("p.sql", "done", False)
    assert state["queries"][0]["rows_in"] == 5


def test_a_folder_without_saved_metrics_is_refused():
    assert "holds no saved metrics" in lw("dashboard", "nowhere", code=2).output
