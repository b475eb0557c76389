"""The calls of a trainer that changes the weights of the engines."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import lose_changes, step_of

from broomwagon import Client, blocking, errors


async def test_a_change_of_weights_begins_is_reported_and_committed(client: Client) -> None:
    weights = client.weights
    before = await weights.status()
    version = before.get("version", 0) + 1
    begun = await weights.begin(version, wait=10)
    with pytest.raises(errors.WeightSyncConflict):
        await client.call("weights.begin", {"syncId": "other", "version": version, "mode": "abort"}, deadline=0.5)
    repeated = await weights.begin(version, sync_id=begun["syncId"], deadline=600)
    assert repeated["state"] == "begun"
    assert await weights.report(version) == []
    assert (await weights.status())["sync"]["confirmedServers"] == begun["servers"]
    assert (await weights.commit(begun["syncId"]))["state"] == "committed"
    assert (await weights.status())["version"] == version
    async with client.lease("after") as server:
        assert server.weight_version == version


def test_a_change_of_weights_is_rolled_back_without_asyncio() -> None:
    with blocking.Client() as client:
        version = client.weights.status().get("version", 0)
        begun = client.weights.begin(version + 1, mode="keep")
        assert client.weights.rollback(begun["syncId"])["state"] == "rolled-back"
        assert client.weights.status().get("version", 0) == version


async def test_a_trainer_repeats_its_last_change_after_redis_was_set_back(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rollout = client.rollout(served, groups=1, samples=1, max_tokens=8)
    prompts = ["a", "b"]
    assert await step_of(rollout, prompts) == ["a"]
    weights = client.weights
    version = (await weights.status()).get("version", 0) + 1
    begun = await weights.begin(version, wait=10, job=served, trainer_epoch=rollout._job.epoch)
    await weights.report(version)
    await weights.commit(begun["syncId"], trainer_epoch=rollout._job.epoch)
    calls: list[tuple[str, dict[str, Any]]] = []
    call = type(client._connected).call

    async def recorded(connection: Any, operation: str, body: dict[str, Any], **options: Any) -> Any:
        calls.append((operation, body))
        return await call(connection, operation, body, **options)

    monkeypatch.setattr(type(client._connected), "call", recorded)
    lose_changes(rollout)
    assert await step_of(rollout, prompts) == ["b"]
    repeated = [(operation, body.get("syncId")) for operation, body in calls if operation.startswith("weights.")]
    assert [one for one in repeated if one[1]] == [(f"weights.{name}", begun["syncId"]) for name in ("begin", "commit")]
    assert {body["weightVersion"] for operation, body in calls if operation == "server.update"} == {version}
    assert (await weights.status())["version"] == version
