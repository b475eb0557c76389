"""Callers that use the client without any handling of errors, while services, NATS and Redis are away. Prints `ready`
when all of them run, ends when a line comes on standard input, and prints its results as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from broomwagon import Attempt, Client

CALLERS = 16


async def main() -> None:
    done = leases = 0
    ending = asyncio.Event()

    # A slow machine must not lose its epoch as well.
    async with Client(worker_ttl=60) as client:

        async def call(index: int) -> None:
            nonlocal leases
            while not ending.is_set():
                async with client.lease(f"caller-{index}", session_id=f"session-{index % 4}"):
                    leases += 1
                    await asyncio.sleep(0.02)

        async def train() -> None:
            nonlocal done
            rollout = client.rollout("outages", groups=4, samples=2, max_tokens=64)
            prompts = (f"prompt {index}" for index in range(1_000_000))
            while not ending.is_set():
                async for group in rollout.round(prompts, "wait"):
                    assert len(group.samples) == 2
                done += 1

        worker = client.worker(job="outages", concurrency=16)

        @worker.run
        async def loop(attempt: Attempt) -> str:
            async with attempt.server():
                await asyncio.sleep(0.05)
                attempt.add([1, 2, 3], "abc")
            return "stop"

        working = asyncio.create_task(worker.serve())
        calling = [asyncio.create_task(call(index)) for index in range(CALLERS)]
        training = asyncio.create_task(train())
        while leases < CALLERS or done < 1:
            await asyncio.sleep(0.05)
        print("ready", flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline)
        steps_before, leases_before = done, leases
        # All of them continue after the last outage.
        while leases < leases_before + CALLERS or done < steps_before + 2:
            await asyncio.sleep(0.05)
            for task in (*calling, training, working):
                if task.done():
                    task.result()
        ending.set()
        await asyncio.gather(*calling, training)
        worker.stop()
        await working
        await client.settled()
    print(json.dumps({"steps": done, "leases": leases}), flush=True)


if __name__ == "__main__":
    asyncio.run(main())
