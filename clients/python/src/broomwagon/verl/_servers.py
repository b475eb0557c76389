"""The servers of a balancer of verl, as the pool has them."""

from __future__ import annotations

import asyncio
from typing import Any

from ..client import Client

#: Label of a server, with the balancer that has registered the server.
LABEL = "verl-balancer"
#: Successive checks that find no worker of a balancer before its servers are removed. The worker epoch of a live
#: balancer may expire while NATS is away; the balancer registers again with its next heartbeat.
ORPHAN_LOOKS = 3


class PoolServers:
    """Registers and removes servers, under ids and a label that no other balancer of the pool has."""

    def __init__(self, balancer: str, capacity: int) -> None:
        self.balancer = balancer
        self._capacity = capacity
        #: Number of checks that have found servers of a balancer without a worker, by balancer.
        self._orphans: dict[str, int] = {}
        #: Whether the pool has servers that are not of this balancer.
        self.is_shared = False

    async def register(self, client: Client, server_id: str, start: int) -> None:
        """:param start: number of this start: a server that is added again has an empty cache and no requests"""
        body: dict[str, Any] = {
            "serverId": pool_id(server_id, self.balancer),
            "instanceId": f"{self.balancer}-{start}",
            "endpoint": f"http://{server_id}",
            "dialect": "openai",
            "maxInflight": self._capacity,
            "labels": labels_of(self.balancer),
            # Only Ray may know the address, so the server is not probed; its actor shows whether the engine lives.
            "probe": False,
        }
        await client._connected.call("server.register", body)

    async def remove(self, client: Client, server_id: str) -> None:
        await client.call("server.remove", {"serverId": pool_id(server_id, self.balancer)})

    async def in_flight(self, client: Client) -> dict[str, int]:
        """The servers of this balancer in the pool, with their requests in flight."""
        servers = await _all(client, "server.list", "servers")
        own = [each for each in servers if each.get("labels", {}).get(LABEL) == self.balancer]
        self.is_shared = len(own) < len(servers)
        return {each["serverId"].rpartition("@")[0]: each["inflight"] for each in own}

    async def remove_orphans(self, client: Client) -> None:
        """Removes servers whose balancer has had no worker for `ORPHAN_LOOKS` calls."""
        owners: dict[str, list[str]] = {}
        for server in await _all(client, "server.list", "servers"):
            if owner := server.get("labels", {}).get(LABEL):
                owners.setdefault(owner, []).append(server["serverId"])
        alive = {worker["workerId"] for worker in await _all(client, "worker.list", "workers")} if owners else set()
        self._orphans = {owner: self._orphans.get(owner, 0) + 1 for owner in owners if owner not in alive}
        dead = [owner for owner, looks in self._orphans.items() if looks >= ORPHAN_LOOKS]
        removed = [server_id for owner in dead for server_id in owners[owner]]
        await asyncio.gather(*(client.call("server.remove", {"serverId": server_id}) for server_id in removed))


def pool_id(name: str, balancer: str) -> str:
    """The id in the pool for a server or session of verl. Two balancers of verl may have servers with the same id."""
    return f"{name}@{balancer}"


def verl_id(server_id: str, balancer: str) -> str | None:
    """The id in verl for a server of the pool; None for a server of another balancer."""
    name, _, owner = server_id.rpartition("@")
    return name if owner == balancer else None


def labels_of(balancer: str) -> dict[str, str]:
    """The labels of the servers of a balancer."""
    return {LABEL: balancer}


async def _all(client: Client, operation: str, field: str) -> list[dict[str, Any]]:
    """All pages of a list."""
    found: list[dict[str, Any]] = []
    page: dict[str, Any] = {}
    while True:
        reply = await client._connected.call(operation, page)
        found += reply[field]
        if "cursor" not in reply:
            return found
        page = {"cursor": reply["cursor"]}
