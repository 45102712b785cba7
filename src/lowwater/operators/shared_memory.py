"""The protocol of operators that share a memory budget with others.

Such an operator says how much memory it needs, and is given a share. An engine asks and gives
between steps.

Invariant: after :meth:`SharesMemory.take_share` returns, and after every step from then on, the
rows in memory take at most the share.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from lowwater.stream.element import Element


class MemoryNeed(Protocol):
    """The memory that an operator needs for its rows."""

    @property
    def full(self) -> int:
        """Bytes to keep all rows in memory."""

    @property
    def least(self) -> int:
        """Bytes with which the accuracy can be kept, with the relief that takes least."""

    @property
    def certain(self) -> bool:
        """True if it is declared, or measured from enough rows to judge a query by it."""

    @property
    def asked(self) -> float:
        """The share of results that should be found, from 0 to 1."""

    def expected(self, share: int) -> float:
        """Return the share of results to be expected with ``share`` bytes."""

    def describe(self) -> str:
        """Return the need in words."""


@runtime_checkable
class SharesMemory(Protocol):
    """A kernel that works with less or more memory, as it is given."""

    @property
    def memory_need(self) -> MemoryNeed | None:
        """The need by the last measurement; None before there is one."""

    @property
    def memory_used(self) -> int:
        """Bytes of the rows in memory now."""

    def take_share(self, share: int) -> Sequence[Element]:
        """Obey a share, in bytes, from now on; return the elements that leave."""
