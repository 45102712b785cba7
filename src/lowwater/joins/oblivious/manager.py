"""The memory manager: which relief a window-oblivious join takes, by what the model predicts.

Without a cap, or while what is predicted fits, rows are joined as they come. Else the reliefs are
tried in the order of what they cost in latency: rows of inputs that are far ahead wait on disk
(what lag takes is saved), rows are sorted before they are joined (what disorder takes is saved),
both. The first that fits is taken; if none fits, the one that needs least. It goes back only when
what is predicted fits clearly, so that measurements which waver do not make it waver.

What it chooses changes where rows wait and when results come; it loses none.
"""

from __future__ import annotations

from typing import Any

from lowwater.joins.oblivious.model import MODES, SORTING, Mode, Needs
from lowwater.joins.oblivious.options import Oblivious
from lowwater.operators.metric import REASON, STRATEGY, SWITCHES, Readings

FITS = 0.9
"""What is predicted fits if it takes no more than this share of the cap."""
BACK = 0.6
"""A relief is given up when less of it would take no more than this share."""
SECOND = 1_000_000_000


class Manager:
    """Chooses the mode."""

    def __init__(self, options: Oblivious):
        self._options = options
        asked = options.strategy
        self.mode: Mode = "plain" if asked == "auto" else asked
        self.reason = "as asked" if asked != "auto" else "nothing limits memory"
        self.switches = 0
        if self.chooses:
            self.reason = "too little seen to decide"

    @property
    def chooses(self) -> bool:
        """Whether there is anything to choose."""
        return self._options.strategy == "auto" and self._options.memory is not None

    def choose(self, needs: Needs, row_bytes: float, cap: int, read_ahead: int) -> None:
        """Choose by what each mode would take."""
        allowed = [mode for mode in MODES if self._soon_enough(mode, needs)]
        takes = {mode: needs.total(mode, read_ahead) * row_bytes for mode in allowed}
        now = MODES.index(self.mode)
        fitting = [
            mode
            for mode in allowed
            if takes[mode] <= (FITS if MODES.index(mode) >= now else BACK) * cap
        ]
        mode = fitting[0] if fitting else min(takes, key=takes.__getitem__)
        self.switches += mode != self.mode
        self.mode, self.reason = mode, _because(needs, takes, mode, cap)

    def guess(self, ahead: int, others: int) -> None:
        """Choose before the model has anything to go by: rows that others have not reached yet, and
        the rest."""
        waits = others > ahead and self._options.latency is None
        mode: Mode = "hybrid" if waits else "dbf"
        self.switches += mode != self.mode
        self.mode = mode
        self.reason = f"memory is full before disorder is known; {ahead:,} rows are ahead of others"

    def _soon_enough(self, mode: Mode, needs: Needs) -> bool:
        limit = self._options.latency
        return mode not in SORTING or limit is None or needs.wait_seconds() * SECOND <= limit

    def metrics(self) -> Readings:
        """Return the strategy in force, the reason, and how often it changed if it can."""
        switches = self.switches if self.chooses else None
        return Readings({STRATEGY: self.mode, REASON: self.reason, SWITCHES: switches})

    def snapshot(self) -> Any:
        """What is chosen."""
        return self.mode, self.reason, self.switches

    def restore(self, saved: Any) -> None:
        """Go on from a snapshot; a strategy that is asked for now counts."""
        if self.chooses:
            self.mode, self.reason, self.switches = saved


def _because(needs: Needs, takes: dict[Mode, float], mode: Mode, cap: int) -> str:
    ports = range(len(needs.inputs))
    lag = sum(max(0.0, *(needs.lags[one][two] for two in ports if two != one)) for one in ports)
    disorder = max(0.0, needs.total("plain") - lag)
    plain, chosen = takes["plain"], takes[mode]
    fits = "fits into" if chosen <= cap else "is still more than"
    return (
        f"disorder takes {disorder:,.0f} rows and lag {lag:,.0f}, {plain:,.0f} bytes together;"
        f" {mode} takes {chosen:,.0f}, which {fits} {cap:,}"
    )
