"""Rows of figures are made here, with their provenance, and printed as a table."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console
from rich.table import Table

Row = dict[str, Any]
"""One row of figures: ours beside a peer's."""


def figure(name: str, what: str, unit: str, ours: float, peer: str, value: float, rows: int) -> Row:
    """Return a row of figures: ours, and the ``value`` of ``peer``; ``rows``: rows of the run."""
    return {
        "name": name,
        "what": what,
        "rows": rows,
        "unit": unit,
        "ours": ours,
        "peer": peer,
        "peer_value": value,
        "ratio": ours / value,
    }


def provenance() -> dict[str, str]:
    """Return the revision, the machine and the versions a figure was made with."""
    return {
        "revision": _revision(),
        "machine": f"{platform.machine()}, {os.cpu_count()} cpus",
        "threads": str(pl.thread_pool_size()),
        "python": platform.python_version(),
        **{name: version(name) for name in ("lowwater", "polars", "pyarrow", "numpy")},
    }


def _revision() -> str:
    command = ["git", "describe", "--always", "--dirty"]
    try:
        done = subprocess.run(
            command,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return done.stdout.strip()


def show(rows: Sequence[Row], console: Console | None = None) -> None:
    """Print rows of figures as a table, to standard error unless a console is given."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        console.width = 120
    made_with = dict(rows[0].get("provenance", {})) if rows else provenance()
    table = Table(title="Ours beside a peer on the same rows")
    table.add_column("what")
    for heading in ("rows", "ours", "peer's", "ratio", "target"):
        table.add_column(heading, justify="right")
    table.add_column("peer")
    table.add_column("same results")
    before = None
    for row in rows:
        if row["what"] != before:
            before = row["what"]
            table.add_section()
            table.add_row(f"[bold]{before}")
        target, same = row.get("target"), row.get("same_results")
        table.add_row(
            row["name"],
            f"{row['rows'] / 1e6:.2f} M",
            quantity(row["ours"], row.get("unit", "rows/s")),
            quantity(row["peer_value"], row.get("unit", "rows/s")),
            f"{row['ratio']:.2f}",
            "" if target is None else f"{_bound(row)} {target:.2f}",
            row["peer"],
            "" if same is None else ("yes" if same else "NO"),
        )
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in made_with.items()), style="dim")


def _bound(row: Row) -> str:
    """Return the sign of a target: speed should be at least that, everything else at most."""
    return "≥" if row.get("unit", "rows/s") == "rows/s" else "≤"


def quantity(value: float, unit: str) -> str:
    """Write a figure in the unit that people use."""
    if unit == "rows/s":
        return f"{value / 1e6:.2f} M/s"
    if unit == "bytes":
        return f"{value / 1e6:,.1f} MB"
    return f"{value:,.0f} {unit}" if value >= 10 else f"{value:.1f} {unit}"
