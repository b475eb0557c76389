"""Ray, fake engines, and Broomwagon's balancer as verl's own manager of servers creates it."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import ray
from fake_engine import FakeServer
from omegaconf import OmegaConf
from verl.workers.rollout import llm_server

from broomwagon.verl import plugin

#: verl 0.9.0 has no `router_config_path`.
HAS_ROUTERS = find_spec("verl.workers.rollout.router") is not None
#: Capacity of each server, if the balancer can be given one.
CAPACITY = 64


@pytest.fixture(scope="session")
def cluster() -> Iterator[None]:
    # Each process of Ray finds the same modules as this one.
    environment = {name: os.environ[name] for name in ("PYTHONPATH", "NATS_URL", "POOL", "PYTHONHASHSEED")}
    ray.init(num_cpus=4, include_dashboard=False, runtime_env={"env_vars": environment}, logging_level="error")
    yield
    ray.shutdown()


@pytest.fixture(scope="session")
def actors(cluster: None) -> list[Any]:
    return [FakeServer.remote() for _ in range(2)]


@pytest.fixture
def servers(actors: list[Any]) -> dict[str, Any]:
    ray.get([actor.reset.remote() for actor in actors])
    return {f"10.0.0.{n}:8000": actor for n, actor in enumerate(actors)}


@pytest.fixture
async def balancer(servers: dict[str, Any], tmp_path: Path) -> AsyncIterator[Any]:
    manager = await server_manager(servers, tmp_path)
    yield manager.global_load_balancer
    ray.get(manager.global_load_balancer.close.remote())
    ray.kill(manager.global_load_balancer)


async def server_manager(servers: dict[str, Any], folder: Path) -> Any:
    """verl's manager of these servers, with the balancer of Broomwagon."""
    path = folder / "router.yaml"
    path.write_text(f"router_class: broomwagon.verl.router.Router\ncapacity: {CAPACITY}\n")
    with mock.patch.dict(os.environ, {"BROOMWAGON_VERL": "" if HAS_ROUTERS else "balancer"}):
        with mock.patch.object(llm_server, "GlobalRequestLoadBalancer", llm_server.GlobalRequestLoadBalancer):
            plugin.install()
            return await verls_manager(servers, router_config_path=str(path))


async def verls_manager(servers: dict[str, Any], **settings: Any) -> Any:
    """verl's manager as it is when the servers have started."""
    manager = llm_server.LLMServerManager.__new__(llm_server.LLMServerManager)
    manager.config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"name": "vllm", **settings}}})
    manager.rollout_config = manager.config.actor_rollout_ref.rollout
    manager._load_balancer_cls = None if HAS_ROUTERS else llm_server.GlobalRequestLoadBalancer
    manager.server_addresses, manager.server_handles = list(servers), list(servers.values())
    await manager._init_global_load_balancer()
    return manager
