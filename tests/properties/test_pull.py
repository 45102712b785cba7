"""Pull queries: the table of a run has the newest answer of each key that lives, as DuckDB finds it
in all rows, whatever the load, and at any moment what left last of each key."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

import lowwater as lw
from lowwater.engines.answers import Puller
from lowwater.engines.spark.driver.answer_table import CommittedAnswers
from lowwater.engines.spark.driver.checkpoint_folder import BatchNumbers
from lowwater.plan.physical.answers import answer_shape
from lowwater.stream.element import ENDED, MARK, GroupPunctuation
from lowwater.updates import answers
from lowwater.updates.answers import AnswerShape, AnswerTable
from tests.support.local_spark import LocalSpark
from tests.support.oracle import answer, table_rows
from tests.unit.running import finished

SCHEMA = {"ts": pl.Int64, "k": pl.String, "v": pl.Int64, "n": pl.Int64, "came": pl.Float64}
SEEDS = st.integers(0, 9_999)
EXTRA = ["_time", "_age", "_staleness"]


def rows(chance: random.Random, most: int = 40) -> pl.DataFrame:
    """Rows in the order of their times; several of one key may have one time."""
    found, at = [], 0
    for n in range(chance.randint(1, most)):
        at += chance.choice([0, 1, 1, 2, 9])
        key = chance.choice(["a", "a", "b", "c", "d", None])
        found.append((at, key, chance.randint(0, 3), n, at))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def options(chance: random.Random) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if chance.random() < 0.6:
        found["expire"] = chance.randint(1, 12)
    if chance.random() < 0.6:
        found["delete_when"] = "v = 0"
    return found


def load(chance: random.Random) -> dict[str, Any]:
    """How a run is driven: work takes no time, or each row takes some."""
    if chance.random() < 0.4:
        return {"chunk_rows": chance.choice([1, 3, 100])}
    return {"tick": 0, "charge": lw.per_row(f"{chance.choice([0.3, 1, 4])} seconds")}


def stream(table: pl.DataFrame, name: str, given: dict[str, Any]) -> lw.Stream:
    return lw.stream(
        lw.replay(table, arrival="came"), name=name, time="ts", jump=None, update_key="k", **given
    )


def alive(name: str, given: dict[str, Any]) -> str:
    """SQL for the newest row of each key of a table, of the keys that live at its end."""
    ends = [f"ts + {given['expire']} > (SELECT max(ts) FROM {name})"] if "expire" in given else []
    ends += ["v <> 0"] if "delete_when" in given else []
    return f"""(SELECT * FROM (SELECT * FROM {name} QUALIFY
        row_number() OVER (PARTITION BY k ORDER BY ts DESC, n DESC) = 1)
        WHERE {" AND ".join(ends) or "true"})"""


def pulled(run: lw.Run) -> pa.Table:
    """The table of a run that has ended, without the columns about answers; each key is looked up,
    too."""
    found = run.table()
    for row in found.to_pylist():
        assert run.latest(row["k"]) == row
        assert row["_staleness"] == 0
    assert run.latest("none") is None
    return found.drop_columns(EXTRA)


@given(SEEDS)
def test_the_table_has_the_newest_row_of_each_key_that_lives(seed: int) -> None:
    chance = random.Random(seed)
    table, given_ = rows(chance), options(chance)
    run = finished(stream(table, "S", given_), **load(chance))
    expected = answer(f"SELECT * FROM {alive('S', given_)}", {"S": table})
    assert table_rows(pulled(run)) == expected


@given(SEEDS)
def test_a_key_ends_also_if_the_row_that_deletes_it_is_filtered_out(seed: int) -> None:
    chance = random.Random(seed)
    table, given_ = rows(chance), {"delete_when": "v = 0"}
    query = stream(table, "S", given_).where("v > 0").select("ts", "v", "n", "came", key="k")
    run = finished(query.map(twice="v * 2"), chunk_rows=chance.choice([1, 7, 100]))
    sql = f"SELECT ts, v, n, came, k, v * 2 FROM {alive('S', given_)}"
    assert table_rows(run.table().drop_columns(EXTRA)) == answer(sql, {"S": table})


@given(SEEDS)
def test_the_table_has_the_newest_window_of_each_key_that_lives(seed: int) -> None:
    """A key of windows ends when its last window is over, at the earliest."""
    chance = random.Random(seed)
    table, given_ = rows(chance), options(chance)
    given_["windows"] = chance.choice(["lazy", "eager"])
    query = stream(table, "S", given_).window("6 s", slide="3 s").group_by("k").agg(n="count(*)")
    run = finished(query, **load(chance))
    expires = f"ts + {given_['expire']}" if "expire" in given_ else "1000000"
    end = f"CASE WHEN v = 0 THEN ts + 1 ELSE {expires} END" if "delete_when" in given_ else expires
    sql = f"""WITH ends AS (
            SELECT k, greatest(ts // 3 * 3 + 6, {end}) AS ends FROM {alive("S", {})}),
        windows AS (
            SELECT start, k, count(*) AS n
            FROM (SELECT unnest(generate_series((ts - 6) // 3 * 3 + 3, ts // 3 * 3, 3)) AS start, *
                  FROM S)
            GROUP BY ALL)
        SELECT start, start + 6, w.k, n FROM windows AS w
        JOIN ends AS e ON w.k IS NOT DISTINCT FROM e.k
        WHERE e.ends > (SELECT max(ts) FROM S)
        QUALIFY row_number() OVER (PARTITION BY w.k ORDER BY start DESC) = 1"""
    assert table_rows(pulled(run)) == answer(sql, {"S": table})


@given(SEEDS)
def test_the_table_of_a_join_has_the_newest_pair_of_keys_that_live_on_both_sides(seed: int) -> None:
    chance = random.Random(seed)
    tables = {"A": rows(chance), "B": rows(chance)}
    end = max(each["ts"].max() for each in tables.values())
    for name, each in tables.items():  # the marks of both are the same in the end
        last = pl.DataFrame([(end + 1, "z", 1, 99, end + 1)], SCHEMA, orient="row")
        tables[name] = pl.concat([each, last])
    given_ = {name: options(chance) for name in tables}
    one, two = (stream(tables[name], name, given_[name]) for name in tables)
    query = one.join(two.select("ts", "v", "n", "came", key="k"), on={"k": "key"})
    run = finished(query.select("ts", "ts_right", "k", "v", "v_right"), **load(chance))
    sides = [alive(name, given_[name]) for name in tables]
    sql = f"""SELECT a.ts, b.ts, a.k, a.v, b.v FROM {sides[0]} AS a JOIN {sides[1]} AS b
        ON a.k = b.k"""
    assert table_rows(pulled(run)) == answer(sql, tables)


class Kept(LocalSpark):
    """A run on Spark's own code whose driver keeps the newest answers, and is killed at times."""

    def __init__(self, query: lw.Stream, seed: int, buckets: int, folder: Path):
        super().__init__(query, seed, buckets, answers=folder)
        shape = answer_shape(self.plan)
        assert shape is not None
        self.shape, self.folder = shape, folder
        self.newest = CommittedAnswers(shape, folder)
        self.newest.begin(BatchNumbers(-1, -1))

    def _run_batch(self, read: Any) -> None:
        done = self._batch
        super()._run_batch(read)
        if self._chance.random() < 0.4:  # killed after the batch was committed
            self.newest = CommittedAnswers(self.shape, self.folder)
            self.newest.begin(BatchNumbers(done, done))
        else:
            self.newest.fold(done)
        if self._chance.random() < 0.3:
            self.newest.end()


@given(SEEDS)
def test_on_spark_the_table_is_that_of_committed_batches_also_after_restarts(seed: int) -> None:
    """Batches that fail and run again, buckets, and drivers that are killed change nothing."""
    chance = random.Random(seed)
    given_, table = options(chance), rows(chance)
    windows = stream(table, "S", given_).window("6 s", slide="3 s").group_by("k")
    query = chance.choice([stream(table, "S", given_), windows.agg(n="count(*)")])
    here = finished(query)
    with tempfile.TemporaryDirectory() as folder:
        run = Kept(query, seed, chance.choice([1, 3]), Path(folder) / "answers")
        run.results()
        found = Puller(run.shape).table(run.newest.answers(None)).to_arrow()
    assert table_rows(found.drop_columns(["_age"])) == table_rows(
        here.table().drop_columns(["_age"])
    )


# ---- the table alone ---------------------------------------------------------------------------

SHAPE = AnswerShape(
    {"ts": pl.Int64(), "k": pl.String(), "g": pl.Int64()}, ("k",), ("k", "g"), ("ts",), ()
)


@given(SEEDS)
def test_a_table_is_what_left_last_of_each_key_whenever_it_is_reduced(seed: int) -> None:
    """Answers of several rows, ends of keys and tables put into tables, beside a dictionary."""
    chance = random.Random(seed)
    table, copies = AnswerTable(SHAPE), []
    newest: dict[str | None, dict[int, int]] = {}
    few = answers.FEW_ROWS, answers.FEW_CHUNKS
    answers.FEW_ROWS, answers.FEW_CHUNKS = chance.choice([(0, 0), (3, 2), few])
    try:
        for at in range(chance.randint(0, 30)):
            key = chance.choice(["a", "b", None])
            if chance.random() < 0.7:
                groups = chance.sample(range(4), chance.randint(1, 3))
                frame = pl.DataFrame({"ts": at, "k": key, "g": groups}, schema=SHAPE.schema)
                if chance.random() < 0.5:
                    table.add(frame, at)
                else:
                    other = AnswerTable(SHAPE)
                    other.add(frame, at)
                    table.put(other.rows())
                newest[key] = dict.fromkeys(groups, at)
            else:
                types = {"k": pl.String, MARK: pl.Int64}
                keys = pl.DataFrame({"k": [key], MARK: [at]}, schema=types)
                table.end(GroupPunctuation(ENDED, keys))
                newest.pop(key, None)
            if chance.random() < 0.1:
                copies.append((table.copy(), {k: dict(v) for k, v in newest.items()}))
            if chance.random() < 0.2:
                assert _held(table.only((key,))) == _expected({key: newest.get(key, {})})
        for found, expected in [*copies, (table, newest)]:
            assert _held(found) == _expected(expected)
    finally:
        answers.FEW_ROWS, answers.FEW_CHUNKS = few


def _held(table: AnswerTable) -> Counter[tuple[Any, ...]]:
    return Counter(table.rows().select("ts", "k", "g").rows())


def _expected(newest: dict[str | None, dict[int, int]]) -> Counter[tuple[Any, ...]]:
    return Counter((at, key, g) for key, groups in newest.items() for g, at in groups.items())


@given(SEEDS)
def test_inside_the_sink_the_table_has_what_left_last_of_each_key(seed: int) -> None:
    chance = random.Random(seed)
    given_ = {"expire": 5} if chance.random() < 0.5 else {}
    last: dict[Any, Any] = {}
    ready: list[lw.Run] = []

    def sink(table: pa.Table) -> None:
        for row in table.to_pylist():
            last[row["k"]] = row
        if ready:
            for row in ready[0].table().to_pylist():
                assert {name: row[name] for name in SCHEMA} == last[row["k"]]
                assert row["_time"] == row["ts"]
                assert row["_staleness"] >= 0
                assert row["_age"] >= 0

    run = stream(rows(chance), "S", given_).run(sink=sink, **load(chance))
    ready.append(run)
    run.await_termination()
    for row in run.table().to_pylist():
        assert {name: row[name] for name in SCHEMA} == last[row["k"]]
