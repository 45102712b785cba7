"""How many rows a window-oblivious join has to keep (WO-Join §3, §4), as formulas.

A row of one input is kept until every row of the others that may equal it has come. Rows come out
of order by up to ``k`` places, an input's *scrambling factor*, and inputs are behind each other by
a *lag*, counted in rows. Of input ``i``, for input ``j``::

    M(i, j) = max(1, k_i + r_i * k_j / r_j + L(i, j))

and of input ``i`` as much as the others want most. The formulas bound what is kept; a buffer that
goes by values (see ``oblivious_join``) never holds more, and often less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Literal

Mode = Literal["plain", "msf", "dbf", "hybrid"]
MODES: tuple[Mode, ...] = ("plain", "msf", "dbf", "hybrid")
SORTING: tuple[Mode, ...] = ("msf", "hybrid")
"""The modes that put rows in order before they are joined."""
PUTTING_ASIDE: tuple[Mode, ...] = ("dbf", "hybrid")
"""The modes that put rows of inputs far ahead on disk."""


@dataclass(frozen=True, slots=True)
class Traits:
    """What an input is like."""

    rate: float
    """Rows a second (or in any one unit, the same for all inputs)."""
    disorder: int
    """The scrambling factor: how many places at most a row comes after one that is not less."""
    multiplicity: int = 1
    """How many rows at most have the same value."""
    delay: float = 0.0
    """By how many seconds rows come later than those of the foremost input."""


@dataclass(frozen=True)
class Needs:
    """What a join of some inputs needs; ``lags[i][j]`` are rows that ``i`` is ahead of ``j``."""

    inputs: tuple[Traits, ...]
    lags: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, inputs: Sequence[Traits]) -> Needs:
        """With lags that follow from delays."""
        lags = tuple(tuple(one.rate * (two.delay - one.delay) for two in inputs) for one in inputs)
        return cls(tuple(inputs), lags)

    def between(self, one: int, other: int) -> int:
        """Rows of an input to keep for another one (Eq. 7; Eq. 6 where nothing lags)."""
        own, mate = self.inputs[one], self.inputs[other]
        lag = self.lags[one][other]
        return max(1, ceil(own.disorder + own.rate * mate.disorder / mate.rate + lag))

    def buffer(self, one: int) -> int:
        """Rows of an input to keep for all others (Eq. 8)."""
        return max(self.between(one, other) for other in self._others(one))

    def _others(self, one: int) -> list[int]:
        return [other for other in range(len(self.inputs)) if other != one]

    def waiting(self, one: int) -> int:
        """Rows of an input that wait to be put in order before they are joined."""
        return self.inputs[one].disorder

    def kept(self, one: int, mode: Mode, read_ahead: int = 0) -> int:
        """Rows of an input in memory in a mode (§4): kept for others, and waiting to be sorted."""
        if mode == "plain":
            return self.buffer(one)
        own = self.inputs[one]
        sorts = mode in SORTING
        found = []
        for other in self._others(one):
            mate = self.inputs[other]
            behind = mate.multiplicity if sorts else mate.disorder
            lag = self.lags[one][other]
            if mode in PUTTING_ASIDE:
                lag = min(lag, float(read_ahead))
            found.append(own.rate * behind / mate.rate + lag)
        rows = max(1, ceil((own.multiplicity if sorts else own.disorder) + max(found)))
        return rows + (self.waiting(one) if sorts else 0)

    def total(self, mode: Mode, read_ahead: int = 0) -> int:
        """Rows of all inputs in memory in a mode."""
        return sum(self.kept(one, mode, read_ahead) for one in range(len(self.inputs)))

    def wait_seconds(self) -> float:
        """How long a row waits at most to be put in order, if rates are rows a second."""
        return max(each.disorder / each.rate for each in self.inputs)


def joined(inputs: Sequence[Traits]) -> Traits:
    """What the results of a join are like at most, as an input of the next one (Theorem 3.1)."""
    others = [
        prod(two.multiplicity for at, two in enumerate(inputs) if at != own)
        for own in range(len(inputs))
    ]
    return Traits(
        rate=sum(each.rate * more for each, more in zip(inputs, others, strict=True)),
        disorder=sum(each.disorder * more for each, more in zip(inputs, others, strict=True)),
        multiplicity=prod(each.multiplicity for each in inputs),
        delay=max(each.delay for each in inputs),
    )
