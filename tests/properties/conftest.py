"""Small streams must be long enough to be learned from: learning starts early in these tests."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from lowwater.progress import debt, lateness, learned, shortfall, warm_up


@pytest.fixture(scope="module", autouse=True)
def quick_learners() -> Iterator[None]:
    with (
        mock.patch.object(warm_up, "START", 3),
        mock.patch.object(learned, "STEPS", (2, 5)),
        mock.patch.object(debt, "FORBEARANCE", 2.0),
        mock.patch.object(shortfall, "ROWS", 10_000),
        mock.patch.object(lateness, "PRIOR", 1.0),
    ):
        yield
