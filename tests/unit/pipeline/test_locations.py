"""Where streams come from: formats and what follows the colon."""

from __future__ import annotations

from datetime import datetime

import pytest

import lowwater as lw
from lowwater.pipeline.location import generated, host_and_port, read_location
from lowwater.pipeline.text import load_file, load_text
from tests.unit.pipeline.playing import SCHEMA


def source(location: str, schema: str = SCHEMA, engine: str = "embedded", clauses: str = ""):
    text = f"CREATE STREAM S {schema} FROM '{location}' ORDERED BY ts {clauses}; SELECT * FROM S"
    return load_text(text, engine).streams["S"].node.source


def test_a_location_is_a_format_and_a_path():
    assert str(read_location("parquet:a/b:c")) == "parquet:a/b:c"
    assert read_location("csv:file:///x").path == "/x"
    assert read_location("parquet:s3a://bucket/x").elsewhere
    with pytest.raises(lw.OptionError, match="for example 'parquet:trace/main1'"):
        read_location("trace/main1")


def test_a_socket_is_a_host_and_a_port():
    assert host_and_port("localhost:9999") == ("localhost", 9999)
    assert host_and_port("//[::1]:80") == ("::1", 80)
    for wrong in ("localhost", "localhost:http", "localhost:99999"):
        with pytest.raises(lw.OptionError, match="'socket:localhost:9999'"):
            host_and_port(wrong)


def test_a_generated_stream_has_the_settings_of_a_workload():
    made = generated("rate=50, seconds=10,keys=3,seed=4,process=regular,scramble=2")
    assert made.table.equals(
        lw.Workload(50, 10, seed=4, keys=3, process="regular", scramble=2).table()
    )


def test_a_generated_stream_may_start_at_a_time_of_day():
    made = generated("rate=1,seconds=5,process=regular,start=2024-01-01").table
    assert made["ts"][0] == datetime(2024, 1, 1, 0, 0, 1)
    seconds = generated("rate=1,seconds=5,process=regular,unit=s,start=2024-01-01T00:00:00Z").table
    assert seconds["ts"][0] == 1_704_067_201
    assert generated("rate=1,seconds=5,start=now").table["ts"][0].year >= 2024


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("rate=5", "needs seconds="),
        ("rate=5,secs=4", "Did you mean 'seconds'"),
        ("rate=5,seconds", "name=value"),
        ("rate=many,seconds=4", "rate is a number, not 'many'"),
        ("rate=5,seconds=4,keys=1.5", "keys is a whole number, not '1.5'"),
        ("rate=0,seconds=4", "above zero"),
        ("rate=5,seconds=4,start=noon", "a time or 'now'"),
    ],
)
def test_a_wrong_setting_is_refused(settings, message):
    with pytest.raises(lw.OptionError, match=message):
        generated(settings)


def test_a_generated_stream_has_the_columns_that_are_declared_and_keeps_its_arrivals():
    location = "generate:rate=10,seconds=5,skew=1"
    whole, some = source(location, ""), source(location, "(ts TIMESTAMP, key INT)")
    assert list(whole.schema) == ["arrived", "ts", "key", "value"]
    assert list(some.schema) == ["ts", "key"]
    assert (some.times == whole.times).all()


@pytest.mark.parametrize(
    ("location", "schema", "clauses", "message"),
    [
        ("nowhere", SCHEMA, "", "a location is 'format:path'"),
        ("parqet:x", SCHEMA, "", "Did you mean 'parquet'.*use --engine spark"),
        ("kafka:topic", SCHEMA, "", "use --engine spark"),
        ("parquet:s3a://b/x", SCHEMA, "", "can only be read by Spark"),
        ("csv:", SCHEMA, "", "say where the files are"),
        ("socket:localhost:1", "", "", "declare them"),
        ("generate:rate=1,seconds=1", SCHEMA, "", "unknown column of generate: 'k'"),
        ("generate:rate=1,seconds=1", "", "OPTIONS (a 'b')", "takes no OPTIONS"),
        ("csv:nowhere", "", "", "nowhere is not there, so its columns have to be declared"),
    ],
)
def test_a_wrong_location_is_underlined(location, schema, clauses, message):
    with pytest.raises(lw.ExpressionError, match=message) as caught:
        source(location, schema, clauses=clauses)
    assert "^" * (len(location) + 2) in str(caught.value)


def test_a_format_of_sparks_waits_for_spark():
    made = source("kafka:topic", engine="spark")
    assert (made.format, made.path, made.live) == ("kafka", "topic", True)
    assert not source("parquet:s3a://b/x", engine="spark").live
    with pytest.raises(lw.OptionError, match="use the Spark engine"):
        made.open()


def test_a_byte_order_mark_is_no_part_of_a_pipeline(tmp_path):
    (tmp_path / "p.sql").write_text("\ufeffSELECT w", encoding="utf-8")
    with pytest.raises(lw.ExpressionError, match="at line 1, column 8:"):
        load_file(tmp_path / "p.sql")


def test_a_pipeline_that_cannot_be_read_says_why(tmp_path):
    with pytest.raises(lw.OptionError, match=r"cannot read .*nope.sql: No such file"):
        load_file(tmp_path / "nope.sql")
    (tmp_path / "bytes.sql").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(lw.OptionError, match="is not a text"):
        load_file(tmp_path / "bytes.sql")
    with pytest.raises(lw.OptionError, match="an engine is embedded or spark, not 'flink'"):
        load_text("SELECT 1", engine="flink")
    with pytest.raises(lw.QueryError, match="no query"):
        load_text("CREATE STREAM S (ts TIMESTAMP) FROM 'csv:x' ORDERED BY ts")
