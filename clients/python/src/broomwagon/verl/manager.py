"""`+actor_rollout_ref.rollout.agent.agent_loop_manager_class=broomwagon.verl.manager.AgentLoopManager`: agent loops
whose processes take leases themselves. `AgentLoopManagerTQ` is that of the v1 trainers, with the TransferQueue."""

from __future__ import annotations

from typing import Any

from .client import leased


def with_leases(manager_class: type, module: str = __name__) -> type:
    """The manager class of verl with its client replaced; everything else of verl stays as it is.

    :param module: has the class by the same name, for Ray
    """

    def __init__(self: Any, config: Any, llm_client: Any, *arguments: Any, **options: Any) -> None:
        manager_class.__init__(self, config, leased(llm_client), *arguments, **options)  # type: ignore[misc]

    return type(manager_class.__name__, (manager_class,), {"__init__": __init__, "__module__": module})


def __getattr__(name: str) -> Any:
    if name == "AgentLoopManager":
        from verl.experimental.agent_loop import AgentLoopManager as base
    elif name == "AgentLoopManagerTQ":
        # It needs the package TransferQueue.
        from verl.trainer.ppo.v1 import AgentLoopManagerTQ as base
    else:
        raise AttributeError(name)
    # Ray looks for the class by its name in this module.
    globals()[name] = manager = with_leases(base)
    return manager
