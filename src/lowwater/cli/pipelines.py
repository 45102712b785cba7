"""Commands for pipeline files: run them, check them, explain them."""

from __future__ import annotations

import os
import signal
import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Self

import typer

from lowwater.cli.app import err, failure, out, wrong_use
from lowwater.cli.text import escape
from lowwater.errors import (
    ExpressionError,
    LowwaterError,
    OptionError,
    QueryError,
    unknown_name,
)
from lowwater.stream.duration import nanoseconds

if TYPE_CHECKING:
    from lowwater.cli.progress import ProgressView
    from lowwater.cli.screen import Screen
    from lowwater.dashboard.options import Dashboard
    from lowwater.pipeline.load import Pipeline, PlannedQuery
    from lowwater.pipeline.running import Options, Running
    from lowwater.pipeline.targets import Writing
    from lowwater.plan.physical.costs import Rates
    from lowwater.sinks import Sink

PipelineFile = Annotated[
    Path, typer.Argument(metavar="PIPELINE.sql", help="The pipeline; - reads it from the input.")
]
Engine = Annotated[
    str, typer.Option("--engine", metavar="embedded|spark", help="What the queries run on.")
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param", metavar="NAME=VALUE", help="A parameter, :NAME in the pipeline; repeatable."
    ),
]
Master = Annotated[
    str | None, typer.Option("--master", metavar="URL", help="Spark's master, as local[4].")
]
Port = Annotated[
    int | None,
    typer.Option("--dashboard-port", metavar="N", help="The first free one from 4848, if none."),
]
Host = Annotated[
    str | None,
    typer.Option("--dashboard-host", metavar="ADDRESS", help="127.0.0.1, if none."),
]
OPEN = "[yellow]warning:[/yellow] other machines can read it; no password"
Output = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="DIR", help="For relative targets, and for queries without one."
    ),
]


def run(
    pipeline: PipelineFile,
    engine: Engine = "embedded",
    master: Master = None,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR", help="On Spark: where a later run goes on from."
        ),
    ] = None,
    output: Output = None,
    param: Params = None,
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger", metavar="TIME", help="On Spark: '1 second' between batches, say."
        ),
    ] = None,
    output_mode: Annotated[
        str,
        typer.Option(
            "--output-mode",
            metavar="fail|append|replace",
            help="What to do with folders that already hold results.",
        ),
    ] = "fail",
    flush_every: Annotated[
        str,
        typer.Option(
            "--flush-every", metavar="TIME", help="How long a row may wait to be in a file."
        ),
    ] = "2 seconds",
    real_time: Annotated[
        bool,
        typer.Option("--real-time", help="Play generated streams as their rows would arrive."),
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="Show results and errors only.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Rows, and progress each second, as lines of JSON.")
    ] = False,
    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Show the run on a page, to this machine alone.")
    ] = False,
    dashboard_port: Port = None,
    dashboard_host: Host = None,
    show_rows: Annotated[
        bool, typer.Option("--show-rows", help="With --dashboard: also the last rows.")
    ] = False,
    save_metrics: Annotated[
        Path | None,
        typer.Option(
            "--save-metrics", metavar="DIR", help="For `lowwater dashboard DIR` after the run."
        ),
    ] = None,
) -> None:
    """Run the queries of a pipeline file, all at the same time.

    Ctrl-C stops them. Exits with 0 when done or stopped, 1 if something fails, 2 for wrong usage.
    """
    from lowwater.cli.screen import Screen  # noqa: PLC0415 (help needs none of it)
    from lowwater.pipeline.running import Options  # noqa: PLC0415

    screen = Screen()
    with _Stopping() as stopping, _warnings_on(screen):
        try:
            page = _page(dashboard, dashboard_port, dashboard_host, show_rows)
            writing = _writing(output_mode, flush_every)
            options = Options(checkpoint, output, trigger, real_time, page, save_metrics, writing)
            loaded = _load(pipeline, engine, param, master)
            if engine == "spark" and screen.err.is_terminal and not quiet and not json:
                screen.draw("starting Spark")
            running = _start(loaded, options, screen, json)
        except QueryError as error:
            raise _wrong_pipeline(pipeline, error) from error
        except LowwaterError as error:
            raise failure(error) from error
        except KeyboardInterrupt:  # that is how a Spark session takes Ctrl-C
            screen.say("stopped before anything ran")
            raise typer.Exit from None
        finally:
            screen.close()
            stopping.listen()
        if running.url is not None:
            screen.say(f"dashboard: {running.url}")
            if page is not None and not page.local:
                screen.say(OPEN)
        _watch(running, screen, _view(screen, loaded, quiet, json), stopping.wanted)


def check(
    pipeline: PipelineFile,
    engine: Engine = "embedded",
    master: Master = None,
    output: Output = None,
    param: Params = None,
) -> None:
    """Read and plan a pipeline file, and say what would run and what it would meet.

    Files are looked for, and their first rows read. Exits with 0 if a run could begin, else as it.
    """
    from lowwater.cli.telling import tell_fine, tell_pipeline  # noqa: PLC0415
    from lowwater.pipeline.checking import would_meet  # noqa: PLC0415
    from lowwater.pipeline.targets import late_folders, targets  # noqa: PLC0415

    try:
        loaded = _load(pipeline, engine, param, master)
        goals, late = targets(loaded, output), late_folders(loaded, output)
    except LowwaterError as error:
        raise _wrong_pipeline(pipeline, error) from error
    tell_pipeline(out(), loaded, goals, late)
    wrong = []
    for met in would_meet(loaded, goals, late):
        if isinstance(met.what, LowwaterError):
            wrong.append(met)
        else:
            err().print(f"[yellow]warning:[/yellow] {escape(str(met))}", soft_wrap=True)
    if not wrong:
        tell_fine(out(), loaded)
        return
    said = "\n".join(map(str, wrong))
    unusable = any(isinstance(each.what, QueryError) for each in wrong)
    raise wrong_use(QueryError(said)) if unusable else failure(said)


def explain(
    pipeline: PipelineFile,
    engine: Engine = "embedded",
    master: Master = None,
    param: Params = None,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            "--rate",
            metavar="STREAM=ROWS",
            help="Rows a second of a stream: what ordered joins would take; repeatable.",
        ),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option("--cost", metavar="LENGTH", help="With --rate: to compare two rows, as 5us."),
    ] = None,
) -> None:
    """Show how each query of a pipeline would run: operators, progress, partitioning."""
    from lowwater.cli.telling import tell_plans  # noqa: PLC0415

    try:
        loaded = _load(pipeline, engine, param, master)
        tell_plans(out(), loaded, _rates(loaded, rate or [], cost))
    except LowwaterError as error:
        raise _wrong_pipeline(pipeline, error) from error


def dashboard(
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="What --save-metrics, or a checkpoint, kept.")
    ],
    port: Annotated[
        int | None, typer.Option("--port", metavar="N", help="The first free one from 4848.")
    ] = None,
    host: Annotated[
        str | None, typer.Option("--host", metavar="ADDRESS", help="127.0.0.1, if none.")
    ] = None,
) -> None:
    """Show a run that has ended on a page, from the metrics it saved; Ctrl-C ends it."""
    from lowwater.dashboard.page import SavedPage  # noqa: PLC0415

    with _Stopping() as stopping:
        try:
            options = _page(True, port, host, False)
            assert options is not None
            page = SavedPage(folder, options)
        except LowwaterError as error:
            raise wrong_use(error) from error
        out().print(f"dashboard: {page.url}")
        if not options.local:
            err().print(OPEN)
        stopping.wanted.wait()
        page.close()


# ---- reading the command -----------------------------------------------------------------------


def _page(wanted: bool, port: int | None, host: str | None, rows: bool) -> Dashboard | None:
    """The page that was asked for; what is said of one goes with ``--dashboard``."""
    from lowwater.dashboard.options import LOOPBACK, dashboard  # noqa: PLC0415

    if not wanted:
        given = {"--dashboard-port": port, "--dashboard-host": host, "--show-rows": rows or None}
        for name in (name for name, value in given.items() if value is not None):
            raise OptionError(f"{name} goes with --dashboard")
        return None
    return dashboard(port=port, host=host or LOOPBACK, show_rows=rows)


def _writing(mode: str, flush_every: str) -> Writing:
    """How folders are written; what is wrong with it is said before anything is loaded."""
    from lowwater.pipeline.targets import Writing  # noqa: PLC0415
    from lowwater.sinks import MODES  # noqa: PLC0415

    if mode not in MODES:
        raise OptionError(f"--output-mode is {', '.join(MODES)}, not {mode!r}")
    if nanoseconds(flush_every, "--flush-every") < 0:
        raise OptionError(f"--flush-every is zero or more, not {flush_every!r}")
    return Writing(mode, flush_every)


def _load(path: Path, engine: str, param: list[str] | None, master: str | None) -> Pipeline:
    from lowwater.pipeline.load import load_file, load_text  # noqa: PLC0415

    values = _values(param or [])
    if master is not None and engine != "spark":
        raise OptionError("--master is for --engine spark")
    if str(path) == "-":
        return load_text(sys.stdin.read(), engine, values, master, "input")
    return load_file(path, engine, values, master)


def _wrong_pipeline(path: Path, error: LowwaterError) -> typer.Exit:
    """What is wrong; an error with a place in the text says in which."""
    named = "the input" if str(path) == "-" else str(path)
    return wrong_use(error, named if isinstance(error, ExpressionError) else "")


def _rates(pipeline: Pipeline, given: list[str], cost: str | None) -> Rates | None:
    from lowwater.plan.physical.costs import Rates  # noqa: PLC0415

    if not given:
        if cost is not None:
            raise OptionError("--cost goes with --rate, rows a second of each stream")
        return None
    found: dict[str, float] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if name not in pipeline.streams:
            raise OptionError(unknown_name("stream", name, pipeline.streams))
        number = _value(value)
        if not equals or isinstance(number, str) or not isinstance(number, int | float):
            raise OptionError(f"--rate takes stream=rows a second, not {each!r}")
        found[name] = number
    return Rates(found, cost)


def _values(given: list[str]) -> dict[str, object]:
    values: dict[str, object] = {}
    for each in given:
        name, equals, value = each.partition("=")
        name = name.strip().removeprefix(":")
        if not equals or not name.isidentifier():
            raise OptionError(f"--param takes name=value, for example --param n=30, not {each!r}")
        if name in values:
            raise OptionError(f"--param {name} is given twice")
        values[name] = _value(value)
    return values


def _value(text: str) -> object:
    """Numbers become numbers; the rest stays text, as does what is in single quotes."""
    if len(text) > 1 and text[0] == text[-1] == "'":
        inner = text[1:-1]
        if "'" in inner.replace("''", ""):
            raise OptionError(f"--param: a quote inside a text is written twice, not as in {text}")
        return inner.replace("''", "'")
    for kind in (int, float):
        try:
            number = kind(text)
        except ValueError:
            continue
        if isfinite(number) and "_" not in text:
            return number
    return text


# ---- running -----------------------------------------------------------------------------------


class _Stopping:
    """Ctrl-C, or a request to end, sets an event; a second one ends the process at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.wanted = threading.Event()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        self._before = {each: signal.getsignal(each) for each in self.SIGNALS}
        self.listen()
        return self

    def __exit__(self, *_: object) -> None:
        if threading.current_thread() is threading.main_thread():
            for each, handler in self._before.items():
                signal.signal(each, handler)

    def listen(self) -> None:
        """Take the signals; a Spark session that was made since has taken them for itself."""
        if threading.current_thread() is threading.main_thread():
            for each in self.SIGNALS:
                signal.signal(each, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        del number, frame
        if self.wanted.is_set():
            os._exit(130)
        self.wanted.set()


def _start(pipeline: Pipeline, options: Options, screen: Screen, json: bool) -> Running:
    from lowwater.cli.rows import JsonRows, TableRows  # noqa: PLC0415
    from lowwater.pipeline.running import Running  # noqa: PLC0415

    many = len(pipeline.queries) > 1

    def console(query: PlannedQuery) -> Sink:
        if json:
            return JsonRows(screen, query.number)
        title = f"query {query.number}, line {query.line}" if many else None
        return TableRows(screen, query.plan.schema, title)

    return Running(pipeline, options, console)


def _view(screen: Screen, pipeline: Pipeline, quiet: bool, json: bool) -> ProgressView:
    from lowwater.cli.progress import NoProgress, ProgressJson, ProgressLines, ProgressTable  # noqa: PLC0415

    if json:
        return ProgressJson(screen)
    if quiet:
        return NoProgress()
    if screen.err.is_terminal:
        return ProgressTable(screen, f"{pipeline.name} ({pipeline.engine})")
    return ProgressLines(screen)


@contextmanager
def _warnings_on(screen: Screen) -> Iterator[None]:
    """Warnings, which may hold values of rows, as lines about the run."""
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: screen.say(
            f"[yellow]warning:[/yellow] {escape(str(message))}"
        )
        yield


def _watch(running: Running, screen: Screen, view: ProgressView, stopped: threading.Event) -> None:
    """Tell how the queries get on until they end, one way or another."""

    def to_stop() -> bool:
        return stopped.is_set() or screen.closed_by_reader.is_set()

    trouble: BaseException | None = None
    unshown: str | None = None
    try:
        while not running.wait(view.every, to_stop) and not to_stop():
            unshown = _tell(running, screen, view, unshown)
    except LowwaterError as error:
        trouble = error
    unfinished = running.active
    running.stop()
    running.settle()
    said = _failure(running, trouble)
    how = "failed" if said is not None else "stopped" if unfinished else "done"
    view.finish(running.progress(), how, said)
    _let_go_of_output(screen)
    ended = None if said is None else failure(said)
    if running.url is not None and screen.err.is_terminal and not to_stop():
        screen.say(f"the page stays at {running.url} until Ctrl-C")
        stopped.wait()
    if ended is not None:
        raise ended


def _tell(running: Running, screen: Screen, view: ProgressView, unshown: str | None) -> str | None:
    """Show progress; if that fails, the run goes on and the reason is said, each reason once."""
    try:
        view.show(running.progress())
    except Exception as error:
        reason = f"progress could not be shown: {type(error).__name__}: {error}"
        if reason != unshown:
            screen.say(f"[yellow]warning:[/yellow] {escape(reason)}; the run goes on")
        return reason
    return unshown


def _failure(running: Running, trouble: BaseException | None) -> str | None:
    """Why the pipeline failed, if it did."""
    if running.failed is None:
        return str(trouble) if trouble is not None else None
    query, error = running.failed
    said = str(error) if isinstance(error, LowwaterError) else f"{type(error).__name__}: {error}"
    many = len(running.pipeline.queries) > 1
    return f"query {query.number} (line {query.line}): {said}" if many else said


def _let_go_of_output(screen: Screen) -> None:
    """When nobody reads, Python must not try to write what is left at its end."""
    if screen.closed_by_reader.is_set():
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
