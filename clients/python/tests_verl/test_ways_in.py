"""How verl comes to use it: its managers, trainers and plugins."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import verl
from cluster import HAS_ROUTERS
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from ray import cloudpickle
from verl.experimental.agent_loop import AgentLoopManager
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls
from verl.trainer.ppo.v1.replay_buffer import ReplayBuffer, ReplayBufferAsync
from verl.utils.import_utils import load_class_from_fqn
from verl.workers.rollout.llm_server import FullyAsyncLLMServerClient, LLMServerClient

import broomwagon.verl.trainer  # noqa: F401
from broomwagon.verl.client import LeasedClient, LeasedFullyAsyncClient

CONFIG = OmegaConf.create({"actor_rollout_ref": {"rollout": {"name": "vllm"}, "model": {}}})


def test_the_release_is_the_one_that_was_asked_for() -> None:
    assert verl.__version__ == os.environ.get("VERL_RELEASE", verl.__version__)


@pytest.mark.parametrize(
    ("name", "base"), [("AgentLoopManager", AgentLoopManager), ("AgentLoopManagerTQ", AgentLoopManagerTQ)]
)
def test_the_manager_class_replaces_the_client(name: str, base: type) -> None:
    manager_class = load_class_from_fqn(f"broomwagon.verl.manager.{name}", "AgentLoopManager")
    assert issubclass(manager_class, base)
    for client, kind in ((LLMServerClient, LeasedClient), (FullyAsyncLLMServerClient, LeasedFullyAsyncClient)):
        manager = manager_class(CONFIG, llm_client=client(CONFIG, "balancer"))
        assert type(manager.llm_client) is kind
        assert manager.llm_client._load_balancer == "balancer"


@pytest.mark.parametrize("name", ["AgentLoopManager", "AgentLoopManagerTQ"])
def test_ray_can_send_the_class_of_the_agent_loops_to_its_processes(name: str) -> None:
    manager_class = load_class_from_fqn(f"broomwagon.verl.manager.{name}", "AgentLoopManager")
    manager = manager_class(CONFIG, llm_client=LLMServerClient(CONFIG, "balancer"))
    worker_class = manager.agent_loop_workers_class.__ray_metadata__.modified_class
    assert cloudpickle.loads(cloudpickle.dumps(worker_class)).__name__ == worker_class.__name__


@pytest.mark.parametrize("mode", ["sync", "colocate_async", "separate_async"])
def test_the_trainers_replace_the_client(mode: str) -> None:
    trainer_class = get_trainer_cls(f"broomwagon_{mode}")
    assert issubclass(trainer_class, get_trainer_cls(mode))
    trainer: Any = trainer_class.__new__(trainer_class)

    def get_client(client_cls: Any = LLMServerClient) -> Any:
        return client_cls(CONFIG, "balancer")

    trainer.llm_server_manager = trainer.standalone_server_manager = SimpleNamespace(get_client=get_client)
    kind = LeasedClient if mode == "sync" else LeasedFullyAsyncClient
    assert type(trainer.get_llm_client()) is kind


@pytest.mark.parametrize(
    ("mode", "sampler", "syncs"),
    [("sync", ReplayBuffer, 1), ("colocate_async", ReplayBufferAsync, 1), ("separate_async", ReplayBufferAsync, 4)],
)
def test_the_trainers_keep_the_settings_of_their_mode(mode: str, sampler: type, syncs: int) -> None:
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    with initialize_config_dir(folder, version_base=None):
        rollout = "actor_rollout_ref.rollout"
        # verl checks these settings for separate_async.
        needed = [f"{rollout}.nnodes=1", f"{rollout}.checkpoint_engine.backend=nccl"]
        config = compose("ppo_trainer", [f"trainer.v1.trainer_mode=broomwagon_{mode}", *needed])
    trainer: Any = get_trainer_cls(config.trainer.v1.trainer_mode)(config)
    assert trainer.trainer_mode == mode
    assert type(trainer.replay_buffer) is sampler
    assert trainer.parameter_sync_step == syncs


@pytest.mark.parametrize(("asked", "expected"), [("", "GlobalRequestLoadBalancer"), ("balancer", "Balancer")])
def test_the_plugin_replaces_the_balancer_when_it_is_asked_to(asked: str, expected: str) -> None:
    assert _plugin(asked).stdout.split()[-1] == expected


def test_the_plugin_fails_loudly() -> None:
    ended = _plugin("blancer")
    assert ended.returncode != 0
    assert "the only value is 'balancer'" in ended.stderr


def _plugin(asked: str) -> subprocess.CompletedProcess[str]:
    """Imports verl, which loads the plugin by the entry point of the installed package."""
    [plugin] = entry_points(group="verl.plugins", name="broomwagon")
    assert plugin.value == "broomwagon.verl.plugin"
    module = "router" if HAS_ROUTERS else "llm_server"
    code = f"import verl.workers.rollout.{module} as module; print(module.GlobalRequestLoadBalancer.__name__)"
    environment = {**os.environ, "BROOMWAGON_VERL": asked}
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
