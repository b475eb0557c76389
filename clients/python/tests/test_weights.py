"""The calls of a trainer that changes the weights of the engines."""

from __future__ import annotations

import pytest

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
