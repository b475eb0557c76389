"""A lease that begins and ends with calls instead of a block."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..lease import Lease, LeaseStopped, Server

if TYPE_CHECKING:
    from .._held import StopCause


class Holding:
    """A task holds the lease, because an abort of a lease cancels the task that has its block."""

    def __init__(self, lease: Lease, stopped: Callable[[StopCause], None]) -> None:
        """:param stopped: called once if the lease is taken back before `release`"""
        self._lease = lease
        self._stopped = stopped
        loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[None] = loop.create_future()
        self._acquired: asyncio.Future[Server] = loop.create_future()
        self._task = loop.create_task(self._hold())

    async def server(self) -> Server:
        """Waits for the lease. A cancellation leaves none.

        :raises BroomwagonError: as `Lease`
        """
        try:
            return await self._acquired
        except asyncio.CancelledError:
            self._task.cancel()
            raise

    def release(self) -> asyncio.Task[None]:
        """Ends the lease; safe to repeat. The task settles when the release is on its way."""
        if not self._ended.done():
            self._ended.set_result(None)
        return self._task

    async def _hold(self) -> None:
        try:
            async with self._lease as server:
                if self._acquired.done():
                    return
                self._acquired.set_result(server)
                await self._ended
        except LeaseStopped as stopped:
            self._stopped(stopped.cause)
        except asyncio.CancelledError:
            self._acquired.cancel()
            raise
        except Exception as error:
            if self._acquired.done():
                raise
            self._acquired.set_exception(error)
