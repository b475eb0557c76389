"""Leases: acquired and released exactly once, whatever happens in between."""

from __future__ import annotations

import asyncio
import os
import pickle
from typing import Any
from uuid import uuid4

import pytest
from conftest import cancelled_at, leases_of, until, until_set, until_stopped

from broomwagon import Client, LeaseStopped, StepFailed, errors
from broomwagon._wire_error import error_of

#: Cancellations of one run.
CANCELLATIONS = int(os.environ.get("CANCELLATIONS", "1000"))


@pytest.mark.short
async def test_a_lease_is_held_within_its_block(client: Client) -> None:
    async with client.lease("request", session_id="session") as server:
        assert server.endpoint.startswith("http://")
        assert server.dialect == "vllm"
        assert await leases_of(client) == 1
    await client.settled()
    assert await leases_of(client) == 0


async def test_turns_of_a_session_stay_on_one_server(client: Client) -> None:
    session = uuid4().hex
    servers = set()
    for _ in range(5):
        async with client.lease("request", session_id=session) as server:
            servers.add(server.server_id)
    assert len(servers) == 1
    await client.finish_session(session)


@pytest.mark.short
async def test_acquires_of_one_turn_are_one_call(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async with client.lease("registers"):
        pass
    await client.settled()
    sent: list[str] = []
    request = client._connected.request

    async def counted(operation: str, *rest: Any) -> Any:
        sent.append(operation)
        return await request(operation, *rest)

    monkeypatch.setattr(client._connected, "request", counted)
    leases: set[str] = set()
    all_hold = asyncio.Event()

    async def use(index: int) -> None:
        async with client.lease(f"request-{index}") as server:
            leases.add(server.lease_id)
            if len(leases) == 64:
                all_hold.set()
            await until_set(all_hold)

    await asyncio.gather(*(use(index) for index in range(64)))
    await client.settled()
    # Heartbeats are sent too. A call without a reply in time is repeated, an acquire then alone.
    calls = [operation for operation in sent if operation.startswith("lb.")]
    assert (calls[0], calls[-1]) == ("lb.acquire-many", "lb.release-many")
    assert "lb.release" not in calls
    assert await leases_of(client) == 0


async def test_a_wrong_acquire_or_release_fails_alone(client: Client) -> None:
    async def use(index: int, **options: Any) -> None:
        lease = client.lease(f"request-{index}", **options)
        async with lease:
            await asyncio.sleep(0)
            if index == 0:
                lease.tokens = -1

    wrong = (use(8, priority=10), use(9, labels={"gpu": object()}))
    ended = await asyncio.gather(*(use(index) for index in range(8)), *wrong, return_exceptions=True)
    assert [type(error) for error in ended] == [type(None)] * 8 + [errors.ValidationFailed, TypeError]
    await client.settled()
    # The release with wrong tokens was refused; a sync returns the lease.
    assert await leases_of(client) <= 1


async def test_many_acquires_are_explained(client: Client) -> None:
    async def use(index: int) -> bool:
        async with client.lease(f"request-{index}", explain=True) as server:
            return server.decision is not None

    assert all(await asyncio.gather(*(use(index) for index in range(20))))


@pytest.mark.short
async def test_a_cancellation_at_any_await_leaks_nothing(client: Client) -> None:
    async def use() -> None:
        async with client.lease(uuid4().hex):
            await asyncio.sleep(0)
            await client.call("lb.status", {})
        await asyncio.sleep(0)

    async def one(step: int) -> bool:
        return await cancelled_at(use(), step)

    steps: set[int] = set()
    count = 0
    while count < CANCELLATIONS:
        step = 1
        # Eight run at a time, so that calls with one acquire and with many are cancelled.
        while any(await asyncio.gather(*(one(step) for _ in range(8)))):
            steps.add(step)
            count += 8
            step += 1
    assert len(steps) >= 4
    await client.settled()
    assert await leases_of(client) == 0
    assert client._session is not None
    assert len(client._session.leases) == 0


@pytest.mark.short
async def test_an_abort_cancels_the_task_of_its_lease(client: Client) -> None:
    holding = asyncio.Event()
    other, aborted = uuid4().hex, uuid4().hex

    async def use(request_id: str) -> str:
        try:
            async with client.lease(request_id):
                if request_id == aborted:
                    holding.set()
                    await until_stopped()
                await until_set(holding)
                await client.call("request.abort", {"abortId": uuid4().hex, "requestIds": [aborted], "waitMs": 5000})
        except LeaseStopped as stopped:
            return stopped.cause
        return "finished"

    assert tuple(await asyncio.gather(use(aborted), use(other))) == ("abort", "finished")
    await client.settled()
    assert await leases_of(client) == 0


async def test_an_abort_during_a_move_ends_the_request(client: Client) -> None:
    lease = client.lease(uuid4().hex)
    with pytest.raises(LeaseStopped) as stopped:
        async with lease:
            lease.move({"targetServerId": "another"})
            lease.stop("abort")
            await until_stopped()
    assert stopped.value.cause == "abort"


async def test_a_lease_that_is_moved_continues_on_the_other_server(client: Client) -> None:
    session = uuid4().hex
    servers = {server["serverId"] for server in (await client.call("server.list", {}))["servers"]}
    with pytest.raises(LeaseStopped) as stopped:
        async with client.lease("request", session_id=session) as server:
            [other] = servers - {server.server_id}
            moves: Any = [{"leaseId": server.lease_id, "targetServerId": other}]
            await client.call("rebalance.execute", {"planId": uuid4().hex, "moves": moves})
            await until_stopped()
    assert stopped.value.cause == "move"
    async with client.lease("request", session_id=session) as server:
        assert server.server_id == other
    await client.finish_session(session)
    await client.settled()
    assert await leases_of(client) == 0


async def test_an_abort_and_a_cancellation_are_told_apart(client: Client) -> None:
    holding = asyncio.Event()

    async def use() -> None:
        async with client.lease("request"):
            holding.set()
            await until_stopped()

    task = asyncio.create_task(use())
    await until_set(holding)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await client.settled()
    assert await leases_of(client) == 0


async def test_an_error_of_the_block_is_raised_and_the_lease_released(client: Client) -> None:
    with pytest.raises(KeyError):
        async with client.lease("request"):
            raise KeyError("of the caller")
    await client.settled()
    assert await leases_of(client) == 0


async def test_a_fenced_worker_registers_again(client: Client) -> None:
    holding = asyncio.Event()

    async def use() -> None:
        async with used:
            holding.set()
            await until_stopped()

    used = client.lease("request")
    task = asyncio.create_task(use())
    await until_set(holding)
    # Another process registers with the same worker id.
    await client.call("worker.register", {"workerId": client.worker_id, "registrationId": uuid4().hex})
    with pytest.raises(LeaseStopped) as stopped:
        await task
    assert stopped.value.cause == "fenced"
    with pytest.raises(RuntimeError, match="used once"):
        await used.__aenter__()
    async with client.lease("request"):
        assert await leases_of(client) == 1


async def test_a_lease_whose_grant_was_lost_is_returned(client: Client) -> None:
    async with client.lease("request"):
        worker = await client._session.established() if client._session else None
        assert worker is not None
        item = {"acquireId": uuid4().hex, "requestId": "lost", **worker.body}
        await client._connected.call("lb.acquire", item)

        async def one_is_left() -> bool:
            return await leases_of(client) == 1

        await until(one_is_left)


@pytest.mark.short
async def test_errors_have_classes_with_the_codes_of_the_wire(client: Client) -> None:
    with pytest.raises(errors.ValidationFailed) as refused:
        await client.call("lb.release", {"outcome": "melted"})  # type: ignore[call-overload]
    assert (refused.value.code, refused.value.retryable, refused.value.field) == ("VALIDATION_FAILED", False, "outcome")
    with pytest.raises(errors.NoServerAvailable) as none:
        async with client.lease("request", labels={"gpu": "none"}, timeout=0.4):
            pass
    assert none.value.details["reason"] == "none-fits"


async def test_the_timeout_of_a_lease_is_that_of_its_registration_too(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def request_in_vain(*_: Any) -> Any:
        await until_stopped()

    monkeypatch.setattr(client._connected, "request", request_in_vain)
    loop = asyncio.get_running_loop()
    began = loop.time()
    with pytest.raises(errors.Timeout, match="registered"):
        async with client.lease("request", timeout=0.2):
            pass
    assert loop.time() - began < 20


@pytest.mark.parametrize(
    "error",
    [
        LeaseStopped("abort"),
        StepFailed(7, {"failedGroups": 2, "droppedGroups": 1}),
        error_of({"code": "OF_A_LATER_VERSION", "message": "new", "retryable": True, "retryAfterMs": 500}),
        errors.Fenced("of another", field="trainerEpoch"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_errors_travel_between_processes(error: Exception) -> None:
    copied = pickle.loads(pickle.dumps(error))
    assert (type(copied), str(copied), vars(copied)) == (type(error), str(error), vars(error))
    assert "code" not in vars(error) or copied.code in str(copied)


async def test_a_cancelled_close_deregisters_the_worker(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    other = Client()
    await other.connect()
    connection = other._connected
    lease = other.lease("request")
    await lease.__aenter__()
    assert await leases_of(other) == 1
    # The release of the lease gets no answer.
    monkeypatch.setattr(other._leases, "idle", asyncio.Event().wait)
    closing = asyncio.create_task(other.close())
    await asyncio.sleep(0.01)
    closing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await closing
    assert connection._nats.is_closed
    with pytest.raises(errors.WorkerNotFound):
        await client.call("lb.leases", {"workerId": other.worker_id})
