"""`trainer.v1.trainer_mode=broomwagon_sync` (`_colocate_async`, `_separate_async`) with
`VERL_USE_EXTERNAL_MODULES=broomwagon.verl.trainer`: the v1 trainers of verl, with clients that take leases."""

from __future__ import annotations

import logging
from typing import Any

import ray
from omegaconf import open_dict
from verl.trainer.ppo.v1 import get_trainer_cls, register_trainer

from ._failures import FailedSample, SamplesFailed, describe, failure_metrics
from ._submitted import SubmittedGroups
from .client import leased

logger = logging.getLogger("broomwagon")

#: Values of `+trainer.v1.broomwagon.on_failed`: reaction of a trainer to samples that have failed and groups that were
#: dropped.
ON_FAILED = ("warn", "raise")
#: Seconds for an answer of the balancer.
BALANCER_DEADLINE = 60.0
#: Manager whose agent loops name the prompt of each request. With another manager the trainers have leases too.
MANAGER = "broomwagon.verl.manager.AgentLoopManagerTQ"


def set_manager(config: Any, name: str) -> str:
    """Sets the class of verl's manager of agent loops, unless the settings name one. Returns the class in use."""
    agent = config.actor_rollout_ref.rollout.agent
    with open_dict(agent):
        agent.agent_loop_manager_class = agent.get("agent_loop_manager_class") or name
    return str(agent.agent_loop_manager_class)


def _with_leases(mode: str) -> type:
    base = get_trainer_cls(mode)

    def __init__(self: Any, config: Any, *arguments: Any, **options: Any) -> None:
        # verl finds the settings and the sampler of a trainer by its mode.
        config.trainer.v1.trainer_mode = mode
        self._on_failed = (config.trainer.v1.get("broomwagon") or {}).get("on_failed", ON_FAILED[0])
        if self._on_failed not in ON_FAILED:
            raise ValueError(f"trainer.v1.broomwagon.on_failed is one of {ON_FAILED}, not {self._on_failed!r}")
        set_manager(config, MANAGER)
        base.__init__(self, config, *arguments, **options)
        sampler = config.trainer.v1.sampler
        drops_old = mode != "sync" and sampler.get("max_off_policy_strategy", "drop") == "drop"
        max_age = sampler.max_off_policy_threshold if drops_old else None
        self._submitted = SubmittedGroups(self.replay_buffer, max_age)

    def _submit_batch_to_rollout(self: Any, batch: Any) -> int:
        self._submitted.add(batch, self.global_steps)
        return int(base._submit_batch_to_rollout(self, batch))

    def _reissue_inflight_prompts(self: Any, *arguments: Any, **options: Any) -> int:
        count = int(base._reissue_inflight_prompts(self, *arguments, **options))
        self._submitted.add_restored()
        return count

    def get_llm_client(self: Any) -> Any:
        return leased(base.get_llm_client(self))

    def on_sample_end(self: Any) -> None:
        base.on_sample_end(self)
        balancer = self.llm_server_manager.global_load_balancer
        failed: list[FailedSample] = []
        if hasattr(balancer, "take_failed"):
            failed = ray.get(balancer.take_failed.remote(), timeout=BALANCER_DEADLINE)
        failed += self._submitted.take_dropped({sample.group for sample in failed})
        # A step with several batches calls this method several times.
        earlier = self.failed_samples if self._failed_step == self.global_steps else []
        self._failed_step, self.failed_samples = self.global_steps, [*earlier, *failed]
        if failed:
            self.on_failed_samples(failed)

    def on_failed_samples(self: Any, samples: list[FailedSample]) -> None:
        """Logs a warning about samples that have failed, and groups that were dropped, since the last call. A subclass
        may do more.

        :raises SamplesFailed: `on_failed` is `raise`
        """
        if self._on_failed == "raise":
            raise SamplesFailed(samples)
        logger.warning("Step %d: %s", self.global_steps, describe(samples))

    def _consume_sync_metrics(self: Any) -> dict[str, Any]:
        return {**base._consume_sync_metrics(self), **failure_metrics(self.failed_samples)}

    members = {
        "__init__": __init__,
        "__module__": __name__,
        "_submit_batch_to_rollout": _submit_batch_to_rollout,
        "_reissue_inflight_prompts": _reissue_inflight_prompts,
        "get_llm_client": get_llm_client,
        "on_sample_end": on_sample_end,
        "on_failed_samples": on_failed_samples,
        "_consume_sync_metrics": _consume_sync_metrics,
        # Samples that failed, and groups that were dropped, in the last step.
        "failed_samples": (),
        "_failed_step": None,
    }
    return type(f"Leased{base.__name__}", (base,), members)


for _mode in ("sync", "colocate_async", "separate_async"):
    _trainer = register_trainer(f"broomwagon_{_mode}")(_with_leases(_mode))
    globals()[_trainer.__name__] = _trainer
