"""A trainer in Python reaches each field of the protocol, or the field is excluded here by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from broomwagon import Client

SCHEMA = Path(__file__).parents[3] / "docs" / "protocol" / "asyncapi.json"

#: Fields of requests that the client does not send, with the reason.
EXCLUDED = {
    "round.next": {},
    "round.open": {
        "weightVersion": "the version of the pool is the only one that is accepted",
        "workerKind": "the worker of this test has no kind; see test_worker_kinds.py",
    },
    "round.takeover": {},
    "round.submit": {},
    "round.submit groups": {},
    "round.status": {},
    "round.results": {"limit": "the client reads pages"},
    "round.reward": {},
    "round.close": {
        "rewards": "reported before, by Rollout.reward",
        "remainingGroups": "sent with round.reward",
    },
    "round.cancel": {"reason": "the trainer itself cancels"},
    "group.list": {"limit": "the client reads pages"},
    "job.reconcile": {
        "step": "sent after a loss of Redis, see test_trainer_faults.py",
        "groups": "as step",
        "isLast": "as step",
    },
    "job.snapshot": {},
    "job.restore": {},
    "job.ledger": {},
    "job.status": {"stamp": "a count before the first round"},
}
#: Operations of rounds and jobs that a Rollout does not call: `Client.call` does.
OTHER_OPERATIONS = {
    *("round.list", "job.list", "job.snapshots"),
    # Operators call these.
    *("job.configure", "job.delete"),
}


def fields_of(spec: Any, schema: dict[str, Any]) -> set[str]:
    while "$ref" in schema:
        schema = spec["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return set(schema.get("properties", {}))


@pytest.mark.short
@pytest.mark.skipif(not SCHEMA.exists(), reason="the schema is in the repository only")
async def test_each_field_of_a_trainer_is_reached(client: Client, served: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: dict[str, set[str]] = {}
    call: Any = client._connected.call

    async def call_and_note(operation: str, body: dict[str, Any], **options: Any) -> Any:
        sent.setdefault(operation, set()).update(body)
        for group in body.get("groups", []) if operation == "round.submit" else []:
            sent.setdefault("round.submit groups", set()).update(group)
        return await call(operation, body, **options)

    monkeypatch.setattr(client._connected, "call", call_and_note)
    options: Any = {
        **{"groups": 2, "samples": 2, "max_tokens": 16, "min_samples": 1, "sampling": {"temperature": 1.0}},
        **{"timeout": 60, "priority": 3, "abort_scope": "sample", "orphan_after": 60},
    }
    rollout = client.rollout(served, **options)
    prompts = [
        {"text": "Hello", "domain": "chat", "promptId": uuid4().hex},
        {"text": "x" * 30_000, "domain": "long"},
        *({"text": f"prompt {number}", "domain": "chat"} for number in range(4)),
    ]
    policy: Any = {
        **{"name": "resume", "overProvision": 1, "equalRewards": "replace", "shortfall": "accept-fewer"},
        "domainQuotas": {"chat": 1, "long": 1},
    }
    async for group in rollout.round(prompts, policy):
        await rollout.reward(group, [0, 1])
    await rollout.save("one", keep=2)
    async for _ in rollout.round(prompts, policy):
        break
    rollout = client.rollout(served, groups=2, samples=2, max_tokens=16)
    async for _ in rollout.round(prompts, policy):
        break
    await rollout.restore("one")
    await rollout.ledger()

    spec = json.loads(SCHEMA.read_text())
    operations = {name for name in spec["operations"] if name.startswith(("round.", "job."))} | {"group.list"}
    assert operations - OTHER_OPERATIONS == {name for name in EXCLUDED if " " not in name}
    for name, excluded in EXCLUDED.items():
        operation, _, part = name.partition(" ")
        schema = spec["channels"][operation]["messages"]["request"]["payload"]
        fields = fields_of(spec, spec["components"]["schemas"]["GroupSubmission"] if part else schema)
        assert fields - sent[name] == set(excluded), name
