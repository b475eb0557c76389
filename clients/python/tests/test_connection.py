"""Calls over NATS: deadlines, repeats and cancellations."""

from __future__ import annotations

import asyncio
import json
from typing import Any
from uuid import uuid4

import pytest
from conftest import until
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from broomwagon import Client, errors


async def test_a_pool_without_services_is_an_error_at_the_deadline() -> None:
    async with Client(pool="no-such-pool") as client:
        with pytest.raises(errors.Unavailable, match="No service handles"):
            await client.call("lb.status", {}, deadline=0.3)


async def test_no_nats_is_an_error_at_the_timeout() -> None:
    with pytest.raises(errors.Unavailable, match="Cannot connect"):
        async with Client("nats://127.0.0.1:1", connect_timeout=0.5):
            pass


async def test_a_cancellation_while_the_socket_is_full_is_kept(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = client._connected._nats
    is_writable = asyncio.Event()
    monkeypatch.setattr(connection._transport, "drain", is_writable.wait)
    # The last that is written.
    await client.call("lb.status", {})
    monkeypatch.setattr(connection, "_max_pending_size", 1)
    calls = [asyncio.create_task(client.call("lb.status", {})) for _ in range(3)]
    await asyncio.sleep(0.05)
    for call in calls:
        call.cancel()
    await asyncio.sleep(0)
    is_writable.set()
    ended = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(error) for error in ended] == [asyncio.CancelledError] * 3
    monkeypatch.undo()
    async with client.lease("request"):
        pass


async def test_a_call_without_an_answer_is_repeated_to_a_replica_that_answers(client: Client) -> None:
    nats = client._connected._nats
    subject = f"rollout.v1.{uuid4().hex}"
    asked: dict[str, list[str]] = {"hung": [], "live": [], "alone": []}

    async def serve(name: str, subject: str, queue: str = "") -> Subscription:
        async def answer(message: Msg) -> None:
            asked[name].append(json.loads(message.data)["jobId"])
            if name != "hung":
                await nats.publish(message.reply, b"{}", headers={"Broomwagon-Replica": "live"})

        return await nats.subscribe(subject, queue, cb=answer)

    hung = await serve("hung", f"{subject}.lb.status", "replicas")
    await serve("live", f"{subject}.lb.status", "replicas")
    alone = await serve("alone", f"{subject}.replica.live.lb.status")
    await nats.flush()
    async with Client(pool=subject.rpartition(".")[2]) as caller:

        async def call_many(name: str) -> asyncio.Future[list[Any]]:
            body: Any = {"jobId": name}
            calls = asyncio.gather(*(caller.call("lb.status", body) for _ in range(64)))

            async def both_are_asked() -> bool:
                return name in asked["hung"] and name in asked["live"]

            await until(both_are_asked)
            return calls

        await (await call_many("first"))
        assert asked["hung"].count("first") <= asked["alone"].count("first")
        assert len(asked["hung"]) + len(asked["live"]) == 64
        # The replica that has replied ends meanwhile: its repeats go to the others.
        calls = await call_many("second")
        await hung.unsubscribe()
        await alone.unsubscribe()
        await nats.flush()
        await calls
        assert asked["live"].count("second") >= 64
