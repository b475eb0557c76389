"""A balancer with the methods of verl's GlobalRequestLoadBalancer and RequestLoadBalancer, over Broomwagon."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any
from uuid import uuid4

from .. import errors
from .._error import BroomwagonError
from ..client import Client
from ._actors import ServerActors
from ._callers import own_actor
from ._holding import Holding
from ._opening import Opening
from ._requests import HeldRequests
from ._servers import PoolServers, labels_of, pool_id, verl_id
from ._settings import Settings, check_bound
from ._steps import Steps

logger = logging.getLogger("broomwagon")

#: verl's clients search errors for this text, and then ask again after a second.
NO_SERVERS = "No available servers in load balancer"
#: Seconds within which a dead actor refuses a request. After such a short request, the actor is checked.
SHORT_REQUEST = 0.5
#: Seconds between checks whether Redis has the servers, and whether processes renew their requests.
CHECK_INTERVAL = 5.0
#: Seconds until another acquire, if the granted server is being removed.
REMOVAL_PAUSE = 0.05


class Balancer(Steps):
    """Balancer of one set of servers, as a Ray actor. Any number of clients may take leases of these servers without
    the actor: the pool counts all requests.

    verl creates a balancer as `Balancer(servers, router_kwargs)` for `rollout.router_config_path`, and as
    `Balancer(servers=..., max_cache_size=..., full_determinism=...)` in the place of its own class.

    :param servers: handles of Ray by server id (address). The handles stay in this actor; only ids reach the pool
    :param router_kwargs: settings, each optional
        `url`, `pool`, `worker_ttl`: as in `Client`
        `capacity`: requests that a server may have at the same time; further requests wait
        `timeout`: seconds that a request waits for a server (600)
        `full_determinism`: as the parameter `full_determinism`
    :param max_cache_size: not used; the pool limits its sessions
    :param full_determinism: choose servers by the hash of the request id, as verl does. Without parameter and
        setting, the variable VERL_FULL_DETERMINISM decides, which verl sets
    :raises InvalidArgument: a setting is wrong
    """

    def __init__(
        self,
        servers: Mapping[str, Any],
        router_kwargs: Mapping[str, Any] | None = None,
        max_cache_size: int | None = None,
        full_determinism: bool | None = None,
    ) -> None:
        super().__init__()
        # verl 0.9.0 may pass the size of the cache by position.
        given = router_kwargs if isinstance(router_kwargs, Mapping) else {}
        self._settings = Settings(given, full_determinism)
        self._id = f"verl-{uuid4().hex[:12]}"
        self._pool_servers = PoolServers(self._id, self._settings.capacity)
        self._servers: dict[str, Any] = {}
        #: Number of starts of each server: a server that is added again has an empty cache and no requests.
        self._starts: dict[str, int] = {}
        self._held = HeldRequests(own_actor())
        self._acquiring: set[Holding] = set()
        self._actors = ServerActors(self._remove_dead)
        self._client: Client | None = None
        self._opening = Opening(self._open)
        self._checking: asyncio.Task[None] | None = None
        #: Lock for changes of servers in the pool: a repeated removal must not remove the next start of a server.
        self._changing = asyncio.Lock()
        self._name(servers)

    async def acquire_server(self, request_id: str, **_: Any) -> tuple[str, Any]:
        """Turns of one request id go to one server. A new request id goes to the server with the fewest requests.

        :raises RuntimeError: "No available servers in load balancer"
        """
        client = await self._opening.client()
        while True:
            if not self._servers:
                raise RuntimeError(NO_SERVERS)
            bound = await self.bound_server(request_id)
            holding = self._holding(client, request_id, bound)
            self._acquiring.add(holding)
            try:
                server_id = verl_id((await holding.server()).server_id, self._id)
            except errors.NoServerAvailable as error:
                raise RuntimeError(NO_SERVERS) from error
            finally:
                self._acquiring.discard(holding)
            if server_id is not None and server_id in self._servers:
                check_bound(request_id, bound, server_id)
                return self._held.add(server_id, request_id, holding), self._servers[server_id]
            self._held.end(holding)
            if server_id is None:
                self._pool_servers.is_shared = True
            else:
                # The server is about to be removed from the pool.
                await asyncio.sleep(REMOVAL_PAUSE)

    async def release_server(self, server_id: str, request_id: str | None = None) -> None:
        """Ends the request for which `acquire_server` has returned this server id. A plain text as server id ends the
        oldest request with `request_id` on the server, or without `request_id` the oldest request of the server.
        Without such a request nothing changes."""
        has_failed = getattr(server_id, "has_failed", False)
        request = self._held.release(server_id, request_id, failed=has_failed)
        if request is not None and (has_failed or time.monotonic() - request.began_at < SHORT_REQUEST):
            self._actors.nudge(server_id)

    async def renew_requests(self, numbers: list[int]) -> None:
        """Renews requests that the calling process still holds."""
        self._held.renew(numbers)

    async def bound_server(self, request_id: str) -> str | None:
        """The server that `full_determinism` chooses; None without it, or without servers."""
        if not self._settings.full_determinism or not self._servers:
            return None
        return list(self._servers)[hash(request_id) % len(self._servers)]

    async def is_dead(self, server_id: str) -> bool:
        """Whether the actor of the server has died, or the server is removed. A dead server is removed first."""
        return await self._actors.is_dead(server_id)

    async def add_servers(self, servers: Mapping[str, Any]) -> None:
        client = await self._opening.client()
        self._name({server_id: handle for server_id, handle in servers.items() if server_id not in self._servers})
        self._servers.update(servers)
        async with self._changing:
            await asyncio.gather(*(self._register(client, server_id) for server_id in servers))
        for server_id, handle in servers.items():
            self._actors.watch(server_id, handle)

    async def remove_servers(self, server_ids: list[str]) -> None:
        """Removes servers. Their requests no longer count, and late releases of these requests change nothing."""
        client = await self._opening.client()
        for server_id in server_ids:
            self._servers.pop(server_id, None)
            self._actors.forget(server_id)
            self._held.drop(server_id)
        if not self._servers:
            for holding in list(self._acquiring):
                holding.refuse(errors.NoServerAvailable(NO_SERVERS))
        async with self._changing:
            removed = [server_id for server_id in server_ids if server_id not in self._servers]
            await asyncio.gather(*(self._pool_servers.remove(client, each) for each in removed))

    async def clear_sticky_cache(self) -> dict[str, Any]:
        """Forgets the server of each request id. Other balancers of the pool lose their sessions too."""
        client = await self._opening.client()
        cleared = await client.call("lb.clear-sessions", {})
        return {"cleared_entries": cleared["cleared"], "server_loads": await self._loads()}

    async def get_inflight_count(self, server_id: str) -> int:
        return (await self._loads()).get(server_id, 0)

    async def get_all_servers(self) -> list[str]:
        return list(self._servers)

    async def get_handles(self) -> dict[str, Any]:
        """The handles of the servers, for clients that take leases of the pool themselves."""
        return dict(self._servers)

    async def get_route(self) -> dict[str, Any]:
        """Settings of a client that takes leases itself: parameters of `Client`, the id of this balancer, the `timeout`
        of leases, and whether the pool has servers of others."""
        client = await self._opening.client()
        return {
            "client": {**self._settings.client, "pool": client.pool},
            "balancer": self._id,
            "timeout": self._settings.timeout,
            "is_shared": self._pool_servers.is_shared,
        }

    async def get_status(self) -> dict[str, Any]:
        loads = await self._loads()
        return {
            "servers": loads,
            "total_inflight": sum(loads.values()),
            "active_servers": len(loads),
            "registered_handles": list(self._servers),
        }

    async def get_total_inflight(self) -> int:
        return sum((await self._loads()).values())

    async def require_acquire_fields(self) -> list[str]:
        return []

    async def require_release_fields(self) -> list[str]:
        return ["request_id"]

    async def close(self) -> None:
        """Removes the servers from the pool. verl does not call `close`; the next balancer of the pool removes them."""
        if self._opening.is_begun:
            with suppress(Exception):
                await self._opening.client()
        if self._client is None:
            return
        if self._checking:
            self._checking.cancel()
        await self.remove_servers(list(self._servers))
        await self._client.close()

    def _name(self, servers: Mapping[str, Any]) -> None:
        for server_id, handle in servers.items():
            self._servers[server_id] = handle
            self._starts[server_id] = self._starts.get(server_id, 0) + 1

    def _holding(self, client: Client, request_id: str, bound: str | None) -> Holding:
        lease = client.lease(
            request_id,
            session_id=pool_id(request_id, self._id),
            bound_server_id=None if bound is None else pool_id(bound, self._id),
            # The load-balancer chooses faster without labels.
            labels=labels_of(self._id) if self._pool_servers.is_shared else None,
            timeout=self._settings.timeout,
        )
        # The request cannot move: it runs on the server to which verl has sent it.
        lease.is_movable = False
        return Holding(lease, lambda cause: logger.warning("The lease of %s is to end: %s", request_id, cause))

    async def _open(self) -> Client:
        client = Client(worker_id=self._id, **self._settings.client)
        await client.connect()
        try:
            assert client._session
            await client._session.established()
            await asyncio.gather(*(self._register(client, server_id) for server_id in self._servers))
            await self._pool_servers.in_flight(client)
        except BaseException:
            await client.close()
            raise
        self._checking = asyncio.create_task(self._check_always(client))
        for server_id, handle in self._servers.items():
            self._actors.watch(server_id, handle)
        self._client = client
        return client

    async def _remove_dead(self, server_id: str, handle: Any) -> None:
        """Removes a server whose actor has died. Its requests end as failed, which counts against the server; requests
        that return go to other servers."""
        if self._servers.get(server_id) is not handle:
            return
        logger.error("The actor of server %s has died: no request goes to it until add_servers names it", server_id)
        self._held.drop(server_id, failed=True)
        await self.remove_servers([server_id])

    async def _loads(self) -> dict[str, int]:
        client = await self._opening.client()
        await self._held.settled()
        await client.settled()
        loads = await self._pool_servers.in_flight(client)
        return {server_id: loads.get(server_id, 0) for server_id in self._servers}

    async def _register(self, client: Client, server_id: str) -> None:
        await self._pool_servers.register(client, server_id, self._starts[server_id])

    async def _check_always(self, client: Client) -> None:
        """Registers servers again if Redis has lost them. Removes servers that are no longer wanted, also servers of
        dead balancers."""
        while True:
            await asyncio.sleep(CHECK_INTERVAL)
            self._held.check()
            try:
                async with self._changing:
                    present = await self._pool_servers.in_flight(client)
                    missing = [server_id for server_id in self._servers if server_id not in present]
                    surplus = [server_id for server_id in present if server_id not in self._servers]
                    await asyncio.gather(
                        *(self._register(client, server_id) for server_id in missing),
                        *(self._pool_servers.remove(client, server_id) for server_id in surplus),
                    )
                await self._pool_servers.remove_orphans(client)
            except BroomwagonError as error:
                logger.warning("The servers of %s were not checked: %s", self._id, error)
            except Exception:
                logger.exception("The servers of %s were not checked", self._id)
