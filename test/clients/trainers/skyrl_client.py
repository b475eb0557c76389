"""The inference client of SkyRL against one address: skyrl_client.py CALL URL. Prints the answers that it has read as
JSON."""

import asyncio
import json
import sys

import absent_packages

absent_packages.install("ray", "torch", "transformers")

from skyrl.backends.skyrl_train.inference_servers.remote_inference_client import RemoteInferenceClient  # noqa: E402

CALL, URL = sys.argv[1:]
PROMPTS = [[11, 12, 13], [14, 15, 16, 17]]
SAMPLING = {"max_tokens": 5, "temperature": 1.0, "top_p": 1.0, "top_k": -1, "min_p": 0.0, "logprobs": 1}
CHAT = {"messages": [{"role": "user", "content": "How many clips?"}], "max_tokens": 4, "session_id": "trajectory-1"}


def batch():
    sessions = ["trajectory-1", "trajectory-2"]
    return {"prompt_token_ids": PROMPTS, "sampling_params": SAMPLING, "session_ids": sessions, "cache_salt": "17"}


async def generate(client):
    output = await client.generate(batch())
    await client.finish_session("trajectory-1")
    return {
        "stop_reasons": output["stop_reasons"],
        "tokens": [len(ids) for ids in output["response_ids"]],
        "logprobs": [len(logprobs) for logprobs in output["response_logprobs"]],
        "texts": [len(text) > 0 for text in output["responses"]],
    }


async def openai(client):
    chat = await client.chat_completion({"json": CHAT})
    completion = await client.completion({"json": {"prompt": PROMPTS[0], "max_tokens": 4}})
    [ids] = await client.tokenize(["How many clips?"])
    return {
        "chat": chat["choices"][0]["finish_reason"],
        "completion": completion["usage"]["completion_tokens"],
        "tokenized": len(ids) > 0,
    }


async def sample(client):
    prompt = {"chunks": [{"type": "encoded_text", "tokens": PROMPTS[0]}]}
    body = {"prompt": prompt, "num_samples": 1, "sampling_params": {"max_tokens": 3}, "session_id": "trajectory-1"}
    answer = await client.sample({"json": body})
    return [[len(one["tokens"]), len(one["logprobs"]), one["stop_reason"]] for one in answer["sequences"]]


async def pause(client):
    """Pauses when responses have tokens, as a line on standard input reports; they end after generation was resumed."""
    running = asyncio.create_task(client.generate({**batch(), "sampling_params": {**SAMPLING, "max_tokens": 400}}))
    await asyncio.to_thread(sys.stdin.readline)
    paused = await client.pause_generation()
    updated = await client.finish_weight_update()
    resumed = await client.resume_generation()
    statuses = [one[URL]["status"] for one in (paused, updated, resumed)]
    return {"statuses": statuses, "stop_reasons": (await running)["stop_reasons"]}


async def main():
    client = RemoteInferenceClient(URL, [URL], data_parallel_size=1, model_name="simulated")
    calls = {"generate": generate, "openai": openai, "sample": sample, "pause": pause}
    print(json.dumps(await calls[CALL](client)))
    await client.teardown()


asyncio.run(main())
