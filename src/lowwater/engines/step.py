"""One step of any engine: hand an element to a kernel; what goes wrong names the operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import TYPE_CHECKING

import polars as pl

from lowwater.errors import LowwaterError, OperatorError
from lowwater.operators.kernel import Kernel
from lowwater.stream.element import Element, End, GroupPunctuation

if TYPE_CHECKING:  # workers take steps and do no planning
    from lowwater.plan.physical.operator import Operator


@dataclass(frozen=True)
class Where:
    """An operator, as a person is told where something happened."""

    title: str
    detail: str
    origin: str
    """The user's own line."""

    @classmethod
    def of(cls, operator: Operator) -> Where:
        """Where an operator of a plan is."""
        return cls(operator.title, operator.detail, operator.node.origin)


def step(kernel: Kernel, port: int, element: Element, where: Where) -> Sequence[Element]:
    """What comes of one element."""
    with _Named(where):
        if isinstance(element, pl.DataFrame):
            return kernel.on_chunk(port, element)
        if isinstance(element, End):
            return kernel.on_end(port)
        if isinstance(element, GroupPunctuation):
            return kernel.on_group_punctuation(port, element)
        return kernel.on_punctuation(port, element)


def proceed(kernel: Kernel, where: Where) -> Sequence[Element]:
    """What comes of a portion of the work that is left."""
    with _Named(where):
        return kernel.work_on()


class _Named:
    """What goes wrong inside names the operator."""

    __slots__ = ("_where",)

    def __init__(self, where: Where):
        self._where = where

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None
    ) -> None:
        where = self._where
        if isinstance(error, LowwaterError):
            error.add_note(f"in {where.title} ({where.origin})")
        elif isinstance(error, Exception):
            named = f"{where.title} {where.detail} ({where.origin})"
            raise OperatorError(named, error) from error
