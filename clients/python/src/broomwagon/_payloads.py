"""Prompts and tokens in the payload store."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from ._arguments import encoded
from ._connection import Connection

CHUNK_BYTES = 262_144
#: Payloads that one process reads at the same time.
MAX_READS = 64


class Payloads:
    """Reads and writes payloads in chunks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reads = asyncio.Semaphore(MAX_READS)

    async def get(self, ref: str) -> Any:
        """The JSON value of a payload.

        :raises PayloadNotFound: the store does not have the payload
        """
        async with self._reads:
            reply = await self._connection.call("payload.get", {"ref": ref})
            chunks = [reply["data"]]
            for index in range(1, reply["chunkCount"]):
                reply = await self._connection.call("payload.get", {"ref": ref, "chunkIndex": index})
                chunks.append(reply["data"])
        return json.loads(b"".join(base64.b64decode(chunk) for chunk in chunks))

    async def get_all(self, refs: list[str]) -> list[Any]:
        """Many payloads at once, in the order of `refs`."""
        return await asyncio.gather(*(self.get(ref) for ref in refs))

    async def put(self, owner: dict[str, Any], name: str, value: Any, deadline: float = 60.0) -> str:
        """Stores a JSON value and returns its reference.

        :param owner: `job` with `groupId` (a prompt) or `requestId` (tokens)
        """
        data = encoded(value)
        count = max(1, -(-len(data) // CHUNK_BYTES))
        ref = ""
        for index in range(count):
            chunk = base64.b64encode(data[index * CHUNK_BYTES : (index + 1) * CHUNK_BYTES]).decode()
            body = {**owner, "name": name, "chunkIndex": index, "chunkCount": count, "data": chunk}
            ref = (await self._connection.call("payload.put", body, deadline=deadline)).get("ref", ref)
        return ref

    async def segments_of(self, holder: dict[str, Any]) -> list[dict[str, Any]]:
        """The segments of a claim or a sample. If they did not fit the message, reads them with further calls."""
        if not holder.get("segmentsFollow"):
            return list(holder["segments"])
        segments: list[dict[str, Any]] = []
        cursor: int | None = 0
        while cursor is not None:
            body = {"requestId": holder["requestId"], "cursor": cursor}
            page = await self._connection.call("request.segments", body)
            segments.extend(page["segments"])
            cursor = page.get("cursor")
        return segments
