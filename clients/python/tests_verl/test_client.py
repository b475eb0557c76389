"""Clients of verl with leases, over Router and fake engines."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

import pytest
import ray
from cluster import CAPACITY, HAS_ROUTERS, verls_manager
from conftest import until
from omegaconf import OmegaConf
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

from broomwagon import Client
from broomwagon.verl._groups import current_group, prompt_group
from broomwagon.verl.client import LeasedClient, LeasedFullyAsyncClient, leased
from broomwagon.verl.manager import with_prompts

pytest_plugins = ["cluster"]

CONFIG = OmegaConf.create({"actor_rollout_ref": {"rollout": {"name": "vllm", "response_length": 40}}})
PROMPT = [7, 7, 7]
RESPONSE = list(range(3, 13))


async def in_flight(balancer: Any) -> int:
    return int(await balancer.get_total_inflight.remote())


async def is_idle(balancer: Any) -> bool:
    return await in_flight(balancer) == 0


def generating(client: Any, request_id: str, tokens: int = 10) -> asyncio.Task[Any]:
    call = client.generate(request_id, prompt_ids=list(PROMPT), sampling_params={"max_tokens": tokens})
    return asyncio.create_task(call)


async def test_verls_own_client_works_with_the_router(balancer: Any) -> None:
    client = LLMServerClient(CONFIG, balancer)
    outputs = await asyncio.gather(*(generating(client, f"r{n}") for n in range(8)))
    assert [output.token_ids for output in outputs] == [RESPONSE] * 8
    await until(lambda: is_idle(balancer))


@pytest.mark.parametrize("kind", [LeasedClient, LeasedFullyAsyncClient])
async def test_a_response_with_its_fields(balancer: Any, servers: dict[str, Any], kind: Any) -> None:
    client = kind(CONFIG, balancer)
    output = await generating(client, "r")
    # The asynchronous client of verl reports "length" for a response that has used its budget.
    assert output.stop_reason == ("completed" if kind is LeasedClient else "length")
    assert (output.token_ids, output.log_probs) == (RESPONSE, [-0.5] * 10)
    assert output.extra_fields["min_global_steps"] == output.extra_fields["max_global_steps"] == 0
    assert output.routed_experts.ravel().tolist() == [*range(len(PROMPT) + len(RESPONSE))]
    await client.close()
    assert await in_flight(balancer) == 0


async def test_the_turns_of_a_request_stay_on_one_server(balancer: Any, servers: dict[str, Any]) -> None:
    client = LeasedClient(CONFIG, balancer)
    for _ in range(4):
        await generating(client, "trajectory")
    ids = await asyncio.gather(*(server.requests.remote() for server in servers.values()))
    assert sorted(map(len, ids)) == [0, 4]
    await client.close()


async def test_the_engine_knows_the_request_by_its_lease(balancer: Any, servers: dict[str, Any]) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = LeasedClient(CONFIG, balancer)
    turn = generating(client, "r")
    running = await until(lambda: _running(servers))
    connection = await client._process.client()
    leases = (await connection.call("lb.leases", {"workerId": connection.worker_id}))["leases"]
    assert [lease["leaseId"] for lease in leases] == running
    assert await in_flight(balancer) == 1
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert (await turn).token_ids == RESPONSE
    await client.close()


async def test_samples_of_one_prompt_are_siblings_for_the_pool(balancer: Any, servers: dict[str, Any]) -> None:
    class Loops:
        def __init__(self, client: Any) -> None:
            self.client = client

        async def _run_agent_loop(self, parameters: dict[str, Any], *, session_id: int, uid: str) -> Any:
            return await self.client.generate(f"{uid}-{session_id}", prompt_ids=PROMPT, sampling_params=parameters)

    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = LeasedClient(CONFIG, balancer)
    loops = with_prompts(Loops)(client)
    own = await client._process.client()
    await own.call("pool.configure", {"groupPlacement": "group-affinity"})
    try:
        samples = [
            asyncio.create_task(loops._run_agent_loop({"max_tokens": 10}, session_id=n, uid="prompt")) for n in range(4)
        ]
        await until(lambda: _runs(servers, 4))
    finally:
        await own.call("pool.configure", {"groupPlacement": "group-spread"})
    counts = await asyncio.gather(*(server.running.remote() for server in servers.values()))
    # Without the id of the prompt, each server would have two of the samples.
    assert sorted(map(len, counts)) == [0, 4]
    assert prompt_group.get() is None
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    await asyncio.gather(*samples)
    await client.close()


async def test_a_subclass_learns_of_each_call(balancer: Any, servers: dict[str, Any]) -> None:
    calls: list[tuple[str, ...]] = []

    class Recording(LeasedClient):
        def _on_dispatch(self, request_id: str, inner_request_id: str, server: Any) -> None:
            assert server in servers.values()
            calls.append(("dispatch", request_id, inner_request_id))

        def _on_complete(self, request_id: str) -> None:
            calls.append(("complete", request_id))

        def _on_cancel(self, request_id: str) -> None:
            calls.append(("cancel", request_id))

    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = Recording(CONFIG, balancer)
    turn = generating(client, "r")
    await until(lambda: _runs(servers, 1))
    [inner] = await _running(servers)
    assert calls == [("dispatch", "r", inner)]
    turn.cancel()
    await until(lambda: is_idle(balancer))
    assert calls[1:] == [("cancel", "r"), ("complete", "r")]
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    await generating(client, "s")
    assert [call[:2] for call in calls[3:]] == [("dispatch", "s"), ("complete", "s")]
    await client.close()


@pytest.mark.parametrize("kind", [LeasedClient, LeasedFullyAsyncClient])
async def test_an_abort_ends_one_request_with_its_tokens(balancer: Any, servers: dict[str, Any], kind: Any) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = kind(CONFIG, balancer)
    turns = [generating(client, f"r{n}") for n in range(3)]
    await until(lambda: _runs(servers, 3))
    assert await client.abort("r1") == 1
    output = await turns[1]
    assert (output.token_ids, output.stop_reason) == ([3, 4], "cancelled")
    assert await client.abort("r1") == 0
    assert len(await _running(servers)) == 2
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert [(await turn).token_ids for turn in (turns[0], turns[2])] == [RESPONSE] * 2
    await until(lambda: is_idle(balancer))
    await client.close()


@pytest.mark.parametrize("how", ["abort", "cancel"])
async def test_a_request_that_has_not_begun_ends_when_it_begins(
    balancer: Any, servers: dict[str, Any], how: str
) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    await asyncio.gather(*(server.abort_all.remote() for server in servers.values()))
    client = LeasedClient(CONFIG, balancer)
    turn = generating(client, "r")
    await until(lambda: _knows(servers, 1))
    if how == "cancel":
        turn.cancel()
        ended = [turn]
    else:
        ended = [turn, asyncio.create_task(client.abort("r"))]
    await asyncio.sleep(0)
    assert await in_flight(balancer) == 1
    await asyncio.gather(*(server.resume.remote(1) for server in servers.values()))
    await asyncio.gather(*ended, return_exceptions=True)
    if how == "abort":
        assert turn.result().stop_reason == "cancelled"
    await until(lambda: is_idle(balancer))
    assert await _running(servers) == []
    await client.close()


@pytest.mark.parametrize("kind", [LeasedClient, LeasedFullyAsyncClient])
async def test_a_lost_lease_does_not_cut_a_response(balancer: Any, servers: dict[str, Any], kind: Any) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = kind(CONFIG, balancer)
    turn = generating(client, "r")
    await until(lambda: _runs(servers, 1))
    session = (await client._process.client())._session
    for lease in session.leases:
        lease.work.stop("lease-lost")
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert (await turn).token_ids == RESPONSE
    await until(lambda: is_idle(balancer))
    await client.close()


async def test_a_cancelled_call_ends_on_the_engine(balancer: Any, servers: dict[str, Any]) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = LeasedClient(CONFIG, balancer)
    turn = generating(client, "r")
    await until(lambda: _runs(servers, 1))
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn
    await until(lambda: _runs(servers, 0))
    await until(lambda: is_idle(balancer))
    await client.close()


async def test_new_weights_in_the_middle_give_the_same_tokens(balancer: Any, servers: dict[str, Any]) -> None:
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    client = leased(FullyAsyncLLMServerClient(CONFIG, balancer))
    assert type(client) is LeasedFullyAsyncClient
    turn = generating(client, "r")
    await until(lambda: _runs(servers, 1))
    await asyncio.gather(*(server.abort_all.remote() for server in servers.values()))
    await until(lambda: is_idle(balancer))
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    await asyncio.gather(*(server.resume.remote(1) for server in servers.values()))
    output = await turn
    assert output.token_ids == RESPONSE
    assert (output.extra_fields["min_global_steps"], output.extra_fields["max_global_steps"]) == (0, 1)
    assert output.routed_experts.ravel().tolist() == [*range(len(PROMPT) + len(RESPONSE))]
    await client.close()


async def test_a_client_travels_to_the_processes_of_agent_loops(balancer: Any) -> None:
    class AgentLoops:
        def __init__(self, client: Any) -> None:
            self.client = client

        async def run(self, name: str) -> list[list[int]]:
            turns = [
                self.client.generate(f"{name}-{n}", prompt_ids=PROMPT, sampling_params={"max_tokens": 10})
                for n in range(8)
            ]
            outputs = await asyncio.gather(*turns)
            await self.client.close()
            return [output.token_ids for output in outputs]

    client = LeasedClient(CONFIG, balancer)
    await generating(client, "before")
    remote: Any = ray.remote(num_cpus=0)(AgentLoops)
    workers = [remote.remote(client) for _ in range(2)]
    assert (
        await asyncio.gather(*(worker.run.remote(str(n)) for n, worker in enumerate(workers))) == [[RESPONSE] * 8] * 2
    )
    await client.close()
    assert await in_flight(balancer) == 0


async def test_servers_come_and_go(balancer: Any, servers: dict[str, Any]) -> None:
    client = LeasedFullyAsyncClient(CONFIG, balancer, only_hybrid=True)
    await balancer.remove_servers.remote(list(servers))
    turn = generating(client, "r")
    await asyncio.sleep(0)
    await balancer.add_servers.remote(servers=servers)
    assert (await turn).token_ids == RESPONSE
    await client.close()


@pytest.mark.skipif(not HAS_ROUTERS, reason="a balancer of the plugin has no capacity")
async def test_a_group_that_is_cut_while_it_waits_for_a_server_does_not_run(
    balancer: Any, servers: dict[str, Any]
) -> None:
    client = LeasedFullyAsyncClient(CONFIG, balancer)
    current_group.set("g")
    client.groups.was_cut()
    own = await client._process.client()
    async with AsyncExitStack() as places:
        for n in range(CAPACITY * len(servers)):
            await places.enter_async_context(own.lease(f"other-{n}"))
        turn = generating(client, "r")
        await until(lambda: _waiters(own))
        await balancer.hold_groups.remote(["g"])
        client.groups.was_cut()
    await until(lambda: is_idle(balancer))
    assert not turn.done()
    assert await _knows(servers, 0)
    await balancer.hold_groups.remote([])
    assert (await turn).token_ids == RESPONSE
    await client.close()


def test_another_client_is_refused() -> None:
    class Own(LLMServerClient):  # type: ignore[misc]
        pass

    with pytest.raises(TypeError, match="Own"):
        leased(Own(CONFIG))


async def test_verls_balancer_is_refused(servers: dict[str, Any]) -> None:
    client = LeasedClient(CONFIG, (await verls_manager(servers)).global_load_balancer)
    with pytest.raises(RuntimeError, match="router_config_path"):
        await generating(client, "r")


async def _waiters(client: Client) -> bool:
    return (await client.call("lb.status", {}))["waiters"] == 1


async def _running(servers: dict[str, Any]) -> list[str]:
    running = await asyncio.gather(*(server.running.remote() for server in servers.values()))
    return [request_id for ids in running for request_id in ids]


async def _runs(servers: dict[str, Any], count: int) -> bool:
    return len(await _running(servers)) == count


async def _knows(servers: dict[str, Any], count: int) -> bool:
    asked = await asyncio.gather(*(server.requests.remote() for server in servers.values()))
    return sum(map(len, asked)) == count
