"""Leases of servers: acquire, hold, release."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from itertools import count
from typing import Any
from uuid import uuid4

from . import errors
from ._batch import Batch
from ._connection import Connection, pause_before_repeat
from ._error import BroomwagonError
from ._held import Movable, WorkerEpoch
from ._session import EXPIRED_EPOCH, Session
from ._wire_error import error_of

logger = logging.getLogger("broomwagon")

#: Seconds that one call waits in the queue of the load-balancer. The acquire is repeated until its deadline.
ACQUIRE_WAIT = 20.0
#: Seconds for a reply, in addition to the wait that the call asks for.
REPLY_MARGIN = 2.0
#: Seconds until a call is repeated, since its replica may have died. Each repeat keeps its place and doubles the time.
REPEAT_AFTER = 5.0
#: Seconds between acquires in a pool without servers.
NO_SERVER_PAUSE = 0.25
#: Seconds for which a release is repeated. Afterwards a sync or the end of the worker epoch returns the lease.
RELEASE_DEADLINE = 120.0
#: Seconds for the move of a lease. The block of the lease waits for the move.
TRANSFER_DEADLINE = 5.0
ITEMS_PER_CALL = 512


@dataclass
class Ask:
    """One acquire. `item` is an AcquireItem without `waitMs`; times are on the clock of the event loop."""

    worker: WorkerEpoch
    item: dict[str, Any]
    ends_at: float
    timeout: float
    #: Time at which the last call with this acquire was sent.
    sent_at: float = 0.0


class Leases:
    """Acquires and releases leases for one worker."""

    def __init__(self, connection: Connection, session: Session) -> None:
        self._connection = connection
        self._session = session
        self._acquires: Batch[Ask, dict[str, Any]] = Batch(self._send_acquires, ITEMS_PER_CALL)
        self._releases: Batch[dict[str, Any], None] = Batch(self._send_releases, ITEMS_PER_CALL)

    async def acquire(self, request: dict[str, Any], work: Movable, timeout: float) -> tuple[str, dict[str, Any]]:
        """Asks until a server is granted, and returns the acquireId and the `LeaseGrant`. An acquire that ends in any
        other way, also by cancellation, leaves no lease.

        :param work: gets `stop` when the lease is aborted or lost, and `move` when the lease must move
        :param timeout: seconds to wait for a server; the time of a pause of the pool does not count
        :raises BroomwagonError: the last error at the timeout, or a refusal that another try cannot change
        :raises RuntimeError: the connection belongs to another event loop
        """
        self._connection.check_loop()
        ends_at = asyncio.get_running_loop().time() + timeout
        while True:
            worker = await self._session.established(max(0.0, ends_at - asyncio.get_running_loop().time()))
            acquire_id = uuid4().hex
            held = self._session.leases
            held.asking(acquire_id)
            try:
                grant = await self._ask(Ask(worker, {"acquireId": acquire_id, **request}, ends_at, timeout))
            except EXPIRED_EPOCH as error:
                # The load-balancer returns all leases of an expired epoch.
                self._session.fence(worker, error)
                if asyncio.get_running_loop().time() > ends_at:
                    raise
            except BaseException:
                # The acquire may still be granted. The release of the acquireId ends or prevents its lease.
                self._release(acquire_id, {"acquireId": acquire_id, "outcome": "aborted"})
                raise
            else:
                if self._session.is_current(worker):
                    held.granted(acquire_id, grant["leaseId"], work)
                    return acquire_id, grant

    def release(self, acquire_id: str, lease_id: str, outcome: str, tokens: int | None) -> None:
        """Releases a lease in the background, repeatedly until the load-balancer answers."""
        body: dict[str, Any] = {"leaseId": lease_id, "outcome": outcome}
        if tokens is not None:
            body["tokens"] = tokens
        self._release(acquire_id, body)

    async def transfer(self, lease_id: str, target: dict[str, Any]) -> None:
        """Moves a lease with its session. If the target refuses the lease, lease and session stay."""
        if self._session.leases.find(lease_id) is None:
            # The epoch of the lease has expired, and the load-balancer has returned the lease.
            return
        try:
            worker = await self._session.established()
            body = {**worker.body, "transferId": uuid4().hex, "leaseId": lease_id, **target}
            await self._connection.call("lb.transfer", body, deadline=TRANSFER_DEADLINE)
        except BroomwagonError as error:
            logger.info("The lease %s was not moved: %s", lease_id, error)

    async def idle(self) -> None:
        """Returns when all releases are answered."""
        await self._releases.idle()

    async def settled(self) -> None:
        """Returns when the releases that have started are answered. Later releases do not prolong the wait."""
        await self._releases.settled()

    def _release(self, acquire_id: str, body: dict[str, Any]) -> None:
        held = self._session.leases
        held.releasing(acquire_id)
        released = self._releases.add(body)

        def settle(_: asyncio.Future[None]) -> None:
            held.dropped(acquire_id)
            if not released.cancelled() and (error := released.exception()):
                logger.warning("The lease of %s was not released: %s", acquire_id, error)

        released.add_done_callback(settle)

    async def _ask(self, ask: Ask) -> dict[str, Any]:
        """Repeats an acquire. All calls have the same acquireId, so a lost reply never costs a second lease."""
        loop = asyncio.get_running_loop()
        # A call for many acquires explains few of them, and an unknown field of one acquire refuses the whole call.
        may_batch = not (ask.item.get("explain") or "avoidServers" in ask.item)
        unanswered_since: float | None = None
        for tries in count():
            try:
                if tries == 0 and may_batch:
                    return await self._acquires.add(ask)
                return await self._ask_alone(ask, tries, unanswered_since)
            except BroomwagonError as error:
                if isinstance(error, errors.ValidationFailed) and ask.item.pop("avoidServers", None):
                    # Load-balancers of the previous release do not know the field.
                    continue
                unanswered_since = ask.sent_at if isinstance(error, errors.Timeout) else None
                # A single call waits only for a part of the time, and a call for many acquires does not wait.
                waits_on = isinstance(error, (errors.WaitTimeout, errors.Timeout)) or (
                    tries == 0 and isinstance(error, (errors.ServersFull, errors.ReplyFull))
                )
                if isinstance(error, errors.PoolPaused):
                    ask.ends_at = loop.time() + ask.timeout
                if loop.time() >= ask.ends_at or not (error.retryable or waits_on):
                    raise
                pause = 0.0 if waits_on else pause_before_repeat(tries, error)
                if isinstance(error, errors.NoServerAvailable):
                    pause += NO_SERVER_PAUSE
            await asyncio.sleep(pause)
        raise AssertionError("unreachable")

    async def _ask_alone(self, ask: Ask, tries: int, unanswered_since: float | None = None) -> dict[str, Any]:
        ask.sent_at = asyncio.get_running_loop().time()
        left = ask.ends_at - ask.sent_at
        wait = max(0.0, min(ACQUIRE_WAIT, left))
        body = {**ask.item, **ask.worker.body, "waitMs": round(wait * 1000)}
        timeout = min(wait, REPEAT_AFTER * 2.0 ** min(tries, 8)) + REPLY_MARGIN
        reply: dict[str, Any] = await self._connection.request("lb.acquire", body, timeout, unanswered_since)
        return reply

    async def _send_acquires(self, asks: list[Ask]) -> list[dict[str, Any] | Exception]:
        """Sends one call for all acquires with the same epoch."""
        if len(asks) == 1:
            return [await self._ask_alone(asks[0], 0)]
        worker = asks[-1].worker
        now = asyncio.get_running_loop().time()
        for ask in asks:
            ask.sent_at = now
        body = {**worker.body, "acquires": [ask.item for ask in asks if ask.worker == worker]}
        reply = await self._connection.request("lb.acquire-many", body, REPLY_MARGIN)
        answers = iter(reply["leases"])
        return [
            _grant_of(next(answers), reply["servers"]) if ask.worker == worker else errors.Fenced("The epoch has ended")
            for ask in asks
        ]

    async def _send_releases(self, items: list[dict[str, Any]]) -> list[Exception | None]:
        if len(items) == 1:
            await self._connection.call("lb.release", items[0], deadline=RELEASE_DEADLINE)
        else:
            await self._connection.call("lb.release-many", {"releases": items}, deadline=RELEASE_DEADLINE)
        return [None] * len(items)


def _grant_of(item: dict[str, Any], servers: dict[str, Any]) -> dict[str, Any] | Exception:
    if "error" in item:
        return error_of(item["error"])
    return {**servers[item["serverId"]], **item}
