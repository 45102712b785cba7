"""Short ways to load and run a pipeline in a test."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import polars as pl

from lowwater.pipeline.run import PipelineRun, RunSettings
from lowwater.pipeline.text import load_text
from lowwater.progress.spec import StreamSpec
from tests.unit.running import LONG

START = datetime(2024, 1, 1)
SCHEMA = "(k STRING, v BIGINT, ts TIMESTAMP)"


def table(seconds: list[int], first: int = 0) -> pl.DataFrame:
    """Rows at these seconds, numbered on from ``first``."""
    return pl.DataFrame(
        {
            "k": ["ab"[each % 2] for each in seconds],
            "v": list(range(first, first + len(seconds))),
            "ts": [START + timedelta(seconds=each) for each in seconds],
        },
        schema={"k": pl.String, "v": pl.Int64, "ts": pl.Datetime("us")},
    )


def write(rows: pl.DataFrame, path: Path) -> Path:
    """A file in the format its name ends with; it appears whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}")
    kind = path.suffix[1:]
    {"parquet": rows.write_parquet, "csv": rows.write_csv, "json": rows.write_ndjson}[kind](
        unfinished
    )
    return unfinished.rename(path)


class Kept:
    """Console sinks that keep what they are given, by query."""

    def __init__(self) -> None:
        self.chunks: dict[int, list[pl.DataFrame]] = {}

    def __call__(self, query: Any) -> Any:
        kept = self.chunks.setdefault(query.number, [])

        class Sink:
            def write(self, chunk: pl.DataFrame) -> None:
                kept.append(chunk)

            def close(self) -> None:
                pass

        return Sink()

    def rows(self, number: int = 1) -> list[dict[str, Any]]:
        return [row for chunk in list(self.chunks[number]) for row in chunk.to_dicts()]


def answers(text: str, options: RunSettings | None = None, **values: object) -> Kept:
    """What the queries of a finite pipeline give to the console."""
    kept = Kept()
    running = PipelineRun(load_text(text, values=values), options or RunSettings(), kept)
    assert running.wait(LONG)
    running.stop()
    if running.failed is not None:
        raise running.failed[1]
    return kept


@contextmanager
def playing(text: str, options: RunSettings | None = None):
    """A pipeline that goes on until the block ends."""
    kept = Kept()
    running = PipelineRun(load_text(text), options or RunSettings(), kept)
    try:
        yield running, kept
    finally:
        running.stop()
    assert running.failed is None


def until(condition: Callable[[], Any], running: PipelineRun | None = None) -> Any:
    """Wait for something to be so."""
    end = time.monotonic() + LONG
    while not (found := condition()):
        assert time.monotonic() < end, "waited for too long"
        if running is not None:
            assert running.failed is None, running.failed
            running.wait(0.02)
        else:
            time.sleep(0.02)
    return found


def spec(clauses: str, schema: str = SCHEMA) -> StreamSpec:
    """What a stream with these clauses promises."""
    text = f"CREATE STREAM S {schema} FROM 'csv:nowhere' {clauses}; SELECT * FROM S"
    return load_text(text).streams["S"].node.spec
