"""The tests use the services that NATS_URL and POOL name; `npm run test:python` starts them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from broomwagon import Client, errors


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(worker_ttl=3, unclaimed_after=2) as client:
        yield client


async def until(condition: Callable[[], Awaitable[object]], seconds: float = 60) -> object:
    """Waits until the condition is true, and returns its value."""
    ends_at = time.monotonic() + seconds
    while True:
        if value := await condition():
            return value
        assert time.monotonic() < ends_at, "the condition did not become true"
        await asyncio.sleep(0.02)


async def leases_of(client: Client) -> int:
    """The leases of this client in Redis."""
    reply = await client.call("lb.leases", {"workerId": client.worker_id})
    return len(reply["leases"])


async def delete_job(client: Client, job: str) -> None:
    """Deletes a job with everything that it has."""

    async def is_deleted() -> bool:
        try:
            return (await client.call("job.delete", {"job": job, "force": True}))["state"] == "deleted"
        except errors.JobNotFound:
            return True

    await until(is_deleted)
