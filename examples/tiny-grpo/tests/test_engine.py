"""The engine by HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np

from tiny_grpo.addition import END, MAX_TOKENS, Problem, encode
from tiny_grpo.engine import Engine
from tiny_grpo.model import SMALL, Weights, initial_weights
from tiny_grpo.run_state import save_arrays

PROMPT = encode(Problem(47, 85, 2).prompt)


def weights_that(end: float) -> Weights:
    """Weights of a model whose logit of the end token is `end`, and of every other token about 0, for any text."""
    weights = initial_weights(np.random.default_rng(0))
    weights["tokens"][:], weights["positions"][:] = 1, 0
    for name in ("0.out", "0.down", "1.out", "1.down"):
        weights[name][:] = 0
    weights["head"] *= 0.01
    weights["head"][:, END] = end / SMALL.width
    return weights


#: Weights of a model that never ends a response.
ENDLESS = weights_that(-50)


@asynccontextmanager
async def engine_at(weights: Weights, pace: float = 0.0) -> AsyncIterator[int]:
    engine = Engine(weights, 0, pace)
    server = await engine.routes().serve(0)
    decoding = asyncio.create_task(engine.run())
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        decoding.cancel()
        server.close()


class Call:
    """One call on a connection of its own."""

    def __init__(self, port: int, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        self._target = port, method, path, json.dumps(body or {}).encode()

    async def __aenter__(self) -> Call:
        port, method, path, body = self._target
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)
        self.writer.write(f"{method} {path} HTTP/1.1\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode()
        self.status = int(head.split(" ")[1])
        self.size = int(head.lower().partition("content-length: ")[2].partition("\r")[0] or 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.close()

    async def json(self) -> Any:
        return json.loads(await self.reader.readexactly(self.size))

    async def event(self) -> dict[str, Any] | None:
        """The next event of a stream; None at its end."""
        size = int(await self.reader.readline(), 16)
        data = (await self.reader.readexactly(size + 2)).decode()[len("data: ") : -4]
        return None if data == "[DONE]" else json.loads(data)

    async def events(self) -> list[dict[str, Any]]:
        found = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found


def generation(port: int, rid: str, budget: int = MAX_TOKENS, **sampling: Any) -> Call:
    params = {"max_new_tokens": budget, "temperature": 1.0, **sampling}
    body = {"rid": rid, "input_ids": PROMPT, "sampling_params": params, "stream": True, "return_logprob": True}
    return Call(port, "POST", "/generate", body)


async def get(port: int, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
    async with Call(port, method, path, body) as call:
        assert call.status == 200
        return await call.json()


async def until_idle(port: int) -> None:
    while (await get(port, "GET", "/get_load"))[0]["num_running_reqs"]:
        await asyncio.sleep(0.01)


def test_a_stream_has_all_tokens_with_their_log_probabilities() -> None:
    async def check() -> None:
        async with engine_at(ENDLESS) as port, generation(port, "a" * 32, 9) as call:
            events = await call.events()
        tokens = [token for event in events for token in event["output_ids"]]
        entries = [entry for event in events for entry in event["meta_info"]["output_token_logprobs"]]
        assert len(tokens) == 9
        assert [token for _, token, _ in entries] == tokens
        assert all(logprob < 0 for logprob, _, _ in entries)
        assert events[-1]["meta_info"]["finish_reason"] == {"type": "length"}
        assert [event["meta_info"]["finish_reason"] for event in events[:-1]] == [None] * (len(events) - 1)

    asyncio.run(check())


def test_an_abort_gives_the_tokens_so_far() -> None:
    async def check() -> None:
        # At this pace the response does not reach its budget before the abort.
        async with engine_at(ENDLESS, pace=20) as port, generation(port, "b" * 32) as call:
            first = await call.event()
            assert first is not None
            await get(port, "POST", "/abort_request", {"rid": "b" * 32})
            rest = await call.events()
        assert rest[-1]["meta_info"]["finish_reason"] == {"type": "abort"}
        count = sum(len(event["output_ids"]) for event in [first, *rest])
        assert count == rest[-1]["meta_info"]["completion_tokens"] < MAX_TOKENS

    asyncio.run(check())


def test_a_closed_connection_ends_its_request() -> None:
    async def check() -> None:
        async with engine_at(ENDLESS, pace=20) as port:
            async with generation(port, "c" * 32) as call:
                await call.event()
            await asyncio.wait_for(until_idle(port), 30)

    asyncio.run(check())


def test_new_weights_from_a_file_have_their_version(tmp_path: Path) -> None:
    file = tmp_path / "weights.npz"
    save_arrays(file, weights_that(50))

    async def check() -> None:
        async with engine_at(ENDLESS) as port:
            assert (await get(port, "GET", "/get_server_info"))["weight_version"] == "0"
            body = {"model_path": str(file), "weight_version": "7"}
            await get(port, "POST", "/update_weights_from_disk", body)
            assert (await get(port, "GET", "/get_model_info"))["weight_version"] == "7"
            async with generation(port, "d" * 32) as call:
                [event] = await call.events()
            assert event["output_ids"] == [END]
            assert event["meta_info"]["finish_reason"] == {"type": "stop"}

    asyncio.run(check())


def test_a_pause_holds_requests_until_its_end() -> None:
    async def check() -> None:
        async with engine_at(ENDLESS) as port:
            await get(port, "POST", "/pause_generation", {"mode": "in_place"})
            async with generation(port, "e" * 32, 3) as call:
                held = asyncio.ensure_future(call.event())
                for _ in range(3):
                    assert (await get(port, "GET", "/simulated_clock"))["seconds"] == 0
                assert not held.done()
                await get(port, "POST", "/continue_generation")
                assert await held is not None
                await call.events()
            assert (await get(port, "GET", "/simulated_clock"))["seconds"] > 0.0145 * 3

    asyncio.run(check())


def test_wrong_requests_are_refused() -> None:
    async def check() -> None:
        async with engine_at(ENDLESS) as port:
            for call in (generation(port, "f" * 32, 10_000), generation(port, "f" * 32, temperature=0.5)):
                async with call:
                    assert call.status == 400
            async with Call(port, "GET", "/version") as call:
                assert call.status == 404
            async with Call(port, "OPTIONS", "/flush_cache") as call:
                assert call.status == 405

    asyncio.run(check())
