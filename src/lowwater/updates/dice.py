"""Dice that fall the same way in every run: the n-th throw is a mixture of the bits of n."""

from __future__ import annotations

MASK = 2**64 - 1


def throw(number: int) -> float:
    """A number between 0 and 1, for the so-manieth throw."""
    mixed = (number * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) & MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & MASK
    return ((mixed ^ (mixed >> 31)) >> 11) / 2**53
