"""A minimal HTTP/1.1 server for an engine: JSON in, JSON or a stream of events out, connections kept open."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

#: A reply: JSON, or an iterator over events of a stream.
Reply = dict[str, Any] | list[Any] | AsyncIterator[str]
Handler = Callable[[dict[str, Any]], Awaitable[Reply]]
MAX_BODY_BYTES = 1 << 20
REASONS = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed", 500: "Internal Server Error"}


class Refused(Exception):
    """A faulty request, answered with status 400."""


class HttpServer:
    """:param routes: handlers by `METHOD /path`"""

    def __init__(self, routes: dict[str, Handler]) -> None:
        self._routes = routes

    async def serve(self, port: int) -> asyncio.Server:
        return await asyncio.start_server(self._connection, "127.0.0.1", port)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            pass
        finally:
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """One request and its reply. Returns whether the connection stays open."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        method, target, _ = head[0].split(" ")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head[1:])}
        size = int(headers.get("content-length") or 0)
        if size > MAX_BODY_BYTES:
            return False
        body = await reader.readexactly(size)
        path = target.partition("?")[0]
        handler = self._routes.get(f"{method} {path}")
        if handler is None:
            is_known = any(route.endswith(f" {path}") for route in self._routes)
            _send(writer, 405 if is_known else 404, {"detail": "no such route"})
            return True
        try:
            reply = await handler(json.loads(body) if body else {})
        except (Refused, KeyError, TypeError, ValueError) as error:
            _send(writer, 400, {"error": {"message": repr(error)}})
            return True
        if isinstance(reply, (dict, list)):
            _send(writer, 200, reply)
            return True
        return await _stream(reader, writer, reply)


def _send(writer: asyncio.StreamWriter, status: int, reply: dict[str, Any] | list[Any]) -> None:
    body = json.dumps(reply).encode()
    head = (
        f"HTTP/1.1 {status} {REASONS[status]}\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)


async def _stream(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, events: AsyncIterator[str]) -> bool:
    """Sends events until they end or the caller closes the connection."""
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")

    async def send() -> None:
        async for event in events:
            data = f"data: {event}\n\n".encode()
            writer.write(b"%x\r\n%b\r\n" % (len(data), data))
        writer.write(b"0\r\n\r\n")

    sending = asyncio.ensure_future(send())
    # A caller sends nothing more before the stream has ended.
    closing = asyncio.ensure_future(reader.read(1))
    await asyncio.wait((sending, closing), return_when=asyncio.FIRST_COMPLETED)
    is_open = not closing.done()
    for task in (sending, closing):
        task.cancel()
    results = await asyncio.gather(sending, closing, return_exceptions=True)
    failure = results[0]
    if isinstance(failure, Exception):
        raise failure
    return is_open
