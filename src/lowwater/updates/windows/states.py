"""The states of a key and how it goes from one to another (UpStream Fig. 10)."""

from __future__ import annotations

from enum import Enum, auto


class KeyState(Enum):
    """Where a key is between the arrival of an update and its answer."""

    ENQ = auto()
    """A row came: where every update of a key starts."""
    WAIT = auto()
    """A window waits for the key's turn."""
    READY = auto()
    """A window is worked on, and there are rows of it."""
    IDLE = auto()
    """A window is worked on, and the next of its rows has not come."""
    DONE = auto()
    """The window is answered: where every update ends."""


TRANSITIONS: dict[tuple[KeyState, KeyState], str] = {
    (KeyState.ENQ, KeyState.WAIT): "isUpdate",
    (KeyState.WAIT, KeyState.READY): "commit",
    (KeyState.READY, KeyState.IDLE): "not isAvail",
    (KeyState.IDLE, KeyState.READY): "doPromote",
    (KeyState.READY, KeyState.DONE): "result",
}
"""What a key may do, and on which condition."""
