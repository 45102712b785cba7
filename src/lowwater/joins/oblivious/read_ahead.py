"""The number of rows that a join reads back from disk before they are due: C (WO-Join §4.2).

A row on disk is *due* when the other inputs reach its value. A page that is read when its rows are
due delays the results of that step by the time of the disk; a page that is read before takes
memory. So the join keeps the next ``C`` rows of an input that is far ahead in memory. With
``"auto"`` it needs as many as become due at once, and as many as become due while one page is
read::

    C = max(burst, rate * read)

``burst`` is the greatest number of rows that lately became due in one step, ``rate`` the rows of
the input a second, and ``read`` the seconds in which the store lately read a page. On Spark, rows
in memory at the end of a batch go to the state store again, so there ``burst`` does not count.
Under a cap on memory, C takes the same part of the cap as a page at most.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from lowwater.errors import OptionError, Term
from lowwater.stream.size import byte_count, spell_bytes

TERM = Term("read_ahead=", "READ_AHEAD")
FIRST = 256
"""Number of rows that ``auto`` reads ahead until it has read a page."""
FADING = 16
"""The burst falls by one part in ``FADING`` with each step in which fewer rows become due."""


@dataclass(frozen=True, slots=True)
class ReadAhead:
    """The option ``read_ahead=``; without a number of rows or bytes, the number is chosen."""

    rows: int | None = None
    bytes: int | None = None

    @classmethod
    def of(cls, given: int | str | None) -> ReadAhead:
        """Return the option for a number of rows, an amount of memory as a text, or ``auto``."""
        if given is None or (isinstance(given, str) and given.strip().lower() == "auto"):
            return AUTO
        if isinstance(given, str):
            return cls(bytes=byte_count(given, "read_ahead="))
        if not isinstance(given, int) or isinstance(given, bool) or given < 0:
            raise OptionError(
                TERM,
                " is a number of rows of zero or more, an amount of memory such as '64 kB', or"
                f" 'auto', not {given!r}",
            )
        return cls(rows=given)

    def describe(self) -> str:
        """Return the option as text for explain."""
        if self.rows is not None:
            return f"{self.rows:,} rows"
        if self.bytes is not None:
            return spell_bytes(self.bytes)
        return f"chosen from the measured time of reading a page, {FIRST:,} rows at first"

    def fixed(self, row_bytes: float) -> int | None:
        """Return the number of rows if it is given; ``row_bytes`` is the size of a row."""
        if self.bytes is not None:
            return int(self.bytes // max(1.0, row_bytes))
        return self.rows


AUTO = ReadAhead()
"""The default: the number of rows is chosen."""


def rows_ahead(burst: int, rate: float, read: int, most: int | None) -> int:
    """Return the number of rows to read ahead under ``auto``.

    ``burst`` is the number of rows that become due at once, ``rate`` the rows of the input a
    second, ``read`` the nanoseconds in which a page is read, 0 if none was read, and ``most`` the
    greatest number allowed; None for no limit.

    >>> rows_ahead(burst=100, rate=50_000, read=4_000_000, most=None)
    200
    """
    rows = max(burst, ceil(rate * read / 1e9)) if read else FIRST
    return rows if most is None else min(rows, most)
