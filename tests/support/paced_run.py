"""A run one row at a time, in an order that follows from a seed: what leaves after which row.

Two runs of a query with the same seed read the same rows in the same order, so what one answers
sooner than the other, and what promises it takes, can be compared step by step. Every promise on
every arc is checked as in the checked run.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import polars as pl

from lowwater.api import Stream
from lowwater.operators.kernel import ALONE, Kernel
from lowwater.plan.physical.operator import Operator, PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.demand import Demand
from lowwater.progress.intake import Intake
from lowwater.state.store import MemoryStore
from lowwater.stream.element import Element, End, Punctuation
from tests.support.checked_run import PromiseBook, feed

AFTER_ALL = 10**9
"""The step of what leaves only because the input has ended."""


class PacedRun:
    """Runs a query to its end and keeps when each row of the result left."""

    def __init__(
        self,
        query: Stream,
        seed: int,
        shape: PlanShape = "out-of-order",
        thin: bool = True,
        order: Sequence[str] = (),
        rows: int = 1,
    ):
        """Not ``thin``: sources tell every mark. ``order``: mostly one after the other is read.
        ``rows`` are read at once."""
        self.plan = compile_plan(query._node, shape)
        self._kernels: dict[int, Kernel] = {
            each.index: each.build(MemoryStore(), ALONE) for each in self.plan.kernels
        }
        self._books = [PromiseBook(each) for each in self.plan.operators]
        self._step = 0
        self.left: list[tuple[tuple[Any, ...], int]] = []
        """The rows of the result, and the step after which each left."""
        self.told: dict[str, list[Punctuation]] = {}
        """The promises of each source, linear ones."""
        self.arcs: Counter[str] = Counter()
        """How many promises each operator told."""
        self.marks: list[dict[str, int]] = []
        """The marks of all sources after each step."""
        self._rows = rows
        self._run(random.Random(seed), thin, list(order))

    def _run(self, chance: random.Random, thin: bool, order: list[str]) -> None:
        feeds = []
        for operator in self.plan.sources:
            spec, source = operator.spec, operator.source
            demands = dict(self.plan.demands[operator.index])
            if not thin:
                demands |= dict.fromkeys(spec.domains, Demand.any_value())
            announced = spec.channels
            if not announced and spec.key_columns:
                announced = source.channels(spec.key_columns)
            feeds.append((operator, Intake(spec, demands, announced), source.open()))
            self.told[spec.name] = []
        marks: dict[str, int] = {}
        while any(not reader.ended for _, _, reader in feeds):
            ready = [each for each in feeds if not each[2].ended]
            if order and chance.random() < 0.9:
                ready.sort(key=lambda each: order.index(each[1].spec.name))
                ready = ready[:1]
            operator, intake, reader = chance.choice(ready)
            chunk = reader.read(2**62, self._rows)
            assert chunk is not None
            self._step += 1
            taken = intake.take(chunk, 0)
            if taken.rows.height:
                self._emit(operator, taken.rows)
            for promise in taken.promises:
                if isinstance(promise, Punctuation):
                    self.told[intake.spec.name].append(promise)
                self._emit(operator, promise)
            marks[intake.spec.name] = intake.mark(intake.spec.time)
            self.marks.append(dict(marks))
        self._step = AFTER_ALL
        for operator, _, _ in feeds:
            self._emit(operator, End())

    def _emit(self, operator: Operator, element: Element) -> None:
        self._books[operator.index].check(element)
        if not isinstance(element, pl.DataFrame | End):
            self.arcs[operator.title] += 1
        if operator is self.plan.result and isinstance(element, pl.DataFrame):
            rows = element.select(list(self.plan.schema)).rows()
            self.left += [(row, self._step) for row in rows]
        for index, port in self.plan.consumers(operator.index):
            for result in feed(self._kernels[index], port, element):
                if not isinstance(result, pl.DataFrame) or result.height:
                    self._emit(self.plan.operators[index], result)
