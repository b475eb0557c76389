"""The callers of `npm run bench -- verl`: pairs of acquire and release through verl's balancer and through Broomwagon,
in turn. Prints one line of JSON. It needs verl, Ray and nats-py."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from typing import Any

import nats
import ray
from broomwagon import Client
from broomwagon.verl._servers import labels_of, pool_id
from broomwagon.verl.router import Router
from verl.workers.rollout.router import GlobalRequestLoadBalancer

SERVERS = 8
WARM_PAIRS = 256
#: Ways of acquire and release, without a pause between the two, as in a burst at the start of a step.
WAYS = ("verl", "broomwagon actor", "broomwagon leases")


class Caller:
    """Callers in one process: a worker of agent loops."""

    async def prepare(self, way: str, handle: Any) -> None:
        self.way = way
        self.handle = handle
        if way == "broomwagon leases":
            self.route = await handle.get_route.remote()
            self.client = Client(**self.route["client"])
            await self.client.connect()
        # The first calls of a process or of an actor wait for its imports and connections.
        await asyncio.gather(*(self.pair(f"warm-{time.time_ns()}-{n}") for n in range(WARM_PAIRS)))

    @property
    def pair(self) -> Any:
        return self._lease if self.way == "broomwagon leases" else self._actor

    async def run(self, callers: int, seconds: float, name: str) -> list[float]:
        """Latencies of acquires, in milliseconds."""
        ends_at = time.perf_counter() + seconds
        pair = self.pair
        latencies: list[float] = []

        async def call(caller: int) -> None:
            turn = 0
            while time.perf_counter() < ends_at:
                latencies.append(await pair(f"{name}-{caller}-{turn}"))
                turn += 1

        await asyncio.gather(*(call(caller) for caller in range(callers)))
        return latencies

    async def close(self) -> None:
        if self.way == "broomwagon leases":
            await self.client.close()

    async def _actor(self, request_id: str) -> float:
        began = time.perf_counter()
        server_id, _ = await self.handle.acquire_server.remote(request_id=request_id)
        took = time.perf_counter() - began
        # Does not wait for the release, like verl.
        self.handle.release_server.remote(server_id=server_id)
        return 1000 * took

    async def _lease(self, request_id: str) -> float:
        balancer = self.route["balancer"]
        began = time.perf_counter()
        # LeasedClient passes the same labels.
        labels = labels_of(balancer) if self.route["is_shared"] else None
        lease = self.client.lease(request_id, session_id=pool_id(request_id, balancer), labels=labels)
        async with lease:
            took = time.perf_counter() - began
        return 1000 * took


async def measure(way: str, handle: Any, processes: int, callers: int, seconds: float) -> dict[str, float]:
    if processes == 1:
        workers: list[Any] = [Caller()]
        await workers[0].prepare(way, handle)
        began = time.perf_counter()
        found = [await workers[0].run(callers, seconds, f"{way}-{time.time_ns()}")]
        took = time.perf_counter() - began
        await workers[0].close()
    else:
        remote: Any = ray.remote(num_cpus=0)(Caller)
        workers = [remote.remote() for _ in range(processes)]
        await asyncio.gather(*(worker.prepare.remote(way, handle) for worker in workers))
        began = time.perf_counter()
        runs = (worker.run.remote(callers, seconds, f"{n}-{time.time_ns()}") for n, worker in enumerate(workers))
        found = await asyncio.gather(*runs)
        took = time.perf_counter() - began
        await asyncio.gather(*(worker.close.remote() for worker in workers))
        for worker in workers:
            ray.kill(worker)
    latencies = sorted(latency for each in found for latency in each)
    return {
        "pairsPerSecond": len(latencies) / took,
        "p50Ms": latencies[len(latencies) // 2],
        "p99Ms": latencies[int(len(latencies) * 0.99)],
    }


async def client_cpu(pool: str, count: int) -> dict[str, float]:
    """CPU of this process for each acquire with its release, beside two bare requests of nats-py; microseconds."""
    connection = await nats.connect(os.environ["NATS_URL"])

    async def echo(message: Any) -> None:
        await connection.publish(message.reply, message.data)

    body = b"x" * 200

    async def bare(_: int) -> None:
        await connection.request("bench.python.echo", body, timeout=30)

    server = await asyncio.create_subprocess_exec(sys.executable, __file__, "--echo", stdout=asyncio.subprocess.PIPE)
    assert server.stdout
    await server.stdout.readline()
    async with Client(pool=pool) as client:

        async def pair(n: int) -> None:
            async with client.lease(f"cpu-{n}"):
                pass

        results = {
            "bareRequest": await _cpu(bare, count, 1),
            "pair": await _cpu(pair, count, 1),
            "bareRequest64": await _cpu(bare, count, 64),
            "pair64": await _cpu(pair, count, 64),
        }
        await client.settled()
    server.terminate()
    await server.wait()
    await connection.close()
    return results


async def _cpu(call: Any, count: int, callers: int) -> float:
    async def run(first: int) -> None:
        for n in range(first, count, callers):
            await call(n)

    await asyncio.gather(*(run(first) for first in range(min(callers, 64))))
    began = time.process_time()
    await asyncio.gather(*(run(first) for first in range(callers)))
    return 1e6 * (time.process_time() - began) / count


async def serve_echo() -> None:
    connection = await nats.connect(os.environ["NATS_URL"])

    async def answer(message: Any) -> None:
        await message.respond(message.data)

    await connection.subscribe("bench.python.echo", cb=answer)
    await connection.flush()
    print("ready", flush=True)
    await asyncio.Event().wait()


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--pool", default="bench")
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--echo", action="store_true")
    options = parser.parse_args()
    if options.echo:
        return await serve_echo()
    variables = {name: os.environ[name] for name in ("PYTHONPATH", "NATS_URL")}
    ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": variables}, logging_level="error")
    servers = {f"10.0.0.{n}:8000": None for n in range(SERVERS)}
    verls = ray.remote(GlobalRequestLoadBalancer).remote(servers=servers)
    ours: Any = Router.remote(servers, {"pool": options.pool, "timeout": 120})
    handles = {"verl": verls, "broomwagon actor": ours, "broomwagon leases": ours}
    rows = []
    for processes, callers in ((1, 1), (1, 64), (1, 512), (8, 64)):
        for round_ in range(options.rounds):
            for way in WAYS:
                row = await measure(way, handles[way], processes, callers, options.seconds)
                rows.append({"way": way, "processes": processes, "callers": callers, "round": round_, **row})
                print(f"{processes} x {callers} {way}: {row['pairsPerSecond']:.0f}/s", file=sys.stderr)
    in_flight = await ours.get_total_inflight.remote()
    versions = {"ray": ray.__version__, "python": sys.version.split()[0], "verl": _version("verl")}
    cpu = await client_cpu(options.pool, 4_000)
    await ours.close.remote()
    print(json.dumps({"rows": rows, "clientCpuUs": cpu, "inFlightAfter": in_flight, "versions": versions}))


def _version(package: str) -> str:
    from importlib.metadata import version

    return version(package)


asyncio.run(main())
