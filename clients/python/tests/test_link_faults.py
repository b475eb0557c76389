"""A link to NATS that is half-open, slow or refused is dialed again, in time for the leases of the process."""

from __future__ import annotations

import asyncio
import logging
import ssl
from types import SimpleNamespace

import pytest
from conftest import leases_of, until
from relay import Relay
from test_connection import nats_that_sends

from broomwagon import Client, _nats
from broomwagon._arguments import InvalidArgument
from broomwagon._held import WorkerEpoch
from broomwagon._nats import DialedNats
from broomwagon._session import Session


@pytest.mark.parametrize("fault", [pytest.param("drops its bytes", marks=pytest.mark.short), "takes no more bytes"])
async def test_a_silent_link_is_cut_and_dialed_again_before_the_epoch_ends(fault: str) -> None:
    async with Relay().run() as relay, Client(relay.url) as client, client.lease("request"):
        session, nats = client._session, client._connected._nats
        assert session is not None
        epoch = session._epoch
        publishing: list[asyncio.Task[None]] = []
        if fault == "drops its bytes":
            relay.drop()
        else:
            relay.stall()
            # More bytes than the sockets take, so that the connection cannot send its last bytes.
            subject, body = f"rollout.v1.{client.pool}.lb.nothing", bytes(900_000)
            publishing = [asyncio.create_task(nats.publish(subject, body)) for _ in range(20)]
        lost_at = asyncio.get_running_loop().time()

        async def is_renewed() -> bool:
            assert session is not None
            return session._alive_at > lost_at

        await until(is_renewed)
        assert (session._epoch, await leases_of(client)) == (epoch, 1)
        for task in publishing:
            task.cancel()


async def test_a_link_is_restored_although_nats_answers_a_new_connection_after_three_seconds() -> None:
    async with Relay().run() as relay, Client(relay.url) as client:
        relay.greeting_delay = 3.0
        relay.cut()
        assert (await client.call("lb.status", {}))["pool"] == client.pool


async def test_a_dial_without_an_answer_leaves_no_connection_and_is_explained(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_nats, "FIRST_DIAL_TIMEOUT", 0.1)
    monkeypatch.setattr("broomwagon._link.FIRST_EXPLANATION", 0.0)
    async with nats_that_sends() as (url, accepted):
        connecting = asyncio.create_task(Client(url, connect_timeout=60.0).connect())

        async def is_dialed_thrice() -> bool:
            return len(accepted) > 2

        await until(is_dialed_thrice)
        assert await asyncio.wait_for(accepted[0].read(), 30) == b""
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting
    assert sum("Cannot connect to NATS" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.short
async def test_a_heartbeat_without_an_answer_is_followed_by_the_next_one_at_once(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    beats: list[float] = []

    async def sleep(seconds: float) -> None:
        nonlocal now
        now += seconds
        if len(beats) == 3:
            raise asyncio.CancelledError

    async def beat_until_its_deadline(_: WorkerEpoch) -> None:
        beats.append(now)
        await sleep(5.0)

    session = Session(client._connected, "worker", 15.0, 10.0)
    session._epoch = WorkerEpoch("worker", "1")
    monkeypatch.setattr(session, "_beat", beat_until_its_deadline)
    clock = SimpleNamespace(time=lambda: now)
    monkeypatch.setattr("broomwagon._session.asyncio", SimpleNamespace(sleep=sleep, get_running_loop=lambda: clock))
    with pytest.raises(asyncio.CancelledError):
        await session._beat_always()
    assert beats == [5.0, 10.0, 15.0]


@pytest.mark.short
async def test_each_dial_has_more_time_and_pauses_grow_to_a_third_of_the_time_to_live() -> None:
    nats = DialedNats(worker_ttl=15.0)
    for timeout, pause in ((2.0, 0.2), (4.0, 0.4), (8.0, 0.8), (16.0, 1.6), (20.0, 3.2), (20.0, 5.0), (20.0, 5.0)):
        options = nats.options or nats.dial_options
        assert options["connect_timeout"] == timeout
        assert pause / 2 <= options["reconnect_time_wait"] <= pause
        nats.note_failed_dial()
    nats.begin_dials()
    assert nats.options["connect_timeout"] == 2.0


@pytest.mark.short
async def test_certificates_are_read_for_each_connection_and_the_last_ones_are_used_while_they_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    nats = DialedNats(worker_ttl=15.0)
    first, renewed = (ssl.create_default_context() for _ in range(2))
    nats.options["tls"] = first
    monkeypatch.setattr(_nats, "build_context", lambda: renewed)
    assert nats.ssl_context is renewed

    def fail() -> ssl.SSLContext:
        raise InvalidArgument("NATS_TLS_CERT cannot be used: no such file", field="NATS_TLS_CERT")

    monkeypatch.setattr(_nats, "build_context", fail)
    with caplog.at_level(logging.WARNING, "broomwagon"):
        assert nats.ssl_context is renewed
    assert "NATS_TLS_CERT" in caplog.text
