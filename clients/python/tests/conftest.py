"""The tests use the services that NATS_URL and POOL name; `npm run test:python` starts them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from broomwagon import Client, Group, Worker, errors


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(worker_ttl=3, unclaimed_after=2) as client:
        yield client


@pytest.fixture
async def job(client: Client) -> AsyncIterator[str]:
    job = f"job-{uuid4().hex[:8]}"
    yield job
    await delete_job(client, job)


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


@asynccontextmanager
async def serving(worker: Worker) -> AsyncIterator[None]:
    task = asyncio.create_task(worker.serve())
    try:
        yield
    finally:
        worker.stop()
        await task


async def roll_out(client: Client, job: str, groups: int, samples: int = 1, **options: Any) -> list[Group]:
    rollout = client.rollout(job, groups=groups, samples=samples, max_tokens=100, **options)
    prompts = [f"prompt {index}" for index in range(groups)]
    return [group async for group in rollout.round(prompts, "wait")]


async def is_empty(client: Client) -> bool:
    assert client._session is not None
    return await leases_of(client) == 0 and len(client._session.attempts) == 0
