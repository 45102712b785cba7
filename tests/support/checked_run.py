"""A run that checks every promise: each operator's output against the punctuation it sent before.

It drives the kernels of a compiled plan by hand: rows cut into chunks at random, inputs interleaved
at random, kernels torn down and built again from their snapshots at random moments, settled or not,
work that can be cut done in portions or at once. Floors travel against the rows as in an engine;
with ``forgets`` the floor of the result rises to these, one after the other, at random moments.
It fails when

- a row breaks a promise its operator made before (promises must be sound),
- a promise goes backwards, of the whole stream or of a group (promises must be monotone),
- something is left in a store at the end (state must be purged),
- the side an element is pushed to has already ended.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any
from unittest import mock

import polars as pl
from hypothesis import strategies as st

from lowwater.api import Stream
from lowwater.engines.feedback import Feedback
from lowwater.joins import shape
from lowwater.operators import aggregates, flush, gradual, partials, window_state
from lowwater.operators.kernel import Host, Kernel
from lowwater.plan.physical.operator import KernelOperator, Operator, PlanShape
from lowwater.plan.physical.planner import compile_plan
from lowwater.progress.intake import Intake
from lowwater.state import slicing
from lowwater.state import store as store_module
from lowwater.state.store import MemoryStore
from lowwater.stream.element import (
    BEGINNING,
    ENDED,
    MARK,
    Element,
    End,
    GroupPunctuation,
    Punctuation,
)
from lowwater.stream.floor import Floor, needed_rows, raised


class PromiseBook:
    """Everything an operator has promised, checked against what it sends afterwards."""

    def __init__(self, operator: Operator):
        self._operator = operator
        self._bounds: dict[tuple[str, ...], tuple[int, ...]] = {}
        self._groups: dict[tuple[str, tuple[str, ...]], pl.DataFrame] = {}
        self.ended = False

    def check(self, element: Element) -> None:
        assert not self.ended, f"{self._operator.title} spoke after its end"
        if isinstance(element, pl.DataFrame):
            self._check_rows(element)
        elif isinstance(element, Punctuation):
            before = self._bounds.get(element.attributes)
            if before is not None:
                assert any(n > o for n, o in zip(element.values, before, strict=True)), (
                    f"{self._operator.title} told {element} again"
                )
                assert all(n >= o for n, o in zip(element.values, before, strict=True)), (
                    f"{self._operator.title} went back: {before} -> {element}"
                )
            self._bounds[element.attributes] = element.values
        elif isinstance(element, GroupPunctuation):
            self._note(element)
        elif isinstance(element, End):
            self.ended = True

    def _note(self, promise: GroupPunctuation) -> None:
        """Groups are named once in a promise, their marks never go back, and ``before`` is true."""
        title, keys = self._operator.title, list(promise.keys)
        assert promise.marks.height, f"{title} promised nothing of any group"
        assert not promise.marks.select(keys).is_duplicated().any(), f"{title}: {promise.marks}"
        if promise.attribute == ENDED:  # a report about what left, no promise: a key may end again
            return
        before = self._groups.get((promise.attribute, promise.keys), promise.marks.clear())
        both = promise.marks.join(before, on=keys, how="left", suffix="_before")
        back = both.filter(pl.col(MARK) < pl.col(f"{MARK}_before"))
        assert not back.height, f"{title} went back: {back}"
        whole = self._bounds.get((promise.attribute,), (promise.before,))[0]
        held = pl.max_horizontal(pl.col(f"{MARK}_before").fill_null(BEGINNING), pl.lit(whole))
        below = both.filter(held < promise.before)
        assert not below.height, f"{title} said {promise.before}, but: {below}"
        rest = before.join(promise.marks, on=keys, how="anti")
        self._groups[promise.attribute, promise.keys] = pl.concat([rest, promise.marks])

    def _check_rows(self, rows: pl.DataFrame) -> None:
        assert rows.height, f"{self._operator.title} sent an empty chunk"
        for attributes, values in self._bounds.items():
            if not set(attributes) <= set(rows.columns):
                continue
            kept = pl.any_horizontal(
                (pl.col(name).to_physical() >= value) | pl.col(name).is_null()
                for name, value in zip(attributes, values, strict=True)
            )
            broken = rows.filter(~kept)
            assert not broken.height, (
                f"{self._operator.title} promised {attributes} >= {values}, then sent {broken}"
            )
        for (attribute, keys), marks in self._groups.items():
            if not {attribute, *keys} <= set(rows.columns):
                continue
            bounded = rows.join(marks, on=list(keys), nulls_equal=True)
            broken = bounded.filter(pl.col(attribute).to_physical() < pl.col(MARK))
            assert not broken.height, f"{self._operator.title} broke {marks}: {broken}"


class CheckedRun:
    """Runs a query under random cuts, interleavings and restarts, checking all the way."""

    hurried = True
    """Whether work takes time, so that rows may wait in queues."""

    def __init__(
        self,
        query: Stream,
        draw: Any,
        shape: PlanShape = "out-of-order",
        restarts: bool = True,
        largest: int = 6,
        announced: bool = True,
        forgets: Sequence[Floor] = (),
    ):
        self.plan = compile_plan(query._node, shape)
        self._draw, self._restarts, self._largest = draw, restarts, largest
        self._announced = announced
        self._stores = [MemoryStore() for _ in self.plan.operators]
        self._portions = draw(st.booleans())
        self._kernels: dict[int, Kernel] = {
            each.index: self._built(each) for each in self.plan.kernels
        }
        self.needs: dict[int, Floor] = {}
        self.forgotten: Floor = {}
        self._forgets = list(forgets)
        self._feedback = Feedback(
            {each.index: each.inputs for each in self.plan.kernels},
            lambda index: self._kernels[index].floors(),
            dict(enumerate(self.plan.floors)),
            [self.plan.result.index],
            self._state_floor,
        )
        self._feedback.begin()
        self._books = [PromiseBook(each) for each in self.plan.operators]
        self._time = 0
        self._out: list[pl.DataFrame] = []
        self.refused: dict[str, list[pl.DataFrame]] = {}
        self.elements: list[Element] = []

    def _built(self, operator: KernelOperator) -> Kernel:
        host = Host(self._now, in_portions=self._portions, hurried=self.hurried)
        return operator.build(self._stores[operator.index], host)

    def _now(self) -> int:
        self._time += 1_000
        return self._time

    def _state_floor(self, index: int, floor: Floor) -> None:
        self.needs[index] = floor
        if index in self._kernels:
            self._kernels[index].forget(floor)

    def _maybe_forget(self) -> None:
        if self._forgets and self._draw(st.booleans()):
            self.forgotten = raised(self.forgotten, self._forgets.pop(0))
            self._feedback.forget(self.plan.result.index, self.forgotten)

    def results(self) -> pl.DataFrame:
        """Run to the end and give all results.

        Thresholds that decide only what things cost are made small half of the time, so that
        small streams go through the same code as large ones.
        """
        if not self._draw(st.booleans()):
            return self._results()
        with (
            mock.patch.object(slicing, "FIRST_ROWS", 5),
            mock.patch.object(slicing, "ROWS_PER_SLICE", 3),
            mock.patch.object(partials, "FEWEST", 3),
            mock.patch.object(partials, "TRY_AGAIN", 2),
            mock.patch.object(aggregates, "MANY", 4),
            mock.patch.object(aggregates, "FEW", 4),
            mock.patch.object(flush, "SLOTS", 4),
            mock.patch.object(flush, "PIECES", 4),
            mock.patch.object(gradual, "PIECES", 4),
            mock.patch.object(window_state, "SEEN_ROWS", 3),
            mock.patch.object(window_state, "SEEN_ANSWERS", 1),
            mock.patch.object(window_state, "BETTER", 1.0),
            mock.patch.object(store_module, "COMPACT_BELOW", 4),
            mock.patch.object(shape, "FAR", 0),
        ):
            return self._results()

    def _results(self) -> pl.DataFrame:
        feeds = []
        for operator in self.plan.sources:
            spec, source = operator.spec, operator.source
            announced = spec.channels
            if not announced and spec.key_columns and self._announced:
                announced = source.channels(spec.key_columns)
            intake = Intake(spec, self.plan.demands[operator.index], announced)
            feeds.append((operator, intake, source.open()))
        while feeds:
            at = self._draw(st.integers(0, len(feeds) - 1))
            operator, intake, reader = feeds[at]
            if reader.ended:
                self._emit(operator, End())
                feeds.pop(at)
                continue
            chunk = reader.read(2**62, self._draw(st.integers(1, self._largest)))
            assert chunk is not None
            if self._restarts and self._draw(st.booleans()):
                intake = self._reborn_intake(operator, intake)
                feeds[at] = (operator, intake, reader)
            self._maybe_forget()
            intake.floor = self.needs.get(operator.index, {})
            self._take(operator, intake, chunk)
        for index, kernel in self._kernels.items():
            while kernel.has_work:
                self._emit_all(index, kernel.work_on())
        for operator, store in zip(self.plan.operators, self._stores, strict=True):
            assert store.rows == 0 == store.bytes, f"{operator.title} left {list(store)}"
        schema = dict(self.plan.schema)
        if not self._out:
            return pl.DataFrame(schema=schema)
        result = pl.concat(self._out)
        assert dict(result.schema) == schema, f"declared {schema}, got {dict(result.schema)}"
        return result

    def _take(self, operator: Operator, intake: Intake, chunk: pl.DataFrame) -> None:
        for part in intake.parts(chunk):
            taken = intake.take(chunk[part], self._now())
            if taken.refused is not None:
                self.refused.setdefault(intake.spec.name, []).append(taken.refused)
            self._emit_all(operator.index, [taken.rows, *taken.promises])

    def _reborn_intake(self, operator: Operator, intake: Intake) -> Intake:
        saved = copy.deepcopy(intake.snapshot())
        fresh = Intake(intake.spec, self.plan.demands[operator.index])
        fresh.restore(saved)
        return fresh

    def _reborn(self, index: int) -> Kernel:
        kernel = self._kernels[index]
        if self._draw(st.booleans()):
            kernel.settle()
        saved = copy.deepcopy(kernel.snapshot())
        self._kernels[index] = self._built(self.plan.kernel(index))
        self._kernels[index].restore(saved)
        self._kernels[index].forget(self._feedback.floor(index))
        self._feedback.refresh(index)
        return self._kernels[index]

    def _emit(self, operator: Operator, element: Element) -> None:
        self._books[operator.index].check(element)
        if operator is self.plan.result:
            self.elements.append(element)
            if isinstance(element, pl.DataFrame):
                self._out.append(
                    needed_rows(element.select(list(self.plan.schema)), self.forgotten)
                )
        for index, port in self.plan.consumers(operator.index):
            kernel = self._kernels[index]
            if self._restarts and not kernel.has_work and self._draw(st.booleans()):
                kernel = self._reborn(index)
            if isinstance(element, pl.DataFrame):
                needed = self._feedback.needed(index, port, element)
                results = feed(kernel, port, needed) if needed.height else ()
            else:
                results = feed(kernel, port, element)
            if kernel.feeds_back and not isinstance(element, pl.DataFrame):
                self._feedback.refresh(index)
            self._emit_all(index, results)
            while kernel.has_work and self._draw(
                st.booleans()
            ):  # the rest waits for the next element
                kernel.record_time(self._draw(st.sampled_from([0, 10_000_000, 10**12])))
                self._emit_all(index, kernel.work_on())

    def _emit_all(self, index: int, elements: Sequence[Element]) -> None:
        for element in elements:
            if not isinstance(element, pl.DataFrame) or element.height:
                self._emit(self.plan.operators[index], element)


def feed(kernel: Kernel, port: int, element: Element) -> Sequence[Element]:
    if isinstance(element, pl.DataFrame):
        return kernel.on_chunk(port, element)
    if isinstance(element, End):
        return kernel.on_end(port)
    if isinstance(element, GroupPunctuation):
        return kernel.on_group_punctuation(port, element)
    return kernel.on_punctuation(port, element)
