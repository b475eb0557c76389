"""`+actor_rollout_ref.rollout.agent.agent_loop_manager_class=broomwagon.verl.manager.AgentLoopManager`: agent loops
whose processes take leases themselves. `AgentLoopManagerTQ` is the manager for the v1 trainers, with the
TransferQueue."""

from __future__ import annotations

from typing import Any

import ray

from ._failures import failed_sample
from ._groups import prompt_group
from .client import LeasedClient, leased


def with_leases(manager_class: type, module: str = __name__) -> type:
    """Derives from a manager class of verl. Only its client is replaced, and its agent loops name the prompt of each
    request.

    :param module: module in which Ray finds the derived class, by the same name
    """

    def __init__(self: Any, config: Any, llm_client: Any, *arguments: Any, **options: Any) -> None:
        manager_class.__init__(self, config, leased(llm_client), *arguments, **options)  # type: ignore[misc]
        worker_class = self.agent_loop_workers_class.__ray_metadata__.modified_class
        self.agent_loop_workers_class = ray.remote(with_prompts(worker_class))

    return type(manager_class.__name__, (manager_class,), {"__init__": __init__, "__module__": module})


def with_prompts(worker_class: type) -> type:
    """The class of verl's processes of agent loops, with the prompt of each sample in the context of its requests. A
    sample that fails is reported to the trainer."""

    async def _run_agent_loop(self: Any, *arguments: Any, **options: Any) -> Any:
        # Ray sends this class with all that its methods name, and a context variable cannot be sent.
        return await _run_sample(self, worker_class, *arguments, **options)

    return type(worker_class.__name__, (worker_class,), {"_run_agent_loop": _run_agent_loop})


async def _run_sample(worker: Any, worker_class: Any, *arguments: Any, **options: Any) -> Any:
    # Each sample has a task of its own, and so a context of its own.
    prompt_group.set(options.get("uid"))
    try:
        return await worker_class._run_agent_loop(worker, *arguments, **options)
    except Exception as error:
        if isinstance(worker.llm_client, LeasedClient):
            trajectory = options["trajectory"] if "trajectory" in options else arguments[1]
            await worker.llm_client.report_failed(failed_sample(error, trajectory, options))
        raise


def __getattr__(name: str) -> Any:
    if name == "AgentLoopManager":
        from verl.experimental.agent_loop import AgentLoopManager as base
    elif name == "AgentLoopManagerTQ":
        # This module of verl needs the package TransferQueue.
        from verl.trainer.ppo.v1 import AgentLoopManagerTQ as base
    else:
        raise AttributeError(name)
    # Ray finds the class by its name in this module.
    globals()[name] = manager = with_leases(base)
    return manager
