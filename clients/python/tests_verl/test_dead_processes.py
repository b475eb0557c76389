"""Server actors and processes of agent loops that die."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import ray
from cluster import server_manager
from conftest import until
from fake_engine import FakeServer
from test_client import CONFIG, PROMPT, RESPONSE, generating, in_flight, is_idle
from verl.workers.rollout.llm_server import LLMServerClient

from broomwagon import Client
from broomwagon.verl.client import LeasedClient, LeasedFullyAsyncClient

pytest_plugins = ["cluster"]

KINDS = [LLMServerClient, LeasedClient, LeasedFullyAsyncClient]


@pytest.fixture
async def fleet(cluster: None, tmp_path: Path) -> AsyncIterator[tuple[Any, dict[str, Any]]]:
    """A balancer with four servers of its own."""
    servers = {f"10.0.1.{n}:8000": FakeServer.remote() for n in range(4)}
    ray.get([server.reset.remote() for server in servers.values()])
    manager = await server_manager(servers, tmp_path)
    yield manager.global_load_balancer, servers
    # A test may have killed the balancer.
    with suppress(ray.exceptions.RayActorError):
        ray.get(manager.global_load_balancer.close.remote())
    ray.kill(manager.global_load_balancer)
    for server in servers.values():
        ray.kill(server)


async def lists(balancer: Any, count: int) -> bool:
    return len(await balancer.get_all_servers.remote()) == count


async def total(balancer: Any, count: int) -> bool:
    return await in_flight(balancer) == count


async def close(client: Any) -> None:
    if isinstance(client, LeasedClient):
        await client.close()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_dead_server_is_removed_with_its_requests(fleet: Any, kind: Any) -> None:
    balancer, servers = fleet
    client = kind(CONFIG, balancer)
    # Requests are limited, so each other server stays busier than the server that dies.
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    running = [generating(client, f"running-{n}") for n in range(4)]
    await until(lambda: total(balancer, 4))
    (dead_id, dead), *_ = servers.items()
    ray.kill(dead)
    await until(lambda: lists(balancer, 3))
    assert dead_id not in (await balancer.get_status.remote())["servers"]
    await asyncio.gather(*(server.raise_limit.remote() for server in list(servers.values())[1:]))
    outputs: list[Any] = await asyncio.gather(*running, return_exceptions=True)
    tokens = [output.token_ids for output in outputs if not isinstance(output, ray.exceptions.RayActorError)]
    # verl's own client does not begin a call again.
    assert tokens == [RESPONSE] * (3 if kind is LLMServerClient else 4)
    await asyncio.gather(*(generating(client, f"new-{n}") for n in range(8)))
    await until(lambda: is_idle(balancer))
    await close(client)


@pytest.mark.parametrize("kind", KINDS)
async def test_calls_that_fail_count_against_their_server(fleet: Any, kind: Any) -> None:
    balancer, servers = fleet
    await asyncio.gather(*(server.fail.remote() for server in servers.values()))
    client = kind(CONFIG, balancer)
    # Five failures in a row make a server suspect; half of the servers are left.
    outputs = await asyncio.gather(*(generating(client, f"r{n}") for n in range(20)), return_exceptions=True)
    assert all(isinstance(output, ray.exceptions.RayTaskError) for output in outputs)
    await until(lambda: is_idle(balancer))
    pool = (await balancer.get_route.remote())["client"]
    async with Client(**pool) as own:
        states = [server["state"] for server in (await own.call("server.list", {}))["servers"]]
    assert states.count("suspect") == 2
    await close(client)


@pytest.mark.parametrize("kind", KINDS[1:])
async def test_no_request_fails_when_its_server_dies_before_anybody_knows(fleet: Any, kind: Any) -> None:
    balancer, servers = fleet
    client = kind(CONFIG, balancer)
    await generating(client, "opens the connection")
    ray.kill(servers["10.0.1.0:8000"])
    ray.kill(servers["10.0.1.1:8000"])
    outputs = await asyncio.gather(*(generating(client, f"r{n}") for n in range(16)))
    assert [output.token_ids for output in outputs] == [RESPONSE] * 16
    assert await lists(balancer, 2)
    await client.close()


async def test_a_session_leaves_a_dead_server(fleet: Any) -> None:
    balancer, _ = fleet
    client = LLMServerClient(CONFIG, balancer)
    server_id, handle = await balancer.acquire_server.remote("session")
    ray.kill(handle)
    balancer.release_server.remote(server_id, "session")
    await until(lambda: lists(balancer, 3))
    assert (await generating(client, "session")).token_ids == RESPONSE


async def test_a_request_waits_for_a_new_server_when_all_have_died(fleet: Any) -> None:
    balancer, servers = fleet
    client = LeasedClient(CONFIG, balancer)
    await generating(client, "opens the connection")
    for server in servers.values():
        ray.kill(server)
    await until(lambda: lists(balancer, 0))
    with pytest.raises(RuntimeError, match="No available servers in load balancer"):
        await balancer.acquire_server.remote("without a lease of its own")
    turn = generating(client, "r")
    server = servers["10.0.1.9:8000"] = FakeServer.remote()
    await server.reset.remote()
    await balancer.add_servers.remote({"10.0.1.9:8000": server})
    assert (await turn).token_ids == RESPONSE
    await client.close()


async def test_the_requests_of_a_dead_process_of_agent_loops_are_returned(fleet: Any) -> None:
    balancer, servers = fleet

    class AgentLoops:
        def __init__(self, balancer: Any) -> None:
            self.client = LLMServerClient(CONFIG, balancer)

        async def run(self, name: str) -> list[list[int]]:
            calls = (
                self.client.generate(f"{name}-{n}", prompt_ids=PROMPT, sampling_params={"max_tokens": 10})
                for n in range(8)
            )
            return [output.token_ids for output in await asyncio.gather(*calls)]

    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    remote: Any = ray.remote(num_cpus=0)(AgentLoops)
    dies, lives = remote.remote(balancer), remote.remote(balancer)
    lost, kept = dies.run.remote("lost"), lives.run.remote("kept")
    await until(lambda: total(balancer, 16))
    ray.kill(dies)
    with pytest.raises(ray.exceptions.RayActorError):
        await lost
    # Long enough for the requests of the other process to be returned too, if it did not renew them.
    await until(lambda: total(balancer, 8), 120)
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert await kept == [RESPONSE] * 8
    await until(lambda: is_idle(balancer))
    ray.kill(lives)


async def test_requests_outlive_the_actor_of_the_balancer(fleet: Any) -> None:
    balancer, servers = fleet
    client = LeasedClient(CONFIG, balancer)
    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    running = [generating(client, f"running-{n}") for n in range(8)]
    # Before, the process asks the balancer for the actors of its servers. Fake engines import verl first.
    await until(lambda: runs(servers, 8), 240)
    ray.kill(balancer)
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert [output.token_ids for output in await asyncio.gather(*running)] == [RESPONSE] * 8
    await close(client)


async def runs(servers: dict[str, Any], count: int) -> bool:
    running = await asyncio.gather(*(server.running.remote() for server in servers.values()))
    return sum(map(len, running)) == count
