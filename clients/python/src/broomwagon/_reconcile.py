"""Compares the leases and attempts of a worker in Redis with the leases and attempts that the worker holds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from . import errors
from ._connection import Connection
from ._error import BroomwagonError
from ._held import HeldAttempts, HeldLeases, WorkerEpoch

CALL_DEADLINE = 5.0


async def reconcile(
    connection: Connection,
    worker: WorkerEpoch,
    leases: HeldLeases,
    attempts: HeldAttempts,
    old_before_ms: float,
) -> None:
    """Returns leases and attempts that only Redis has, if they are too old for their reply to be still on the way.
    Stops leases and attempts that only this worker has.

    :raises BroomwagonError: a call failed; the next sync begins again
    """
    # The copy is made before Redis is read, so that later grants are no mismatch.
    held = list(leases)
    found = set()
    async for item in _pages(connection, worker, "leases"):
        found.add(item["id"])
        if item["sinceMs"] < old_before_ms and not leases.is_expected(item["id"]):
            body = {"leaseId": item["id"], "outcome": "unclaimed"}
            await connection.call("lb.release", body, deadline=CALL_DEADLINE)
    for lease in held:
        if lease.lease_id not in found and leases.find(lease.lease_id) is lease and not lease.releasing:
            lease.work.stop("lease-lost")

    keys = attempts.keys()
    found_keys = set()
    async for item in _pages(connection, worker, "attempts"):
        key = (item["id"], item.get("attempt", ""))
        found_keys.add(key)
        if item["sinceMs"] < old_before_ms and key not in attempts:
            await _return_attempt(connection, worker, key)
    for key in keys:
        if key not in found_keys:
            attempts.stop(key, "expired")


async def _return_attempt(connection: Connection, worker: WorkerEpoch, key: tuple[str, str]) -> None:
    identity = {"requestId": key[0], "attempt": key[1], **worker.body}
    try:
        body = {**identity, "reason": "unclaimed", "retryable": True}
        await connection.call("request.fail", body, deadline=CALL_DEADLINE)
    except BroomwagonError as error:
        # After a refusal, the attempt has ended or was claimed again. INTERNAL must not stop the other returns.
        if error.retryable and not isinstance(error, errors.Internal):
            raise


async def _pages(connection: Connection, worker: WorkerEpoch, kind: str) -> AsyncIterator[dict[str, Any]]:
    cursor = None
    while True:
        body = {**worker.body, "kind": kind, **({"cursor": cursor} if cursor else {})}
        page = await connection.call("worker.sync", body, deadline=CALL_DEADLINE)
        for item in page["items"]:
            yield item
        cursor = page.get("cursor")
        if cursor is None:
            return
