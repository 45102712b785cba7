"""The page of runs has a watcher that collects metrics and a server that shows them."""

from __future__ import annotations

import atexit
import contextlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from lowwater.dashboard.history import METRICS, read_saved
from lowwater.dashboard.observation import WatchedQuery
from lowwater.dashboard.options import LAST, Dashboard
from lowwater.dashboard.watcher import Watcher
from lowwater.engines.run import Run, RunOptions
from lowwater.errors import LowwaterError
from lowwater.plan.physical.operator import PhysicalPlan

if TYPE_CHECKING:
    from lowwater.dashboard.server import Server


class Page:
    """The page of runs; they may have ended already."""

    def __init__(
        self, title: str, engine: str, watched: Sequence[WatchedQuery], options: Dashboard
    ):
        serve = _server()
        self._watcher = Watcher(title, engine, watched, options.show_rows, options.save)
        rows = (lambda: last_rows(self._watcher.watched)) if options.show_rows else None
        try:
            history = self._watcher.history
            self._server = serve(lambda: self._watcher.state, history, options, rows, watched)
        except BaseException:
            self._watcher.settle()
            raise
        self.url = self._server.url
        """Address of the page."""
        atexit.register(self._watcher.settle)

    def settle(self) -> None:
        """Read the metrics for the last time; from then on the page shows these."""
        self._watcher.settle()

    def close(self) -> None:
        """Stop serving the page; the run continues."""
        self._watcher.settle()
        self._server.close()
        atexit.unregister(self._watcher.settle)


def start_page(
    run: Run, plan: PhysicalPlan, engine: str, options: RunOptions, page: Dashboard
) -> Run:
    """Start the page of a run, print its address and return the run. With a checkpoint, metrics are
    saved in its folder."""
    watched = watched_query("1", plan.result.title, run, plan, options)
    run.dashboard = open_page([watched], engine, page, options.checkpoint, run.stop)
    return run


def watched_query(
    number: str, title: str, run: Run, plan: PhysicalPlan, options: RunOptions
) -> WatchedQuery:
    """Return a query of a page, from the options of its run."""
    live = options.clock == "wall" or any(each.source.live for each in plan.sources)
    target = "kept" if options.sink is None else _named(options.sink)
    return WatchedQuery(number, title, target, plan, run, live)


def open_page(
    watched: Sequence[WatchedQuery],
    engine: str,
    page: Dashboard,
    checkpoint: object,
    stop: Callable[[], object],
) -> Page:
    """Open the page of runs that have begun and print its address; if it cannot be opened, the runs
    are stopped. With a checkpoint, metrics are saved in its folder."""
    if page.save is None and checkpoint is not None:
        page = replace(page, save=Path(str(checkpoint)) / METRICS)
    try:
        shown = Page("lowwater", engine, watched, page)
    except BaseException:
        with contextlib.suppress(Exception):
            stop()
        raise
    sys.stderr.write(f"dashboard: {shown.url}\n")
    return shown


def _named(sink: object) -> str:
    """Return the name of a sink, as the page shows it."""
    if isinstance(sink, str | Path):
        return str(sink)
    return getattr(sink, "__name__", type(sink).__name__)


def saved_page(folder: Path, options: Dashboard) -> Server:
    """Serve the page of a run that has ended, from the metrics it saved."""
    serve = _server()
    state, history = read_saved(folder)
    return serve(lambda: state, history, options)


def _server() -> type[Server]:
    """Return the class of the server, which is imported only here: its libraries are optional."""
    try:
        from lowwater.dashboard.server import Server  # noqa: PLC0415
    except ImportError as error:
        raise LowwaterError(
            f"the page needs {error.name}, which is not installed: install lowwater[dashboard],"
            " for example with pip install 'lowwater[dashboard]'"
        ) from error
    return Server


# ---- rows ---------------------------------------------------------------------------------------


def last_rows(queries: Sequence[WatchedQuery]) -> dict[str, Any]:
    """Return the last results and late rows of all queries as texts, the newest first."""
    return {
        "queries": {
            each.id: {
                "answers": _texts(each.run.last_rows()),
                "late": _texts(_late(each)),
                "table": _texts(_newest(each)),
            }
            for each in queries
        }
    }


def _newest(query: WatchedQuery) -> pl.DataFrame:
    """Return the newest answers of the keys that were answered last; none without an update
    key."""
    if query.run.puller is None:
        return pl.DataFrame()
    with contextlib.suppress(LowwaterError):  # the run has failed, and the page says so
        return pl.DataFrame(query.run.table()).tail(LAST)
    return pl.DataFrame()


def _late(query: WatchedQuery) -> pl.DataFrame:
    """Return the late rows of all streams, with the stream if there are several."""
    found = {name: query.run.last_late_rows(name) for name in query.specs}
    some = [
        rows.select(pl.lit(name).alias("_stream"), pl.all()) if len(found) > 1 else rows
        for name, rows in found.items()
        if rows.height
    ]
    return pl.concat(some, how="diagonal_relaxed") if some else pl.DataFrame()


def _texts(rows: pl.DataFrame) -> dict[str, Any]:
    shown = [["" if each is None else str(each) for each in row] for row in rows.reverse().rows()]
    return {"columns": rows.columns, "rows": shown}
