"""Cancellations, lost replies, forks and closed event loops: nothing is trained twice or left behind."""

from __future__ import annotations

import asyncio
import copy
import logging
import os
import pickle
from typing import Any

import pytest
from conftest import cancelled_at, delete_job, is_empty, leases_of, roll_out, serving

from broomwagon import Attempt, Client, errors
from broomwagon._error import BroomwagonError

PROMPTS = ["a", "b", "c"]


async def test_a_round_that_is_cancelled_at_any_await_continues(client: Client, served: str) -> None:
    step = 0
    is_cancelled = True
    while is_cancelled:
        step += 1
        await delete_job(client, served)
        rollout = client.rollout(served, groups=2, samples=1, max_tokens=16)
        trained: list[str] = []

        async def train(rollout: Any = rollout, trained: list[str] = trained) -> None:
            while True:
                before = len(trained)
                async for group in rollout.round(PROMPTS, "wait"):
                    trained.append(str(group.prompt))
                if len(trained) == before:
                    return

        is_cancelled = await cancelled_at(train(), step)
        while rollout.step < 2:
            trained += [str(group.prompt) async for group in rollout.round(PROMPTS, "wait")]
        assert sorted(trained) == PROMPTS, f"cancelled at await {step}"
        assert rollout.step == 2
        assert (await rollout.ledger())["rollout/samples"] == 3
    assert step > 10


OPERATIONS = ["round.next", "round.open", "round.submit", "round.status", "round.results", "round.close"]


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("is_done", [False, True], ids=["not done", "reply lost"])
async def test_a_round_continues_after_a_call_that_fails(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch, operation: str, is_done: bool
) -> None:
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=16)
    call = rollout._job.call
    failing: list[BroomwagonError] = [errors.Unavailable("of a service")]

    async def call_with_fault(called: str, **body: Any) -> Any:
        fails = called == operation and failing
        if fails and not is_done:
            raise failing.pop()
        reply = await call(called, **body)
        if fails:
            raise failing.pop()
        return reply

    monkeypatch.setattr(rollout._job, "call", call_with_fault)
    trained: list[str] = []
    with pytest.raises(errors.Unavailable):
        async for group in rollout.round(PROMPTS, "wait"):
            trained.append(str(group.prompt))
    for _ in range(3):
        trained += [str(group.prompt) async for group in rollout.round(PROMPTS, "wait")]
    assert (sorted(trained), rollout.step) == (PROMPTS, 2)
    assert (await rollout.ledger())["rollout/samples"] == 3


async def test_a_loop_that_is_cut_at_any_await_keeps_its_tokens(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    cut: dict[str, bool] = {}

    async def add_tokens(attempt: Attempt) -> None:
        while len(attempt.token_ids) < 3:
            async with attempt.server():
                await asyncio.sleep(0)
                attempt.add([len(attempt.token_ids)])
            await attempt.save()

    @worker.run
    async def count(attempt: Attempt) -> None:
        if attempt.request_id in cut:
            await add_tokens(attempt)
            return
        step = int(attempt.request_id.split("/")[1]) + 1
        cut[attempt.request_id] = False
        if await cancelled_at(add_tokens(attempt), step, lambda: attempt.stop("cut")):
            cut[attempt.request_id] = True
            raise asyncio.CancelledError

    async with serving(worker):
        groups = await roll_out(client, job, 40)
    assert [group.samples[0].token_ids for group in groups] == [[0, 1, 2]] * 40
    assert 10 < sum(cut.values()) < 40
    await client.settled()
    assert await is_empty(client)


def lease_in_a_process(client: Client) -> str:
    """Makes a fork, which takes a lease with the client. Returns the error or the id of the worker there."""

    async def use() -> str:
        async with client, client.lease("request"):
            return client.worker_id

    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            text = asyncio.run(asyncio.wait_for(use(), 30))
        except BaseException as error:
            text = repr(error)
        os.write(write, text.encode())
        os._exit(0)
    os.waitpid(process, 0)
    os.close(write)
    with open(read, "rb") as answer:
        return answer.read().decode()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_client_may_be_made_before_a_fork() -> None:
    client = Client()
    with pytest.raises(RuntimeError, match="not connected"):
        assert client.worker_id
    ids = {lease_in_a_process(client) for _ in range(2)}
    assert len(ids) == 2
    assert all(worker_id.startswith("python-") for worker_id in ids)
    assert lease_in_a_process(Client(worker_id="given")) == "given"
    # Ray pickles a client to send it to an actor.
    assert pickle.loads(pickle.dumps(client)).pool == copy.copy(client).pool == client.pool


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_client_that_was_connected_before_a_fork_is_refused_in_it() -> None:
    loop = asyncio.new_event_loop()
    client = Client()
    loop.run_until_complete(client.connect())
    assert "is connected" in lease_in_a_process(client)
    loop.run_until_complete(client.close())
    loop.close()


def test_a_client_outlives_its_event_loop(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "broomwagon")
    client = Client()
    first, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    first.run_until_complete(client.connect())
    with pytest.raises(RuntimeError, match="another event loop"):
        other.run_until_complete(client.close())
    first.run_until_complete(client._connected.close())
    first.close()
    other.run_until_complete(asyncio.wait_for(client.close(), 5))
    assert "closed before the client" in caplog.text

    async def use() -> int:
        async with client, client.lease("request"):
            return await leases_of(client)

    assert other.run_until_complete(asyncio.wait_for(use(), 30)) == 1
    other.close()
