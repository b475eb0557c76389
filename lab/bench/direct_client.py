"""The direct client of `npm run bench -- fleet`: calls that are not streamed, by aiohttp, as trainers make them. Prints
one line of JSON: the answers, their tokens, and the CPU seconds of this process."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

import aiohttp


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--body", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--in-flight", type=int, required=True)
    parser.add_argument("urls", nargs="+")
    options = parser.parse_args()
    headers = {"content-type": "application/json"}
    calls = iter(range(options.count))
    tokens = 0
    timeout = aiohttp.ClientTimeout(total=None)
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:

        async def lane() -> None:
            nonlocal tokens
            for index in calls:
                url = f"{options.urls[index % len(options.urls)]}/v1/completions"
                async with session.post(url, data=options.body, headers=headers) as answer:
                    answer.raise_for_status()
                    tokens += len((await answer.json())["choices"][0]["token_ids"])

        started = time.process_time()
        await asyncio.gather(*(lane() for _ in range(options.in_flight)))
        seconds = time.process_time() - started
    print(json.dumps({"answered": options.count, "tokens": tokens, "cpuSeconds": seconds}))


asyncio.run(main())
