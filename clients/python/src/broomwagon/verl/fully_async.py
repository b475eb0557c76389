"""`VERL_USE_EXTERNAL_MODULES=broomwagon.verl.fully_async`: leases for the fully asynchronous trainer of verl.

The rollouter of that trainer names its classes in its code and has no setting for them. So this module replaces one
name in a module of verl, the manager of agent loops; no other module of Broomwagon does so. It replaces the name only
if it knows the source of the rollouter.
"""

from __future__ import annotations

import hashlib
import inspect
from typing import Any

import verl
import verl.experimental.fully_async_policy.fully_async_rollouter as rollouter

from .manager import with_leases

#: Result of `digest` for verl 0.9.0 and 0.9.1.
KNOWN = {"c225d59d02e8a3bf"}


class UnknownRollouter(RuntimeError):
    """This version of verl has a rollouter that Broomwagon has not been tested with."""


def install(module: Any = rollouter) -> None:
    """Replaces the manager of agent loops.

    :raises UnknownRollouter: nothing was changed
    """
    found = digest(module)
    if found not in KNOWN:
        raise UnknownRollouter(
            f"verl {verl.__version__} has a fully asynchronous rollouter that Broomwagon does not know ({found}). "
            "Remove broomwagon.verl.fully_async from VERL_USE_EXTERNAL_MODULES: rollout.router_config_path alone works "
            "with each version. Or read whether FullyAsyncRollouter._init_async_rollout_manager still creates "
            "FullyAsyncAgentLoopManager by that name with `llm_client`, and add the digest to KNOWN in "
            f"{__file__}"
        )
    module.FullyAsyncAgentLoopManager = FullyAsyncAgentLoopManager


def digest(module: Any) -> str:
    """Digest of the source of the manager and of the method that creates it."""
    actor = module.FullyAsyncRollouter.__ray_metadata__.modified_class
    sources = (inspect.getsource(actor._init_async_rollout_manager), inspect.getsource(VERLS_MANAGER))
    return hashlib.sha256("".join(sources).encode()).hexdigest()[:16]


VERLS_MANAGER = rollouter.FullyAsyncAgentLoopManager
FullyAsyncAgentLoopManager = with_leases(VERLS_MANAGER, __name__)
install()
