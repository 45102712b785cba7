"""The punctuation that a join has received."""

from __future__ import annotations

from lowwater.joins.promises import InputPromises
from lowwater.operators.kernel import Request
from lowwater.stream.element import END_OF_TIME, Punctuation

NAMES = [{"ts": "ts", "due": "due"}, {"ts": "ts_right"}]


def test_punctuation_never_goes_back_and_has_the_names_of_the_output() -> None:
    received = InputPromises(NAMES)
    assert received.advance(1, Punctuation.linear("ts", 5))
    assert not received.advance(1, Punctuation.linear("ts", 5))
    assert not received.advance(1, Punctuation.linear("ts", 4))
    assert not received.advance(1, Punctuation.linear("other", 9))
    assert received.of(1) == [Punctuation.linear("ts_right", 5)]
    assert received.of(0) == []


def test_a_request_is_missing_until_it_is_met_or_its_input_has_ended() -> None:
    received = InputPromises(NAMES)
    own, joint = Request(0, "ts", 7), Request.any_of(0, [("ts", 7), ("due", 3)])
    assert received.missing([own, joint], {0, 1}) == [own, joint]
    received.advance(0, Punctuation.jointly({"ts": 8, "due": 3}))
    assert received.missing([own, joint], {0, 1}) == [own]
    received.advance(0, Punctuation.linear("ts", 7))
    assert received.missing([own, joint], {0, 1}) == []
    assert received.missing([Request(1, "ts", 1)], {0}) == []


def test_an_ended_input_promises_everything_also_after_a_snapshot() -> None:
    received, again = InputPromises(NAMES), InputPromises(NAMES)
    received.advance(0, Punctuation.linear("due", 3))
    received.end(0, "ts")
    again.restore(received.snapshot())
    marks = {each.attributes: each.values for each in again.of(0)}
    assert marks == {("ts",): (END_OF_TIME,), ("due",): (END_OF_TIME,)}
