"""The connection of nats-py: when it is cut, and how it is dialed again."""

from __future__ import annotations

import asyncio
import logging
import random
import ssl
from typing import Any

from nats.aio.client import Client
from nats.errors import Error

from ._arguments import InvalidArgument
from ._tls import build_context

logger = logging.getLogger("broomwagon")

#: Bounds of the time without an answer to pings after which a connection is cut, seconds.
MIN_SILENCE, MAX_SILENCE = 2.0, 5.0
#: Pings without an answer after which a connection is dead.
MAX_UNANSWERED_PINGS = 2
#: Maximum seconds for each step of the first dial after a loss. Each further dial doubles the time.
FIRST_DIAL_TIMEOUT, MAX_DIAL_TIMEOUT = 2.0, 20.0
#: Seconds between the first two dials of a server. Each further dial of all servers doubles the time.
FIRST_PAUSE, MAX_PAUSE = 0.2, 10.0
#: Seconds for the last bytes to a NATS server, which may not read any more.
CLOSE_DEADLINE = 2.0


class DialedNats(Client):
    """Dials a lost connection without end. Timeouts and pauses grow, because many clients with short timeouts would
    keep a busy server busy with handshakes and never connect."""

    def __init__(self, worker_ttl: float) -> None:
        """
        :param worker_ttl: seconds of silence after which leases expire. A third is for the cut of a silent connection,
            a third for a dial
        """
        super().__init__()
        silence = min(MAX_SILENCE, max(MIN_SILENCE, worker_ttl / 3))
        self._max_pause = min(MAX_PAUSE, max(FIRST_PAUSE, worker_ttl / 3))
        self._failed_dials = 0
        #: Parameters of `connect`.
        self.dial_options: dict[str, Any] = {
            "max_reconnect_attempts": -1,
            "ping_interval": silence / (MAX_UNANSWERED_PINGS + 1),
            "max_outstanding_pings": MAX_UNANSWERED_PINGS,
            **self._pace(),
        }

    @property
    def ssl_context(self) -> ssl.SSLContext:
        """TLS context, made from files for each connection, because certificates are renewed while a process runs."""
        if "tls" in self.options:
            try:
                self.options["tls"] = build_context()
            except InvalidArgument as error:
                logger.warning("%s; the certificates of the connection before are used", error)
        return super().ssl_context

    def begin_dials(self) -> None:
        """Begins with short timeouts and pauses, after a loss."""
        self._failed_dials = 0
        self.options.update(self._pace())

    def note_failed_dial(self) -> None:
        self._failed_dials += 1
        self.options.update(self._pace())
        # nats-py does not close the socket of a failed dial.
        self._abort()

    async def close_in_time(self) -> None:
        """Closes the connection, within CLOSE_DEADLINE seconds."""
        if self._transport is None:
            return
        try:
            await asyncio.wait_for(self.close(), CLOSE_DEADLINE)
        except asyncio.TimeoutError:
            self._abort()

    def _pace(self) -> dict[str, float]:
        """Options that nats-py reads at the next dial."""
        doublings = min(16, self._failed_dials)
        rounds = min(16, self._failed_dials // max(1, len(self._server_pool)))
        pause = min(self._max_pause, FIRST_PAUSE * 2.0**rounds)
        return {
            "connect_timeout": min(MAX_DIAL_TIMEOUT, FIRST_DIAL_TIMEOUT * 2.0**doublings),
            "reconnect_time_wait": pause * random.uniform(0.5, 1.0),
        }

    async def _process_err(self, err_msg: str) -> None:
        if self.is_connected and "authentication" in err_msg.lower():
            # The credentials have expired. nats-py would close for good, but the file may be renewed.
            await self._process_op_err(Error(f"nats: {err_msg}"))
        else:
            await super()._process_err(err_msg)

    async def _process_op_err(self, e: Exception) -> None:
        if self.is_connected:
            # Otherwise nats-py would wait until a dead connection has taken the last bytes, or has ended TLS.
            self._abort()
        await super()._process_op_err(e)

    def _abort(self) -> None:
        writer: asyncio.StreamWriter | None = getattr(self._transport, "_io_writer", None)
        if writer is not None:
            writer.transport.abort()
