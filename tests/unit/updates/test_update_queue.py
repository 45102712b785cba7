"""Update queues as operators: what they tell, what they do in batches, what they save."""

from __future__ import annotations

import polars as pl
import pytest

import lowwater as lw
from lowwater.errors import OptionError, QueryError
from lowwater.operators.kernel import Host
from lowwater.state.store import MemoryStore
from lowwater.stream.duration import SECOND
from lowwater.stream.element import End, Punctuation
from lowwater.updates.options import updates_of
from lowwater.updates.pace import FASTER, Pace
from lowwater.updates.queue_kernel import QueuedRows
from lowwater.updates.update_queue import UpdateQueue
from tests.support.update_run import SCHEMA, TICKS, Row, UpdateRun

COST = SECOND // 100


def rows(*each: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(each), schema=SCHEMA, orient="row")


class Batches:
    """A queue on an engine that works in batches: made anew for each."""

    def __init__(self, **options: object):
        self.by = updates_of("key", **options)  # type: ignore[arg-type]
        self.store = MemoryStore()
        self.saved: dict[str, object] | None = None
        self.now = 0

    def batch(self, chunk: pl.DataFrame | None, took: int = COST, end: bool = False) -> list[int]:
        """The numbers of the rows that leave in a batch, each of which takes so long."""
        host = Host(lambda: self.now, in_batches=True)
        queue = UpdateQueue(self.store, self.by, QueuedRows(SCHEMA, {"ts": TICKS}), host)
        if self.saved is not None:
            queue.restore(self.saved)
        left = [] if chunk is None else list(queue.on_chunk(0, chunk))
        left += queue.on_end(0) if end else []
        while queue.has_work:
            some = queue.work_on()
            left += some
            count = sum(each.height for each in some if isinstance(each, pl.DataFrame))
            queue.end_portion(count * took, self.now + count * took)
        queue.settle()
        self.saved, self.queue = queue.snapshot(), queue
        self.now += SECOND
        assert end == any(isinstance(each, End) for each in left)
        return [n for each in left if isinstance(each, pl.DataFrame) for n in each["number"]]


def test_a_batch_takes_on_what_its_budget_allows_and_the_rest_waits_in_state():
    batches = Batches(budget="1 second")
    first = batches.batch(rows(*((n, n, n) for n in range(500))))
    assert first == [0]
    assert batches.store.rows == 499
    assert batches.batch(None) == list(range(1, 1 + FASTER))  # one row says little of many
    assert len(batches.batch(None)) == FASTER**2
    begun = 1 + FASTER + FASTER**2
    fourth = batches.batch(rows((600, 490, 1490), (601, 0, 1000)))
    assert fourth == list(range(begun, begun + 100))  # a second of rows that take 10 ms
    rest = batches.batch(None, end=True)
    assert rest == [*range(begun + 100, 490), 1490, *range(491, 500), 1000]
    assert not batches.store.rows


def test_what_a_row_costs_is_learned_from_the_batches_before_alone():
    """A batch that is run again, on another machine or another day, picks the same rows."""
    one, two = Batches(budget="1 second"), Batches(budget="1 second")
    for batches, later in ((one, COST), (two, 50 * COST)):
        batches.batch(rows(*((n, n, n) for n in range(500))))
        assert [len(batches.batch(None)) for _ in range(3)] == [FASTER, FASTER**2, 100]
        assert len(batches.batch(None, took=later)) == 100
    assert len(one.batch(None)) == 100 > len(two.batch(None))


@pytest.mark.parametrize("hurried", [True, False])
def test_batches_by_the_clock_take_rows_as_come_when_read_and_others_as_the_log_says(hurried):
    """The arrivals of a log that is played again are not the clock's."""
    clock = 1_700_000_000 * SECOND
    schema = {**SCHEMA, "at": pl.Datetime("us")}
    by = updates_of("key")
    host = Host(lambda: clock, in_batches=True, hurried=hurried)
    queue = UpdateQueue(MemoryStore(), by, QueuedRows(schema, {"ts": TICKS}, arrival="at"), host)
    log = rows((1, 1, 1), (2, 2, 2)).with_columns(at=pl.lit(7).cast(pl.Datetime("us")))
    arrived = queue._arrivals(log).tolist()
    assert arrived == ([clock] * 2 if hurried else [7_000] * 2)


def test_without_a_budget_batches_are_as_long_as_keeps_answers_freshest():
    pace = Pace()
    pace.begin(0)
    pace.learn(100, SECOND)
    pace.begin(round(1.2 * SECOND))
    assert pace.overhead == pytest.approx(0.2 * SECOND)
    assert pace.best(50) == pytest.approx((0.5 * 0.2 / 2) ** 0.5 * SECOND)

    def staleness(work: float) -> float:
        return work + 0.2 + 50 * 0.01 * (1 + 0.2 / work) / 2

    best = pace.best(50) / SECOND
    assert staleness(best) < min(staleness(best * 0.8), staleness(best * 1.25))


def test_of_several_inputs_one_row_a_key_and_time_is_kept_and_the_preferred_one_if_it_waits():
    def run(prefer: int | None) -> list[int]:
        run = UpdateRun(updates_of("key"), lambda n: n * 10 * SECOND, ports=2, prefer=prefer)
        happened = run.run(
            [
                Row(0, 0, 7, 0, 0),
                Row(1 * SECOND, 0, 1, 1, 1),
                Row(2 * SECOND, 1, 1, 1, 2),  # says something else of the same moment
                Row(15 * SECOND, 1, 7, 0, 3),  # was shown already
            ]
        )
        return [number for _, _, number in happened.shown]

    assert run(None) == run(0) == [0, 1]
    assert run(1) == [0, 2]


def test_promises_wait_for_rows_below_them():
    host = Host(singly=True)
    queue = UpdateQueue(MemoryStore(), updates_of("key"), QueuedRows(SCHEMA, {"ts": TICKS}), host)
    queue.on_chunk(0, rows((5, 1, 0), (8, 2, 1)))
    assert queue.on_punctuation(0, Punctuation.linear("ts", 9)) == [Punctuation.linear("ts", 5)]
    _, told = queue.work_on()
    assert told == Punctuation.linear("ts", 8)
    _, told = queue.work_on()
    assert told == Punctuation.linear("ts", 9)


def test_without_a_key_each_row_replaces_the_last():
    table = pl.DataFrame({"ts": range(10), "v": range(10), "at": [float(n) for n in range(10)]})
    stream = lw.stream(lw.replay(table, arrival="at"), name="S", time="ts", update_key=())
    run = stream.run(tick=0, charge=lw.per_row("4 seconds"))
    run.await_termination()
    assert run.results()["v"].to_pylist() == [0, 4, 8, 9]
    assert run.metrics().operator("update").staleness.keys == 1


def test_while_work_takes_no_time_nothing_is_given_up():
    table = pl.DataFrame({"ts": [1, 2, 3, 2, 3], "k": ["a", "a", "b", "b", "a"], "v": range(5)})
    stream = lw.stream(table, name="S", time="ts", progress=lw.within("2 s"), update_key="k")
    assert stream.collect()["v"].to_pylist() == [0, 1, 2, 4]  # row 3 is older than row 2
    run = stream.run()
    run.await_termination()
    assert run.metrics().operator("update").about["outdated when they came"] == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"schedule": "fast"}, "schedule= is one of 'in-place', 'fifo'"),
        ({"windows": "often"}, "windows= is 'lazy' or 'eager'"),
        ({"weights": {"a": 0}}, "weights are above zero"),
        ({"weights": {"a": 1, "b": "1 hour"}}, "all numbers or all lengths of time"),
        ({"weights": {("a", "b"): 1}}, "names no key of 1 column"),
        ({"weights": ["a"]}, "weights= maps keys"),
        ({"weights": {"a": 2}, "schedule": "append"}, "weights= are for queues of keys"),
        ({"budget": 0}, "budget= is a length of time above zero"),
        ({"complete_within": "1 s", "schedule": "shedding"}, "never gives rows up"),
    ],
)
def test_wrong_options_say_what_is_right(options, message):
    table = pl.DataFrame({"ts": [1], "k": ["a"]})
    with pytest.raises(OptionError, match=message):
        lw.stream(table, name="S", time="ts", update_key="k", **options)


def test_options_of_update_streams_want_a_key_and_keys_want_names():
    table = pl.DataFrame({"ts": [1], "k": [1.5]})
    with pytest.raises(OptionError, match="schedule= is for update streams; add update_key="):
        lw.stream(table, name="S", time="ts", schedule="fifo")
    with pytest.raises(QueryError, match="cast it to a string or an integer"):
        lw.stream(table, name="S", time="ts", update_key="k")
    with pytest.raises(OptionError, match="twice"):
        lw.stream(table, name="S", time="ts", update_key=("k", "k"))


def test_periods_weigh_keys_by_how_often_they_are_looked_at():
    by = updates_of("k", weights={"GOOG": "1 minute", "GM": "1 hour"})
    weights = dict(by.weights)
    assert weights["GOOG",] == pytest.approx(60 * weights["GM",])
    assert by.other_weight == weights["GM",]
