"""A trainer that trains many jobs side by side: one JSON object for each job on stdin, one with its samples on stdout."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

from broomwagon import Client, Group


def describe(group: Group) -> list[dict[str, Any]]:
    return [
        {
            "promptId": group.id,
            "sampleIndex": sample.index,
            "requestId": sample.request_id,
            "tokenIds": sample.token_ids.tolist(),
            "text": sample.text,
            "logprobs": None if sample.logprobs is None else list(sample.logprobs),
            "finishReason": sample.finish_reason,
            "weightVersions": sample.weight_versions,
            "segments": sample.segments,
        }
        for sample in group.samples
    ]


async def train(job: dict[str, Any]) -> dict[str, Any]:
    samples: list[dict[str, Any]] = []
    reported: list[dict[str, str]] = []
    async with Client(pool=job["pool"]) as client:
        rollout = client.rollout(
            job["job"],
            groups=job["groups"],
            samples=job["samples"],
            max_tokens=job["maxTokens"],
            sampling=job["sampling"],
            on_failed="yield",
        )
        has_more = True
        while has_more:
            has_more = False
            async for group in rollout.round(job["prompts"], job["policy"]):
                has_more = True
                if group.failure is None:
                    samples += describe(group)
                else:
                    reported.append({"groupId": group.id, "reason": group.failure.reason})
    return {"job": job["job"], "samples": samples, "reported": reported}


async def answer(line: str) -> None:
    job = json.loads(line)
    try:
        reply = await train(job)
    except Exception as error:
        reply = {"job": job["job"], "error": repr(error)}
    print(json.dumps(reply), flush=True)


async def main() -> None:
    running: set[asyncio.Task[None]] = set()
    while line := await asyncio.to_thread(sys.stdin.readline):
        task = asyncio.create_task(answer(line))
        running.add(task)
        task.add_done_callback(running.discard)


asyncio.run(main())
