"""Windows of update streams under load: what is shown is whole, newest last, and not too late."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from unittest import mock

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.operators.window_state import START
from lowwater.updates.options import PLAIN, SCHEDULES, WINDOWS
from lowwater.updates.windows import scheduler
from lowwater.updates.windows.window_keys import TRANSITIONS, KeyState, WindowCell
from tests.support.loaded_run import LoadedRun, Mode
from tests.support.oracle import answer

SEEDS = st.integers(0, 2**32)
WINDOWED = """
    SELECT w.start AS window_start, w.start + {range} AS window_end, {keys} count(*) AS n,
        CAST(sum(v) AS BIGINT) AS total, min(v) AS least
    FROM (SELECT unnest(generate_series(
            CAST(floor((ts - {range}) / {slide}.0) AS BIGINT) + 1,
            CAST(floor(ts / {slide}.0) AS BIGINT))) * {slide} AS start, * FROM a) w
    GROUP BY ALL
"""
AGGREGATES = {"n": "count(*)", "total": "sum(v)", "least": "min(v)"}
QUEUES = [each for each in SCHEDULES if each not in PLAIN]


@dataclass
class Case:
    """A query over an update stream, and how it is run."""

    table: pl.DataFrame
    size: int
    slide: int
    key: tuple[str, ...]
    groups: tuple[str, ...]
    options: dict[str, Any]
    promise: dict[str, Any]
    cost: float

    @classmethod
    def drawn(cls, seed: int, **options: Any) -> Case:
        """Any case; options are those of the stream."""
        chance = random.Random(seed)
        promise = chance.choice(["ordered", "within", "rows", "strict", "groups", "none"])
        if options.get("schedule") in PLAIN and promise == "groups":
            promise = "within"
        table = _table(chance, promise)
        size = chance.randint(1, 8)
        slide = chance.choice([size, 1, chance.randint(1, size), size + chance.randint(1, 3)])
        key = chance.choice([("k",), ("k",), ("k", "g"), ()])
        if promise == "groups":
            key = chance.choice([("k",), ("g", "k")])
        others = [name for name in ("k", "g") if name not in key]
        groups = [*key, *chance.sample(others, chance.randint(0, len(others)))]
        chance.shuffle(groups)
        options = {"schedule": chance.choice(QUEUES), "windows": chance.choice(WINDOWS)} | options
        if key == ("k",) and options["schedule"] in QUEUES and chance.random() < 0.4:
            options["weights"] = {"a": 5, "b": 2}
        cost = chance.choice([0.05, 0.4, 1, 3])
        return cls(table, size, slide, key, tuple(groups), options, PROMISES[promise], cost)

    def query(self) -> lw.Stream:
        stream = lw.stream(
            lw.replay(self.table, arrival="arrived"),
            name="a",
            time="ts",
            update_key=self.key,
            jump=None,
            **self.promise,
            **self.options,
        )
        return stream.window(self.size, slide=self.slide).group_by(*self.groups).agg(**AGGREGATES)

    def batch(self) -> set[tuple[Any, ...]]:
        """The answers of all windows."""
        keys = "".join(f"{name}, " for name in self.groups)
        sql = WINDOWED.format(range=self.size, slide=self.slide, keys=keys)
        return set(answer(sql, {"a": self.table}))

    def windows(self, rows: Any) -> dict[tuple[Any, ...], list[int]]:
        """The starts of windows of each key, in the order given, each once."""
        found: dict[tuple[Any, ...], dict[int, None]] = defaultdict(dict)
        for row in rows:
            named = dict(zip((START, "end", *self.groups), row, strict=False))
            found[tuple(named[name] for name in self.key)][named[START]] = None
        return {key: list(starts) for key, starts in found.items()}


PROMISES: dict[str, dict[str, Any]] = {
    "ordered": {"progress": lw.ordered()},
    "within": {"progress": lw.within(4)},
    "rows": {"progress": lw.within_rows(3)},
    "strict": {"progress": lw.punctuated("done")},
    "groups": {"progress": lw.within(4), "groups": "k"},
    "none": {"progress": lw.unpromised()},
    "alone": {"progress": lw.ordered(), "groups": "k"},
}


def _table(chance: random.Random, promise: str) -> pl.DataFrame:
    """Rows in the order and with the disorder that is promised."""
    count, step = chance.randint(1, 60), chance.choice([0.4, 1.0, 2.5])
    keys: list[str | None] = ["a", "b", "c", "d"][: chance.randint(1, 4)]
    if promise not in ("groups", "alone") and chance.random() < 0.3:
        keys.append(None)
    rows = []
    behind = dict.fromkeys(keys, 0)
    for at in range(count):
        time = at if promise == "strict" else int(at * step)
        key = chance.choice(keys)
        if promise in ("within", "none"):
            time -= chance.randint(0, 4)
        if promise == "groups":
            behind[key] += chance.randint(0, 3)
            time = behind[key] + chance.randint(0, 2)
        rows.append((time, time + 1, key, chance.choice("xy"), chance.randint(-9, 9)))
    if promise == "rows":
        places = [at + chance.randint(0, 3) for at in range(count)]
        rows = [row for _, row in sorted(zip(places, rows, strict=True), key=lambda each: each[0])]
    schema = {"ts": pl.Int64, "done": pl.Int64, "k": pl.String, "g": pl.String, "v": pl.Int64}
    arrived, came = [], 0.0
    for _ in range(count):
        came += chance.choice([0.0, 0.5, 1.0, 2.0])
        arrived.append(came)
    table = pl.DataFrame(rows, schema, orient="row")
    return table.with_columns(pl.Series("arrived", arrived, pl.Float64))


def delivered(run: LoadedRun) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for _, row in run.delivered]


MODES: list[Mode] = ["singly", "portions", "batches"]


@pytest.mark.parametrize("mode", MODES)
@given(SEEDS, st.booleans())
def test_every_window_that_is_shown_is_whole(mode: Mode, seed: int, restarts: bool) -> None:
    case = Case.drawn(seed)
    run = LoadedRun(case.query(), seed, case.cost, mode, restarts)
    rows, batch = delivered(run), case.batch()
    assert len(rows) == len(set(rows))
    assert set(rows) <= batch
    shown = case.windows(rows)
    for key, starts in case.windows(sorted(batch, key=lambda row: row[0])).items():
        assert all(before < after for before, after in pairwise(shown[key]))
        assert shown[key][-1] == starts[-1], "the newest window is shown at the end"
    whole = {row for row in batch if row[0] in shown[key_of(case, row)]}
    assert set(rows) == whole, "all groups of a window are shown with it"


def key_of(case: Case, row: tuple[Any, ...]) -> tuple[Any, ...]:
    named = dict(zip(case.groups, row[2:], strict=False))
    return tuple(named[name] for name in case.key)


@given(SEEDS, st.sampled_from([("append", "singly"), ("append", "batches"), (None, "unhurried")]))
def test_where_nothing_is_given_up_the_answer_is_that_of_a_batch(
    seed: int, how: tuple[str | None, Mode]
) -> None:
    schedule, mode = how
    case = Case.drawn(seed, **({"schedule": schedule} if schedule else {}))
    run = LoadedRun(case.query(), seed, case.cost, mode, restarts=True)
    rows = delivered(run)
    assert len(rows) == len(set(rows))
    assert set(rows) == case.batch()


@given(SEEDS)
def test_of_windows_that_are_shed_those_that_are_shown_are_whole(seed: int) -> None:
    case = Case.drawn(seed, schedule="shedding")
    run = LoadedRun(case.query(), seed, case.cost, restarts=True)
    assert set(delivered(run)) <= case.batch()


@pytest.mark.parametrize("mode", MODES)
@given(SEEDS)
def test_a_restart_changes_nothing(mode: Mode, seed: int) -> None:
    case = Case.drawn(seed, schedule=random.Random(seed).choice(SCHEDULES))
    runs = [LoadedRun(case.query(), seed, case.cost, mode, restarts) for restarts in (False, True)]
    assert runs[0].delivered == runs[1].delivered
    assert runs[0].portions == runs[1].portions
    assert runs[0].staleness == runs[1].staleness


# ---- keys that are forgotten -------------------------------------------------------------------


def forgetful(case: Case, seed: int) -> Case:
    """The same case with keys that expire, are deleted, or both."""
    chance = random.Random(f"forget {seed}")
    one, two = {"expire": chance.choice([1, 6])}, {"delete_when": chance.choice(["v > 3", "v < 0"])}
    options: dict[str, Any] = chance.choice([one, two, one | two])
    if case.promise is PROMISES["none"]:
        return replace(case, promise=PROMISES["within"], options=case.options | options)
    return replace(case, options=case.options | options)


@pytest.mark.parametrize("mode", [*MODES, "unhurried"])
@given(SEEDS)
def test_windows_of_keys_that_are_forgotten_are_whole_after_a_restart_too(
    mode: Mode, seed: int
) -> None:
    """A key is forgotten when all its windows are over, so that no window is missing or cut."""
    case = forgetful(Case.drawn(seed), seed)
    runs = [LoadedRun(case.query(), seed, case.cost, mode, restarts) for restarts in (False, True)]
    assert runs[0].delivered == runs[1].delivered
    assert runs[0].staleness == runs[1].staleness
    rows, batch = delivered(runs[0]), case.batch()
    assert len(rows) == len(set(rows))
    assert set(rows) <= batch
    shown = case.windows(rows)
    for key, starts in case.windows(sorted(batch, key=lambda row: row[0])).items():
        assert shown[key] == sorted(shown[key])
        assert shown[key][-1] == starts[-1], "the newest window is shown at the end"
    if mode == "unhurried":
        assert set(rows) == batch


# ---- the schedule --------------------------------------------------------------------------


class Watched:
    """What keys did, one after the other."""

    def __init__(self) -> None:
        self.moves: list[tuple[WindowCell, KeyState, KeyState]] = []

    def __enter__(self) -> Watched:
        move = scheduler.KeyScheduler._move

        def noted(own: Any, cell: WindowCell, before: KeyState, after: KeyState) -> None:
            assert before in cell.states or before is KeyState.ENQ
            self.moves.append((cell, before, after))
            move(own, cell, before, after)
            assert not cell.states >= {KeyState.READY, KeyState.IDLE}

        self._patch = mock.patch.object(scheduler.KeyScheduler, "_move", noted)
        self._patch.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.stop()


@given(SEEDS)
def test_keys_go_only_where_the_graph_allows(seed: int) -> None:
    case = Case.drawn(seed)
    with Watched() as watched:
        run = LoadedRun(case.query(), seed, case.cost)
    assert {(before, after) for _, before, after in watched.moves} <= set(TRANSITIONS)
    if case.options["windows"] == "lazy":
        assert not any(after is KeyState.IDLE for _, _, after in watched.moves)
    assert bool(run.delivered) == bool(case.batch())  # between windows may be gaps


@given(SEEDS)
def test_no_key_is_passed_over_twice(seed: int) -> None:
    """From when a key waits and no window of it is worked on, each other is served once at most."""
    case = Case.drawn(seed, schedule="in-place")
    case.options.pop("weights", None)
    with Watched() as watched:
        LoadedRun(case.query(), seed, case.cost)
    for cell, waits in _waits(watched.moves):
        others = [other for other in waits if other is not cell]
        assert len(others) == len(set(others))


def _waits(
    moves: list[tuple[WindowCell, KeyState, KeyState]],
) -> Iterator[tuple[WindowCell, list[WindowCell]]]:
    """For each time a key waited, free to be served, the keys that were served before it."""
    waiting: dict[WindowCell, list[WindowCell]] = {}
    states: dict[WindowCell, set[KeyState]] = defaultdict(set)
    for cell, before, after in moves:
        states[cell] = (states[cell] - {before}) | ({after} - {KeyState.DONE})
        if (before, after) == (KeyState.WAIT, KeyState.READY):
            yield cell, waiting.pop(cell, [])
            for served in waiting.values():
                served.append(cell)
        elif states[cell] == {KeyState.WAIT}:
            waiting.setdefault(cell, [])


# ---- staleness -----------------------------------------------------------------------------


def areas(case: Case, run: LoadedRun) -> dict[tuple[Any, ...], float]:
    """The integral of staleness of each key, by its definition: how long ago the first window was
    complete that is newer than the newest that is shown."""
    complete: dict[tuple[Any, ...], dict[int, float]] = defaultdict(dict)
    strict, alone = case.promise is PROMISES["strict"], case.promise is PROMISES["alone"]
    arrivals = list(case.table.select("ts", "arrived", "k").iter_rows())
    for row in case.batch():
        own = [(ts, at) for ts, at, k in arrivals if not alone or (k,) == key_of(case, row)]
        ended = next((at for ts, at in own if ts + strict >= row[1]), run.ended_at)
        complete[key_of(case, row)][row[0]] = ended
    return {key: area(case, run, key, windows) for key, windows in complete.items()}


def area(case: Case, run: LoadedRun, key: tuple[Any, ...], windows: dict[int, float]) -> float:
    rows = [(at, row) for at, row in run.delivered if _is_of(case, row, key)]
    shown = [(at, row[START]) for at, row in rows]
    total = 0.0
    for before, after in pairwise(sorted({run.now, *windows.values(), *(at for at, _ in shown)})):
        newest = max((start for at, start in shown if at <= before), default=-(10**9))
        behind = [at for start, at in windows.items() if start > newest and at <= before]
        if behind:
            total += ((after - min(behind)) ** 2 - (before - min(behind)) ** 2) / 2
    return total


def _is_of(case: Case, row: dict[str, Any], key: tuple[Any, ...]) -> bool:
    return tuple(row[name] for name in case.key) == key


@given(SEEDS, st.sampled_from(SCHEDULES))
def test_staleness_is_what_its_definition_says(seed: int, schedule: str) -> None:
    case = Case.drawn(seed, schedule=schedule)
    alone = seed % 2 and schedule not in PLAIN
    promise = "alone" if alone else "strict"
    case.table, case.promise = _table(random.Random(seed), promise), PROMISES[promise]
    if alone:
        case.key = case.groups = ("k",)
    if schedule in PLAIN:  # what comes at the same time is then taken to be shown together
        apart = pl.col("arrived") + 0.001 * pl.int_range(pl.len())
        case.table = case.table.with_columns(apart)
    run = LoadedRun(case.query(), seed, case.cost)
    length = max(run.now - case.table["arrived"][0], 1e-9)
    told = {key: each.application * length for key, each in run.staleness.by_key.items()}
    expected = areas(case, run)
    assert told == pytest.approx(expected, abs=1e-6)
