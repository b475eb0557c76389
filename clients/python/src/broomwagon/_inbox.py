"""Requests, with one subscription for all replies."""

from __future__ import annotations

import asyncio
import json
import logging
from collections import deque
from itertools import count

import nats.errors
from nats.aio.client import Client as Nats
from nats.aio.msg import Msg

logger = logging.getLogger("broomwagon")

#: Header of replies. Services of an earlier version send no header in the reply to a parked call.
REPLICA_HEADER = "Broomwagon-Replica"
#: Maximum bytes of an acknowledgement of JetStream.
MAX_ACKNOWLEDGEMENT_BYTES = 1024


class Inbox:
    """Sends the requests of one connection, in a task of its own. Callers await neither `request` nor `publish` of
    nats-py, because both may lose a cancellation, and then an abort has no effect. `request` loses a cancellation that
    comes with the reply (Python 3.11 and older), `publish` a cancellation while it waits for the socket."""

    def __init__(self, nats: Nats) -> None:
        self._nats = nats
        self._inbox = ""
        #: Cleared while the connection is lost.
        self.is_linked = asyncio.Event()
        self.is_linked.set()
        #: Subject and reply of each request, by its token.
        self._pending: dict[str, tuple[str, asyncio.Future[Msg]]] = {}
        self._unsent: deque[tuple[str, str, bytes, dict[str, str]]] = deque()
        self._sending: asyncio.Task[None] | None = None
        self._tokens = count()
        #: Streams that acknowledge requests. Each stream is logged once.
        self.streams: set[str] = set()

    async def open(self) -> None:
        self._inbox = self._nats.new_inbox()
        await self._nats.subscribe(f"{self._inbox}.*", cb=self._receive)

    async def request(self, subject: str, data: bytes, timeout: float, headers: dict[str, str]) -> Msg:
        """Sends a request once.

        :raises TimeoutError: no reply within `timeout` seconds
        :raises nats.errors.Error: the request cannot be sent
        """
        loop = asyncio.get_running_loop()
        token = str(next(self._tokens))
        future: asyncio.Future[Msg] = loop.create_future()
        self._pending[token] = subject, future
        timer = loop.call_later(timeout, _time_out, future)
        self._unsent.append((token, subject, data, headers))
        if self._sending is None:
            self._sending = loop.create_task(self._send())
        try:
            return await future
        finally:
            timer.cancel()
            del self._pending[token]

    def fail(self, error: nats.errors.Error, subject: str | None = None) -> None:
        """Ends waiting requests with an error.

        :param subject: only requests of this subject, in lower case; None: all requests
        """
        for asked, future in self._pending.values():
            if subject in (None, asked.lower()) and not future.done():
                future.set_exception(error)

    async def _send(self) -> None:
        try:
            while self._unsent:
                # Without a link, nats-py would keep the request and send it after the caller has given up.
                await self.is_linked.wait()
                token, subject, data, headers = self._unsent.popleft()
                _, future = self._pending.get(token, (None, None))
                # The caller was cancelled, or has waited too long for the socket.
                if future is None or future.done():
                    continue
                try:
                    await self._nats.publish(subject, data, reply=f"{self._inbox}.{token}", headers=headers)
                except Exception as error:
                    if not future.done():
                        future.set_exception(error)
        finally:
            self._sending = None

    async def _receive(self, message: Msg) -> None:
        _, future = self._pending.get(message.subject.rpartition(".")[2], (None, None))
        # The reply is too late, or it is a second reply.
        if future is None or future.done():
            return
        stream = _stream_that_acknowledges(message)
        if stream is None:
            future.set_result(message)
        elif stream not in self.streams:
            self.streams.add(stream)
            logger.error(
                "The JetStream stream %s stores the requests of Broomwagon and acknowledges each; delete it, or take "
                "the subjects of Broomwagon out of it",
                stream,
            )


def _stream_that_acknowledges(message: Msg) -> str | None:
    """Name of the stream, if a message is the acknowledgement of JetStream and not the reply of a service."""
    if (message.headers and REPLICA_HEADER in message.headers) or len(message.data) > MAX_ACKNOWLEDGEMENT_BYTES:
        return None
    try:
        body = json.loads(message.data)
    except ValueError:
        return None
    is_acknowledgement = isinstance(body, dict) and isinstance(body.get("stream"), str) and "seq" in body
    return body["stream"] if is_acknowledgement else None


def _time_out(future: asyncio.Future[Msg]) -> None:
    if not future.done():
        future.set_exception(asyncio.TimeoutError())
