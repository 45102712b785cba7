"""The page is served to this machine, and nothing can be changed through it."""

from __future__ import annotations

import json
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

import lowwater as lw
from lowwater.dashboard.options import Dashboard
from lowwater.dashboard.page import saved_page
from lowwater.errors import OptionError


def fetched(url: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    request = urllib.request.Request(url, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, dict(answer.headers), answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read().decode()


@pytest.fixture
def door() -> Iterator[lw.Run]:
    """A run with a page that shows rows; two of its rows were answered, and one was late."""
    push = lw.push({"ts": pl.Int64, "who": pl.String})
    stream = lw.stream(push, name="door", time="ts", channel="who")
    run = stream.run(dashboard=lw.dashboard(show_rows=True))
    push.send([{"ts": 1, "who": "ann"}, {"ts": 5, "who": "ann"}, {"ts": 2, "who": "ann"}])
    push.close()
    run.await_termination()
    assert run.dashboard is not None
    run.dashboard._watcher.settle()
    yield run
    run.dashboard.close()


def test_the_page_and_its_assets_come_with_guards(door):
    status, headers, text = fetched(door.dashboard.url)
    assert status == 200
    assert headers["content-security-policy"].startswith("default-src 'self'")
    assert "http://" not in text
    assert "https://" not in text
    for name in [part.split('"')[0] for part in text.split('="/assets/')[1:]]:
        assert fetched(f"{door.dashboard.url}assets/{name}")[0] == 200


def test_state_history_metrics_and_rows_are_told(door):
    url = door.dashboard.url
    state = json.loads(fetched(f"{url}api/state")[2])
    assert (state["outcome"], state["engine"], state["live"]) == ("done", "embedded", False)
    (query,) = state["queries"]
    assert (query["rows_in"], query["rows_out"], query["late_rows"]) == (3, 2, 1)
    history = json.loads(fetched(f"{url}api/history")[2])
    assert history["queries"]["1"]["rows_in"][-1] == 3
    later = json.loads(fetched(f"{url}api/history?since={history['at'][-1]}")[2])
    assert later["at"] == []
    rows = json.loads(fetched(f"{url}api/rows")[2])["queries"]["1"]
    assert rows["answers"] == {"columns": ["ts", "who"], "rows": [["5", "ann"], ["1", "ann"]]}
    assert [row[:2] for row in rows["late"]["rows"]] == [["2", "ann"]]


def test_prometheus_can_read_the_metrics(door):
    _, headers, text = fetched(f"{door.dashboard.url}metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }
    assert samples["lowwater_rows_out_total", ("query", "1")] == 2
    stream = (("query", "1"), ("stream", "door"))
    assert samples["lowwater_stream_late_rows_total", *stream] == 1
    assert samples["lowwater_query_active", ("query", "1")] == 0


@pytest.mark.parametrize("path", ["", "api/state", "api/history", "api/rows", "metrics"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_nothing_can_be_changed(door, path, method):
    assert fetched(f"{door.dashboard.url}{path}", method)[0] == 405


def test_a_page_of_another_name_is_told_nothing(door):
    """A page elsewhere whose name leads here must not read it."""
    assert fetched(f"{door.dashboard.url}api/state", Host="elsewhere.example")[0] == 400


def test_a_wrong_time_is_refused_and_files_beside_the_assets_are_not_served(door):
    assert fetched(f"{door.dashboard.url}api/history?since=noon")[0] == 400
    assert fetched(f"{door.dashboard.url}assets/../server.py")[0] == 404
    assert fetched(f"{door.dashboard.url}assets/%2e%2e/server.py")[0] == 404


def test_rows_are_not_shown_unless_asked_for():
    rows = pl.DataFrame({"ts": [1, 2], "secret": ["x1y2z3", "x1y2z3"]})
    run = lw.stream(rows, name="s", time="ts").run(dashboard=True)
    run.await_termination()
    page = run.dashboard
    assert page is not None
    try:
        assert fetched(f"{page.url}api/rows")[0] == 404
        told = [fetched(f"{page.url}{path}")[2] for path in ("api/state", "api/history", "metrics")]
        assert not any("x1y2z3" in each for each in told)
    finally:
        page.close()


def test_a_port_that_is_taken_is_refused_if_it_was_asked_for_and_passed_over_if_not():
    rows = pl.DataFrame({"ts": [1, 2]})
    query = lw.stream(rows, name="s", time="ts")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        door = lw.push({"ts": pl.Int64})
        with pytest.raises(OptionError, match="cannot be served"):
            lw.stream(door, name="door", time="ts").run(
                dashboard=lw.dashboard(port=taken.getsockname()[1])
            )
        names = [each.name for each in threading.enumerate()]
        assert "lowwater" not in names  # the run that nobody can reach does not go on
    first, second = query.run(dashboard=True), query.run(dashboard=True)
    try:
        assert first.dashboard.url != second.dashboard.url
        assert first.dashboard.url.startswith("http://127.0.0.1:")
    finally:
        first.dashboard.close()
        second.dashboard.close()


def test_a_run_that_has_ended_is_shown_from_what_it_saved(tmp_path):
    rows = pl.DataFrame({"ts": [1, 2]})
    run = lw.stream(rows, name="s", time="ts").run(dashboard=lw.dashboard(save=tmp_path))
    run.await_termination()
    run.dashboard.close()
    page = saved_page(tmp_path, Dashboard())
    try:
        state = json.loads(fetched(f"{page.url}api/state")[2])
        assert (state["live"], state["saved"]) == (False, str(tmp_path))
        assert state["queries"][0]["rows_out"] == 2
        assert fetched(f"{page.url}api/rows")[0] == 404
    finally:
        page.close()


@pytest.mark.parametrize(
    ("options", "words"),
    [({"port": 0}, "1 to 65535"), ({"port": "x"}, "1 to 65535"), ({"host": ""}, "an address")],
)
def test_wrong_options_say_what_is_right(options, words):
    with pytest.raises(OptionError, match=words):
        lw.dashboard(**options)
    with pytest.raises(OptionError, match=r"lw\.dashboard"):
        lw.stream(pl.DataFrame({"ts": [1]}), time="ts").run(dashboard="yes")


@pytest.mark.parametrize(
    ("host", "local"), [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False)]
)
def test_what_other_machines_can_reach_is_known(host, local):
    assert lw.dashboard(host=host).local is local
