"""The rollout of miles, a fork of slime, against one router: miles_client.py HOST PORT. Prints its samples as JSON.

There are two steps: the first aborts all running samples when it has enough groups, the second continues these samples.
"""

import asyncio
import json
import sys
from argparse import Namespace

import absent_packages

absent_packages.install(
    *("huggingface_hub", "megatron", "pylatexenc", "ray", "sglang", "sglang_router", "sympy", "tokenizers", "torch"),
    "transformers",
)

from miles.rollout import sglang_rollout  # noqa: E402
from miles.utils import http_utils  # noqa: E402
from miles.utils.types import Sample  # noqa: E402

HOST, PORT = sys.argv[1:]


class Arguments(Namespace):
    """Arguments that are not named here are not set."""

    def __getattr__(self, name):
        return None


class Tokenizer:
    def encode(self, text, **options):
        return [ord(character) for character in text]


async def configure_no_dumper(args):
    pass


async def reward(args, sample, **options):
    return 1.0


def arguments():
    router = {"sglang_router_ip": HOST, "sglang_router_port": PORT, "sglang_router_policy": "consistent_hashing"}
    sampling = {"rollout_temperature": 1.0, "rollout_top_p": 1.0, "rollout_top_k": -1, "rollout_max_response_len": 20}
    fleet = {"sglang_server_concurrency": 64, "rollout_num_gpus": 1, "rollout_num_gpus_per_engine": 1}
    step = {"rollout_batch_size": 1, "over_sampling_batch_size": 2, "n_samples_per_prompt": 2}
    modes = {"rollout_global_dataset": True, "partial_rollout": True, "custom_rm_path": "miles_client.reward", "lora_rank": 0}
    return Arguments(**router, **sampling, **fleet, **step, **modes, rollout_skip_special_tokens=False)


def summary(sample):
    return {
        "index": sample.index,
        "status": sample.status.value,
        "tokens": sample.response_length,
        "all": len(sample.tokens) - len(sample.prompt),
        "logprobs": len(sample.rollout_log_probs),
        "versions": sorted(set(sample.weight_versions)),
    }


def samples_of(groups):
    return [summary(sample) for group in groups for sample in group]


async def main():
    args = arguments()
    sglang_rollout.load_tokenizer = lambda *names, **options: Tokenizer()
    sglang_rollout.load_processor = lambda *names, **options: None
    sglang_rollout.dumper_utils.configure_sglang = configure_no_dumper
    http_utils.init_http_client(args)
    fresh = [[Sample(group_index=group, index=2 * group + one, prompt="How?") for one in (0, 1)] for group in (0, 1)]
    first, partial = await sglang_rollout.generate_rollout_async(args, 0, lambda count: fresh)
    printed = {"first": samples_of(first.samples), "partial": samples_of(partial)}
    args.rollout_batch_size = len(partial)
    second, rest = await sglang_rollout.generate_rollout_async(args, 1, lambda count: partial)
    print(json.dumps({**printed, "second": samples_of(second.samples), "rest": samples_of(rest)}))


# miles imports this file for its reward.
if __name__ == "__main__":
    asyncio.run(main())
