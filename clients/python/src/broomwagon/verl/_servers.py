"""The servers of a balancer of verl, as the pool has them."""

from __future__ import annotations

import asyncio
from typing import Any

from ..client import Client

#: Label of a server: the balancer that registered it.
LABEL = "verl-balancer"
#: Successive checks of the pool that must find a balancer without a worker before its servers are removed. The epoch of
#: a live balancer may have expired while NATS was away; its next heartbeat registers it again.
ORPHAN_LOOKS = 3


class PoolServers:
    """Registers and removes servers, under ids and a label that no other balancer of the pool has."""

    def __init__(self, balancer: str, capacity: int) -> None:
        self.balancer = balancer
        self._capacity = capacity
        #: Number of checks that have found servers of a balancer without a worker, by balancer.
        self._orphans: dict[str, int] = {}
        #: Whether the pool has servers of others.
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
            # The address may be a name that only Ray knows; verl detects the end of an engine by its actor.
            "probe": False,
        }
        await client._connected.call("server.register", body)

    async def remove(self, client: Client, server_id: str) -> None:
        await client.call("server.remove", {"serverId": pool_id(server_id, self.balancer)})

    async def in_flight(self, client: Client) -> dict[str, int]:
        """The servers that the pool has of this balancer, with their requests."""
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
    """The id in the pool of a server or session of verl: two balancers of verl may have servers of the same id."""
    return f"{name}@{balancer}"


def verl_id(server_id: str, balancer: str) -> str | None:
    """The id at verl of a server of the pool; None if it is not of this balancer."""
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
