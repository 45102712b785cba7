"""Parts of joins without a window: model, gauge, manager, and the join itself, step by step."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import lowwater as lw
from lowwater.engines.embedded.pages import PagedStore
from lowwater.errors import OptionError
from lowwater.joins.oblivious.disorder import LIMIT, START, DisorderEstimate, RunningMaxima
from lowwater.joins.oblivious.memory_model import InputTraits, MemoryNeeds, ReliefChooser, joined
from lowwater.joins.oblivious.oblivious_join import ObliviousJoin
from lowwater.joins.oblivious.options import Oblivious
from lowwater.joins.oblivious.read_ahead import FIRST, ReadAhead, rows_ahead
from lowwater.joins.oblivious.stored_rows import PAGE_ROWS
from lowwater.operators.kernel import Host
from lowwater.plan.physical.planner import compile_plan
from lowwater.stream.element import BEGINNING, Punctuation

# ---- model ---------------------------------------------------------------------------------


def test_rows_to_keep_follow_the_formula() -> None:
    """Eq. 6 and 7: k_i + r_i k_j / r_j + L, at least one row; Eq. 8: the most of all others."""
    fast, slow, late = (
        InputTraits(50, 100, 2),
        InputTraits(25, 30, 2),
        InputTraits(50, 10, 2, delay=4),
    )
    needs = MemoryNeeds.of([fast, slow, late])
    assert needs.between(0, 1) == 100 + 50 * 30 / 25
    assert needs.between(0, 2) == 100 + 50 * 10 / 50 + 50 * 4
    assert needs.buffer(0) == 310
    assert needs.between(2, 0) == max(1, 10 + 100 - 200) == 1


def test_reliefs_take_off_what_they_are_for() -> None:
    """§4: sorting takes off disorder and adds what waits; the disk takes off lag but for C rows."""
    needs = MemoryNeeds.of([InputTraits(50, 100, 2), InputTraits(50, 40, 3, delay=10)])
    assert needs.kept(0, "plain") == 100 + 40 + 500
    assert needs.kept(0, "msf") == 2 + 3 + 500 + 100
    assert needs.kept(0, "dbf", 16) == 100 + 40 + 16
    assert needs.kept(0, "hybrid", 16) == 2 + 3 + 16 + 100
    assert needs.total("dbf", 16) == needs.kept(0, "dbf", 16) + needs.kept(1, "dbf", 16)


def test_results_of_a_join_are_bounded() -> None:
    """Theorem 3.1."""
    found = joined([InputTraits(10, 5, 2), InputTraits(20, 7, 3, delay=2), InputTraits(40, 11, 1)])
    assert found.rate == 10 * 3 + 20 * 2 + 40 * 6
    assert found.disorder == 5 * 3 + 7 * 2 + 11 * 6
    assert (found.multiplicity, found.delay) == (6, 2)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"strategy": "best"}, "one of 'auto', 'plain', 'msf', 'dbf', 'hybrid', not 'best'"),
        ({"accuracy": 1.0}, "between 0 and 1"),
        ({"memory": 0}, "above zero"),
    ],
)
def test_options_say_what_is_right(given: dict[str, Any], said: str) -> None:
    with pytest.raises(OptionError, match=said):
        Oblivious(**given)


def test_read_ahead_covers_what_is_due_at_once_and_while_a_page_is_read() -> None:
    assert rows_ahead(burst=300, rate=1_000, read=10_000_000, most=None) == 300
    assert rows_ahead(burst=3, rate=1_000, read=10_000_000, most=None) == 10
    assert rows_ahead(burst=300, rate=1_000, read=10_000_000, most=40) == 40
    assert rows_ahead(burst=300, rate=1_000, read=0, most=None) == FIRST  # no page was read yet
    assert ReadAhead.of("1 kB").fixed(row_bytes=16) == 62
    assert ReadAhead.of(7).fixed(row_bytes=16) == 7
    assert ReadAhead.of("auto").fixed(16) is ReadAhead.of(None).fixed(16) is None


@pytest.mark.parametrize("given", [-1, 1.5, True, "many", "0 B"])
def test_a_read_ahead_that_is_none_is_refused(given: Any) -> None:
    with pytest.raises(OptionError, match="read_ahead="):
        ReadAhead.of(given)


@pytest.mark.parametrize("strategy", ["plain", "msf"])
def test_a_read_ahead_needs_a_strategy_that_uses_the_disk(strategy: str) -> None:
    with pytest.raises(OptionError, match="about rows on disk"):
        Join(strategy=strategy, read_ahead=100)


# ---- gauge ---------------------------------------------------------------------------------


def scrambled(rows: int, most: int, seed: int = 3, many: int = 1) -> list[int]:
    chance = random.Random(seed)
    return [at // many for at in sorted(range(rows), key=lambda at: at + chance.uniform(0, most))]


def observed(gauge: DisorderEstimate, keys: list[int], size: int = 1) -> list[int]:
    """How many rows came below the bound, by step."""
    below = []
    for at in range(0, len(keys), size):
        ticks = np.array(keys[at : at + size])
        below.append(int((ticks < gauge.bound).sum()))
        gauge.observe(ticks, at)
    return below


@pytest.mark.parametrize("size", [1, 7, 1_000])
def test_the_scrambling_factor_is_measured_as_defined(size: int) -> None:
    keys = scrambled(400, 60, many=2)
    gauge = DisorderEstimate(0.001, None, 0)
    observed(gauge, keys, size)
    pairs = ((late, early) for late in range(400) for early in range(late))
    assert gauge.scrambling == max(a - b for a, b in pairs if keys[a] <= keys[b])


@pytest.mark.parametrize("size", [1, 13])
def test_below_a_bound_by_a_factor_that_is_known_no_row_comes(size: int) -> None:
    keys = scrambled(3_000, 90)
    first = DisorderEstimate(0.001, None, 0)
    observed(first, keys)
    known = DisorderEstimate(0.001, first.scrambling, 0)
    assert not any(observed(known, keys, size))
    assert known.bound > keys[-1] - 200
    less = DisorderEstimate(0.001, first.scrambling - 1, 0)
    assert size > 1 or any(observed(less, keys))


def test_a_factor_that_rises_is_noticed_at_once_and_one_that_falls_is_forgotten() -> None:
    calm, wild = scrambled(9_000, 10), scrambled(6_000, 400)
    keys = [*calm, *(9_000 + key for key in wild), *(15_000 + key for key in scrambled(90_000, 10))]
    gauge = DisorderEstimate(0.001, None, 0)
    below = observed(gauge, keys[:9_000], 2)
    assert sum(below) <= 9
    assert gauge.factor is not None
    assert gauge.factor <= 16
    below = observed(gauge, keys[9_000:15_000], 2)
    assert sum(below) < 300
    assert gauge.factor >= 350
    assert sum(below[1_500:]) <= 6
    observed(gauge, keys[15_000:], 50)
    assert gauge.factor <= 100


def test_nothing_is_concluded_from_few_rows() -> None:
    gauge = DisorderEstimate(0.001, None, 0)
    observed(gauge, list(range(START - 1)))
    assert gauge.bound == BEGINNING


def test_a_single_row_far_ahead_moves_nothing() -> None:
    keys = list(range(2_000))
    keys.insert(1_000, 10**9)
    gauge = DisorderEstimate(0.001, None, 0)
    assert sum(observed(gauge, keys)) == 0
    assert 1_900 < gauge.bound <= 2_000


def test_records_stay_few_and_say_less_never_more() -> None:
    records, keys = RunningMaxima(), np.arange(1, 40_001)
    for at in range(0, 40_000, 100):
        records.extend(keys[at : at + 100], keys[at : at + 100], at)
        records.thin()
        assert len(records.snapshot()[0]) <= LIMIT
    for position in (1, 500, 20_000, 39_990, 40_000):
        ago = 40_000 - position
        assert max(1, position - ago // 8) <= records.top_at(position) <= position
    assert records.top_at(0) == BEGINNING
    assert records.reached(39_950) == 39_900
    assert records.reached(40_001) is None


# ---- manager -------------------------------------------------------------------------------


def chosen(inputs: list[InputTraits], memory: int, latency: int | None = None) -> ReliefChooser:
    manager = ReliefChooser(Oblivious(memory, latency=latency))
    manager.choose(MemoryNeeds.of(inputs), 100.0, memory, 16)
    return manager


LAGGING = [InputTraits(50, 20, 2), InputTraits(50, 20, 2, delay=100)]
SCRAMBLED = [InputTraits(50, 2_000, 2), InputTraits(50, 2_000, 2)]


def test_auto_relieves_what_costs_most() -> None:
    assert chosen(LAGGING, 10**9).mode == "plain"
    assert chosen(LAGGING, 50_000).mode == "dbf"
    assert chosen(SCRAMBLED, 500_000).mode == "msf"
    assert chosen([*SCRAMBLED, InputTraits(50, 2_000, 2, delay=100)], 700_000).mode == "hybrid"
    assert "lag 5,000" in chosen(LAGGING, 50_000).reason


def test_auto_does_not_let_rows_wait_longer_than_allowed() -> None:
    assert chosen(SCRAMBLED, 500_000, latency=60 * 10**9).mode == "msf"
    assert chosen(SCRAMBLED, 500_000, latency=10 * 10**9).mode == "plain"


def test_auto_goes_back_only_when_it_fits_clearly() -> None:
    manager = ReliefChooser(Oblivious(100_000))
    manager.choose(MemoryNeeds.of(LAGGING), 100.0, 100_000, 16)
    assert manager.mode == "dbf"
    closer = [InputTraits(50, 20, 2), InputTraits(50, 20, 2, delay=15)]
    manager.choose(MemoryNeeds.of(closer), 100.0, 100_000, 16)
    assert manager.mode == "dbf"
    manager.choose(
        MemoryNeeds.of([InputTraits(50, 20, 2), InputTraits(50, 20, 2)]), 100.0, 100_000, 16
    )
    assert manager.mode == "plain"
    assert manager.switches == 2
    again = ReliefChooser(Oblivious(100_000))
    again.restore(manager.snapshot())
    assert again.metrics() == manager.metrics()


# ---- the join ------------------------------------------------------------------------------


class Join:
    """A join of two inputs on ``e``, driven by hand."""

    def __init__(self, folder: Any = None, **options: Any):
        schema = {"e": pl.Int64, "v": pl.Int64}
        streams = [
            lw.stream(pl.DataFrame(schema=schema), name=name, time="e", progress=lw.unpromised())
            for name in "ab"
        ]
        plan = compile_plan(streams[0].join(streams[1], on="e", **options)._node)
        self.store = folder if isinstance(folder, PagedStore) else PagedStore(folder)
        self.time = 0
        kernel = plan.result.build(self.store, Host(lambda: self.time))
        assert isinstance(kernel, ObliviousJoin)
        self.kernel, self.results = kernel, 0
        self.marks: list[int] = []

    def take(self, elements: Any) -> None:
        for each in elements:
            if isinstance(each, pl.DataFrame):
                self.results += each.height
            elif isinstance(each, Punctuation):
                self.marks.append(each.values[0])

    def push(self, port: int, keys: list[int]) -> None:
        self.time += 20_000_000
        self.take(self.kernel.on_chunk(port, pl.DataFrame({"e": keys, "v": keys})))

    def end(self) -> None:
        for port in (0, 1):
            self.take(self.kernel.on_end(port))

    @property
    def about(self) -> dict[str, Any]:
        return self.kernel.about()


def stepped(join: Join, rows: int, behind: int = 0, size: int = 10) -> None:
    """Rows of both inputs in order, those of the second so many behind."""
    for key in range(0, rows, size):
        join.push(0, list(range(key, key + size)))
        if key >= behind:
            join.push(1, list(range(key - behind, key - behind + size)))


def test_state_stays_small_and_marks_follow() -> None:
    join = Join()
    stepped(join, 2_000)
    assert join.results == 2_000
    assert join.store.rows < 300  # ordered, so that next to nothing need be kept
    assert join.marks[-1] > 1_800
    join.end()
    assert (join.store.rows, join.store.bytes) == (0, 0)


def test_rows_that_met_are_not_kept_where_values_come_once() -> None:
    join = Join()
    keys = [scrambled(3_000, 200, seed) for seed in (1, 2)]
    held = []
    for at in range(0, 3_000, 10):
        for port in (0, 1):
            join.push(port, keys[port][at : at + 10])
        held.append(join.store.rows)
    assert join.results == 3_000
    assert max(held[150:]) < 250  # of some 400 that could still be met, those that were not
    assert join.about["accuracy"] == 1.0


def test_a_value_that_comes_again_after_its_rows_met_is_noticed_and_counted() -> None:
    join = Join()
    keys = [scrambled(3_000, 200, seed) for seed in (1, 2)]
    for at in range(0, 2_000, 10):
        for port in (0, 1):
            join.push(port, keys[port][at : at + 10])
    again = next(key for key in keys[0][1_900:1_950] if key in keys[1][:1_950])
    before = join.results
    join.push(0, [again])
    assert join.results == before
    assert (join.about["late rows"], join.about["multiplicity[0]"]) == (1, 2)
    for at in range(2_000, 3_000, 10):
        for port in (0, 1):
            join.push(port, keys[port][at : at + 10])
    assert join.store.rows > 250  # what met is kept from then on
    assert join.results == 3_000


def test_values_that_met_take_no_more_than_half_of_a_cap() -> None:
    join = Join(memory=1_000, strategy="plain")
    stepped(join, 600)
    for key in range(600, 3_000, 300):
        for port in (0, 1):
            join.push(port, list(range(key, key + 300)))
            assert join.kernel._stored.memory <= 1_000
            assert join.kernel._stored.matched.bytes <= 500
    join.end()


def test_an_input_that_lags_is_waited_for() -> None:
    join = Join()
    stepped(join, 1_500, behind=1_000)
    assert join.results == 500
    assert join.about["held rows[0]"] >= 1_000
    assert 900 <= join.about["lag[0→1]"] <= 1_100
    assert join.about["held rows[0]"] <= join.about["predicted rows[0]"] * 1.1


def test_what_came_too_late_is_counted_and_told() -> None:
    join = Join()
    stepped(join, 2_500)
    join.push(0, [2_500])
    join.push(1, [2_000])
    assert join.about["late rows"] == 1
    assert join.about["accuracy"] == pytest.approx(1 - 1 / 2_501)
    assert join.results == 2_500


def test_rows_far_ahead_wait_on_disk_and_the_files_go(tmp_path: Any) -> None:
    join = Join(tmp_path, strategy="dbf")
    stepped(join, 4_000, behind=3_000)
    files = list(tmp_path.rglob("*.arrow"))
    assert len(files) * 256 >= 1_500
    assert join.store.rows < 1_000
    assert join.about["rows on disk[0]"] == join.store.disk_rows >= 1_500
    assert pl.read_ipc(files[0]).height >= 256
    for key in range(1_000, 4_000, 10):
        join.push(1, list(range(key, key + 10)))
    assert join.results == 4_000
    join.end()
    assert join.store.disk_rows == join.store.disk_bytes == join.store.rows == 0
    join.store.close()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("rows", [0, 100, 256, 1_000])
def test_as_many_rows_as_given_are_read_before_they_are_due(rows: int, tmp_path: Any) -> None:
    join = Join(tmp_path, strategy="dbf", read_ahead=rows)
    join.push(1, list(range(300)))
    for key in range(0, 4_000, 100):
        join.push(0, list(range(key, key + 100)))
    early = 0
    for key in range(300, 2_000, 50):
        join.push(1, list(range(key, key + 50)))
        above = join.kernel._stored.values(0) > join.kernel._bounds.reached
        early = max(early, int(above.sum()))
        assert int(above.sum()) >= rows or join.about["rows on disk[0]"] == 0
        assert join.about["read ahead[0]"] == rows
    page = 2 * PAGE_ROWS  # the longest; one is due in part, one is more than was missing
    assert early < rows + 2 * page
    waited = join.about["pages waited for[0]"]
    assert waited > 0 if rows == 0 else waited == 0
    assert join.about["page read time"] > 0


def test_auto_reads_ahead_as_many_rows_as_become_due_at_once(tmp_path: Any) -> None:
    join = Join(tmp_path, strategy="dbf")
    join.push(1, list(range(300)))
    for key in range(0, 20_000, 500):
        join.push(0, list(range(key, key + 500)))
    for key in range(300, 9_000, 700):
        join.push(1, list(range(key, key + 700)))
    assert 700 <= join.about["read ahead[0]"] <= 1_400
    waited = join.about["pages waited for[0]"]
    for key in range(9_400, 14_000, 700):
        join.push(1, list(range(key, key + 700)))
    assert join.about["pages waited for[0]"] == waited


def test_rows_read_ahead_take_a_part_of_the_cap_at_most() -> None:
    join = Join(memory=8_000, strategy="dbf", read_ahead=10_000)
    for key in range(0, 3_000, 100):
        join.push(0, list(range(key, key + 100)))
        assert join.store.bytes <= 8_000
    for key in range(0, 3_000, 100):
        join.push(1, list(range(key, key + 100)))
        assert join.store.bytes <= 8_000
    assert join.results == 3_000
    assert join.about["read ahead[0]"] <= 8_000 / 16 / 2 / 16


def test_rows_are_not_put_on_disk_for_a_moment(tmp_path: Any) -> None:
    """Only when they are ahead by three times what it takes to get them back."""
    join = Join(tmp_path, strategy="dbf")
    stepped(join, 2_000)
    assert not list(tmp_path.iterdir())


def test_a_cap_on_memory_is_kept_and_auto_loses_nothing_it_need_not_lose() -> None:
    join = Join(memory=8_000)
    for key in range(0, 3_000, 10):
        stepped_once = list(range(key, key + 10))
        join.push(0, stepped_once)
        if key >= 1_000:
            join.push(1, [each - 1_000 for each in stepped_once])
        assert join.store.bytes <= 8_000
    assert join.about["strategy"] == "dbf"
    assert join.results == 2_000
    assert join.about["accuracy"] == 1.0


def test_more_rows_at_once_than_memory_holds_go_to_disk() -> None:
    join = Join(memory=8_000)
    join.push(0, list(range(3_000)))
    assert join.store.bytes <= 8_000
    join.push(1, list(range(3_000)))
    assert join.store.bytes <= 8_000
    assert join.results == 3_000


@pytest.mark.parametrize("after", ["plain", "msf", "dbf", "hybrid"])
@pytest.mark.parametrize("before", ["plain", "msf", "dbf", "hybrid"])
def test_after_a_restart_another_strategy_goes_on(before: str, after: str) -> None:
    join = Join(strategy=before)
    stepped(join, 1_500, behind=700, size=50)
    again = Join(join.store, strategy=after)
    again.kernel.restore(join.kernel.snapshot())
    again.time, again.results = join.time, join.results
    for key in range(800, 1_500, 50):
        again.push(1, list(range(key, key + 50)))
    again.end()
    assert again.results == 1_500
    assert (again.store.rows, again.store.disk_rows) == (0, 0)


def test_without_relief_a_cap_costs_results_and_says_so() -> None:
    join = Join(memory=8_000, strategy="plain")
    stepped(join, 3_000, behind=1_000)
    share = join.results / 2_000
    assert share < 0.7
    assert join.about["rows given up"] > 500
    assert join.about["accuracy"] == pytest.approx(share, abs=0.25)
