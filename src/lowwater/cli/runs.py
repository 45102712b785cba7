"""The command starts a pipeline, shows its progress, and reports its end."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import typer

from lowwater.cli.app import Stopping, escape, failure
from lowwater.cli.options import (
    DisplayOptions,
    ExecutionOptions,
    PageOptions,
    PipelineOptions,
    rates_of,
)
from lowwater.cli.progress import (
    NoProgress,
    ProgressJson,
    ProgressLines,
    ProgressTable,
    ProgressView,
)
from lowwater.cli.screen import JsonRows, Screen, TableRows
from lowwater.errors import LowwaterError, QueryError
from lowwater.pipeline.run import PipelineRun, RunSettings
from lowwater.pipeline.text import Pipeline, PlannedQuery
from lowwater.sinks import Sink

OPEN = "[yellow]warning:[/yellow] other machines can read it; no password"


def run_pipeline(
    source: PipelineOptions, running: ExecutionOptions, page: PageOptions, display: DisplayOptions
) -> None:
    """Run a pipeline to its end; raise the exit of the command if it fails."""
    screen = Screen()
    with Stopping() as stopping, _warnings_on(screen):
        try:
            options = running.options(page)
            loaded = source.load(running.memory, running.admission)
            options = replace(options, rates=rates_of(loaded, running.rate or [], None))
            drawn = screen.err.is_terminal and not display.quiet and not display.json
            if source.engine == "spark" and drawn:
                screen.draw("starting Spark")
            started = _start(loaded, options, screen, display.json)
        except QueryError as error:
            raise source.wrong(error) from error
        except LowwaterError as error:
            raise failure(error) from error
        except KeyboardInterrupt:  # a Spark session turns Ctrl-C into this
            screen.print_line("stopped before anything ran")
            raise typer.Exit from None
        finally:
            screen.close()
            stopping.listen()
        if started.url is not None:
            screen.print_line(f"dashboard: {started.url}")
            if options.dashboard is not None and not options.dashboard.local:
                screen.print_line(OPEN)
        _watch(started, screen, _view(screen, loaded, display), stopping.requested)


def _start(pipeline: Pipeline, options: RunSettings, screen: Screen, json: bool) -> PipelineRun:
    many = len(pipeline.queries) > 1

    def console(query: PlannedQuery) -> Sink:
        if json:
            return JsonRows(screen, query.number)
        title = f"query {query.number}, line {query.line}" if many else None
        return TableRows(screen, query.plan.schema, title)

    return PipelineRun(pipeline, options, console)


def _view(screen: Screen, pipeline: Pipeline, display: DisplayOptions) -> ProgressView:
    if display.json:
        return ProgressJson(screen)
    if display.quiet:
        return NoProgress()
    if screen.err.is_terminal:
        return ProgressTable(screen, f"{pipeline.name} ({pipeline.engine})")
    return ProgressLines(screen)


@contextmanager
def _warnings_on(screen: Screen) -> Iterator[None]:
    """Print warnings, which may hold values of rows, as lines about the run."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: screen.print_line(
            f"[yellow]warning:[/yellow] {escape(str(message))}"
        )
        yield


def _watch(
    running: PipelineRun, screen: Screen, view: ProgressView, stopped: threading.Event
) -> None:
    """Show the progress of the queries until they end, fail or are stopped."""

    def to_stop() -> bool:
        return stopped.is_set() or screen.closed_by_reader.is_set()

    trouble: BaseException | None = None
    unshown: str | None = None
    try:
        while not running.wait(view.every, to_stop) and not to_stop():
            unshown = _show(running, screen, view, unshown)
    except LowwaterError as error:
        trouble = error
    unfinished = running.active
    running.stop()
    running.settle()
    reason = _failure(running, trouble)
    outcome = "failed" if reason is not None else "stopped" if unfinished else "done"
    view.finish(running.progress(), outcome, reason)
    _close_output(screen)
    ended = None if reason is None else failure(reason)
    if running.url is not None and screen.err.is_terminal and not to_stop():
        screen.print_line(f"the page stays at {running.url} until Ctrl-C")
        stopped.wait()
    if ended is not None:
        raise ended


def _show(
    running: PipelineRun, screen: Screen, view: ProgressView, unshown: str | None
) -> str | None:
    """Show progress; if that fails, print the reason once, and let the run go on.

    ``unshown`` is the reason of the call before, or None; the reason of this one is returned.
    """
    try:
        view.show(running.progress())
    except Exception as error:
        reason = f"progress could not be shown: {type(error).__name__}: {error}"
        if reason != unshown:
            screen.print_line(f"[yellow]warning:[/yellow] {escape(reason)}; the run goes on")
        return reason
    return unshown


def _failure(running: PipelineRun, trouble: BaseException | None) -> str | None:
    """Return the reason for which the pipeline failed; None if it did not."""
    if running.failed is None:
        return str(trouble) if trouble is not None else None
    query, error = running.failed
    text = str(error) if isinstance(error, LowwaterError) else f"{type(error).__name__}: {error}"
    many = len(running.pipeline.queries) > 1
    return f"query {query.number} (line {query.line}): {text}" if many else text


def _close_output(screen: Screen) -> None:
    """Close standard output if nobody reads it; else Python would write to it when it exits."""
    if screen.closed_by_reader.is_set():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
