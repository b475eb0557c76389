"""An engine that serves the model with routes of SGLang: `/generate` with token ids in and out, log probabilities,
aborts by id, pauses, and new weights from a file.

The engine has the pace of a large model: a decode step takes as long as the published times of a 14B model on one
server (lab/models/src/engine-model), so rounds have a realistic tail. `/simulated_clock` returns the time that the
engine has decoded at this pace, and the end of a response has it as `simulated_seconds`. The clock does not depend on
the speed of the machine: a slower step counts the same, and no step starts while requests arrive one after another.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from .addition import CONTEXT, VOCABULARY
from .decoder import Decoder, Text
from .http_server import HttpServer, Refused, Reply
from .model import Weights
from .run_state import load_weights

#: Seconds of a decode step: without requests, and added by each request and by each token in the caches.
STEP_BASE, STEP_REQUEST, STEP_TOKEN = 0.0145, 0.00006, 22e-9
PREFILL_TOKENS_PER_SECOND = 20_000
#: Real seconds without a new request before the next step, and most seconds that a step waits for that.
ARRIVAL_PAUSE, MAX_ARRIVAL = 0.1, 3.0
#: Tokens of one event of a stream.
STREAM_INTERVAL = 2
SLOTS = 512


class Stream:
    """The events of one request."""

    def __init__(self, text: Text, has_logprobs: bool) -> None:
        self.text = text
        self._has_logprobs = has_logprobs
        self._sent = 0
        self._events: asyncio.Queue[str | None] = asyncio.Queue()

    def flush(self, finish: str | None, clock: float, least: int = 1) -> None:
        """Sends new tokens if there are at least so many or the request ends.

        :param clock: simulated seconds
        """
        text, first = self.text, self._sent
        if finish is None and len(text.tokens) - first < least:
            return
        self._sent = len(text.tokens)
        meta: dict[str, Any] = {
            "id": text.id,
            "finish_reason": finish and {"type": finish},
            "prompt_tokens": len(text.prompt),
            "completion_tokens": len(text.tokens),
        }
        if finish is not None:
            meta["simulated_seconds"] = clock
        if self._has_logprobs:
            pairs = zip(text.logprobs[first:], text.tokens[first:], strict=True)
            meta["output_token_logprobs"] = [[logprob, token, None] for logprob, token in pairs]
        self._events.put_nowait(json.dumps({"text": "", "output_ids": text.tokens[first:], "meta_info": meta}))
        if finish is not None:
            self._events.put_nowait(None)

    async def events(self) -> AsyncIterator[str]:
        while (event := await self._events.get()) is not None:
            yield event
        yield "[DONE]"


class Engine:
    """:param pace: seconds of the real clock for one second of the simulated one"""

    def __init__(self, weights: Weights, seed: int, pace: float) -> None:
        self._decoder = Decoder(weights, SLOTS, np.random.default_rng(seed))
        self._pace = pace
        self._instance = uuid4().hex
        self._version = "0"
        self._waiting: list[Stream] = []
        self._running: dict[str, Stream] = {}
        self._simulated = 0.0
        self._is_paused = False
        self._arrived = 0.0
        self._work = asyncio.Event()

    def routes(self) -> HttpServer:
        async def info(_: dict[str, Any]) -> Reply:
            return {
                "model_path": "tiny-grpo",
                "version": "0.5.6",
                "context_length": CONTEXT,
                "incremental_streaming_output": True,
                "instance_id": self._instance,
                "weight_version": self._version,
            }

        async def load(_: dict[str, Any]) -> Reply:
            return [{"dp_rank": 0, "num_running_reqs": len(self._running), "num_waiting_reqs": len(self._waiting)}]

        async def clock(_: dict[str, Any]) -> Reply:
            return {"seconds": self._simulated}

        async def nothing(_: dict[str, Any]) -> Reply:
            return {"success": True}

        return HttpServer(
            {
                "GET /health": nothing,
                "GET /get_server_info": info,
                "GET /get_model_info": info,
                "GET /get_load": load,
                "GET /simulated_clock": clock,
                "POST /generate": self._generate,
                "POST /abort_request": self._abort,
                "POST /pause_generation": self._pause,
                "POST /continue_generation": self._continue,
                "POST /flush_cache": nothing,
                "POST /update_weights_from_disk": self._load_weights,
            }
        )

    async def _generate(self, body: dict[str, Any]) -> Reply:
        prompt, sampling = body["input_ids"], body["sampling_params"]
        budget = sampling["max_new_tokens"]
        if not all(isinstance(token, int) and 0 <= token < VOCABULARY for token in prompt) or not prompt:
            raise Refused(f"input_ids must be token ids below {VOCABULARY}")
        if not 1 <= budget <= CONTEXT - len(prompt):
            raise Refused(f"max_new_tokens must be 1 to {CONTEXT - len(prompt)} with this prompt")
        if sampling.get("temperature", 1.0) != 1.0:
            raise Refused("temperature must be 1: log probabilities are those of the weights")
        stream = Stream(Text(body["rid"], prompt, budget), body.get("return_logprob") is True)
        return self._events(stream)

    async def _events(self, stream: Stream) -> AsyncIterator[str]:
        self._waiting.append(stream)
        self._arrived = time.monotonic()
        self._work.set()
        try:
            async for event in stream.events():
                yield event
        finally:
            # The caller may have closed the connection.
            self._take_out(stream)

    async def _abort(self, body: dict[str, Any]) -> Reply:
        self._abort_where(body["rid"])
        return {}

    async def _pause(self, body: dict[str, Any]) -> Reply:
        if body.get("mode", "abort") == "abort":
            self._abort_where("")
        self._is_paused = True
        return {"status": "ok"}

    async def _continue(self, _: dict[str, Any]) -> Reply:
        self._is_paused = False
        self._work.set()
        return {"status": "ok"}

    async def _load_weights(self, body: dict[str, Any]) -> Reply:
        self._decoder.weights = load_weights(Path(body["model_path"]))
        self._version = str(body["weight_version"])
        return {"success": True, "message": "Succeeded."}

    def _abort_where(self, prefix: str) -> None:
        """Aborts requests by the start of their ids, like SGLang. The tokens so far are sent with the end."""
        for stream in [*self._running.values(), *self._waiting]:
            if stream.text.id.startswith(prefix):
                self._take_out(stream)
                stream.flush("abort", self._simulated)

    def _take_out(self, stream: Stream) -> None:
        if stream in self._waiting:
            self._waiting.remove(stream)
        elif self._running.get(stream.text.id) is stream:
            del self._running[stream.text.id]
            self._decoder.remove(stream.text)

    async def run(self) -> None:
        """Decodes for ever."""
        while True:
            if self._is_paused or not (self._waiting or self._running):
                self._work.clear()
                await self._work.wait()
                continue
            await self._until_arrived()
            if self._is_paused:
                continue
            began = time.monotonic()
            seconds = self._step()
            # Sleeps also for 0 seconds, so that requests and aborts are read.
            await asyncio.sleep(max(0.0, self._pace * seconds - (time.monotonic() - began)))

    async def _until_arrived(self) -> None:
        """Waits while requests arrive: the requests of a round arrive within some tenths of a second."""
        ends_at = time.monotonic() + MAX_ARRIVAL
        while self._waiting and self._arrived + ARRIVAL_PAUSE > time.monotonic() < ends_at:  # noqa: ASYNC110
            await asyncio.sleep(ARRIVAL_PAUSE / 5)

    def _step(self) -> float:
        """One step of all requests; returns its simulated seconds."""
        added = self._waiting[: self._decoder.free]
        del self._waiting[: len(added)]
        self._running |= {stream.text.id: stream for stream in added}
        self._decoder.add([stream.text for stream in added])
        running = list(self._running.values())
        cached = sum(len(stream.text.prompt) + len(stream.text.tokens) for stream in running)
        prefill = sum(len(stream.text.prompt) for stream in added) / PREFILL_TOKENS_PER_SECOND
        seconds = prefill + STEP_BASE + STEP_REQUEST * len(running) + STEP_TOKEN * cached
        self._simulated += seconds
        for text in self._decoder.step():
            self._running.pop(text.id).flush(text.finish, self._simulated)
        for stream in self._running.values():
            stream.flush(None, self._simulated, STREAM_INTERVAL)
        return seconds


async def serve(weights_file: str, seed: int, pace: float, port: int) -> None:
    engine = Engine(load_weights(Path(weights_file)), seed, pace)
    server = await engine.routes().serve(port)
    print(f"ready {server.sockets[0].getsockname()[1]}", flush=True)
    await engine.run()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weights", required=True, help="file of the first weights, version 0")
    parser.add_argument("--seed", type=int, default=0, help="of the random numbers of sampling")
    parser.add_argument("--pace", type=float, default=1.0, help="real seconds of one simulated second")
    parser.add_argument("--port", type=int, default=0, help="default: a free one, which is printed")
    options = parser.parse_args()
    asyncio.run(serve(options.weights, options.seed, options.pace, options.port))


if __name__ == "__main__":
    main()
