"""An error in a function of the user's names operator and line, wherever an engine calls it.

Each query is run once with functions that record where they are called from: the part of an engine
and the kernel's method. Then it is run once for each of these places, with a function that fails
there and nowhere else.
"""

from __future__ import annotations

import ast
import inspect
import sys
import threading
from collections.abc import Callable
from functools import partial, wraps
from pathlib import Path
from types import FrameType
from typing import Any, ClassVar

import polars as pl
import pytest

import lowwater as lw
from lowwater.engines import step as step_module
from lowwater.engines.spark.driver.plan_program import make_program
from lowwater.engines.spark.wire.errors import translate
from lowwater.operators.kernel import Kernel, Reducer
from lowwater.operators.stamp import Stamp
from tests.support import local_spark
from tests.support.local_spark import LocalSpark, Unordered

HERE = Path(__file__).name
ROWS = 60
TABLE = pl.DataFrame(
    {"ts": [at // 3 for at in range(ROWS)], "k": [at % 7 for at in range(ROWS)], "v": range(ROWS)},
    schema={"ts": pl.Int64, "k": pl.Int64, "v": pl.Int64},
)
PARTS = {
    "lowwater.engines.spark.worker.source_stage": "source",
    "lowwater.engines.spark.sources.replay": "source",
    "lowwater.engines.spark.worker.bucket": "bucket",
    "lowwater.engines.spark.worker.result": "result",
    "lowwater.engines.embedded.engine": "embedded",
}
Place = tuple[str, str, str]
"""The function, the part of the engine and the method of the kernel."""


class Functions:
    """The user's functions: they record where they are called, and fail at one place.

    All is kept at the class, for workers get copies of what belongs to a query.
    """

    lines: ClassVar[dict[str, int]] = {}
    places: ClassVar[set[Place]] = set()
    fails: ClassVar[Place | None] = None

    @classmethod
    def begin(cls, fails: Place | None = None) -> None:
        """Record anew, and fail at a place."""
        cls.places, cls.fails = set(), fails

    @classmethod
    def called(cls, name: str) -> None:
        frames = sys._current_frames()  # Polars calls functions on threads of its own
        place = (name, *where(frames[threading.main_thread().ident or 0]))
        cls.places.add(place)
        if place == cls.fails:
            raise ValueError(f"{name} broke")


def before(rows: pl.DataFrame) -> pl.DataFrame:
    Functions.called("before")
    return rows


def after(rows: pl.DataFrame) -> pl.DataFrame:
    Functions.called("after")
    return rows


def own() -> lw.aggregate:
    def init() -> int:
        Functions.called("init")
        return 0

    def add(state: int, rows: pl.DataFrame) -> int:
        Functions.called("add")
        return state + rows.height

    def merge(one: int, two: int) -> int:
        Functions.called("merge")
        return one + two

    def finish(state: int) -> int:
        Functions.called("finish")
        return state

    return lw.aggregate(init, add, merge, finish, columns=("v",), returns=pl.Int64)


def where(frame: FrameType | None) -> tuple[str, str]:
    """The part of the engine that works, and the method of the kernel that it called."""
    method = ""
    while frame is not None:
        if isinstance(frame.f_locals.get("self"), Kernel):
            method = frame.f_code.co_name
        part = PARTS.get(frame.f_globals["__name__"])
        if part is not None:
            return part, method
        frame = frame.f_back
    raise AssertionError("called by no engine")


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def at(line: int, *names: str) -> None:
    """Note the line at which functions are given."""
    Functions.lines |= dict.fromkeys(names, line)


STEPS = ("init", "add", "merge", "finish")
Query = Callable[[Any], lw.Stream]


def spread(source: Any) -> lw.Stream:
    """A function before the shuffle, an aggregate in buckets, a function over its answers."""
    at(line() + 1, "before")
    rows = lw.stream(source, name="s", time="ts").apply(before)
    at(line() + 1, *STEPS)
    answers = rows.window("10 s").group_by("k").agg(own=own())
    at(line() + 1, "after")
    return answers.apply(after)


def combined(source: Any) -> lw.Stream:
    """An aggregate without keys, put together after the buckets, and a function over it."""
    at(line() + 1, *STEPS)
    answers = lw.stream(source, name="s", time="ts").window("10 s").agg(own=own())
    at(line() + 1, "after")
    return answers.apply(after)


def grouped(source: Any) -> lw.Stream:
    """An aggregate by a time."""
    at(line() + 1, *STEPS)
    return lw.stream(source, name="s", time="ts").group_by("ts").agg(own=own())


def sessions(source: Any) -> lw.Stream:
    """An aggregate per session, behind a function whose rows keep their promise."""
    at(line() + 1, "before")
    rows = lw.stream(source, name="s", time="ts").apply(before)
    at(line() + 1, *STEPS)
    return rows.session("3 s").group_by("k").agg(own=own())


def ordered(source: Any) -> lw.Stream:
    """Rows in order, and a function over them."""
    rows = lw.stream(source, name="s", time="ts").order_by()
    at(line() + 1, "after")
    return rows.apply(after)


def plain(source: Any) -> lw.Stream:
    """A function over rows of which nobody awaits a promise."""
    at(line() + 1, "before")
    return lw.stream(source, name="s", time="ts").apply(before)


QUERIES = [plain, spread, combined, grouped, sessions, ordered]


def on_spark(query: Query, source: Any) -> None:
    for seed in range(6):  # rows are cut and state is folded in other ways
        LocalSpark(query(source), seed).results()


WAYS: dict[str, Callable[[Query], object]] = {
    "embedded": lambda query: query(lw.replay(TABLE)).collect(chunk_rows=4),
    "spark, in batches": lambda query: on_spark(query, Unordered(TABLE, [ROWS // 6] * 6)),
    "spark, a log": lambda query: on_spark(query, lw.replay(TABLE)),
}


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("way", WAYS)
def test_an_error_names_operator_and_line_wherever_the_function_is_called(
    way: str, query: Query
) -> None:
    Functions.begin()
    WAYS[way](query)
    assert Functions.places
    for place in sorted(Functions.places):
        Functions.begin(fails=place)
        with pytest.raises(Exception, match=f"{place[0]} broke") as caught:
            WAYS[way](query)
        error = translate(caught.value)
        assert isinstance(error, lw.OperatorError), place
        assert f"({HERE}:{Functions.lines[place[0]]})" in str(error), place
        assert "#" in error.operator, place


def test_the_queries_reach_all_places() -> None:
    Functions.begin()
    for way in WAYS.values():
        for query in QUERIES:
            way(query)
    assert Functions.places >= {
        ("before", "source", "on_chunk"),
        ("add", "source", "reduced"),
        ("before", "bucket", "on_chunk"),
        ("add", "bucket", "on_chunk"),
        ("merge", "bucket", "on_partials"),
        ("merge", "bucket", "settle"),
        ("finish", "bucket", "on_punctuation"),
        ("finish", "result", "finished"),
        ("merge", "result", "finished"),
        ("after", "result", "on_chunk"),
        ("finish", "embedded", "on_punctuation"),
        ("before", "embedded", "on_chunk"),
        ("merge", "embedded", "on_punctuation"),
    }


def test_engines_call_kernels_through_one_module() -> None:
    """No module of an engine but ``step`` calls a method of a kernel itself."""
    kinds = [Kernel, Reducer, Stamp]
    methods = {
        name for kind in kinds for name, each in vars(kind).items() if inspect.isfunction(each)
    }
    folder = Path(step_module.__file__).parent
    found = [
        f"{path.relative_to(folder)}:{node.lineno} {ast.unparse(node.func)}"
        for path in folder.rglob("*.py")
        if path.name != "step.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        if node.func.attr in methods
        if ast.unparse(node.func.value).rpartition(".")[2].lstrip("_") in KERNELS
    ]
    assert found == []


KERNELS = {"kernel", "reducer", "finisher", "union"}
"""The names under which engines have kernels."""


def silent(source: Any) -> lw.Stream:
    """Groups whose marks are requested one by one."""
    rows = lw.stream(source, name="s", time="ts", groups="k", idle=lw.on_demand())
    return rows.where("v >= 0").window("10 s").group_by("k").agg(n="count(*)")


def staged(source: Any) -> lw.Stream:
    """Answers of one stage that another one reads, and requests that go back through both."""
    one = lw.stream(source, name="a", time="ts", idle=lw.on_demand())
    other = lw.stream(source, name="b", time="ts", idle=lw.on_demand())
    pairs = one.join(other, on="k", within="2 s")
    return pairs.session("3 s").group_by("v").agg(n="count(*)")


def latent(source: Any) -> lw.Stream:
    """Rows that are stamped by the clock."""
    rows = lw.stream(source, name="s", time="at", stamp="latent", idle=lw.on_demand())
    return rows.window("10 s").agg(n="count(*)")


def updating(source: Any) -> lw.Stream:
    """A queue in which rows wait."""
    return lw.stream(source, name="s", time="ts").updates("k")


def test_engines_call_kernels_through_one_module_whatever_their_name_there(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """No method of a kernel is called by a module of an engine but ``step`` while queries run."""
    called: set[str] = set()
    bypasses: set[tuple[str, str]] = set()

    def watched(name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def calling(*given: Any, **named: Any) -> Any:
            caller = sys._getframe(1).f_globals["__name__"]
            if caller == step_module.__name__:
                called.add(name)
            elif caller.startswith("lowwater.engines."):
                bypasses.add((caller, name))
            return method(*given, **named)

        return calling

    Functions.begin()
    requesting = partial(make_program, request_folder=str(tmp_path))
    monkeypatch.setattr(local_spark, "make_program", requesting)
    for kind in kinds_of(Kernel):
        for name, method in vars(kind).items():
            if inspect.isfunction(method) and not name.startswith("_"):
                monkeypatch.setattr(kind, name, watched(name, method))
    for way in WAYS.values():
        for query in (*QUERIES, silent, staged, latent, updating):
            way(query)
    assert not bypasses
    assert called >= {
        *("on_chunk", "on_punctuation", "on_group_punctuation", "on_end", "on_partials"),
        *("work_on", "end_portion", "record_time", "requests", "backtrack", "releases"),
        *("input_keys", "reduced", "finished", "rows_stamped", "enable", "promise_last"),
        *("settle", "snapshot", "restore", "marks", "metrics", "notes", "take_late_rows"),
    }


def kinds_of(kind: type) -> set[type]:
    """A class and all that derive from it."""
    return {kind}.union(*map(kinds_of, kind.__subclasses__()))
