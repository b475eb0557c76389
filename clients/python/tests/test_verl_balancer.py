"""The balancer for verl without Ray: its calls, and the counts of the pool."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import AsyncIterator
from typing import Any

import pytest
from conftest import until

from broomwagon import InvalidArgument
from broomwagon.lease import Lease
from broomwagon.verl import _callers, _servers
from broomwagon.verl import balancer as module
from broomwagon.verl.balancer import Balancer


@pytest.fixture
async def make() -> AsyncIterator[Any]:
    made: list[Balancer] = []

    def create(*servers: str, **settings: Any) -> Balancer:
        router_kwargs = {"router_class": "Router", "worker_ttl": 3, **settings}
        made.append(Balancer({server: f"handle of {server}" for server in servers}, router_kwargs))
        return made[-1]

    yield create
    for balancer in made:
        await balancer.close()


async def loads(balancer: Balancer) -> dict[str, int]:
    servers: dict[str, int] = (await balancer.get_status())["servers"]
    return servers


@pytest.mark.short
async def test_acquires_go_to_the_server_with_the_fewest_requests(make: Any) -> None:
    balancer = make("a:1", "b:1", "c:1")
    acquired = await asyncio.gather(*(balancer.acquire_server(f"r{n}") for n in range(9)))
    assert await loads(balancer) == {"a:1": 3, "b:1": 3, "c:1": 3}
    assert all(handle == f"handle of {server}" for server, handle in acquired)
    for n, (server, _) in enumerate(acquired):
        await balancer.release_server(server, f"r{n}")
    assert await balancer.get_total_inflight() == 0


@pytest.mark.short
@pytest.mark.parametrize(
    "field, value",
    [
        ("capacity", 2.5),
        ("capacity", "8"),
        ("capacity", 0),
        ("timeout", "1"),
        ("url", "http://x"),
        ("pool", "a b"),
        ("worker_ttl", 0),
        ("full_determinism", "yes"),
    ],
)
def test_a_wrong_setting_is_refused(field: str, value: Any) -> None:
    with pytest.raises(InvalidArgument) as refused:
        Balancer({}, {"router_class": "Router", field: value})
    assert refused.value.field == field


async def test_a_release_without_a_request_id_ends_the_oldest_one(make: Any) -> None:
    balancer = make("a:1")
    for _ in range(3):
        await balancer.acquire_server("r")
    await balancer.release_server("a:1")
    assert await balancer.get_inflight_count("a:1") == 2
    await balancer.release_server("a:1", "another")
    await balancer.release_server("b:1")
    assert await balancer.get_inflight_count("a:1") == 2
    assert await balancer.get_inflight_count("b:1") == 0


async def test_an_acquire_that_waits_blocks_no_release(make: Any) -> None:
    balancer = make("a:1", capacity=1)
    await balancer.acquire_server("first")
    second = asyncio.create_task(balancer.acquire_server("second"))
    assert await balancer.get_total_inflight() == 1
    await balancer.release_server("a:1", "first")
    assert (await second)[0] == "a:1"


async def test_a_cancelled_acquire_leaves_no_lease(make: Any) -> None:
    balancer = make("a:1")
    await balancer.get_total_inflight()
    for steps in range(40):
        acquire = asyncio.create_task(balancer.acquire_server("r"))
        for _ in range(steps):
            await asyncio.sleep(0)
        acquire.cancel()
        if not isinstance((await asyncio.gather(acquire, return_exceptions=True))[0], asyncio.CancelledError):
            await balancer.release_server("a:1", "r")
    assert balancer._client
    await until(lambda: _has(balancer, 0))
    assert len(balancer._client._session.leases) == 0


async def test_a_lease_is_held_until_its_release(make: Any) -> None:
    balancer = make("a:1", "b:1")
    server, _ = await balancer.acquire_server("r")
    # Commands of the load-balancer do not end the lease while verl still runs the request.
    for lease in balancer._client._session.leases:
        lease.work.move({"targetServerId": "another"})
        assert isinstance(lease.work, Lease) and lease.work._cause is None
        lease.work.stop("abort")
    for _ in range(10):
        await asyncio.sleep(0)
    assert await balancer.get_inflight_count(server) == 1
    await balancer.release_server(server, "r")
    assert await balancer.get_total_inflight() == 0


async def test_a_server_that_was_not_removed_gets_no_requests(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_INTERVAL", 0.05)
    balancer = make("a:1")
    await balancer.get_total_inflight()
    assert balancer._client
    # A failed removal leaves such a server in the pool.
    balancer._starts["b:1"] = 1
    await balancer._register(balancer._client, "b:1")
    acquired = await asyncio.gather(*(balancer.acquire_server(f"r{n}") for n in range(4)))
    assert {server for server, _ in acquired} == {"a:1"}
    await until(lambda: _lists(balancer, 1))


async def test_the_end_of_all_servers_ends_the_acquires_that_wait(make: Any) -> None:
    balancer = make("a:1", capacity=1)
    await balancer.acquire_server("first")
    second = asyncio.create_task(balancer.acquire_server("second"))
    await until(lambda: _waits(balancer))
    await balancer.remove_servers(["a:1"])
    for acquire in (second, balancer.acquire_server("third")):
        with pytest.raises(RuntimeError, match="No available servers in load balancer"):
            await acquire


class Caller:
    """Acquires and releases as verl's client does. As in Ray, arguments and results of calls are pickled."""

    def __init__(self, balancer: Balancer) -> None:
        self.balancer = balancer
        self.releases: list[asyncio.Future[None]] = []

    async def generate(self, request_id: str, work: Any) -> None:
        server_id, _ = pickle.loads(pickle.dumps(await self.balancer.acquire_server(request_id)))
        try:
            await work()
        finally:
            self._release_server(server_id)

    def _release_server(self, server_id: str) -> None:
        returned = pickle.loads(pickle.dumps(server_id))
        self.releases.append(asyncio.ensure_future(self.balancer.release_server(returned)))


class CallerOfUser(Caller):
    def _release_server(self, server_id: str) -> None:
        super()._release_server(server_id)


async def fails() -> None:
    raise OSError("the engine has died")


async def is_cancelled() -> None:
    raise asyncio.CancelledError


async def answers() -> None:
    pass


async def answer_after_another_error(caller: Caller, request_id: str, work: Any) -> None:
    try:
        raise OSError("a tool has failed")
    except OSError:
        await caller.generate(request_id, work)


@pytest.mark.short
@pytest.mark.parametrize("kind", [Caller, CallerOfUser])
@pytest.mark.parametrize(
    "generate, work, counts",
    [
        (Caller.generate, fails, True),
        (Caller.generate, is_cancelled, False),
        (Caller.generate, answers, False),
        (answer_after_another_error, answers, False),
    ],
)
async def test_calls_that_fail_count_against_their_servers(
    make: Any, monkeypatch: pytest.MonkeyPatch, kind: Any, generate: Any, work: Any, counts: bool
) -> None:
    class NoRenewals:
        def add(self, number: int) -> None: ...
        def drop(self, number: int) -> None: ...

    monkeypatch.setitem(_callers._renewals, b"actor", NoRenewals())
    balancer = make("a:1", "b:1")
    balancer._held._balancer = b"actor"
    caller = kind(balancer)
    await asyncio.gather(*(generate(caller, f"r{n}", work) for n in range(10)), return_exceptions=True)
    await asyncio.gather(*caller.releases)
    assert await balancer.get_total_inflight() == 0
    assert balancer._client
    servers = (await balancer._client.call("server.list", {}))["servers"]
    states = [each["state"] for each in servers if _servers.verl_id(each["serverId"], balancer._id)]
    # The load-balancer withholds servers after five failures in a row, and leaves half of the servers of the pool.
    assert ("suspect" in states) == counts


async def test_requests_of_a_removed_server_do_not_count(make: Any) -> None:
    balancer = make("a:1", "b:1")
    server, _ = await balancer.acquire_server("r")
    await balancer.remove_servers([server])
    assert await balancer.get_total_inflight() == 0
    await balancer.add_servers({server: "again"})
    other, _ = await balancer.acquire_server("r2")
    # This release is late: it belongs to the first start of the server.
    await balancer.release_server(server, "r")
    assert sum((await loads(balancer)).values()) == 1
    assert {server, other} <= {"a:1", "b:1"}


async def test_adding_a_live_server_keeps_its_requests(make: Any) -> None:
    balancer = make("a:1")
    await balancer.acquire_server("r")
    await balancer.add_servers({"a:1": "the same", "b:1": "new"})
    assert await loads(balancer) == {"a:1": 1, "b:1": 0}
    assert await balancer.get_all_servers() == ["a:1", "b:1"]


async def test_a_request_id_stays_until_its_session_is_cleared(make: Any) -> None:
    balancer = make("a:1", "b:1")
    first, _ = await balancer.acquire_server("r")
    await balancer.acquire_server("r")
    assert await balancer.get_inflight_count(first) == 2
    assert (await balancer.clear_sticky_cache())["server_loads"] == await loads(balancer)
    await balancer.release_server(first)
    await balancer.release_server(first)
    # A session that had leases is forgotten with the last one.
    await balancer.get_total_inflight()
    await balancer.acquire_server("x")
    await balancer.acquire_server("r")
    assert sorted((await loads(balancer)).values()) == [1, 1]


async def test_full_determinism_chooses_by_the_hash(make: Any) -> None:
    balancer = make("a:1", "b:1", "c:1", full_determinism=True)
    for request in ("x", "y", "z", "x"):
        server, _ = await balancer.acquire_server(request)
        assert server == ["a:1", "b:1", "c:1"][hash(request) % 3]


def test_a_capacity_is_refused_where_the_hash_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    # verl sets this variable, and does not pass `rollout.full_determinism` to a router.
    monkeypatch.setenv("VERL_FULL_DETERMINISM", "1")
    settings = {"router_class": "Router", "capacity": 8}
    with pytest.raises(InvalidArgument, match="full_determinism"):
        Balancer({}, settings)
    Balancer({}, {**settings, "full_determinism": False})


async def test_two_balancers_with_the_same_servers_do_not_meet(make: Any) -> None:
    first, second = make("a:1"), make("a:1")
    await first.acquire_server("r")
    await second.acquire_server("r")
    await second.remove_servers(["a:1"])
    assert (await loads(first), await loads(second)) == ({"a:1": 1}, {})


async def test_the_servers_of_a_balancer_that_died_are_removed(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    died, other = make("a:1"), make("b:1")
    await died.acquire_server("r")
    await other.get_total_inflight()
    assert died._client and died._checking and other._client
    died._checking.cancel()
    # State after the death of the process: nothing renews the worker.
    await died._client.close()
    died._client = None
    looks = other._pool_servers
    for _ in range(_servers.ORPHAN_LOOKS - 1):
        await looks.remove_orphans(other._client)
    # A live balancer may also have no worker, while its epoch has expired.
    assert await _names(other, died, other) == ["a:1", "b:1"]
    await looks.remove_orphans(other._client)
    assert await _names(other, died, other) == ["b:1"]


async def test_a_pool_of_one_balancer_needs_no_labels(make: Any) -> None:
    first = make("a:1")
    await first.get_total_inflight()
    # The first balancer assumes that nobody else has servers.
    first._pool_servers.is_shared = False
    second = make("b:1", "c:1", "d:1")
    await second.get_total_inflight()
    acquired = await asyncio.gather(*(first.acquire_server(f"r{n}") for n in range(8)))
    assert {server for server, _ in acquired} == {"a:1"}
    assert first._pool_servers.is_shared
    await until(lambda: _has(second, 0))
    assert await first.get_total_inflight() == 8


async def test_lost_servers_are_registered_again(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHECK_INTERVAL", 0.05)
    balancer = make("a:1", "b:1")
    await balancer.get_total_inflight()
    assert balancer._client
    await balancer._pool_servers.remove(balancer._client, "a:1")
    await until(lambda: _lists(balancer, 2))


def test_a_setting_that_is_not_known_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="does not know capactiy; it has capacity"):
        Balancer({}, {"router_class": "Router", "capactiy": 3})


def test_the_parameters_of_verls_own_class() -> None:
    Balancer(servers={"a:1": None}, max_cache_size=10_000, full_determinism=True)
    Balancer({"a:1": None}, 10_000)  # type: ignore[arg-type]


async def _names(balancer: Balancer, *owners: Balancer) -> list[str]:
    """Servers of these balancers, as the pool has them."""
    assert balancer._client
    servers = await _servers._all(balancer._client, "server.list", "servers")
    names = [_servers.verl_id(each["serverId"], owner._id) for each in servers for owner in owners]
    return sorted(name for name in names if name)


async def _waits(balancer: Balancer) -> bool:
    assert balancer._client
    return (await balancer._client.call("lb.status", {}))["waiters"] == 1


async def _lists(balancer: Balancer, count: int) -> bool:
    assert balancer._client
    return len(await balancer._pool_servers.in_flight(balancer._client)) == count


async def _has(balancer: Balancer, count: int) -> bool:
    return await balancer.get_total_inflight() == count
