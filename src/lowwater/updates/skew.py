"""How unevenly keys are updated: whether it pays to let slow updaters go first."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from lowwater.updates.cells import Cell

SKEWED = 3.0
"""Rates differ if keys near the top update so many times as often as keys near the bottom."""


class Skew:
    """Looks at the rates of all keys, once for as many rows as there are keys."""

    def __init__(self) -> None:
        self.ratio = 1.0
        """How many times as often the fast tenth of keys updates as the slow tenth."""
        self._seen = 0

    @property
    def skewed(self) -> bool:
        """Whether rates differ much."""
        return self.ratio >= SKEWED

    def look(self, cells: Collection[Cell], rows: int) -> None:
        """So many rows came; look again if it is time."""
        self._seen += rows
        gaps = [cell.gap for cell in cells if cell.gap] if self._seen >= self._due(cells) else []
        if len(gaps) > 1:
            slow, fast = np.quantile(gaps, 0.9), np.quantile(gaps, 0.1)
            self.ratio = float(slow / max(fast, 1.0))
            self._seen = 0

    @staticmethod
    def _due(cells: Collection[Cell]) -> int:
        return 4 * len(cells)

    def saved(self) -> tuple[float, int]:
        """What it takes to go on."""
        return self.ratio, self._seen

    def restore(self, saved: tuple[float, int]) -> None:
        """Go on from what :meth:`saved` gave."""
        self.ratio, self._seen = saved
