"""Where figures come from, and how people read them."""

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


def provenance() -> dict[str, str]:
    """The revision, the machine and the versions a figure was made with."""
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
        told = subprocess.run(
            command,
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=5,
        )
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return told.stdout.strip()


def show(rows: Sequence[dict[str, Any]], console: Console | None = None) -> None:
    """Print rows of figures as a table, to standard error unless told otherwise."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        console.width = 120
    made_with = dict(rows[0].get("provenance", {})) if rows else provenance()
    table = Table(title="Rows a second, ours beside a peer on the same rows")
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
            f"{row['ours'] / 1e6:.2f} M/s",
            f"{row['peer_value'] / 1e6:.2f} M/s",
            f"{row['ratio']:.2f}",
            "" if target is None else f"{target:.2f}",
            row["peer"],
            "" if same is None else ("yes" if same else "NO"),
        )
    console.print(table)
    console.print(", ".join(f"{name} {value}" for name, value in made_with.items()), style="dim")
