"""The page in a real browser: it loads, follows the run, and complains of nothing."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

import lowwater as lw
from lowwater.dashboard.options import Dashboard
from lowwater.dashboard.page import saved_page

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
BROWSER = os.environ.get("LOWWATER_BROWSER") or next(
    filter(None, map(shutil.which, BROWSERS)), None
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
LONG = 60_000
"""Milliseconds a test waits at most."""

pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no Chromium here (LOWWATER_BROWSER names one)"),
    pytest.mark.xdist_group("apart"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        started = play.chromium.launch(executable_path=BROWSER, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture
def opened(browser) -> Iterator[Callable]:
    """Opens a page at laptop size; whatever its console says in the end is an error."""
    pages, said = [], []

    def open_(url: str, scheme: str = "light"):
        page = browser.new_page(
            viewport={"width": 1280, "height": 720}, color_scheme=scheme, reduced_motion="reduce"
        )
        page.set_default_timeout(LONG)
        page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: said.append(f"error: {error}"))
        page.on("requestfailed", lambda request: said.append(f"failed: {request.url}"))
        pages.append(page)
        page.goto(url)
        return page

    yield open_
    for page in pages:
        page.close()
    assert not said


def routers(channels: int) -> tuple[lw.Stream, object, object]:
    """Two streams that a program feeds: one of many channels, and a quiet one."""
    fast = lw.push({"ts": pl.Int64, "host": pl.String})
    slow = lw.push({"ts": pl.Int64})
    names = [f"router {n}" for n in range(channels)]
    a = lw.stream(fast, name="routers", time="ts", channel="host", channels=names)
    b = lw.stream(slow, name="control", time="ts")
    query = a.select("ts").union(b).window("1 minute").agg(n="count(*)")
    return query, fast, slow


def text(page) -> str:
    return page.inner_text("body")


def shown(page, words: str) -> None:
    """Wait until the page says something."""
    page.get_by_text(words).first.wait_for()


def test_a_live_run_is_followed_with_hundreds_of_channels(opened, tmp_path):
    query, fast, slow = routers(400)
    run = query.run(dashboard=lw.dashboard(save=tmp_path))
    page = opened(run.dashboard.url)
    shown(page, "union#3 waits for")
    for at in (100, 200):
        fast.send([{"ts": at + n % 50, "host": f"router {n}"} for n in range(400)])
    slow.send([{"ts": 130}, {"ts": 140}])
    shown(page, "union#3 waits for control: its mark, 140,")
    shown(page, "802")  # rows in
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    picture = page.screenshot(path=tmp_path / "live.png")
    assert len(picture) > 20_000
    slow.send([{"ts": 500}])
    shown(page, "waits for routers")
    fast.close()
    slow.close()
    run.await_termination()
    shown(page, "done")
    run.dashboard.close()
    saved = saved_page(tmp_path, Dashboard())
    try:
        again = opened(saved.url, "dark")
        shown(again, "Saved metrics")
        assert "803" in text(again)
        assert again.evaluate("document.documentElement.scrollWidth <= innerWidth")
    finally:
        saved.close()


def test_channels_can_be_searched_and_nodes_opened(opened):
    query, fast, slow = routers(300)
    run = query.run(dashboard=True)
    for at in (100, 200):
        fast.send([{"ts": at + n % 50, "host": f"router {n}"} for n in range(300)])
    slow.send([{"ts": 130}, {"ts": 140}])
    page = opened(run.dashboard.url)
    try:
        shown(page, "router 0")
        page.get_by_role("searchbox").first.fill("router 123")
        page.get_by_text("router 123", exact=True).first.wait_for()
        page.get_by_text("router 0", exact=True).first.wait_for(state="detached")
    finally:
        page.close()
        run.stop()
        run.dashboard.close()


def test_names_that_look_like_markup_are_shown_as_they_are(opened):
    door = lw.push({"ts": pl.Int64, "host": pl.String})
    name = "<img src=x onerror=alert(1)>"
    stream = lw.stream(door, name="<b>bold</b>", time="ts", channel="host")
    run = stream.window("1 minute").agg(n="count(*)").run(dashboard=True)
    door.send([{"ts": at, "host": host} for at in (1, 9, 2, 10) for host in (name, "b")])
    page = opened(run.dashboard.url)
    try:
        shown(page, "<b>bold</b>")
        shown(page, name)
        assert page.locator("img").count() == 0
    finally:
        page.close()
        run.stop()
        run.dashboard.close()


def test_every_asset_is_in_the_package():
    folder = Path(lw.__file__).parent / "dashboard" / "assets"
    assert {"index.html", "page.css", "page.js"} <= {each.name for each in folder.iterdir()}
