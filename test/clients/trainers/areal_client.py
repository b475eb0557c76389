"""The inference engine client of AReaL against one address: areal_client.py sglang|vllm CALL ADDRESS.

Prints the answers that it has read as JSON. AREAL_LLM_SERVER_ADDRS is AReaL's own setting of the address.
"""

import asyncio
import json
import os
import sys

import absent_packages

absent_packages.install(
    *("PIL", "aiofiles", "colorlog", "einops", "flask", "hydra", "lark", "numba", "omegaconf", "psutil", "ray"),
    *("tenacity", "torch", "torchdata", "transformers", "werkzeug"),
)

from areal.api.cli_args import GenerationHyperparameters, InferenceEngineConfig  # noqa: E402
from areal.api.io_struct import ModelRequest, WeightUpdateMeta  # noqa: E402
from areal.engine.sglang_remote import SGLangBackend  # noqa: E402
from areal.engine.vllm_remote import VLLMBackend  # noqa: E402
from areal.infra import RemoteInfEngine  # noqa: E402

DIALECT, CALL = sys.argv[1:]


class Executor:
    """Stand-in for the executor of workflows; the client only reads whether it is paused."""

    def is_paused(self):
        return False


def request(max_new_tokens):
    sampling = GenerationHyperparameters(n_samples=1, max_new_tokens=max_new_tokens, temperature=1.0)
    return ModelRequest(input_ids=[11, 12, 13], gconfig=sampling)


def summary(response):
    return {
        "stop_reason": response.stop_reason,
        "input": response.input_tokens,
        "tokens": len(response.output_tokens),
        "logprobs": len(response.output_logprobs),
        "versions": sorted(set(response.output_versions)),
    }


async def generate(engine):
    return summary(await engine.agenerate(request(5)))


async def pause(engine):
    """Pauses when a response has tokens, as a line on standard input reports, sets the next version, and continues."""
    running = asyncio.create_task(engine.agenerate(request(600)))
    await asyncio.to_thread(sys.stdin.readline)
    await asyncio.to_thread(engine.pause_generation)
    [update] = engine.backend.build_disk_weight_update_requests(WeightUpdateMeta("disk", path="/weights/1")).requests
    await asyncio.to_thread(engine._run_request_on_all_servers, update)
    engine.set_version(1)
    await asyncio.to_thread(engine.continue_generation)
    return summary(await running)


def main():
    config = InferenceEngineConfig(request_retries=1, setup_timeout=30, experiment_name="test", trial_name="test")
    engine = RemoteInfEngine(config, SGLangBackend() if DIALECT == "sglang" else VLLMBackend())
    engine.addresses = os.environ["AREAL_LLM_SERVER_ADDRS"].split(",")
    for address in engine.addresses:
        engine._wait_for_server(address)
    engine.workflow_executor = Executor()
    print(json.dumps(asyncio.run({"generate": generate, "pause": pause}[CALL](engine))))


main()
