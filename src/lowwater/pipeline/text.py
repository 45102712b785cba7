"""The text of a pipeline is read and planned for an engine here; nothing runs yet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from lowwater.engines.admission import refuse_without_joins, sharing_joins
from lowwater.engines.memory import MemoryBudget
from lowwater.engines.run import ENGINES, spark_session
from lowwater.errors import ExpressionError, OptionError, unknown_name
from lowwater.pipeline.streams import make_stream
from lowwater.plan.builders import updates as update_builders
from lowwater.plan.nodes import Node, SourceNode
from lowwater.plan.physical.operator import PhysicalPlan
from lowwater.plan.physical.planner import compile_plan, compile_shared
from lowwater.plan.physical.sharing import SharedPlan, sharing
from lowwater.plan.sql.declarations import Declared
from lowwater.plan.sql.script import read_script
from lowwater.plan.sql.values import Values, parameter_term
from lowwater.sources.replay import Replay


@dataclass(frozen=True)
class PlannedQuery:
    """A query of a pipeline, ready to be run; without a ``target`` it goes to the console."""

    number: int
    plan: PhysicalPlan
    line: int
    """The line of the pipeline file in which it begins, from 1."""
    target: str | None = None
    target_place: tuple[int, int] | None = None
    """The first and the last character of the target in the text of the pipeline."""

    @property
    def streams(self) -> tuple[str, ...]:
        """Names of the streams it reads."""
        return tuple(each.spec.name for each in self.plan.sources)

    @property
    def generated(self) -> bool:
        """True if all its streams are played from a log of arrivals."""
        return all(isinstance(each.source, Replay) for each in self.plan.sources)

    @property
    def live(self) -> bool:
        """True if one of its streams is live: its rows come by the clock, perhaps for ever."""
        return any(each.source.live for each in self.plan.sources)


@dataclass(frozen=True)
class DeclaredStream:
    """A stream of a pipeline: its declaration and its node."""

    declared: Declared
    node: SourceNode


class BudgetOptions(NamedTuple):
    """The memory budget as the command gives it; None for what the pipeline sets."""

    memory: str | None = None
    admission: str | None = None


NO_BUDGET = BudgetOptions()


@dataclass(frozen=True)
class Pipeline:
    """A pipeline that can be run."""

    name: str
    text: str
    streams: Mapping[str, DeclaredStream]
    queries: tuple[PlannedQuery, ...]
    engine: str = "embedded"
    memory: MemoryBudget | None = None
    """The memory that the joins without a window of all queries share; None for no limit."""
    session: Callable[[], Any] = field(default=spark_session, repr=False)
    """A function that makes the Spark session; called only if one is needed."""
    shared: tuple[SharedPlan, ...] = ()
    """The plans of queries that share the queue of an update stream; the names are the queries'
    numbers."""


def load_file(
    path: str | Path,
    engine: str = "embedded",
    values: Values | None = None,
    master: str | None = None,
    budget: BudgetOptions = NO_BUDGET,
) -> Pipeline:
    """Return the pipeline in a file, which is UTF-8 text."""
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"cannot read {path}: {error.strerror or error}") from None
    except UnicodeDecodeError:
        raise OptionError(f"{path} is not a text (in UTF-8)") from None
    return load_text(text, engine, values, master, Path(path).name, budget)


def load_text(
    text: str,
    engine: str = "embedded",
    values: Values | None = None,
    master: str | None = None,
    name: str = "pipeline",
    budget: BudgetOptions = NO_BUDGET,
) -> Pipeline:
    """Return the pipeline that a text describes; ``values`` are its parameters, and it must use
    all. The options of ``budget`` replace those that the text sets."""
    if engine not in ENGINES:
        raise OptionError(f"an engine is {' or '.join(ENGINES)}, not {engine!r}")
    text = text.removeprefix("\ufeff")  # a mark that some editors write
    session = partial(spark_session, master)
    given = Parameters(values or {})
    streams: dict[str, DeclaredStream] = {}

    def declare(declared: Declared) -> Node:
        node = make_stream(declared, engine, session).node
        (source,) = update_builders.sources(node)
        streams[declared.name] = DeclaredStream(declared, source)
        return node

    try:
        found = read_script(text, given, declare, name)
    except ExpressionError as error:
        raise given.explained(error) from None
    given.refuse_unused()
    memory = MemoryBudget.of(
        found.memory if budget.memory is None else budget.memory,
        found.admission if budget.admission is None else budget.admission,
    )
    roots = {str(number): each.node for number, each in enumerate(found.queries, 1)}
    groups = sharing(roots) if engine == "embedded" else []
    plans = [
        compile_shared({name: roots[name] for name in group}, [1.0] * len(group))
        for group in groups
        if len(group) > 1
    ]
    shared = tuple(each for each in plans if memory is None or not sharing_joins(each.plan))
    parts = {name: each.part(at) for each in shared for at, name in enumerate(each.names)}
    queries = tuple(
        PlannedQuery(
            number,
            parts.get(str(number)) or compile_plan(each.node),
            each.line,
            each.target,
            each.target_place,
        )
        for number, each in enumerate(found.queries, 1)
    )
    if memory is not None:
        refuse_without_joins([each.plan for each in queries])
    return Pipeline(name, text, streams, queries, engine, memory, session, shared)


class Parameters(Mapping[str, object]):
    """The parameters of a text, which record the names that the text uses."""

    def __init__(self, values: Values):
        self._values = values
        self._names: set[str] = set()

    def __getitem__(self, name: str) -> object:
        self._names.add(name)
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def explained(self, error: ExpressionError) -> ExpressionError:
        """Return an error; one about a missing parameter also names the option that gives it."""
        for name in self._names - self._values.keys():
            if error.about == parameter_term(name):
                return error.with_parts(*error.parts, f" Give it with --param {name}=VALUE.")
        return error

    def refuse_unused(self) -> None:
        """Refuse parameters that the text does not use."""
        used = [f":{name}" for name in self._values if name in self._names]
        for name in self._values:
            if name not in self._names:
                raise OptionError(unknown_name("parameter", f":{name}", used))
