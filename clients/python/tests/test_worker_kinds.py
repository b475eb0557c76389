"""Workers of a kind, beside the built-in worker of the test system."""

from __future__ import annotations

import asyncio

import pytest
from conftest import roll_out, serving, until

from broomwagon import Attempt, Client


async def test_samples_of_a_job_that_names_a_kind_run_only_with_the_agent_loop(client: Client, served: str) -> None:
    worker = client.worker(kind="agent")

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            attempt.add([1], "agent")
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, served, groups=4, samples=2, worker_kind="agent")
    assert {sample.text for group in groups for sample in group.samples} == {"agent"}


@pytest.mark.parametrize("kind", [None, "agent"])
async def test_a_worker_is_warned_that_names_no_kind(
    client: Client, caplog: pytest.LogCaptureFixture, kind: str | None
) -> None:
    worker = client.worker(job="nobody-opens-it", kind=kind)

    @worker.run
    async def loop(_: Attempt) -> None:
        raise AssertionError("there are no samples")

    async with serving(worker):
        pass
    assert ('client.worker(kind="agent")' in caplog.text) == (kind is None)


async def test_a_trainer_is_warned_that_no_worker_of_the_kind_claims(
    client: Client, served: str, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.create_task(roll_out(client, served, groups=1, worker_kind="nobody"))

    async def is_warned() -> bool:
        return "no-worker-of-kind" in caplog.text

    try:
        await until(is_warned)
        assert "nobody" in caplog.text
    finally:
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
