"""A worker with an agent loop: several turns with tools, against any OpenAI-compatible engine.

    pip install broomwagon openai
    NATS_URL=nats://127.0.0.1:4222 POOL=default python agent_loop.py --kind agent

The trainer names the same kind, `client.rollout(job, worker_kind="agent")`: then built-in workers of the pool, which
would run samples without this loop, leave them alone.

Stop it with Ctrl-C or SIGTERM: samples that have not ended are returned with their tokens and their messages, and
another worker continues them.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from openai import AsyncOpenAI

from broomwagon import Attempt, Client

MAX_TURNS = 8
TOOLS: list[dict[str, Any]] = [
    {
        "type": "function",
        "function": {
            "name": "multiply",
            "description": "Multiplies two numbers.",
            "parameters": {
                "type": "object",
                "properties": {"a": {"type": "number"}, "b": {"type": "number"}},
                "required": ["a", "b"],
            },
        },
    }
]


def call_tool(name: str, arguments: str) -> str:
    """Runs a tool that the model has asked for. The model reads its errors."""
    try:
        values = json.loads(arguments)
        return str(values["a"] * values["b"]) if name == "multiply" else f"There is no tool {name}"
    except (ValueError, KeyError, TypeError) as error:
        return f"Error: {error!r}"


def tool_results(messages: list[Any]) -> list[dict[str, Any]]:
    """Runs the tools that the last message asks for. A cut during a tool runs it again in the next attempt."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": call_tool(call["function"]["name"], call["function"]["arguments"]),
        }
        for call in messages[-1].get("tool_calls") or []
    ]


def tokens_between(attempt: Attempt, prompt_ids: list[int], first_prompt: int) -> list[int]:
    """Tokens that the model has read since its last turn: outputs of tools, and the chat template around them.

    :param prompt_ids: tokens of the messages, as the engine has read them for this turn
    :param first_prompt: number of leading `prompt_ids` that are the prompt of the sample
    """
    known = first_prompt + len(attempt.token_ids)
    if prompt_ids[first_prompt:known] != attempt.token_ids:
        # Some templates remove the reasoning of earlier turns, for example.
        raise ValueError("The chat template has changed tokens of earlier turns: the turns are not one sequence")
    return prompt_ids[known:]


async def solve(attempt: Attempt) -> str:
    """One sample. After a cut, the next attempt begins with the messages in `attempt.state`."""
    messages: list[Any] = attempt.state.get("messages") or list(attempt.prompt.get("messages", []))
    if not messages:
        messages = [{"role": "user", "content": attempt.prompt.get("text", "")}]
    for _ in range(MAX_TURNS):
        messages += tool_results(messages)
        # A lease for each turn: tools run without one, and others use the server meanwhile.
        async with attempt.server() as server:
            engine = AsyncOpenAI(base_url=f"{server.endpoint}/v1", api_key="none")
            async with engine:
                reply = await engine.chat.completions.create(
                    model=server.model or "default",
                    messages=messages,
                    tools=TOOLS,  # type: ignore[arg-type]
                    max_tokens=attempt.tokens_left,
                    temperature=attempt.sampling.get("temperature", 1.0),
                    extra_body={"return_token_ids": True},
                )
                choice = reply.choices[0]
                messages.append(choice.message.model_dump(exclude_none=True))
                # vLLM returns the ids of the tokens; other engines only their number.
                token_ids = getattr(choice, "token_ids", None) or []
                prompt_ids = getattr(reply, "prompt_token_ids", None) or []
                tokens = reply.usage.completion_tokens if reply.usage else 0
                first_prompt = attempt.state.get("prompt_tokens", len(prompt_ids))
                attempt.observe(tokens_between(attempt, prompt_ids, first_prompt) if prompt_ids else [])
                # Tokens and messages in one step: the end of the block may be interrupted.
                attempt.add(
                    token_ids,
                    choice.message.content or "",
                    token_count=None if token_ids else tokens,
                    state={"messages": messages, "prompt_tokens": first_prompt},
                )
        if choice.finish_reason == "length" or attempt.tokens_left == 0:
            return "length"
        if not choice.message.tool_calls:
            return "stop"
        await attempt.save()
    return "stop"


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", help="run samples of this job only")
    parser.add_argument("--kind", help="run samples of jobs that name this kind of worker only")
    parser.add_argument("--concurrency", type=int, default=64)
    options = parser.parse_args()
    async with Client() as client:
        worker = client.worker(job=options.job, kind=options.kind, concurrency=options.concurrency)
        worker.run(solve)
        await worker.serve()


if __name__ == "__main__":
    asyncio.run(main())
