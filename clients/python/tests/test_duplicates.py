"""Two processes with one worker id."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest
from conftest import leases_of, until, until_stopped

from broomwagon import Attempt, Client, LeaseStopped, WorkerIdInUse


async def replaced_by(other: Client, replaced: Client) -> None:
    """`other` takes a lease, and so registers, while `replaced` has one."""
    with pytest.raises(LeaseStopped) as stopped:
        async with replaced.lease("request"):
            async with other.lease("request"):
                assert replaced._session
                # The next heartbeat, earlier.
                await replaced._session._beat(await replaced._session.established())
                await until_stopped()
    assert stopped.value.cause == "fenced"


@pytest.mark.short
async def test_one_of_two_clients_with_one_worker_id_is_told(client: Client) -> None:
    async with Client(worker_id=client.worker_id) as other:
        await replaced_by(other, client)
        # Once may be a restart of the process.
        await replaced_by(client, other)
        await replaced_by(other, client)
        for _ in range(2):
            with pytest.raises(WorkerIdInUse, match=client.worker_id):
                async with client.lease("request"):
                    pass
        worker = client.worker()

        @worker.run
        async def solve(attempt: Attempt) -> str:
            return "stop"

        with pytest.raises(WorkerIdInUse):
            await asyncio.wait_for(worker.serve(), 30)
        async with other.lease("request"):
            assert await leases_of(other) == 1


async def test_a_silence_is_no_other_process(client: Client) -> None:
    session = client._session
    assert session is not None
    for _ in range(3):
        async with client.lease("request"):
            worker = await session.established()
        await client.settled()
        session._alive_at -= 100
        await client.call("worker.deregister", worker.body)  # type: ignore[call-overload]
        await session._beat(worker)

        async def is_fenced(worker: object = worker) -> bool:
            return session._epoch != worker

        await until(is_fenced)
    async with client.lease(uuid4().hex):
        pass
