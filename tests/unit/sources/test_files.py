"""Text files as a source: what is read, and where it is said to be wrong."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.sources.files import Files, columns_of
from lowwater.sources.text import type_name

SCHEMA = {"k": pl.String(), "v": pl.Int64(), "ts": pl.Datetime("us")}
DAY = "2024-01-01"
MIXED = ["2024-01-01 00:00:00", "2024-01-01T00:00:00Z", "2024-01-01 01:00:00+01:00", None, DAY]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def read(kind: str, content: str | bytes, schema: Any = SCHEMA, **options: str) -> pl.DataFrame:
    """The rows of a file with this content."""
    path = Path(f"a.{kind}")
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return pl.concat(Files(kind, path, schema, options=options).read(path))


def said(kind: str, content: str | bytes, schema: Any = SCHEMA, **options: str) -> str:
    """Why this content cannot be read."""
    with pytest.raises(lw.BadInput) as caught:
        read(kind, content, schema, **options)
    return str(caught.value).removeprefix(f"cannot read a.{kind}: ")


# ---- what is wrong -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        (f"a,1,{DAY}\nb,one,{DAY}\n", "line 3, column v: 'one' is no BIGINT"),
        (f"a,1,{DAY}\n\nb,2,soon\n", "line 4, column ts: 'soon' is no TIMESTAMP"),
        (f'"a, b",1,{DAY}\nb,1.5,{DAY}\n', "line 3, column v: '1.5' is no BIGINT"),
        (f'"a\nb",1,{DAY}\nb,one,{DAY}\n', "row 2, column v: 'one' is no BIGINT"),
        (
            f'a,"",{DAY}\nb, 2,{DAY}\nc,{"x" * 99},\n',
            f"line 4, column v: '{'x' * 59}… is no BIGINT",
        ),
        (f"a,1,{DAY}\nb,2,{DAY},3\n", "line 3, too many values: 4 for 3 columns"),
        (f"a,one,{DAY}\nb,2,{DAY},3\n", "line 2, column v: 'one' is no BIGINT"),
    ],
)
def test_what_is_wrong_in_a_csv_file_is_found(rows: str, where: str) -> None:
    assert said("csv", f"k,v,ts\n{rows}") == where


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ("a;1;\nb;one;\n", "line 2, column v: 'one' is no BIGINT"),
        ("a;1;;\n", "line 1, too many values: 4 for 3 columns"),
        ("a;1\n", "line 1, too few values: 2 for 3 columns"),
    ],
)
def test_lines_are_counted_without_a_header_too(rows: str, where: str) -> None:
    assert said("csv", rows, header="false", sep=";") == where


@pytest.mark.parametrize(
    ("written", "dtype", "name"),
    [
        ("300", pl.Int8(), "TINYINT"),
        ("yes", pl.Boolean(), "BOOLEAN"),
        ("x", pl.Float64(), "DOUBLE"),
        ("soon", pl.Date(), "DATE"),
        ("x", pl.Decimal(5, 2), "DECIMAL(5, 2)"),
        ("soon", pl.Datetime("us", "UTC"), "TIMESTAMPTZ"),
    ],
)
def test_a_type_is_called_what_pipelines_call_it(
    written: str, dtype: pl.DataType, name: str
) -> None:
    assert said("csv", f"row\n{written}\n", {"row": dtype}) == (
        f"line 2, column row: {written!r} is no {name}"
    )
    assert type_name(pl.List(dtype)) == f"ARRAY<{name}>"


@pytest.mark.parametrize(
    ("line", "where"),
    [
        ('{"k": "a", "v": "one"}', "column v: 'one' is no BIGINT"),
        ('{"v": 1.5}', "column v: 1.5 is no BIGINT"),
        ('{"ts": ["soon"]}', 'column ts: ["soon"] is no TIMESTAMP'),
        ('{"v": 1', "no JSON object"),
        ('{"v": NaN}', "no JSON object"),
        ("[1]", "no JSON object"),
    ],
)
def test_what_is_wrong_in_a_json_file_is_found(line: str, where: str) -> None:
    assert said("json", f'{{"v": 1}}\n\n{line}\n{{"v": "two"}}\n') == f"line 3, {where}"


def test_a_fault_is_found_among_many_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lowwater.sources.faults.LINES_AT_ONCE", 10)
    lines = ['{"v": 1}'] * 33 + ['{"v": "one"}'] * 9
    assert said("json", "\n".join(lines)) == "line 34, column v: 'one' is no BIGINT"


def test_a_packed_file_is_read_and_searched_as_others_are() -> None:
    assert read("csv", gzip.compress(f"k,v,ts\na,1,{DAY}\n".encode())).height == 1
    assert said("csv", gzip.compress(b"k,v,ts\na,one,\n")) == "line 2, column v: 'one' is no BIGINT"
    assert "Known: k, v" in said("csv", gzip.compress(b"k,v\na,one\n"))


def test_what_is_no_text_is_not_shown() -> None:
    pl.DataFrame({"k": ["a"]}).write_parquet("p")
    for kind in ("csv", "json"):
        for content, what in (
            (Path("p").read_bytes(), "it is a Parquet file"),
            ("k,v,ts\n".encode("utf-16"), "it is not a text"),
        ):
            assert said(kind, content) == what
            with pytest.raises(lw.QueryError, match=f"cannot read a.{kind}: {what}$"):
                columns_of(kind, Path(f"a.{kind}"))


def test_a_line_in_another_encoding_is_found() -> None:
    assert said("csv", "k,v,ts\na,1,\nü,2,\n".encode("latin-1")) == "line 3, not UTF-8"


def test_a_fault_is_found_while_columns_are() -> None:
    for kind, content, where in (
        ("csv", "k,v\na,1\nb,2,3\n", "line 3, too many values: 3 for 2 columns"),
        ("json", '{"k": 1}\n{"k"\n', "line 2, no JSON object"),
    ):
        path = Path(f"a.{kind}")
        path.write_text(content)
        with pytest.raises(lw.QueryError, match=f"cannot read a.{kind}: {where}$"):
            columns_of(kind, path)


# ---- what is read ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["csv", "json"])
@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_with_and_without_a_zone_may_be_in_one_column(kind: str, zone: str | None) -> None:
    path = Path("mixed")
    rows = pl.DataFrame({"ts": MIXED, "v": 1})
    (rows.write_csv if kind == "csv" else rows.write_ndjson)(path)
    found = read(kind, path.read_bytes(), {"ts": pl.Datetime("us", zone)})["ts"].to_list()
    midnight = datetime(2024, 1, 1, tzinfo=UTC if zone else None)
    assert found == [midnight, midnight, midnight, None, midnight]
    assert columns_of(kind, path)["ts"] == pl.Datetime("us")


def test_short_numbers_are_read_from_json() -> None:
    schema = {"a": pl.Int8(), "b": pl.Int16()}
    rows = read("json", '{"a": -5, "b": 300}\n{}\n', schema)
    assert rows.schema == schema
    assert rows.rows() == [(-5, 300), (None, None)]
    assert said("json", '{"a": 300}\n', schema) == "line 1, column a: 300 is no TINYINT"


def test_types_are_found_by_more_than_the_first_rows() -> None:
    Path("a.csv").write_text("v\n" + "1\n" * 500 + "1.5\n")
    assert columns_of("csv", Path("a.csv")) == {"v": pl.Float64()}


def test_numbers_in_names_count_as_numbers() -> None:
    names = ["2/a9.csv", "2/a10.csv", "10/1.csv", "10/01.csv", "10/b.csv", "٣.csv", "1.csv"]
    for name in names:
        path = Path("in") / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("ts\n")
    listed = Files("csv", "in", SCHEMA).listed()
    assert [str(each.relative_to("in")) for each in listed] == [
        "1.csv",
        "2/a9.csv",
        "2/a10.csv",
        "10/01.csv",
        "10/1.csv",
        "10/b.csv",
        "٣.csv",
    ]
