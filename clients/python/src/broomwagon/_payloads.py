"""Prompts and tokens in the payload store."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

from ._arguments import encoded
from ._batch import Batch
from ._connection import Connection
from ._error import BroomwagonError
from ._wire_error import error_of

CHUNK_BYTES = 262_144
#: Payloads that one process reads at the same time, and payloads of one call.
MAX_READS = 64
READS_PER_CALL = 16
#: Seconds for a call for several payloads, and seconds without such calls after one has not given all of them.
MANY_TIMEOUT = 5.0
SINGLE_TIME = 10.0


class Payloads:
    """Reads and writes payloads in chunks."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._reads = asyncio.Semaphore(MAX_READS)
        self._calls = asyncio.Semaphore(MAX_READS // READS_PER_CALL)
        self._firsts: Batch[str, dict[str, Any]] = Batch(self._read_firsts, READS_PER_CALL)
        self._single_until = 0.0

    async def get(self, ref: str) -> Any:
        """The JSON value of a payload.

        :raises PayloadNotFound: the store does not have the payload
        """
        first = await self._firsts.add(ref)
        chunks = [first["data"]]
        for index in range(1, first["chunkCount"]):
            chunks.append((await self._read(ref, index))["data"])
        return json.loads(b"".join(base64.b64decode(chunk) for chunk in chunks))

    async def _read(self, ref: str, index: int) -> dict[str, Any]:
        async with self._reads:
            reply: dict[str, Any] = await self._connection.call("payload.get", {"ref": ref, "chunkIndex": index})
        return reply

    async def _read_firsts(self, refs: list[str]) -> list[dict[str, Any] | Exception]:
        """The first chunks of payloads: by one call if there are several, or each alone."""
        loop = asyncio.get_running_loop()
        if len(refs) == 1 or loop.time() < self._single_until:
            return await asyncio.gather(*(self._read_alone(ref) for ref in refs))
        found = await self._read_many(refs)
        if None in found:
            self._single_until = loop.time() + SINGLE_TIME
        unread = [ref for ref, one in zip(refs, found, strict=True) if one is None]
        alone = iter(await asyncio.gather(*(self._read_alone(ref) for ref in unread)))
        return [next(alone) if one is None else one for one in found]

    async def _read_alone(self, ref: str) -> dict[str, Any] | Exception:
        try:
            return await self._read(ref, 0)
        except BroomwagonError as error:
            return error

    async def _read_many(self, refs: list[str]) -> list[dict[str, Any] | Exception | None]:
        """None for each payload that is to be read alone: large payloads have no room beside each other, and a service
        of the previous release does not know the call."""
        async with self._calls:
            try:
                reply = await self._connection.request("payload.get-many", {"refs": refs}, MANY_TIMEOUT)
            except BroomwagonError:
                return [None] * len(refs)
        found: list[dict[str, Any] | Exception | None] = []
        for one in reply["payloads"]:
            error = error_of(one["error"]) if "error" in one else None
            found.append(one if error is None else None if error.retryable else error)
        return found

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
