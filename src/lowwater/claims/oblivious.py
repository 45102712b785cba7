"""The claims of the WO-Join paper (Wu, Tan, Zhou: joins without windows, memory by the data)."""

from __future__ import annotations

from lowwater.claims import oblivious_example
from lowwater.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (oblivious_example.F1,)
"""In the order of the paper."""
