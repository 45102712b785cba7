"""The claims of the UpStream paper (Moga, Botan, Tatbul: queues for streams of updates)."""

from __future__ import annotations

from lowwater.claims import (
    updates_example,
    updates_memory,
    updates_queues,
    updates_rates,
    updates_staleness,
    updates_traces,
    updates_windows,
)
from lowwater.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    updates_example.F2,
    updates_staleness.F5,
    updates_queues.F7,
    updates_rates.F9,
    updates_traces.F12,
    updates_windows.F13,
    updates_windows.F14,
    updates_memory.F16,
)
"""In the order of the paper."""
