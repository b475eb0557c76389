"""Gathers the items that callers add within one turn of the event loop, or while another call is on its way, into one
call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ._error import BroomwagonError
from ._session import EXPIRED_EPOCH

Item = TypeVar("Item")
Reply = TypeVar("Reply")


#: Maximum seconds that a call waits for the previous call, whose replica may hang.
GATHER_TIME = 0.005


class Batch(Generic[Item, Reply]):
    """Gathers items for the next call while a call is not answered. In Python, a call for one item takes about as long
    as a call for a hundred items, and an actor of Ray adds its items one by one."""

    def __init__(self, send: Callable[[list[Item]], Awaitable[list[Reply | Exception]]], most: int) -> None:
        """:param send: returns a reply or an error for each item, in the order of the items. If `send` raises an error
        that one wrong item may have caused, each item is sent alone"""
        self._send = send
        self._most = most
        self._waiting: list[tuple[Item, asyncio.Future[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._flushing: asyncio.Handle | None = None
        #: The calls of the last flush that are not answered.
        self._last: set[asyncio.Task[None]] = set()

    def add(self, item: Item) -> asyncio.Future[Reply]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        if self._flushing is None:
            self._flushing = loop.call_later(GATHER_TIME, self._flush) if self._last else loop.call_soon(self._flush)
        self._waiting.append((item, future))
        return future

    async def settled(self) -> None:
        """Returns when all items added before this call are answered. Under load, `idle` may never return."""
        self._flush()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def idle(self) -> None:
        """Returns when all items are answered."""
        while self._waiting or self._tasks:
            await self.settled()

    def _flush(self) -> None:
        if self._flushing:
            self._flushing.cancel()
            self._flushing = None
        # An item that was cancelled while it waited is not sent, because nobody awaits its answer.
        waiting, self._waiting = [one for one in self._waiting if not one[1].cancelled()], []
        self._last = set()
        for start in range(0, len(waiting), self._most):
            task = asyncio.create_task(self._run(waiting[start : start + self._most]))
            self._tasks.add(task)
            self._last.add(task)
            task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._last.discard(task)
        if self._waiting and not self._last:
            self._flush()

    async def _run(self, batch: list[tuple[Item, asyncio.Future[Reply]]]) -> None:
        try:
            replies = await self._replies([item for item, _ in batch])
        except BaseException:
            for _, future in batch:
                future.cancel()
            raise
        for (_, future), reply in zip(batch, replies, strict=True):
            if future.done():
                continue
            if isinstance(reply, Exception):
                future.set_exception(reply)
            else:
                future.set_result(reply)

    async def _replies(self, items: list[Item]) -> list[Reply | Exception]:
        try:
            return await self._send(items)
        except Exception as error:
            is_retryable = isinstance(error, BroomwagonError) and error.retryable
            if len(items) == 1 or is_retryable or isinstance(error, EXPIRED_EPOCH):
                return [error] * len(items)
        alone = await asyncio.gather(*(self._replies([item]) for item in items))
        return [reply for replies in alone for reply in replies]
