"""One fixture for all engines."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.engines import Engine


@pytest.fixture(params=["embedded", "spark"])
def engine(request: Any) -> Engine:
    """Each engine in turn."""
    if request.param == "spark":
        return Engine("spark", {"session": request.getfixturevalue("spark")})
    return Engine(request.param)
