"""A relay between a client and NATS, whose faults a test sets."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from broomwagon.client import DEFAULT_URL


class Relay:
    """Passes bytes between each connection and NATS."""

    def __init__(self) -> None:
        self._nats = urlsplit(os.environ.get("NATS_URL", DEFAULT_URL))
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""
        #: Connections so far; connections up to this number lose their bytes, or are not read any more.
        self.accepted = self.dropped = self.stalled = 0
        #: Seconds until a new connection gets its first byte.
        self.greeting_delay = 0.0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[Relay]:
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        host = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
        self.url = self._nats._replace(netloc=self._nats.netloc.rpartition("@")[0] + host).geturl()
        try:
            yield self
        finally:
            server.close()
            self.cut()

    def drop(self) -> None:
        """From now on the bytes of all present connections are lost, in both directions."""
        self.dropped = self.accepted

    def stall(self) -> None:
        """From now on no bytes of the present connections are taken: they stay in the buffers of their senders."""
        self.stalled = self.accepted

    def cut(self) -> None:
        """Ends all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        number = self.accepted
        self._writers.append(writer)
        await asyncio.sleep(self.greeting_delay)
        nats_reader, nats_writer = await asyncio.open_connection(self._nats.hostname, self._nats.port)
        self._writers.append(nats_writer)
        await asyncio.gather(self._pass(number, reader, nats_writer), self._pass(number, nats_reader, writer))

    async def _pass(self, number: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while number > self.stalled and (data := await reader.read(65_536)):
                if number > self.dropped:
                    writer.write(data)
                    await writer.drain()
        if number > self.stalled:
            writer.close()
