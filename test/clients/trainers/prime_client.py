"""The training client of prime-rl (verifiers with renderers) against one address: prime_client.py BASE_URL.

Generates two turns of a trajectory. Prints the turns that it has read as JSON.
"""

import asyncio
import json
import sys

import absent_packages

absent_packages.install("math_verify", "prime_sandboxes", "ray", "tenacity", "tomli_w", "torch", "transformers")

from renderers.configs import DefaultRendererConfig  # noqa: E402
from renderers.default import DefaultRenderer  # noqa: E402
from verifiers.v1.clients.train import ElasticRendererPool, RendererSlot, TrainClient  # noqa: E402
from verifiers.v1.configs.client import TrainClientConfig  # noqa: E402
from verifiers.v1.dialects import ChatDialect  # noqa: E402
from verifiers.v1.types import SamplingConfig  # noqa: E402

[BASE_URL] = sys.argv[1:]


class Tokenizer:
    """Stand-in for a tokenizer of Hugging Face: a character is a token."""

    eos_token_id = 2
    all_special_ids = (2,)
    chat_template = None

    def apply_chat_template(self, messages, **options):
        text = "".join(f"{message['role']}: {message['content']}\n" for message in messages)
        return [ord(character) for character in text]

    def encode(self, text, **options):
        return [ord(character) for character in text]

    def decode(self, ids, **options):
        return "".join(chr(one % 0xD800) for one in ids)

    def convert_tokens_to_ids(self, token):
        return None


async def main():
    config = TrainClientConfig(
        base_url=BASE_URL,
        api_key_var="CLIENTS_KEY",
        renderer=DefaultRendererConfig(),
        renderer_model_name="simulated",
    )
    pool = ElasticRendererPool("simulated", config.renderer, multiplex=config.multiplex)
    pool.renderers.append(RendererSlot(DefaultRenderer(Tokenizer(), config.renderer)))
    client = TrainClient(config)
    # The sampling settings that `Envs._sampling` of prime-rl makes.
    sampling = SamplingConfig(temperature=1.0, max_tokens=5, extra_body={"cache_salt": "3", "top_k": -1, "min_p": 0.0})
    messages = [{"role": "user", "content": "How many clips?"}]
    turns = []
    for question in ("Again.", ""):
        body = {"model": "simulated", "messages": messages}
        response = await client.get_response(ChatDialect(), body, sampling, session_id="trajectory-1")
        tokens = response.tokens
        logprobs = len(tokens.completion_logprobs)
        turns.append([response.finish_reason, len(tokens.prompt_ids) > 0, len(tokens.completion_ids), logprobs])
        answer = {"role": "assistant", "content": response.message.content or ""}
        messages = [*messages, answer, {"role": "user", "content": question}]
    await client.close()
    print(json.dumps(turns))


asyncio.run(main())
