"""Runs without vLLM: `python -m unittest discover examples/equal-lengths/tests`."""

from __future__ import annotations

import asyncio
import json
import sys
import unittest
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from equal_lengths import EqualLengths, sample_seed  # noqa: E402

SEED_OF = "7\nrun-1\np0"
XARGS = {"broomwagon_lengths": [100, 300], "broomwagon_prompt_tokens": 3, "broomwagon_seed_of": SEED_OF}


def request(index: int, made: int, **more: Any) -> dict[str, Any]:
    prompt = [5, 6, 7] + [9] * made
    seed = sample_seed(SEED_OF, index, made)
    return {"prompt": prompt, "seed": seed, "max_tokens": 8000 - made, "vllm_xargs": XARGS, **more}


async def call(
    body: bytes, path: str = "/v1/completions", parts: int = 1
) -> tuple[bytes | None, dict[bytes, bytes], list[dict[str, Any]]]:
    """Body and headers that the engine gets, None for no call, and what is sent by the middleware itself."""
    seen: list[bytes] = []
    headers: dict[bytes, bytes] = {}
    sent: list[dict[str, Any]] = []
    size = -(-len(body) // parts)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    messages = [
        {"type": "http.request", "body": piece, "more_body": at + 1 < len(pieces)} for at, piece in enumerate(pieces)
    ]
    messages.append({"type": "http.disconnect"})

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers.update(scope["headers"])
        text = b""
        while (message := await receive())["type"] == "http.request":
            text += message["body"]
        seen.append(text)

    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": path, "headers": [(b"content-length", b"%d" % len(body))]}
    await EqualLengths(app)(scope, receive, send)
    return (seen[0] if seen else None), headers, sent


class EqualLengthsTest(unittest.TestCase):
    def change(self, body: dict[str, Any], parts: int = 1) -> dict[str, Any]:
        text, headers, sent = asyncio.run(call(json.dumps(body).encode(), parts=parts))
        assert text is not None
        self.assertEqual(int(headers[b"content-length"]), len(text))
        self.assertEqual(sent, [])
        changed: dict[str, Any] = json.loads(text)
        return changed

    def test_sets_the_rest_of_the_length_of_each_sample(self) -> None:
        for index, made, rest in [(0, 0, 100), (1, 0, 300), (0, 40, 60), (1, 299, 1), (1, 300, 1)]:
            body = request(index, made)
            self.assertEqual(self.change(body, parts=3), {"prompt": body["prompt"], "max_tokens": rest})

    def test_keeps_a_smaller_budget_and_other_fields(self) -> None:
        body = request(1, 0, max_tokens=50, stream=True, vllm_xargs={**XARGS, "other": 1})
        expected = {"prompt": [5, 6, 7], "max_tokens": 50, "stream": True, "vllm_xargs": {"other": 1}}
        self.assertEqual(self.change(body), expected)

    def test_passes_other_requests_unchanged(self) -> None:
        for path in ["/v1/completions", "/v1/chat/completions"]:
            body = b'{"prompt": "x",  "seed": 3}'
            text, _, sent = asyncio.run(call(body, path))
            self.assertEqual((text, sent), (body, []))

    def test_refuses_an_unknown_sample(self) -> None:
        without_budget = {name: value for name, value in request(0, 0).items() if name != "max_tokens"}
        for body in [request(2, 0), {**request(0, 0), "seed": None}, {**request(0, 0), "prompt": 3}, without_budget]:
            text, _, sent = asyncio.run(call(json.dumps(body).encode()))
            self.assertIsNone(text)
            self.assertEqual(sent[0]["status"], 400)
            self.assertIn("equal_lengths", json.loads(sent[1]["body"])["error"]["message"])


if __name__ == "__main__":
    unittest.main()
