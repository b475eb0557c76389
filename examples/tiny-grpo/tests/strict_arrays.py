"""An array library on the CPU that is as strict as cupy: an operation that has both an array of the library and one of
numpy is an error. It shows where arrays would cross from host to GPU by mistake, without a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np


def _each(value: Any) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        for one in value:
            yield from _each(one)
    else:
        yield value


class Strict(np.ndarray):
    """An array of the library."""

    def get(self) -> Any:
        return np.array(self, subok=False)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = (), **options: Any) -> Any:
        _check(ufunc, [inputs, out])
        if out:
            options["out"] = _plain(out)
        return _strict(getattr(ufunc, method)(*_plain(inputs), **options))

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        _check(function, [args, list(kwargs.values())])
        named = {name: _plain(value) for name, value in kwargs.items()}
        return _strict(function(*_plain(args), **named))

    def __getitem__(self, index: Any) -> Any:
        _check("index", index)
        return super().__getitem__(index)

    def __setitem__(self, index: Any, value: Any) -> None:
        _check("index", [index, value])
        super().__setitem__(index, value)


def _check(what: object, values: Any) -> None:
    if any(type(value) is np.ndarray and value.ndim for value in _each(values)):
        raise TypeError(f"{what} has an array of numpy")


def _plain(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_plain, value))
    return value.view(np.ndarray) if isinstance(value, Strict) else value


def _strict(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_strict, value))
    return value.view(Strict) if isinstance(value, np.ndarray) else value


def asarray(array: Any) -> Strict:
    return np.asarray(array).view(Strict)


def zeros(*args: Any) -> Strict:
    return np.zeros(*args).view(Strict)


def full(*args: Any) -> Strict:
    return np.full(*args).view(Strict)


def triu(array: Strict, k: int) -> Any:
    return np.triu(array, k)


def eye(count: int, dtype: Any) -> Strict:
    return np.eye(count, dtype=dtype).view(Strict)


def arange(count: int) -> Strict:
    return np.arange(count).view(Strict)
