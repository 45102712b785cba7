"""These commands measure the papers' claims and benchmarks, and show the content of checkpoints.

The last line of ``claims`` and ``bench`` is JSON for programs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from lowwater.cli.app import FAILED, escape_line, out, wrong_use
from lowwater.errors import LowwaterError, OptionError


def claims(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Claims to run; all if none.")
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Smaller rates and durations, the same shapes.")
    ] = False,
    folder: Annotated[
        Path, typer.Option("--out", metavar="DIR", help="Where the report, CSV files and plots go.")
    ] = Path("claims-out"),
    listing: Annotated[
        bool, typer.Option("--list", help="Show which claims there are, and run none.")
    ] = False,
) -> None:
    """Run the experiments of the papers and set ours beside theirs.

    DIR/report.html has all of it on one page. Exits with 1 if a claim does not hold or its run
    fails, with 2 if an id is unknown.
    """
    # Imported here, because the other commands need none of it.
    from lowwater.claims import html, registry, report  # noqa: PLC0415

    try:
        chosen = registry.find(ids or [])
        if not listing:
            report.need_matplotlib()
    except LowwaterError as error:
        raise wrong_use(error) from error
    console = out()
    if listing:
        console.print(report.listed(chosen))
        return
    run, results = report.Circumstances(quick, chosen), list[report.Result]()
    for claim in chosen:
        results.append(report.attempt(claim, quick, folder))
        page = html.write(results, run, folder)
        console.print(report.line(results[-1]))
    console.print(report.table(results))
    console.print(f"{report.tally(results)}: {page}")
    typer.echo(report.as_json(results))
    if any(each.verdict != "holds" for each in results):
        raise typer.Exit(FAILED)


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Benchmarks; all if none.")
    ] = None,
    json_file: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Also write the figures here.")
    ] = None,
) -> None:
    """Run benchmarks and print their figures."""
    from lowwater import bench as suite  # noqa: PLC0415

    try:
        rows = suite.run(names or [])
    except OptionError as error:
        raise wrong_use(error) from error
    if json_file is not None:
        json_file.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")
    suite.show(rows, out())
    typer.echo(json.dumps({"rows": rows}))


def checkpoint(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The checkpoint of a run.")],
) -> None:
    """Show the state of a run on Spark: the marks and sizes of every operator, bucket by bucket."""
    from rich.table import Table  # noqa: PLC0415

    from lowwater.engines.spark import require_spark  # noqa: PLC0415

    try:
        require_spark()
        from lowwater.engines.spark.driver.checkpoint_view import (  # noqa: PLC0415
            read_checkpoint,
        )

        held = read_checkpoint(folder)
    except LowwaterError as error:
        raise wrong_use(error) from error
    table = Table(title=escape_line(f"state in {folder}"), title_justify="left")
    for name in ("stage", "bucket", "operator or stream", "marks"):
        table.add_column(name, overflow="fold")
    for name in ("chunks", "rows", "bytes"):
        table.add_column(name, justify="right")
    for each in held:
        sizes = ("" if n is None else f"{n:,}" for n in (each.chunks, each.rows, each.bytes))
        table.add_row(
            str(each.stage), str(each.bucket), *map(escape_line, (each.what, each.marks)), *sizes
        )
    out().print(table)
