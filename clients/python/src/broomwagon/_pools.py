"""Messages to a caller about a pool that no service serves."""

from __future__ import annotations

from collections.abc import Sequence

from . import errors

#: Subject of `pool.find` for callers of any pool.
FIND_POOL = "rollout.v1.-.pool.find"
#: Seconds for the reply to `pool.find`.
FIND_POOL_TIMEOUT = 0.5
#: Maximum pools that an error names.
MAX_NAMED = 8
WHERE = "The pool is the parameter `pool` of the client, or POOL"
#: Warning with the pool and the address of NATS.
POOL_NOT_SERVED = (
    "No service serves the pool %r at %s; calls are repeated until one does. "
    f"{WHERE}, and the services serve those of their setting POOLS: `broomwagon status` names them"
)


def pool_not_found(pool: str, address: str, pools: Sequence[str]) -> errors.PoolNotFound:
    """The error for a pool that services do not know.

    :param pools: all pools
    """
    names = ", ".join(pools[:MAX_NAMED]) + (", ..." if len(pools) > MAX_NAMED else "")
    return errors.PoolNotFound(f"There is no pool {pool!r} at {address}; there are: {names}. {WHERE}", field="pool")
