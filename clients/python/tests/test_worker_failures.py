"""Samples that end otherwise than by their agent loop: each has its reason, and none runs without end."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import pytest
from conftest import lose_changes, roll_out, serving, step_of, until_stopped

from broomwagon import Attempt, Client, InvalidArgument, StepFailed, errors
from broomwagon._attempt_times import pause_after


async def test_a_sample_over_its_time_ends_with_its_tokens(client: Client, job: str) -> None:
    worker = client.worker(job=job)

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            attempt.add([1], "x")
            if attempt.group_id == "0":
                await until_stopped()
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=2, timeout=2)
    assert [group.id for group in groups] == ["1"]
    summary = (await client.call("job.ledger", {"job": job}))["summary"]
    assert summary["waste"]["byReason"].get("timeout", 0) + summary["waste"]["byReason"].get("aborted", 0) == 1


async def test_a_loop_that_raises_fails_the_sample_at_the_limit(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    tries: list[str] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        if attempt.group_id == "0":
            tries.append(attempt.request_id)
            raise ValueError("of the agent loop")
        async with attempt.server():
            attempt.add([1], "x")
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=2)
    assert [group.id for group in groups] == ["1"]
    assert len(tries) > 1


async def test_a_loop_that_raises_on_a_server_runs_on_another_one_and_then_later(
    client: Client, job: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = client.worker(job=job)
    servers: list[str] = []
    avoided: list[Any] = []
    setbacks: list[int] = []
    lease = client.lease

    def lease_recorded(*arguments: Any, **options: Any) -> Any:
        avoided.append(options["avoid_servers"])
        return lease(*arguments, **options)

    def count_pause(count: int) -> float:
        setbacks.append(count)
        return 0.0

    monkeypatch.setattr(client, "lease", lease_recorded)
    monkeypatch.setattr("broomwagon.attempt.pause_after", count_pause)

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server() as server:
            servers.append(server.server_id)
            if len(servers) < 4:
                raise ValueError("perhaps of the engine")
            attempt.add([1], "x")
        return "stop"

    async with serving(worker):
        assert len(await roll_out(client, job, groups=1)) == 1
    # The list of servers to avoid ends with the server that has failed the sample last.
    assert [each[-1] if each else None for each in avoided] == [None, *servers[:3]]
    assert setbacks == [0, 1, 2, 3]


def test_a_sample_pauses_longer_the_more_attempts_have_failed_in_a_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("random.random", lambda: 0.0)
    assert [pause_after(count) for count in (0, 1, 2, 3, 4, 9, 10_000)] == [0, 0, 2, 4, 8, 60, 60]


async def test_a_load_balancer_of_an_earlier_release_gets_no_servers_to_avoid(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = client._connected.request
    refused: list[str] = []

    async def request_earlier(operation: str, body: dict[str, Any], *arguments: Any) -> Any:
        if "avoidServers" in body:
            refused.append(operation)
            raise errors.ValidationFailed("property avoidServers should not exist")
        return await request(operation, body, *arguments)

    monkeypatch.setattr(client._connected, "request", request_earlier)
    async with client.lease("request", avoid_servers=["engine-0"]) as server:
        assert server.server_id
    assert refused == ["lb.acquire"]


async def test_the_end_of_an_acquire_without_a_server_has_its_reason(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    tries: list[str] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        tries.append(attempt.group_id)
        if attempt.group_id == "0":
            # The load-balancer always refuses this acquire.
            async with attempt.server(context_tokens=-1):
                raise AssertionError("the acquire was granted")
        if attempt.group_id == "1" and tries.count("1") <= 5:
            # An acquire without a server is no failure of the sample, however often it happens.
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(client, "lease", partial(client.lease, labels={"gpu": "none"}))
                async with attempt.server(timeout=0.01):
                    raise AssertionError("the acquire was granted")
        if attempt.group_id == "2":
            # This error does not come from an acquire of the attempt.
            raise errors.NoServerAvailable("of the agent loop", retryable=True)
        async with attempt.server():
            attempt.add([1], "x")
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=3)
    assert [group.id for group in groups] == ["1"]
    assert [tries.count(group) for group in "012"] == [1, 6, 4]


async def test_a_group_that_has_failed_does_not_come_again(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    tries: list[str] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        tries.append(attempt.group_id)
        if attempt.group_id == "0":
            raise ValueError("of the agent loop")
        async with attempt.server():
            attempt.add([1], "x")
        return "stop"

    rollout = client.rollout(job, groups=2, samples=1, max_tokens=100)
    prompts = ["a", "b", "c", "d"]
    async with serving(worker):
        assert await step_of(rollout, prompts) == ["b"]
        failures = tries.count("0")
        lose_changes(rollout)
        assert sorted(await step_of(rollout, prompts)) == ["c", "d"]
        assert await step_of(rollout, prompts) == []
    assert tries.count("0") == failures


async def test_a_report_that_is_refused_fails_the_sample_at_the_limit(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    tries: list[str] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            if attempt.group_id == "0":
                tries.append(attempt.request_id)
            # More tokens than any sample may have.
            attempt.add(text="x", token_count=10_000_001 if attempt.group_id == "0" else 1)
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=2)
    assert [group.id for group in groups] == ["1"]
    assert 2 <= len(tries) <= 10


async def test_what_an_engine_cannot_have_made_is_refused_where_it_is_added(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    wrong: list[tuple[str, dict[str, Any]]] = [
        ("logprobs.1", {"token_ids": [1, 2], "logprobs": [-0.5, math.nan]}),
        ("logprobs.0", {"token_ids": [1], "logprobs": ["-1"]}),
        ("token_ids.1", {"token_ids": [1, 2.5]}),
        ("token_ids.0", {"token_ids": "12"}),
        ("token_count", {"token_count": -1}),
    ]

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            for field, options in wrong:
                with pytest.raises(InvalidArgument) as refused:
                    attempt.add(text="wrong", **options)
                assert refused.value.field == field
            attempt.add([1, 2], "ab", logprobs=[-0.5, None])
        return "stop"

    async with serving(worker):
        [group] = await roll_out(client, job, groups=1)
    [sample] = group.samples
    assert sample.text == "ab"
    assert sample.token_ids == [1, 2]
    assert sample.logprobs == [-0.5, None]


async def test_a_step_whose_groups_all_failed_is_no_end_of_the_data(client: Client, job: str) -> None:
    worker = client.worker(job=job)

    @worker.run
    async def loop(attempt: Attempt) -> str:
        if attempt.group_id in "01":
            raise ValueError("of the agent loop")
        async with attempt.server():
            attempt.add([1], "x")
        return "stop"

    rollout = client.rollout(job, groups=2, samples=1, max_tokens=100)
    prompts = ["a", "b", "c", "d"]
    async with serving(worker):
        with pytest.raises(StepFailed, match="Step 1 has no groups: 2 have failed") as failed:
            await anext(rollout.round(prompts, "wait"))
        assert "of the agent loop" in failed.value.failures[0]["message"]
        assert [group.prompt async for group in rollout.round(prompts, "wait")] in (["c", "d"], ["d", "c"])
        assert [group async for group in rollout.round(prompts, "wait")] == []
    assert rollout.step == 2


async def test_a_result_that_cannot_be_sent_fails_the_sample_at_the_limit(client: Client, job: str) -> None:
    worker = client.worker(job=job)
    tries: list[str] = []

    @worker.run
    async def loop(attempt: Attempt) -> str:
        async with attempt.server():
            if attempt.group_id == "0":
                tries.append(attempt.group_id)
                attempt.add([object()], "x")  # type: ignore[list-item]
            elif not attempt.token_ids:
                # A failure after further tokens counts anew.
                attempt.add([1], "x")
        if attempt.group_id == "1":
            tries.append(attempt.group_id)
            return "tool_calls"
        return "stop"

    async with serving(worker):
        groups = await roll_out(client, job, groups=3)
    assert [group.id for group in groups] == ["2"]
    assert 2 <= tries.count("0") <= 10
    assert 2 <= tries.count("1") <= 10
