"""Runs the command train_ppo_ray of OpenRLHF until its options are checked, and loads the agent as its engines do:
openrlhf_config.py OPTION ... Prints the result as JSON."""

import json
import runpy
import sys

import absent_packages

absent_packages.install(
    *("PIL", "bitsandbytes", "datasets", "deepspeed", "einops", "flash_attn", "jsonlines", "loralib", "nats"),
    *("numpy.core", "optimum", "optree", "peft", "pylatexenc", "ray", "sympy", "torch", "torchdata", "transformers"),
    *("vllm", "wandb"),
)

from openrlhf import utils  # noqa: E402


def describe(args):
    from openrlhf.trainer.ray.vllm_engine import _load_agent_executor

    executor = _load_agent_executor(args.train.agent_func_path)
    bases = [base.__name__ for base in type(executor).__mro__]
    print(json.dumps({"agent": args.train.agent_func_path, "reward": args.reward.remote_url, "bases": bases}))
    sys.exit()


# The command calls it first after its options are checked.
utils.get_strategy = describe
runpy.run_module("openrlhf.cli.train_ppo_ray", run_name="__main__")
