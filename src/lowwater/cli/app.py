"""All commands share consoles, errors, exit codes, Ctrl-C, and text that is safe on a terminal.

A value of a row, a name of a column or an error message may hold any characters. Sent to a terminal
as they are, control characters move the cursor, change colours or rename the window; they are shown
as escapes, never sent.
"""

from __future__ import annotations

import os
import signal
import threading
import unicodedata
from typing import Annotated, Any, Self

import typer
from rich import markup
from rich.console import Console

import lowwater

FAILED, WRONG_USE = 1, 2

app = typer.Typer(
    name="lowwater",
    help="Continuous queries over streams that arrive late, out of order, or out of step.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_show_locals=False,  # they may hold rows
)
WIDE = 140
"""The width of text in columns where there is no terminal."""


def out(kind: type[Console] = Console) -> Console:
    """Return the console for results, standard output."""
    console = kind(highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = WIDE
    return console


def err(kind: type[Console] = Console) -> Console:
    """Return the console for everything else, standard error."""
    return kind(stderr=True, highlight=False, emoji=False)


def _version(requested: bool) -> None:
    if requested:
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
    """Print the error in the use of a command, with its ``place``, and return the exit."""
    return _ended(error, WRONG_USE, f" in {place}" if place else "")


def failure(error: BaseException | str) -> typer.Exit:
    """Print the error of a command and return the exit."""
    return _ended(error, FAILED)


def _ended(error: BaseException | str, code: int, place: str = "") -> typer.Exit:
    title = f"[bold red]error{escape(place)}:[/bold red]"
    err().print(f"{title} {escape(str(error))}", soft_wrap=True)
    return typer.Exit(code)


# ---- Ctrl-C -----------------------------------------------------------------------------------


class Stopping:
    """Sets an event on Ctrl-C or a request to end; a second one ends the process at once."""

    SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self) -> None:
        self.requested = threading.Event()
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
        """Handle the signals, again if a Spark session was made since: it handles them itself."""
        if threading.current_thread() is threading.main_thread():
            for each in self.SIGNALS:
                signal.signal(each, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        del number, frame
        if self.requested.is_set():
            os._exit(130)
        self.requested.set()


# ---- text ---------------------------------------------------------------------------------------

_KEPT = "\n\t"
_CONTROL = ("Cc", "Cf", "Cs", "Zl", "Zp")


def visible(text: str) -> str:
    r"""Return the text with each control character written as its escape: ``\x1b``, ``\u202e``.

    Line ends and tabs stay. Marks that turn the direction of writing are control characters, too.
    """
    if text.isascii() and text.isprintable():
        return text
    return "".join(_shown(each, _KEPT) for each in text)


def one_line(text: str) -> str:
    r"""Return the text with each control character, line ends too, written as its escape.

    So no value can make a line that looks like one of the command's.
    """
    return "".join(_shown(each, "") for each in text)


def _shown(character: str, kept: str) -> str:
    if character in kept or unicodedata.category(character) not in _CONTROL:
        return character
    if character == "\u200d":  # joins the parts of an emoji
        return character
    return character.encode("unicode_escape").decode()


def escape(text: str) -> str:
    """Return text for Rich: without markup and control characters."""
    return markup.escape(visible(text))


def escape_line(text: str) -> str:
    """Return text of one line for Rich: without markup, control characters and line ends."""
    return markup.escape(one_line(text))
