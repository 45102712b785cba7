"""The options of commands for pipeline files are declared in groups; their values are read here.

A command has a parameter for each group; :func:`with_options` turns it into a command with all the
options.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, Field, dataclass, fields, is_dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from lowwater.cli.app import wrong_use
from lowwater.errors import ExpressionError, LowwaterError, OptionError, unknown_name
from lowwater.stream.duration import nanoseconds

if TYPE_CHECKING:
    from lowwater.dashboard.options import Dashboard
    from lowwater.pipeline.run import RunSettings
    from lowwater.pipeline.targets import Writing
    from lowwater.pipeline.text import Pipeline
    from lowwater.plan.physical.costs import Rates


def with_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command that takes the options of all groups of ``command``, one by one.

    Its parameters are the fields of these groups, and the other parameters of ``command``.
    """
    hints = get_type_hints(command, include_extras=True)
    own = {name: hints[name] for name in inspect.signature(command).parameters}
    groups: dict[str, Any] = {name: kind for name, kind in own.items() if is_dataclass(kind)}

    def flat(**given: Any) -> None:
        built = {
            name: kind(**{each.name: given.pop(each.name) for each in fields(kind)})
            for name, kind in groups.items()
        }
        command(**built, **given)

    parameters = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            found = get_type_hints(own[name], include_extras=True)
            parameters += [_parameter(each, found[each.name]) for each in fields(own[name])]
        else:
            parameters.append(parameter.replace(annotation=own[name]))
    flat.__name__, flat.__doc__ = command.__name__, command.__doc__
    flat.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in parameters}
    return flat


def _parameter(each: Field[Any], kind: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if each.default is MISSING else each.default
    place = inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(each.name, place, default=default, annotation=kind)


@dataclass(frozen=True)
class PipelineOptions:
    """The pipeline file, its parameters, and the engine."""

    pipeline: Annotated[
        Path,
        typer.Argument(metavar="PIPELINE.sql", help="The pipeline; - reads the input."),
    ]
    engine: Annotated[
        str,
        typer.Option(
            "--engine", metavar="embedded|spark", help="The engine that runs the queries."
        ),
    ] = "embedded"
    master: Annotated[
        str | None, typer.Option("--master", metavar="URL", help="Spark's master, as local[4].")
    ] = None
    param: Annotated[
        list[str] | None,
        typer.Option(
            "--param", metavar="NAME=VALUE", help="A parameter, :NAME in the pipeline; repeatable."
        ),
    ] = None

    def load(self, memory: str | None = None, admission: str | None = None) -> Pipeline:
        """Read and plan the pipeline; a memory budget given here replaces that in the file."""
        from lowwater.pipeline.text import BudgetOptions, load_file, load_text  # noqa: PLC0415

        budget = BudgetOptions(memory, admission)

        values = _values(self.param or [])
        if self.master is not None and self.engine != "spark":
            raise OptionError("--master is for --engine spark")
        if str(self.pipeline) == "-":
            text = sys.stdin.read()
            return load_text(text, self.engine, values, self.master, "input", budget)
        return load_file(self.pipeline, self.engine, values, self.master, budget)

    def wrong(self, error: LowwaterError) -> typer.Exit:
        """Print the error of a pipeline, with the file if it has a place; return the exit."""
        named = "the input" if str(self.pipeline) == "-" else str(self.pipeline)
        return wrong_use(error, named if isinstance(error, ExpressionError) else "")


Output = Annotated[
    Path | None,
    typer.Option(
        "--output", metavar="DIR", help="For relative targets, and for queries without one."
    ),
]


Memory = Annotated[
    str | None,
    typer.Option(
        "--memory",
        metavar="SIZE",
        help="What all joins without a window may take together, as '1 GB'.",
    ),
]


@dataclass(frozen=True)
class ExecutionOptions:
    """The options of a run: its checkpoint, its pace and the folders of its results."""

    checkpoint: Annotated[
        Path | None,
        typer.Option(
            "--checkpoint", metavar="DIR", help="On Spark: where a later run goes on from."
        ),
    ] = None
    output: Output = None
    trigger: Annotated[
        str | None,
        typer.Option(
            "--trigger", metavar="TIME", help="On Spark: '1 second' between batches, say."
        ),
    ] = None
    output_mode: Annotated[
        str,
        typer.Option(
            "--output-mode",
            metavar="fail|append|replace",
            help="What to do with folders that already hold results.",
        ),
    ] = "fail"
    flush_every: Annotated[
        str,
        typer.Option(
            "--flush-every", metavar="TIME", help="How long a row may wait to be in a file."
        ),
    ] = "2 seconds"
    memory: Memory = None
    admission: Annotated[
        str | None,
        typer.Option(
            "--admission",
            metavar="warn|refuse",
            help="If joins need more than --memory: a warning, the default, or an error.",
        ),
    ] = None
    rate: Annotated[
        list[str] | None,
        typer.Option(
            "--rate",
            metavar="STREAM=ROWS",
            help="Rows a second, to judge --memory before the run; repeatable.",
        ),
    ] = None
    real_time: Annotated[
        bool,
        typer.Option("--real-time", help="Play generated streams as their rows would arrive."),
    ] = False

    def options(self, page: PageOptions) -> RunSettings:
        """Return the options of a run, but for the rates of streams."""
        from lowwater.pipeline.run import RunSettings  # noqa: PLC0415

        shown, writing = page.page(), self._writing()
        return RunSettings(
            checkpoint=self.checkpoint,
            output=self.output,
            trigger=self.trigger,
            real_time=self.real_time,
            dashboard=shown,
            save_metrics=page.save_metrics,
            writing=writing,
        )

    def _writing(self) -> Writing:
        """Return the way in which folders are written; refuse wrong options before a run."""
        from lowwater.pipeline.targets import Writing  # noqa: PLC0415
        from lowwater.sinks import MODES  # noqa: PLC0415

        if self.output_mode not in MODES:
            raise OptionError(f"--output-mode is {', '.join(MODES)}, not {self.output_mode!r}")
        if nanoseconds(self.flush_every, "--flush-every") < 0:
            raise OptionError(f"--flush-every is zero or more, not {self.flush_every!r}")
        return Writing(self.output_mode, self.flush_every)


@dataclass(frozen=True)
class DisplayOptions:
    """The output of a run on the terminal."""

    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show results and errors only.")] = (
        False
    )
    json: Annotated[
        bool, typer.Option("--json", help="Rows, and progress each second, as lines of JSON.")
    ] = False


@dataclass(frozen=True)
class PageOptions:
    """The page of a run."""

    dashboard: Annotated[
        bool, typer.Option("--dashboard", help="Show the run on a page, to this machine alone.")
    ] = False
    dashboard_port: Annotated[
        int | None,
        typer.Option("--dashboard-port", metavar="N", help="The first free one from 4848."),
    ] = None
    dashboard_host: Annotated[
        str | None, typer.Option("--dashboard-host", metavar="ADDRESS", help="127.0.0.1, if none.")
    ] = None
    show_rows: Annotated[
        bool, typer.Option("--show-rows", help="With --dashboard: also the last rows.")
    ] = False
    save_metrics: Annotated[
        Path | None,
        typer.Option(
            "--save-metrics", metavar="DIR", help="For `lowwater dashboard DIR` after the run."
        ),
    ] = None

    def page(self) -> Dashboard | None:
        """Return the page; None if there is none, and then its other options are wrong."""
        from lowwater.dashboard.options import LOOPBACK, dashboard  # noqa: PLC0415

        if self.dashboard:
            host = self.dashboard_host or LOOPBACK
            return dashboard(port=self.dashboard_port, host=host, show_rows=self.show_rows)
        given = {
            "--dashboard-port": self.dashboard_port,
            "--dashboard-host": self.dashboard_host,
            "--show-rows": self.show_rows or None,
        }
        for name in (name for name, value in given.items() if value is not None):
            raise OptionError(f"{name} goes with --dashboard")
        return None


# ---- values ------------------------------------------------------------------------------------


def rates_of(pipeline: Pipeline, given: list[str], cost: str | None) -> Rates | None:
    """Return the rates of streams, from ``stream=rows``; None if none are given."""
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
    """Return a number if the text is one, else the text; a value in single quotes is a text."""
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
