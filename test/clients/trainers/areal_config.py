"""Merges settings into the settings of AReaL, as its command line does: areal_config.py SETTING ... Prints the result
of AReaL as JSON, or its error."""

import json
import sys

import absent_packages

absent_packages.install(
    *("PIL", "aiofiles", "colorlog", "einops", "flask", "hydra", "lark", "numba", "psutil", "ray", "tenacity"),
    *("torch", "torchdata", "transformers", "werkzeug"),
)

from areal.api.cli_args import GRPOConfig, to_structured_cfg  # noqa: E402
from omegaconf import OmegaConf  # noqa: E402
from omegaconf.errors import OmegaConfBaseException  # noqa: E402

try:
    rollout = to_structured_cfg(OmegaConf.from_dotlist(sys.argv[1:]), GRPOConfig).rollout
    print(json.dumps({"backend": rollout.backend, "requestTimeout": rollout.request_timeout}))
except OmegaConfBaseException as error:
    print(json.dumps({"error": str(error)}))
