"""Small streams must be long enough to be learned from: learning starts early in these tests."""

from __future__ import annotations

from collections.abc import Iterator
from unittest import mock

import pytest

from lowwater.progress import completeness, lateness, learned, slack


@pytest.fixture(scope="module", autouse=True)
def quick_learners() -> Iterator[None]:
    with (
        mock.patch.object(slack, "START", 3),
        mock.patch.object(learned, "STEPS", (2, 5)),
        mock.patch.object(slack, "FORBEARANCE", 2.0),
        mock.patch.object(completeness, "ROWS", 10_000),
        mock.patch.object(lateness, "PRIOR", 1.0),
    ):
        yield
