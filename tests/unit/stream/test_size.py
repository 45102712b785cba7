"""Amounts of memory, read and written."""

from __future__ import annotations

from typing import Any

import pytest

import lowwater as lw
from lowwater.stream.size import byte_count, spell_bytes


@pytest.mark.parametrize(
    ("given", "count"),
    [
        (1, 1),
        (65_536, 65_536),
        ("1 byte", 1),
        ("100 bytes", 100),
        ("12b", 12),
        ("64 MB", 64_000_000),
        ("64MB", 64_000_000),
        (" 64 mib ", 64 * 1024**2),
        ("1.5 GB", 1_500_000_000),
        ("0.5 kB", 500),
        ("1.0001 KB", 1000),
        ("3 KiB", 3072),
        ("2 TB", 2 * 10**12),
        ("1 TiB", 1024**4),
    ],
)
def test_amounts_of_memory(given: Any, count: int) -> None:
    assert byte_count(given) == count


@pytest.mark.parametrize(
    "given", ["", "64", "MB", "64 megs", "-1 MB", "1e3 MB", "64 MB 3 kB", "1,5 GB", "64 Mb/s"]
)
def test_what_is_no_amount_says_what_is(given: str) -> None:
    with pytest.raises(lw.OptionError, match=r"memory= .* is not an amount of memory; .*'64 MB'"):
        byte_count(given)


@pytest.mark.parametrize("given", [1.5, None, True, [64]])
def test_what_is_no_text_and_no_number_is_refused(given: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"memory= is an amount of memory, .* not "):
        byte_count(given)


@pytest.mark.parametrize("given", [0, -5, "0 MB", "0.2 bytes"])
def test_nothing_is_not_enough(given: Any) -> None:
    with pytest.raises(lw.OptionError, match=r"above zero, .* not "):
        byte_count(given)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 bytes"),
        (999, "999 bytes"),
        (1000, "1 kB"),
        (64_000_000, "64 MB"),
        (1_234_567, "1.23 MB"),
        (999_999, "1 MB"),
        (10**13, "10 TB"),
    ],
)
def test_in_words(count: int, text: str) -> None:
    assert spell_bytes(count) == text
