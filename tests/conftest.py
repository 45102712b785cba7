"""Hypothesis profiles, chosen by LOWWATER_HYPOTHESIS=quick|thorough|noshrink."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, Phase, settings

settings.register_profile(
    "quick",
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("thorough", settings.get_profile("quick"), max_examples=400)
settings.register_profile(
    "noshrink",
    settings.get_profile("quick"),
    phases=[Phase.explicit, Phase.generate],
    print_blob=False,
)
settings.load_profile(os.environ.get("LOWWATER_HYPOTHESIS", "quick"))
