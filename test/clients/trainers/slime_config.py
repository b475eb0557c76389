"""Parses options by the code of slime, and chooses the router as slime does at its start: slime_config.py OPTION ...
Prints the address of the router as JSON, or the error. SLIME_CHECKOUT is a checkout of slime, which no package index
has; the options of the router are those of its package."""

import argparse
import json
import os
import sys
import types

import absent_packages

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])
absent_packages.install(
    *("PIL", "blake3", "ray", "setproctitle", "sglang", "sglang_router.mini_lb", "torch", "transformers", "wandb"),
    *("xxhash", "zstandard"),
)
import torch  # noqa: E402

# slime reads the GPUs of the machine when it is imported.
torch.cuda = types.SimpleNamespace(is_available=lambda: False)

from slime.backends.sglang_utils.arguments import add_sglang_router_arguments  # noqa: E402
from slime.ray.rollout import _start_router  # noqa: E402


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


try:
    args = add_sglang_router_arguments(Parser()).parse_args(sys.argv[1:])
    ip, port = _start_router(args)
    print(json.dumps({"ip": ip, "port": port, "policy": args.router_policy}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
