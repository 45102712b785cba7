"""The command itself, and how it speaks: consoles, errors, exit codes."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

import lowwater
from lowwater.cli.text import escape

FAILED, WRONG_USE = 1, 2

app = typer.Typer(
    name="lowwater",
    help="Continuous queries over streams that arrive late, out of order, or out of step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they may hold rows
)
WIDE = 140
"""Columns of text where there is no terminal to ask."""


def out(kind: type[Console] = Console) -> Console:
    """Where results go."""
    console = kind(highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def err(kind: type[Console] = Console) -> Console:
    """Where everything else goes."""
    return kind(stderr=True, highlight=False, emoji=False)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"lowwater {lowwater.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def wrong_use(error: BaseException | str, place: str = "") -> typer.Exit:
    """Say what was wrong with the command, and perhaps in what, and end it."""
    return _ended(error, WRONG_USE, f" in {place}" if place else "")


def failure(error: BaseException | str) -> typer.Exit:
    """Say why it failed and end it."""
    return _ended(error, FAILED)


def _ended(error: BaseException | str, code: int, place: str = "") -> typer.Exit:
    title = f"[bold red]error{escape(place)}:[/bold red]"
    err().print(f"{title} {escape(str(error))}", soft_wrap=True)
    return typer.Exit(code)
