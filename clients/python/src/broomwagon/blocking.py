"""The client without asyncio: a thread runs the event loop."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from . import errors
from ._blocking_rollout import Rollout
from ._blocking_weights import Weights
from .client import Client as AsyncClient
from .lease import Server
from .trainer import Rollout as AsyncRollout

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from ._options import ClientOptions, LeaseOptions, RolloutOptions

__all__ = ["Client", "Rollout", "Weights"]

T = TypeVar("T")
#: Seconds that tasks may take to end after the event loop has ended by a defect.
END_TIMEOUT = 5.0


class Client:
    """Use it as `with Client() as client`, with the parameters of `broomwagon.Client`, from any thread of the process.
    An agent loop needs asyncio, so this client has no workers.

    Each method raises ShuttingDown where no answer can come: after the block, in a process that was forked within it,
    while the interpreter exits, and when the event loop has ended.
    """

    _loop: asyncio.AbstractEventLoop
    _thread: threading.Thread
    _client: AsyncClient

    def __init__(self, url: str | None = None, **options: Unpack[ClientOptions]) -> None:
        """Takes the parameters of `broomwagon.Client`."""
        self._url = url
        self._options = options
        self._process: int | None = None
        #: Done when the event loop runs no more.
        self._ended: Future[None] = Future()

    def __enter__(self) -> Client:
        if self._process is not None:
            raise RuntimeError("A client without asyncio can be used once")
        self._process = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="broomwagon", daemon=True)
        self._thread.start()
        try:
            self._client = self._wait(self._connect())
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not self._is_owner():
            return
        try:
            self._wait(self._client.close())
        finally:
            self._end()

    def call(self, operation: str, body: dict[str, Any], *, deadline: float = 60.0) -> Any:
        """Calls any operation of the protocol, as `broomwagon.Client.call`."""
        self._check()
        return self._wait(self._client.call(operation, body, deadline=deadline))  # type: ignore[call-overload]

    @contextmanager
    def lease(self, request_id: str, **options: Unpack[LeaseOptions]) -> Iterator[Server]:
        """`with client.lease("request-1") as server`, with the parameters of `broomwagon.Client.lease`. An abort cannot
        interrupt a thread: LeaseStopped is raised at the end of the block. The lease never moves to another server."""
        self._check()
        lease = self._client.lease(request_id, **options)
        lease.is_movable = False
        acquired: asyncio.Future[Server] = self._loop.create_future()
        ended: asyncio.Future[None] = self._loop.create_future()

        async def hold() -> None:
            try:
                async with lease as server:
                    acquired.set_result(server)
                    await ended
            except BaseException as error:
                if acquired.done():
                    raise
                acquired.set_exception(error)

        holding = asyncio.run_coroutine_threadsafe(hold(), self._loop)
        try:
            server = self._wait(_result_of(acquired))
        except BaseException:
            holding.cancel()
            raise
        try:
            yield server
        except BaseException as error:
            lease.outcome = "failed" if isinstance(error, Exception) else "aborted"
            raise
        finally:
            if self._is_owner():
                self._check()
                self._loop.call_soon_threadsafe(_end_block, ended)
                self._result_of(holding)

    @property
    def pool(self) -> str:
        """Name of the pool.

        :raises RuntimeError: the client is not connected
        """
        self._check()
        return self._client.pool

    @property
    def worker_id(self) -> str:
        """Id under which this client holds leases.

        :raises RuntimeError: the client is not connected
        """
        self._check()
        return self._client.worker_id

    @property
    def weights(self) -> Weights:
        """The change of weights of the engines of the pool, for its trainer."""
        self._check()
        return Weights(self._client.weights, self._wait)

    def finish_session(self, session_id: str) -> None:
        """Forgets the server of a trajectory that has ended."""
        self._check()
        self._wait(self._client.finish_session(session_id))

    def settled(self) -> None:
        """Waits until all releases are answered."""
        self._check()
        self._wait(self._client.settled())

    def rollout(self, job: str, **options: Unpack[RolloutOptions]) -> Rollout:
        """The rounds of a job, with the parameters of `broomwagon.Client.rollout`."""

        async def create() -> AsyncRollout:
            return self._client.rollout(job, **options)

        return Rollout(self._wait(create()), self._wait)

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            self._check()
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
        except BaseException:
            work.close()
            raise
        return self._result_of(future)

    def _result_of(self, future: Future[T]) -> T:
        try:
            futures: tuple[Future[Any], ...] = (future, self._ended)
            wait(futures, return_when=FIRST_COMPLETED)
            if not future.done():
                raise errors.ShuttingDown("The event loop of the client has ended")
            return future.result()
        except BaseException:
            if not self._ended.done():
                future.cancel()
            raise

    def _is_owner(self) -> bool:
        """False in a forked process: connection, thread and leases belong to its parent."""
        return self._process == os.getpid()

    def _check(self) -> None:
        if self._process is None:
            raise RuntimeError("The client is not connected: use `with Client() as client`")
        if not self._is_owner():
            raise errors.ShuttingDown("The client belongs to another process; make one after the fork")
        if sys.is_finalizing():
            raise errors.ShuttingDown("The interpreter exits")
        if self._ended.done():
            raise errors.ShuttingDown("The client is closed")

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._ended.set_result(None)

    async def _connect(self) -> AsyncClient:
        client = AsyncClient(self._url, **self._options)
        await client.connect()
        return client

    def _end(self) -> None:
        # At the exit of the interpreter the thread does not run any more.
        if sys.is_finalizing():
            return
        if not self._ended.done():
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        # All tasks have ended, unless a callback had a defect.
        if tasks := asyncio.all_tasks(self._loop):
            for task in tasks:
                task.cancel()
            self._loop.run_until_complete(asyncio.wait(tasks, timeout=END_TIMEOUT))
        self._loop.close()


async def _result_of(future: asyncio.Future[T]) -> T:
    return await future


def _end_block(ended: asyncio.Future[None]) -> None:
    if not ended.done():
        ended.set_result(None)
