"""Tokens, log probabilities and loss masks as arrays: 4, 8 and 1 bytes a token, which NumPy reads without a copy."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    Array = array[Any]
else:
    Array = array


class _Values(Array):
    """An array that can be compared and joined with a list."""

    __hash__ = None

    def __eq__(self, other: object) -> bool:
        if isinstance(other, array):
            return self.tolist() == other.tolist()
        return self.tolist() == other if isinstance(other, list) else NotImplemented

    def __ne__(self, other: object) -> bool:
        # In the `__ne__` of `array`, every list differs from an array.
        equal = self.__eq__(other)
        return equal if equal is NotImplemented else not equal

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        return type(self)(self.typecode, value) if isinstance(value, array) else value

    def __add__(self, other: Iterable[Any]) -> list[Any]:  # type: ignore[override]
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __iadd__(self, other: Iterable[Any]) -> Any:
        self.extend(other)
        return self

    def __copy__(self) -> Any:
        return self[:]

    def __deepcopy__(self, memo: object) -> Any:
        return self[:]


class TokenIds(_Values):
    """Token ids. The array equals a list of the same ids; `tolist()` makes such a list, for example for JSON."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[int]: ...
        def tolist(self) -> list[int]: ...


class Logprobs(_Values):
    """Log probabilities. A value that the engine did not return is None, and NaN for NumPy."""

    def __iter__(self) -> Iterator[float | None]:
        return (None if math.isnan(value) else value for value in super().__iter__())

    def __getitem__(self, index: Any) -> Any:
        value = super().__getitem__(index)
        return None if isinstance(value, float) and math.isnan(value) else value

    def tolist(self) -> list[float | None]:
        return list(self)


class LossMask(_Values):
    """1 for each token that the model generated, 0 for each token that the model read."""

    if TYPE_CHECKING:

        def __iter__(self) -> Iterator[int]: ...
        def tolist(self) -> list[int]: ...


def to_token_ids(values: Iterable[int]) -> TokenIds:
    ids = list(values)
    try:
        return TokenIds("i", ids)
    except OverflowError:
        # No engine has so large ids, but an agent loop may add any number.
        return TokenIds("q", ids)


def to_logprobs(values: Iterable[float | None]) -> Logprobs:
    return Logprobs("d", [math.nan if value is None else value for value in values])


def to_loss_mask(values: Iterable[int]) -> LossMask:
    return LossMask("B", list(values))
