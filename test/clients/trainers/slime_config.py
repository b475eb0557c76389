"""Parses options by the code of slime, and chooses the router as slime does at its start: slime_config.py OPTION ...
Prints the address of the router as JSON, or the error. SLIME_CHECKOUT is a checkout of slime, which no package index
has; the options of the router are those of its package."""

import argparse
import json
import os
import sys

import absent_packages

sys.path.insert(0, os.environ["SLIME_CHECKOUT"])
absent_packages.install("setproctitle", "sglang", "sglang_router.mini_lb")

from slime.backends.sglang_utils.arguments import add_sglang_router_arguments  # noqa: E402


class Parser(argparse.ArgumentParser):
    def error(self, message):
        raise ValueError(message)


try:
    args = add_sglang_router_arguments(Parser()).parse_args(sys.argv[1:])
    absent_packages.install("blake3", "PIL", "ray", "torch", "transformers", "wandb", "xxhash", "zstandard")
    from slime.ray.rollout import _start_router

    ip, port = _start_router(args)
    print(json.dumps({"ip": ip, "port": port, "policy": args.router_policy}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
