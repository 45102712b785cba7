"""What buckets report batch by batch, put together to the metrics of a run."""

from __future__ import annotations

import time
from collections.abc import Hashable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from lowwater.engines.spark.program import Program
from lowwater.metrics import (
    CompletenessMetrics,
    Histogram,
    OperatorMetrics,
    RunMetrics,
    StreamMetrics,
    completeness_metrics,
    together,
)
from lowwater.plan.physical import Operator, PhysicalPlan
from lowwater.progress.late import LATE, LateAccount
from lowwater.progress.learned import Completeness
from lowwater.progress.spec import StreamSpec
from lowwater.sources.replay import Replay
from lowwater.stream.element import BEGINNING
from lowwater.stream.time_domain import ROWS
from lowwater.updates.staleness import Staleness

Report = dict[str, Any]
COUNTS = ("rows_in", "rows_out", "promises_in", "promises_out")


class Reports:
    """Gathers the reports of a run's batches, each once."""

    def __init__(self, plan: PhysicalPlan, program: Program):
        self._plan, self._program = plan, program
        self._begun = time.monotonic()
        self._seen: set[tuple[int, int]] = set()
        self._start = 0
        self._latest: dict[tuple[int, int], Report] = {}
        self._counts: dict[str, dict[str, int]] = {}
        self._rows: dict[str, int] = {}
        self._accounts = {s.spec.name: LateAccount(s.spec.name) for s in program.sources}
        self._complete: dict[str, dict[tuple[str, Hashable], Completeness]] = {}
        self._ended: set[str] = set()
        self._rows_out = 0
        self._peak_rows = self._peak_bytes = 0
        self.notes: list[str] = []

    @property
    def unending(self) -> bool:
        """Whether some source never says that it has ended."""
        sources = [each.node.source for each in self._plan.sources]  # type: ignore[attr-defined]
        return not all(isinstance(source, Replay) for source in sources)

    @property
    def all_ended(self) -> bool:
        """Whether every source has ended."""
        return self._ended >= {source.spec.name for source in self._program.sources}

    def begin_again(self) -> None:
        """Another query goes on where the last one stopped."""
        self._start += 1

    def take(self, batch: int, reports: list[Report], answers: int | None = None) -> None:
        """Take the reports of a batch, unless they were taken before."""
        if (self._start, batch) in self._seen:
            return
        self._seen.add((self._start, batch))
        last = self._plan.result.title
        self._rows_out += answers or 0
        for report in reports:
            self._latest[report["stage"], report["bucket"]] = report
            self.notes += report["notes"]
            self._ended |= set(report["ended"])
            for title, about in report["operators"].items():
                counts = self._counts.setdefault(title, dict.fromkeys(COUNTS, 0))
                for name in COUNTS:
                    counts[name] += about[name]
                if title == last and answers is None:
                    self._rows_out += about["rows_out"]
            for name, rows in report["rows"].items():
                self._rows[name] = self._rows.get(name, 0) + rows
            for stream, attribute, channel, *values in report["complete"]:
                known = self._complete.setdefault(stream, {})
                known[attribute, channel] = Completeness(*values)
            for stream, channel, reason, rows, longest, mean in report["late"]:
                named = tuple(channel) if isinstance(channel, list) else channel
                self._accounts[stream].add(named, reason, rows, longest, rows * mean)
        rows, size = self._held()
        self._peak_rows = max(self._peak_rows, rows)
        self._peak_bytes = max(self._peak_bytes, size)

    def _held(self) -> tuple[int, int]:
        about = [each for r in self._latest.values() for each in r["operators"].values()]
        return sum(each["rows"] for each in about), sum(each["bytes"] for each in about)

    def metrics(self) -> RunMetrics:
        """The metrics so far."""
        rows, size = self._held()
        return RunMetrics(
            self._rows_out,
            time.monotonic() - self._begun,
            tuple(self._operator(each) for each in self._plan.operators if each.build is not None),
            tuple(self._stream(each) for each in self._plan.sources),
            rows,
            self._peak_rows,
            size,
            self._peak_bytes,
            self._peak_bytes,
            0,
            Histogram(),
        )

    def _operator(self, operator: Operator) -> OperatorMetrics:
        counts = self._counts.get(operator.title, dict.fromkeys(COUNTS, 0))
        about = [
            report["operators"][operator.title]
            for report in self._latest.values()
            if operator.title in report["operators"]
        ]
        marks: dict[str, int] = {}
        for each in about:
            for name, mark in each["marks"].items():
                marks[name] = min(mark, marks.get(name, mark))
        rows, size = sum(e["rows"] for e in about), sum(e["bytes"] for e in about)
        return OperatorMetrics(
            operator.title,
            operator.detail,
            counts["rows_in"],
            counts["rows_out"],
            counts["promises_in"],
            counts["promises_out"],
            {name: _shown(operator, name, mark) for name, mark in marks.items()},
            rows,
            rows,
            size,
            size,
            0,
            0,
            0.0,
            0.0,
            together([each["about"] for each in about]),
            _staleness([each["staleness"] for each in about if "staleness" in each]),
        )

    def _read(self, name: str, source: object) -> int:
        """Rows of a stream; those of a log are judged where it is read, and known at its end."""
        if isinstance(source, Replay) and name in self._ended:
            return source.rows
        return self._rows.get(name, 0)

    def _stream(self, operator: Operator) -> StreamMetrics:
        spec = operator.node.spec  # type: ignore[attr-defined]
        account = self._accounts[spec.name]
        held = [r["streams"].get(spec.name, {}) for r in self._latest.values()]
        marks: Mapping[str, Any] = {
            name: domain.show(max((each.get(name, BEGINNING) for each in held), default=BEGINNING))
            for name, domain in spec.domains.items()
        }
        return StreamMetrics(
            spec.name,
            self._read(spec.name, operator.node.source),  # type: ignore[attr-defined]
            account.rows,
            tuple(account.lines()),
            marks,
            None,
            0,
            0,
            0,
            0,
            self._completeness(spec, account),
        )

    def _completeness(
        self, spec: StreamSpec, account: LateAccount
    ) -> tuple[CompletenessMetrics, ...]:
        """How complete a stream is; late rows are those of the account where it can tell."""
        known = self._complete.get(spec.name, {})
        lines = completeness_metrics(
            [(attribute, channel, each) for (attribute, channel), each in known.items()],
            {name: domain.ticks_per_second for name, domain in spec.domains.items()},
        )
        if len(spec.contracts) > 1:
            return lines
        late = [(each.channel, each.rows) for each in account.lines() if each.reason == LATE]
        return tuple(
            replace(line, late_rows=sum(n for c, n in late if line.channel in (None, c)))
            for line in lines
        )


def _staleness(told: list[dict[str, Any]]) -> Staleness | None:
    return Staleness.of([Staleness.plainly(each) for each in told]) if told else None


def _shown(operator: Operator, name: str, mark: int) -> datetime | int | None:
    """A mark as a person reads it; ``ts[1]`` is the mark of ``ts`` on input 1."""
    attribute = name.partition("[")[0]
    for node in (*operator.node.inputs, operator.node):
        if attribute in node.progress:
            return node.progress[attribute].domain.show(mark)
    return ROWS.show(mark)
