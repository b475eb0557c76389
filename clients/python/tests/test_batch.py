"""Many acquires or releases in one call."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from conftest import until_set

from broomwagon import Client, _batch, errors
from broomwagon._batch import Batch


async def test_later_items_do_not_prolong_the_wait_for_those_of_before() -> None:
    gate = asyncio.Event()

    async def send(items: list[str]) -> list[str | Exception]:
        if "later" in items:
            await until_set(gate)
        return list(items)

    batch: Batch[str, str] = Batch(send, 10)
    first = batch.add("first")
    settled = asyncio.create_task(batch.settled())
    await first
    later = batch.add("later")
    await settled
    assert not later.done()
    gate.set()
    await batch.idle()


@pytest.mark.parametrize("is_hung", [False, True])
async def test_items_gather_while_a_call_is_on_its_way(monkeypatch: pytest.MonkeyPatch, is_hung: bool) -> None:
    monkeypatch.setattr(_batch, "GATHER_TIME", 0.001 if is_hung else 3600)
    gate, is_sent = asyncio.Event(), asyncio.Event()
    sent: list[list[str]] = []

    async def send(items: list[str]) -> list[str | Exception]:
        sent.append(items)
        is_sent.set()
        if "first" in items:
            await until_set(gate)
        return list(items)

    batch: Batch[str, str] = Batch(send, 10)
    first = batch.add("first")
    await until_set(is_sent)
    is_sent.clear()
    later = [batch.add("second")]
    if not is_hung:
        await asyncio.sleep(0)
        later.append(batch.add("third"))
        gate.set()
        assert await first == "first"
    await until_set(is_sent)
    assert sent[1:] == [["second"] if is_hung else ["second", "third"]]
    assert [await item for item in later] == sent[1]
    gate.set()
    await batch.idle()


async def test_items_that_are_cancelled_while_they_wait_are_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_batch, "GATHER_TIME", 3600)
    sent: list[list[str]] = []

    async def send(items: list[str]) -> list[str | Exception]:
        sent.append(items)
        await asyncio.sleep(0)
        return list(items)

    batch: Batch[str, str] = Batch(send, 10)
    first = batch.add("first")
    await asyncio.sleep(0)
    cancelled, kept = batch.add("cancelled"), batch.add("kept")
    cancelled.cancel()
    assert [await first, await kept] == ["first", "kept"]
    batch.add("last").cancel()
    await batch.idle()
    assert sent == [["first"], ["kept"]]


async def test_an_acquire_without_an_answer_counts_from_when_it_was_sent(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica that has answered while the acquire was gathered may be the one that hangs now."""
    monkeypatch.setattr(_batch, "GATHER_TIME", 3600)
    async with client.lease("registers"):
        pass
    connection = client._connected
    request, loop = connection.request, asyncio.get_running_loop()
    gate, is_sent = asyncio.Event(), asyncio.Event()
    answered_at, unanswered_since = 0.0, 0.0

    async def request_late(operation: str, body: dict[str, Any], timeout: float, since: float | None = None) -> Any:
        nonlocal answered_at, unanswered_since
        if operation != "lb.acquire":
            return await request(operation, body, timeout, since)
        if not is_sent.is_set():
            is_sent.set()
            await until_set(gate)
            answered_at = loop.time()
        elif since is None:
            raise errors.Timeout("of a replica that hangs", retryable=True)
        else:
            unanswered_since = since
        return await request(operation, body, timeout)

    monkeypatch.setattr(connection, "request", request_late)

    async def use() -> None:
        async with client.lease("request"):
            pass

    first = asyncio.create_task(use())
    await until_set(is_sent)
    second = asyncio.create_task(use())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    gate.set()
    await asyncio.gather(first, second)
    assert unanswered_since >= answered_at > 0
