"""The engines that are compared, behind one face."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

import lowwater as lw

LONG = 120.0
"""Seconds a test waits at most; nothing depends on how long it really takes."""


@dataclass(frozen=True)
class Engine:
    """An engine, and the options of a run that are only its own."""

    name: str
    own: dict[str, Any] = field(default_factory=dict)

    def collect(self, query: lw.Stream, **options: Any) -> pa.Table:
        """All results of a query."""
        return query.collect(self.name, **self._fitting(options))

    def run(self, query: lw.Stream, **options: Any) -> lw.Run:
        """A query run to its end."""
        run = query.run(self.name, **self._fitting(options))
        assert run.await_termination(LONG)
        return run

    def _fitting(self, options: dict[str, Any]) -> dict[str, Any]:
        spark = self.name == "spark"
        return self.own | {n: v for n, v in options.items() if spark or n != "buckets"}
