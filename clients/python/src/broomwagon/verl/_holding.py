"""A lease that begins and ends with calls instead of a block."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from ..lease import Lease, LeaseStopped, Server

if TYPE_CHECKING:
    from .._held import StopCause

logger = logging.getLogger("broomwagon")


class Holding:
    """Holds a lease in a task of its own, because an abort of a lease cancels the task that runs its block."""

    def __init__(self, lease: Lease, stopped: Callable[[StopCause], None]) -> None:
        """:param stopped: called once if the lease is to end before `release`. The lease is held until `release`, as
        the engine may still run the request"""
        self._lease = lease
        self._stopped = stopped
        loop = asyncio.get_running_loop()
        self._released = asyncio.Event()
        self._acquired: asyncio.Future[Server] = loop.create_future()
        self._task = loop.create_task(self._hold())

    async def server(self) -> Server:
        """Waits for the lease. A cancelled wait leaves no lease.

        :raises BroomwagonError: as `Lease`
        """
        try:
            return await self._acquired
        except asyncio.CancelledError:
            if self._acquired.done() and not self._acquired.cancelled():
                # If the acquire failed at the moment of the cancellation, this read marks its error as handled.
                self._acquired.exception()
            self._task.cancel()
            raise

    def refuse(self, error: Exception) -> None:
        """Ends the wait of `server` with the error. After the wait, the call has no effect."""
        if not self._acquired.done():
            self._acquired.set_exception(error)
            self._task.cancel()

    def release(self, *, failed: bool = False) -> asyncio.Task[None]:
        """Ends the lease; safe to repeat. The task ends when the release is on its way.

        :param failed: the server did not answer the request
        """
        if failed and not self._released.is_set():
            self._lease.outcome = "failed"
        self._released.set()
        return self._task

    async def _hold(self) -> None:
        try:
            async with self._lease as server:
                if self._acquired.done():
                    return
                self._acquired.set_result(server)
                try:
                    await self._released.wait()
                except asyncio.CancelledError:
                    if self._lease.cause is None:
                        raise
                    self._stopped(self._lease.cause)
                    await self._released.wait()
                    raise
        except LeaseStopped:
            pass
        except asyncio.CancelledError:
            self._acquired.cancel()
            raise
        except Exception as error:
            if self._acquired.done():
                logger.warning("A lease ended with an error: %r", error)
            else:
                self._acquired.set_exception(error)
