"""Several queries run at the same time, and each gives what it gives alone."""

from __future__ import annotations

import polars as pl
import pytest

import lowwater as lw
from tests.unit.running import LONG

ROWS = pl.DataFrame({"ts": [1, 5, 3, 70, 130], "v": [1, 2, 3, 4, 5]})


def stream(name: str = "s") -> lw.Stream:
    return lw.stream(ROWS, name=name, time="ts")


QUERIES = {
    "rows": stream().where("v > 1"),
    "minutes": stream().window("1 minute").agg(n="count(*)"),
    "both": stream("a").join(stream("b"), on="v", within="1 minute"),
}


def ended(runs) -> None:
    assert runs.await_termination(timeout=LONG)


def test_each_query_gives_what_it_gives_alone():
    runs = lw.together(QUERIES).run()
    ended(runs)
    assert list(runs) == list(QUERIES)
    assert len(runs) == 3
    assert "rows" in runs
    for name, query in QUERIES.items():
        alone = query.run()
        alone.await_termination()
        assert runs.results(name) == runs[name].results() == alone.results()
        assert runs[name].late_rows(None if name != "both" else "a") == alone.late_rows(
            None if name != "both" else "a"
        )
        assert runs.metrics()[name].rows_out == alone.metrics().rows_out
    assert not runs.active


def test_each_query_has_its_own_destination(tmp_path):
    late = []
    runs = lw.together(QUERIES).run(
        sink={"rows": tmp_path / "rows"}, late_sink={"minutes": late.append}
    )
    ended(runs)
    assert pl.read_parquet(tmp_path / "rows").height == runs["rows"].metrics().rows_out == 3
    assert late[0]["ts"].to_pylist() == [3]
    assert runs.results("minutes").num_rows == 3


def test_plans_are_explained_by_name():
    text = lw.together(QUERIES).explain()
    for name, query in QUERIES.items():
        assert f"query {name!r}\n{query.explain()}" in text


def test_failure_of_one_query_stops_the_others_and_names_it():
    source = lw.push({"ts": pl.Int64})

    def broken(rows: pl.DataFrame) -> pl.DataFrame:
        raise ValueError("no")

    runs = lw.together(
        {"live": lw.stream(source, name="live", time="ts"), "bad": stream().apply(broken)}
    ).run()
    with pytest.raises(lw.OperatorError, match="no") as raised:
        runs.await_termination(timeout=LONG)
    assert raised.value.__notes__ == ["in query 'bad'"]
    assert not runs.active
    assert runs["live"].stopped
    with pytest.raises(lw.OperatorError) as again:
        runs.stop()
    assert again.value.__notes__ == ["in query 'bad'"]


def test_stopping_ends_all():
    sources = {name: lw.push({"ts": pl.Int64}) for name in "ab"}
    runs = lw.together(
        {name: lw.stream(each, name=name, time="ts") for name, each in sources.items()}
    ).run()
    assert runs.active
    assert not runs.await_termination(timeout=0)
    runs.stop()
    assert not runs.active
    assert runs.await_termination()


def test_a_query_that_cannot_be_set_up_closes_the_sinks_of_the_others():
    class Sink:
        closed = False

        def write(self, rows):
            """Take nothing."""

        def close(self):
            self.closed = True

    source, kept = lw.push({"ts": pl.Int64}), Sink()
    live = lw.stream(source, name="live", time="ts")
    with pytest.raises(lw.StreamError, match="can feed one run only"):
        lw.together({"one": live, "two": live}).run(sink={"one": kept})
    assert kept.closed


@pytest.mark.parametrize(
    ("queries", "said"),
    [
        ({}, "takes queries by name"),
        ([stream()], "takes queries by name"),
        ({1: stream()}, "a name of a query is a text, not 1"),
        ({"": stream()}, "a name of a query is a text, not ''"),
        ({"a": ROWS}, "'a' is a DataFrame and no query"),
    ],
)
def test_what_is_no_query_by_name_is_refused(queries, said):
    with pytest.raises(lw.OptionError, match=said):
        lw.together(queries)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"sink": "folder"}, r"names a destination for each query, sink=\{'rows': ...\}"),
        ({"sink": {"row": "folder"}}, "sink=: .*'row'.*Did you mean 'rows'"),
        ({"late_sink": {"x": "folder"}}, "late_sink=: .*'x'"),
        ({"clock": lw.VirtualClock()}, "each has its own clock"),
        ({"checkpoint": "folder"}, 'is for engine="spark"'),
        ({"engine": "none"}, "unknown engine 'none'"),
    ],
)
def test_options_that_cannot_be_met_are_refused(options, said):
    with pytest.raises(lw.OptionError, match=said):
        lw.together(QUERIES).run(**options)


def test_a_name_that_is_no_folder_is_refused_with_a_checkpoint():
    with pytest.raises(lw.OptionError, match="can have no folder of its name"):
        lw.together({"a/b": stream()}).run(engine="spark", checkpoint="folder")


def test_an_unknown_query_is_named_with_the_known_ones():
    runs = lw.together(QUERIES).run()
    ended(runs)
    with pytest.raises(lw.OptionError, match="Did you mean 'minutes'"):
        runs["minute"]


# ---- one memory budget -------------------------------------------------------------------------


def test_queries_share_a_memory_budget_and_one_that_does_not_fit_is_refused_by_name() -> None:
    frame = pl.DataFrame({"epoch": range(2_000)})
    known, wild = (
        [
            lw.stream(frame, name=f"{kind}{at}", time="epoch", progress=lw.unpromised(**facts))
            for at in (1, 2)
        ]
        for kind, facts in (("known", {"disorder": 300, "rate": 100}), ("wild", {}))
    )
    queries = lw.together(
        {
            "first": lw.join(known, on="epoch"),
            "other": lw.join(wild, on="epoch"),
            "plain": known[0].where("epoch < 5"),
        }
    )
    runs = queries.run(memory="100 kB", chunk_rows=100)
    assert runs.await_termination(60)
    assert [runs.results(name).num_rows for name in runs] == [2_000, 2_000, 5]
    for name in ("first", "other"):
        about = runs[name].metrics().operators[-1].about
        assert about["memory budget"] == 100_000
    assert "of the 100 kB of all joins, divided by need" in queries.explain(memory="100 kB")
    with pytest.raises(lw.AdmissionError, match="query 'first': to be sure of"):
        queries.run(memory="1 kB", admission="refuse")
    with pytest.raises(lw.OptionError, match="rates= goes with memory="):
        queries.run(rates={"known1": 3})
