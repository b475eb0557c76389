"""Calls of the trainer beside its rounds: new weights, and the clocks of the engines."""

from __future__ import annotations

import asyncio
import json
import urllib.request
from pathlib import Path
from typing import Any
from uuid import uuid4

from broomwagon import Client

#: Most requests of one engine.
MAX_INFLIGHT = 512
#: Milliseconds that the change waits for requests to end.
QUIESCE_WAIT_MS = 2_000
ENGINE_DEADLINE = 30.0


class Fleet:
    """The engines of the pool.

    :param engines: addresses of the engines, by server id
    """

    def __init__(self, client: Client, engines: dict[str, str]) -> None:
        self._client = client
        self._engines = engines

    async def version(self) -> int:
        """Weight version of the pool; -1 before the first."""
        return (await self._client.call("weights.status", {})).get("version", -1)

    async def publish(self, job: str, version: int, file: Path) -> None:
        """Gives all engines the weights of a file; continues an unfinished change to this version, if any."""
        sync = (await self._client.call("weights.status", {})).get("sync")
        is_begun = sync is not None and sync["state"] == "begun" and sync["version"] == version
        sync_id = sync["syncId"] if sync and is_begun else f"{job}-{version}-{uuid4().hex[:8]}"
        await self._client.call(
            "weights.begin", {"syncId": sync_id, "version": version, "mode": "abort", "waitMs": QUIESCE_WAIT_MS}
        )
        body = {"model_path": str(file), "weight_version": str(version)}
        await self._each("/update_weights_from_disk", body)
        await self.register(version)
        # The commit is refused, and repeated, as long as requests run.
        await self._client.call("weights.commit", {"syncId": sync_id})

    async def register(self, version: int) -> None:
        """Registers the engines with this version of their weights."""
        infos = await self._each("/get_server_info")
        for (server_id, endpoint), info in zip(self._engines.items(), infos, strict=True):
            await self._client.call(
                "server.register",
                {
                    "serverId": server_id,
                    "endpoint": endpoint,
                    "dialect": "sglang",
                    "instanceId": info["instance_id"],
                    "maxInflight": MAX_INFLIGHT,
                    "weightVersion": version,
                },
            )

    async def clocks(self) -> dict[str, float]:
        """Simulated seconds that each engine has decoded."""
        replies = await self._each("/simulated_clock")
        return {name: reply["seconds"] for name, reply in zip(self._engines, replies, strict=True)}

    async def _each(self, path: str, body: dict[str, Any] | None = None) -> list[Any]:
        calls = (asyncio.to_thread(_call, f"{endpoint}{path}", body) for endpoint in self._engines.values())
        return await asyncio.gather(*calls)


def _call(url: str, body: dict[str, Any] | None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    with urllib.request.urlopen(urllib.request.Request(url, data), timeout=ENGINE_DEADLINE) as reply:
        return json.load(reply)
