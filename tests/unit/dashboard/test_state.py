"""A state is plain, tells everything, and its history keeps its shape."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.dashboard.history import HISTORY, History, Saved, point_of, read_saved
from lowwater.dashboard.observation import Observation, WatchedQuery
from lowwater.dashboard.state import query_state
from lowwater.dashboard.watcher import Watcher
from lowwater.errors import OptionError, SinkError
from lowwater.plan.physical.planner import compile_plan
from tests.unit.dashboard.scenes import CLOCK, declared, looked, told
from tests.unit.running import finished


def state_of(query: lw.Stream, **options) -> dict:
    """The state of a run that is over; it survives JSON."""
    run = finished(query, **options)
    watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, False)
    state = query_state(Observation(watched, run.metrics(), CLOCK))
    assert json.loads(json.dumps(state, allow_nan=False)) == state
    return state


def test_the_graph_leads_from_streams_to_the_result():
    rows = pl.DataFrame({"ts": [1, 2, 70], "host": ["a", "b", "a"]})
    a, b = (lw.stream(rows, name=name, time="ts") for name in "ab")
    state = state_of(a.union(b).window("1 minute").agg(n="count(*)"))
    nodes = {node["id"]: node for node in state["nodes"]}
    assert nodes["union#2"]["inputs"] == ["a", "b"]
    assert nodes["result"]["inputs"] == ["window#3"]
    assert [node["kind"] for node in state["nodes"]] == [
        "stream", "stream", "operator", "operator", "result",
    ]  # fmt: skip
    assert state["rows_in"] == 6
    assert nodes["union#2"]["rows_in"] == 6
    assert state["rows_out"] == nodes["result"]["rows_in"] == 2
    assert state["latency"]["p50"] >= 0


def test_channels_are_told_with_their_own_lag_and_late_rows():
    query = declared("s", channel="host").window("1 minute").agg(n="count(*)")
    late = [("b", "late", 2, 7.0, 3.0)]
    found = looked(query, told("s", 100, channels={"a": 100, "b": 160}, late=late))
    state = query_state(found)
    (stream,) = state["streams"]
    assert [(c["name"], c["lag"], c["late_rows"]) for c in stream["channels"]] == [
        ("a", 60.0, 0),
        ("b", 0.0, 2),
    ]
    assert stream["lag"] == 60.0
    assert stream["slowest"] == "a"
    assert {n["id"] for n in state["nodes"] if n["holds"]} == {"s", "window#1"}
    assert [n["id"] for n in state["nodes"] if n["waits"]] == ["window#1"]
    assert state["late"] == [
        {"stream": "s", "channel": "b", "reason": "late", "rows": 2, "longest": 7.0, "mean": 3.0}
    ]


def test_streams_by_the_clock_lag_behind_it_and_others_behind_the_newest():
    query = declared("a").union(declared("b"))
    now = int(CLOCK)
    near = looked(query, told("a", now - 5), told("b", now - 8), live=True)
    assert (near.lag_of("a"), near.lag_of("b")) == (5.0, 8.0)
    old = looked(query, told("a", 500), told("b", 497), live=True)
    assert (old.lag_of("a"), old.lag_of("b")) == (0.0, 3.0)


def test_a_join_without_a_window_tells_what_it_should_keep_and_keeps():
    values = pl.DataFrame({"t": list(range(300))})
    a, b = (lw.stream(values, name=name, time="t", progress=lw.unpromised()) for name in ("a", "b"))
    state = state_of(a.join(b, on=[("t", "t")]), chunk_rows=50)
    (join,) = state["joins"]
    assert [each["name"] for each in join["inputs"]] == ["a", "b"]
    assert all(each["held"] is not None for each in join["inputs"])
    assert join["accuracy"] == 1.0
    series = point_of({"queries": [state]})["1"]
    assert {f"held/{join['operator']}/a", f"predicted/{join['operator']}/b"} <= set(series)


def test_an_update_stream_tells_how_stale_each_key_is():
    rows = pl.DataFrame({"ts": list(range(40)), "k": [n % 4 for n in range(40)]})
    at = (pl.col("ts") * 1_000_000).cast(pl.Datetime("us"))
    stream = lw.stream(
        lw.replay(rows.with_columns(at=at), arrival="at"),
        name="ticks",
        time="ts",
        update_key="k",
    )
    state = state_of(stream, charge=lw.per_row("5 seconds"))
    (updates,) = state["updates"]
    assert updates["keys"] == 4
    assert len(updates["by_key"]) == 4
    assert updates["by_key"][0]["average"] >= updates["by_key"][-1]["average"] > 0
    assert updates["given_up"] > 0
    assert any("out of date on average" in each["text"] for each in state["words"])


def test_an_order_that_is_chosen_tells_its_strategy():
    rows = pl.DataFrame({"ts": [1, 2, 3], "host": ["a", "b", "a"]})
    a, b = (lw.stream(rows, name=name, time="ts") for name in "ab")
    state = state_of(a.join(b, on=["host"], within="1 minute", order="adaptive"))
    (chosen,) = state["strategies"]
    assert chosen["strategy"]
    assert chosen["because"]


def test_a_learned_promise_tells_how_complete_it_is():
    rows = pl.DataFrame({"ts": list(range(100)), "host": ["a"] * 100})
    stream = lw.stream(rows, name="s", time="ts", progress=lw.learned(0.99))
    (told_,) = state_of(stream.window("10 seconds").agg(n="count(*)"))["streams"]
    assert told_["completeness"]["target"] == 0.99
    assert told_["completeness"]["achieved"] == 1.0


# ---- history -----------------------------------------------------------------------------------


@given(st.integers(0, 10_000))
def test_every_series_is_as_long_as_the_times_and_holds_what_was_put_in(seed):
    dice = random.Random(seed)
    limit, history, put = dice.randint(1, 12), History(dice.randint(1, 12)), []
    history = History(limit)
    for at in range(dice.randint(0, 30)):
        numbers = {name: dice.random() for name in dice.sample("abcd", dice.randint(0, 4))}
        history.add(at, {"1": numbers})
        put.append((at, numbers))
    start = dice.choice([None, dice.randint(-1, 31)])
    kept = [each for each in put[-limit:] if start is None or each[0] > start]
    found = history.since(start)
    assert found["at"] == [at for at, _ in kept]
    for name in "abcd":
        values = [numbers.get(name) for _, numbers in kept]
        series = found["queries"].get("1", {}).get(name, [None] * len(kept))
        assert series == values


def test_what_is_saved_is_read_again_and_never_grows_beyond_two_hours(tmp_path):
    saved = Saved(tmp_path / "m", limit=5)
    for at in range(23):
        saved.add(float(at), {"1": {"x": at}})
        lines = (tmp_path / "m" / HISTORY).read_text().splitlines()
        assert len(lines) < 10
    saved.put({"queries": [], "live": True})
    state, history = read_saved(tmp_path / "m")
    assert (state["live"], state["saved"]) == (False, str(tmp_path / "m"))
    found = history.since()
    assert found["at"][-5:] == [18.0, 19.0, 20.0, 21.0, 22.0]
    assert found["queries"]["1"]["x"][-1] == 22


def test_a_line_that_was_cut_off_by_a_crash_is_passed_over(tmp_path):
    saved = Saved(tmp_path)
    saved.add(1.0, {"1": {"x": 1}})
    saved.put({"queries": []})
    with (tmp_path / HISTORY).open("a") as file:
        file.write('[2.0, {"1": {"x"')
    assert read_saved(tmp_path)[1].since()["at"] == [1.0]


def test_a_folder_without_metrics_says_how_to_save_them(tmp_path):
    with pytest.raises(OptionError, match="--save-metrics"):
        read_saved(tmp_path)
    (tmp_path / "state.json").write_text("{")
    with pytest.raises(OptionError, match="cannot be read"):
        read_saved(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(SinkError, match="cannot save metrics"):
        Saved(tmp_path / "file" / "m")


def test_a_watcher_looks_one_last_time_and_saves_the_end(tmp_path):
    door = lw.push({"ts": pl.Int64})
    query = lw.stream(door, name="door", time="ts").window("1 minute").agg(n="count(*)")
    run = query.run()
    watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, True)
    watcher = Watcher("test", "embedded", [watched], save=tmp_path)
    assert watcher.state["outcome"] == "running"
    door.send([{"ts": 1}, {"ts": 70}])
    door.close()
    run.await_termination()
    watcher.settle()
    assert (watcher.state["outcome"], watcher.state["live"]) == ("done", False)
    state, history = read_saved(tmp_path)
    assert state["queries"] == watcher.state["queries"]
    assert state["queries"][0]["rows_out"] == 2
    assert history.since()["at"] == watcher.history.since()["at"]
    assert datetime.fromtimestamp(state["at"], UTC) >= datetime.fromtimestamp(state["started"], UTC)


def test_a_run_that_cannot_be_looked_at_any_more_is_shown_as_it_was(tmp_path):
    query = lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts")
    run = finished(query)
    watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, False)
    watcher = Watcher("test", "embedded", [watched], save=tmp_path / "m")
    watcher._thread.join()
    (tmp_path / "m" / HISTORY).unlink()
    (tmp_path / "m" / HISTORY).mkdir()
    watcher.settle()
    assert "could not be read or saved: IsADirectoryError" in watcher.state["error"]
    assert watcher.state["queries"][0]["rows_in"] == 2


def test_a_run_whose_first_look_fails_goes_on_and_is_looked_at_again(monkeypatch):
    door = lw.push({"ts": pl.Int64})
    query = lw.stream(door, name="door", time="ts")
    run = query.run()
    watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, True)
    with monkeypatch.context() as broken:
        broken.setattr(run, "metrics", lambda: iter([]).__next__())
        watcher = Watcher("test", "embedded", [watched])
        assert "could not be read or saved: StopIteration" in watcher.state["error"]
        assert (watcher.state["outcome"], watcher.state["queries"]) == ("running", [])
    door.send([{"ts": 1}])
    door.close()
    assert run.await_termination(60)
    watcher.settle()
    assert (watcher.state["outcome"], watcher.state["error"]) == ("done", None)
    assert watcher.state["queries"][0]["rows_out"] == 1


def test_a_run_that_is_stopped_says_so_and_one_that_had_ended_does_not():
    door = lw.push({"ts": pl.Int64})
    for query, outcome in (
        (lw.stream(door, name="door", time="ts"), "stopped"),
        (lw.stream(pl.DataFrame({"ts": [1, 2]}), name="s", time="ts"), "done"),
    ):
        run = query.run()
        watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, True)
        watcher = Watcher("test", "embedded", [watched])
        if outcome == "done":
            run.await_termination()
        run.stop()
        watcher.settle()
        assert watcher.state["outcome"] == outcome


SECRET = "4111-1111"


def failing(frame: pl.DataFrame) -> pl.DataFrame:
    raise ValueError(f"cannot read {frame['host'][0]}")


def refusing_sink(table: object) -> None:
    raise ValueError(f"cannot write {table}")


@pytest.mark.parametrize("show_rows", [False, True])
@pytest.mark.parametrize("way", ["operator", "late", "sink"])
def test_values_of_rows_in_an_error_are_told_only_where_rows_may_be_shown(way, show_rows):
    rows = pl.DataFrame({"ts": [5, 1], "host": [SECRET, SECRET]})
    late = "fail" if way == "late" else "drop"
    stream = lw.stream(rows, name="a", time="ts", late=late, channel="host")
    query = stream.apply(failing) if way == "operator" else stream
    run = query.run(sink=refusing_sink if way == "sink" else None)
    with pytest.raises(lw.LowwaterError, match=SECRET):
        run.await_termination()
    watched = WatchedQuery("1", "query", "kept", compile_plan(query.node), run, False)
    watcher = Watcher("p", "embedded", [watched], show_rows=show_rows)
    watcher.settle()
    assert (SECRET in json.dumps(watcher.state["error"])) is show_rows
    assert (SECRET in json.dumps(watcher.state["queries"][0]["error"])) is show_rows
