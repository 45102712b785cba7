"""The state of a bucket is saved between batches as bytes, and checked when it is read.

Invariant: a program opens only a state that a program with the same fingerprint has written; for
any other, the error shows the difference.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import polars as pl

from lowwater.engines.awaiting import Awaiting
from lowwater.engines.spark.wire.message import pickled, unpickled
from lowwater.engines.spark.wire.program import StageProgram
from lowwater.engines.spark.worker.cache import ChunkCache
from lowwater.engines.spark.worker.graph import Graph
from lowwater.engines.spark.worker.store import Shelf, SparkStore
from lowwater.engines.step import call
from lowwater.errors import CheckpointError
from lowwater.operators.identity import Identity
from lowwater.operators.kernel import Host
from lowwater.operators.union import Union
from lowwater.progress.intake import BatchIntake
from lowwater.progress.options import OnDemand
from lowwater.state.store import MemoryStore


@dataclass
class BucketState:
    """The state of one bucket that outlives a batch."""

    stores: dict[str, SparkStore]
    """By the slot of an operator, or by ``source`` and the name of a stream."""
    graph: Graph
    intakes: dict[int, BatchIntake]
    aligned: dict[int, Union]
    """For each operator of an earlier stage, the union of the promises of its buckets."""
    ended: set[int]
    """The sources that have ended."""


def open_state(
    program: StageProgram,
    body: bytes | None,
    shelf: Shelf,
    cache: ChunkCache | None,
    now: Callable[[], int],
) -> BucketState:
    """Build a bucket as the batch before left it; ``body`` is None before the first batch.

    ``now`` is the clock that kernels are given, in nanoseconds.
    """
    saved: dict[str, Any] = unpickled(body) if body is not None else {}
    check_compatible(program, saved)
    saved_stores = saved.get("stores", {})

    def store(slot: str) -> SparkStore:
        return SparkStore(slot, shelf, saved_stores.get(slot), cache)

    stores = {part.slot: store(part.slot) for part in program.parts}
    host = Host(
        now,
        copies=len(program.ids),
        in_batches=True,
        hurried=program.hurried,
        memory=program.memory,
        budget=program.budget,
    )
    graph = Graph(program.parts, program.exports, stores.__getitem__, host)
    graph.restore(saved.get("kernels", {}))
    if program.memory is not None:
        graph.open_accounts(program.memory, program.sharing)
    graph.begin()
    if not saved or "awaiting" in saved:
        _follow_groups(program, graph, saved.get("awaiting", {}))
    intakes = {}
    for source in program.sources:
        name = source.spec.name
        before = saved.get("intakes", {}).get(name)
        announced = () if source.ordered or before is not None else source.announced
        stores[f"source {name}"] = held = store(f"source {name}")
        intake = BatchIntake(source.spec, source.demands, announced, held)
        intake.floor = source.floor
        if before is not None:
            intake.restore(before)
        intakes[source.index] = intake
    aligned = {
        producer: Union(MemoryStore(), len(exchange.senders))
        for producer, exchange in program.exchanges.items()
    }
    for producer, before in saved.get("aligned", {}).items():
        call(program.exchanges[producer].where, aligned[producer].restore, before)
    return BucketState(stores, graph, intakes, aligned, set(saved.get("ended", ())))


def _follow_groups(program: StageProgram, graph: Graph, saved: dict[Any, Any]) -> None:
    """Follow the requests of operators for single groups, if sources make timestamps on demand."""
    sources = [each for each in program.sources if each.spec.groups]
    on_demand = frozenset(s.index for s in sources if isinstance(s.spec.idle, OnDemand))
    if on_demand:
        groups = {each.index: each.spec.groups for each in sources}
        graph.awaiting = Awaiting(graph.members, groups, on_demand)
        graph.awaiting.restore(saved)


def save_state(program: StageProgram, state: BucketState) -> bytes:
    """Write the chunks that changed and return the rest as bytes for the next batch."""
    for index, intake in state.intakes.items():
        if index in state.ended:
            intake.clear()
        intake.settle()
    body = {
        "fingerprint": program.fingerprint,
        "own": [vars(own) for _, own in program.own],
        "probe": program.probe,
        "polars": pl.__version__,
        "stores": {slot: store.save() for slot, store in state.stores.items()},
        "kernels": state.graph.snapshot(),
        "intakes": {i.spec.name: i.snapshot() for i in state.intakes.values()},
        "aligned": {
            producer: call(program.exchanges[producer].where, union.snapshot)
            for producer, union in state.aligned.items()
        },
        "ended": sorted(state.ended),
    }
    if state.graph.awaiting is not None:
        body["awaiting"] = state.graph.awaiting.snapshot()
    return pickled(body)


def check_compatible(program: StageProgram, saved: dict[str, Any]) -> None:
    """Refuse the state of another plan, of another aggregate, or of buckets spread otherwise."""
    if not saved:
        return
    before, now = list(saved["fingerprint"]), list(program.fingerprint)
    if before != now:
        gone = [line for line in before if line not in now]
        new = [line for line in now if line not in before]
        lines = [f"  was: {line}" for line in gone] + [f"  is:  {line}" for line in new]
        raise CheckpointError(
            "the checkpoint holds the state of another plan, which this one cannot read:\n"
            + "\n".join(lines or ["  the same operators in another order"])
            + "\nStart from a new checkpoint, or bring the query back to what it was."
        )
    for (where, own), made_with in zip(program.own, saved["own"], strict=True):
        change = own.change_from(Identity(**made_with))
        if change is not None:
            raise CheckpointError(own.advice(where, own.name, change))
    if saved["probe"] != program.probe:
        raise CheckpointError(
            "the checkpoint was written with a version of polars that spreads keys differently;"
            f" go on with polars {saved['polars']}, or start from a new checkpoint"
        )
