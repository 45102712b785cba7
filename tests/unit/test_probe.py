"""The probe: what an observer is told of a run, and that watching changes no answer."""

from __future__ import annotations

import doctest

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater import probe
from lowwater.errors import OptionError
from lowwater.operators.kernel import Kernel
from lowwater.probe import Chunks, Observer, PerComparison, PerRow, Probe, Step, judge_rows, parts


def rows(name: str, *times: int) -> lw.Stream:
    log = pl.DataFrame({"at": [float(each) for each in times], "ts": times, "k": 1})
    return lw.stream(lw.replay(log, "at"), name=name, time="ts")


def pairs() -> lw.Stream:
    return rows("a", 0, 1, 5).join(rows("b", 1, 2, 6), on="k", within=1)


class Log(Observer):
    """Every call, as it comes."""

    def __init__(self) -> None:
        self.steps: list[tuple[str, str, int | None, int]] = []
        self.held: list[tuple[int, int]] = []
        self.results = 0

    def on_charged(self, step: Step) -> None:
        self.steps.append((step.operator.name, step.kind, step.input, step.comparisons))

    def on_idle(self) -> None:
        join = self.run.operator("join")
        self.held.append((join.rows_of(0), join.rows_of(1)))
        assert sum(self.held[-1]) == join.rows
        assert (join.bytes > 0) == (join.rows > 0)
        assert join.queue == 0

    def on_results(self, rows: pl.DataFrame) -> None:
        self.results += rows.height


@pytest.mark.parametrize("module", [probe, parts])
def test_the_examples_in_its_docstrings_run(module):
    found = doctest.testmod(module)
    assert found.attempted > 0 == found.failed


def test_an_observer_sees_steps_state_and_results():
    log = Log()
    run = Probe(pairs(), observer=log, tick=0).run()
    assert {name for name, *_ in log.steps} == {"join"}
    assert {kind for _, kind, *_ in log.steps} == {"rows", "punctuation", "end"}
    assert sum(compared for *_, compared in log.steps) == run.operator("join").comparisons
    assert (1, 0) in log.held
    assert log.results == run.results.height == run.metrics().rows_out == 4
    assert run.operator("join").rows == 0


def test_watching_changes_no_answer():
    watched, plain = (Probe(pairs(), observer=each, tick=0).run() for each in (Log(), None))
    assert watched.results.equals(plain.results)
    answer = pl.DataFrame(pairs().collect(engine="embedded"))
    assert plain.results.drop("_out_at").sort(answer.columns).equals(answer.sort(answer.columns))


def test_results_have_the_time_at_which_they_left():
    run = Probe(pairs(), tick=0).run()
    latest = run.results.select(pl.max_horizontal("ts", "ts_right")).to_series()
    assert run.results["_out_at"].to_list() == latest.to_list()
    assert run.seconds == run.now / probe.SECOND == 6


def test_work_is_charged_by_what_is_compared():
    steps: list[Step] = []

    class Charges(Observer):
        def on_charged(self, step: Step) -> None:
            steps.append(step)

    run = Probe(pairs(), observer=Charges(), charge=PerComparison(probe.SECOND), tick=0).run()
    assert (
        sum(each.nanoseconds for each in steps) == probe.SECOND * run.operator("join").comparisons
    )
    assert run.operator("join").comparisons > 0
    assert run.seconds > 6


def test_a_step_is_seen_before_and_after_the_clock_shows_it():
    seen: list[tuple[str, float, int, float]] = []

    class Around(Observer):
        def note(self, name: str, step: Step) -> None:
            if step.left_queue:
                queue = step.operator.staleness.queue
                seen.append((name, self.run.seconds, sum(e.height for e in step.results), queue))

        def on_done(self, step: Step) -> None:
            self.note("done", step)

        def on_charged(self, step: Step) -> None:
            self.note("charged", step)

    log = pl.DataFrame({"at": [0.0, 1.0], "n": [0, 1], "k": 1})
    updates = lw.stream(lw.replay(log, "at"), name="u", time="n", update_key="k")
    Probe(updates, observer=Around(), charge=PerRow(3 * probe.SECOND), tick=0).run()
    assert [(name, at, rows) for name, at, rows, _ in seen] == [
        ("done", 0.0, 1), ("charged", 3.0, 1), ("done", 3.0, 1), ("charged", 6.0, 1),
    ]  # fmt: skip
    assert seen[-1][3] > 0


def test_a_run_ends_when_it_is_stopped():
    class Once(Observer):
        def on_results(self, rows: pl.DataFrame) -> None:
            self.run.stop()

    assert 0 < Probe(pairs(), observer=Once(), tick=0).run().results.height < 4


def test_an_error_of_an_observer_ends_the_run():
    class Broken(Observer):
        def on_idle(self) -> None:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        Probe(pairs(), observer=Broken(), tick=0).run()


def test_plan_shapes_have_other_operators_and_the_same_results():
    late = rows("a", 0, 1, 5).union(rows("b", 1, 2, 6))
    shapes = {shape: Probe(late, plan=shape).run() for shape in ("in-order", "out-of-order")}  # type: ignore[arg-type]
    names = {shape: [each.name for each in run.operators] for shape, run in shapes.items()}
    assert names == {"in-order": ["merge"], "out-of-order": ["union"]}
    one, two = (run.results.drop("_out_at").sort("ts", "at") for run in shapes.values())
    assert one.equals(two)


def test_rows_that_arrived_during_work_are_unread():
    unread: list[int] = []

    class Unread(Observer):
        def on_charged(self, step: Step) -> None:
            unread.append(self.run.unread("a"))

    query = rows("a", 0, 1, 2, 3).where("k = 1")
    Probe(query, observer=Unread(), charge=2 * probe.SECOND, tick=0, chunk_rows=1).run()
    assert max(unread) == 3
    with pytest.raises(OptionError, match="no arrival times"):
        Probe(lw.stream(pl.DataFrame({"ts": [1]}), name="a", time="ts")).unread("a")


def test_punctuation_can_be_withheld():
    counts = pairs().group_by("ts", "ts_right").agg(n="count(*)")
    heard = Probe(counts, tick=0, punctuation={"group": [("ts", "ts_right")]}).run().results
    later = Probe(counts, tick=0, punctuation={"group": []}).run().results
    assert heard.drop("_out_at").sort("ts").equals(later.drop("_out_at").sort("ts"))
    assert heard["_out_at"].mean() < later["_out_at"].mean() == 6  # type: ignore[operator]


def test_a_kernel_can_be_substituted():
    class Nothing(Kernel):
        def on_chunk(self, port, chunk):
            return []

    run = Probe(rows("a", 1, 2).where("k = 1"), substitutes={"filter": lambda k: Nothing(k.store)})
    assert run.run().results.is_empty()
    with pytest.raises(OptionError, match="unknown operator 'sort'"):
        Probe(pairs(), substitutes={"sort": lambda kernel: kernel})


def test_punctuation_is_withheld_from_a_substitute_too():
    class Recording(Kernel):
        def on_chunk(self, port, chunk):
            taken.append("rows")
            return [chunk]

        def on_punctuation(self, port, promise):
            taken.append("punctuation")
            return []

    taken: list[str] = []
    query = rows("a", 1, 2).where("k = 1").window(1).agg(n="count(*)")
    put_in = {"filter": lambda kernel: Recording(kernel.store)}
    assert Probe(query, tick=0, substitutes=put_in).run().results.height == 2
    assert set(taken) == {"rows", "punctuation"}
    taken.clear()
    both = Probe(query, tick=0, substitutes=put_in, punctuation={"filter": []}).run()
    assert both.results.height == 2
    assert set(taken) == {"rows"}


def test_chunks_are_handed_over_whole_and_made_as_they_are_read():
    made: list[int] = []

    def make():
        for at in range(3):
            made.append(at)
            yield pl.DataFrame({"ts": [at] * (at + 1)})

    steps: list[int] = []

    class Sizes(Observer):
        def on_begin(self, step: Step) -> None:
            if step.kind == "rows":
                steps.append(made[-1])

    source = lw.stream(Chunks({"ts": pl.Int64()}, make), name="c", time="ts")
    run = Probe(source.where("ts >= 0"), observer=Sizes(), chunk_rows=1).run()
    assert run.results["ts"].to_list() == [0, 1, 1, 2, 2, 2]
    assert steps == [1, 2, 2]  # the next one is there when one is read


def test_what_an_operator_does_not_have_is_refused():
    run = Probe(pairs(), keep=False)
    with pytest.raises(OptionError, match="unknown operator 'sort'"):
        run.operator("sort")
    with pytest.raises(OptionError, match="no queue of updates"):
        _ = run.operator("join").staleness
    with pytest.raises(OptionError, match="no ordered join"):
        _ = run.operator("join").done_to
    with pytest.raises(OptionError, match="keep=True"):
        _ = run.results


def test_an_ordered_join_shows_how_far_its_results_are():
    done: list[int] = []

    class Done(Observer):
        def on_charged(self, step: Step) -> None:
            done.append(step.operator.done_to)

    query = rows("a", 0, 1, 5).join(rows("b", 1, 2, 6), on="k", within=1, order="adaptive")
    run = Probe(query, observer=Done(), tick=0).run()
    assert done == sorted(done)
    assert run.operator("join").details["strategy"] in ("sync-filter", "filter-order")


def test_a_contract_judges_rows_one_by_one():
    met, after = judge_rows(lw.within(2), np.array([5, 9, 6, 3]))
    assert met[1:].tolist() == [3, 7, 7]
    assert after.tolist() == [3, 7, 7, 7]
    assert judge_rows(lw.within(2), np.array([50, 90]), ticks_per_second=10)[1].tolist() == [30, 70]
