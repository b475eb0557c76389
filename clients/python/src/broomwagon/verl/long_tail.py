"""`trainer.v1.trainer_mode=broomwagon_long_tail` with `VERL_USE_EXTERNAL_MODULES=broomwagon.verl.long_tail`: long-tail
rounds under verl.

A short step generates more groups than it trains, trains the groups that end first, and cuts the other groups. A cut
group keeps its tokens in its process of agent loops and does not run in short steps. When a whole batch of cut groups
waits, or a cut group would become too old for verl's sampler, a tail step continues the cut groups and waits for the
oldest. With `max_longtail_share`, each step instead continues a few cut groups beside new groups. Both ways are from
verl's pull request 4160.
"""

from __future__ import annotations

import logging
import math
import time
from typing import Any

import ray
from verl.trainer.ppo.v1 import AgentLoopManagerTQ, get_trainer_cls, register_trainer
from verl.trainer.ppo.v1.agent_loop_tq import AgentLoopWorkerTQ

from . import trainer
from ._groups import current_group
from ._submitted import list_groups
from .manager import with_prompts

logger = logging.getLogger("broomwagon")

MANAGER = f"{__name__}.AgentLoopManager"
OVER_PROVISION = 1.5
#: States of groups in verl's TransferQueue.
UNFINISHED = ("pending", "running")


class AgentLoopWorker(with_prompts(AgentLoopWorkerTQ.__ray_metadata__.modified_class)):  # type: ignore[misc]
    """verl's worker, with a client that knows the group of each request."""

    async def _run_prompt(self, prompt: dict[str, Any], *arguments: Any, **options: Any) -> None:
        group = prompt["uid"]
        # The tasks of the samples inherit this context variable.
        current_group.set(group)
        try:
            await super()._run_prompt(prompt, *arguments, **options)
        finally:
            self.llm_client.groups.ended(group)


class AgentLoopManager(AgentLoopManagerTQ):  # type: ignore[misc]
    """The trainer sets this class as `agent_loop_manager_class`."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.agent_loop_workers_class = ray.remote(AgentLoopWorker)


@register_trainer("broomwagon_long_tail")
class LongTailTrainer(get_trainer_cls("broomwagon_colocate_async")):  # type: ignore[misc]
    """verl's trainer `colocate_async`, with short steps and tail steps instead of its warm-up batches.

    `+trainer.v1.broomwagon.over_provision` (1.5): groups that a short step generates for each group that it trains.

    `+trainer.v1.broomwagon.max_longtail_share` (1): below 1 there are no tail steps, and each step continues held
    groups, at most this share of a batch (at least one group, and all groups that would become too old).
    """

    def __init__(self, config: Any, *arguments: Any, **options: Any) -> None:
        settings = config.trainer.v1.get("broomwagon") or {}
        self._over_provision = float(settings.get("over_provision", OVER_PROVISION))
        if self._over_provision < 1:
            raise ValueError(f"trainer.v1.broomwagon.over_provision is {self._over_provision}, not at least 1")
        self._share = float(settings.get("max_longtail_share", 1))
        if not 0 < self._share <= 1:
            raise ValueError(f"trainer.v1.broomwagon.max_longtail_share is {self._share}, not above 0 and at most 1")
        if config.trainer.v1.sampler.max_off_policy_threshold == 1:
            raise ValueError("With trainer.v1.sampler.max_off_policy_threshold=1 no cut group can be trained later")
        if trainer.set_manager(config, MANAGER) != MANAGER:
            raise ValueError(f"Long-tail rounds need agent_loop_manager_class={MANAGER}, or none")
        #: Groups that wait for a tail step.
        self._held: set[str] = set()
        #: Groups that this step continues and trains.
        self._continued: list[str] = []
        self._step_metrics: dict[str, float] = {}
        super().__init__(config, *arguments, **options)

    def get_llm_client(self) -> Any:
        """
        :raises RuntimeError: verl runs its own balancer
        """
        if not hasattr(self._balancer, "hold_groups"):
            raise RuntimeError("Long-tail rounds need Broomwagon's balancer: set rollout.router_config_path")
        return super().get_llm_client()

    def on_train_begin(self) -> None:
        """Each short step has its own surplus, so there are no warm-up batches."""

    def _add_batch_to_generate(self) -> None:
        groups = list_groups()
        # Groups that have ended between the end of the sampling and the abort are not held.
        self._held &= _unfinished(groups)
        batch: int = self.config.data.train_batch_size
        oldest = sorted(self._held, key=lambda group: groups[group]["global_steps"])
        due = sum(self._is_due(groups[group]["global_steps"]) for group in oldest)
        is_tail = self._share == 1 and (len(oldest) >= batch or due > 0)
        if is_tail:
            # All held groups may continue; the step waits for a batch of the oldest groups.
            self._continued, held = oldest[:batch], []
        else:
            few = 0 if self._share == 1 else max(1, due, math.floor(self._share * batch))
            self._continued, held = oldest[:few], oldest[few:]
        if self._continued:
            self._hold({*held})
        wanted = batch if is_tail else math.ceil(self._over_provision * batch)
        new = max(0, wanted - len(groups.keys() - self._held))
        self._step_metrics = {
            "is_tail_step": float(is_tail),
            "new_groups": new,
            "held_groups": len(self._held),
            "continued_groups": len(self._continued),
        }
        logger.info("Step %d: %s", self.global_steps, self._step_metrics)
        if new:
            self._add_prompts_to_generate(new)

    def on_sample_begin(self) -> None:
        super().on_sample_begin()
        # The loop waits for the continued groups: verl's sampler takes a batch as soon as any groups suffice.
        while _unfinished(list_groups()) & set(self._continued):
            # A dead worker would never end its groups, so this call raises an error for a dead worker.
            ray.get([worker.__ray_ready__.remote() for worker in self.agent_loop_manager.agent_loop_workers])
            time.sleep(self.replay_buffer.poll_interval)

    def on_sample_end(self) -> None:
        # The abort of all requests also ends the requests of these groups, which then ask whether to continue.
        self._hold(_unfinished(list_groups()))
        self._step_metrics["cut_groups"] = len(self._held)
        super().on_sample_end()

    def _consume_sync_metrics(self) -> dict[str, Any]:
        own = {f"training/long_tail/{name}": value for name, value in self._step_metrics.items()}
        return {**super()._consume_sync_metrics(), **own}

    def _is_due(self, first_step: int) -> bool:
        """Whether verl's sampler, after this step, drops a group of `first_step` or waits for such a group."""
        threshold = self.config.trainer.v1.sampler.max_off_policy_threshold
        return threshold is not None and self.global_steps - first_step + 1 >= threshold

    def _hold(self, groups: set[str]) -> None:
        self._held = groups
        ray.get(self._balancer.hold_groups.remote(list(groups)), timeout=trainer.BALANCER_DEADLINE)

    @property
    def _balancer(self) -> Any:
        return self.llm_server_manager.global_load_balancer


def _unfinished(groups: dict[str, dict[str, Any]]) -> set[str]:
    return {group for group, tag in groups.items() if tag["status"] in UNFINISHED}
