"""A server actor as verl's vLLM one: `generate`, an engine that aborts by id, and pause and resume of all requests."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import ray

#: Seconds after which a waiting request fails.
MAX_WAIT = 300


class Engine:
    def __init__(self) -> None:
        self.aborted: dict[str, asyncio.Event] = {}

    async def abort(self, request_id: str) -> None:
        if request_id in self.aborted:
            self.aborted[request_id].set()


class FakeServerActor:
    """The token after `n` tokens is `n`, so a response that is resumed can be compared with an uncut one."""

    async def reset(self) -> None:
        self._server_task = asyncio.ensure_future(asyncio.Event().wait())
        self.engine = Engine()
        self.ids: list[str] = []
        self.step = 0
        self._may_run = asyncio.Event()
        self._may_run.set()
        #: Each request stops when prompt and response have so many tokens.
        self._limit = 10**9
        self._raised = asyncio.Event()
        self._fails = False

    async def generate(self, request_id: str, prompt_ids: list[int], sampling_params: dict[str, Any], **_: Any) -> Any:
        # This import takes long, and actors that do not generate do not need it.
        from verl.workers.rollout.replica import TokenOutput

        self.ids.append(request_id)
        if self._fails:
            raise RuntimeError("EngineCore has died")
        # An abort before the request is registered below does not find it.
        await asyncio.wait_for(self._may_run.wait(), MAX_WAIT)
        aborted = self.engine.aborted[request_id] = asyncio.Event()
        tokens: list[int] = []
        while len(tokens) < sampling_params["max_tokens"] and not aborted.is_set():
            if len(prompt_ids) + len(tokens) >= self._limit:
                waits = [asyncio.ensure_future(event.wait()) for event in (aborted, self._raised)]
                ended = (await asyncio.wait(waits, timeout=MAX_WAIT, return_when=asyncio.FIRST_COMPLETED))[0]
                for wait in waits:
                    wait.cancel()
                assert ended, "no test has let this request go on"
                continue
            tokens.append(len(prompt_ids) + len(tokens))
        del self.engine.aborted[request_id]
        reason = "aborted" if aborted.is_set() else "completed"
        return TokenOutput(
            token_ids=tokens,
            log_probs=[-0.5] * len(tokens),
            stop_reason=reason,
            num_preempted=0,
            # There is a row for each position, also of the prompt.
            routed_experts=np.arange(len(prompt_ids) + len(tokens)).reshape(-1, 1, 1),
            extra_fields={"global_steps": self.step},
        )

    async def fail(self) -> None:
        """Each further call raises an error."""
        self._fails = True

    async def limit(self, tokens: int) -> None:
        """Requests stop when prompt and response have this many tokens; `raise_limit` lets them go on."""
        self._limit = tokens
        self._raised.clear()

    async def raise_limit(self) -> None:
        self._limit = 10**9
        self._raised.set()

    async def abort_all(self) -> None:
        """Ends all requests and makes new ones wait, as an engine does before new weights."""
        self._may_run.clear()
        for aborted in self.engine.aborted.values():
            aborted.set()

    async def resume(self, step: int) -> None:
        self.step = step
        self._may_run.set()

    async def requests(self) -> list[str]:
        return self.ids

    async def running(self) -> list[str]:
        return list(self.engine.aborted)


FakeServer: Any = ray.remote(num_cpus=0)(FakeServerActor)
