"""Each setting that verl's own balancer reads, with each way in."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
import ray
from cluster import HAS_ROUTERS, verls_manager
from omegaconf import OmegaConf
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

from broomwagon.verl import plugin
from broomwagon.verl.balancer import Balancer
from broomwagon.verl.client import leased

pytest_plugins = ["cluster"]

IDS = [f"det-{n}" for n in range(24)]
MODULE = import_module(f"verl.workers.rollout.{'router' if HAS_ROUTERS else 'llm_server'}")
#: Settings of verl's balancer, with the effect of each in Broomwagon.
KNOWN = {
    "servers": "all of them get requests",
    "max_cache_size": "none: sessions are those of the pool",
    "full_determinism": "tested below",
}


def test_the_settings_of_verls_balancer_are_known() -> None:
    verls = MODULE.GlobalRequestLoadBalancer
    assert verls is not Balancer
    # Ray adds its own parameters to a class from which an actor was created.
    names = {name for name in inspect.signature(verls).parameters if not name.startswith("_ray")}
    assert names == {*KNOWN}


@pytest.fixture
def environment() -> Iterator[None]:
    """Sets the variable that `main_ppo` of verl sets with `rollout.full_determinism`."""
    with mock.patch.dict(os.environ, {"VERL_FULL_DETERMINISM": "1"}):
        yield


async def chosen_by_verl(servers: dict[str, Any]) -> list[str]:
    balancer = MODULE.GlobalRequestLoadBalancer(servers, full_determinism=True)
    return [balancer.acquire_server(request_id)[0] for request_id in IDS]


def rollout_settings(tmp_path: Path, way: str) -> dict[str, Any]:
    settings: dict[str, Any] = {"full_determinism": True, "response_length": 40}
    if way == "router":
        path = tmp_path / "router.yaml"
        path.write_text("router_class: broomwagon.verl.router.Router\n")
        settings["router_config_path"] = str(path)
    return settings


async def balancer_of(way: str, servers: dict[str, Any], settings: dict[str, Any]) -> Any:
    """The actor as verl creates it."""
    ours = {"BROOMWAGON_VERL": "" if way == "router" else "balancer"}
    with (
        mock.patch.dict(os.environ, ours),
        mock.patch.object(MODULE, "GlobalRequestLoadBalancer", MODULE.GlobalRequestLoadBalancer),
    ):
        plugin.install()
        return (await verls_manager(servers, **settings)).global_load_balancer


@pytest.mark.parametrize("kind", [LLMServerClient, FullyAsyncLLMServerClient])
@pytest.mark.parametrize("with_leases", [False, True])
@pytest.mark.parametrize("way", ["router", "plugin"])
async def test_full_determinism_chooses_the_servers_that_verl_chooses(
    environment: None, servers: dict[str, Any], tmp_path: Path, way: str, with_leases: bool, kind: Any
) -> None:
    if way == "router" and not HAS_ROUTERS:
        pytest.skip("verl 0.9.0 has no router_config_path")
    settings = rollout_settings(tmp_path, way)
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": {"name": "vllm", **settings}}})
    # The actor needs the hash seed of this process, so that both compute the same hashes.
    with mock.patch.object(ray.actor.ActorClass, "remote", _with_environment):
        balancer = await balancer_of(way, servers, settings)
    client = kind(config, balancer)
    client = leased(client) if with_leases else client
    for request_id in IDS:
        await client.generate(request_id, prompt_ids=[7], sampling_params={"max_tokens": 1})
    asked = {name: await handle.requests.remote() for name, handle in servers.items()}
    by_id = {request_id: name for name, ids in asked.items() for request_id in ids}
    assert [by_id[request_id] for request_id in IDS] == await chosen_by_verl(servers)
    if with_leases:
        await client.close()
    ray.get(balancer.close.remote())
    ray.kill(balancer)


_remote = ray.actor.ActorClass.remote


def _with_environment(actor_class: Any, *arguments: Any, **options: Any) -> Any:
    names = ("VERL_FULL_DETERMINISM", "PYTHONHASHSEED")
    variables = {name: os.environ[name] for name in names if name in os.environ}
    return actor_class.options(runtime_env={"env_vars": variables}).remote(*arguments, **options)
