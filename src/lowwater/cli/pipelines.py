"""These commands run, check and explain pipeline files, and show the page of a past run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from lowwater.cli.app import Stopping, err, escape, escape_line, failure, out, wrong_use
from lowwater.cli.options import (
    DisplayOptions,
    ExecutionOptions,
    Memory,
    Output,
    PageOptions,
    PipelineOptions,
    rates_of,
    with_options,
)
from lowwater.errors import LowwaterError, QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from lowwater.pipeline.targets import Target
    from lowwater.pipeline.text import DeclaredStream, Pipeline
    from lowwater.plan.physical.costs import Rates
    from lowwater.sinks import Folder


@with_options
def run(
    source: PipelineOptions, running: ExecutionOptions, display: DisplayOptions, page: PageOptions
) -> None:
    """Run the queries of a pipeline file, all at the same time.

    Ctrl-C stops them. Exits with 0 when done or stopped, 1 if something fails, 2 for wrong usage.
    """
    from lowwater.cli.runs import run_pipeline  # noqa: PLC0415 (help needs none of it)

    run_pipeline(source, running, page, display)


@with_options
def check(source: PipelineOptions, output: Output = None) -> None:
    """Read and plan a pipeline file; print what would run, and the problems it would have.

    It looks for files and reads their first rows. Exits with 0 if a run could begin, else as run.
    """
    from lowwater.pipeline.preflight import problems  # noqa: PLC0415
    from lowwater.pipeline.targets import late_folders, targets  # noqa: PLC0415

    try:
        loaded = source.load()
        goals, late = targets(loaded, output), late_folders(loaded, output)
    except LowwaterError as error:
        raise source.wrong(error) from error
    _print_pipeline(out(), loaded, goals, late)
    wrong = []
    for problem in problems(loaded, goals, late):
        if isinstance(problem.what, LowwaterError):
            wrong.append(problem)
        else:
            err().print(f"[yellow]warning:[/yellow] {escape(str(problem))}", soft_wrap=True)
    if not wrong:
        _print_fine(out(), loaded)
        return
    text = "\n".join(map(str, wrong))
    unusable = any(isinstance(each.what, QueryError) for each in wrong)
    raise wrong_use(QueryError(text)) if unusable else failure(text)


@with_options
def explain(
    source: PipelineOptions,
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
    memory: Memory = None,
) -> None:
    """Show how each query of a pipeline would run: operators, progress, partitioning."""
    try:
        loaded = source.load(memory)
        _print_plans(out(), loaded, rates_of(loaded, rate or [], cost))
    except LowwaterError as error:
        raise source.wrong(error) from error


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
    from lowwater.cli.runs import OPEN  # noqa: PLC0415
    from lowwater.dashboard.page import saved_page  # noqa: PLC0415

    with Stopping() as stopping:
        try:
            options = PageOptions(True, port, host).page()
            assert options is not None
            page = saved_page(folder, options)
        except LowwaterError as error:
            raise wrong_use(error) from error
        out().print(f"dashboard: {page.url}")
        if not options.local:
            err().print(OPEN)
        stopping.requested.wait()
        page.close()


# ---- what check and explain print --------------------------------------------------------------


def _print_pipeline(
    console: Console,
    pipeline: Pipeline,
    goals: dict[int, Target],
    late: dict[int, dict[str, Folder]],
) -> None:
    """Print the streams of a pipeline and where the results of its queries go."""
    for name, stream in pipeline.streams.items():
        console.print(f"[bold]stream {escape_line(name)}[/bold]", *_stream(stream), sep="\n    ")
    for query in pipeline.queries:
        lines = [
            f"to {goals[query.number]}",
            f"reads {', '.join(query.streams)}",
            f"gives {_columns(query.plan.schema)}",
            *(
                f"late rows of {name} to {folder.path}"
                for name, folder in late[query.number].items()
            ),
        ]
        title = f"[bold]query {query.number}[/bold], line {query.line}"
        console.print(title, *map(escape_line, lines), sep="\n    ", soft_wrap=True)


def _print_fine(console: Console, pipeline: Pipeline) -> None:
    """Print that a run could begin."""
    count = len(pipeline.queries)
    what = "1 query" if count == 1 else f"{count} queries"
    ends = " until stopped" if any(each.live for each in pipeline.queries) else ""
    console.print(f"[green]fine[/green]: {what} would run{ends} on the {pipeline.engine} engine")


def _stream(stream: DeclaredStream) -> list[str]:
    from lowwater.plan.explain import contract_lines  # noqa: PLC0415

    spec, declared = stream.node.spec, stream.declared
    columns = _columns(spec.schema)
    follow = ", and what comes later" if declared.follow else ""
    lines = [f"from {declared.location}{follow}", columns, *contract_lines(stream.node)]
    return [escape_line(line) for line in lines]


def _columns(schema: Mapping[str, pl.DataType]) -> str:
    from lowwater.sources.values import type_name  # noqa: PLC0415

    return ", ".join(f"{name} {type_name(dtype)}" for name, dtype in schema.items())


def _print_plans(console: Console, pipeline: Pipeline, rates: Rates | None = None) -> None:
    """Print the plan of each query."""
    from lowwater.engines.admission import shares_of  # noqa: PLC0415
    from lowwater.plan.explain import explain as explained  # noqa: PLC0415

    budget, plans = pipeline.memory, [each.plan for each in pipeline.queries]
    shares = [] if budget is None else shares_of(plans, budget.bytes, rates)
    for query in pipeline.queries:
        where = query.target or "console"
        own = None if rates is None else rates.among(query.streams)
        remarks = shares[query.number - 1] if shares else None
        plan = explained(query.plan, own, remarks)
        console.print(
            f"[bold]query {query.number}[/bold], line {query.line}, to {escape_line(where)}"
        )
        for line in plan.splitlines():
            console.print(_coloured(line), soft_wrap=True)
        console.print()


def _coloured(line: str) -> str:
    """Return a line of a plan with markup: titles of operators stand out."""
    text = escape_line(line)
    bare = line.lstrip("│├└─ ")
    if "#" in bare.split(" ", 1)[0]:
        title = bare.split(" ", 1)[0]
        return text.replace(title, f"[bold cyan]{title}[/bold cyan]", 1)
    label, colon, rest = text.partition(": ")
    return f"[dim]{label}{colon}[/dim]{rest}" if colon else text
