"""Services of an earlier version do not send fields that came later."""

from __future__ import annotations

from typing import Any

import pytest

from broomwagon import Client
from broomwagon._metrics import ledger_metrics

#: Fields of replies to a rollout, a lease or a worker that are newer than the first version, or may be left out.
LATER = {
    *("excluded", "lastFailures", "acceptance", "ledger", "domain", "newByDomain"),
    *("syncAsked", "generation", "model", "dpRank", "decision", "priority"),
}


def without_later(value: Any) -> Any:
    if isinstance(value, list):
        return [without_later(each) for each in value]
    if isinstance(value, dict):
        return {name: without_later(each) for name, each in value.items() if name not in LATER}
    return value


@pytest.mark.short
async def test_fields_that_an_earlier_service_does_not_send_are_not_needed(
    client: Client, served: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = client._connected.request
    left_out: set[str] = set()

    async def request_earlier(operation: str, *rest: Any) -> Any:
        reply = await request(operation, *rest)
        earlier = without_later(reply)
        if earlier != reply:
            left_out.add(operation)
        return earlier

    monkeypatch.setattr(client._connected, "request", request_earlier)
    rollout = client.rollout(served, groups=2, samples=1, max_tokens=16)
    groups = [group async for group in rollout.round(["a", "b"], "wait")]
    assert len(groups) == 2
    assert {(group.cuts, group.first_step, group.excluded) for group in groups} == {(0, 1, False)}
    assert rollout.metrics["response_length/mean"] > 0
    ledger = await rollout.ledger()
    assert ledger["rollout/samples"] == 2
    assert "rollout/excluded_groups" not in ledger
    async with client.lease("request"):
        assert client._session is not None
        await client._session._beat(await client._session.established())
    assert left_out >= {"round.results", "job.ledger", "worker.heartbeat"}


def test_a_ledger_may_lack_any_field() -> None:
    assert ledger_metrics({}) == {}
    assert ledger_metrics({"waste": {"tokens": 3}, "trained": {}}) == {"rollout/wasted_tokens": 3.0}
    lengths = {"short": {"samples": 2, "meanTokens": 150, "capShare": 0.5}, "long": {"meanTokens": 300}}
    assert ledger_metrics({"trainedByKind": lengths}) == {
        "rollout/short_rounds/samples": 2.0,
        "rollout/short_rounds/response_length": 150.0,
        "rollout/short_rounds/clip_ratio": 0.5,
        "rollout/long_rounds/response_length": 300.0,
    }
