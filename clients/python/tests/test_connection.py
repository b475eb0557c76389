"""Calls over NATS: deadlines, repeats and cancellations."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

import nats.errors
import pytest
from conftest import leases_of, reports_unserved, until, until_set
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from broomwagon import Attempt, Client, errors
from broomwagon._arguments import encoded


@reports_unserved
async def test_an_operation_without_services_is_an_error_at_the_deadline(client: Client) -> None:
    with pytest.raises(errors.Unavailable, match="No service handles"):
        await client._connected.call("lb.nothing", {}, deadline=0.3)


async def test_no_nats_is_an_error_at_the_timeout() -> None:
    with pytest.raises(errors.Unavailable, match="Cannot connect"):
        async with Client("nats://127.0.0.1:1", connect_timeout=0.5):
            pass


@asynccontextmanager
async def nats_that_sends(*lines: str) -> AsyncIterator[tuple[str, list[asyncio.StreamReader]]]:
    """Yields the address of a NATS stub that sends these lines, and the reader of each connection."""
    accepted: list[asyncio.StreamReader] = []
    writers: list[asyncio.StreamWriter] = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        accepted.append(reader)
        writers.append(writer)
        writer.write("".join(f"{line}\r\n" for line in lines).encode())

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}", accepted
    finally:
        server.close()
        for writer in writers:
            writer.close()


async def test_a_connect_that_ends_early_leaves_no_connection() -> None:
    async with nats_that_sends() as (url, accepted):
        connecting = asyncio.create_task(Client(url).connect())

        async def is_accepted() -> bool:
            return len(accepted) == 1

        await until(is_accepted)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
        with pytest.raises(errors.Unavailable):
            await Client(url, connect_timeout=0.2).connect()
        assert len(accepted) > 1
        for reader in accepted:
            assert await asyncio.wait_for(reader.read(), 30) == b""


async def test_the_error_of_a_connect_names_its_reason() -> None:
    info = 'INFO {"server_id":"1","version":"2.11.0","max_payload":1000,"auth_required":true}'
    async with nats_that_sends(info, "-ERR 'Authorization Violation'") as (url, _):
        with pytest.raises(errors.Unavailable, match="Authorization"):
            await Client(url, connect_timeout=0.5).connect()


async def test_a_client_connects_once(client: Client) -> None:
    with pytest.raises(RuntimeError, match="is connected"):
        await client.connect()


async def test_a_close_does_not_wait_for_a_nats_that_does_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    client = Client()
    await client.connect()
    nats = client._connected._nats
    transport = nats._transport
    assert transport is not None
    monkeypatch.setattr(transport, "drain", asyncio.Event().wait)
    for _ in range(2):
        with pytest.raises(errors.Timeout):
            await client._connected.request("lb.status", {}, 0.1)
    nats._pending, nats._pending_data_size = [b"PING\r\n"], 6
    await asyncio.wait_for(client.close(), 30)
    assert transport.at_eof() or transport._io_writer.is_closing()  # type: ignore[attr-defined]


def test_a_client_of_another_event_loop_is_refused() -> None:
    client = Client()

    async def acquire() -> None:
        async with client.lease("request"):
            pass

    own, other = asyncio.new_event_loop(), asyncio.new_event_loop()
    own.run_until_complete(client.connect())
    for _ in range(2):
        with pytest.raises(RuntimeError, match="another event loop"):
            other.run_until_complete(asyncio.wait_for(acquire(), 30))
        # This call registers the worker, so the second refusal is of a registered client.
        own.run_until_complete(acquire())
        own.run_until_complete(asyncio.wait_for(client.settled(), 30))
        assert own.run_until_complete(leases_of(client)) == 0
    own.run_until_complete(client.close())
    for loop in (own, other):
        loop.close()


async def test_what_nats_does_not_permit_is_an_error(client: Client, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "broomwagon")
    connection = client._connected
    subject = f"rollout.v1.{client.pool}.lb.Hung"
    is_asked = asyncio.Event()

    async def refuse(_: Msg) -> None:
        is_asked.set()

    await connection._nats.subscribe(subject, cb=refuse)
    calling = asyncio.create_task(connection.call("lb.Hung", {}))
    await until_set(is_asked)
    await connection._note_error(ConnectionRefusedError())
    await connection._note_error(nats.errors.Error(f'nats: permissions violation for publish to "{subject.lower()}"'))
    with pytest.raises(errors.Forbidden, match=subject) as refused:
        await asyncio.wait_for(calling, 30)
    assert not refused.value.retryable
    warnings = [record.message for record in caplog.records if record.levelno == logging.WARNING]
    assert ["permissions violation" in message for message in warnings] == [True]


@pytest.mark.parametrize("offset_ms", [-3_600_000.0, 3_600_000.0])
async def test_a_clock_that_differs_from_the_clock_of_the_services_is_corrected(
    client: Client, offset_ms: float
) -> None:
    connection = client._connected
    connection._clock_offset = offset_ms
    assert (await connection.request("lb.status", {}, 30.0))["pool"] == client.pool
    assert abs(connection._clock_offset) < 60_000


async def test_a_request_whose_caller_has_given_up_is_not_sent_when_nats_is_reached_again(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    connection = client._connected
    sent: list[bytes] = []
    publish = connection._nats.publish

    async def note(subject: str, data: bytes, **options: Any) -> None:
        sent.append(data)
        await publish(subject, data, **options)

    monkeypatch.setattr(connection._nats, "publish", note)
    connection._inbox.is_linked.clear()
    with pytest.raises(errors.Timeout):
        await connection.request("lb.status", {"after": "given up"}, 0.05)
    waiting = asyncio.create_task(connection.request("lb.status", {}, 30.0))
    await asyncio.sleep(0)
    await connection._note_restored()
    assert (await waiting)["pool"] == client.pool
    assert sent == [b"{}"]


async def test_a_body_is_compared_with_the_limit_of_nats_with_its_headers(client: Client) -> None:
    limit = client._connected._nats.max_payload
    headers = f"NATS/1.0\r\nBroomwagon-Timeout-Ms: 1000\r\nBroomwagon-Sent-At-Ms: {time.time() * 1000:.0f}\r\n\r\n"
    fits = limit - len(headers) - len(encoded({"x": ""}))
    with pytest.raises(errors.PayloadTooLarge, match="with its headers") as refused:
        await client._connected.request("lb.status", {"x": "x" * (fits + 1)}, 1.0)
    assert (refused.value.field, refused.value.details) == ("body", {"bytes": limit + 1, "limit": limit})
    # A message of the largest size that NATS takes reaches the service, which answers.
    with pytest.raises(errors.PayloadTooLarge, match="over 1000000 bytes"):
        await client._connected.request("lb.status", {"x": "x" * fits}, 1.0)


async def test_the_acknowledgement_of_a_stream_is_no_reply_and_names_the_stream_once(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    connection = client._connected

    async def answer(message: Msg) -> None:
        await message.respond(b'{"stream":"RECORDING","seq":7}')
        await message.respond(b'{"remembered":1}')

    connection.pool = f"pool-{uuid4().hex}"
    await connection._nats.subscribe(f"rollout.v1.{connection.pool}.prompt.remember", cb=answer)
    for _ in range(2):
        assert await connection.call("prompt.remember", {"prompts": []}) == {"remembered": 1}
    assert sum("The JetStream stream RECORDING" in record.getMessage() for record in caplog.records) == 1


async def test_a_wrong_pool_is_refused_although_a_stream_acknowledges_its_calls(client: Client) -> None:
    connection = client._connected._nats
    pool = f"pool-{uuid4().hex}"

    async def acknowledge(message: Msg) -> None:
        await message.respond(b'{"stream":"RECORDING","seq":7}')

    await connection.subscribe(f"rollout.v1.{pool}.lb.status", cb=acknowledge)
    await connection.flush()
    async with Client(pool=pool) as wrong:
        with pytest.raises(errors.PoolNotFound):
            await wrong.call("lb.status", {})


async def test_repeats_of_a_call_have_its_id_and_a_service_that_does_not_know_the_id_gets_none(client: Client) -> None:
    connection = client._connected
    received: list[dict[str, Any]] = []
    replies = [None, {"remembered": 1}, {"error": _REFUSED_ID}, {"remembered": 1}]

    async def answer(message: Msg) -> None:
        received.append(json.loads(message.data))
        if reply := replies[len(received) - 1]:
            await message.respond(json.dumps(reply).encode())

    connection.pool = f"pool-{uuid4().hex}"
    await connection._nats.subscribe(f"rollout.v1.{connection.pool}.prompt.remember", cb=answer)
    for _ in range(2):
        assert await connection.call("prompt.remember", {"prompts": []}) == {"remembered": 1}
    ids = [body.get("rememberId") for body in received]
    assert ids[0] == ids[1] != ids[2]
    assert ids[2:] == [ids[2], None]


_REFUSED_ID = {"code": "VALIDATION_FAILED", "message": "no such field", "retryable": False, "field": "rememberId"}


async def close_by_nats(client: Client) -> None:
    """Makes NATS end the connection of the client, by a line that NATS cannot read."""
    connection = client._connected._nats
    await connection._send_command(b"NONSENSE\r\n")
    await connection._flush_pending()


async def test_a_connection_that_nats_has_closed_ends_calls_and_workers() -> None:
    async with Client() as client:
        worker = client.worker(concurrency=1)

        @worker.run
        async def loop(attempt: Attempt) -> None:
            raise AssertionError("there is no sample")

        serving = asyncio.create_task(worker.serve())
        waiting = asyncio.create_task(_acquire(client))
        await until_claiming(client)
        await close_by_nats(client)
        for task in (serving, waiting):
            with pytest.raises(errors.Unavailable, match="unknown protocol operation") as closed:
                await asyncio.wait_for(task, 15)
            assert not closed.value.retryable
        with pytest.raises(errors.Unavailable, match="make another client"):
            await client.call("lb.status", {})


async def _acquire(client: Client) -> None:
    async with client.lease("request", labels={"gpu": "none"}, timeout=60):
        pass


async def until_claiming(client: Client) -> None:
    """Waits until a claim of the client waits for its answer."""

    async def is_asked() -> bool:
        return any(subject.endswith(".request.claim") for subject, _ in client._connected._inbox._pending.values())

    await until(is_asked)


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
