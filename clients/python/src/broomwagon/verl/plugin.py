"""Entry point of `verl.plugins`: with BROOMWAGON_VERL=balancer, verl uses the balancer of Broomwagon, for releases
without `rollout.router_config_path`. Without the variable nothing changes.

verl hides errors of plugins, so this plugin ends the process if it cannot install the balancer.
"""

from __future__ import annotations

import os
import traceback


def install() -> None:
    """
    :raises ValueError: BROOMWAGON_VERL has another value
    :raises AttributeError: this version of verl has its balancer elsewhere
    :raises ModuleNotFoundError: verl lacks a package
    """
    asked = os.environ.get("BROOMWAGON_VERL", "")
    if asked == "":
        return
    if asked != "balancer":
        raise ValueError(f"BROOMWAGON_VERL is {asked!r}; the only value is 'balancer'")
    try:
        import verl.workers.rollout.router as module
    except ModuleNotFoundError as error:
        if error.name != "verl.workers.rollout.router":
            raise
        # verl 0.9.0 has its balancer in this module.
        import verl.workers.rollout.llm_server as module
    from .balancer import Balancer

    if not isinstance(module.GlobalRequestLoadBalancer, type):
        raise AttributeError("GlobalRequestLoadBalancer of this version of verl is not a class")
    module.GlobalRequestLoadBalancer = Balancer


try:
    install()
except Exception as error:
    traceback.print_exc()
    raise SystemExit(f"Broomwagon cannot be installed into verl: {error}") from error
