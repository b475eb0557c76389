"""One link to NATS: a request is sent once, and its reply or error comes back."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import nats.errors
from nats.aio.msg import Msg

from . import errors
from ._arguments import encoded, without_secrets
from ._error import BroomwagonError
from ._inbox import REPLICA_HEADER, Inbox
from ._nats import DialedNats
from ._pools import FIND_POOL, FIND_POOL_TIMEOUT, POOL_NOT_SERVED, pool_not_found
from ._wire_error import error_of

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("broomwagon")

#: Seconds from a loss to the first explanation in the log, and from one explanation to the next.
FIRST_EXPLANATION, EXPLAIN_EVERY = 3.0, 60.0
TIMEOUT_HEADER = "Broomwagon-Timeout-Ms"
#: When a request was sent, milliseconds since 1970: a service does not process it long after its timeout.
SENT_AT_HEADER = "Broomwagon-Sent-At-Ms"
#: Time at which a service has refused a request as too late by its SENT_AT_HEADER, milliseconds since 1970.
READ_AT_HEADER = "Broomwagon-Read-At-Ms"
#: Refusal of a message by NATS; nats-py returns the text in lower case.
_REFUSED = re.compile('permissions violation(?: for publish to "(.+?)")?', re.IGNORECASE)


class Link:
    """One connection to NATS, for one pool."""

    def __init__(self, nats: DialedNats, pool: str, address: str) -> None:
        self._nats = nats
        self._inbox = Inbox(nats)
        self._loop = asyncio.get_running_loop()
        #: The last replica that has replied, and the time of the reply, by the first part of an operation's name.
        self._replicas: dict[str, tuple[str, float]] = {}
        #: Milliseconds by which the clock of the services is ahead of the clock of this machine.
        self._clock_offset = 0.0
        self.pool = pool
        #: Servers of NATS, without names and passwords of users.
        self.address = address
        self._is_pool_warned = False
        #: Time, on the clock of the event loop, from which on a failed dial is logged.
        self._explain_at = self._loop.time() + FIRST_EXPLANATION
        #: Set when the connection is closed for good, for example by `close`.
        self.closed = asyncio.Event()

    @classmethod
    async def open(
        cls,
        url: str,
        pool: str,
        *,
        user: str | None,
        password: str | None,
        files: dict[str, Any],
        inbox_prefix: str | None,
        timeout: float,
        worker_ttl: float,
    ) -> Self:
        """Connects within `timeout` seconds. A connection that is lost later is restored, without a limit of time. A
        connection that NATS ends with an error, for example after an unreadable message, stays closed.

        :param files: parameters of nats-py that are read from files for each connection
        :param worker_ttl: seconds of silence after which leases expire; a silent connection is cut earlier
        :raises Unavailable: no NATS server answers
        """
        client = DialedNats(worker_ttl)
        options: dict[str, Any] = {**client.dial_options, **files}
        if user:
            options.update(user=user, password=password)
        if inbox_prefix:
            options["inbox_prefix"] = inbox_prefix.encode()
        address = without_secrets(url)
        connection = cls(client, pool, address)

        async def note_lost() -> None:
            connection._inbox.is_linked.clear()
            client.begin_dials()
            connection._explain_at = connection._loop.time() + FIRST_EXPLANATION
            if not client.is_closed:
                logger.warning(
                    "The connection to NATS at %s is lost; calls are repeated until it is made again", address
                )

        connecting = client.connect(
            url.split(","),
            name="broomwagon-python",
            error_cb=connection._note_error,
            closed_cb=connection._note_closed,
            disconnected_cb=note_lost,
            reconnected_cb=connection._note_restored,
            **options,
        )
        try:
            await asyncio.wait_for(connecting, timeout)
            await connection._inbox.open()
            return connection
        except BaseException as error:
            # After a failure, nats-py leaves its socket open.
            await client.close_in_time()
            if not isinstance(error, (asyncio.TimeoutError, OSError, nats.errors.Error)):
                raise
            # The timeout does not say why the tries have failed, but the last error does.
            reason = client.last_error or error
            raise errors.Unavailable(f"Cannot connect to NATS at {address}: {reason!r}", retryable=True) from error

    async def request(
        self, operation: str, body: dict[str, Any], timeout: float, unanswered_since: float | None = None
    ) -> Any:
        """Sends a request once and returns the reply.

        :param unanswered_since: time, on the clock of the event loop, at which the same body was sent and not answered.
            The replica that got the body may hang, so the request goes to a replica that has replied since
        :raises BroomwagonError: the error of the service, Timeout, Unavailable or PayloadTooLarge
        :raises RuntimeError: the connection belongs to another event loop
        """
        self.check_loop()
        data = encoded(body)
        loop = asyncio.get_running_loop()
        sent_at, sent_at_ms = loop.time(), time.time() * 1000
        message = await self._send_to_one(operation, data, timeout, sent_at_ms, unanswered_since)
        left = timeout - (loop.time() - sent_at)
        if left > 0 and message.headers and (read_at_ms := message.headers.get(READ_AT_HEADER)):
            # The replica took the request for late, although there is time left: the clocks of the machines differ.
            self._clock_offset = float(read_at_ms) - (sent_at_ms + (loop.time() - sent_at) * 500)
            message = await self._send_to_one(operation, data, left, sent_at_ms, sent_at)
        reply = json.loads(message.data)
        failure = reply.get("error")
        # In results of a batch, `error` may be a field of another kind.
        if isinstance(failure, dict) and "code" in failure:
            raise error_of(failure)
        return reply

    async def _send_to_one(
        self, operation: str, data: bytes, timeout: float, sent_at_ms: float, unanswered_since: float | None
    ) -> Msg:
        """Sends a request to a replica that has replied since `unanswered_since`, otherwise to any replica."""
        headers = {
            TIMEOUT_HEADER: str(round(timeout * 1000)),
            SENT_AT_HEADER: str(round(sent_at_ms + self._clock_offset)),
        }
        subject = f"rollout.v1.{self.pool}.{operation}"
        message = None
        if own_subject := self._own_subject(operation, unanswered_since):
            message = await self._send(own_subject, data, timeout, headers)
        if message is None:
            try:
                message = await self._send(subject, data, timeout, headers)
            except errors.Timeout:
                # If a stream has the subject, NATS does not report a missing service. A first call may only be slow.
                if self._inbox.streams and unanswered_since is not None:
                    await self._check_pool()
                raise
        if message is None:
            await self._check_pool()
            if not self._replicas and not self._is_pool_warned:
                self._is_pool_warned = True
                logger.warning(POOL_NOT_SERVED, self.pool, self.address)
            raise errors.Unavailable(f"No service handles {subject}", retryable=True)
        if message.headers and (replica := message.headers.get(REPLICA_HEADER)):
            self._replicas[_group_of(operation)] = (replica, asyncio.get_running_loop().time())
        return message

    async def _check_pool(self) -> None:
        """Checks whether the pool exists, as long as no service of the pool has answered: its name may be wrong.

        :raises PoolNotFound: services of other pools answer, and do not know this pool
        """
        if self._replicas:
            return
        found = await self._find_pool()
        if found is not None and not found["known"]:
            raise pool_not_found(self.pool, self.address, found["pools"])

    async def _find_pool(self) -> dict[str, Any] | None:
        """The reply of any load-balancer to `pool.find`. None without a reply, as from load-balancers of the previous
        release, which do not know the operation."""
        headers = {TIMEOUT_HEADER: str(round(FIND_POOL_TIMEOUT * 1000))}
        try:
            message = await self._send(FIND_POOL, encoded({"name": self.pool}), FIND_POOL_TIMEOUT, headers)
        except BroomwagonError as error:
            logger.debug("The names of the pools were not read: %s", error)
            return None
        found = {} if message is None else json.loads(message.data)
        return found if "known" in found else None

    def _own_subject(self, operation: str, unanswered_since: float | None) -> str | None:
        """The subject of a replica that has replied since `unanswered_since`; None without such a replica."""
        if unanswered_since is None:
            return None
        replica, answered_at = self._replicas.get(_group_of(operation), ("", 0.0))
        return f"rollout.v1.{self.pool}.replica.{replica}.{operation}" if answered_at > unanswered_since else None

    async def _send(self, subject: str, data: bytes, timeout: float, headers: dict[str, str]) -> Msg | None:
        """Sends a message and returns the reply; None if no service has the subject."""
        size = len(data) + len("NATS/1.0\r\n\r\n") + sum(len(f"{name}: {text}\r\n") for name, text in headers.items())
        if size > self._nats.max_payload:
            # NATS would end the connection, since nats-py compares only the body with the limit, without the headers.
            limit = self._nats.max_payload
            raise errors.PayloadTooLarge(
                f"The body for {subject} has {size} bytes with its headers, and NATS takes {limit}",
                field="body",
                details={"bytes": size, "limit": limit},
            )
        try:
            message = await self._inbox.request(subject, data, timeout, headers)
        except asyncio.TimeoutError:
            raise errors.Timeout(f"No reply from {subject} within {timeout:.1f} s", retryable=True) from None
        except nats.errors.ConnectionClosedError as error:
            raise self.closed_error() from error
        except nats.errors.Error as error:
            if _REFUSED.search(str(error)):
                advice = f"NATS does not let this user publish to {subject}: add it to the permissions of the user"
                raise errors.Forbidden(advice) from error
            raise errors.Unavailable(f"Cannot send to {subject} at {self.address}: {error}", retryable=True) from error
        is_unserved = not message.data and message.headers and message.headers.get("Status") == "503"
        return None if is_unserved else message

    async def listen(self, subject: str, handler: Callable[[dict[str, Any]], Awaitable[None] | None]) -> None:
        """Calls `handler` with each message on `rollout.v1.<pool>.<subject>`. Requests that are sent afterwards reach
        NATS after the subscription.

        :raises Unavailable: the connection is closed
        :raises RuntimeError: the connection belongs to another event loop
        """
        self.check_loop()

        async def receive(message: Msg) -> None:
            try:
                result = handler(json.loads(message.data))
                if result is not None:
                    await result
            except Exception:
                logger.exception("A message on %s was not handled", message.subject)

        try:
            # nats-py may lose a cancellation while it waits for the socket.
            await asyncio.shield(self._nats.subscribe(f"rollout.v1.{self.pool}.{subject}", cb=receive))
        except nats.errors.Error as error:
            raise errors.Unavailable(f"Cannot subscribe to {subject}: {error}") from error

    async def close(self) -> None:
        await self._nats.close_in_time()

    def closed_error(self) -> errors.Unavailable:
        """The error of a call on a closed connection."""
        reason = f": {error}" if (error := self._nats.last_error) else ""
        return errors.Unavailable(f"The connection to NATS at {self.address} is closed{reason}; make another client")

    async def _note_restored(self) -> None:
        self._inbox.is_linked.set()
        logger.info("The connection to NATS at %s is made again", self.address)

    async def _note_closed(self) -> None:
        self.closed.set()
        self._inbox.is_linked.set()
        self._inbox.fail(nats.errors.ConnectionClosedError())

    async def _note_error(self, error: Exception) -> None:
        refused = _REFUSED.search(str(error))
        # A failed dial is an error too, and the log explains it only from time to time.
        if not (self._nats.is_connected and self._inbox.is_linked.is_set()):
            self._nats.note_failed_dial()
            if self._loop.time() >= self._explain_at:
                self._explain_at = self._loop.time() + EXPLAIN_EVERY
                advice = "check NATS_URL, NATS_USER and NATS_PASSWORD, or NATS_CREDS"
                logger.warning("Cannot connect to NATS at %s: %r; %s", self.address, error, advice)
        logger.log(logging.WARNING if refused else logging.DEBUG, "NATS: %r", error)
        if refused and refused[1] and isinstance(error, nats.errors.Error):
            # A request to a forbidden subject gets no other answer.
            self._inbox.fail(error, refused[1].lower())

    @property
    def has_closed_loop(self) -> bool:
        return self._loop.is_closed()

    def check_loop(self) -> None:
        """Checks the event loop, because no reply arrives in another event loop, for example in a second `asyncio.run`
        or after a fork.

        :raises RuntimeError: the connection belongs to another event loop
        """
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError("The client belongs to another event loop; make one in this loop")


def _group_of(operation: str) -> str:
    """First part of an operation's name. One service has all operations with the same first part, except some of
    `pool`. If a replica does not serve an operation, the request goes to the queue group."""
    return operation.partition(".")[0]
