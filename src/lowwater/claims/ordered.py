"""The claims of the Ordered paper (Hammad et al., in-order execution of continuous queries)."""

from __future__ import annotations

from lowwater.claims import ordered_model, ordered_output, ordered_response
from lowwater.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    ordered_model.EQ,
    ordered_response.F7,
    ordered_response.F9,
    ordered_output.OUT,
)
"""In the order of the paper."""
