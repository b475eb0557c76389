"""Reads a file of settings as the command `rl` of prime-rl does: prime_config.py FILE. Prints the client
of the orchestrator as JSON, or the error. PRIME_RL_CHECKOUT is a checkout of prime-rl, which no package index has."""

import json
import os
import sys
import tomllib

import absent_packages

# The package tomli is this module of Python.
sys.modules["tomli"] = tomllib
sys.path.insert(0, os.path.join(os.environ["PRIME_RL_CHECKOUT"], "packages", "prime-rl-configs", "src"))
absent_packages.install("math_verify", "prime_sandboxes", "ray", "tenacity", "tomli_w", "torch", "transformers")

from prime_rl.configs.rl import RLConfig  # noqa: E402
from prime_rl.utils.config import cli  # noqa: E402
from pydantic_config import ConfigFileError  # noqa: E402

try:
    # The file has no trainer, which prime-rl requires.
    config = cli(RLConfig, args=["@", sys.argv[1], "--trainer.max-steps", "1", "--orchestrator.max-steps", "1"])
    client = config.orchestrator.model.client
    print(
        json.dumps(
            {
                "url": client.base_url,
                "key": client.api_key_var,
                "headers": client.headers,
                "adminUrls": client.admin_base_url,
                "startsEngines": config.inference is not None,
            }
        )
    )
except ConfigFileError as error:
    print(json.dumps({"error": str(error)}))
