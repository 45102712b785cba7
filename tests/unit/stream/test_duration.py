"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from lowwater.errors import OptionError
from lowwater.stream.duration import SECOND, nanoseconds, spell


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("7 ns", 7),
        ("7 nanoseconds", 7),
        ("3 us", 3_000),
        ("3 µs", 3_000),
        ("3 microseconds", 3_000),
        ("500 ms", SECOND // 2),
        ("1 millisecond", 1_000_000),
        ("5s", 5 * SECOND),
        ("5 sec", 5 * SECOND),
        ("5 secs", 5 * SECOND),
        ("1 second", SECOND),
        ("2 m", 120 * SECOND),
        ("2 mins", 120 * SECOND),
        ("2 MINUTES", 120 * SECOND),
        ("1 h", 3600 * SECOND),
        ("2 hrs", 7200 * SECOND),
        ("1 hour", 3600 * SECOND),
        ("1 d", 86400 * SECOND),
        ("2 days", 172800 * SECOND),
        ("1 w", 604800 * SECOND),
        ("1 week", 604800 * SECOND),
        ("  1.5 s  ", 3 * SECOND // 2),
        ("-5 s", -5 * SECOND),
        ("+5 s", 5 * SECOND),
    ],
)
def test_text_is_a_number_and_a_unit(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1 minute 30 seconds", 90 * SECOND),
        ("1m30s", 90 * SECOND),
        ("1 hour -10 minutes", 3000 * SECOND),
        ("1 day 1 ns", 86400 * SECOND + 1),
    ],
)
def test_text_may_be_a_sum(text: str, expected: int) -> None:
    assert nanoseconds(text) == expected


def test_bare_numbers_are_seconds() -> None:
    assert nanoseconds(5) == 5 * SECOND
    assert nanoseconds(0.5) == SECOND // 2
    assert nanoseconds(-2) == -2 * SECOND


def test_timedelta_is_exact_also_below_zero() -> None:
    assert nanoseconds(timedelta(days=1, microseconds=1)) == 86400 * SECOND + 1_000
    assert nanoseconds(timedelta(microseconds=-1)) == -1_000


@pytest.mark.parametrize(
    "text", ["5", "five seconds", "5 parsecs", "5 seconds and a bit", " ", "s", "1,5 s", "5 ss"]
)
def test_what_is_no_length_of_time_is_refused_with_examples(text: str) -> None:
    with pytest.raises(OptionError, match="write a number and a unit, for example '500 ms'"):
        nanoseconds(text)


def test_empty_text_is_refused() -> None:
    with pytest.raises(OptionError, match="window is empty; write for example '5 seconds'"):
        nanoseconds("", "window")


@pytest.mark.parametrize("value", [True, None, [5], b"5 s"])
def test_other_types_are_refused(value: object) -> None:
    with pytest.raises(OptionError, match="must be a length of time such as '5 seconds'"):
        nanoseconds(value)  # type: ignore[arg-type]


def test_finer_than_a_nanosecond_is_refused() -> None:
    with pytest.raises(OptionError, match="finer than a nanosecond"):
        nanoseconds("0.5 ns")


def test_the_error_names_what_was_being_read() -> None:
    with pytest.raises(OptionError, match=r"^within\(\.\.\.\) '3 moons'"):
        nanoseconds("3 moons", "within(...)")


@pytest.mark.parametrize(
    ("length", "words"),
    [
        (0, "0 s"),
        (86400 * SECOND, "1 day"),
        (2 * 86400 * SECOND, "2 days"),
        (3600 * SECOND, "1 hour"),
        (120 * SECOND, "2 minutes"),
        (90 * SECOND, "90 s"),
        (3 * SECOND // 2, "1.5 s"),
        (20_000_000, "20 ms"),
        (-60 * SECOND, "-1 minute"),
    ],
)
def test_spell_writes_as_a_person_would(length: int, words: str) -> None:
    assert spell(length) == words


@pytest.mark.parametrize("words", ["1 day", "3 hours", "7 minutes", "90 s", "1.5 s", "20 ms"])
def test_what_spell_writes_reads_back(words: str) -> None:
    assert spell(nanoseconds(words)) == words


def test_decimal_seconds_are_what_they_look_like() -> None:
    assert nanoseconds(0.1) == 100_000_000
    assert nanoseconds(2.3) == 2_300_000_000


@pytest.mark.parametrize("value", [float("nan"), float("inf"), float("-inf")])
def test_lengths_must_be_finite(value: float) -> None:
    with pytest.raises(OptionError, match="finite length of time"):
        nanoseconds(value)


def test_spell_loses_no_digits() -> None:
    assert nanoseconds(spell(1_234_567 * SECOND + 1)) == 1_234_567 * SECOND + 1
    assert nanoseconds(spell(1)) == 1
    assert nanoseconds(spell(1_500)) == 1_500
