"""`trainer.v1.trainer_mode=broomwagon_sync` (`_colocate_async`, `_separate_async`) with
`VERL_USE_EXTERNAL_MODULES=broomwagon.verl.trainer`: the v1 trainers of verl whose clients take leases themselves."""

from __future__ import annotations

from typing import Any

import ray
from omegaconf import open_dict
from verl.trainer.ppo.v1 import get_trainer_cls, register_trainer

from ._failures import FailedSample, failure_metrics, warn
from .client import leased

#: Seconds for an answer of the balancer.
BALANCER_DEADLINE = 60.0
#: Names the prompts of requests, beside the leases that the trainers have without it.
MANAGER = "broomwagon.verl.manager.AgentLoopManagerTQ"


def set_manager(config: Any, name: str) -> str:
    """Sets the class of verl's manager of agent loops, unless the settings name one, and returns the one they have."""
    agent = config.actor_rollout_ref.rollout.agent
    with open_dict(agent):
        agent.agent_loop_manager_class = agent.get("agent_loop_manager_class") or name
    return str(agent.agent_loop_manager_class)


def _with_leases(mode: str) -> type:
    base = get_trainer_cls(mode)

    def __init__(self: Any, config: Any, *arguments: Any, **options: Any) -> None:
        # verl finds the settings and the sampler of a trainer by its mode.
        config.trainer.v1.trainer_mode = mode
        set_manager(config, MANAGER)
        base.__init__(self, config, *arguments, **options)

    def get_llm_client(self: Any) -> Any:
        return leased(base.get_llm_client(self))

    def on_sample_end(self: Any) -> None:
        base.on_sample_end(self)
        balancer = self.llm_server_manager.global_load_balancer
        failed: list[FailedSample] = []
        if hasattr(balancer, "take_failed"):
            failed = ray.get(balancer.take_failed.remote(), timeout=BALANCER_DEADLINE)
        self.failed_samples = failed
        if failed:
            self.on_failed_samples(failed)

    def on_failed_samples(self: Any, samples: list[FailedSample]) -> None:
        """For subclasses: samples that have failed since the last step, each with its group, prompt and reason."""
        warn(self.global_steps, samples)

    def _consume_sync_metrics(self: Any) -> dict[str, Any]:
        return {**base._consume_sync_metrics(self), **failure_metrics(self.failed_samples)}

    members = {
        "__init__": __init__,
        "__module__": __name__,
        "get_llm_client": get_llm_client,
        "on_sample_end": on_sample_end,
        "on_failed_samples": on_failed_samples,
        "_consume_sync_metrics": _consume_sync_metrics,
        # Of the last step.
        "failed_samples": (),
    }
    return type(f"Leased{base.__name__}", (base,), members)


for _mode in ("sync", "colocate_async", "separate_async"):
    _trainer = register_trainer(f"broomwagon_{_mode}")(_with_leases(_mode))
    globals()[_trainer.__name__] = _trainer
