"""Metrics become plain values, the one form in which they are sent, saved and served as JSON.

A dataclass becomes a dict of its fields, of which those that are None are left out; readings become
values by :attr:`~lowwater.operators.metric.Metric.id`. :func:`restored` brings back what
:func:`plain` made, with all its types.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import MISSING, fields, is_dataclass
from datetime import datetime
from functools import cache
from math import isfinite
from types import ModuleType, NoneType, UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from lowwater.joins.oblivious import estimates, memory_manager, restarting_join, unmatched_rows
from lowwater.joins.ordered import ordered_join
from lowwater.metrics import streams, values
from lowwater.operators import metric
from lowwater.operators.metric import Metric, Readings, Value, declared, parts_of_id
from lowwater.updates import queue_kernel, targets

T = TypeVar("T")

DECLARING: tuple[ModuleType, ...] = (
    metric,
    ordered_join,
    estimates,
    memory_manager,
    restarting_join,
    unmatched_rows,
    queue_kernel,
    targets,
    streams,
    values,
)
"""The modules that declare metrics."""


def _declarations() -> Iterator[Metric[Any]]:
    for module in DECLARING:
        for each in vars(module).values():
            if isinstance(each, Metric):
                yield each
            elif isinstance(each, type) and is_dataclass(each):
                own = each.__module__ == module.__name__
                yield from declared(each).values() if own else ()
            elif isinstance(each, Mapping):
                yield from (one for one in each.values() if isinstance(one, Metric))


CATALOGUE: Mapping[str, Metric[Any]] = {each.name: each for each in _declarations()}
"""Every metric there is, by name."""


def plain(value: Any) -> Any:
    """Return a value in types that JSON has; a value of any other type becomes its text."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Readings):
        return value.plain()
    if is_dataclass(value):
        found = ((each.name, getattr(value, each.name)) for each in fields(value))
        return {name: plain(each) for name, each in found if each is not None}
    if isinstance(value, Mapping):
        if all(isinstance(key, str) for key in value):
            return {key: plain(each) for key, each in value.items()}
        return [[plain(key), plain(each)] for key, each in value.items()]
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, bytes):
        return [plain(each) for each in value]
    if isinstance(value, np.generic):
        return value.item()
    return value.isoformat() if isinstance(value, datetime) else str(value)


def finite(value: Any) -> Any:
    """Return a plain value with floats rounded to six digits; NaN and infinity become None."""
    if isinstance(value, float):
        return round(value, 6) if isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(each) for key, each in value.items()}
    return [finite(each) for each in value] if isinstance(value, list | tuple) else value


def restored(kind: type[T], given: Any) -> T:
    """Return the value of a type from what :func:`plain` made of it. A missing field has its
    default, or is None."""
    found: T = _restored(kind, given)
    return found


def _restored(kind: Any, given: Any) -> Any:
    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _restored(parts[0], given)
    if given is None:
        return None
    if origin in (Union, UnionType):
        return _restored(_fitting(parts, given), given)
    if kind is Readings:
        return _readings(given)
    if isinstance(kind, type) and is_dataclass(kind):
        return _value(kind, given)
    if origin is not None and issubclass(origin, Mapping):
        pairs = given.items() if isinstance(given, dict) else given
        return {_restored(parts[0], key): _restored(parts[1], each) for key, each in pairs}
    if origin is tuple and parts[-1] is not Ellipsis:
        return tuple(_restored(part, each) for part, each in zip(parts, given, strict=True))
    if origin is not None and issubclass(origin, Sequence | AbstractSet):
        many = [_restored(parts[0], each) for each in given]
        return many if origin is list else frozenset(many) if origin is frozenset else tuple(many)
    if kind is datetime:
        return datetime.fromisoformat(given)
    if kind in (int, float, str, bool):
        return kind(given)
    return _hashable(given)


def _fitting(kinds: Sequence[Any], given: Any) -> Any:
    """Return the member of a union to which a plain value belongs."""
    members = [each for each in kinds if each is not NoneType]
    own = {bool: bool, int: int, float: float, str: str}.get(type(given))
    if own in members or len(members) == 1:
        return own if own in members else members[0]
    if isinstance(given, str) and datetime in members:
        return datetime
    return float if isinstance(given, int) and float in members else members[0]


def _value(kind: Any, given: Mapping[str, Any]) -> Any:
    hints = _hints(kind)
    found = {
        each.name: _restored(hints[each.name], given[each.name])
        for each in fields(kind)
        if each.name in given
    }
    needed = (
        each.name
        for each in fields(kind)
        if each.default is MISSING and each.default_factory is MISSING
    )
    return kind(**dict.fromkeys(needed) | found)


@cache
def _hints(kind: Any) -> dict[str, Any]:
    return get_type_hints(kind)


def _readings(given: Mapping[str, Value]) -> Readings:
    """Return readings; metrics that this version does not have are left out."""
    found: dict[Metric[Any], Value] = {}
    for id_, value in given.items():
        name, inputs = parts_of_id(id_)
        if name in CATALOGUE:
            found[CATALOGUE[name].of(*inputs)] = value
    return Readings(found)


def _hashable(given: Any) -> Hashable:
    """Return the name of a channel, or a key: a list of JSON becomes a tuple."""
    return tuple(map(_hashable, given)) if isinstance(given, list) else given
