"""The claims of the OOP paper (Li et al., out-of-order processing): §3.2, §5 to §8 and A.1.1."""

from __future__ import annotations

from lowwater.claims import (
    learned,
    oop_band,
    oop_flush,
    oop_groups,
    oop_held,
    oop_join,
    oop_joint,
    oop_union,
)
from lowwater.claims.claim import Claim

CLAIMS: tuple[Claim, ...] = (
    oop_union.F1,
    oop_flush.G1,
    oop_join.G3,
    oop_band.N1,
    oop_join.N2,
    oop_union.N3,
    oop_held.S53,
    oop_joint.S7,
    oop_groups.GROUPS,
    learned.LEARNED,
)
"""In the order of the experiments, then of the sections."""
