"""Lines of text as rows."""

from __future__ import annotations

import socket

import polars as pl
import pytest

import lowwater as lw
from lowwater.sources.lines import Lines, parse_lines

SCHEMA = {"k": pl.String(), "v": pl.Int64(), "ts": pl.Datetime("us")}
GOOD = [b"a,1,2024-01-01", b'{"v": 2, "ts": "2024-01-01T00:00:00Z"}', b"a,,"]


def test_lines_are_csv_or_json_and_values_may_be_empty() -> None:
    assert parse_lines(GOOD, SCHEMA)["v"].to_list() == [1, 2, None]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("a,one,", "column v: 'one' is no BIGINT"),
        ("a,1,soon", "column ts: 'soon' is no TIMESTAMP"),
        ("a,1", "too few values: 2 for 3 columns"),
        ("a,1,2024-01-01,b", "too many values: 4 for 3 columns"),
        ('"a,1', "too few values: 1 for 3 columns"),
        ('{"v": "one"}', "column v: 'one' is no BIGINT"),
        ('{"v": 1', "no JSON object"),
    ],
)
def test_a_line_that_cannot_be_read_is_shown_and_says_why(line: str, why: str) -> None:
    with pytest.raises(lw.BadInput) as caught:
        parse_lines([*GOOD, line.encode()], SCHEMA)
    assert str(caught.value) == f"cannot read the line {line!r}: {why}"


def listened(sent: bytes) -> tuple[list[tuple[object, ...]], Exception | None]:
    """What is read of a connection that is closed after this, and how it ends."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        reader = Lines("127.0.0.1", server.getsockname()[1], SCHEMA).open()
        connection, _ = server.accept()
        with connection:
            connection.sendall(sent)
    reader._listen(lambda: None)
    rows: list[tuple[object, ...]] = []
    try:
        while not reader.ended:
            chunk = reader.read(0, 100)
            rows += chunk.rows() if chunk is not None else []
        assert reader.read(0, 100) is None  # as an engine does at the end
    except lw.BadInput as error:
        return rows, error
    finally:
        reader.release()
    return rows, None


def test_a_connection_closed_in_the_middle_of_a_line_is_told_of() -> None:
    rows, error = listened(b"a,1,\nb,2,\n")
    assert (len(rows), error) == (2, None)
    for cut in (b"c", b"c,3", b"c,3,", b"c,3,2024-01-01"):
        rows, error = listened(b"a,1,\nb,2,\n" + cut)
        assert len(rows) == 2
        assert f"closed in the middle of a line: {cut.decode()!r} has no end of line" in str(error)


JSON = b'{"k": "a", "vv": 1, "ts": "2024-01-01"}\n'


def test_a_column_that_no_object_of_a_connection_has_is_told_of() -> None:
    with pytest.warns(
        lw.StreamWarning, match=r"lines from .*'v'\. Did you mean 'vv'\?.* 3 objects"
    ):
        listened(JSON * 3)
    with pytest.warns(lw.StreamWarning, match=r"unknown column 'v'.* 1,000 objects"):
        listened(JSON * 1_000 + b'{"v": 1}\n')
    assert listened(JSON * 3 + b'{"v": null}\n')[1] is None  # a warning would be an error
    assert listened(JSON * 3 + b"a,1,\n")[1] is None
    assert listened(b"")[1] is None
