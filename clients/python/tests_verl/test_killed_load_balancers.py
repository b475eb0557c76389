"""Processes of the load-balancer that are killed while requests run."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any
from urllib.request import Request, urlopen

import pytest
from conftest import until
from test_client import CONFIG, RESPONSE, generating, is_idle
from test_dead_processes import KINDS, close, runs

from broomwagon import Client

pytest_plugins = ["cluster"]

NAMES = ("load-balancer-1", "load-balancer-2")
HELD, CALLERS = 8, 8


async def order(name: str, what: str) -> None:
    """Kills a process of the load-balancer, or starts it again, and waits for it."""
    request = Request(f"{os.environ['PROCESSES_URL']}/{name}/{what}", method="POST")
    with await asyncio.to_thread(urlopen, request, timeout=300) as answer:
        assert answer.status == 200


@pytest.fixture
async def load_balancers() -> AsyncIterator[None]:
    """Starts both load-balancers again after the test."""
    yield
    await asyncio.gather(*(order(name, "start") for name in NAMES))


@pytest.mark.parametrize("killed", [NAMES[:1], NAMES], ids=["one of two", "all"])
@pytest.mark.parametrize("kind", KINDS)
async def test_requests_outlive_load_balancers(
    load_balancers: None, balancer: Any, servers: dict[str, Any], kind: Any, killed: tuple[str, ...]
) -> None:
    client = kind(CONFIG, balancer)
    done = [0] * CALLERS
    ending = asyncio.Event()

    async def call(caller: int) -> None:
        while not ending.is_set():
            # The limit below does not stop so few tokens.
            output = await generating(client, f"caller-{caller}-{done[caller]}", tokens=1)
            assert output.token_ids == RESPONSE[:1]
            done[caller] += 1

    async def all_have_done(count: int) -> bool:
        for task in calling:
            if task.done():
                task.result()
        return min(done) >= count

    await asyncio.gather(*(server.limit.remote(5) for server in servers.values()))
    held = [generating(client, f"held-{n}") for n in range(HELD)]
    await until(lambda: runs(servers, HELD), 240)
    calling = [asyncio.create_task(call(caller)) for caller in range(CALLERS)]
    await until(lambda: all_have_done(2))
    await asyncio.gather(*(order(name, "kill") for name in killed))
    # Acquires and releases meet a load-balancer that is away.
    during = [generating(client, f"during-{n}", tokens=1) for n in range(CALLERS)]
    await order(killed[0], "start")
    before = max(done)
    await until(lambda: all_have_done(before + 2), 120)
    ending.set()
    await asyncio.gather(*calling)
    await asyncio.gather(*(server.raise_limit.remote() for server in servers.values()))
    assert [output.token_ids for output in await asyncio.gather(*held)] == [RESPONSE] * HELD
    assert [output.token_ids for output in await asyncio.gather(*during)] == [RESPONSE[:1]] * CALLERS
    await until(lambda: is_idle(balancer))
    async with Client() as other:
        status = await other.call("lb.status", {})
    assert (status["leases"], status["waiters"]) == (0, 0)
    await close(client)
