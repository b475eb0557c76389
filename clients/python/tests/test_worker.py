"""Workers with agent loops: each sample ends once, with its tokens, whatever stops its attempts."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import Any
from uuid import uuid4

import pytest
from conftest import is_empty, leases_of, roll_out, serving, until, until_set, until_stopped

from broomwagon import Attempt, Client, LeaseStopped, StepFailed, errors


@pytest.mark.short
async def test_a_loop_of_two_turns_runs_each_sample_once(client: Client, job: str) -> None:
    worker = client.worker(job=job, concurrency=3)
    running = most = 0
    servers: dict[str, set[str]] = {}

    @worker.run
    async def loop(attempt: Attempt) -> str:
        nonlocal running, most
        running += 1
        most = max(most, running)
        for turn in (1, 2):
            async with attempt.server() as server:
                servers.setdefault(attempt.request_id, set()).add(server.server_id)
                attempt.add([attempt.sample_index, turn], f"turn {turn} ", logprobs=[-0.5, -0.25])
            await attempt.save()
        running -= 1
        return "length"

    async with serving(worker):
        groups = await roll_out(client, job, groups=4, samples=2)
    samples = [sample for group in groups for sample in group.samples]
    assert [sample.token_ids for sample in samples] == [[0, 1, 0, 2], [1, 1, 1, 2]] * 4
    assert {sample.text for sample in samples} == {"turn 1 turn 2 "}
    assert {sample.finish_reason for sample in samples} == {"length"}
    assert samples[0].logprobs == [-0.5, -0.25] * 2
    assert most == 3
    assert all(len(used) == 1 for used in servers.values())
    await client.settled()
    assert await is_empty(client)


async def test_a_worker_claims_and_is_renewed_after_a_defect(
    client: Client, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, request = client._connected.call, client._connected.request
    failed: list[str] = []

    async def call_with_defect(operation: str, *rest: Any, **options: Any) -> Any:
        if operation == "worker.heartbeat" and operation not in failed:
            failed.append(operation)
            raise KeyError("of a reply")
        return await call(operation, *rest, **options)

    async def request_with_defect(operation: str, *rest: Any) -> Any:
        if operation == "request.claim" and operation not in failed:
            failed.append(operation)
            raise KeyError("of a reply")
        return await request(operation, *rest)

    monkeypatch.setattr(client._connected, "call", call_with_defect)
    monkeypatch.setattr(client._connected, "request", request_with_defect)
    worker = client.worker(job=job)

    @worker.run
    async def loop(attempt: Attempt) -> None:
        async with attempt.server():
            attempt.add([1], "x")

    async with serving(worker):
        await roll_out(client, job, groups=1)
        assert client._session is not None and client._session._heartbeat is not None
        beating = client._session._heartbeat

        async def both_failed() -> bool:
            return len(failed) == 2

        await until(both_failed)
        await asyncio.sleep(0)
    assert not beating.done()


async def test_a_claim_that_is_refused_for_good_ends_the_worker(client: Client) -> None:
    worker = client.worker(job="no\nname")

    @worker.run
    async def loop(attempt: Attempt) -> None:
        raise AssertionError("there is no sample")

    with pytest.raises(errors.ValidationFailed) as refused:
        await asyncio.wait_for(worker.serve(), 30)
    assert refused.value.field == "job"


async def test_signals_while_a_worker_drains_do_not_end_the_process(client: Client, job: str) -> None:
    worker = client.worker(job=job, drain=60)

    @worker.run
    async def loop(attempt: Attempt) -> None:
        async with attempt.server():
            os.kill(os.getpid(), signal.SIGTERM)
            await until_set(worker._stopping)
            await client.call("lb.status", {})
            assert signal.getsignal(signal.SIGTERM) != signal.SIG_DFL
            os.kill(os.getpid(), signal.SIGTERM)
            await client.call("lb.status", {})
            attempt.add([1], "x")

    groups, _ = await asyncio.gather(roll_out(client, job, groups=1), worker.serve())
    assert groups[0].samples[0].token_ids == [1]
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


async def test_a_worker_that_stops_hands_its_samples_on(client: Client, job: str) -> None:
    first = client.worker(job=job, drain=0.01)
    is_generating = asyncio.Event()
    resumed: list[list[int]] = []

    @first.run
    async def endless(attempt: Attempt) -> str:
        async with attempt.server():
            attempt.add([7, 8], "ab")
            attempt.state["turn"] = 1
            is_generating.set()
            await until_stopped()
        return "stop"

    second = client.worker(job=job)

    @second.run
    async def finish(attempt: Attempt) -> str:
        resumed.append(list(attempt.token_ids))
        assert attempt.state == {"turn": 1}
        assert attempt.tokens_left == 98
        async with attempt.server():
            attempt.add([9], "c")
        return "stop"

    async def hand_over() -> None:
        async with serving(first):
            await until_set(is_generating)
        worker.append(asyncio.create_task(second.serve()))

    worker: list[asyncio.Task[None]] = []
    groups, _ = await asyncio.gather(roll_out(client, job, groups=1), hand_over())
    second.stop()
    await worker[0]
    assert resumed == [[7, 8]]
    assert groups[0].samples[0].token_ids == [7, 8, 9]
    assert groups[0].samples[0].text == "abc"
    assert len(groups[0].samples[0].segments) == 2


async def test_a_change_of_weights_cuts_the_loop_and_the_sample_continues(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    attempts: list[str] = []
    is_generating = asyncio.Event()

    @worker.run
    async def loop(attempt: Attempt) -> str:
        attempts.append("began")
        async with attempt.server():
            attempt.add([len(attempts)], "x")
            if len(attempts) == 1:
                is_generating.set()
                await until_stopped()
        return "stop"

    async def change() -> None:
        await until_set(is_generating)
        sync_id = uuid4().hex
        # `weights.begin` answers when no request runs.
        await client.call("weights.begin", {"syncId": sync_id, "mode": "abort", "version": 1, "waitMs": 10_000})
        assert await leases_of(client) == 0
        # The engines keep their version.
        await client.call("weights.rollback", {"syncId": sync_id})

    async with serving(worker):
        groups, _ = await asyncio.gather(roll_out(client, job, groups=1), change())
    assert groups[0].samples[0].token_ids == [1, 2]


async def test_ids_of_a_part_are_not_those_of_a_sample(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    began_with: list[list[int]] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        began_with.append(list(attempt.token_ids))
        async with attempt.server():
            attempt.add([7, 8], "a")
            if len(began_with) == 1:
                attempt.add(text="b", token_count=1)
                raise LeaseStopped("cut")
        assert attempt.token_ids == []
        return "stop"

    async with serving(worker):
        [group] = await roll_out(client, job, groups=1)
    [sample] = group.samples
    assert began_with == [[], []]
    assert (sample.token_count, sample.text) == (5, "aba")
    assert sample.token_ids == []


async def test_repeats_of_an_abort_leave_the_end_of_a_loop_alone(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    is_generating, is_cleaned = asyncio.Event(), asyncio.Event()
    running: list[Attempt] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        running.append(attempt)
        try:
            async with attempt.server():
                is_generating.set()
                await until_stopped()
        finally:
            for _ in range(3):
                # The service repeats the command until the attempt has ended.
                attempt.stop("abort")
                await client.call("lb.status", {})
            is_cleaned.set()
        return "stop"

    async def abort() -> None:
        await until_set(is_generating)
        await client.call("request.abort", {"abortId": uuid4().hex, "job": job, "groupId": "0"})
        await until_set(is_cleaned)

    async with serving(worker):
        with pytest.raises(StepFailed):
            await asyncio.gather(roll_out(client, job, groups=1), asyncio.wait_for(abort(), 30))
        await asyncio.wait_for(is_cleaned.wait(), 30)
    assert len(running) == 1


async def test_a_sample_that_is_moved_continues_on_its_new_server(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    servers: list[str] = []
    running: list[str] = []
    is_generating = asyncio.Event()

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server() as server:
            servers.append(server.server_id)
            attempt.add([len(servers)], "x")
            if len(servers) == 1:
                running.append(attempt.request_id)
                is_generating.set()
                await until_stopped()
        return "stop"

    async def move() -> None:
        await until_set(is_generating)
        found = await client.call("server.list", {})
        [other] = {server["serverId"] for server in found["servers"]} - set(servers)
        moves: Any = [{"requestId": running[0], "targetServerId": other}]
        await client.call("rebalance.execute", {"planId": uuid4().hex, "moves": moves})

    async with serving(worker):
        groups, _ = await asyncio.gather(roll_out(client, job, groups=1), move())
    assert len(set(servers)) == 2
    assert [segment["serverId"] for segment in groups[0].samples[0].segments] == servers
    assert groups[0].samples[0].token_ids == [1, 2]


async def test_an_aborted_sample_is_cancelled_and_its_group_dropped(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    is_generating = asyncio.Event()
    causes: list[type[BaseException]] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            attempt.add([1], "x")
            if attempt.group_id == "0":
                is_generating.set()
                try:
                    await until_stopped()
                except BaseException as error:
                    causes.append(type(error))
                    raise
        return "stop"

    async def abort() -> None:
        await until_set(is_generating)
        reply = await client.call(
            "request.abort", {"abortId": uuid4().hex, "job": job, "groupId": "0", "waitMs": 10_000}
        )
        assert [result["outcome"] for result in reply["results"]] == ["aborted"]

    async with serving(worker):
        groups, _ = await asyncio.gather(roll_out(client, job, groups=2), abort())
    assert [group.id for group in groups] == ["1"]
    assert causes == [asyncio.CancelledError]
    await client.settled()
    assert await is_empty(client)


async def test_a_fenced_worker_returns_nothing_and_claims_again(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    began: list[int] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        began.append(1)
        async with attempt.server():
            attempt.add([len(began)], "x")
            if len(began) == 1:
                await client.call("worker.register", {"workerId": client.worker_id, "registrationId": uuid4().hex})
                await until_stopped()
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=1)
    assert groups[0].samples[0].token_ids == [2]
    await client.settled()

    async def empty() -> bool:
        return await is_empty(client)

    await until(empty)
