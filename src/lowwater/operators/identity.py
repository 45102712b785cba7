"""The identity of a user's aggregate: a hash of its code, to compare with that of saved state.

The code of its functions is written as text in one way and hashed: instructions, constants, default
values, values of enclosing functions, and everything of the user's own modules that they refer to.
Line numbers, file names, docstrings and names of local variables are left out.

Invariant: the same code gives the same hash in every process of the same Python version.
"""

from __future__ import annotations

import dis
import hashlib
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import chain
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from lowwater.operators.aggregates import UserAggregate

PARTS = ("init", "add", "merge", "finish")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(...))
_LIBRARIES = tuple(
    str(Path(path).resolve())
    for name in ("stdlib", "platstdlib", "purelib", "platlib")
    if (path := sysconfig.get_path(name))
)


@dataclass(frozen=True)
class Identity:
    """The identity of a user's aggregate, as plain values that are saved with its state."""

    name: str
    version: str | None
    """The version that the user gave; None if none."""
    code: Mapping[str, str]
    """The hash of each of its functions."""
    python: str
    """The version of Python that compiled them; another one compiles differently."""

    @classmethod
    def of(cls, name: str, aggregate: UserAggregate) -> Identity:
        """Return the identity of an aggregate; ``name`` is its name in the answer."""
        given = aggregate.version
        code = {part: code_hash(getattr(aggregate, part)) for part in PARTS}
        code["columns"] = code_hash(aggregate.columns)
        python = ".".join(map(str, sys.version_info[:2]))
        return cls(name, None if given is None else str(given), code, python)

    def change_from(self, before: Identity) -> str | None:
        """Return what has changed since ``before`` as a phrase; None if its state can be used."""
        if self.version is not None and before.version is not None:
            if self.version == before.version:
                return None
            return f"it was version {before.version} and is version {self.version}"
        changed = [part for part in self.code if self.code[part] != before.code.get(part)]
        if not changed:
            return None
        words = f"{', '.join(changed)} changed"
        if self.python != before.python:
            words += f" (it was made by Python {before.python}, this is {self.python})"
        return words

    @staticmethod
    def advice(where: str, name: str, change: str) -> str:
        """Return the error message for a change."""
        return (
            f"the aggregate {name!r} of {where} is not the one the checkpoint's state was made"
            f" with: {change}. States of two aggregates cannot be mixed. Bring the function back to"
            " what it was, or start from a new checkpoint. If both make states of the same meaning,"
            " give both runs the same lw.aggregate(..., version=...): the version then decides, not"
            " the code"
        )


def code_hash(value: object) -> str:
    """Return a hash of the code of a function, or of a value."""
    text = "\n".join(_Writer().lines(value))
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class _Writer:
    """Writes values as text, each object once."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []  # keeps objects alive, so that no id is used twice

    def lines(self, value: Any) -> Iterator[str]:
        """Yield the value as lines that are the same in every process."""
        if isinstance(value, PLAIN):
            yield f"{type(value).__name__} {value!r}"
            return
        if id(value) in self._seen:
            yield f"again {self._seen[id(value)]}"
            return
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        yield from self._object(value)

    def _object(self, value: Any) -> Iterator[str]:
        writers: tuple[tuple[Any, Callable[[Any], Iterator[str]]], ...] = (
            (CodeType, self._code),
            (tuple | list, self._sequence),
            (set | frozenset, self._set),
            (dict, self._mapping),
            (FunctionType, self._function),
            (MethodType, self._method),
            (partial, self._partial),
            (type, self._class),
            (ModuleType, self._module),
            (BuiltinFunctionType, self._builtin),
            (object, self._instance),
        )
        for kinds, write in writers:
            if isinstance(value, kinds):
                yield from write(value)
                return

    def _sequence(self, values: tuple[Any, ...] | list[Any]) -> Iterator[str]:
        yield f"{type(values).__name__} of {len(values)}"
        for each in values:
            yield from self.lines(each)

    def _set(self, values: set[Any] | frozenset[Any]) -> Iterator[str]:
        yield f"{type(values).__name__} of {len(values)}"
        yield from sorted("\n".join(_Writer().lines(each)) for each in values)

    def _mapping(self, values: dict[Any, Any]) -> Iterator[str]:
        yield f"dict of {len(values)}"
        for pair in values.items():
            yield from chain(self.lines(pair[0]), self.lines(pair[1]))

    def _method(self, method: MethodType) -> Iterator[str]:
        yield "method"
        yield from chain(self.lines(method.__func__), self.lines(method.__self__))

    def _partial(self, call: partial[Any]) -> Iterator[str]:
        yield "partial"
        yield from chain(self.lines(call.func), self.lines(call.args), self.lines(call.keywords))

    def _module(self, module: ModuleType) -> Iterator[str]:
        yield f"module {module.__name__}"

    def _builtin(self, function: BuiltinFunctionType) -> Iterator[str]:
        yield f"builtin {function.__module__}.{function.__qualname__}"
        owner = function.__self__
        if not isinstance(owner, ModuleType | None):  # the method of an object
            yield from self.lines(owner)

    def _function(self, function: FunctionType) -> Iterator[str]:
        if _of_library(function.__module__):
            yield f"function {function.__module__}.{function.__qualname__}"
            return
        yield "function"
        yield from self._code(function.__code__)
        yield from self.lines(function.__defaults__)
        yield from self.lines(function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                content = cell.cell_contents
            except ValueError:  # not filled yet
                yield "empty"
            else:
                yield from self.lines(content)
        for name in sorted(set(_global_names(function.__code__))):
            if name in function.__globals__:
                yield from self._global(name, function.__globals__[name])

    def _global(self, name: str, value: Any) -> Iterator[str]:
        """Yield a function, class or constant of a module; values that can change are left out."""
        if isinstance(value, (*PLAIN, tuple, frozenset, FunctionType, type, ModuleType)):
            yield f"global {name}"
            yield from self.lines(value)

    def _code(self, code: CodeType) -> Iterator[str]:
        counts = code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount
        varying = code.co_flags & (0x04 | 0x08)
        yield f"code {counts} {varying}"
        for each in dis.get_instructions(code):
            local = each.opcode in dis.haslocal
            yield f"{each.opname} {each.arg if local else ''}"
            if not local and each.arg is not None:
                yield from self.lines(each.argval)

    def _class(self, kind: type) -> Iterator[str]:
        yield f"class {kind.__module__}.{kind.__qualname__}"
        if _of_library(kind.__module__):
            return
        yield from self.lines(kind.__bases__)
        for name, value in sorted(vars(kind).items()):
            constant = isinstance(value, (*PLAIN, tuple, frozenset)) and not name.startswith("__")
            if constant or isinstance(value, FunctionType):
                yield f"attribute {name}"
                yield from self.lines(value)
            elif isinstance(value, staticmethod | classmethod):
                yield f"{type(value).__name__} {name}"
                yield from self.lines(value.__func__)
            elif isinstance(value, property):
                yield f"property {name}"
                yield from self.lines((value.fget, value.fset))

    def _instance(self, value: Any) -> Iterator[str]:
        """Yield any other object as it would be pickled."""
        yield "object"
        try:
            made = value.__reduce_ex__(4)
        except Exception:  # it cannot be pickled; its class stands for it
            yield from self.lines(type(value))
            return
        if isinstance(made, str):
            yield f"{type(value).__module__}.{made}"
            return
        call, arguments, *state = made
        yield from self.lines(call)
        yield from self.lines(arguments)
        for part in state:
            yield from self.lines(list(part) if isinstance(part, Iterator) else part)


def _global_names(code: CodeType) -> Iterator[str]:
    """Yield the names that code, and code within it, looks up; also those of attributes."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def _of_library(module: str | None) -> bool:
    """Return true if a module came with Python or was installed; its name stands for its code."""
    if module is None or module == "__main__":
        return False
    if module.partition(".")[0] in sys.stdlib_module_names:
        return True
    place = getattr(sys.modules.get(module), "__file__", None)
    if place is None:
        return module in sys.modules
    return str(Path(place).resolve()).startswith(_LIBRARIES) or "site-packages" in place
