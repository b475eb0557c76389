"""The client without asyncio."""

from __future__ import annotations

from uuid import uuid4

import pytest

from broomwagon import LeaseStopped, errors
from broomwagon.blocking import Client

JOB = "served"


def leases_of(client: Client, worker_id: str) -> int:
    return len(client.call("lb.leases", {"workerId": worker_id})["leases"])


def test_a_lease_is_held_within_its_block() -> None:
    worker_id = f"blocking-{uuid4().hex}"
    with Client(worker_id=worker_id) as client:
        with client.lease("request") as server:
            assert server.endpoint.startswith("http://")
            assert leases_of(client, worker_id) == 1
        with pytest.raises(KeyError), client.lease("request"):
            raise KeyError("of the caller")
        client.settled()
        assert leases_of(client, worker_id) == 0
        with pytest.raises(errors.NoServerAvailable), client.lease("request", labels={"gpu": "none"}, timeout=0.2):
            pass
        aborted = uuid4().hex
        with pytest.raises(LeaseStopped), client.lease(aborted):
            client.call("request.abort", {"abortId": uuid4().hex, "requestIds": [aborted], "waitMs": 5000})
    with Client() as client, pytest.raises(errors.WorkerNotFound):
        leases_of(client, worker_id)


def test_a_round_is_a_loop() -> None:
    with Client() as client:
        rollout = client.rollout(JOB, groups=2, samples=1, max_tokens=16)
        for _ in rollout.round(["a", "b"], "wait"):
            break
        assert sorted(str(group.prompt) for group in rollout.round(["a", "b"], "wait")) == ["a", "b"]
        assert rollout.step == rollout.metrics["training/global_step"] == 1
        assert rollout.ledger()["rollout/samples"] == 2
        client.call("job.delete", {"job": JOB, "force": True})


def test_no_nats_is_an_error() -> None:
    with pytest.raises(errors.Unavailable), Client("nats://127.0.0.1:1", connect_timeout=0.3):
        pass
