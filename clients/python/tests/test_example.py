"""examples/agent_loop.py against an engine that asks for a tool, and then answers with its result."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from conftest import delete_job

from broomwagon import Client

pytest.importorskip("openai")
EXAMPLE = Path(__file__).parent.parent / "examples" / "agent_loop.py"


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One chat completion."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
    length = int(head.split("content-length: ")[1].split("\r\n")[0])
    asked = json.loads(await reader.readexactly(length))
    last = asked["messages"][-1]
    message: dict[str, Any]
    if last["role"] == "tool":
        message = {"role": "assistant", "content": f"It is {last['content']}."}
        tokens, read = [7, 8, 9], [50, 51, 1, 2, 60, 61]
    else:
        function = {"name": "multiply", "arguments": json.dumps({"a": 6, "b": 7})}
        call = {"id": "call-1", "type": "function", "function": function}
        message = {"role": "assistant", "content": None, "tool_calls": [call]}
        tokens, read = [1, 2], [50, 51]
    choice = {"index": 0, "message": message, "finish_reason": "stop", "token_ids": tokens}
    usage = {"prompt_tokens": 5, "completion_tokens": len(tokens), "total_tokens": 5 + len(tokens)}
    body = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": [choice], "usage": usage}
    data = json.dumps({**body, "prompt_token_ids": read}).encode()
    writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n")
    writer.write(b"content-length: %d\r\n\r\n%s" % (len(data), data))
    await writer.drain()
    writer.close()


async def test_the_example_runs_a_loop_with_tools(client: Client) -> None:
    engine = await asyncio.start_server(answer, "127.0.0.1", 0)
    host, port = engine.sockets[0].getsockname()[:2]
    others = [server["serverId"] for server in (await client.call("server.list", {}))["servers"]]
    for server_id in others:
        await client.call("server.cordon", {"serverId": server_id})
    fake = f"fake-{uuid4().hex}"
    await client.call(
        "server.register",
        {
            "serverId": fake,
            "endpoint": f"http://{host}:{port}",
            "dialect": "openai",
            "instanceId": "1",
            "maxInflight": 8,
            "weightVersion": (await client.call("weights.status", {})).get("version", 0),
            "probe": False,
        },
    )
    job = f"job-{uuid4().hex[:8]}"
    worker = await asyncio.create_subprocess_exec(sys.executable, str(EXAMPLE), "--job", job)
    try:
        rollout = client.rollout(job, groups=1, samples=2, max_tokens=100)
        prompts = [[{"role": "user", "content": "What is 6 times 7?"}]]
        [group] = [group async for group in rollout.round(prompts, "wait")]
        for sample in group.samples:
            # The tokens between the turns come from the tool and the chat template.
            assert sample.token_ids == [1, 2, 60, 61, 7, 8, 9]
            assert sample.loss_mask == [1, 1, 0, 0, 1, 1, 1]
            assert sample.text == "It is 42."
            roles = [message["role"] for message in sample.engine_fields[-1]["agent_state"]["messages"]]
            assert roles == ["user", "assistant", "tool", "assistant"]
        worker.terminate()
        assert await asyncio.wait_for(worker.wait(), 60) == 0
    finally:
        if worker.returncode is None:
            worker.kill()
        await client.call("server.remove", {"serverId": fake})
        for server_id in others:
            await client.call("server.uncordon", {"serverId": server_id})
        await delete_job(client, job)
        engine.close()
