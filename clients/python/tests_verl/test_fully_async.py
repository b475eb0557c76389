"""The one name that is changed in verl: the manager of the fully asynchronous rollouter."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import ray
import verl.experimental.fully_async_policy.fully_async_rollouter as rollouter
from cluster import server_manager
from omegaconf import OmegaConf

from broomwagon.verl import fully_async
from broomwagon.verl.client import LeasedFullyAsyncClient

pytest_plugins = ["cluster"]


async def test_the_rollouter_creates_agent_loops_with_leases(
    servers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    manager: Any = await server_manager(servers, tmp_path)
    # State of verl's manager after it has started its replicas.
    own = rollouter.FullyAsyncLLMServerManager.__new__(rollouter.FullyAsyncLLMServerManager)
    own.__dict__.update(manager.__dict__, rollout_replicas=list(servers))

    async def create(**_: Any) -> Any:
        return own

    monkeypatch.setattr(rollouter.FullyAsyncLLMServerManager, "create", create)
    rollout = {"mode": "async", "name": "vllm", "agent": {"num_workers": 0}}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout, "model": {}}})
    trainer: Any = SimpleNamespace(
        config=config,
        use_rm=False,
        reward_loop_manager=SimpleNamespace(reward_loop_workers=None),
        teacher_model_manager=None,
        get_hybrid_worker_group=lambda: None,
    )
    verls = rollouter.FullyAsyncRollouter.__ray_metadata__.modified_class
    await verls._init_async_rollout_manager(trainer)
    loops = trainer.async_rollout_manager
    assert isinstance(loops, fully_async.VERLS_MANAGER)
    assert type(loops.llm_client) is LeasedFullyAsyncClient
    prompt: dict[str, Any] = {"prompt_ids": [7, 7, 7], "sampling_params": {"max_tokens": 4}}
    assert (await loops.llm_client.generate("r", **prompt)).token_ids == [3, 4, 5, 6]
    await loops.llm_client.close()
    ray.kill(manager.global_load_balancer)


def test_another_rollouter_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Changed:
        async def _init_async_rollout_manager(self) -> None:
            """Creates the manager in another way."""

    monkeypatch.setattr(rollouter, "FullyAsyncRollouter", ray.remote(Changed))
    monkeypatch.setattr(rollouter, "FullyAsyncAgentLoopManager", "unchanged")
    with pytest.raises(fully_async.UnknownRollouter, match=r"router_config_path.*add the digest"):
        fully_async.install()
    assert rollouter.FullyAsyncAgentLoopManager == "unchanged"
