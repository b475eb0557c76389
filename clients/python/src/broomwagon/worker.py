"""The worker's side: `@worker.run` for the function of an agent loop."""

from __future__ import annotations

import asyncio
import logging
import signal
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

from . import errors
from ._attempt_calls import AttemptCalls
from ._connection import Connection, pause_before_repeat
from ._error import BroomwagonError
from ._held import WorkerEpoch
from ._session import EXPIRED_EPOCH, Session, WorkerIdInUse
from .attempt import Attempt
from .lease import Lease

logger = logging.getLogger("broomwagon")

AgentLoop = Callable[[Attempt], Awaitable[str | None]]

CLAIM_WAIT = 20.0
#: Seconds until a claim is repeated, since its replica may have died. The repeat keeps its place in the queue.
REPEAT_AFTER = 5.0
REPLY_MARGIN = 2.0
#: The coordinator keeps the answer of a claim for this time, seconds. A later repeat could lose the granted requests.
CLAIM_DEADLINE = 55.0
ERROR_PAUSE = 0.5
#: Warning of every worker without a kind. In a pool without built-in workers it is needless, but harmless.
NO_KIND = (
    "This worker names no kind: built-in workers of the pool claim samples of the same jobs and run them without its "
    'loop. client.worker(kind="agent") and client.rollout(..., worker_kind="agent") keep them apart'
)
#: Maximum number of requests of one claim. The load of a larger claim would hold up running requests.
CLAIMS_PER_CALL = 32


class Worker:
    """Claims samples of rounds and runs each with the function of an agent loop."""

    def __init__(
        self,
        lease: Callable[..., Lease],
        connection: Connection,
        session: Session,
        *,
        concurrency: int,
        job: str | None,
        kind: str | None,
        drain: float,
    ) -> None:
        self._session = session
        self._connection = connection
        self._concurrency = concurrency
        self._job = job
        self._kind = kind
        self._drain = drain
        self._calls = AttemptCalls(lease, connection, session)
        self._loop: AgentLoop | None = None
        self._running: dict[asyncio.Task[None], Attempt] = {}
        self._stopping = asyncio.Event()

    def run(self, loop: AgentLoop) -> AgentLoop:
        """A decorator: `loop` runs one sample. It returns why the sample is finished: `stop` (also for None), or
        `length` if the token budget is used up. An exception of the loop counts as a failure of the sample."""
        self._loop = loop
        return loop

    def stop(self) -> None:
        """Stops claiming. `serve` returns when each sample has ended, or is returned with its tokens."""
        self._stopping.set()

    async def serve(self) -> None:
        """Claims and runs samples until `stop`, SIGTERM, SIGINT or a cancellation. Then samples have `drain` seconds to
        end. Unfinished samples are returned with their tokens, and another worker continues them.

        :raises WorkerIdInUse: another process registers under the same id
        :raises BroomwagonError: a claim is refused in a way that another try cannot change; NATS has closed the
            connection for good (Unavailable)
        """
        if self._loop is None:
            raise RuntimeError("Decorate the function of the agent loop with @worker.run first")
        if self._kind is None:
            logger.warning(NO_KIND)
        loop = asyncio.get_running_loop()
        handled = [one for one in (signal.SIGTERM, signal.SIGINT) if _handles(loop, one, self.stop)]
        claiming = asyncio.create_task(self._claim_always())
        stopping = asyncio.create_task(self._stopping.wait())
        closed = asyncio.create_task(self._connection.closed.wait())
        try:
            await asyncio.wait((stopping, claiming, closed), return_when=asyncio.FIRST_COMPLETED)
            if claiming.done():
                claiming.result()
            if closed.done():
                raise self._connection.closed_error()
        finally:
            stopping.cancel()
            closed.cancel()
            try:
                await asyncio.shield(self._end(claiming))
            finally:
                # The handlers stay until all samples are returned, because a second signal would end the process.
                for one in handled:
                    loop.remove_signal_handler(one)

    async def _end(self, claiming: asyncio.Task[None]) -> None:
        # A waiting claim may still get requests. The next sync, or the end of the client, returns them.
        claiming.cancel()
        await asyncio.gather(claiming, return_exceptions=True)
        if self._running:
            await asyncio.wait(self._running, timeout=self._drain)
        for attempt in list(self._running.values()):
            attempt.stop("shutdown")
        if self._running:
            await asyncio.wait(self._running)

    async def _claim_always(self) -> None:
        while True:
            free = self._concurrency - len(self._running)
            if free <= 0:
                await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
                continue
            try:
                worker = await self._session.established()
                try:
                    await self._claim(worker, min(free, CLAIMS_PER_CALL))
                except EXPIRED_EPOCH as error:
                    self._session.fence(worker, error)
            except Exception as error:
                # After an expired epoch the next claim registers again.
                is_expired = isinstance(error, EXPIRED_EPOCH) and not isinstance(error, WorkerIdInUse)
                if isinstance(error, BroomwagonError) and not (error.retryable or is_expired):
                    raise
                logger.warning("The claim failed: %s", error, exc_info=not isinstance(error, BroomwagonError))
                await asyncio.sleep(ERROR_PAUSE)

    async def _claim(self, worker: WorkerEpoch, most: int) -> None:
        body = {"claimId": uuid4().hex, "max": most, **worker.body}
        if self._job is not None:
            body["job"] = self._job
        if self._kind is not None:
            body["workerKind"] = self._kind
        asking = asyncio.create_task(self._ask(body))
        ended = asyncio.create_task(self._session.epoch_ended.wait())
        try:
            await asyncio.wait((asking, ended), return_when=asyncio.FIRST_COMPLETED)
            # If the epoch expired while the claim waited, the granted requests are returned with the epoch.
            if not asking.done() or not self._session.is_current(worker):
                return
            for claim in asking.result():
                self._begin(claim, worker)
        finally:
            asking.cancel()
            ended.cancel()

    async def _ask(self, body: dict[str, Any]) -> list[dict[str, Any]]:
        """Repeats one claim until it is answered. A repeat waits only for the rest of the time."""
        loop = asyncio.get_running_loop()
        began = loop.time()
        tries = 0
        unanswered_since: float | None = None
        while True:
            sent_at = loop.time()
            wait = max(0.0, began + CLAIM_WAIT - sent_at)
            timeout = min(wait, REPEAT_AFTER) + REPLY_MARGIN
            sent = {**body, "waitMs": round(wait * 1000)}
            try:
                reply = await self._connection.request("request.claim", sent, timeout, unanswered_since)
                claims: list[dict[str, Any]] = reply["claims"]
                return claims
            except BroomwagonError as error:
                unanswered_since = sent_at if isinstance(error, errors.Timeout) else None
                if not error.retryable or loop.time() > began + CLAIM_DEADLINE:
                    raise
                if not isinstance(error, errors.Timeout):
                    await asyncio.sleep(pause_before_repeat(tries, error))
                # No request can run in a paused pool, so the claim ends as after an empty answer.
                if isinstance(error, errors.PoolPaused):
                    return []
            tries += 1

    def _begin(self, claim: dict[str, Any], worker: WorkerEpoch) -> None:
        attempt = Attempt(self._calls, claim, worker)
        if attempt.key in self._session.attempts:
            return
        self._session.attempts.add(attempt.key, attempt)
        assert self._loop is not None
        task = asyncio.create_task(attempt.perform(self._loop))
        self._running[task] = attempt

        def end(_: asyncio.Task[None]) -> None:
            self._running.pop(task, None)
            self._session.attempts.remove(attempt.key)
            if not task.cancelled() and (error := task.exception()):
                logger.error("An attempt ended because of a defect", exc_info=error)

        task.add_done_callback(end)


def _handles(loop: asyncio.AbstractEventLoop, one: signal.Signals, handler: Callable[[], None]) -> bool:
    """Installs a signal handler. False outside of the main thread, and on systems without signals."""
    try:
        loop.add_signal_handler(one, handler)
    except (NotImplementedError, RuntimeError, ValueError):
        return False
    return True
