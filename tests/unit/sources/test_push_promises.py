"""Promises beside pushed rows: of the whole stream, of a channel, of a group."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.stream.element import BEGINNING
from tests.support.batches import promised
from tests.support.oracle import answer, multiset, table_rows
from tests.unit.running import LONG

SCHEMA = {"ts": pl.Int64, "s": pl.String, "v": pl.Int64}
Row = tuple[int, str, int]
events = st.lists(
    st.one_of(
        st.tuples(st.just("rows"), st.integers(0, 40), st.sampled_from("abc")),
        st.tuples(st.just("promise"), st.integers(0, 40), st.sampled_from([None, "a", "b", "c"])),
    ),
    max_size=24,
)
WINDOWS = """
    SELECT CAST(floor(ts / 10.0) AS BIGINT) * 10, CAST(floor(ts / 10.0) AS BIGINT) * 10 + 10,
           s, count(*) FROM kept GROUP BY ALL
"""


def judged(sent: list[Any], contract: Any, whole: bool) -> tuple[list[Row], list[Row]]:
    """The rows that keep all promises and those that do not, by the plain definition.

    ``whole``: whether something is promised of the whole stream, where new names join.
    """
    floor: dict[str, int] = {}
    seen: dict[str, list[tuple[int, None]]] = {}
    every, stream = BEGINNING, BEGINNING

    def mark(name: str) -> int:
        return max(every, floor[name], promised(seen[name], contract))

    def least() -> int:
        return max(stream, min(map(mark, seen), default=every))

    kept: list[Row] = []
    late: list[Row] = []
    for at, (kind, time, name) in enumerate(sent):
        stream = least()
        if name is not None and name not in seen:
            floor[name] = stream if whole else BEGINNING
            seen[name] = []
        if kind == "rows":
            (late if time < mark(name) else kept).append((time, name, at))
            seen[name].append((time, None))
        elif name is None:
            every = max(every, time)
        else:
            floor[name] = max(floor[name], time)
    return kept, late


@pytest.mark.filterwarnings("ignore::lowwater.StreamWarning")
@given(
    events,
    st.sampled_from(["channel", "groups"]),
    st.sampled_from([lw.ordered(), lw.within(7), lw.within_rows(2)]),
    st.booleans(),
)
def test_answers_and_late_rows_are_those_of_the_definition(
    sent: list[Any], key: str, contract: Any, apart: bool
) -> None:
    source = lw.push(SCHEMA)
    options: Any = {key: "s"}
    stream = lw.stream(source, time="ts", progress=contract, jump=None, **options)
    counted = stream.window(10).group_by("s").agg(n="count(*)")
    query = counted if apart else counted.order_by("window_start")
    for at, (kind, time, name) in enumerate(sent):
        if kind == "rows":
            source.send({"ts": time, "s": name, "v": at})
        elif name is None:
            source.punctuate(time)
        else:
            source.punctuate("ts", time, **{"group" if key == "groups" else "channel": name})
    source.close()
    run = query.run()
    assert run.await_termination(LONG)
    kept, late = judged(sent, contract, key == "channel" or not apart)
    frame = pl.DataFrame(kept, SCHEMA, orient="row")
    assert table_rows(pl.DataFrame(run.results())) == answer(WINDOWS, {"kept": frame})
    assert multiset(pl.DataFrame(run.late_rows()).select(list(SCHEMA)).rows()) == multiset(late)


def waiting(key: str, *sent: dict[str, Any], **options: Any) -> tuple[lw.Push, lw.Run]:
    """A run that waits for more, over a stream with channels or groups."""
    source = lw.push(SCHEMA | {"k": pl.Int64})
    declared: Any = {key: options.pop(key, "s")}
    stream = lw.stream(source, name="live", time="ts", **declared, **options)
    keys = declared[key] if isinstance(declared[key], tuple) else ("s",)
    source.send(list(sent))
    return source, stream.window(10).group_by(*keys).agg(n="count(*)").run()


def ended(source: lw.Push, run: lw.Run) -> pl.DataFrame:
    source.close()
    assert run.await_termination(LONG)
    return pl.DataFrame(run.results())


def test_a_promise_announces_a_channel_which_then_holds_the_stream() -> None:
    source = lw.push(SCHEMA)
    stream = lw.stream(source, name="live", time="ts", channel="s")
    source.send([{"ts": 1, "s": "a"}, {"ts": 2, "s": "a"}])
    source.punctuate("ts", 5, channel="b")
    source.send({"ts": 30, "s": "a"})
    source.send({"ts": 7, "s": "b"})
    run = stream.window(10).agg(n="count(*)").run()
    assert ended(source, run)["n"].to_list() == [3, 1]
    assert run.metrics().late_rows == 0


def test_a_group_of_several_columns_is_a_tuple_or_a_mapping() -> None:
    rows = [{"ts": 1, "s": "a", "k": 1}, {"ts": 2, "s": "a", "k": 2}]
    source, run = waiting("groups", *rows, groups=("s", "k"))
    source.punctuate("ts", 10, group=("a", 1))
    source.punctuate(10, group={"k": 2, "s": "a"})
    source.send([{"ts": 9, "s": "a", "k": 1}, {"ts": 9, "s": "a", "k": 2}])
    assert ended(source, run)["n"].to_list() == [1, 1]
    assert run.metrics().late_rows == 2


@pytest.mark.parametrize(
    ("key", "promise", "message"),
    [
        ("groups", {"channel": "a"}, r"has groups, by s, and no channels; .* group='a'"),
        ("channel", {"group": "a"}, r"has channels, by s, and no groups; .* channel='a'"),
        ("channel", {"channel": 5}, r"column 's' is of type String, and no value of it is 5"),
        ("groups", {"group": ("a", 1)}, r"a group is named by s: give a value, or a mapping"),
        ("groups", {"group": {"k": 1}}, r"a group is named by s: give a value, or a mapping"),
        ("groups", {"group": "a", "channel": "a"}, r"about a channel or a group"),
    ],
)
def test_a_part_that_the_stream_cannot_have_is_refused(
    key: str, promise: dict[str, Any], message: str
) -> None:
    source, run = waiting(key, {"ts": 1, "s": "a"})
    with pytest.raises(lw.OptionError, match=message):
        source.punctuate("ts", 10, **promise)
    assert ended(source, run)["n"].to_list() == [1]


@pytest.mark.parametrize("wrong", [(), (None,), ("ts",), ("ts", None), (5, 6)])
def test_a_promise_without_a_column_and_a_bound_is_refused(wrong: tuple[Any, ...]) -> None:
    with pytest.raises((lw.OptionError, TypeError)):
        lw.push(SCHEMA).punctuate(*wrong)


def test_a_promise_of_one_channel_that_goes_back_is_ignored_with_a_warning() -> None:
    source = lw.push(SCHEMA)
    stream = lw.stream(source, name="live", time="ts", channel="s")
    source.punctuate("ts", 20, channel="a")
    source.punctuate("ts", 10, channel="a")
    source.close()
    with pytest.warns(lw.StreamWarning, match="went backwards; the mark is 20"):
        stream.collect()
