"""The end of one request on an engine of verl, without a change of verl's server actors.

verl's own `abort_request` resets the prefix cache of the server, and does not find the request since vLLM 0.16, which
gives requests internal ids. The actors of SGLang and TensorRT-LLM have no `abort_request`.
"""

from __future__ import annotations

import asyncio
from typing import Any

#: Seconds to wait for the answer of the engine.
DEADLINE = 10.0


async def abort_on_engine(server: Any, request_id: str) -> None:
    """Aborts one request on a vLLM or SGLang server actor; `generate` then returns its tokens.

    :raises NotImplementedError: the actor has another engine
    :raises TimeoutError: the engine does not answer
    """
    await asyncio.wait_for(server.__ray_call__.remote(abort_in_actor, request_id), DEADLINE)


def abort_in_actor(actor: Any, request_id: str) -> None:
    """Runs in the actor, in another thread than its event loop."""
    if hasattr(actor, "tokenizer_manager"):
        actor._server_task.get_loop().call_soon_threadsafe(actor.tokenizer_manager.abort_request, request_id)
    elif hasattr(getattr(actor, "engine", None), "abort"):
        loop = actor._server_task.get_loop()
        asyncio.run_coroutine_threadsafe(actor.engine.abort(request_id), loop).result(DEADLINE)
    else:
        raise NotImplementedError(f"{type(actor).__name__} has no way to abort one request")
