from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest

from broomwagon import errors
from broomwagon._payloads import Payloads

FULL = {"code": "REPLY_FULL", "message": "no room", "retryable": True}
MISSING = {"code": "PAYLOAD_NOT_FOUND", "message": "missing", "retryable": False}


class Store:
    """Payloads by reference, in chunks of 4 bytes."""

    def __init__(self, room: int = 100, knows_many: bool = True) -> None:
        self.calls: list[tuple[str, int]] = []
        self.room = room
        self.knows_many = knows_many

    def _chunk(self, ref: str, index: int = 0) -> dict[str, Any]:
        data = json.dumps(ref).encode()
        chunks = [data[at : at + 4] for at in range(0, len(data), 4)]
        return {"data": base64.b64encode(chunks[index]).decode(), "chunkCount": len(chunks)}

    async def call(self, operation: str, body: dict[str, Any], deadline: float = 60.0) -> Any:
        self.calls.append((operation, body.get("chunkIndex", 0)))
        if body["ref"] == "lost":
            raise errors.PayloadNotFound("missing")
        return self._chunk(body["ref"], body.get("chunkIndex", 0))

    async def request(self, operation: str, body: dict[str, Any], timeout: float) -> Any:
        self.calls.append((operation, len(body["refs"])))
        if not self.knows_many:
            raise errors.Unavailable("nobody", retryable=True)
        found = [{"error": MISSING} if ref == "lost" else self._chunk(ref) for ref in body["refs"]]
        return {"payloads": [one if at < self.room else {"error": FULL} for at, one in enumerate(found)]}


async def read(store: Store, refs: list[str]) -> list[Any]:
    payloads = Payloads(store)  # type: ignore[arg-type]
    return await asyncio.gather(*(payloads.get(ref) for ref in refs), return_exceptions=True)


async def test_reads_payloads_of_one_turn_together_with_all_their_chunks() -> None:
    store = Store()
    assert await read(store, ["a", "bb", "longer"]) == ["a", "bb", "longer"]
    assert store.calls == [("payload.get-many", 3), ("payload.get", 1)]


async def test_reports_the_payload_that_is_missing_alone() -> None:
    store = Store()
    first, lost = await read(store, ["a", "lost"])
    assert first == "a"
    assert isinstance(lost, errors.PayloadNotFound)
    assert store.calls == [("payload.get-many", 2)]


@pytest.mark.parametrize("store", [Store(room=1), Store(knows_many=False)])
async def test_reads_alone_what_has_no_room_and_what_an_older_service_does_not_give(store: Store) -> None:
    payloads = Payloads(store)  # type: ignore[arg-type]
    assert await payloads.get_all(["a", "b"]) == ["a", "b"]
    before = len(store.calls)
    assert await payloads.get_all(["a", "b"]) == ["a", "b"]
    assert store.calls[before:] == [("payload.get", 0), ("payload.get", 0)]


async def test_reads_others_after_a_reader_was_cancelled() -> None:
    payloads = Payloads(Store())  # type: ignore[arg-type]
    cancelled, other = [asyncio.ensure_future(payloads.get(ref)) for ref in ("a", "b")]
    await asyncio.sleep(0)
    cancelled.cancel()
    assert await other == "b"
