"""What a pipeline is, for people: its streams and queries, and the plans of these."""

from __future__ import annotations

from rich.console import Console

from lowwater.cli.text import escape_line
from lowwater.pipeline.load import DeclaredStream, Pipeline, PlannedQuery
from lowwater.pipeline.targets import Target
from lowwater.plan.explain import explain, promise
from lowwater.plan.physical.costs import Rates
from lowwater.sinks import Folder
from lowwater.sources.values import type_name


def tell_pipeline(
    console: Console,
    pipeline: Pipeline,
    goals: dict[int, Target],
    late: dict[int, dict[str, Folder]],
) -> None:
    """The streams of a pipeline and where the answers of its queries go."""
    for name, stream in pipeline.streams.items():
        console.print(f"[bold]stream {escape_line(name)}[/bold]", *_stream(stream), sep="\n    ")
    for query in pipeline.queries:
        lines = [
            f"to {goals[query.number]}",
            f"reads {', '.join(query.streams)}",
            f"gives {_columns(query)}",
            *(
                f"late rows of {name} to {folder.path}"
                for name, folder in late[query.number].items()
            ),
        ]
        title = f"[bold]query {query.number}[/bold], line {query.line}"
        console.print(title, *map(escape_line, lines), sep="\n    ", soft_wrap=True)


def tell_fine(console: Console, pipeline: Pipeline) -> None:
    """That a run could begin."""
    count = len(pipeline.queries)
    what = "1 query" if count == 1 else f"{count} queries"
    ends = " until stopped" if any(each.live for each in pipeline.queries) else ""
    console.print(f"[green]fine[/green]: {what} would run{ends} on the {pipeline.engine} engine")


def _stream(stream: DeclaredStream) -> list[str]:
    spec, declared = stream.node.spec, stream.declared
    columns = ", ".join(f"{name} {type_name(dtype)}" for name, dtype in spec.schema.items())
    follow = ", and what comes later" if declared.follow else ""
    lines = [f"from {declared.location}{follow}", columns, *promise(stream.node)]
    return [escape_line(line) for line in lines]


def _columns(query: PlannedQuery) -> str:
    return ", ".join(f"{name} {type_name(dtype)}" for name, dtype in query.plan.schema.items())


def tell_plans(console: Console, pipeline: Pipeline, rates: Rates | None = None) -> None:
    """The plan of each query."""
    for query in pipeline.queries:
        where = query.target or "console"
        plan = explain(query.plan, _of_query(rates, query))
        console.print(
            f"[bold]query {query.number}[/bold], line {query.line}, to {escape_line(where)}"
        )
        for line in plan.splitlines():
            console.print(_coloured(line), soft_wrap=True)
        console.print()


def _of_query(rates: Rates | None, query: PlannedQuery) -> Rates | None:
    """The rates of the streams a query reads."""
    if rates is None:
        return None
    own = {name: rate for name, rate in rates.by_stream.items() if name in query.streams}
    return Rates(own, rates.cost)


def _coloured(line: str) -> str:
    """Operators stand out from what is said of them."""
    text = escape_line(line)
    bare = line.lstrip("│├└─ ")
    if "#" in bare.split(" ", 1)[0]:
        title = bare.split(" ", 1)[0]
        return text.replace(title, f"[bold cyan]{title}[/bold cyan]", 1)
    label, colon, rest = text.partition(": ")
    return f"[dim]{label}{colon}[/dim]{rest}" if colon else text
