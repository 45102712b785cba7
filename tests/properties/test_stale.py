"""Channels that are set aside: who is, what it frees, what becomes of their rows."""

from __future__ import annotations

import copy
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.errors import OptionError, StreamWarning
from lowwater.metrics import HoldingChannel, holding_channel
from lowwater.metrics.words import holding_words
from lowwater.progress.demand import Demand
from lowwater.progress.intake import BatchIntake, Intake
from lowwater.progress.stale import StaleChannels
from lowwater.stream.duration import SECOND
from lowwater.stream.element import BEGINNING
from tests.support.local_spark import LocalSpark, Unordered
from tests.support.oracle import answer, multiset
from tests.unit.progress.judging import spec_of, table
from tests.unit.running import finished

YEAR = 365 * 86_400
ANY = Demand.any_value()
SCHEMA = {"at": pl.Float64, "ts": pl.Int64, "c": pl.String}
COUNTS = (
    "SELECT CAST(floor(ts / 10.0) AS BIGINT) * 10, CAST(floor(ts / 10.0) AS BIGINT) * 10 + 10,"
    " count(*) FROM a GROUP BY ALL"
)


def log(offsets: dict[str, int], length: int, skipped: frozenset[str] = frozenset()) -> Any:
    """Channels that each send a row a second, by clocks that are off by so much."""
    rows = [
        (at + place / 10, at + offset, name)
        for at in range(length)
        for place, (name, offset) in enumerate(offsets.items())
        if name not in skipped
    ]
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def declared(source: Any, after: Any = "5 seconds", **options: Any) -> lw.Stream:
    return lw.stream(
        source, name="a", time="ts", channel="c", jump=None, stale_after=after, **options
    )


def waits(source: Any, options: dict[str, Any]) -> tuple[list[float], Any]:
    """How long answers of windows took that are not years ago, and the run."""
    clock, found = lw.VirtualClock(), []
    query = declared(source, **options).window(10).agg(n="count(*)")

    def sink(rows: Any) -> None:
        ends = rows["window_end"].to_pylist()
        found.extend(clock.now() / 1e9 - end for end in ends if end > 0)

    return found, finished(query, clock=clock, tick=0, sink=sink)


# ---- who is stale ------------------------------------------------------------------------------

MARKS = st.dictionaries(st.sampled_from("abcdefgh"), st.integers(-500, 500), min_size=1, max_size=8)


def channel_at(mark: int) -> Any:
    """Return a channel whose mark follows from its rows."""
    return SimpleNamespace(mark=mark, row_mark=mark)


@given(MARKS, st.integers(1, 300), st.integers(1, 10**6))
def test_one_channel_in_the_future_makes_no_other_stale(
    marks: dict[str, int], after: int, ahead: int
) -> None:
    alone, beside = StaleChannels(after, SECOND), StaleChannels(after, SECOND)
    places = {name: channel_at(mark) for name, mark in marks.items()}
    top = max(marks.values())
    before = {name for name, _ in alone.update(places, min(marks.values())).stale}
    future = places | {"future": channel_at(top + ahead)}
    now = {name for name, _ in beside.update(future, min(marks.values())).stale}
    within = {name for name, mark in marks.items() if top - mark <= after}
    assert not within & now
    assert not within & before


@given(MARKS, st.integers(1, 300))
def test_who_is_behind_most_others_is_set_aside(marks: dict[str, int], after: int) -> None:
    stale = StaleChannels(after, SECOND)
    stale.update(
        {name: channel_at(mark) for name, mark in marks.items()},
        min(marks.values()),
    )
    many = max(2, -(-len(marks) // 2))
    behind = {
        name
        for name, mark in marks.items()
        if sum(other - mark > after for other in marks.values()) >= many
    }
    assert stale.names == behind
    assert len(stale.names) < len(marks)


def test_a_pause_of_the_whole_stream_makes_no_channel_silent() -> None:
    stale = StaleChannels(10**9, 60 * SECOND)
    places = {name: channel_at(5) for name in "abc"}
    stale.observe("abc", 0)
    stale.observe("a", 10**6 * SECOND)
    assert not stale.update(places, 5)
    for at in range(1, 9):
        stale.observe("a", (10**6 + at * 20) * SECOND)
    assert {name for name, _ in stale.update(places, 5).stale} == {"b", "c"}


# ---- what it frees -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"idle": lw.on_demand(skew=2)}], ids=["alone", "idle"])
@pytest.mark.parametrize("offset", [-3 * YEAR, 40 * YEAR])
def test_a_channel_with_another_clock_holds_nobody(options: Any, offset: int) -> None:
    clocks = {"a": 0, "b": 0, "d": 0, "odd": offset}
    expected, _ = waits(lw.replay(log(clocks, 60, frozenset(["odd"])), arrival="at"), options)
    if offset < 0:
        with pytest.warns(StreamWarning, match="'odd': stale, because it is 1095 days behind"):
            found, run = waits(lw.replay(log(clocks, 60), arrival="at"), options)
        assert run.metrics().stream("a").stale_channels == 1
        (aside,) = (each for each in run.metrics().stream("a").channels if each.stale)
        assert aside.channel == "odd"
    else:
        found, run = waits(lw.replay(log(clocks, 60), arrival="at"), options)
        assert run.metrics().stream("a").stale_channels == 0
        assert run.metrics().late_rows == 0
        found = [each for each in found if each > -YEAR]
    assert [round(each) for each in sorted(found)[:-1]] == [
        round(each) for each in sorted(expected)[:-1]
    ]


def test_an_announced_channel_that_was_never_heard_counts_as_silent() -> None:
    rows = log({"a": 0, "b": 0}, 60)
    last = pl.DataFrame([(100.0, 100, "never")], schema=SCHEMA, orient="row")
    source = lw.replay(pl.concat([rows, last]), arrival="at")
    with (
        pytest.warns(StreamWarning, match="'never': stale, because it has sent nothing"),
        pytest.warns(StreamWarning, match="'never': has caught up"),
    ):
        found, run = waits(source, {})
    assert min(found) < 2
    assert run.metrics().late_rows == 0  # it comes back with a row that breaks no promise


def test_it_comes_back_when_it_has_caught_up() -> None:
    rows = pl.concat([log({"a": 0, "b": 0, "old": -100}, 20), log({"a": 20, "b": 20}, 5)])
    spec = spec_of(rows, channel="c", stale_after="5 seconds")
    judged = Intake(spec, {"ts": ANY}, ("a", "b", "old"))
    with pytest.warns(StreamWarning, match=": stale, because it"):
        late = judged.take(rows, 0).refused
    assert late is None  # what came before it was set aside kept every promise
    more = pl.DataFrame([(0.0, -50, "old"), (0.0, 24, "old")], schema=SCHEMA, orient="row")
    with pytest.warns(StreamWarning, match="'old': has caught up"):
        late = judged.take(more, 0).refused
    assert late is not None
    assert late["ts"].to_list() == [-50]
    channels = judged.channels("ts", 9)
    assert channels is not None
    assert channels.stale == ()


# ---- what becomes of rows ----------------------------------------------------------------------

OFFSETS = st.lists(st.sampled_from([0, 0, 0, 1, -3, -40, -YEAR, YEAR]), min_size=1, max_size=6)


@pytest.mark.filterwarnings("ignore::lowwater.errors.StreamWarning")
@given(OFFSETS, st.integers(0, 99))
def test_answers_are_those_of_the_rows_that_were_let_in(offsets: list[int], seed: int) -> None:
    rows = log({f"c{at}": offset for at, offset in enumerate(offsets)}, 12)
    for shown in ("embedded", "spark"):
        source: Any = Unordered(rows, [rows.height // 3] * 3) if shown == "spark" else rows
        query = declared(source).window(10).agg(n="count(*)")
        if shown == "embedded":
            run = finished(query, chunk_rows=1 + seed % 7)
            answers, late = pl.DataFrame(run.results()), pl.DataFrame(run.late_rows("a"))
        else:
            local = LocalSpark(query, seed, 1 + seed % 3)
            answers = local.results()
            found = local.late("a")
            late = rows.clear() if found is None else found
        refused = multiset(late.select(rows.columns).rows())
        kept = list((multiset(rows.rows()) - refused).elements())
        batch = pl.DataFrame(kept, schema=SCHEMA, orient="row")
        assert multiset(answers.rows()) == answer(COUNTS, {"a": batch}), shown


@pytest.mark.filterwarnings("ignore::lowwater.errors.StreamWarning")
@pytest.mark.parametrize("kind", [Intake, BatchIntake])
@given(OFFSETS, st.integers(1, 20))
def test_a_restart_decides_the_same(kind: Any, offsets: list[int], size: int) -> None:
    rows = log({f"c{at}": offset for at, offset in enumerate(offsets)}, 10)
    spec = spec_of(rows, channel="c", stale_after="5 seconds")
    steady, again = kind(spec, {"ts": ANY}), kind(spec, {"ts": ANY})
    for at in range(0, rows.height, size):
        chunk, now = rows.slice(at, size), at * SECOND
        for judged in (steady, again):
            if kind is BatchIntake:
                judged.absorb(judged.digest(judged.conform(chunk, now)), now, chunk.height)
            else:
                judged.take(chunk, now)
        saved = copy.deepcopy(again.snapshot())
        again = kind(spec, {"ts": ANY})
        again.restore(saved)
        told, before = again.channels("ts", 9), steady.channels("ts", 9)
        assert told is not None
        assert before is not None
        assert set(told.behind) == set(before.behind)
        assert set(told.stale) == set(before.stale)
        assert again.mark("ts") == steady.mark("ts")


# ---- what is said and refused ------------------------------------------------------------------


def test_what_holds_a_stream_is_said() -> None:
    judged = Intake(spec_of(channel="c"), {"ts": ANY}, "ab")
    judged.take(table([(100, "a", None), (40, "b", None)]), now=0)
    channels = judged.channels("ts", 9)
    assert channels is not None
    held = holding_channel(channels.behind, channels.ahead, (), judged.spec.domains["ts"], None)
    assert held == HoldingChannel("b", 60 * SECOND, None)
    told = holding_words(held)
    assert told.startswith("channel 'b' holds the stream back: it is 1 minute behind the one")
    assert "stale_after='1 hour' (STALE AFTER 1 HOUR in a pipeline)" in told
    assert judged.mark("ts") > BEGINNING


def test_it_is_refused_where_there_are_no_channels() -> None:
    with pytest.raises(OptionError, match="stale_after= sets when a channel is stale"):
        spec_of(stale_after="1 hour")
    with pytest.raises(OptionError, match="stale_after= sets when a channel is stale"):
        spec_of(groups="c", stale_after="1 hour")
    with pytest.raises(OptionError, match="a length of time above zero"):
        spec_of(channel="c", stale_after=0)


def test_explain_says_it() -> None:
    query = declared(log({"a": 0}, 3)).window(10).agg(n="count(*)")
    assert "stale after 5 seconds" in query.explain()
