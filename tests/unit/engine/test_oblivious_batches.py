"""Joins without a window on batches that have no order: the Spark engine's buckets, without Spark.

Every bucket is built again from its pickled state in every batch, and batches fail and are run
again, so a restart in the middle is in all of these.
"""

from __future__ import annotations

import pickle
from collections import Counter
from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.spark.worker.bucket import Bucket
from lowwater.engines.spark.worker.store import SparkStore
from lowwater.joins.oblivious.estimates import ACCURACY, FOUND, LOST
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.operators.kernel import Host
from lowwater.operators.metric import Readings, combined
from lowwater.plan.physical.planner import compile_plan
from lowwater.stream.element import Chunk
from tests.support import local_spark
from tests.support.local_spark import LocalSpark, MemoryShelf, Unordered
from tests.support.oracle import answer, table_rows

STRATEGIES = ["plain", "msf", "dbf", "hybrid", "auto"]
K = 8


def scrambling(keys: np.ndarray) -> int:
    """How many places at most a row comes after one that is not less."""
    first = np.searchsorted(np.maximum.accumulate(keys), keys, "left")
    return int((np.arange(len(keys)) - first).max())


def log(at: int, seed: int, rows: int = 200, behind: int = 0) -> pl.DataFrame:
    """Rows of one input, two an epoch, scrambled; it is so many epochs behind."""
    chance = np.random.default_rng((seed, at))
    order = np.argsort(np.arange(rows) + chance.uniform(0, K, rows), kind="stable")
    frame = pl.DataFrame({"epoch": order // 2 - behind, f"v{at}": range(rows)})
    return frame.filter(pl.col("epoch") >= 0)


def logs(seed: int, number: int = 3, behind: int = 20) -> list[pl.DataFrame]:
    return [log(at, seed, behind=behind * at) for at in range(number)]


def batches(rows: int, seed: int) -> list[int]:
    edges = np.sort(np.random.default_rng(seed).choice(np.arange(1, rows), 6, replace=False))
    return [int(each) for each in np.diff([0, *edges, rows])]


def stream(frame: pl.DataFrame, name: str, seed: int | None, known: bool = True) -> lw.Stream:
    """Rows as a log that is in order, or with a seed as batches that have none."""
    keys = frame["epoch"].to_numpy()
    many = int(np.unique(keys, return_counts=True)[1].max())
    said = {"disorder": scrambling(keys), "multiplicity": many} if known else {}
    source = frame if seed is None else Unordered(frame, batches(frame.height, seed))
    return lw.stream(source, name=name, time="epoch", progress=lw.unpromised(**said))


def streams(frames: list[pl.DataFrame], seed: int | None, known: bool = True) -> list[lw.Stream]:
    return [
        stream(frame, f"s{at}", seed if seed is None else seed + at, known)
        for at, frame in enumerate(frames)
    ]


def all_results(frames: list[pl.DataFrame]) -> Counter[Any]:
    names = [f"s{at}" for at in range(len(frames))]
    columns = ", ".join(["s0.*", *(f"s{at}.v{at}" for at in range(1, len(frames)))])
    equal = " AND ".join(f"s0.epoch = {name}.epoch" for name in names[1:])
    sql = f"SELECT {columns} FROM {', '.join(names)} WHERE {equal}"
    return answer(sql, dict(zip(names, frames, strict=True)))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("buckets", [1, 3])
@pytest.mark.parametrize("ordered", [True, False], ids=["logs", "batches"])
def test_with_disorder_known_every_result_is_found(
    strategy: Any, buckets: int, ordered: bool
) -> None:
    for seed in range(3):
        frames = logs(seed)
        query = lw.join(streams(frames, None if ordered else seed), on="epoch", strategy=strategy)
        assert table_rows(LocalSpark(query, seed, buckets).results()) == all_results(frames)


@pytest.mark.parametrize("strategy", STRATEGIES[:4])
@pytest.mark.parametrize("buckets", [1, 3])
def test_joins_of_joins_find_every_result(strategy: Any, buckets: int) -> None:
    for seed in range(3):
        frames = logs(seed, number=4, behind=8)
        one, two, three, four = streams(frames, seed)
        left = one.join(two, on="epoch", strategy=strategy)
        right = three.join(four, on="epoch", strategy=strategy)
        query = left.join(right, on="epoch", strategy=strategy)
        assert table_rows(LocalSpark(query, seed, buckets).results()) == all_results(frames)


@pytest.mark.parametrize("strategy", ["msf", "hybrid"])
def test_results_of_sorted_rows_leave_in_the_batch_that_completes_them(strategy: Any) -> None:
    """And not only in the end; within a bucket they never go back."""
    frames = logs(5, number=2, behind=0)
    run = LocalSpark(lw.join(streams(frames, 5), on="epoch", strategy=strategy), 5, 1)
    assert table_rows(run.results()) == all_results(frames)
    some = [each["epoch"] for each in run.answers if each.height]
    assert len(some) >= 3
    assert pl.concat(some).is_sorted()


def test_what_follows_is_answered_before_the_end() -> None:
    """What the join tells is a promise by which windows close."""
    frames = logs(7, number=2, behind=0)
    counts = lw.join(streams(frames, 7), on="epoch").window("10 seconds").agg(n="count(*)")
    run = LocalSpark(counts, 7, 3)
    sql = (
        "SELECT s0.epoch // 10 * 10 AS a, a + 10, count(*) FROM s0 JOIN s1 USING (epoch) GROUP BY a"
    )
    expected = answer(sql, {"s0": frames[0], "s1": frames[1]})
    assert table_rows(run.results()) == expected
    before = sum(each.height for each in run.answers[:-2])
    assert before >= len(expected) // 2


# ---- memory that is limited ----------------------------------------------------------------


class Watched(Bucket):
    """A bucket that takes down what its join has in memory after each batch."""

    memory: list[int]
    on_disk: list[int]

    def saved(self) -> tuple[str, bytes]:
        for member in self._graph.members.values():
            if isinstance(member.kernel, ObliviousJoin):
                places = member.kernel._stored
                self.memory.append(places.memory)
                self.on_disk.append(sum(each.rows for each in places.spilled))
        return super().saved()


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> type[Watched]:
    Watched.memory, Watched.on_disk = [], []
    monkeypatch.setattr(local_spark, "Bucket", Watched)
    return Watched


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("buckets", [1, 3])
def test_a_cap_is_kept_by_all_buckets_together(
    watched: type[Watched], strategy: Any, buckets: int
) -> None:
    memory = 6_000
    frames = logs(3, behind=40)
    query = lw.join(streams(frames, 3, known=False), on="epoch", memory=memory, strategy=strategy)
    found = table_rows(LocalSpark(query, 3, buckets).results())
    assert not found - all_results(frames)
    assert max(watched.memory) <= memory // buckets


@pytest.mark.parametrize("strategy", ["dbf", "hybrid", "auto"])
def test_what_lag_takes_goes_to_state_that_is_not_in_memory_and_nothing_is_lost(
    watched: type[Watched], strategy: Any
) -> None:
    frames = [log(0, 1, 4_000), log(1, 1, 4_000, behind=1_500)]
    memory = 16_000
    assert frames[0].head(3_000).estimated_size() > 2 * memory
    query = lw.join(streams(frames, 1), on="epoch", memory=memory, strategy=strategy)
    assert table_rows(LocalSpark(query, 1, 1).results()) == all_results(frames)
    assert max(watched.memory) <= memory
    assert max(watched.on_disk) > 1_000


# ---- what is lost ---------------------------------------------------------------------------


def far_apart() -> list[pl.DataFrame]:
    """Rows of a second input that come later than any before them, from the middle on."""
    keys = np.arange(4_000)
    order = np.argsort(keys + np.where(keys > 2_000, 900 * (keys % 2), 0), kind="stable")
    return [pl.DataFrame({"epoch": each, f"v{at}": keys}) for at, each in enumerate([keys, order])]


def test_a_run_in_one_process_warns_of_too_many_lost_results_once() -> None:
    frames = far_apart()
    query = lw.join(streams(frames, None, known=False), on="epoch")
    run = query.run(chunk_rows=20)
    with pytest.warns(lw.StreamWarning, match="obliviousjoin.*fewer than 99.9 %") as told:
        run.await_termination()
    assert len(told) == 1
    about = run.metrics().operators[-1].about
    assert about["results found"] == run.results().num_rows < 0.999 * 4_000
    assert about["results found"] + float(about["results lost"]) == pytest.approx(4_000)


def test_what_all_buckets_found_and_lost_is_judged_together() -> None:
    parts = [Readings({ACCURACY: 1.0, FOUND: 900, LOST: 0.0})]
    parts.append(Readings({ACCURACY: 0.5, FOUND: 50, LOST: 50.0}))
    assert combined(parts)[ACCURACY] == 0.95


# ---- what is put aside ---------------------------------------------------------------------


class Batches:
    """The kernel of a join over Spark's store, built again in every batch."""

    def __init__(self, query: lw.Stream):
        build = compile_plan(query._node).result.build
        assert build is not None
        self._build = build
        self._saved: tuple[bytes, bytes] | None = None
        self.shelf = MemoryShelf()
        self.reached = -1

    def take(self, *rows: tuple[int, Chunk]) -> list[Chunk]:
        """A batch; ``shelf.done`` then says what it took from Spark's state and put there."""
        store_saved, kernel_saved = map(pickle.loads, self._saved or [pickle.dumps(None)] * 2)
        self.shelf = MemoryShelf(self.shelf.chunks)
        store = SparkStore("join", self.shelf, store_saved)
        kernel = self._build(store, Host(in_batches=True))
        assert isinstance(kernel, ObliviousJoin)
        if kernel_saved is not None:
            kernel.restore(kernel_saved)
        found = [each for port, chunk in rows for each in kernel.on_chunk(port, chunk)]
        while kernel.has_work:
            found += kernel.work_on()
        kernel.about()
        self.reached = kernel._bounds.reached
        self._saved = pickle.dumps(store.save()), pickle.dumps(kernel.snapshot())
        return [each for each in found if isinstance(each, pl.DataFrame)]

    def pages(self, verb: str) -> list[int]:
        """The least values of the pages that were read, written or erased in the last batch."""
        return [key.slice for done, key in self.shelf.done if done == verb and "aside" in key.name]


def test_what_is_put_aside_stays_in_sparks_state_until_it_is_due() -> None:
    """Pages are read once, when the other input comes near, and one ahead of that."""
    first, second = (pl.DataFrame({"epoch": range(6_000), f"v{at}": range(6_000)}) for at in (0, 1))
    run = Batches(lw.join(streams([first, second], None), on="epoch", strategy="dbf"))
    run.take((0, first[:300]), (1, second[:300]))
    early: list[int] = []
    for chunk in first[300:].iter_slices(600):
        assert run.take((0, chunk)) == []
        assert run.pages("write")
        early += run.pages("read")
    assert early == []  # the page ahead is kept in the batch in which it comes
    waiting = sorted(key.slice for _, key in run.shelf.chunks if "aside" in key.name)
    assert len(waiting) >= 15
    found: list[Chunk] = []
    for chunk in second[300:].iter_slices(150):
        found += run.take((1, chunk))
        due = [least for least in waiting if least <= run.reached]
        ahead = [least for least in waiting if least > run.reached][:1]
        assert set(run.pages("read")) <= {*due, *ahead}
        assert run.pages("read") == run.pages("erase")
        assert len(run.pages("read")) <= 3
        waiting = [least for least in waiting if least not in run.pages("read")]
    assert waiting == []
    assert pl.concat(found)["epoch"].sort().to_list() == list(range(300, 6_000))
