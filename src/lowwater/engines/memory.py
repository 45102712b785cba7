"""A memory budget is divided over the joins of all queries by need; queries are admitted to it.

:class:`MemoryLedger` holds the budget of one process (or of one bucket on Spark). Each join has an
account: its need, what it uses, and its share. The division: joins of admitted queries get their
least need first; the others get what is left, in proportion to their least needs; what is then
left goes to those that could use more, up to their full needs, and the rest in proportion to
these. A need that is not known yet counts as an equal part of the budget, of which an eighth comes
first. The budget is divided again when a need has changed by more than an eighth, and when a join
ends.

A query is *admitted* if the least needs of its joins fit into what the admitted queries leave. It
is judged once, as soon as the needs of all its joins are known (WO-Join §3).

Invariant: the shares, and what joins still use beyond theirs, are at most the budget together.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from lowwater.errors import AdmissionError, OptionError, Term
from lowwater.joins.oblivious.options import ADMISSIONS, Admission
from lowwater.operators.shared_memory import MemoryNeed
from lowwater.stream.size import Size, byte_count, spell_bytes

START = 8
"""A join whose need is not known gets at least one part in ``START`` of an equal share."""
CHANGED = 8
"""Needs count as changed if they differ by more than one part in ``CHANGED``."""


@dataclass(frozen=True, slots=True)
class MemoryBudget:
    """A memory budget as users give it."""

    bytes: int
    admission: Admission = "warn"
    """What happens if a query cannot be served at its accuracy: a warning, or an error."""

    @classmethod
    def of(cls, memory: Size | None, admission: str | None = None) -> MemoryBudget | None:
        """Return the budget that options give; None if there is none."""
        if admission is not None and admission not in ADMISSIONS:
            known = " or ".join(map(repr, ADMISSIONS))
            raise OptionError(
                Term("admission=", "SET ADMISSION"), f" is {known}, not {admission!r}"
            )
        if memory is None:
            if admission is not None:
                raise OptionError("admission= goes with memory=, the budget of all joins")
            return None
        size = byte_count(memory)
        return cls(size) if admission is None else cls(size, admission)


@dataclass(eq=False)
class MemoryAccount:
    """The account of one join: all sizes are in bytes."""

    query: QueryMemory
    title: str
    need: MemoryNeed | None = None
    """The need by which the budget was divided last; None if it is not known."""
    used: int = 0
    share: int = 0
    """The most that the join may use now."""
    target: int = 0
    """The share that the last division gives; ``share`` becomes it when others have shrunk."""
    ended: bool = False

    @property
    def reserved(self) -> int:
        """Bytes that nobody else may have."""
        return max(self.share, self.used)

    def settle(self, need: MemoryNeed | None, used: int, ended: bool = False) -> int:
        """Report the need, what is used, and whether the join has ended; return the share."""
        return self.query.ledger.settle(self, need, used, ended)


@dataclass(eq=False)
class QueryMemory:
    """The joins of one query under a budget."""

    ledger: MemoryLedger
    admission: Admission
    wake: Callable[[], None] = lambda: None
    """Wakes the engine that runs the query, so that its joins report."""
    label: str = ""
    """The name of the query in messages, such as "query 2"; empty if there is one."""
    accounts: list[MemoryAccount] = field(default_factory=list)
    admitted: bool | None = None
    """None until the query is judged."""

    def open(self, title: str, need: MemoryNeed | None = None) -> MemoryAccount:
        """Open the account of a join; ``need`` is what is known of it before the run."""
        return self.ledger.open(self, title, need)

    def account(self, title: str) -> MemoryAccount | None:
        """Return the account of a join; None for operators that have none."""
        return next((each for each in self.accounts if each.title == title), None)

    def judge(self) -> str | None:
        """Judge the query once all needs are known; return what is wrong, once, if it cannot be
        served. With an admission of "refuse" that is an error."""
        if self.admitted is not None:
            return None
        found = self.ledger.judge(self)
        if found is None:
            return None
        text = f"{self.label}: {found}" if self.label else found
        if self.admission == "refuse":
            raise AdmissionError(text)
        return text

    def close(self) -> None:
        """Leave the whole share to others."""
        self.ledger.close(self)


class MemoryLedger:
    """The budget of one process, and who has how much of it; any thread may call it."""

    def __init__(self, budget: int):
        self.budget = budget
        self._accounts: list[MemoryAccount] = []
        self._lock = threading.RLock()

    def open(self, query: QueryMemory, title: str, need: MemoryNeed | None) -> MemoryAccount:
        """Open the account of a join."""
        with self._lock:
            account = MemoryAccount(query, title, need)
            query.accounts.append(account)
            self._accounts.append(account)
            self._divide()
            self._grow(account)
            return account

    def settle(
        self, account: MemoryAccount, need: MemoryNeed | None, used: int, ended: bool
    ) -> int:
        """Take a report of a join; return its share."""
        with self._lock:
            account.used = used
            if ended != account.ended or _has_changed(account.need, need):
                account.need, account.ended = need or account.need, ended
                self._divide()
            account.share = min(account.share, account.target)
            self._grow(account)
            return account.share

    def close(self, query: QueryMemory) -> None:
        """Close the accounts of a query."""
        with self._lock:
            self._accounts = [each for each in self._accounts if each.query is not query]
            self._divide()

    def _grow(self, account: MemoryAccount) -> None:
        """Raise a share towards its target, by what is free."""
        free = self.budget - sum(each.reserved for each in self._accounts)
        account.share += max(0, min(account.target - account.reserved, free))

    # ---- the division ----------------------------------------------------------------------

    def _divide(self) -> None:
        """Compute all targets anew, and wake the queries of joins that have to shrink."""
        joins = [each for each in self._accounts if not each.ended]
        sizes = [self._sizes(each, len(joins)) for each in joins]
        first = [self._first(each, size[0]) for each, size in zip(joins, sizes, strict=True)]
        steps = [
            (first, False),
            ([max(0, least - had) for (least, _), had in zip(sizes, first, strict=True)], False),
            ([full - least for least, full in sizes], False),
            ([full for _, full in sizes], True),
        ]
        for account in self._accounts:
            account.target = 0
        left = self.budget
        for asked, fully in steps:
            parts = divided(left, asked, fully)
            left -= sum(parts)
            for account, part in zip(joins, parts, strict=True):
                account.target += part
        for account in self._accounts:
            if account.target < account.used:
                account.query.wake()

    def _first(self, account: MemoryAccount, least: int) -> int:
        """Return what a join gets before all others: its least need if its query is admitted, a
        part of that if its need is not known."""
        if account.query.admitted:
            return least
        return least // START if account.need is None else 0

    def _sizes(self, account: MemoryAccount, joins: int) -> tuple[int, int]:
        """Return the least and the full need of a join."""
        if account.need is None:
            return self.budget // joins, self.budget // joins
        return account.need.least, account.need.full

    # ---- admission -------------------------------------------------------------------------

    def judge(self, query: QueryMemory) -> str | None:
        """Decide whether a query is admitted, if all its needs are known; return why it is not."""
        with self._lock:
            needs = [(each.title, each.need) for each in query.accounts]
            known = [(title, need) for title, need in needs if need is not None and need.certain]
            needed = sum(need.least for _, need in known)
            others = [each for each in self._accounts if each.query is not query and not each.ended]
            taken = sum(each.need.least for each in others if each.query.admitted and each.need)
            left = max(0, self.budget - taken)
            if not known or (needed <= left and len(known) < len(query.accounts)):
                return None  # some are not known yet
            query.admitted = needed <= left
            self._divide()
            if query.admitted:
                return None
            return shortage(self.budget, left, known, len(known) < len(query.accounts))


def divided(amount: int, asked: Sequence[int], fully: bool = False) -> list[int]:
    """Return the parts of an amount: what each asks for, or less in proportion if it is too little.

    If ``fully``, all of the amount is given away in proportion.

    >>> divided(100, [30, 10]), divided(20, [30, 10]), divided(100, [30, 10], fully=True)
    ([30, 10], [15, 5], [75, 25])
    """
    whole = sum(asked)
    if not whole or (whole <= amount and not fully):
        return [0] * len(asked) if not whole else list(asked)
    return [amount * each // whole for each in asked]


def shortage(
    budget: int, left: int, known: Sequence[tuple[str, MemoryNeed]], more: bool = False
) -> str:
    """Return why a query whose joins have these needs cannot be served, with the numbers.

    ``more`` is true if it has more joins, whose needs are not known yet.
    """
    needed = sum(need.least for _, need in known)
    each = "; ".join(f"{title} needs {need.describe()}" for title, need in known)
    about, asked, expected = ("At most" if more else "About"), _asked(known), _expected(left, known)
    needs, rest, whole, enough = map(spell_bytes, (needed, left, budget, budget + needed - left))
    return (
        f"to be sure of {asked * 100:.10g} % of the results, the joins need {needs} of memory, and"
        f" {rest} of the budget of {whole} are left ({each}). {about} {expected * 100:.3g} % of the"
        f" results are to be expected with that. Raise memory= (SET MEMORY) to {enough}, or ask for"
        " a lower accuracy=, or run fewer queries at the same time"
    )


Known = Sequence[tuple[str, MemoryNeed]]
"""The titles and needs of joins."""


def _asked(known: Known) -> float:
    return max(need.asked for _, need in known)


def _expected(left: int, known: Known) -> float:
    """Return the share of results to be expected of the join that finds least."""
    shares = divided(left, [need.least for _, need in known])
    return min(need.expected(share) for (_, need), share in zip(known, shares, strict=True))


def _has_changed(before: MemoryNeed | None, now: MemoryNeed | None) -> bool:
    if now is None or before is now:
        return False
    if before is None:
        return True
    if before.certain != now.certain:
        return True
    pairs = ((before.full, now.full), (before.least, now.least))
    return any(abs(new - old) * CHANGED > old for old, new in pairs)
