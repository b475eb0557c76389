"""One connection that all calls of a process share."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from ..client import Client


class Opening:
    """Connects with the first call, because its owner is created outside of an event loop."""

    def __init__(self, open_client: Callable[[], Coroutine[Any, Any, Client]]) -> None:
        self._open_client = open_client
        self._task: asyncio.Task[Client] | None = None

    @property
    def is_begun(self) -> bool:
        return self._task is not None

    async def client(self) -> Client:
        """Waits for the one connection. After a failed try the next call connects again. A cancellation ends only the
        wait."""
        if self._task is None or _has_failed(self._task):
            self._task = asyncio.create_task(self._open_client())
        return await asyncio.shield(self._task)


def _has_failed(task: asyncio.Task[Client]) -> bool:
    return task.done() and (task.cancelled() or task.exception() is not None)
