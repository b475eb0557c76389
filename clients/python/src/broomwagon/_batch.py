"""Puts what is asked within one turn of the event loop into one call."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from ._error import BroomwagonError
from ._session import EXPIRED_EPOCH

Item = TypeVar("Item")
Reply = TypeVar("Reply")


class Batch(Generic[Item, Reply]):
    """A call for one item costs about as much Python as a call for a hundred."""

    def __init__(self, send: Callable[[list[Item]], Awaitable[list[Reply | Exception]]], most: int) -> None:
        """:param send: returns a reply or an error for each item, in their order. If it raises an error that one wrong
        item may have caused, each item is sent alone"""
        self._send = send
        self._most = most
        self._waiting: list[tuple[Item, asyncio.Future[Reply]]] = []
        self._tasks: set[asyncio.Task[None]] = set()

    def add(self, item: Item) -> asyncio.Future[Reply]:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Reply] = loop.create_future()
        if not self._waiting:
            loop.call_soon(self._flush)
        self._waiting.append((item, future))
        return future

    async def settled(self) -> None:
        """Settles when the items of before are answered. Under load `idle` may wait for ever."""
        # What waits is put into tasks at the end of this turn of the event loop.
        await asyncio.sleep(0)
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def idle(self) -> None:
        """Settles when all items are answered."""
        while self._waiting or self._tasks:
            if self._tasks:
                await asyncio.wait(self._tasks)
            else:
                await asyncio.sleep(0)

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        for start in range(0, len(waiting), self._most):
            task = asyncio.create_task(self._run(waiting[start : start + self._most]))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

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
