"""The tests use the services that NATS_URL and POOL name; `npm run test:python` starts them."""

from __future__ import annotations

import asyncio
import os
import time
import types
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Generator, Iterable
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import pytest

from broomwagon import Client, Group, Rollout, Worker, errors


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with Client(worker_ttl=3, unclaimed_after=2) as client:
        yield client


@pytest.fixture
async def job(client: Client) -> AsyncIterator[str]:
    job = f"job-{uuid4().hex[:8]}"
    yield job
    await delete_job(client, job)


#: A stream of TEST_FOREIGN_STREAM takes each request, so that NATS reports no subject as unserved.
reports_unserved = pytest.mark.skipif("TEST_FOREIGN_STREAM" in os.environ, reason="a stream has the subjects")

#: The worker of the test system claims requests of this job only.
SERVED = "served"


@pytest.fixture
async def served(client: Client) -> AsyncIterator[str]:
    """A new job whose samples are run."""
    await delete_job(client, SERVED)
    yield SERVED
    await delete_job(client, SERVED)


async def until(condition: Callable[[], Awaitable[object]], seconds: float = 60) -> object:
    """Waits until the condition is true, and returns its value."""
    ends_at = time.monotonic() + seconds
    while True:
        if value := await condition():
            return value
        assert time.monotonic() < ends_at, "the condition did not become true"
        await asyncio.sleep(0.02)


async def until_set(event: asyncio.Event) -> None:
    """Waits for an event of another task, up to a minute."""
    await asyncio.wait_for(event.wait(), 60)


async def until_stopped() -> None:
    """Waits, as a call to an engine, until its task is cancelled."""
    await asyncio.sleep(60)
    raise AssertionError("nothing has stopped this request within a minute")


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


async def step_of(rollout: Rollout, prompts: Iterable[Any], policy: Any = "wait") -> list[str]:
    """Runs one step and returns its prompts."""
    return [str(group.prompt) async for group in rollout.round(prompts, policy)]


def lose_changes(rollout: Rollout) -> None:
    """Makes Redis lack changes that this trainer has seen, from the next call on."""
    generation, _, count = str(rollout._job._stamp).rpartition(".")
    rollout._job._stamp = f"{generation}.{int(count) + 1_000_000}"


async def is_empty(client: Client) -> bool:
    assert client._session is not None
    return await leases_of(client) == 0 and len(client._session.attempts) == 0


@types.coroutine
def cancelled_at(
    work: Coroutine[Any, Any, Any], step: int, cancel: Callable[[], object] | None = None
) -> Generator[Any, Any, bool]:
    """Runs a coroutine and cancels its task where it awaits for the given time. False if it ends before.

    :param cancel: cancels the task; default: its `cancel`
    """
    is_cancelled = False
    interrupt: BaseException | None = None
    result: Any = None
    for count in range(1, 1_000_000):
        try:
            yielded = work.throw(interrupt) if interrupt else work.send(result)
        except StopIteration:
            assert not is_cancelled, "the coroutine has ended as if it were not cancelled"
            return False
        except asyncio.CancelledError:
            assert is_cancelled
            return True
        if count == step:
            task = asyncio.current_task()
            assert task is not None
            asyncio.get_running_loop().call_soon(cancel or task.cancel)
        interrupt = None
        try:
            result = yield yielded
        except asyncio.CancelledError as cancelled:
            is_cancelled, interrupt = True, cancelled
    raise AssertionError("the coroutine does not end")
