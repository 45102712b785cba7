"""The claims of the WO-Join paper (Wu, Tan, Zhou: joins without windows, memory by the data)."""

from __future__ import annotations

from lowwater.claims import (
    oblivious_buffers,
    oblivious_example,
    oblivious_latency,
    oblivious_memory,
)
from lowwater.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    oblivious_example.F1,
    oblivious_buffers.F5,
    oblivious_buffers.F6,
    oblivious_memory.F8,
    oblivious_memory.F9,
    oblivious_latency.F11,
)
"""In the order of the paper."""
