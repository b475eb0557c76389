"""ASGI middleware that gives each sample of a run of Broomwagon the length that `npm start -- --lengths` asks for.

    vllm serve MODEL --middleware equal_lengths.EqualLengths

`npm start` sends, with each prompt, the lengths of all samples of its group in `vllm_xargs`. Which of the samples a
request is for, and how many tokens that sample has already, follow from the seed, which Broomwagon derives from job,
group, sample and tokens made so far. The middleware sets `max_tokens` to the rest of the length, and removes the seed and
its own fields, so that the engine draws as it does without them. Other requests, and all answers, pass unchanged.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

PATH = "/v1/completions"
LENGTHS = "broomwagon_lengths"
PROMPT_TOKENS = "broomwagon_prompt_tokens"
SEED_OF = "broomwagon_seed_of"


def sample_seed(seed_of: str, index: int, made: int) -> int:
    """Seed of a sample that has `made` tokens. `seed_of`: seed of the job, job and group, one a line."""
    digest = hashlib.sha256(f"{seed_of}\n{index}\n{made}".encode()).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def with_length(body: dict[str, Any]) -> dict[str, Any]:
    """The request with the rest of its length as `max_tokens`. Raises ValueError for a sample that is not known."""
    fields = dict(body["vllm_xargs"])
    lengths, prompt_tokens, seed_of = fields.pop(LENGTHS), fields.pop(PROMPT_TOKENS), fields.pop(SEED_OF)
    made = len(body["prompt"]) - prompt_tokens
    index = next((i for i in range(len(lengths)) if sample_seed(seed_of, i, made) == body.get("seed")), None)
    if index is None:
        raise ValueError(f"no sample of this group has the seed {body.get('seed')} with {made} tokens")
    changed = {name: value for name, value in body.items() if name not in ("seed", "vllm_xargs")}
    if fields:
        changed["vllm_xargs"] = fields
    changed["max_tokens"] = max(1, min(changed["max_tokens"], lengths[index] - made))
    return changed


class EqualLengths:
    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] != "http" or scope["method"] != "POST" or scope["path"] != PATH:
            await self.app(scope, receive, send)
            return
        body, more = b"", True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return
            body += message.get("body", b"")
            more = message.get("more_body", False)
        if LENGTHS.encode() in body:
            try:
                body = json.dumps(with_length(json.loads(body))).encode()
            except (KeyError, TypeError, ValueError) as error:
                await refuse(send, f"equal_lengths: {error!r}")
                return
        headers = [(name, value) for name, value in scope["headers"] if name.lower() != b"content-length"]
        headers.append((b"content-length", str(len(body)).encode()))
        await self.app({**scope, "headers": headers}, replay(body, receive), send)


def replay(body: bytes, receive: Any) -> Any:
    """A `receive` that has the whole body as its first message, then the messages of the connection."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def next_message() -> Any:
        return messages.pop() if messages else await receive()

    return next_message


async def refuse(send: Any, reason: str) -> None:
    """Answers 400 in the form of vLLM: a sample of another length would make the comparison worthless in silence."""
    error = {"message": reason, "type": "BadRequestError", "param": None, "code": 400}
    body = json.dumps({"error": error}).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    await send({"type": "http.response.start", "status": 400, "headers": headers})
    await send({"type": "http.response.body", "body": body})
