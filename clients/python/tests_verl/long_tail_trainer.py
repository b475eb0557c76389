"""A trainer of verl with long-tail steps, on fake engines and without a model."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import ray
import transfer_queue as tq
from cluster import server_manager
from omegaconf import OmegaConf
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.trainer.ppo.v1.replay_buffer import ReplayBufferAsync
from verl.utils.tensordict_utils import list_of_dict_to_tensordict

from broomwagon.verl import long_tail
from broomwagon.verl.manager import with_prompts

BATCH, SAMPLES = 2, 2
#: Length of a prompt whose second sample fails.
FAILS = 1


class PlainLoops(long_tail.AgentLoopWorker):
    """Agent loops without model and tokenizer; the prompts are not from a data set."""

    def __init__(self, config: Any, llm_client: Any, *_: Any) -> None:
        self.config, self.llm_client = config, llm_client
        tq.init()
        self.background_tasks: set[Any] = set()

    async def _run_agent_loop(self, _: Any, *, session_id: int, trajectory: dict[str, Any], **prompt: Any) -> None:
        length = int(prompt["index"])
        if length == FAILS and session_id == 1:
            raise ValueError("no answer for this prompt")
        output = await self.llm_client.generate(
            f"{prompt['uid']}-{session_id}", prompt_ids=[7, 7, 7], sampling_params={"max_tokens": length}
        )
        steps = [output.extra_fields[name] for name in ("min_global_steps", "max_global_steps")]
        field = {"tokens": np.array(output.token_ids), "steps": np.array(steps), "length": length}
        await tq.async_kv_batch_put(
            keys=[f"{prompt['uid']}_{session_id}_0"],
            fields=list_of_dict_to_tensordict([field]),
            tags=[{"status": "success", "tokens": output.token_ids, "steps": steps}],
            partition_id="val" if trajectory["validate"] else "train",
        )


#: The process of agent loops of the trainer, with the part of Broomwagon around the loop above.
Loops = with_prompts(PlainLoops)


class Checkpoints:
    """verl's calls before and after new weights, on fake engines."""

    def __init__(self, servers: dict[str, Any]) -> None:
        self._servers = list(servers.values())

    def abort_replicas(self) -> None:
        ray.get([server.abort_all.remote() for server in self._servers])

    def sleep_replicas(self) -> None:
        """Fake engines have no weights."""

    def update_weights(self, step: int) -> None:
        self._step = step

    def resume_generation_replicas(self) -> None:
        ray.get([server.resume.remote(self._step) for server in self._servers])


@pytest.fixture(scope="module")
def queue(cluster: None) -> Iterator[None]:
    tq.init()
    yield
    tq.close()


@pytest.fixture
async def make(
    queue: None, servers: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Callable[[], Awaitable[Any]]]:
    config = OmegaConf.create(
        {
            "actor_rollout_ref": {
                "rollout": {
                    **{"name": "vllm", "n": SAMPLES, "response_length": 100},
                    **{"temperature": 1.0, "top_p": 1.0, "top_k": -1, "calculate_log_probs": False},
                    "val_kwargs": {"n": 1, "temperature": 0.0, "top_p": 1.0, "top_k": -1},
                    "agent": {"num_workers": 1, "default_agent_loop": "single_turn_agent"},
                },
                "model": {},
            },
            "data": {"train_batch_size": BATCH, "gen_batch_size": 1},
            "trainer": {
                "v1": {
                    "trainer_mode": "broomwagon_long_tail",
                    "sampler": {"max_off_policy_threshold": 4},
                    "broomwagon": {"over_provision": 2},
                }
            },
        }
    )
    monkeypatch.setattr(long_tail, "AgentLoopWorker", Loops)
    kind = get_trainer_cls("broomwagon_long_tail")
    # verl's constructor would load models and start workers on GPUs.
    monkeypatch.setattr(kind.__mro__[2], "__init__", _construct)
    made: list[Any] = []

    async def create() -> Any:
        trainer = kind(config.copy())
        made.append(trainer)
        trainer.llm_server_manager = await server_manager(servers, tmp_path)
        trainer.agent_loop_manager = manager = long_tail.AgentLoopManager(
            trainer.config, llm_client=trainer.get_llm_client()
        )
        await manager._init_agent_loop_workers()
        trainer.checkpoint_manager = Checkpoints(servers)
        return trainer

    yield create
    for each in made:
        end(each)
    for partition, left in (tq.kv_list() or {}).items():
        if left:
            tq.kv_clear(keys=list(left), partition_id=partition)


@pytest.fixture
async def trainer(make: Callable[[], Awaitable[Any]]) -> Any:
    return await make()


def end(trainer: Any) -> None:
    """Kills the processes of a training but its engines and TransferQueue, which verl restores from a checkpoint."""
    for actor in (*trainer.agent_loop_manager.agent_loop_workers, trainer.llm_server_manager.global_load_balancer):
        ray.kill(actor)


def _construct(self: Any, config: Any) -> None:
    self.config, self.trainer_mode, self.timing_raw, self.curr_step_profile = config, "colocate_async", {}, False
    self.global_steps = 1
    self.train_dataloader_it = None
    self.replay_buffer = ReplayBufferAsync(
        trainer_mode="colocate_async",
        trainer_config=None,
        max_off_policy_threshold=config.trainer.v1.sampler.max_off_policy_threshold,
        max_off_policy_strategy="drop",
        sampler_kwargs=None,
        poll_interval=0.05,
        refill_fn=self._add_prompts_to_generate,
    )
