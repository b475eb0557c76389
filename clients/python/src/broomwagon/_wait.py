"""How a method without asyncio waits for a coroutine."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, Protocol, TypeVar

T = TypeVar("T")


class Wait(Protocol):
    """Runs a coroutine on the event loop of the client. Returns its result or raises its exception."""

    def __call__(self, work: Coroutine[Any, Any, T]) -> T: ...
