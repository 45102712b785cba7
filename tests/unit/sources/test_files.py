"""Text files as a source: what is read, and where it is said to be wrong."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import lowwater as lw
from lowwater.sources.files import Files, columns_of
from lowwater.sources.values import type_name

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
        (f'"a\nb",1,{DAY}\nb,one,{DAY}\n', "line 4, column v: 'one' is no BIGINT"),
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
    monkeypatch.setattr("lowwater.sources.text_file.PIECE", 100)
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


# ---- lines that are cut off ----------------------------------------------------------------------

LONG_LINES = [
    "2,345,b,,2024-01-01",
    '"a, b",1,"x\ny",z,',
    "a,1,,,",
    "a,1,x,y,2024-01-01T00:00:00.5",
]
WIDE = {"k": pl.String(), "ts": pl.Datetime("us")}
HEADER = "k,v,some,more,ts\n"


@pytest.mark.parametrize("line", LONG_LINES)
@pytest.mark.parametrize("declared", [WIDE, {"k": pl.String()}], ids=len)
def test_a_record_that_is_cut_off_is_bad_wherever_it_is_cut(line: str, declared: Any) -> None:
    """Cut within its last value it is whole: nothing says that more was written."""
    whole = read("csv", f"{HEADER}{line}\n{line}\n", declared)
    assert whole.height == 2
    assert read("csv", f"{HEADER}{line}\n{line}", declared).rows() == whole.rows()
    for cut in range(1, line.rindex(",") + 1):
        for end in ("\n", "", f"\n{line}\n"):
            if '"' in line and line[:cut].count('"') % 2:
                continue  # an open quote takes the rest in
            assert "too few values" in said("csv", f"{HEADER}{line}\n{line[:cut]}{end}", declared)
    second = 3 + line.count("\n")
    for more in (",", ",1", ',"x"'):
        found = said("csv", f"{HEADER}{line}\n{line}{more}\n", declared)
        assert found == f"line {second}, too many values: 6 for 5 columns"


def test_an_empty_line_is_no_record() -> None:
    assert read("csv", "k,v\n\na,1\n \n\r\nb,\n\n", {"v": pl.Int64()}).rows() == [(1,), (None,)]
    assert read("csv", '\nk,v\n"a\n\nb",1\n\n', {"k": pl.String()}).rows() == [("a\n\nb",)]


@pytest.mark.parametrize("piece", [1, 7, 20, 1 << 20])
def test_a_file_is_the_same_in_pieces_of_any_size(
    monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr("lowwater.sources.text_file.PIECE", piece)
    text = '\ufeffk,v\na,1\n"b\nc",2\n,\n\n"d""e",4\r\nf,5'
    schema = {"v": pl.Int64(), "k": pl.String()}
    expected = [(1, "a"), (2, "b\nc"), (None, None), (4, 'd"e'), (5, "f")]
    assert read("csv", text, schema).rows() == expected
    assert said("csv", f"{text}x\ng,h\n", schema) == "line 8, column v: '5x' is no BIGINT"
    assert read("json", '{"v": 1}\n\n{"k": "a"}', schema).rows() == [(1, None), (None, "a")]


# ---- files that are still being written ----------------------------------------------------------


def added(reader: Any) -> list[tuple[Any, ...]]:
    """What a reader has to read now."""
    rows = []
    while reader.due() is not None:
        chunk = reader.read(0, 100)
        rows += chunk.rows() if chunk is not None else []
    return rows


def look(reader: Any) -> None:
    """Have a reader look at its folder once."""
    reader._over = Once()
    reader._look(lambda: None)


class Once:
    """An event that is set when it is asked for the second time."""

    asked = False

    def wait(self, seconds: float) -> bool:
        before, self.asked = self.asked, True
        return before


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("csv", 'v,k\n1,a\n23,"b\nc"\n456,d\n'),
        ("json", '{"v": 1, "k": "a"}\n{"v": 23, "k": "b\\nc"}\n\n{"v": 456, "k": "d"}\n'),
    ],
)
def test_a_line_of_a_growing_file_is_read_when_it_has_its_end(kind: str, text: str) -> None:
    """However the file grows, no part of a line is ever taken for one."""
    schema, rows = {"v": pl.Int64(), "k": pl.String()}, [(1, "a"), (23, "b\nc"), (456, "d")]
    for step in (1, 2, 3, 5, 8, 13, 21, 100):
        path = Path(f"in{step}/a.{kind}")
        path.parent.mkdir()
        path.write_text("")
        reader, found = Files(kind, path.parent, schema, follow=True).open(), []
        for at in range(0, len(text), step):
            found += added(reader)
            assert found == rows[: len(found)]
            with path.open("a") as file:
                file.write(text[at : at + step])
            look(reader)
        assert found + added(reader) == rows
        assert not reader.ended


def test_a_growing_file_says_in_which_line_it_is_wrong() -> None:
    path = Path("in/a.csv")
    path.parent.mkdir()
    path.write_text("v\n1\n2")
    reader = Files("csv", "in", {"v": pl.Int64()}, follow=True).open()
    assert added(reader) == [(1,)]
    path.write_text("v\n1\n2\nx\n")
    look(reader)
    with pytest.raises(lw.BadInput, match=r"in/a.csv: line 4, column v: 'x' is no BIGINT"):
        added(reader)


def test_a_last_line_that_stays_unfinished_is_told_of_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = Path("in/a.csv")
    path.parent.mkdir()
    path.write_text("v\n1\n23")
    reader = Files("csv", "in", {"v": pl.Int64()}, follow=True).open()
    assert added(reader) == [(1,)]
    look(reader)
    monkeypatch.setattr("lowwater.sources.files.UNFINISHED_SECONDS", -1.0)
    with pytest.warns(lw.StreamWarning, match=r"in/a.csv ends in the middle of a line"):
        look(reader)
    look(reader)  # a second warning would be an error


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_an_engine_that_reads_files_once_wants_them_complete(kind: str) -> None:
    path = Path(f"in/a.{kind}")
    path.parent.mkdir()
    line = {"csv": "v\n23", "json": '{"v": 23}'}[kind]
    schema = {"v": pl.Int64()}
    path.write_text(line)
    with pytest.raises(lw.BadInput, match="no end of line"):
        Files(kind, "in", schema, follow=True).read_once(path)
    assert pl.concat(Files(kind, "in", schema).read_once(path)).rows() == [(23,)]
    path.write_text(f"{line}\n")
    assert pl.concat(Files(kind, "in", schema, follow=True).read_once(path)).rows() == [(23,)]


@pytest.mark.parametrize("dtype", [pl.Binary(), pl.List(pl.Int64()), pl.Struct({"a": pl.Int64()})])
def test_a_type_that_no_csv_holds_is_refused(dtype: Any) -> None:
    with pytest.raises(lw.QueryError, match="CSV cannot hold; declare it as STRING"):
        Files("csv", "in", {"v": dtype}, follow=True)


# ---- columns that never come ---------------------------------------------------------------------


def objects_in(*files: list[dict[str, Any]], follow: bool = False) -> list[tuple[Any, ...]]:
    """What is read of a folder of such files."""
    for number, each in enumerate(files):
        path = Path(f"in/{number}.json")
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(f"{json.dumps(one)}\n" for one in each))
    schema = {"value": pl.Int64(), "k": pl.String()}
    reader = Files("json", "in", schema, follow=follow).open()
    found = added(reader)
    assert reader.read(0, 1) is None  # as an engine does at the end
    return found


MISTYPED = {"vlaue": 1, "k": "a"}


@pytest.mark.parametrize("follow", [False, True])
def test_a_column_that_no_object_has_is_told_of_once(follow: bool) -> None:
    few, many = [[MISTYPED] * 3, [{"k": "b"}]], [[MISTYPED] * 600, [MISTYPED] * 600]
    says = r"json files at in.*: unknown column 'value'. Did you mean 'vlaue'\? Known: k, vlaue.*"
    with pytest.warns(lw.StreamWarning, match=f"{says} none of the 1,200 objects"):
        assert len(objects_in(*many, follow=follow)) == 1_200
    if follow:  # more may come
        for each in Path("in").iterdir():
            each.unlink()
        assert len(objects_in(*few, follow=True)) == 4
        return
    with pytest.warns(lw.StreamWarning, match=f"{says} none of the 4 objects"):
        assert len(objects_in(*few)) == 4


@pytest.mark.parametrize("one", [{"value": 1}, {"value": None}])
@pytest.mark.parametrize("place", [0, 1, 998, 999])
def test_a_column_that_some_objects_have_is_fine(one: dict[str, Any], place: int) -> None:
    given = [MISTYPED] * 999
    given.insert(place, one)
    assert len(objects_in(given)) == 1_000  # a warning would be an error
    assert len(objects_in(given[:500], given[500:])) == 1_000
