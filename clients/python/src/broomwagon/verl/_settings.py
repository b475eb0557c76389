"""The settings of the balancer for verl. Wrong settings are refused when verl starts."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any

from .._arguments import InvalidArgument, check_count, check_number
from ..client import Client

logger = logging.getLogger("broomwagon")

#: Without a `capacity`, a server takes as many requests as verl sends, as with verl's own balancer.
NO_LIMIT = 1_000_000
NAMES = {"router_class", "url", "pool", "worker_ttl", "capacity", "timeout", "full_determinism"}


class Settings:
    """:raises InvalidArgument: a setting is wrong; `field` is its name"""

    def __init__(self, given: Mapping[str, Any], full_determinism: bool | None) -> None:
        """
        :param given: the contents of `router.yaml`
        :param full_determinism: the argument of verl; None if verl passes only `given`
        """
        unknown = sorted(set(given) - NAMES)
        if unknown:
            raise InvalidArgument(
                f"The router configuration of Broomwagon does not know {', '.join(unknown)}; it has "
                f"{', '.join(sorted(NAMES))}",
                field=unknown[0],
            )
        #: Parameters of `Client`.
        self.client = {name: given[name] for name in ("url", "pool", "worker_ttl") if name in given}
        # The constructor refuses wrong parameters, and does not connect.
        Client(**self.client)
        self.capacity = check_count("capacity", given.get("capacity", NO_LIMIT))
        #: Seconds that a request waits for a server.
        self.timeout = check_number("timeout", given.get("timeout", 600.0))
        self.full_determinism = _determinism(given, full_determinism)
        if self.full_determinism and "capacity" in given:
            raise InvalidArgument(
                "capacity cannot be kept with full_determinism, where the hash of a request chooses its server, full "
                "or not: leave one of them out",
                field="capacity",
            )
        if self.full_determinism and "PYTHONHASHSEED" not in os.environ:
            logger.warning("PYTHONHASHSEED is not set, so full_determinism chooses other servers in each run")


def _determinism(given: Mapping[str, Any], passed: bool | None) -> bool:
    named = given.get("full_determinism", passed)
    if named is not None:
        if not isinstance(named, bool):
            raise InvalidArgument(f"full_determinism must be true or false: {named!r}", field="full_determinism")
        return named
    # verl does not pass `rollout.full_determinism` to a router of `router_config_path`, but sets this variable.
    is_set = os.environ.get("VERL_FULL_DETERMINISM", "0") == "1"
    if is_set:
        logger.warning(
            "VERL_FULL_DETERMINISM is set, so the hash of a request chooses its server. If only the reward model has "
            "full_determinism, write `full_determinism: false` into the router configuration"
        )
    return is_set


def check_bound(request_id: str, bound: str | None, server_id: str) -> None:
    """Logs that a request did not get the server that `full_determinism` has chosen."""
    if bound is not None and server_id != bound:
        logger.warning("Request %s runs on %s: its own server %s is not available", request_id, server_id, bound)
