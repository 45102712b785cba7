"""Engines call kernels through functions that name the operator and the user's line in errors.

Invariant: the engines call methods of kernels through this module only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import polars as pl

from lowwater.errors import LowwaterError, OperatorError
from lowwater.operators.kernel import Kernel
from lowwater.stream.element import Element, End, GroupPunctuation

if TYPE_CHECKING:  # workers take steps and do no planning
    from lowwater.plan.physical.operator import Operator

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


@dataclass(frozen=True)
class Where:
    """An operator as errors name it."""

    title: str
    """Name and number, as in ``window#2``."""
    detail: str
    origin: str
    """The file and line at which the user wrote the operator."""

    @classmethod
    def of(cls, operator: Operator) -> Where:
        """Return where an operator of a plan is."""
        return cls(operator.title, operator.detail, operator.node.origin)

    @property
    def note(self) -> str:
        """The line that is added to an error which has a message of its own."""
        return f"in {self.title} ({self.origin})"

    def failure(self, error: Exception) -> OperatorError:
        """Return the error that names this operator and has another one as its cause."""
        return OperatorError(f"{self.title} {self.detail} ({self.origin})", error)


def step(kernel: Kernel, port: int, element: Element, where: Where) -> Sequence[Element]:
    """Hand a kernel one element of an input and return the elements that leave."""
    try:
        if isinstance(element, pl.DataFrame):
            return kernel.on_chunk(port, element)
        if isinstance(element, End):
            return kernel.on_end(port)
        if isinstance(element, GroupPunctuation):
            return kernel.on_group_punctuation(port, element)
        return kernel.on_punctuation(port, element)
    except LowwaterError as error:
        error.add_note(where.note)
        raise
    except Exception as error:
        raise where.failure(error) from error


def call(
    where: Where,
    method: Callable[Given, Returned],
    *arguments: Given.args,
    **named: Given.kwargs,
) -> Returned:
    """Call a method of a kernel, given as the bound method with its arguments."""
    try:
        return method(*arguments, **named)
    except LowwaterError as error:
        error.add_note(where.note)
        raise
    except Exception as error:
        raise where.failure(error) from error
