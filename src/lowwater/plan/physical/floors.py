"""The floors that follow from a query alone are computed once, from the result to the sources.

A condition on a progressing time states which rows a filter needs. From there kernels translate
floors to their inputs, as they do at run time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from lowwater.operators.kernel import ALONE
from lowwater.state.store import MemoryStore
from lowwater.stream.floor import Floor, least, raised

if TYPE_CHECKING:
    from lowwater.plan.physical.operator import Operator


def floors_of(operators: Sequence[Operator], leaving: Iterable[int]) -> tuple[Floor, ...]:
    """Return the floor of each operator's output: the least of what its consumers need.

    The rows of the operators ``leaving`` leave the plan, too; all of them are needed.
    """
    asked: list[list[Floor]] = [[] for _ in operators]
    for index in leaving:
        asked[index].append({})
    found: list[Floor] = [{} for _ in operators]
    for operator in reversed(operators):
        floor = least(asked[operator.index]) if asked[operator.index] else {}
        found[operator.index] = floor = raised(floor, operator.floor)
        for source, own in zip(operator.inputs, input_floors(operator, floor), strict=True):
            asked[source].append(own)
    return tuple(found)


def input_floors(operator: Operator, floor: Floor) -> Sequence[Floor]:
    """Return the floors of an operator's inputs that follow from the floor of its output."""
    build = getattr(operator, "build", None)
    if not floor or build is None:
        return [{} for _ in operator.inputs]
    kernel = build(MemoryStore(), ALONE)
    kernel.forget(floor)
    return list(kernel.floors())
