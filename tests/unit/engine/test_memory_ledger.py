"""A memory budget is divided by need, and never given out twice; queries are admitted to it."""

from __future__ import annotations

import threading
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lowwater.engines.memory import (
    MemoryAccount,
    MemoryBudget,
    MemoryLedger,
    QueryMemory,
    divided,
)
from lowwater.errors import AdmissionError, OptionError


@dataclass(frozen=True)
class Need:
    """A need that is stated; half of the least memory finds half of the results."""

    full: int
    least: int
    certain: bool = True
    asked: float = 0.9

    def expected(self, share: int) -> float:
        return self.asked * min(1.0, share / self.least) if self.least else self.asked

    def describe(self) -> str:
        return f"{self.full} bytes, at least {self.least}"


def settled(*accounts: MemoryAccount, need: Need | None = None) -> list[int]:
    """Let joins that use all of their shares report until nothing changes; return the shares."""
    for _ in range(3):
        for each in accounts:
            share = each.settle(need or each.need, each.used)
            each.settle(need or each.need, share)
    return [each.share for each in accounts]


def query(ledger: MemoryLedger, *needs: Need | None, admission: str = "warn") -> QueryMemory:
    found = QueryMemory(ledger, admission)  # type: ignore[arg-type]
    for at, need in enumerate(needs):
        found.open(f"join#{at}", need)
    return found


# ---- the division --------------------------------------------------------------------------


@given(st.integers(0, 10_000), st.lists(st.integers(0, 1_000), max_size=6), st.booleans())
def test_parts_are_no_more_than_the_amount_and_by_what_is_asked(
    amount: int, asked: list[int], fully: bool
) -> None:
    parts = divided(amount, asked, fully)
    assert sum(parts) <= amount or parts == asked
    assert len(parts) == len(asked)
    if sum(asked) <= amount and not fully:
        assert parts == asked
    for one, part in zip(asked, parts, strict=True):
        for two, other in zip(asked, parts, strict=True):
            assert one > two or part <= other


def test_memory_is_divided_by_need() -> None:
    ledger = MemoryLedger(1_000)
    one, two = query(ledger, Need(300, 100), Need(100, 50)).accounts
    assert settled(one, two) == [750, 250]  # more than all needs: in proportion to the full ones
    ledger = MemoryLedger(1_000)
    one, two = query(ledger, Need(1_800, 300), Need(1_000, 100)).accounts
    assert settled(one, two) == [300 + 600 * 1_500 // 2_400, 100 + 600 * 900 // 2_400]
    ledger = MemoryLedger(1_000)
    one, two = query(ledger, Need(9_000, 3_000), Need(2_000, 1_000)).accounts
    assert settled(one, two) == [750, 250]  # less than the least needs: in proportion to these


def test_a_join_gets_more_only_when_another_has_shrunk() -> None:
    ledger = MemoryLedger(1_000)
    one, two = query(ledger, Need(500, 500), Need(500, 500)).accounts
    assert settled(one, two) == [500, 500]
    assert one.settle(Need(1_500, 1_500), 500) == 500  # the other still uses its half
    assert two.settle(Need(500, 500), 500) == 250  # it is told to shrink,
    assert one.settle(Need(1_500, 1_500), 500) == 500
    two.settle(Need(500, 500), 250)  # it has,
    assert one.settle(Need(1_500, 1_500), 500) == 750


def test_small_changes_of_need_divide_nothing_again() -> None:
    ledger = MemoryLedger(1_000)
    one, two = query(ledger, Need(800, 800), Need(800, 800)).accounts
    assert settled(one, two) == [500, 500]
    one.settle(Need(880, 880), 500)
    assert settled(one, two, need=None) == [500, 500]
    one.settle(Need(1_600, 1_600), 500)
    assert settled(one, two) == [666, 333]


def test_what_an_ended_join_had_goes_to_the_others() -> None:
    ledger = MemoryLedger(900)
    first = query(ledger, Need(900, 900), None)
    second = query(ledger, None)
    assert settled(*first.accounts, *second.accounts)[0] > 0
    first.accounts[0].settle(None, 0, ended=True)
    first.accounts[1].settle(None, 0, ended=True)
    assert settled(*second.accounts) == [900]
    third = query(ledger, Need(10, 10))
    second.close()
    assert settled(*third.accounts) == [900]


def test_a_join_whose_need_is_not_known_has_some_memory_from_the_start() -> None:
    ledger = MemoryLedger(8_000)
    admitted = query(ledger, Need(8_000, 8_000))
    admitted.judge()
    unknown = query(ledger, None)
    shares = settled(*admitted.accounts, *unknown.accounts)
    assert shares[1] >= 400
    assert sum(shares) <= 8_000


@given(st.data())
def test_no_byte_is_given_out_twice(data: st.DataObject) -> None:
    """Joins come, change their needs, obey late, and end, in any order."""
    sizes = st.integers(0, 5_000)
    ledger = MemoryLedger(data.draw(st.integers(1, 4_000)))
    queries: list[QueryMemory] = []
    for _ in range(data.draw(st.integers(1, 40))):
        accounts = [each for one in queries for each in one.accounts]
        step = data.draw(st.sampled_from(["open", "need", "use", "obey", "judge", "end", "close"]))
        if step == "open" or not accounts:
            queries.append(query(ledger, *data.draw(st.lists(st.none(), min_size=1, max_size=3))))
        elif step == "judge":
            data.draw(st.sampled_from(queries)).judge()
        elif step == "close":
            gone = data.draw(st.sampled_from(queries))
            gone.close()
            queries.remove(gone)
        else:
            account = data.draw(st.sampled_from(accounts))
            used = min(account.used, account.share)
            if step == "need":
                least = data.draw(sizes)
                need = Need(least + data.draw(sizes), least, data.draw(st.booleans()))
                account.settle(need, account.used)
            elif step == "use":  # a join never uses more than it may
                account.settle(account.need, data.draw(st.integers(0, max(0, account.share))))
            elif step == "obey":
                account.settle(account.need, used)
            else:
                account.settle(account.need, 0, ended=True)
        held = [each for one in queries for each in one.accounts]
        assert sum(max(each.share, each.used) for each in held) <= ledger.budget
        assert all(each.share >= 0 for each in held)


def test_threads_share_one_ledger() -> None:
    ledger = MemoryLedger(1_000)
    accounts = query(ledger, *[Need(400, 100)] * 4).accounts
    wrong = []

    def work(account: MemoryAccount) -> None:
        for at in range(300):
            need = Need(200 + at % 7 * 150, 50)
            share = account.settle(need, account.used)
            account.settle(need, share)
            with ledger._lock:
                held = sum(each.reserved for each in accounts)
            if held > 1_000:
                wrong.append(held)

    threads = [threading.Thread(target=work, args=(each,)) for each in accounts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert wrong == []


# ---- admission -----------------------------------------------------------------------------


def test_a_query_is_admitted_to_what_the_admitted_ones_leave() -> None:
    ledger = MemoryLedger(1_000)
    first, second, third = (query(ledger, Need(900, least)) for least in (600, 500, 400))
    assert first.judge() is None
    said = second.judge()
    assert said is not None
    assert "to be sure of 90 % of the results, the joins need 500 bytes of memory" in said
    assert "400 bytes of the budget of 1 kB are left" in said
    assert "About 72 % of the results are to be expected" in said
    assert "Raise memory= (SET MEMORY) to 1.1 kB" in said
    assert second.judge() is None  # it is told once
    assert third.judge() is None
    shares = settled(*first.accounts, *second.accounts, *third.accounts)
    assert shares == [600, 0, 400]


def test_a_query_is_judged_when_all_needs_are_certain_or_some_are_too_much() -> None:
    ledger = MemoryLedger(1_000)
    waiting = query(ledger, Need(700, 700), None)
    assert waiting.judge() is None
    assert waiting.admitted is None
    waiting.accounts[1].settle(Need(9_000, 9_000, certain=False), 0)
    assert waiting.judge() is None
    waiting.accounts[1].settle(Need(200, 200), 0)
    assert waiting.judge() is None
    assert waiting.admitted
    large = query(MemoryLedger(1_000), Need(2_000, 2_000), None)
    assert "At most 45 %" in str(large.judge())


def test_a_query_that_is_refused_is_an_error_with_its_name() -> None:
    refused = query(MemoryLedger(100), Need(300, 200), admission="refuse")
    refused.label = "query 2, line 7"
    with pytest.raises(
        AdmissionError, match=r"^query 2, line 7: to be sure of 90 % of the results"
    ):
        refused.judge()


def test_a_budget_is_an_amount_with_a_rule() -> None:
    assert MemoryBudget.of("1 kB") == MemoryBudget(1_000, "warn")
    assert MemoryBudget.of(5, "refuse") == MemoryBudget(5, "refuse")
    assert MemoryBudget.of(None) is None
    with pytest.raises(OptionError, match="'warn' or 'refuse', not 'maybe'"):
        MemoryBudget.of("1 kB", "maybe")
    with pytest.raises(OptionError, match="admission= goes with memory="):
        MemoryBudget.of(None, "warn")
    with pytest.raises(OptionError, match="not an amount of memory"):
        MemoryBudget.of("much")
