"""The memory that a window-oblivious join needs, and the relief it takes under a cap (WO-Join
§3-§5).

A row of one input is kept until every row of the others that may equal it has come. The rows of
input ``i`` come at most ``k_i`` positions out of order (its *scrambling factor*) and at a rate of
``r_i``; the input is ``L(i, j)`` rows ahead of input ``j`` (its *lag*). For input ``j`` it keeps::

    M(i, j) = max(1, k_i + r_i * k_j / r_j + L(i, j))

rows, and for all other inputs together the greatest of these numbers. If times need only be near
each other, it also keeps the rows that come in its window. The numbers are upper bounds: the
join drops rows by their values (see ``oblivious_join``), so it never keeps more and often less.

Without a cap on memory, or while the predicted rows fit, rows are joined as they come (*plain*).
There are three reliefs: rows are sorted before they are joined (*msf*, saves the memory that
disorder takes), rows of inputs that are far ahead are kept on disk (*dbf*, saves the memory that
lag takes), and both (*hybrid*). The first mode that fits is taken, in the order of
``RELIEF_MODES``; if none fits, the one that takes the least memory. A relief ends only when a
lesser mode clearly fits, so that noise causes no switches. Reliefs change where rows are and when
results leave, and lose none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, prod
from typing import Any

from lowwater.joins.oblivious.options import (
    RELIEF_MODES,
    SORTING_MODES,
    SPILLING_MODES,
    Oblivious,
    ReliefMode,
)
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Readings


@dataclass(frozen=True, slots=True)
class InputTraits:
    """The properties of an input in the model."""

    rate: float
    """Rows a second, or in any other unit that is the same for all inputs."""
    disorder: int
    """Scrambling factor: the greatest number of positions a row comes after one that is not less.
    """
    multiplicity: int = 1
    """Greatest number of rows with the same value."""
    delay: float = 0.0
    """Seconds by which rows come later than those of the input that is furthest ahead."""
    reach: float = 0.0
    """Rows that come in the window of an input whose times need only be near those of others."""


@dataclass(frozen=True)
class MemoryNeeds:
    """The rows that a join has to keep, by the model; input ``i`` is ``lags[i][j]`` rows ahead of
    input ``j``."""

    inputs: tuple[InputTraits, ...]
    lags: tuple[tuple[float, ...], ...]

    @classmethod
    def of(cls, inputs: Sequence[InputTraits]) -> MemoryNeeds:
        """Return the needs of inputs whose lags follow from their delays."""
        lags = tuple(tuple(one.rate * (two.delay - one.delay) for two in inputs) for one in inputs)
        return cls(tuple(inputs), lags)

    def between(self, one: int, other: int) -> int:
        """Return the rows of an input to keep for another one (Eq. 7; Eq. 6 without lag)."""
        own, mate = self.inputs[one], self.inputs[other]
        lag = self.lags[one][other]
        return max(1, ceil(own.disorder + own.rate * mate.disorder / mate.rate + lag + own.reach))

    def buffer(self, one: int) -> int:
        """Return the rows of an input to keep for all others (Eq. 8)."""
        return max(self.between(one, other) for other in self._others(one))

    def _others(self, one: int) -> list[int]:
        return [other for other in range(len(self.inputs)) if other != one]

    def waiting(self, one: int) -> int:
        """Return the rows of an input that wait to be sorted before they are joined."""
        return self.inputs[one].disorder

    def kept(self, one: int, mode: ReliefMode, read_ahead: int = 0) -> int:
        """Return the rows of an input in memory in a mode, kept for others or waiting (§4)."""
        if mode == "plain":
            return self.buffer(one)
        own = self.inputs[one]
        sorts = mode in SORTING_MODES
        found = []
        for other in self._others(one):
            mate = self.inputs[other]
            behind = mate.multiplicity if sorts else mate.disorder
            lag = self.lags[one][other]
            if mode in SPILLING_MODES:
                lag = min(lag, float(read_ahead))
            found.append(own.rate * behind / mate.rate + lag + own.reach)
        rows = max(1, ceil((own.multiplicity if sorts else own.disorder) + max(found)))
        return rows + (self.waiting(one) if sorts else 0)

    def total(self, mode: ReliefMode, read_ahead: int = 0) -> int:
        """Return the rows of all inputs in memory in a mode."""
        return sum(self.kept(one, mode, read_ahead) for one in range(len(self.inputs)))

    def wait_seconds(self) -> float:
        """Return the most seconds that a row waits to be sorted, if rates are rows a second."""
        return max(each.disorder / each.rate for each in self.inputs)


def joined(inputs: Sequence[InputTraits]) -> InputTraits:
    """Return bounds on the properties of a join's results as an input of another join (Theorem
    3.1)."""
    others = [
        prod(two.multiplicity for at, two in enumerate(inputs) if at != own)
        for own in range(len(inputs))
    ]
    return InputTraits(
        rate=sum(each.rate * more for each, more in zip(inputs, others, strict=True)),
        disorder=sum(each.disorder * more for each, more in zip(inputs, others, strict=True)),
        multiplicity=prod(each.multiplicity for each in inputs),
        delay=max(each.delay for each in inputs),
    )


FITS = 0.9
"""A prediction fits if it takes at most this share of the cap."""
BACK = 0.6
"""A relief ends when a lesser mode is predicted to take at most this share of the cap."""
SECOND = 1_000_000_000


class ReliefChooser:
    """Chooses the relief mode.

    ``limited`` is true if there is a cap on memory; by default, if the options have one.
    """

    def __init__(self, options: Oblivious, limited: bool | None = None):
        self._options = options
        self._limited = options.memory is not None if limited is None else limited
        given = options.strategy
        self.mode: ReliefMode = "plain" if given == "auto" else given
        self.reason = "as asked" if given != "auto" else "nothing limits memory"
        self.switches = 0
        if self.chooses:
            self.reason = "too little seen to decide"

    @property
    def sorts(self) -> bool:
        """True if the mode sorts rows before they are joined."""
        return self.mode in SORTING_MODES

    @property
    def spills(self) -> bool:
        """True if the mode keeps rows of inputs far ahead on disk."""
        return self.mode in SPILLING_MODES

    @property
    def chooses(self) -> bool:
        """True if the mode depends on predictions: a strategy of ``auto`` and a cap on memory."""
        return self._options.strategy == "auto" and self._limited

    def allowed(self, needs: MemoryNeeds) -> list[ReliefMode]:
        """Return the modes that may be chosen, in order; the only mode if none is chosen."""
        if not self.chooses:
            return [self.mode]
        return [mode for mode in RELIEF_MODES if self._soon_enough(mode, needs)]

    def choose(self, needs: MemoryNeeds, row_bytes: float, cap: int, read_ahead: int) -> None:
        """Choose the mode by the bytes that each is predicted to take.

        ``row_bytes`` is the size of a row and ``cap`` the allowed memory, both in bytes.
        ``read_ahead`` is the number of rows that are read from disk before they are due.
        """
        allowed = self.allowed(needs)
        takes = {mode: needs.total(mode, read_ahead) * row_bytes for mode in allowed}
        now = RELIEF_MODES.index(self.mode)
        fitting = [
            mode
            for mode in allowed
            if takes[mode] <= (FITS if RELIEF_MODES.index(mode) >= now else BACK) * cap
        ]
        mode = fitting[0] if fitting else min(takes, key=takes.__getitem__)
        self.switches += mode != self.mode
        self.mode, self.reason = mode, _because(needs, takes, mode, cap)

    def guess(self, ahead: int, others: int) -> None:
        """Choose the mode before there are predictions.

        ``ahead`` is the number of rows in memory that some input has not reached, ``others`` the
        number of all other rows in memory.
        """
        waits = others > ahead and self._options.latency is None
        mode: ReliefMode = "hybrid" if waits else "dbf"
        self.switches += mode != self.mode
        self.mode = mode
        self.reason = f"memory is full before disorder is known; {ahead:,} rows are ahead of others"

    def _soon_enough(self, mode: ReliefMode, needs: MemoryNeeds) -> bool:
        limit = self._options.latency
        return mode not in SORTING_MODES or limit is None or needs.wait_seconds() * SECOND <= limit

    def metrics(self) -> Readings:
        """Return the strategy in force, the reason, and the number of changes if it can change."""
        switches = self.switches if self.chooses else None
        return Readings({STRATEGY: self.mode, REASON: self.reason, SWITCHES: switches})

    def snapshot(self) -> Any:
        """Return the mode, its reason and the number of switches."""
        return self.mode, self.reason, self.switches

    def restore(self, saved: Any) -> None:
        """Set the state to that of a snapshot; a strategy set explicitly now takes precedence."""
        if self.chooses:
            self.mode, self.reason, self.switches = saved


def _because(needs: MemoryNeeds, takes: dict[ReliefMode, float], mode: ReliefMode, cap: int) -> str:
    ports = range(len(needs.inputs))
    lag = sum(max(0.0, *(needs.lags[one][two] for two in ports if two != one)) for one in ports)
    disorder = max(0.0, needs.total("plain") - lag)
    plain, chosen = takes["plain"], takes[mode]
    fits = "fits into" if chosen <= cap else "is still more than"
    return (
        f"disorder takes {disorder:,.0f} rows and lag {lag:,.0f}, {plain:,.0f} bytes together;"
        f" {mode} takes {chosen:,.0f}, which {fits} {cap:,}"
    )
