"""What the clauses of CREATE STREAM come to."""

from __future__ import annotations

import pytest

import lowwater as lw
from lowwater.pipeline.text import load_text
from lowwater.stream.duration import SECOND, nanoseconds
from lowwater.updates.options import updates_of
from tests.unit.pipeline.playing import SCHEMA, spec


@pytest.mark.parametrize(
    ("clauses", "promise"),
    [
        ("", "ts ordered"),
        ("PROGRESS ORDERED BY ts", "ts ordered"),
        ("progress ordered by ts", "ts ordered"),
        ("PROGRESS ORDERED BY ts WITHIN 5 SECONDS", "ts within 5 s"),
        ("PROGRESS WITHIN 5 SECONDS ON ts", "ts within 5 s"),
        ("PROGRESS WITHIN 5 SECONDS", "ts within 5 s"),
        ("PROGRESS WITHIN INTERVAL '2' MINUTES ON ts", "ts within 2 minutes"),
        ("PROGRESS WITHIN 500 ROWS ON ts", "ts within 500 rows"),
        ("PROGRESS LEARNED", "ts learned, 99.9 % complete"),
        ("PROGRESS LEARNED 0.99 ON ts", "ts learned, 99 % complete"),
        ("PROGRESS ORDERED BY ts LEARNED 99.95 %", "ts learned, 99.95 % complete"),
        ("progress learned 90 percent per channel k", "ts learned, 90 % complete per k"),
        ("PROGRESS LEARNED ON ts IDLE ON DEMAND WITHIN 5 s", "ts learned, 99.9 % complete"),
        ("PROGRESS UNPROMISED", "ts unpromised"),
        ("PROGRESS UNPROMISED ON ts", "ts unpromised"),
        ("progress unpromised disorder 500 rows on ts", "ts unpromised (disorder 500 rows)"),
        ("PROGRESS UNPROMISED DISORDER 0 ON ts", "ts unpromised (disorder 0 rows)"),
        (
            "PROGRESS ON ts UNPROMISED MULTIPLICITY 2 RATE 0.5 DELAY 10 SECONDS DISORDER 9",
            "ts unpromised (disorder 9 rows, multiplicity 2, 0.5 rows/s, delay 10 s)",
        ),
        ("PROGRESS ORDERED BY ts PER CHANNEL k", "ts ordered per k"),
        ("PROGRESS ORDERED BY TS PER CHANNEL K", "ts ordered per k"),
        ("PER CHANNEL k PROGRESS ORDERED BY ts", "ts ordered per k"),
        ("PROGRESS ORDERED BY ts PER GROUP k, v", "ts ordered per k, v"),
    ],
)
def test_progress_clauses_in_any_order_make_a_promise(clauses, promise):
    assert spec(clauses).promise == promise


def test_the_producers_own_marks_may_be_named_before_or_after_the_time():
    schema = "(ts TIMESTAMP, mark TIMESTAMP)"
    named = "PUNCTUATED BY mark ORDERED BY ts", "ORDERED BY ts PUNCTUATED BY mark"
    for clauses in (*named, "PUNCTUATED BY mark"):
        made = spec(f"PROGRESS {clauses}", schema)
        assert (made.time, made.promise) == ("ts", "ts punctuated by column mark")


def test_marks_of_several_times_may_be_promised_jointly():
    schema = "(ts INT, ts2 INT, m INT, m2 INT)"
    made = spec("PROGRESS PUNCTUATED BY m, m2 JOINTLY ON ts, ts2", schema)
    assert (made.time, made.joint) == ("ts", ("ts", "ts2"))
    made = spec("PROGRESS ON ts, ts2 PUNCTUATED BY m, m2", schema)
    assert made.promise == "ts punctuated by column m, ts2 punctuated by column m2"
    for wrong, message in (
        ("PUNCTUATED BY m JOINTLY ON ts", "JOINTLY is for the promises of two columns or more"),
        ("PUNCTUATED BY m, m2 ON ts", "PUNCTUATED BY names one column, or as many as"),
        ("PUNCTUATED BY m ON ts, ts2", "ON names one column, or as many as"),
        ("WITHIN 5 SECONDS ON ts, ts2", "ON names one column, or as many as"),
    ):
        with pytest.raises(lw.QueryError, match=message):
            spec(f"PROGRESS {wrong}", schema)


def test_rows_that_are_only_a_promise_and_ends_are_named_by_columns():
    schema = "(ts TIMESTAMP, mark TIMESTAMP, only BOOLEAN, gone BOOLEAN, k STRING)"
    made = spec("PROGRESS PUNCTUATED BY mark ALONE BY only PER GROUP k ENDED BY Gone", schema)
    assert made.promise == "ts punctuated by column mark per k, ended by column gone"
    assert (made.contracts["ts"].alone_column, made.ended) == ("only", "gone")
    with pytest.raises(lw.QueryError, match=r"ALONE BY names the rows .* add PUNCTUATED BY"):
        spec("PROGRESS ORDERED BY ts ALONE BY only", schema)
    with pytest.raises(lw.LowwaterError, match=r"ended= says .* needs channel= or groups="):
        spec("PROGRESS ORDERED BY ts ENDED BY gone", schema)
    with pytest.raises(lw.QueryError, match="ENDED BY names one column"):
        spec("PROGRESS ORDERED BY ts PER GROUP k ENDED BY gone, only", schema)


@pytest.mark.parametrize(
    ("clauses", "idle"),
    [
        ("IDLE ON DEMAND", lw.on_demand()),
        ("IDLE ON DEMAND WITHIN 1 SECOND", lw.on_demand("1 s")),
        ("HEARTBEAT EVERY 2 SECONDS", lw.heartbeat("2 s")),
        ("HEARTBEAT EVERY 2 SECONDS WITHIN 1 SECOND", lw.heartbeat("2 s", "1 s")),
        ("IDLE HEARTBEAT EVERY 2", lw.heartbeat("2 s")),
        ("IDLE ON DEMAND BEHIND CLOCK 30 SECONDS", lw.on_demand(behind_clock="30 s")),
        ("IDLE ON DEMAND BEHIND CLOCK 1 MINUTE WITHIN 1 s", lw.on_demand("1 s", "1 minute")),
        ("HEARTBEAT EVERY 2 WITHIN 1 BEHIND CLOCK 3", lw.heartbeat("2 s", "1 s", "3 s")),
    ],
)
def test_an_idle_stream_may_be_told_to_speak(clauses, idle):
    made = spec(f"PROGRESS ORDERED BY ts WITHIN 5 SECONDS {clauses}")
    assert made.idle == idle
    assert made.promise == "ts within 5 s"


@pytest.mark.parametrize("length", ["1 HOUR", "'1 hour'", "INTERVAL '60' MINUTES", "3600"])
def test_a_channel_may_be_set_aside(length):
    made = spec(f"PROGRESS ORDERED BY ts PER CHANNEL k STALE AFTER {length}")
    assert nanoseconds(made.stale_after) == 3_600 * SECOND
    assert "ts ordered per k, stale after" in made.promise


@pytest.mark.parametrize("unit", ["MILLISECONDS", "millisecond", "ms"])
def test_numbers_may_count_other_units_than_seconds(unit):
    made = spec(f"PROGRESS ORDERED BY at UNIT {unit} WITHIN 5 SECONDS", "(at BIGINT, v BIGINT)")
    assert made.domains["at"].ticks_per_second == 1_000
    assert spec("ORDERED BY at", "(at BIGINT)").domains["at"].ticks_per_second == 1


def test_lengths_may_be_parameters():
    text = f"CREATE STREAM S {SCHEMA} FROM 'csv:x' PROGRESS WITHIN :n SECONDS ON ts;SELECT * FROM S"
    assert load_text(text, values={"n": 7}).streams["S"].node.spec.promise == "ts within 7 s"


def test_what_is_known_of_a_stream_may_be_parameters():
    text = f"""
        CREATE STREAM S {SCHEMA} FROM 'csv:x'
        PROGRESS UNPROMISED DISORDER :k ROWS RATE :r DELAY :d SECONDS ON ts;
        SELECT * FROM S
    """
    made = load_text(text, values={"k": 7, "r": 2.5, "d": 3}).streams["S"].node.spec
    assert made.promise == "ts unpromised (disorder 7 rows, 2.5 rows/s, delay 3 s)"


def test_how_complete_a_learned_promise_is_may_be_a_parameter():
    text = f"CREATE STREAM S {SCHEMA} FROM 'csv:x' PROGRESS LEARNED :c ON ts;SELECT * FROM S"
    promise = load_text(text, values={"c": 0.75}).streams["S"].node.spec.promise
    assert promise == "ts learned, 75 % complete"


@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("UPDATE KEY k", {"key": "k"}),
        ("UPDATE KEY (k)", {"key": "k"}),
        ("UPDATE KEY (K, v) SCHEDULE fifo", {"key": ("k", "v"), "schedule": "fifo"}),
        ("UPDATE KEY ()", {"key": ()}),
        ("SCHEDULE IN-PLACE UPDATE KEY k", {"key": "k"}),
        ("SCHEDULE RARE-FIRST UPDATE KEY k", {"key": "k", "schedule": "rare-first"}),
        (
            "UPDATE KEY k BUDGET '1 second' COMPLETE WITHIN '2 seconds' WINDOWS eager"
            " SCHEDULE linecutting WEIGHTS ('GOOG' = 60, 'GM' = 1)",
            {
                "key": "k",
                "budget": "1 s",
                "complete_within": "2 s",
                "windows": "eager",
                "schedule": "linecutting",
                "weights": {"GOOG": 60, "GM": 1},
            },
        ),
        (
            "UPDATE KEY k COMPLETE WITHIN 2 WINDOWS lazy BUDGET 500 ms FOLLOW",
            {"key": "k", "complete_within": "2 s", "budget": "500 ms"},
        ),
        (
            "UPDATE KEY k"
            " WEIGHTS ('GOOG' = 1 minute, 'GM' = '1 hour', 'O''Hara' = INTERVAL '2' DAY)",
            {"key": "k", "weights": {"GOOG": "1 min", "GM": "1 h", "O'Hara": "2 days"}},
        ),
        (
            "UPDATE KEY (k, v) WEIGHTS (('GOOG', -1) = 2.5)",
            {"key": ("k", "v"), "weights": {("GOOG", -1): 2.5}},
        ),
        ("UPDATE KEY k FRESH WITHIN 5 SECONDS", {"key": "k", "fresh_within": "5 s"}),
        (
            "UPDATE KEY k FRESH WITHIN ('GOOG' = 500 ms, 'GM' = '1 hour') SCHEDULE fifo",
            {"key": "k", "schedule": "fifo", "fresh_within": {"GOOG": "500 ms", "GM": "1 h"}},
        ),
        (
            "UPDATE KEY (k, v) FRESH WITHIN (('GOOG', -1) = 2 seconds)",
            {"key": ("k", "v"), "fresh_within": {("GOOG", -1): "2 s"}},
        ),
    ],
)
def test_a_stream_may_be_one_of_updates(clauses, expected):
    text = f"CREATE STREAM S {SCHEMA} FROM 'csv:x' PROGRESS ORDERED BY ts {clauses};SELECT * FROM S"
    pipeline = load_text(text)
    made = pipeline.streams["S"]
    assert made.declared.updates == updates_of(**expected)
    assert made.node.spec.promise == "ts ordered"
    assert pipeline.queries[0].plan.result.node.updates == made.declared.updates


@pytest.mark.parametrize(
    ("clauses", "expire", "delete_when"),
    [
        ("UPDATE KEY k EXPIRE 10 MINUTES", "10 minutes", None),
        ("EXPIRE '2 hours' UPDATE KEY k", "2 hours", None),
        ("UPDATE KEY k DELETE WHEN v = 0 SCHEDULE fifo", None, '"v" = 0'),
        (
            "UPDATE KEY k delete when K = 'gone' AND (V > 3) EXPIRE 5",
            5,
            '"k" = \'gone\' AND ("v" > 3)',
        ),
    ],
)
def test_keys_expire_or_are_deleted(clauses, expire, delete_when):
    made = load_text(f"CREATE STREAM S {SCHEMA} FROM 'parquet:x' {clauses}; SELECT * FROM S")
    updates = made.queries[0].plan.result.node.updates
    assert updates.expire == updates_of("k", expire=expire).expire
    assert updates.delete_when == delete_when
    assert (updates.deletion is None) == (delete_when is None)


def test_how_updates_are_worked_on_may_be_parameters():
    text = f"""
        CREATE STREAM S {SCHEMA} FROM 'csv:x' PROGRESS ORDERED BY ts
        UPDATE KEY k BUDGET :b COMPLETE WITHIN :c SECONDS WEIGHTS (:k = :w, 'b' = 1);
        SELECT * FROM S
    """
    made = load_text(text, values={"b": "2 seconds", "c": 3, "k": "a", "w": 4}).streams["S"]
    weights = {"a": 4, "b": 1}
    assert made.declared.updates == updates_of(
        "k", budget="2 s", complete_within="3 s", weights=weights
    )


def test_windows_are_a_unit_as_well_as_a_clause():
    text = f"""
        CREATE STREAM S {SCHEMA} FROM 'csv:x' PROGRESS ORDERED BY ts;
        SELECT count(*) FROM S [RANGE 1 minute, FLUSH LAZY WITHIN 2 WINDOWS]
    """
    assert "within 2 windows" in load_text(text).queries[0].plan.result.detail


@pytest.mark.parametrize(
    ("clauses", "message"),
    [
        ("PROGRESS ORDERED BY ts PER CHANNEL k, v", "PER CHANNEL names one column"),
        ("PROGRESS ORDERED BY ts PER CHANNEL k PER GROUP v", "per channel or per group"),
        ("ORDERED BY ts IDLE ON DEMAND HEARTBEAT EVERY 1 SECOND", "or has a HEARTBEAT, not both"),
        ("PUNCTUATED BY v WITHIN 5 SECONDS ON ts", "PUNCTUATED BY a column or WITHIN a length"),
        ("ORDERED BY ts IDLE ON DEMAND WITHIN 5 ROWS", "not a number of rows"),
        ("ORDERED BY ts BEHIND CLOCK 5 SECONDS", "put IDLE ON DEMAND or HEARTBEAT EVERY before"),
        ("ORDERED BY ts IDLE ON DEMAND BEHIND CLOCK 5 ROWS", "not a number of rows"),
        ("LEARNED 99.9 ON ts", "a share between 0 and 1, such as 0.999"),
        ("LEARNED 100 % ON ts", "LEARNED takes a share between 0 and 1"),
        ("LEARNED quickly", "LEARNED takes a share"),
        ("LEARNED 0.9 LEARNED 0.8", "LEARNED is given twice"),
        ("LEARNED 0.9 WITHIN 5 SECONDS ON ts", "LEARNED stands in the place of a promise"),
        ("LEARNED PUNCTUATED BY v ON ts", "LEARNED stands in the place of a promise"),
        ("UNPROMISED WITHIN 5 SECONDS ON ts", "UNPROMISED says that nothing is promised"),
        ("UNPROMISED LEARNED ON ts", "UNPROMISED says that nothing is promised"),
        ("UNPROMISED PUNCTUATED BY v ON ts", "UNPROMISED says that nothing is promised"),
        ("UNPROMISED ON ts UNPROMISED", "UNPROMISED is given twice"),
        ("UNPROMISED DISORDER 5 DISORDER 6 ON ts", "DISORDER is given twice"),
        ("UNPROMISED DISORDER 5 SECONDS ON ts", "DISORDER takes a whole number of zero or more"),
        ("UNPROMISED DISORDER 1.5 ROWS ON ts", "DISORDER takes a whole number of zero or more"),
        ("UNPROMISED MULTIPLICITY 0 ON ts", "MULTIPLICITY takes a whole number above zero"),
        ("UNPROMISED DISORDER 1 MULTIPLICITY 5 ON ts", "disorder= is at least that, not 1"),
        ("UNPROMISED RATE 0 ON ts", "RATE takes rows a second, a number above zero"),
        ("UNPROMISED RATE 5 SECONDS ON ts", "RATE takes rows a second"),
        ("UNPROMISED DELAY 5 ROWS ON ts", "DELAY takes a length of time"),
        ("ORDERED BY ts DISORDER 500 ROWS", "DISORDER goes with PROGRESS UNPROMISED"),
        ("UNPROMISED ON ts PER CHANNEL k", "channel= sets how promises are made"),
        ("UNPROMISED ON ts IDLE ON DEMAND", "idle= sets how promises are made"),
        ("ORDERED BY tss", "Did you mean 'ts'"),
        ("PROGRES ORDERED BY ts", "Did you mean PROGRESS"),
        ("ORDERED BY ts WITHIN 5 SECONDS WITHIN 6 SECONDS", "WITHIN is given twice"),
        ("ORDERED BY ts OPTIONS (header)", "an option is a name and a text"),
        ("ORDERED BY ts OPTIONS (headr 'true')", "Did you mean 'header'"),
        ("ORDERED BY ts LATE TO late", "LATE TO takes a text"),
        ("ORDERED BY ts UNIT fortnights", "unknown unit 'fortnights'"),
        ("ORDERED BY k", "a time is a TIMESTAMP"),
        ("ORDERED BY ts UPDATE KEY (kk)", "unknown column 'kk'. Did you mean 'k'"),
        ("ORDERED BY ts UPDATE KEY (k, k)", "UPDATE KEY names a column twice: k, k"),
        ("ORDERED BY ts UPDATE KEY k UPDATE KEY v", "UPDATE KEY is given twice"),
        ("ORDERED BY ts UPDATE KEY (k", "cannot read this"),
        ("ORDERED BY ts SCHEDULE fifo", r"SCHEDULE is a clause of update streams: add UPDATE KEY"),
        ("ORDERED BY ts BUDGET 1 SECOND", "BUDGET is a clause of update streams"),
        ("ORDERED BY ts UPDATE KEY k SCHEDULE linecuting", "Did you mean 'LINECUTTING'"),
        ("ORDERED BY ts UPDATE KEY k SCHEDULE 5", "a word is missing: IN-PLACE, FIFO,"),
        ("ORDERED BY ts UPDATE KEY k EXPIRE 5 ROWS", "EXPIRE takes a length of time"),
        ("ORDERED BY ts UPDATE KEY k EXPIRE 0", "EXPIRE is a length of time above zero"),
        ("ORDERED BY ts EXPIRE 1 SECOND", "EXPIRE is a clause of update streams: add UPDATE KEY"),
        ("ORDERED BY ts UPDATE KEY k EXPIRE 1 SCHEDULE append", "EXPIRE is for queues of keys"),
        ("ORDERED BY ts UPDATE KEY k DELETE WHEN", "DELETE WHEN takes a condition"),
        ("ORDERED BY ts UPDATE KEY k DELETE WHEN w = 1", "unknown column 'w'"),
        ("ORDERED BY ts UPDATE KEY k DELETE WHEN v + 1", "DELETE WHEN: a condition must be true"),
        ("ORDERED BY ts UPDATE KEY k WINDOWS busy", "unknown WINDOWS 'BUSY'. Known: EAGER, LAZY"),
        ("ORDERED BY ts UPDATE KEY k BUDGET 5 ROWS", "BUDGET takes a length of time"),
        ("ORDERED BY ts UPDATE KEY k BUDGET 'soon'", "BUDGET"),
        ("ORDERED BY ts UPDATE KEY k COMPLETE WITHIN 0", "COMPLETE WITHIN is a length of time"),
        (
            "ORDERED BY ts UPDATE KEY k COMPLETE WITHIN 1 SCHEDULE append",
            "COMPLETE WITHIN sets when rows are given up for newer ones, and SCHEDULE append never",
        ),
        ("ORDERED BY ts UPDATE KEY k FRESH WITHIN 0", "FRESH WITHIN is a length of time above"),
        ("ORDERED BY ts UPDATE KEY k FRESH WITHIN ('a')", "a target is a key and a length of"),
        (
            "ORDERED BY ts UPDATE KEY k FRESH WITHIN ('a' = 1 s, 'a' = 2 s)",
            "FRESH WITHIN names a key twice",
        ),
        (
            "ORDERED BY ts UPDATE KEY k FRESH WITHIN (k = 1)",
            "a key in FRESH WITHIN is a text, a whole number",
        ),
        ("ORDERED BY ts UPDATE KEY k FRESH WITHIN (7 = 1)", "FRESH WITHIN: 7 is no value of"),
        ("ORDERED BY ts FRESH WITHIN 5", "FRESH WITHIN is a clause of update streams"),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS ('a')", "a weight is a key and a number"),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS ('a' = 1, 'a' = 2)", "WEIGHTS names a key twice"),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS ('a' = 0)", "weights are above zero"),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS ('a' = 1, 'b' = 1 hour)", "WEIGHTS are all numbers"),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS (('a', 'b') = 1)", "names no key of 1 column"),
        (
            "ORDERED BY ts UPDATE KEY k WEIGHTS (k = 1)",
            "a key in WEIGHTS is a text, a whole number",
        ),
        ("ORDERED BY ts UPDATE KEY k WEIGHTS (7 = 1)", "WEIGHTS: 7 is no value of update key"),
    ],
)
def test_a_clause_that_cannot_be_is_refused_at_its_place(clauses, message):
    with pytest.raises(lw.ExpressionError, match=message) as caught:
        spec(clauses)
    assert "at line 1, column " in str(caught.value)


def test_options_may_have_dots_and_quotes_and_equal_signs():
    text = f"""
        CREATE STREAM S {SCHEMA} FROM 'kafka:' PROGRESS ORDERED BY ts
        OPTIONS (kafka.bootstrap.servers 'h:1', subscribe = 't', 'max offsets' '5');
        SELECT * FROM S
    """
    source = load_text(text, engine="spark").streams["S"].node.source
    assert source.options == {
        "kafka.bootstrap.servers": "h:1",
        "subscribe": "t",
        "max offsets": "5",
    }


@pytest.mark.parametrize(
    ("clauses", "underlined"),
    [
        ("PROGRESS ORDERED BY ts UPDATE KEY k SCHEDULE in-line", "in-line"),
        ("PROGRESS ORDERED BY ts UPDATE KEY k WEIGHTS (7 = 1)", "WEIGHTS (7 = 1)"),
        ("PROGRESS ORDERED BY ts WINDOWS eager", "WINDOWS eager"),
        ("PROGRESS ORDERED BY ts PER CHANNEL k, v", "PER CHANNEL k, v"),
        ("PROGRESS ORDERED BY tss", "tss"),
        ("PROGRESS ORDERED BY ts RATE 5", "RATE 5"),
        ("PROGRESS UNPROMISED ON ts RATE 5 DISORDER 1.5 ROWS", "1.5 ROWS"),
        ("PROGRESS ORDERED BY ts OPTIONS (headr 'true')", "'csv:nowhere'"),
    ],
)
def test_the_part_that_is_wrong_is_underlined(clauses, underlined):
    with pytest.raises(lw.ExpressionError) as caught:
        spec(clauses)
    *_, line, marks = str(caught.value).splitlines()
    start = marks.index("^")
    assert line[start : len(marks)] == underlined
