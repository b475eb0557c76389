"""Finds server actors that have died, by the error that Ray raises for each caller."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

logger = logging.getLogger("broomwagon")

#: Seconds between two calls of one actor.
PING_INTERVAL = 5.0
#: Seconds between two calls after a request that ended at once, as a request to a dead actor does.
MIN_PING_INTERVAL = 0.1
#: Seconds that `is_dead` waits for an answer.
PING_TIMEOUT = 10.0


class ServerActors:
    """Watches each server actor with one call at a time. An actor that does not answer counts as alive."""

    def __init__(self, remove: Callable[[str, Any], Awaitable[None]]) -> None:
        """:param remove: gets the server id and the handle of a dead actor; safe to repeat"""
        self._remove = remove
        self._handles: dict[str, Any] = {}
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._nudges: dict[str, asyncio.Event] = {}

    def watch(self, server_id: str, handle: Any) -> None:
        """Watches an actor instead of the earlier actor of the server. A handle that is not from Ray is not watched."""
        self.forget(server_id)
        if hasattr(handle, "__ray_ready__"):
            self._handles[server_id] = handle
            self._nudges[server_id] = nudge = asyncio.Event()
            self._watches[server_id] = asyncio.create_task(self._watch(server_id, handle, nudge))

    def forget(self, server_id: str) -> None:
        self._handles.pop(server_id, None)
        self._nudges.pop(server_id, None)
        watch = self._watches.pop(server_id, None)
        if watch is not None and watch is not asyncio.current_task():
            watch.cancel()

    def nudge(self, server_id: str) -> None:
        """Makes the next call of an actor come soon, because the actor may have died."""
        if nudge := self._nudges.get(server_id):
            nudge.set()

    async def is_dead(self, server_id: str) -> bool:
        """Calls the actor now, and removes the server if the actor is dead. Also true if the server is not watched."""
        handle = self._handles.get(server_id)
        if handle is None:
            return True
        with suppress(asyncio.TimeoutError):
            return await asyncio.wait_for(self._is_removed(server_id, handle), PING_TIMEOUT)
        return False

    async def _watch(self, server_id: str, handle: Any, nudge: asyncio.Event) -> None:
        while not await self._is_removed(server_id, handle):
            await asyncio.sleep(MIN_PING_INTERVAL)
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(nudge.wait(), PING_INTERVAL)
            nudge.clear()

    async def _is_removed(self, server_id: str, handle: Any) -> bool:
        """Whether the actor is dead, and its server removed."""
        from ray.exceptions import ActorDiedError, RayError

        try:
            await handle.__ray_ready__.remote()
        except ActorDiedError:
            try:
                await self._remove(server_id, handle)
                return True
            except Exception:
                logger.exception("The server %s, whose actor has died, was not removed", server_id)
        except RayError as error:
            logger.info("The actor of %s did not answer: %s", server_id, error)
        return False
